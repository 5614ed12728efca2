//! Measures the components in this host, compiled for speed: `cargo xtask bench hosts`. The last line is one JSON object.
//!
//! The store is in memory on both sides, so that what is compared is the engine and its border. Rounds are interleaved.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints figures, or cannot go on"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use base64ct::{Base64UrlUnpadded, Encoding};
use foremind_component_tests::{
    Buckets, Instance, OpenOptions, Piece, Request, Scope, ServiceInstance, World, component,
};
use foremind_memory::{Audience, Exposure, Memory, Request as Verb, Response};
use foremind_testkit::{Encoder, MemoryStore, NoEncoder, SeededAmbient, WordEncoder, drive, open};
use foremind_types::{Name, Role};
use serde_json::{Value, json};

const KEY: [u8; 32] = [7; 32];
const ROUNDS: usize = 30;
const QUERY: &str = "Who repaired the telescope near the harbour?";

fn statement(index: usize) -> String {
    let people = [
        "My sister",
        "A colleague",
        "The neighbour",
        "My cousin",
        "An old friend",
    ];
    let verbs = [
        "recommended",
        "sold",
        "repaired",
        "lost",
        "photographed",
        "painted",
        "borrowed",
    ];
    let things = [
        "a cello",
        "the garden bench",
        "a sailing boat",
        "the telescope",
        "a train ticket",
    ];
    let places = [
        "in Porto",
        "near the harbour",
        "at the market",
        "on the night train",
    ];
    format!(
        "{} {} {} {}, note {index}.",
        people[index % people.len()],
        verbs[index / 5 % verbs.len()],
        things[index * 3 % things.len()],
        places[index * 3 % places.len()],
    )
}

fn scope() -> foremind_types::Scope {
    foremind_types::Scope::user(Name::new("ada").unwrap())
}

fn remember(text: String) -> Verb {
    Verb::Remember {
        scope: scope(),
        text,
        role: Role::User,
        thread: None,
        turn: None,
        tier: None,
    }
}

/// A native memory with so many records.
fn native(records: usize, encoder: &mut dyn Encoder) -> (Memory, MemoryStore, SeededAmbient) {
    let mut store = MemoryStore::without_atomic_batches();
    let mut ambient = SeededAmbient::new(1);
    let mut memory = open(KEY, &mut store, &mut ambient).unwrap();
    for index in 0..records {
        let verb = remember(statement(index));
        drive(&mut memory, verb, &mut store, encoder, &mut ambient).unwrap();
    }
    (memory, store, ambient)
}

fn buckets_of(store: &MemoryStore) -> Buckets {
    let values = store.values().iter();
    let values = values.map(|(key, value)| (key.to_string(), value.clone()));
    Buckets::with("ada", values.collect::<BTreeMap<_, _>>())
}

fn options() -> OpenOptions {
    OpenOptions {
        key: KEY.to_vec(),
        model: None,
        utc_offset_min: 0,
        policy: None,
    }
}

fn ada() -> Scope {
    Scope {
        user: "ada".to_owned(),
        project: None,
        thread: None,
        agent: None,
    }
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() - 1) as f64 * share;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    let value = low + (high - low) * at.fract();
    (value * 1_000.0).round() / 1_000.0
}

fn ms(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1_000.0
}

/// Twenty recalls and two writes a round, on both sides.
fn throughput(records: usize) -> Value {
    let (mut memory, mut store, mut ambient) = native(records, &mut NoEncoder);
    let buckets = buckets_of(&store);
    let mut instance = Instance::new(&buckets, 2).unwrap();
    let opened = instance.open("ada", &options()).unwrap().unwrap();
    let (mut ours, mut natives, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = records;
    for round in 0..ROUNDS + 2 {
        let texts: Vec<String> = (0..2).map(|more| statement(next + more)).collect();
        next += texts.len();
        let in_host = ms(|| {
            for _ in 0..20 {
                let prompt = instance.recall(opened, &ada(), QUERY, None);
                assert!(!prompt.unwrap().unwrap().context.is_empty());
            }
            for text in &texts {
                instance.remember(opened, &ada(), text).unwrap().unwrap();
            }
        });
        let here = ms(|| {
            let mut asked = |verb| {
                let done = drive(&mut memory, verb, &mut store, &mut NoEncoder, &mut ambient);
                done.unwrap()
            };
            for _ in 0..20 {
                let Response::Recall(prompt) = asked(Verb::Recall {
                    scope: scope(),
                    query: QUERY.to_owned(),
                    budget_tokens: 512,
                    as_of_ms: None,
                    exposure: Exposure::Full,
                    audience: Audience::Device,
                    deadline_ms: None,
                    explain: false,
                }) else {
                    panic!("not what was asked");
                };
                assert!(!prompt.context.is_empty());
            }
            for text in texts {
                asked(remember(text));
            }
        });
        // The first rounds touch pages.
        if round >= 2 {
            ours.push(in_host);
            natives.push(here);
            ratios.push(here / in_host);
        }
    }
    json!({
        "records": records,
        "round_ms": percentile(&mut ours, 0.5),
        "native_round_ms": percentile(&mut natives, 0.5),
        "ratio": percentile(&mut ratios, 0.5),
        "ratio_90": [percentile(&mut ratios, 0.05), percentile(&mut ratios, 0.95)],
    })
}

fn secret(byte: u8) -> String {
    Base64UrlUnpadded::encode_string(&[byte; 32])
}

fn post(target: &str, authorization: &str, body: &Value) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Request {
        method: "POST".to_owned(),
        target: target.to_owned(),
        headers: vec![
            header("authorization", authorization),
            header("content-type", "application/json"),
        ],
        body: vec![Piece::Bytes(body.to_string().into_bytes())],
    }
}

