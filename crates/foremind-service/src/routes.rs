//! Which request is which, and who may make it.

use foremind_types::{Name, Scope};
use matchit::Router;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::grant::{Grant, GrantError, Verb};
use crate::http::{BODY_BYTES, HttpRequest, Kind, Problem};
use crate::wire::PlaceQuery;

macro_rules! endpoints {
    ($($variant:ident = $method:literal $path:literal, $label:literal;)+) => {
        /// What a request asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Endpoint { $($variant,)+ }

        const TABLE: &[(&str, &str, Endpoint)] = &[$(($path, $method, Endpoint::$variant),)+];

        impl Endpoint {
            /// Its name in metrics.
            pub(crate) fn label(self) -> &'static str { match self { $(Self::$variant => $label),+ } }
        }
    };
}

endpoints! {
    Turns = "POST" "/v1/turns", "turns";
    Recall = "POST" "/v1/recall", "recall";
    Profile = "GET" "/v1/profile", "profile";
    Grants = "POST" "/v1/grants", "grants";
    List = "GET" "/v1/records", "list";
    ForgetScope = "DELETE" "/v1/records", "forget-scope";
    Get = "GET" "/v1/records/{id}", "get";
    Forget = "DELETE" "/v1/records/{id}", "forget";
    RemoveMemory = "DELETE" "/v1/memory", "remove-memory";
    Memories = "GET" "/v1/memories", "memories";
    Export = "GET" "/v1/export", "export";
    Health = "GET" "/healthz", "health";
    Metrics = "GET" "/metrics", "metrics";
    Mcp = "POST" "/mcp", "mcp";
}

/// The paths. They are compared as they came: nothing is decoded, so no path has a second spelling.
#[derive(Debug)]
pub(crate) struct Routes(Router<Vec<(&'static str, Endpoint)>>);

impl Routes {
    pub(crate) fn new() -> Self {
        let mut router: Router<Vec<(&'static str, Endpoint)>> = Router::new();
        for (path, _, _) in TABLE {
            let of_path = TABLE.iter().filter(|(other, _, _)| other == path);
            let methods = of_path
                .map(|(_, method, endpoint)| (*method, *endpoint))
                .collect();
            // A path with several methods comes several times; a test sees to it that nothing else is refused.
            let _ = router.insert(*path, methods);
        }
        Self(router)
    }

    /// The endpoint and the id in its path.
    pub(crate) fn find(
        &self,
        request: &HttpRequest,
    ) -> Result<(Endpoint, Option<String>), Problem> {
        let found = self
            .0
            .at(request.path())
            .map_err(|_| Problem::new(Kind::NotFound, "no such path"))?;
        let endpoint = found
            .value
            .iter()
            .find(|(method, _)| *method == request.method);
        let Some((_, endpoint)) = endpoint else {
            let methods: Vec<&str> = found.value.iter().map(|(method, _)| *method).collect();
            return Err(
                Problem::new(Kind::MethodNotAllowed, "the path has other methods")
                    .with("allow", methods.join(", ")),
            );
        };
        Ok((*endpoint, found.params.get("id").map(str::to_owned)))
    }
}

/// Who calls.
#[derive(Debug)]
pub(crate) enum Caller {
    /// The holder of a service key, and the only tenant that it reaches.
    Service(Option<Name>),
    /// The holder of a grant.
    Grant(Box<Grant>),
}

impl Caller {
    pub(crate) fn of(config: &Config, request: &HttpRequest, now_ms: i64) -> Result<Self, Problem> {
        let missing = || {
            Problem::new(
                Kind::Unauthenticated,
                "pass `Authorization: Bearer` with a grant or a service key",
            )
        };
        let header = request.header("authorization")?.ok_or_else(missing)?;
        let (scheme, token) = header.split_once(' ').ok_or_else(missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(missing());
        }
        if let Some(key) = token.strip_prefix("key.") {
            let wrong = || {
                Problem::new(
                    Kind::Unauthenticated,
                    "no service key is called so, or its secret is another one",
                )
            };
            let (kid, secret) = key.rsplit_once('.').ok_or_else(wrong)?;
            let secret = base64(secret).ok_or_else(wrong)?;
            let key = config.service_key(kid, &secret).ok_or_else(wrong)?;
            return Ok(Self::Service(key.tenant.clone()));
        }
        match Grant::read(config, token, now_ms) {
            Ok(grant) => Ok(Self::Grant(Box::new(grant))),
            Err(GrantError::Expired) => {
                Err(Problem::new(Kind::GrantExpired, "ask for a new grant"))
            }
            Err(_) => Err(Problem::new(
                Kind::GrantInvalid,
                "the token's form, key, signature or claims are not those of a grant",
            )),
        }
    }

    /// Refuses grants, and tenants that the key does not reach.
    pub(crate) fn service(&self, tenant: Option<&Name>) -> Result<(), Problem> {
        match self {
            Self::Grant(_) => Err(Problem::new(
                Kind::ServiceKeyNeeded,
                "grants do not reach this",
            )),
            Self::Service(Some(only)) if tenant != Some(only) => Err(Problem::new(
                Kind::Outside,
                "the service key is for another tenant",
            )),
            Self::Service(_) => Ok(()),
        }
    }

    /// A grant that covers a verb.
    pub(crate) fn grant(&self, verb: Verb) -> Result<&Grant, Problem> {
        match self {
            Self::Service(_) => Err(Problem::new(
                Kind::GrantNeeded,
                "this wants a grant for the user",
            )),
            Self::Grant(grant) if grant.allows(verb) => Ok(grant),
            Self::Grant(_) => Err(Problem::new(
                Kind::Outside,
                "the grant does not have this verb",
            )),
        }
    }

    /// Whose records: those of the grant, or those that the holder of a service key names.
    pub(crate) fn place(&self, query: PlaceQuery, verb: Verb) -> Result<(Name, Scope), Problem> {
        match self {
            Self::Grant(_) => {
                let grant = self.grant(verb)?;
                if query.tenant.is_some() || query.user.is_some() {
                    return Err(Problem::new(
                        Kind::Outside,
                        "a grant's holder names neither tenant nor user",
                    ));
                }
                equal(
                    grant,
                    query.project.as_ref(),
                    query.thread.as_ref(),
                    query.agent.as_ref(),
                )?;
                Ok((grant.tenant.clone(), grant.scope()))
            }
            Self::Service(_) => {
                let (Some(tenant), Some(user)) = (query.tenant, query.user) else {
                    return Err(Problem::new(
                        Kind::InvalidRequest,
                        "with a service key, name tenant and user",
                    ));
                };
                self.service(Some(&tenant))?;
                let PlaceQuery {
                    project,
                    thread,
                    agent,
                    ..
                } = query;
                Ok((
                    tenant,
                    Scope {
                        user,
                        project,
                        thread,
                        agent,
                    },
                ))
            }
        }
    }
}

/// Ids beside tenant and user are absent or the grant's: one that the grant does not fix is not its holder's to choose.
pub(crate) fn equal(
    grant: &Grant,
    project: Option<&Name>,
    thread: Option<&Name>,
    agent: Option<&Name>,
) -> Result<(), Problem> {
    let pairs = [
        (project, &grant.project),
        (thread, &grant.thread),
        (agent, &grant.agent),
    ];
    if pairs
        .iter()
        .all(|(given, fixed)| given.is_none() || *given == fixed.as_ref())
    {
        return Ok(());
    }
    Err(Problem::new(
        Kind::Outside,
        "an id is another one than the grant's",
    ))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    use base64ct::{Base64UrlUnpadded, Encoding};
    Base64UrlUnpadded::decode_vec(text).ok()
}

/// The JSON body.
pub(crate) fn body<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Problem> {
    let content_type = request.header("content-type")?.unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            Kind::UnsupportedMediaType,
            "send application/json",
        ));
    }
    if request
        .header("content-encoding")?
        .is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    {
        return Err(Problem::new(
            Kind::UnsupportedMediaType,
            "send the body without a coding",
        ));
    }
    within(request)?;
    serde_json::from_slice(&request.body).map_err(|error| malformed(&error))
}

