//! What the routes do for callers who may.

mod common;

use common::{Kit, NOW_MS, config, header, json_of, key, request};
use serde_json::{Value, json};

const NUTS: &str = "I am allergic to tree nuts.";

fn everything(tenant: &str, user: &str) -> Value {
    json!({ "tenant": tenant, "user": user, "verbs": ["recall", "profile", "read", "remember", "forget"] })
}

#[test]
fn a_turn_is_told_once_and_recalled_by_its_owner() {
    let mut kit = Kit::new();
    let first = kit.tell("a", "u", "1", NUTS);
    assert_eq!(first["repeated"], false);
    let id = first["records"][0]["id"].clone();
    let again = kit.tell("a", "u", "1", NUTS);
    assert_eq!(again["repeated"], true);
    assert_eq!(again["records"][0]["id"], id);

    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    let (status, answer) = kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "any macaron recipes?" })),
    );
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer["prompt"].as_str().unwrap().contains("tree nuts"),
        "{answer}"
    );
    assert_eq!(answer["profile"][0]["id"], id);
    assert_eq!(answer.get("reason"), None);
    let (status, profile) = kit.ask("GET /v1/profile?budgetTokens=300", &grant, None);
    assert_eq!(status, 200);
    assert_eq!(profile["profile"], answer["profile"]);
    // The default verbs are no more than that.
    assert_eq!(kit.ask("GET /v1/records", &grant, None).0, 403);
}

#[test]
fn turns_that_say_nothing_leave_no_trace() {
    let mut kit = Kit::new();
    for (field, value, why) in [
        ("mode", "off", "mode"),
        ("mode", "incognito", "mode"),
        ("status", "failed", "status"),
        ("text", " \n", "empty"),
    ] {
        let mut body =
            json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "1", "text": NUTS });
        body[field] = value.into();
        let (status, answer) = kit.ask("POST /v1/turns", &key(), Some(&body));
        assert_eq!(
            (status, &answer["ignored"]),
            (200, &json!(why)),
            "{field} {value}"
        );
    }
    let silent = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "1" });
    assert_eq!(
        kit.ask("POST /v1/turns", &key(), Some(&silent)).1["ignored"],
        "empty"
    );
    assert_eq!(kit.world.writes, 0);
    // The model's own turns count only when they are marked.
    let mut body = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "1", "text": NUTS, "role": "assistant" });
    assert_eq!(
        kit.ask("POST /v1/turns", &key(), Some(&body)).1["ignored"],
        "role"
    );
    body["finding"] = true.into();
    let (_, answer) = kit.ask("POST /v1/turns", &key(), Some(&body));
    assert_eq!(answer["records"].as_array().unwrap().len(), 1, "{answer}");
}

#[test]
fn a_memory_that_is_off_shows_nothing() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    let (status, answer) = kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "nuts?", "mode": "off" })),
    );
    assert_eq!(status, 200);
    assert_eq!(
        (&answer["prompt"], &answer["reason"]),
        (&json!(""), &json!("mode"))
    );
    // A private conversation is remembered by nobody, and may be helped all the same.
    let (_, answer) = kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "nuts?", "mode": "incognito" })),
    );
    assert!(answer["prompt"].as_str().unwrap().contains("tree nuts"));
}

#[test]
fn reading_makes_no_memory() {
    let mut kit = Kit::new();
    let grant = kit.grant(&everything("a", "u"));
    let (status, answer) = kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "nuts?" })),
    );
    assert_eq!((status, &answer["prompt"]), (200, &json!("")));
    assert_eq!(answer.get("reason"), None);
    assert_eq!(
        kit.ask("GET /v1/records", &grant, None),
        (200, json!({ "records": [] }))
    );
    assert_eq!(
        kit.ask("DELETE /v1/records", &grant, None),
        (200, json!({ "erased": 0 }))
    );
    let (status, problem) = kit.ask("GET /v1/records/01ARYZ6S41TSV4RRFFQ69G5FAV", &grant, None);
    assert_eq!((status, &problem["code"]), (404, &json!("unknown-id")));
    assert_eq!(
        kit.ask("DELETE /v1/memory?tenant=a&user=u", &key(), None).0,
        204
    );
    assert_eq!(
        kit.ask("GET /v1/export?tenant=a&user=u", &key(), None).0,
        404
    );
    assert_eq!(kit.world.writes, 0);
}

