//! The built service in a host that hands it requests, one fresh instance for each of them as Spin does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use std::collections::BTreeSet;

use base64ct::{Base64UrlUnpadded, Encoding};
use foremind_component_tests::{
    Buckets, Fault, Piece, Request, Response, ServiceInstance, World, component,
};
use serde_json::{Value, json};

/// 30 November 2026.
const NOW_MS: i64 = 1_796_000_000_000;
const NUTS: &str = "I'm allergic to tree nuts";
const QUERY: &str = "Any good macaron recipes?";
const WORLDS: [World; 2] = [World::Service, World::ServiceSpin];

fn secret(byte: u8) -> String {
    Base64UrlUnpadded::encode_string(&[byte; 32])
}

fn config() -> Value {
    json!({
        "master": secret(1),
        "serviceKeys": [{ "kid": "s1", "secret": secret(11) }],
        "grantKeys": [
            { "alg": "HS256", "kid": "h1", "secret": secret(21) },
            { "alg": "EdDSA", "kid": "e1", "seed": secret(31) },
        ],
        "signingKid": "e1",
    })
}

/// Requests to one world on one store, each to an instance of its own.
struct Desk {
    world: World,
    buckets: Buckets,
    config: Option<String>,
    seed: u64,
    now_ms: i64,
    step_ms: i64,
}

impl Desk {
    fn new(world: World) -> Self {
        Self {
            world,
            buckets: Buckets::default(),
            config: Some(config().to_string()),
            seed: 0,
            now_ms: NOW_MS,
            step_ms: 0,
        }
    }

    fn instance(&mut self) -> ServiceInstance {
        self.seed += 1;
        let config = self.config.as_deref();
        let mut instance =
            ServiceInstance::new(self.world, &self.buckets, self.seed, config).unwrap();
        instance.host().set_clock(self.now_ms, self.step_ms);
        instance
    }

    fn send(&mut self, request: Request) -> Response {
        self.instance().handle(request).unwrap()
    }

    /// Method and target, Authorization, JSON body; status and JSON answer.
    fn ask(&mut self, line: &str, authorization: &str, body: Option<&Value>) -> (u16, Value) {
        let response = self.send(request(line, authorization, body));
        let answer = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.status, answer)
    }

    fn grant(&mut self, body: &Value) -> String {
        let (status, answer) = self.ask("POST /v1/grants", &key(), Some(body));
        assert_eq!(status, 201, "{answer}");
        format!("Bearer {}", answer["grant"].as_str().unwrap())
    }

    fn tell(&mut self, tenant: &str, user: &str, turn: &str, text: &str) -> (u16, Value) {
        let body =
            json!({ "tenant": tenant, "user": user, "thread": "t", "turn": turn, "text": text });
        self.ask("POST /v1/turns", &key(), Some(&body))
    }

    fn recall(&mut self, grant: &str, query: &str) -> Value {
        let (status, answer) = self.ask("POST /v1/recall", grant, Some(&json!({ "query": query })));
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

fn key() -> String {
    format!("Bearer key.s1.{}", secret(11))
}

fn request(line: &str, authorization: &str, body: Option<&Value>) -> Request {
    let (method, target) = line.split_once(' ').unwrap();
    let mut headers = Vec::new();
    if !authorization.is_empty() {
        let value = authorization.as_bytes().to_vec();
        headers.push(("authorization".to_owned(), value));
    }
    if body.is_some() {
        let value = b"application/json".to_vec();
        headers.push(("content-type".to_owned(), value));
    }
    Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        // In two pieces, as they may come.
        body: body
            .map(|body| {
                let mut bytes = body.to_string().into_bytes();
                let rest = bytes.split_off(bytes.len() / 2);
                vec![Piece::Bytes(bytes), Piece::Bytes(rest)]
            })
            .unwrap_or_default(),
    }
}

fn all_verbs(tenant: &str, user: &str) -> Value {
    let verbs = ["recall", "profile", "read", "remember", "forget"];
    json!({ "tenant": tenant, "user": user, "verbs": verbs })
}