pub(crate) fn within(request: &HttpRequest) -> Result<(), Problem> {
    if request.body.len() > BODY_BYTES {
        return Err(Problem::new(
            Kind::BodyTooLarge,
            "the body is longer than 1 MiB",
        ));
    }
    Ok(())
}

/// Where JSON is wrong. What the library says quotes the input, so only its kind and place are told.
pub(crate) fn malformed(error: &serde_json::Error) -> Problem {
    use serde_json::error::Category;
    let what = match error.classify() {
        Category::Data => "a field is unknown, missing, repeated or of a wrong form",
        Category::Eof => "the JSON ends early",
        Category::Syntax | Category::Io => "this is no JSON",
    };
    Problem::new(
        Kind::InvalidRequest,
        format!("{what} (line {}, column {})", error.line(), error.column()),
    )
}

/// The query string.
pub(crate) fn query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Problem> {
    serde_urlencoded::from_str(request.query()).map_err(|_| {
        Problem::new(
            Kind::InvalidRequest,
            "a parameter of the query is unknown, missing, repeated or of a wrong form",
        )
    })
}

/// For endpoints without parameters.
pub(crate) fn no_query(request: &HttpRequest) -> Result<(), Problem> {
    if request.query().is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        Kind::InvalidRequest,
        "this takes no parameters in the query",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_found_by_its_path_and_method() {
        let routes = Routes::new();
        for (path, method, endpoint) in TABLE {
            let request = HttpRequest {
                method: (*method).to_owned(),
                target: path.replace("{id}", "x"),
                ..HttpRequest::default()
            };
            assert_eq!(routes.find(&request).unwrap().0, *endpoint);
        }
    }
}