#[test]
fn records_are_listed_shown_and_erased() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    kit.tell("a", "u", "2", "My bicycle is a green Brompton.");
    let grant = kit.grant(&everything("a", "u"));
    let (_, list) = kit.ask("GET /v1/records?limit=1", &grant, None);
    assert_eq!(list["records"].as_array().unwrap().len(), 1);
    let next = list["next"].as_str().unwrap().to_owned();
    let (_, rest) = kit.ask(&format!("GET /v1/records?after={next}"), &grant, None);
    assert_eq!(rest["records"].as_array().unwrap().len(), 1, "{rest}");
    let (status, record) = kit.ask(&format!("GET /v1/records/{next}"), &grant, None);
    assert_eq!((status, &record), (200, &list["records"][0]));
    let (status, first) = kit.ask(&format!("DELETE /v1/records/{next}"), &grant, None);
    assert_eq!((status, &first["erased"]), (200, &json!(1)));
    assert_eq!(first["receipt"]["counts"]["records"], 1);
    assert_eq!(
        kit.ask(&format!("GET /v1/records/{next}"), &grant, None).0,
        404
    );
    // The same by a service key, which names whose.
    let (_, list) = kit.ask("GET /v1/records?tenant=a&user=u", &key(), None);
    assert_eq!(list["records"].as_array().unwrap().len(), 1);
    let (status, second) = kit.ask("DELETE /v1/records?tenant=a&user=u", &key(), None);
    assert_eq!((status, &second["erased"]), (200, &json!(1)));
    assert_eq!(second["receipt"]["previous"], first["receipt"]["mac"]);
}

#[test]
fn a_memory_goes_as_a_whole() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    kit.tell("a", "v", "1", "I am a vegetarian.");
    let export = kit.send(request("GET /v1/export?tenant=a&user=u", &key(), None));
    assert_eq!(export.status, 200);
    assert_eq!(
        header(&export, "content-type"),
        Some("application/x-ndjson")
    );
    let text = String::from_utf8(export.body).unwrap();
    assert!(text.contains("tree nuts") && !text.contains("vegetarian"));

    assert_eq!(kit.world.spaces.len(), 2);
    let (status, gone) = kit.ask("DELETE /v1/memory?tenant=a&user=u", &key(), None);
    assert_eq!(
        (status, &gone["receipt"]["counts"]["records"]),
        (200, &json!(1))
    );
    // Under a key of its own, wrapped as the memory's was.
    assert!(gone["receipt"]["key"].is_string(), "{gone}");
    assert_eq!(
        kit.ask("DELETE /v1/memory?tenant=a&user=u", &key(), None).0,
        204
    );
    assert_eq!(kit.world.spaces.len(), 1);
    let (_, memories) = kit.ask("GET /v1/memories?tenant=a&after=240", &key(), None);
    assert!(!memories.to_string().contains("\"u\""));
    // What is told afterwards begins anew.
    let told = kit.tell("a", "u", "1", "I am deaf in one ear.");
    assert_eq!(told["repeated"], false);
}

#[test]
fn memories_without_an_owner_are_reported() {
    let mut kit = Kit::new();
    for user in ["u1", "u2", "u3"] {
        kit.tell("a", user, "1", NUTS);
    }
    kit.tell("b", "u4", "1", NUTS);
    kit.grant(&json!({ "tenant": "a", "user": "u2", "owner": "team-food@example.com" }));
    let mut all = Vec::new();
    let mut unowned = Vec::new();
    for (list, filter) in [(&mut all, ""), (&mut unowned, "&owner=none")] {
        let mut after = Some(0);
        while let Some(page) = after {
            let (status, answer) = kit.ask(
                &format!("GET /v1/memories?tenant=a&after={page}{filter}"),
                &key(),
                None,
            );
            assert_eq!(status, 200, "{answer}");
            let memories = answer["memories"].as_array().unwrap().clone();
            list.extend(
                memories
                    .iter()
                    .map(|memory| memory["user"].as_str().unwrap().to_owned()),
            );
            after = answer["next"].as_u64();
        }
        list.sort();
    }
    assert_eq!(all, ["u1", "u2", "u3"]);
    assert_eq!(unowned, ["u1", "u3"]);
    // Neither names nor owners lie open in the store.
    for (name, value) in &kit.world.values {
        assert!(!name.contains("u2"));
        assert!(!String::from_utf8_lossy(value).contains("team-food"));
    }
}