#[test]
fn each_imports_the_interfaces_of_its_world_and_nothing_else() {
    let stores: [(World, &[&str]); 2] = [
        (
            World::Service,
            &[
                "wasi:keyvalue/atomics@0.2.0-draft2",
                "wasi:keyvalue/store@0.2.0-draft2",
            ],
        ),
        (World::ServiceSpin, &["fermyon:spin/key-value@2.0.0"]),
    ];
    for (world, store) in stores {
        let (engine, component) = component(world).unwrap();
        let ty = component.component_type();
        let imports: BTreeSet<&str> = ty.imports(engine).map(|(name, _)| name).collect();
        let mut expected = BTreeSet::from([
            "fermyon:spin/variables@2.0.0",
            "wasi:clocks/wall-clock@0.2.0",
            "wasi:http/types@0.2.0",
            "wasi:io/error@0.2.0",
            "wasi:io/streams@0.2.0",
            "wasi:random/random@0.2.0",
        ]);
        expected.extend(store);
        assert_eq!(imports, expected);
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        assert_eq!(exports, ["wasi:http/incoming-handler@0.2.0"]);
    }
}

#[test]
fn what_was_told_is_recalled_by_its_owner_alone() {
    for world in WORLDS {
        let mut desk = Desk::new(world);
        let (status, first) = desk.tell("a", "u", "1", NUTS);
        assert_eq!(
            (status, &first["repeated"]),
            (200, &json!(false)),
            "{first}"
        );
        let (_, again) = desk.tell("a", "u", "1", NUTS);
        assert_eq!(again["repeated"], true);
        let own = desk.grant(&json!({ "tenant": "a", "user": "u" }));
        let answer = desk.recall(&own, QUERY);
        assert!(
            answer["prompt"].as_str().unwrap().contains(NUTS),
            "{answer}"
        );
        assert_eq!(answer["reason"], Value::Null);
        for (tenant, user) in [("a", "uu"), ("a", "u2"), ("ab", "u"), ("A", "u")] {
            let other = desk.grant(&json!({ "tenant": tenant, "user": user }));
            assert_eq!(desk.recall(&other, QUERY)["prompt"], "", "{tenant}/{user}");
        }
        // Nothing in the store tells what was told, or by whom.
        for (name, value) in desk.buckets.values("default") {
            assert!(!value.windows(9).any(|window| window == b"tree nuts"));
            assert!(name.len() < 256, "{name}");
        }
    }
}

#[test]
fn every_route_is_served() {
    for world in WORLDS {
        let mut desk = Desk::new(world);
        assert_eq!(desk.ask("GET /healthz", "", None).0, 200);
        desk.tell("a", "u", "1", NUTS);
        let grant = desk.grant(&all_verbs("a", "u"));
        let (_, profile) = desk.ask("GET /v1/profile", &grant, None);
        assert!(profile["prompt"].as_str().unwrap().contains(NUTS));
        let (_, list) = desk.ask("GET /v1/records", &grant, None);
        let id = list["records"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(
            desk.ask(&format!("GET /v1/records/{id}"), &grant, None).0,
            200
        );
        let export = desk.send(request("GET /v1/export?tenant=a&user=u", &key(), None));
        assert_eq!(export.status, 200);
        assert!(String::from_utf8(export.body).unwrap().contains(NUTS));
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "recall", "arguments": { "query": QUERY } },
        });
        let (_, called) = desk.ask("POST /mcp", &grant, Some(&call));
        let text = called["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(NUTS), "{called}");
        for method in ["GET", "DELETE"] {
            assert_eq!(desk.ask(&format!("{method} /mcp"), &grant, None).0, 405);
        }
        let metrics = desk.send(request("GET /metrics", &key(), None));
        assert_eq!(metrics.status, 200);
        let mut users = Vec::new();
        let mut after = Some(0);
        while let Some(from) = after {
            let line = format!("GET /v1/memories?tenant=a&owner=none&after={from}");
            let (_, report) = desk.ask(&line, &key(), None);
            users.extend(report["memories"].as_array().unwrap().iter().cloned());
            after = report["next"].as_u64();
        }
        assert_eq!(users.len(), 1);
        assert_eq!(users[0]["user"], "u");
        let (_, erased) = desk.ask(&format!("DELETE /v1/records/{id}"), &grant, None);
        assert_eq!(erased["erased"], 1);
        let (status, gone) = desk.ask("DELETE /v1/memory?tenant=a&user=u", &key(), None);
        assert_eq!(status, 200);
        assert!(gone["receipt"]["key"].is_string(), "{gone}");
        assert_eq!(
            desk.ask("GET /v1/export?tenant=a&user=u", &key(), None).0,
            404
        );
        // The directory and the rates are left.
        let values = desk.buckets.values("default");
        assert!(
            values.keys().all(|name| name.starts_with("service/")),
            "{:?}",
            values.keys()
        );
        for (line, status) in [
            ("GET /v1/x", 404),
            ("PUT /v1/turns", 405),
            ("BREW /v1/turns", 405),
        ] {
            let (found, problem) = desk.ask(line, &key(), None);
            assert_eq!(
                (found, &problem["status"]),
                (status, &json!(status)),
                "{line}"
            );
        }
    }
}

