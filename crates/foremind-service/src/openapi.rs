//! The OpenAPI document, made from the types that requests are read into and answers are made of.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::{Kind, ProblemBody};
use crate::wire::{
    ForgottenAnswer, GrantAnswer, GrantBody, HealthAnswer, ListAnswer, ListQuery, MemoriesAnswer,
    MemoriesQuery, MemoryQuery, PlaceQuery, ProfileQuery, PromptAnswer, RecallBody, RecordBody,
    RemovedAnswer, TurnAnswer, TurnBody,
};

/// Who may call.
#[derive(Clone, Copy)]
enum By {
    Anybody,
    Grant,
    ServiceKey,
    Either,
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut types = settings.clone().for_serialize().into_generator();
    let mut inputs = settings.into_generator();
    let problem = types.subschema_for::<ProblemBody>();

    let mut paths = Map::new();
    let mut add = |path: &str, method: &str, summary: &str, by: By, parts: Parts| {
        let security = match by {
            By::Anybody => json!([]),
            By::Grant => json!([{ "grant": [] }]),
            By::ServiceKey => json!([{ "serviceKey": [] }]),
            By::Either => json!([{ "grant": [] }, { "serviceKey": [] }]),
        };
        let mut operation = json!({
            "summary": summary,
            "security": security,
            "responses": {
                parts.status: parts.answer,
                "default": {
                    "description": "A problem (RFC 9457)",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        });
        if !parts.parameters.is_empty() {
            operation["parameters"] = parts.parameters.into();
        }
        if let Some(body) = parts.body {
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": body } } });
        }
        let of_path = paths.entry(path).or_insert_with(|| json!({}));
        of_path[method] = operation;
    };

    let id = json!({ "name": "id", "in": "path", "required": true, "schema": inputs.subschema_for::<foremind_types::RecordId>() });
    add(
        "/v1/turns",
        "post",
        "Takes what is worth keeping from a turn",
        By::ServiceKey,
        Parts::json::<TurnAnswer>("200", &mut types).body::<TurnBody>(&mut inputs),
    );
    add(
        "/v1/recall",
        "post",
        "The prompt for a question",
        By::Grant,
        Parts::json::<PromptAnswer>("200", &mut types).body::<RecallBody>(&mut inputs),
    );
    add(
        "/v1/profile",
        "get",
        "The profile alone",
        By::Grant,
        Parts::json::<PromptAnswer>("200", &mut types).query::<ProfileQuery>(&mut inputs),
    );
    add(
        "/v1/grants",
        "post",
        "Makes a grant",
        By::ServiceKey,
        Parts::json::<GrantAnswer>("201", &mut types).body::<GrantBody>(&mut inputs),
    );
    add(
        "/v1/records",
        "get",
        "The records of a scope",
        By::Either,
        Parts::json::<ListAnswer>("200", &mut types).query::<ListQuery>(&mut inputs),
    );
    add(
        "/v1/records",
        "delete",
        "Erases the records of a scope",
        By::Either,
        Parts::json::<ForgottenAnswer>("200", &mut types).query::<PlaceQuery>(&mut inputs),
    );
    add(
        "/v1/records/{id}",
        "get",
        "One record",
        By::Either,
        Parts::json::<RecordBody>("200", &mut types)
            .query::<PlaceQuery>(&mut inputs)
            .parameter(id.clone()),
    );
    add(
        "/v1/records/{id}",
        "delete",
        "Erases one record",
        By::Either,
        Parts::json::<ForgottenAnswer>("200", &mut types)
            .query::<PlaceQuery>(&mut inputs)
            .parameter(id),
    );
    add(
        "/v1/memory",
        "delete",
        "Erases a memory and destroys its key",
        By::ServiceKey,
        Parts::json::<RemovedAnswer>("200", &mut types).query::<MemoryQuery>(&mut inputs),
    );
    add(
        "/v1/memories",
        "get",
        "The memories of a tenant and who answers for them",
        By::ServiceKey,
        Parts::json::<MemoriesAnswer>("200", &mut types).query::<MemoriesQuery>(&mut inputs),
    );
    add(
        "/v1/export",
        "get",
        "Everything stored in a memory",
        By::ServiceKey,
        Parts::text("200", "application/x-ndjson").query::<MemoryQuery>(&mut inputs),
    );
    add(
        "/healthz",
        "get",
        "Whether the service answers",
        By::Anybody,
        Parts::json::<HealthAnswer>("200", &mut types),
    );
    add(
        "/metrics",
        "get",
        "Counters of this instance (Prometheus)",
        By::ServiceKey,
        Parts::text("200", "text/plain"),
    );
    add("/mcp", "post", "Model Context Protocol, one message: tools remember, recall, profile, forget", By::Grant,
        Parts::of("200", json!({ "description": "A JSON-RPC response; 202 without a body for a notification", "content": { "application/json": { "schema": { "type": "object" } } } }))
            .with_body(json!({ "type": "object" })));

    let mut schemas = types.take_definitions(true);
    schemas.extend(inputs.take_definitions(true));
    schemas.sort_keys();
    let problems: Map<String, Value> = Kind::ALL
        .iter()
        .map(|kind| (kind.code().to_owned(), kind.status().into()))
        .chain(foremind_types::ErrorCode::ALL.iter().map(|code| {
            (
                code.as_str().to_owned(),
                crate::http::status_of(*code).into(),
            )
        }))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "foremind",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "grant": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "serviceKey": { "type": "http", "scheme": "bearer", "description": "`key.<kid>.<secret>`" },
            },
        },
        "x-problems": problems,
    })
}

struct Parts {
    status: &'static str,
    answer: Value,
    body: Option<Value>,
    parameters: Vec<Value>,
}

impl Parts {
    fn of(status: &'static str, answer: Value) -> Self {
        Self {
            status,
            answer,
            body: None,
            parameters: Vec::new(),
        }
    }

    fn json<T: JsonSchema>(status: &'static str, types: &mut SchemaGenerator) -> Self {
        let schema = types.subschema_for::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        Self::of(
            status,
            json!({ "description": "The answer", "content": content }),
        )
    }

    fn text(status: &'static str, media: &str) -> Self {
        let content = json!({ media: { "schema": { "type": "string" } } });
        Self::of(
            status,
            json!({ "description": "The answer", "content": content }),
        )
    }

    fn body<T: JsonSchema>(self, types: &mut SchemaGenerator) -> Self {
        let schema = types.subschema_for::<T>();
        self.with_body(json!(schema))
    }

    fn with_body(self, schema: Value) -> Self {
        Self {
            body: Some(schema),
            ..self
        }
    }

    fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.insert(0, parameter);
        self
    }

    /// The fields of a type as parameters of the query.
    fn query<T: JsonSchema>(mut self, types: &mut SchemaGenerator) -> Self {
        let schema = T::json_schema(types);
        let required = schema.get("required").and_then(Value::as_array).cloned();
        let fields = schema.get("properties").and_then(Value::as_object).cloned();
        for (name, mut schema) in fields.unwrap_or_default() {
            let description = schema
                .as_object_mut()
                .and_then(|schema| schema.remove("description"));
            let needed = required
                .as_ref()
                .is_some_and(|names| names.contains(&json!(name)));
            self.parameters.push(json!({
                "name": name,
                "in": "query",
                "required": needed,
                "description": description,
                "schema": schema,
            }));
        }
        self
    }
}