#[test]
fn a_memory_enters_the_directory_before_it_is_made() {
    let mut kit = Kit::new();
    kit.world.values.insert("x".into(), vec![]);
    kit.tell("a", "u", "1", NUTS);
    let directory: Vec<_> = kit
        .world
        .values
        .keys()
        .filter(|name| name.starts_with("directory-"))
        .collect();
    assert_eq!(directory.len(), 1);
}

#[test]
fn past_the_deadline_the_profile_alone() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    kit.tell("a", "u", "2", "My bicycle is a green Brompton.");
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    let asked = json!({ "query": "which bicycle do I have?" });
    let (_, whole) = kit.ask("POST /v1/recall", &grant, Some(&asked));
    assert_eq!(whole["context"].as_array().unwrap().len(), 1, "{whole}");
    // Slower and slower: at the end not even the profile is read in time, and is waited for.
    for step_ms in [40, 100, 400] {
        kit.world.step_ms = step_ms;
        let (status, late) = kit.ask(
            "POST /v1/recall",
            &grant,
            Some(&json!({ "query": "which bicycle do I have?", "deadlineMs": 150 })),
        );
        assert_eq!(status, 200);
        assert_eq!(late["reason"], "deadline", "{step_ms} {late}");
        assert_eq!(late["context"], json!([]));
        assert_eq!(late["profile"], whole["profile"]);
    }
    let (status, problem) = kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "x", "deadlineMs": 0 })),
    );
    assert_eq!((status, &problem["code"]), (400, &json!("invalid-request")));
}

#[test]
fn a_store_that_fails_stops_no_turn() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    kit.world.broken = true;
    for line in ["POST /v1/recall", "GET /v1/profile"] {
        let body = line
            .starts_with("POST")
            .then(|| json!({ "query": "nuts?" }));
        let (status, answer) = kit.ask(line, &grant, body.as_ref());
        assert_eq!(status, 200, "{line}");
        assert_eq!(
            (&answer["prompt"], &answer["reason"]),
            (&json!(""), &json!("storage-failed"))
        );
    }
    // A write says so.
    let turn = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "2", "text": NUTS });
    let response = kit.send(request("POST /v1/turns", &key(), Some(&turn)));
    assert_eq!(response.status, 503);
    assert_eq!(
        header(&response, "content-type"),
        Some("application/problem+json")
    );
    assert_eq!(
        json_of(&response)["type"],
        "urn:foremind:problem:storage-failed"
    );
}

#[test]
fn each_grant_has_its_rate() {
    for shared in [false, true] {
        let mut config = config();
        config["burst"] = 3.into();
        config["perMinute"] = 60.into();
        config["sharedRates"] = shared.into();
        let mut kit = Kit::with(&config);
        let (one, other) = (
            kit.grant(&json!({ "tenant": "a", "user": "u" })),
            kit.grant(&json!({ "tenant": "a", "user": "u" })),
        );
        for _ in 0..3 {
            assert_eq!(kit.ask("GET /v1/profile", &one, None).0, 200);
        }
        let response = kit.send(request("GET /v1/profile", &one, None));
        assert_eq!(response.status, 429, "shared: {shared}");
        assert_eq!(header(&response, "retry-after"), Some("1"));
        assert_eq!(json_of(&response)["code"], "rate-limited");
        assert_eq!(kit.ask("GET /v1/profile", &other, None).0, 200);
        kit.world.now_ms += 1_000;
        assert_eq!(kit.ask("GET /v1/profile", &one, None).0, 200);
        assert_eq!(kit.ask("GET /v1/profile", &one, None).0, 429);
    }
}

#[test]
fn rates_outlive_an_instance_where_they_are_shared() {
    let mut config = config();
    config["burst"] = 1.into();
    config["perMinute"] = 1.into();
    config["sharedRates"] = true.into();
    let mut kit = Kit::with(&config);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    assert_eq!(kit.ask("GET /v1/profile", &grant, None).0, 200);
    let mut next = Kit::with(&config);
    next.world = kit.world.clone();
    assert_eq!(next.ask("GET /v1/profile", &grant, None).0, 429);
}