/// A fresh instance for each request, as Spin makes them: instance, opening, recall.
fn fresh(world: World, records: usize) -> Value {
    let config = json!({
        "master": secret(1),
        "serviceKeys": [{ "kid": "s1", "secret": secret(11) }],
        "grantKeys": [{ "alg": "HS256", "kid": "h1", "secret": secret(21) }],
        "signingKid": "h1",
        "burst": 100_000,
    })
    .to_string();
    let buckets = Buckets::default();
    let ask = |seed: usize, request: Request| {
        let mut instance =
            ServiceInstance::new(world, &buckets, seed as u64, Some(&config)).unwrap();
        instance.host().set_clock(1_796_000_000_000, 0);
        let response = instance.handle(request).unwrap();
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert!(response.status < 300, "{answer}");
        answer
    };
    let key = format!("Bearer key.s1.{}", secret(11));
    let turns = records / 20;
    let mut stored = 0;
    for turn in 0..turns {
        let text: Vec<String> = (0..20).map(|one| statement(turn * 20 + one)).collect();
        let body = json!({
            "tenant": "a", "user": "ada", "thread": "t", "turn": format!("{turn}"), "text": text.join(" "),
        });
        let told = ask(turn, post("/v1/turns", &key, &body));
        stored += told["records"].as_array().unwrap().len();
    }
    let grant = ask(
        turns,
        post("/v1/grants", &key, &json!({ "tenant": "a", "user": "ada" })),
    );
    let grant = format!("Bearer {}", grant["grant"].as_str().unwrap());
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            ms(|| {
                let asked = post("/v1/recall", &grant, &json!({ "query": QUERY }));
                let answer = ask(turns + 1 + round, asked);
                assert!(
                    !answer["context"].as_array().unwrap().is_empty(),
                    "{answer}"
                );
                assert_eq!(answer["reason"], Value::Null);
            })
        })
        .collect();
    json!({
        "records": stored,
        "p50_ms": percentile(&mut times, 0.5),
        "p99_ms": percentile(&mut times, 0.99),
    })
}

/// Linear memory of one instance with the model inside and so many records, which have made-up vectors, after a recall that
/// encoded its query.
fn instance_memory(records: usize) -> Value {
    let (_, store, _) = native(records, &mut WordEncoder);
    let buckets = buckets_of(&store);
    let mut instance = Instance::of(World::Model, &buckets, 3).unwrap();
    let opened = instance.open("ada", &options()).unwrap().unwrap();
    let prompt = instance
        .recall(opened, &ada(), QUERY, None)
        .unwrap()
        .unwrap();
    assert!(!prompt.context.is_empty());
    json!({ "records": records, "bytes": instance.host().memory_bytes() })
}

fn main() {
    // Before the first component is compiled.
    foremind_component_tests::for_speed();
    for world in [
        World::Draft2,
        World::Service,
        World::ServiceSpin,
        World::Model,
    ] {
        eprintln!("compiling {world:?}");
        component(world).unwrap();
    }
    let figures = json!({
        "throughput": throughput(1_000),
        "spin_fresh": fresh(World::ServiceSpin, 1_000),
        "service_fresh": fresh(World::Service, 1_000),
        "instance_memory": instance_memory(10_000),
    });
    println!("{figures}");
}