#[test]
fn a_body_is_read_no_further_than_it_may_be_long_or_take() {
    for world in WORLDS {
        let mut desk = Desk::new(world);
        let body = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "1", "text": NUTS });
        let bytes = body.to_string().into_bytes();
        let cases: [(&str, Vec<Piece>, u16, &str); 5] = [
            (
                "a hundred megabytes and more",
                vec![Piece::Endless(usize::MAX)],
                413,
                "body-too-large",
            ),
            (
                "in drops without end",
                vec![Piece::Wait(1), Piece::Endless(4096)],
                413,
                "body-too-large",
            ),
            (
                "slowly",
                vec![Piece::Wait(10_001), Piece::Bytes(bytes.clone())],
                408,
                "body-too-slow",
            ),
            (
                "broken off",
                vec![Piece::Bytes(bytes[..20].to_vec()), Piece::Break],
                400,
                "invalid-request",
            ),
            (
                "cut",
                vec![Piece::Bytes(bytes[..20].to_vec())],
                400,
                "invalid-request",
            ),
        ];
        for (name, pieces, status, code) in cases {
            let mut asked = request("POST /v1/turns", &key(), Some(&body));
            asked.body = pieces;
            let mut instance = desk.instance();
            let response = instance.handle(asked).unwrap();
            let problem: Value = serde_json::from_slice(&response.body).unwrap();
            assert_eq!(
                (response.status, &problem["code"]),
                (status, &json!(code)),
                "{name}"
            );
            let kind = (
                "content-type".to_owned(),
                "application/problem+json".to_owned(),
            );
            assert!(response.headers.contains(&kind), "{name}");
            // A megabyte in pieces of at least 4 KiB, and one more.
            assert!(
                instance.body_reads() <= 257,
                "{name}: {}",
                instance.body_reads()
            );
        }
        assert!(desk.buckets.values("default").is_empty());
        // As slow as it may be.
        let mut asked = request("POST /v1/turns", &key(), Some(&body));
        asked.body.insert(0, Piece::Wait(9_000));
        assert_eq!(desk.send(asked).status, 200);
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_said_without_a_value_of_it() {
    for world in WORLDS {
        let mut short = config();
        short["serviceKeys"][0]["secret"] = json!("c2hvcnQtc2VjcmV0");
        for (config, word) in [
            (None, "foremind_config"),
            (Some("{".to_owned()), "malformed"),
            (Some(short.to_string()), "service key"),
        ] {
            let mut desk = Desk::new(world);
            desk.config = config;
            let (status, problem) = desk.ask("GET /healthz", "", None);
            assert_eq!((status, &problem["code"]), (500, &json!("internal")));
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.contains(word) && !detail.contains("c2hv"),
                "{detail}"
            );
        }
    }
}

#[test]
fn a_recall_never_stops_a_turn() {
    for world in WORLDS {
        let mut desk = Desk::new(world);
        desk.tell("a", "u", "1", NUTS);
        desk.tell("a", "u", "2", "Shelf 3 of the pantry holds 21 jars");
        let grant = desk.grant(&json!({ "tenant": "a", "user": "u" }));
        // Each look at the clock takes 101 ms: the third is past the 300 that a recall has.
        desk.step_ms = 101;
        let late = desk.recall(&grant, "pantry jars");
        assert_eq!(late["reason"], "deadline", "{late}");
        assert!(late["prompt"].as_str().unwrap().contains(NUTS), "{late}");
        assert_eq!(late["context"], json!([]));
        desk.step_ms = 0;
        desk.buckets.fail(Some(Fault::Before(0)));
        // The rate's own write is the first to fail, and from then on everything does.
        let failed = desk.recall(&grant, QUERY);
        assert_eq!(
            (&failed["prompt"], &failed["reason"]),
            (&json!(""), &json!("storage-failed"))
        );
    }
}