#[test]
fn metrics_count_and_tell_nothing() {
    let mut kit = Kit::new();
    kit.tell("tenant-x", "user-x", "1", NUTS);
    let grant = kit.grant(&json!({ "tenant": "tenant-x", "user": "user-x" }));
    kit.ask(
        "POST /v1/recall",
        &grant,
        Some(&json!({ "query": "macaron" })),
    );
    kit.ask("GET /v1/nothing-x", "", None);
    let response = kit.send(request("GET /metrics", &key(), None));
    assert_eq!(response.status, 200);
    let text = String::from_utf8(response.body).unwrap();
    for line in [
        "foremind_requests_total{route=\"turns\",status=\"200\"} 1",
        "foremind_requests_total{route=\"recall\",status=\"200\"} 1",
        "foremind_requests_total{route=\"none\",status=\"404\"} 1",
        "foremind_problems_total{code=\"not-found\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for told in ["-x", "nuts", "macaron"] {
        assert!(!text.contains(told), "{told}");
    }
    assert_eq!(kit.ask("GET /metrics", &grant, None).0, 403);
    assert_eq!(kit.ask("GET /metrics", "", None).0, 401);
}

#[test]
fn health_is_open_to_all() {
    let mut kit = Kit::new();
    let (status, answer) = kit.ask("GET /healthz", "", None);
    assert_eq!((status, &answer["status"]), (200, &json!("ok")));
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

fn call(name: &str, arguments: &Value) -> Value {
    rpc(
        "tools/call",
        &json!({ "name": name, "arguments": arguments }),
    )
}

#[test]
fn mcp_speaks_json_without_a_session() {
    let mut kit = Kit::new();
    let grant = kit.grant(&everything("a", "u"));
    let initialize = rpc(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }),
    );
    let (status, answer) = kit.ask("POST /mcp", &grant, Some(&initialize));
    assert_eq!((status, &answer["id"]), (200, &json!(7)));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = kit.send(request("POST /mcp", &grant, Some(&initialized)));
    assert_eq!((response.status, response.body.len()), (202, 0));
    assert_eq!(
        kit.ask("POST /mcp", &grant, Some(&rpc("ping", &json!({}))))
            .1["result"],
        json!({})
    );
    let (_, answer) = kit.ask("POST /mcp", &grant, Some(&rpc("tools/list", &json!({}))));
    let tools: Vec<_> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(tools, ["remember", "recall", "profile", "forget"]);
    for line in ["GET /mcp", "DELETE /mcp"] {
        let response = kit.send(request(line, &grant, None));
        assert_eq!(
            (response.status, header(&response, "allow")),
            (405, Some("POST"))
        );
    }
}

#[test]
fn mcp_tools_remember_recall_and_forget() {
    let mut kit = Kit::new();
    let grant = kit.grant(&everything("a", "u"));
    let (_, told) = kit.ask(
        "POST /mcp",
        &grant,
        Some(&call("remember", &json!({ "text": NUTS }))),
    );
    assert_eq!(told["result"]["isError"], false, "{told}");
    let id = told["result"]["structuredContent"]["records"][0]["id"].clone();
    let (_, recalled) = kit.ask(
        "POST /mcp",
        &grant,
        Some(&call("recall", &json!({ "query": "macarons?" }))),
    );
    let text = recalled["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("tree nuts"), "{recalled}");
    let (_, profile) = kit.ask("POST /mcp", &grant, Some(&call("profile", &json!({}))));
    assert_eq!(
        profile["result"]["structuredContent"]["profile"][0]["id"],
        id
    );
    let (_, forgotten) = kit.ask(
        "POST /mcp",
        &grant,
        Some(&call("forget", &json!({ "id": id }))),
    );
    assert_eq!(forgotten["result"]["structuredContent"]["erased"], 1);
    let (status, again) = kit.ask(
        "POST /mcp",
        &grant,
        Some(&call("forget", &json!({ "id": id }))),
    );
    assert_eq!(
        (status, &again["result"]["isError"]),
        (200, &json!(true)),
        "{again}"
    );
    // The memory that the tool made is in the directory as any other.
    let found = kit
        .world
        .values
        .keys()
        .any(|name| name.starts_with("directory-"));
    assert!(found);
}

#[test]
fn mcp_shows_the_tools_of_the_grant_only() {
    let mut kit = Kit::new();
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u", "verbs": ["recall"] }));
    let (_, answer) = kit.ask("POST /mcp", &grant, Some(&rpc("tools/list", &json!({}))));
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1);
    let (status, answer) = kit.ask(
        "POST /mcp",
        &grant,
        Some(&call("remember", &json!({ "text": NUTS }))),
    );
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)));
    assert_eq!(kit.world.writes, 0);
}

