//! Stores that are full, lose their connection, or answer slowly, and clocks that jump: the documented problem, and nothing
//! stored in part.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not know for such"
)]

mod common;

use common::{Kit, NOW_MS, header, json_of, key, request};
use foremind_types::ErrorCode;
use serde_json::{Value, json};

const TURN: &str = "I am allergic to tree nuts. My kitchen has a marble counter.";

fn turn(number: &str) -> Value {
    json!({ "tenant": "a", "user": "u", "thread": "t", "turn": number, "text": TURN, "owner": "team" })
}

fn told(kit: &mut Kit) -> Vec<String> {
    let verbs = json!({ "tenant": "a", "user": "u", "verbs": ["read"] });
    let grant = kit.grant(&verbs);
    let (status, list) = kit.ask("GET /v1/records", &grant, None);
    assert_eq!(status, 200, "{list}");
    let records = list["records"].as_array().unwrap();
    let texts = records.iter().map(|record| record["text"].to_string());
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

#[test]
fn a_store_that_takes_no_more_stores_a_turn_as_a_whole_or_not_at_all() {
    let mut whole = Kit::new();
    let (status, _) = whole.ask("POST /v1/turns", &key(), Some(&turn("1")));
    assert_eq!(status, 200);
    let expected = told(&mut whole);
    assert_eq!(expected.len(), 2);
    // The directory, the making of the memory, the turn.
    assert!(whole.world.writes >= 3, "{}", whole.world.writes);
    for (code, status, name) in [
        (ErrorCode::QuotaExceeded, 507, "quota-exceeded"),
        (ErrorCode::StorageFailed, 503, "storage-failed"),
        (ErrorCode::StorageLost, 503, "storage-lost"),
        (ErrorCode::StorageDenied, 503, "storage-denied"),
    ] {
        for last in 0..whole.world.writes {
            let mut kit = Kit::new();
            kit.world.last_write = Some((last, code));
            let response = kit.send(request("POST /v1/turns", &key(), Some(&turn("1"))));
            let problem = json_of(&response);
            assert_eq!(response.status, status, "{last} {problem}");
            assert_eq!(
                header(&response, "content-type"),
                Some("application/problem+json")
            );
            assert_eq!(problem["code"], name);
            assert!(!problem.to_string().contains("nuts"));
            kit.world.last_write = None;
            kit.world.broken = false;
            assert_eq!(told(&mut kit), Vec::<String>::new(), "{last} {name}");
            // Sent again, it is there once, and so is the memory in the directory.
            let (status, answer) = kit.ask("POST /v1/turns", &key(), Some(&turn("1")));
            assert_eq!((status, &answer["repeated"]), (200, &json!(false)));
            assert_eq!(told(&mut kit), expected);
            let mut users = 0;
            for after in (0..256).step_by(16) {
                let line = format!("GET /v1/memories?tenant=a&after={after}");
                let (_, report) = kit.ask(&line, &key(), None);
                users += report["memories"].as_array().unwrap().len();
            }
            assert_eq!(users, 1, "{last} {name}");
        }
    }
}

#[test]
fn an_acknowledged_turn_outlives_a_store_that_is_full() {
    let mut kit = Kit::new();
    kit.ask("POST /v1/turns", &key(), Some(&turn("1")));
    let before = told(&mut kit);
    kit.world.last_write = Some((kit.world.writes, ErrorCode::QuotaExceeded));
    let mut more = turn("2");
    more["text"] = json!("I am on warfarin.");
    let (status, problem) = kit.ask("POST /v1/turns", &key(), Some(&more));
    assert_eq!((status, &problem["code"]), (507, &json!("quota-exceeded")));
    // It is read as before, and a turn goes on.
    assert_eq!(told(&mut kit), before);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    let asked = json!({ "query": "any macaron recipes?" });
    let (status, answer) = kit.ask("POST /v1/recall", &grant, Some(&asked));
    assert_eq!((status, answer.get("reason")), (200, None), "{answer}");
    assert!(answer["prompt"].as_str().unwrap().contains("tree nuts"));
}

#[test]
fn a_profile_is_shown_as_the_open_memory_shows_it() {
    let mut kit = Kit::new();
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    assert_eq!(kit.ask("GET /v1/profile", &grant, None).1["prompt"], "");
    kit.ask("POST /v1/turns", &key(), Some(&turn("1")));
    let (_, profile) = kit.ask("GET /v1/profile", &grant, None);
    let asked = json!({ "query": "tell me a joke" });
    let (_, recalled) = kit.ask("POST /v1/recall", &grant, Some(&asked));
    assert_eq!(profile["prompt"], recalled["prompt"]);
    assert_eq!(profile["profile"], recalled["profile"]);
    // How old a replica may be is of no concern where the memory itself is at hand.
    let (_, same) = kit.ask("GET /v1/profile?maxAgeMs=60000", &grant, None);
    assert_eq!(same, profile);
    for bad in ["maxAgeMs=-1", "maxAgeMs=x", "maxAgeMs=1&maxAgeMs=2"] {
        let (status, _) = kit.ask(&format!("GET /v1/profile?{bad}"), &grant, None);
        assert_eq!(status, 400, "{bad}");
    }
}

#[test]
fn clocks_that_jump_lose_nothing_and_open_nothing() {
    let mut kit = Kit::new();
    kit.ask("POST /v1/turns", &key(), Some(&turn("1")));
    let mut expected = told(&mut kit);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    // An instance whose clock is behind: a minute is forgiven, an hour is not.
    for (behind_ms, status) in [(59_000, 200), (3_600_000, 401)] {
        kit.world.now_ms = NOW_MS - behind_ms;
        let (found, problem) = kit.ask("GET /v1/profile", &grant, None);
        assert_eq!(found, status, "{problem}");
        assert_eq!(told(&mut kit), expected);
        let mut more = turn("2");
        more["turn"] = json!(format!("behind-{behind_ms}"));
        more["text"] = json!(format!("My locker {behind_ms} holds paint."));
        let (status, answer) = kit.ask("POST /v1/turns", &key(), Some(&more));
        assert_eq!(status, 200, "{answer}");
        expected.insert(0, more["text"].to_string());
        expected.sort();
    }
    // One that is ahead finds the grant expired.
    kit.world.now_ms = NOW_MS + 3_600_000;
    let (status, problem) = kit.ask("GET /v1/profile", &grant, None);
    assert_eq!((status, &problem["code"]), (401, &json!("grant-expired")));
    for extreme in [i64::MIN, -1, 0, i64::MAX] {
        kit.world.now_ms = extreme;
        let (status, _) = kit.ask("GET /v1/profile", &grant, None);
        assert_eq!(status, 401, "{extreme}");
        assert_eq!(kit.ask("GET /healthz", "", None).0, 200);
    }
}