#[test]
fn rates_hold_across_instances() {
    for world in WORLDS {
        let mut desk = Desk::new(world);
        let mut config = config();
        config["perMinute"] = json!(60);
        config["burst"] = json!(2);
        desk.config = Some(config.to_string());
        let grant = desk.grant(&json!({ "tenant": "a", "user": "u" }));
        for status in [200, 200, 429] {
            let response = desk.send(request("GET /v1/profile", &grant, None));
            assert_eq!(response.status, status);
            let retry = ("retry-after".to_owned(), "1".to_owned());
            assert_eq!(response.headers.contains(&retry), status == 429);
        }
        desk.now_ms += 1_000;
        assert_eq!(desk.ask("GET /v1/profile", &grant, None).0, 200);
    }
}

#[test]
fn a_store_that_goes_away_at_any_write_costs_nothing_that_was_acknowledged() {
    for world in WORLDS {
        let story = |desk: &mut Desk| -> Vec<&str> {
            let mut kept = Vec::new();
            for (turn, text) in [("1", NUTS), ("2", "I'm on warfarin")] {
                let (status, answer) = desk.tell("a", "u", turn, text);
                match status {
                    200 => kept.push(text),
                    503 => assert_eq!(answer["code"], "storage-failed", "{answer}"),
                    _ => panic!("{status}: {answer}"),
                }
            }
            kept
        };
        let mut whole = Desk::new(world);
        whole.buckets.fail(None);
        assert_eq!(story(&mut whole).len(), 2);
        let writes = whole.buckets.writes();
        // The directory, the key, the head; two for each turn.
        assert!(writes >= 6, "{writes}");
        for number in 0..writes {
            for fault in [Fault::Before(number), Fault::After(number)] {
                let mut desk = Desk::new(world);
                desk.buckets.fail(Some(fault));
                let kept = story(&mut desk);
                desk.buckets.fail(None);
                let grant = desk.grant(&json!({ "tenant": "a", "user": "u" }));
                let told = desk.recall(&grant, QUERY);
                for text in kept {
                    let prompt = told["prompt"].as_str().unwrap();
                    assert!(
                        prompt.contains(text),
                        "{world:?} {fault:?}: {text} is lost: {told}"
                    );
                }
                // What was in doubt is told again, and is there once.
                assert_eq!(story(&mut desk).len(), 2, "{world:?} {fault:?}");
                let reader = desk.grant(&all_verbs("a", "u"));
                let (_, list) = desk.ask("GET /v1/records", &reader, None);
                assert_eq!(
                    list["records"].as_array().unwrap().len(),
                    2,
                    "{world:?} {fault:?}"
                );
            }
        }
    }
}

#[test]
fn two_requests_that_write_at_once_lose_nothing() {
    let mut desk = Desk::new(World::Service);
    desk.tell("a", "u", "1", NUTS);
    let buckets = desk.buckets.clone();
    let mut other = Desk::new(World::Service);
    other.buckets = buckets;
    other.seed = 100;
    let mut instance = desk.instance();
    instance.host().before_swap(move || {
        assert_eq!(other.tell("a", "u", "2", "I'm on warfarin").0, 200);
        false
    });
    let body = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "3", "text": "I don't eat pork" });
    let response = instance
        .handle(request("POST /v1/turns", &key(), Some(&body)))
        .unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(desk.buckets.conflicts(), 1);
    let grant = desk.grant(&json!({ "tenant": "a", "user": "u" }));
    let told = desk.recall(&grant, QUERY);
    for text in [NUTS, "warfarin", "pork"] {
        assert!(told["prompt"].as_str().unwrap().contains(text), "{told}");
    }
}

#[test]
fn the_template_names_what_is_built_and_lets_it_call_nobody() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../templates/spin");
    let manifest = std::fs::read_to_string(format!("{folder}/spin.toml")).unwrap();
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let file = |world: World| {
        let path = world.path();
        path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    let spin = file(World::ServiceSpin);
    assert!(manifest.contains(&format!("source = \"{spin}\"")));
    assert!(manifest.contains("allowed_outbound_hosts = []"));
    assert!(manifest.contains("foremind_config = \"{{ foremind_config }}\""));
    assert!(manifest.contains("key_value_stores = [\"default\"]"));
    for world in WORLDS {
        assert!(readme.contains(&file(world)));
    }
}