#[test]
fn grants_live_as_long_as_was_asked_and_no_longer() {
    let mut kit = Kit::new();
    let (_, answer) = kit.ask(
        "POST /v1/grants",
        &key(),
        Some(&json!({ "tenant": "a", "user": "u" })),
    );
    assert_eq!(answer["expiresMs"], NOW_MS + 900_000);
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u", "lifeS": 86_400 }));
    for life_s in [0, -1, 86_401] {
        let body = json!({ "tenant": "a", "user": "u", "lifeS": life_s });
        assert_eq!(
            kit.ask("POST /v1/grants", &key(), Some(&body)).0,
            400,
            "{life_s}"
        );
    }
    kit.world.now_ms = NOW_MS + 86_399_999;
    assert_eq!(kit.ask("GET /v1/profile", &grant, None).0, 200);
    kit.world.now_ms += 1;
    let (status, problem) = kit.ask("GET /v1/profile", &grant, None);
    assert_eq!((status, &problem["code"]), (401, &json!("grant-expired")));
}

#[test]
fn keys_rotate() {
    let mut kit = Kit::new();
    let old = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    // The new key signs; what the old one signed holds as long as it is there.
    let mut rotated = config();
    rotated["signingKid"] = "e1".into();
    let mut kit = Kit::with(&rotated);
    assert_eq!(kit.ask("GET /v1/profile", &old, None).0, 200);
    let new = kit.grant(&json!({ "tenant": "a", "user": "u" }));
    assert_eq!(kit.ask("GET /v1/profile", &new, None).0, 200);
    rotated["grantKeys"].as_array_mut().unwrap().remove(0);
    rotated["serviceKeys"].as_array_mut().unwrap().remove(0);
    let mut kit = Kit::with(&rotated);
    assert_eq!(
        kit.ask("GET /v1/profile", &old, None).1["code"],
        "grant-invalid"
    );
    assert_eq!(kit.ask("GET /v1/profile", &new, None).0, 200);
    assert_eq!(kit.ask("GET /metrics", &key(), None).0, 401);
    assert_eq!(
        kit.ask(
            "GET /metrics",
            &format!("Bearer key.s2.{}", common::secret(12)),
            None
        )
        .0,
        200
    );
}

#[test]
fn narrowed_grants_see_their_project_and_what_is_the_users_as_a_whole() {
    let mut kit = Kit::new();
    kit.tell("a", "u", "1", NUTS);
    for (turn, project, text) in [
        ("2", "p", "I am pregnant."),
        ("3", "q", "I take warfarin every day."),
    ] {
        let body = json!({ "tenant": "a", "user": "u", "thread": "t", "turn": turn, "project": project, "text": text });
        assert_eq!(kit.ask("POST /v1/turns", &key(), Some(&body)).0, 200);
    }
    let grant = kit.grant(&json!({ "tenant": "a", "user": "u", "project": "p", "verbs": ["recall", "profile", "read", "forget"] }));
    let (_, profile) = kit.ask("GET /v1/profile", &grant, None);
    let prompt = profile["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("nuts") && prompt.contains("pregnant") && !prompt.contains("warfarin"),
        "{prompt}"
    );
    assert_eq!(
        kit.ask("GET /v1/profile?project=p", &grant, None).1,
        profile
    );
    assert_eq!(kit.ask("GET /v1/profile?project=q", &grant, None).0, 403);
    // Erasing reaches what lies inside the grant's scope.
    assert_eq!(kit.ask("DELETE /v1/records", &grant, None).1["erased"], 1);
    let (_, left) = kit.ask("GET /v1/records?tenant=a&user=u", &key(), None);
    assert!(left.to_string().contains("warfarin") && left.to_string().contains("nuts"));
}

#[test]
fn a_key_of_one_tenant_makes_grants_for_it_alone() {
    let mut config = config();
    config["signingKid"] = "partner".into();
    let mut kit = Kit::with(&config);
    let grant = kit.grant(&json!({ "tenant": "b", "user": "u" }));
    assert_eq!(kit.ask("GET /v1/profile", &grant, None).0, 200);
    for tenant in ["a", "bb", "B"] {
        let body = json!({ "tenant": tenant, "user": "u" });
        let (status, problem) = kit.ask("POST /v1/grants", &key(), Some(&body));
        assert_eq!((status, &problem["code"]), (403, &json!("outside-grant")));
    }
}
