//! Whoever has a grant for one memory tries to reach another, by every way in. Each case has the documented answer, shows
//! nothing of anybody else's, and writes nothing.
#![allow(
    clippy::unwrap_used,
    reason = "also in the helpers of tests, which clippy does not know for such"
)]

mod common;

use common::{
    Kit, NOW_MS, claims, hs, json_of, key, request, secret, signed, signed_ed, signed_raw,
};
use foremind_service::{HttpRequest, HttpResponse};
use foremind_types::Name;
use serde_json::{Value, json};

/// Memories whose names are near to those of the attacker, who is user `u` of tenant `a`. Each has a word of its own.
const OTHERS: [(&str, &str, &str); 8] = [
    ("a", "u2", "canaryalpha"),
    ("a", "U", "canarybravo"),
    ("a", "uu", "canarycharlie"),
    ("ab", "u", "canarydelta"),
    ("a.b", "u", "canaryecho"),
    ("A", "u", "canaryfoxtrot"),
    ("au", "u", "canarygolf"),
    ("b", "a", "canaryhotel"),
];
const OWN: &str = "canaryown";

struct Arena {
    kit: Kit,
    cases: usize,
}

impl Arena {
    fn new() -> Self {
        let mut kit = Kit::new();
        for (tenant, user, word) in OTHERS {
            kit.tell(tenant, user, "1", &format!("I am allergic to {word}."));
        }
        kit.tell("a", "u", "1", &format!("I am allergic to {OWN}."));
        Self { kit, cases: 0 }
    }

    /// Sends what is to be refused.
    fn refused(&mut self, name: &str, request: HttpRequest, status: u16, code: &str) {
        let response = self.sent(name, request);
        assert_eq!(response.status, status, "{name}: {}", json_of(&response));
        let problem = json_of(&response);
        assert_eq!(problem["code"], code, "{name}");
        assert_eq!(
            problem["type"],
            format!("urn:foremind:problem:{code}"),
            "{name}"
        );
        assert_eq!(problem["status"], status, "{name}");
        let kind = common::header(&response, "content-type");
        assert_eq!(kind, Some("application/problem+json"), "{name}");
        let text = String::from_utf8(response.body).unwrap();
        assert!(!text.contains(OWN), "{name}: {text}");
    }

    /// Sends a message of MCP that is to be refused with a code of JSON-RPC.
    fn refused_rpc(&mut self, name: &str, request: HttpRequest, code: i32) {
        let response = self.sent(name, request);
        assert_eq!(
            json_of(&response)["error"]["code"],
            code,
            "{name}: {}",
            json_of(&response)
        );
    }

    /// Whatever the answer is: nothing of others in it, and nothing changed.
    fn sent(&mut self, name: &str, request: HttpRequest) -> HttpResponse {
        self.cases += 1;
        let (spaces, values) = (self.kit.world.spaces.clone(), self.kit.world.values.clone());
        let response = self.kit.send(request);
        assert!(
            spaces == self.kit.world.spaces && values == self.kit.world.values,
            "{name}: something was written"
        );
        let told = format!(
            "{:?} {}",
            response.headers,
            String::from_utf8_lossy(&response.body)
        );
        for (tenant, user, word) in OTHERS {
            assert!(!told.contains(word), "{name} shows {tenant}/{user}: {told}");
        }
        response
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn with(mut claims: Value, field: &str, value: Value) -> Value {
    claims[field] = value;
    claims
}

fn without(mut claims: Value, field: &str) -> Value {
    claims.as_object_mut().unwrap().remove(field);
    claims
}

/// Tokens that are no grants, with the code that each is refused with.
fn tokens() -> Vec<(String, String, &'static str)> {
    let good = signed("h1", &hs(21), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let base = |text: &str| {
        use base64ct::{Base64UrlUnpadded, Encoding};
        Base64UrlUnpadded::encode_string(text.as_bytes())
    };
    let text = claims().to_string();
    let now_s = NOW_MS / 1_000;
    let mut all: Vec<(String, String, &'static str)> = Vec::new();
    let mut add = |name: &str, token: String, code| all.push((name.to_owned(), token, code));

    // Forged: the algorithm.
    for alg in [
        "none", "None", "NONE", "nOnE", "", "HS384", "HS512", "RS256", "ES256", "hs256", "HS256 ",
    ] {
        let header = base(&json!({ "alg": alg, "kid": "h1", "typ": "JWT" }).to_string());
        add(
            &format!("alg {alg:?} without signature"),
            format!("{header}.{}.", parts[1]),
            "grant-invalid",
        );
        add(
            &format!("alg {alg:?} with another's signature"),
            format!("{header}.{}.{}", parts[1], parts[2]),
            "grant-invalid",
        );
        let token = signed_raw(
            &json!({ "alg": alg, "kid": "h1" }).to_string(),
            &text,
            &hs(21),
        );
        add(&format!("alg {alg:?} signed"), token, "grant-invalid");
    }
    // The public key of `e1` as a shared secret, and the other way round.
    let public = {
        use jwt_compact::alg::{Ed25519, SigningKey, VerifyingKey};
        type Key = <Ed25519 as jwt_compact::Algorithm>::SigningKey;
        let key = <Key as SigningKey<Ed25519>>::from_slice(&[31; 32]).unwrap();
        let public = SigningKey::<Ed25519>::to_verifying_key(&key);
        VerifyingKey::<Ed25519>::as_bytes(&public).to_vec()
    };
    let confused = jwt_compact::alg::Hs256Key::new(&public);
    add(
        "public key as secret",
        signed("e1", &confused, &claims()),
        "grant-invalid",
    );
    add(
        "public key as secret, claiming EdDSA",
        signed_raw(r#"{"alg":"EdDSA","kid":"e1"}"#, &text, &confused),
        "grant-invalid",
    );
    add(
        "EdDSA under the kid of HS256",
        signed_ed("h1", 31, &claims()),
        "grant-invalid",
    );
    add(
        "EdDSA by another seed",
        signed_ed("e1", 32, &claims()),
        "grant-invalid",
    );
    for tenant in ["a", "ab", "B", "bb"] {
        add(
            &format!("a key of tenant b for {tenant}"),
            signed_ed("partner", 32, &with(claims(), "tenant", json!(tenant))),
            "grant-invalid",
        );
    }
    // Swapped and invented kids.
    for kid in ["h2", "e1", "s1", "h3", "H1", "h1.", "h"] {
        add(
            &format!("kid {kid}"),
            signed(kid, &hs(21), &claims()),
            "grant-invalid",
        );
    }
    for kid in [
        "../h1",
        "h1\u{0}",
        "",
        "h1' OR '1'='1",
        "/dev/null",
        "\u{443}1",
    ] {
        let header = json!({ "alg": "HS256", "kid": kid }).to_string();
        add(
            &format!("kid {kid:?}"),
            signed_raw(&header, &text, &hs(21)),
            "grant-invalid",
        );
    }
    // Headers that bring a key, ask for something, or stand twice.
    for header in [
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"HS256","kid":1}"#,
        r#"{"alg":"HS256","kid":null}"#,
        r#"{"alg":"HS256","kid":["h1"]}"#,
        r#"{"kid":"h1"}"#,
        r#"{"alg":"HS256","kid":"h1","kid":"h1"}"#,
        r#"{"alg":"none","alg":"HS256","kid":"h1"}"#,
        r#"{"alg":"HS256","kid":"h1","crit":["exp"]}"#,
        r#"{"alg":"HS256","kid":"h1","jwk":{"kty":"oct","k":"AAAA"}}"#,
        r#"{"alg":"HS256","kid":"h1","jku":"https://example.com/keys"}"#,
        r#"{"alg":"HS256","kid":"h1","x5u":"https://example.com/c"}"#,
        r#"{"alg":"HS256","kid":"h1","cty":"CBOR"}"#,
        r#"{"alg":"HS256","kid":"h1","b64":false}"#,
        r#"{"alg":"HS256","kid":"h1","typ":"at+jwt"}"#,
        r#"[]"#,
        r#"null"#,
        r#""#,
    ] {
        add(
            &format!("header {header}"),
            signed_raw(header, &text, &hs(21)),
            "grant-invalid",
        );
    }
    // Times.
    for (field, value) in [
        ("exp", json!((now_s + 600).to_string())),
        ("exp", json!((now_s + 600) as f64 + 0.5)),
        ("exp", json!(1e300)),
        ("exp", json!(u64::MAX)),
        ("exp", json!(i64::MAX)),
        ("exp", json!(i64::MIN)),
        ("exp", json!(-1)),
        ("exp", json!(0)),
        ("exp", json!(true)),
        ("exp", Value::Null),
        ("exp", json!([now_s + 600])),
        ("exp", json!({})),
        ("exp", json!(NOW_MS + 600_000)),
        ("exp", json!(now_s + 86_401)),
        ("iat", json!(now_s + 61)),
        ("iat", json!(now_s.to_string())),
        ("iat", json!(i64::MIN)),
        ("iat", json!(i64::MAX)),
        ("iat", json!(now_s - 90_000)),
        ("iat", json!(now_s + 600)),
        ("nbf", json!(now_s - 10)),
    ] {
        let token = signed("h1", &hs(21), &with(claims(), field, value.clone()));
        add(&format!("{field} {value}"), token, "grant-invalid");
    }
    let over = |ago_s: i64| {
        with(
            with(claims(), "iat", json!(now_s - ago_s - 600)),
            "exp",
            json!(now_s - ago_s),
        )
    };
    for ago_s in [0, 1, 600, 1_000_000] {
        add(
            &format!("expired {ago_s} s ago"),
            signed("h1", &hs(21), &over(ago_s)),
            "grant-expired",
        );
        add(
            &format!("expired {ago_s} s ago, EdDSA"),
            signed_ed("e1", 31, &over(ago_s)),
            "grant-expired",
        );
    }
    // Claims.
    for field in ["jti", "aud", "iat", "exp", "tenant", "user", "verbs"] {
        add(
            &format!("without {field}"),
            signed("h1", &hs(21), &without(claims(), field)),
            "grant-invalid",
        );
    }
    for (field, value) in [
        ("aud", json!("other")),
        ("aud", json!(["foremind"])),
        ("tenant", json!("")),
        ("tenant", json!("a/../b")),
        ("tenant", json!("a\u{0}b")),
        ("tenant", json!("\u{430}")),
        ("tenant", json!(["ab"])),
        ("tenant", json!("a".repeat(129))),
        ("user", json!("u2\u{0}")),
        ("user", json!("*")),
        ("user", json!("%75")),
        ("user", json!("u\u{301}")),
        ("user", json!({ "$ne": "" })),
        ("user", json!(1)),
        ("project", json!("..")),
        ("project", json!("")),
        ("verbs", json!("recall")),
        ("verbs", json!(["admin"])),
        ("verbs", json!(["Recall"])),
        ("verbs", json!({ "recall": true })),
        ("admin", json!(true)),
        ("sub", json!("u2")),
        ("scope", json!("*")),
    ] {
        let token = signed("h1", &hs(21), &with(claims(), field, value.clone()));
        add(&format!("claim {field} {value}"), token, "grant-invalid");
    }
    for twice in ["\"user\":\"u2\"", "\"tenant\":\"ab\"", "\"exp\":9999999999"] {
        let claims = text.replacen('{', &format!("{{{twice},"), 1);
        add(
            &format!("{twice} twice"),
            signed_raw(r#"{"alg":"HS256","kid":"h1"}"#, &claims, &hs(21)),
            "grant-invalid",
        );
    }
    // The form of the token.
    let payload_swapped = with(claims(), "user", json!("u2")).to_string();
    add(
        "claims of another",
        format!("{}.{}.{}", parts[0], base(&payload_swapped), parts[2]),
        "grant-invalid",
    );
    add(
        "another's secret",
        signed("h1", &hs(99), &claims()),
        "grant-invalid",
    );
    add(
        "a part too few",
        format!("{}.{}", parts[0], parts[1]),
        "grant-invalid",
    );
    add("a part too many", format!("{good}.x"), "grant-invalid");
    add(
        "no signature",
        format!("{}.{}.", parts[0], parts[1]),
        "grant-invalid",
    );
    add(
        "half a signature",
        format!("{}.{}.{}", parts[0], parts[1], &parts[2][..20]),
        "grant-invalid",
    );
    add("padding", format!("{good}="), "grant-invalid");
    add(
        "standard base64",
        good.replace('_', "/").replace('-', "+") + "+",
        "grant-invalid",
    );
    add(
        "a space inside",
        format!("{} {}", &good[..20], &good[20..]),
        "grant-invalid",
    );
    add(
        "very long",
        format!("{good}{}", "A".repeat(10_000)),
        "grant-invalid",
    );
    add("nothing", String::new(), "unauthenticated");
    add("dots", "..".into(), "grant-invalid");
    add("null", "null".into(), "grant-invalid");
    // Service keys.
    for (name, token) in [
        ("secret of another kid", format!("key.s1.{}", secret(12))),
        ("no such kid", format!("key.s9.{}", secret(11))),
        ("no kid", format!("key..{}", secret(11))),
        ("no secret", "key.s1.".to_owned()),
        ("half a secret", format!("key.s1.{}", &secret(11)[..20])),
        ("secret and more", format!("key.s1.{}AAAA", secret(11))),
        ("kid in capitals", format!("key.S1.{}", secret(11))),
        ("a grant's secret", format!("key.h1.{}", secret(21))),
        ("the master", format!("key.s1.{}", secret(1))),
        ("key alone", "key.".to_owned()),
    ] {
        add(name, token, "unauthenticated");
    }
    all
}

#[test]
fn tokens_that_are_no_grants_open_nothing() {
    let mut arena = Arena::new();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "profile", "arguments": {} } });
    for (name, token, code) in tokens() {
        for (line, body) in [
            ("GET /v1/records?limit=10", None),
            ("POST /mcp", Some(&ping)),
        ] {
            arena.refused(
                &format!("{name}: {line}"),
                request(line, &bearer(&token), body),
                401,
                code,
            );
        }
    }
    assert!(arena.cases >= 200, "{}", arena.cases);
}

#[test]
fn the_tokens_that_the_suite_alters_hold_before() {
    // Otherwise every case above would be refused for a reason of its own.
    let mut arena = Arena::new();
    for token in [
        signed("h1", &hs(21), &claims()),
        signed("h2", &hs(22), &claims()),
        signed_ed("e1", 31, &claims()),
        signed_raw(
            r#"{"alg":"HS256","kid":"h1"}"#,
            &claims().to_string(),
            &hs(21),
        ),
        signed_raw(
            r#"{"typ":"jwt","kid":"h1","alg":"HS256"}"#,
            &claims().to_string(),
            &hs(21),
        ),
        signed(
            "h1",
            &hs(21),
            &with(claims(), "iat", json!(NOW_MS / 1_000 + 60)),
        ),
    ] {
        let response = arena.sent("good", request("GET /v1/records", &bearer(&token), None));
        assert_eq!(response.status, 200);
        assert!(String::from_utf8_lossy(&response.body).contains(OWN));
    }
}

/// The attacker's own grant, which holds.
fn own() -> String {
    bearer(&signed("h1", &hs(21), &claims()))
}

const FOREIGN: [&str; 8] = ["u2", "U", "uu", "ab", "u%32", "..", "*", "u%00"];

#[test]
fn a_grant_names_nobody_else() {
    let mut arena = Arena::new();
    let foreign_id = {
        let (_, list) = arena
            .kit
            .ask("GET /v1/records?tenant=a&user=u2", &key(), None);
        list["records"][0]["id"].as_str().unwrap().to_owned()
    };
    // Parameters of the query.
    for path in [
        "GET /v1/records",
        "DELETE /v1/records",
        &format!("GET /v1/records/{foreign_id}"),
        &format!("DELETE /v1/records/{foreign_id}"),
    ] {
        for field in ["tenant", "user", "project", "thread", "agent"] {
            for value in FOREIGN {
                let line = format!("{path}?{field}={value}");
                let valid = ["u2", "U", "uu", "ab", "u%32"].contains(&value);
                let (status, code) = if valid {
                    (403, "outside-grant")
                } else {
                    (400, "invalid-request")
                };
                arena.refused(&line, request(&line, &own(), None), status, code);
            }
        }
        for query in [
            "user=u&user=u2",
            "tenant=a&tenant=ab",
            "User=u2",
            "user[]=u2",
            "scope=u2",
            "user=u2#",
            "owner=u2",
        ] {
            let line = format!("{path}?{query}");
            let code = (400, "invalid-request");
            arena.refused(&line, request(&line, &own(), None), code.0, code.1);
        }
        // Not even its own.
        for query in ["user=u", "tenant=a", "tenant=a&user=u"] {
            let line = format!("{path}?{query}");
            arena.refused(&line, request(&line, &own(), None), 403, "outside-grant");
        }
    }
    // Somebody else's record by its id.
    for method in ["GET", "DELETE"] {
        let line = format!("{method} /v1/records/{foreign_id}");
        arena.refused(&line, request(&line, &own(), None), 404, "unknown-id");
        let line = format!("{method} /v1/records/{}", foreign_id.to_lowercase());
        arena.refused(&line, request(&line, &own(), None), 404, "unknown-id");
    }
    for line in [
        "GET /v1/profile?user=u2",
        "GET /v1/profile?tenant=ab",
        "GET /v1/profile?user=u",
        "GET /v1/profile?budgetTokens=512&budgetTokens=1",
    ] {
        arena.refused(line, request(line, &own(), None), 400, "invalid-request");
    }
    // Fields of the body.
    for (field, value, status, code) in [
        ("tenant", json!("ab"), 400, "invalid-request"),
        ("tenant", json!("a"), 400, "invalid-request"),
        ("user", json!("u2"), 400, "invalid-request"),
        ("userId", json!("u2"), 400, "invalid-request"),
        ("scope", json!({ "user": "u2" }), 400, "invalid-request"),
        ("__proto__", json!({ "user": "u2" }), 400, "invalid-request"),
        ("project", json!("p"), 403, "outside-grant"),
        ("thread", json!("t"), 403, "outside-grant"),
        ("agent", json!("g"), 403, "outside-grant"),
        ("agent", json!("../g"), 400, "invalid-request"),
        ("project", json!(["p"]), 400, "invalid-request"),
        ("budgetTokens", json!(0), 400, "invalid-request"),
        ("budgetTokens", json!(-1), 400, "invalid-request"),
        ("budgetTokens", json!(1_000_001), 400, "invalid-request"),
        ("budgetTokens", json!("512"), 400, "invalid-request"),
        ("deadlineMs", json!(u64::MAX), 400, "invalid-request"),
        ("mode", json!("everything"), 400, "invalid-request"),
        ("query", json!(["allergic"]), 400, "invalid-request"),
    ] {
        let body = with(json!({ "query": "allergic?" }), field, value);
        arena.refused(
            &body.to_string(),
            request("POST /v1/recall", &own(), Some(&body)),
            status,
            code,
        );
    }
    let line = "POST /v1/recall?user=u2";
    arena.refused(
        line,
        request(line, &own(), Some(&json!({ "query": "allergic?" }))),
        400,
        "invalid-request",
    );
    // What is not for grants.
    let turn =
        json!({ "tenant": "a", "user": "u", "thread": "t", "turn": "9", "text": "I am a pilot." });
    for (line, body) in [
        ("POST /v1/turns", Some(&turn)),
        (
            "POST /v1/grants",
            Some(&json!({ "tenant": "a", "user": "u2" })),
        ),
        (
            "POST /v1/grants",
            Some(&json!({ "tenant": "a", "user": "u" })),
        ),
        ("DELETE /v1/memory?tenant=a&user=u", None),
        ("DELETE /v1/memory?tenant=ab&user=u", None),
        ("GET /v1/export?tenant=a&user=u", None),
        ("GET /v1/export", None),
        ("GET /v1/memories?tenant=a", None),
        ("GET /metrics", None),
    ] {
        arena.refused(line, request(line, &own(), body), 403, "service-key-needed");
    }
    assert!(arena.cases >= 200, "{}", arena.cases);
}

#[test]
fn a_grant_with_fewer_verbs_does_no_more() {
    let mut arena = Arena::new();
    let lines = [
        (
            "recall",
            "POST /v1/recall",
            Some(json!({ "query": "allergic?" })),
        ),
        ("profile", "GET /v1/profile", None),
        ("read", "GET /v1/records", None),
        ("read", "GET /v1/records/01ARYZ6S41TSV4RRFFQ69G5FAV", None),
        ("forget", "DELETE /v1/records", None),
        (
            "forget",
            "DELETE /v1/records/01ARYZ6S41TSV4RRFFQ69G5FAV",
            None,
        ),
    ];
    for verb in ["recall", "profile", "read", "remember", "forget"] {
        let grant = bearer(&signed(
            "h1",
            &hs(21),
            &with(claims(), "verbs", json!([verb])),
        ));
        for (needed, line, body) in &lines {
            if *needed != verb {
                arena.refused(
                    &format!("{verb}: {line}"),
                    request(line, &grant, body.as_ref()),
                    403,
                    "outside-grant",
                );
            }
        }
        for tool in ["remember", "recall", "profile", "forget"] {
            if tool != verb {
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": { "text": "x", "query": "x", "id": "x" } } });
                arena.refused_rpc(
                    &format!("{verb}: {tool}"),
                    request("POST /mcp", &grant, Some(&call)),
                    -32_602,
                );
            }
        }
    }
}

#[test]
fn a_service_key_of_one_tenant_stays_there() {
    let mut arena = Arena::new();
    let only_a = format!("Bearer key.only-a.{}", secret(13));
    for tenant in ["ab", "a.b", "A", "au", "b"] {
        let turn = json!({ "tenant": tenant, "user": "u", "thread": "t", "turn": "9", "text": "I am a pilot." });
        let grant = json!({ "tenant": tenant, "user": "u" });
        for (line, body) in [
            ("POST /v1/turns".to_owned(), Some(&turn)),
            ("POST /v1/grants".to_owned(), Some(&grant)),
            (format!("GET /v1/records?tenant={tenant}&user=u"), None),
            (format!("DELETE /v1/records?tenant={tenant}&user=u"), None),
            (format!("DELETE /v1/memory?tenant={tenant}&user=u"), None),
            (format!("GET /v1/export?tenant={tenant}&user=u"), None),
            (format!("GET /v1/memories?tenant={tenant}"), None),
        ] {
            arena.refused(&line, request(&line, &only_a, body), 403, "outside-grant");
        }
    }
    arena.refused(
        "metrics",
        request("GET /metrics", &only_a, None),
        403,
        "outside-grant",
    );
    // Service keys are no grants.
    let body = json!({ "query": "allergic?" });
    for (line, body) in [
        ("POST /v1/recall", Some(&body)),
        ("GET /v1/profile", None),
        ("POST /mcp", Some(&body)),
    ] {
        arena.refused(line, request(line, &key(), body), 403, "grant-needed");
    }
    for line in [
        "GET /v1/records",
        "GET /v1/records?tenant=a",
        "GET /v1/records?user=u",
        "DELETE /v1/records?user=u2",
    ] {
        arena.refused(line, request(line, &key(), None), 400, "invalid-request");
    }
}

#[test]
fn paths_have_one_spelling() {
    let mut arena = Arena::new();
    for target in [
        "",
        "/",
        "//",
        "/v1",
        "/v1/",
        "/v1/profile/",
        "//v1/profile",
        "/v1//profile",
        "/V1/profile",
        "/v1/Profile",
        "/v1/./profile",
        "/v1/x/../profile",
        "/v1/%70rofile",
        "/v1/profile%00",
        "/v1/profile%2f",
        "/v1%2fprofile",
        "/v1/profile;a=b",
        "/v1/profile#x",
        "v1/profile",
        "http://host/v1/profile",
        "*",
        "/v2/profile",
        "/v1/profile/u2",
        "/v1/records/",
        "/v1/records/a/b",
        "/v1/records/../profile",
        "/mcp/",
        "/metrics/",
        "/\u{ff}",
        "/v1/pr\u{f6}file",
        "/v1/profile\r\nX: y",
        "/.well-known/oauth-protected-resource",
        "/a/u2",
        "/v1/users/u2/records",
        "/v1\\profile",
    ] {
        let line = format!("GET {target}");
        arena.refused(&line, request(&line, &own(), None), 404, "not-found");
    }
    for id in [
        "x",
        "..",
        "%2e%2e",
        "01ARYZ6S41TSV4RRFFQ69G5FA",
        "01ARYZ6S41TSV4RRFFQ69G5FAVV",
        "*",
        "\u{0}",
        "80000000000000000000000000",
        "01ARYZ6S41TSV4RRFFQ69G5FA%56",
        "{id}",
    ] {
        let line = format!("GET /v1/records/{id}");
        arena.refused(&line, request(&line, &own(), None), 404, "unknown-id");
    }
    for line in [
        "GET /v1/turns",
        "PUT /v1/turns",
        "DELETE /v1/turns",
        "GET /v1/recall",
        "POST /v1/profile",
        "HEAD /v1/profile",
        "OPTIONS /v1/recall",
        "PATCH /v1/records/x",
        "POST /v1/records",
        "GET /v1/memory",
        "POST /v1/memory",
        "DELETE /v1/export",
        "TRACE /healthz",
        "CONNECT /healthz",
        "get /healthz",
        "GET /mcp",
        "DELETE /mcp",
        "PUT /mcp",
        "POST /metrics",
        " /healthz",
    ] {
        arena.refused(line, request(line, &own(), None), 405, "method-not-allowed");
    }
}

#[test]
fn headers_are_no_way_around() {
    let mut arena = Arena::new();
    let token = signed("h1", &hs(21), &claims());
    for value in [
        token.clone(),
        format!("Basic {token}"),
        format!("bearer{token}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Basic YTp1".to_owned(),
        format!("Token {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer,{token}"),
    ] {
        arena.refused(
            &value,
            request("GET /v1/profile", &value, None),
            401,
            "unauthenticated",
        );
    }
    for value in [
        format!("Bearer {token},{token}"),
        format!("Bearer {token} {token}"),
        format!("Bearer  {token}"),
        format!("Bearer \"{token}\""),
        format!("Bearer {token}, Bearer {token}"),
    ] {
        arena.refused(
            &value,
            request("GET /v1/profile", &value, None),
            401,
            "grant-invalid",
        );
    }
    // Twice, in any case.
    for name in ["Authorization", "authorization", "AUTHORIZATION"] {
        let mut twice = request("GET /v1/profile", &own(), None);
        twice.headers.push((name.to_owned(), key()));
        arena.refused(name, twice, 400, "invalid-request");
    }
    // Names that other systems believe. The answer is the attacker's own profile.
    for name in [
        "X-User",
        "X-Forwarded-User",
        "X-Tenant",
        "X-Original-URL",
        "X-HTTP-Method-Override",
        "Cookie",
        "Host",
        "X-Foremind-User",
        "Forwarded",
        "X-Rewrite-URL",
        "Proxy-Authorization",
    ] {
        for value in [
            "u2",
            "ab",
            "DELETE",
            "/v1/export?tenant=a&user=u2",
            "Bearer x",
        ] {
            let mut asked = request("GET /v1/profile", &own(), None);
            asked.headers.push((name.to_owned(), value.to_owned()));
            let response = arena.sent(name, asked);
            assert_eq!(response.status, 200, "{name}");
            assert!(json_of(&response)["prompt"].as_str().unwrap().contains(OWN));
        }
    }
    // What a body is.
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Type", "application/json5"),
        ("Content-Type", ""),
        ("Content-Type", "text/json"),
        (
            "Content-Type",
            "multipart/form-data; boundary=application/json",
        ),
    ] {
        let mut asked = request("POST /v1/recall", &own(), None);
        asked.body = br#"{"query":"allergic?"}"#.to_vec();
        asked.headers.push((name.to_owned(), value.to_owned()));
        arena.refused(value, asked, 415, "unsupported-media-type");
    }
    for coding in ["gzip", "br", "deflate"] {
        let mut asked = request(
            "POST /v1/recall",
            &own(),
            Some(&json!({ "query": "allergic?" })),
        );
        asked
            .headers
            .push(("Content-Encoding".to_owned(), coding.to_owned()));
        arena.refused(coding, asked, 415, "unsupported-media-type");
    }
}

#[test]
fn bodies_are_strict() {
    let mut arena = Arena::new();
    let turn = r#"{"tenant":"a","user":"u","thread":"t","turn":"9","text":"I am a pilot."}"#;
    let alter = |from: &str, to: &str| turn.replacen(from, to, 1);
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}",
        "{\"tenant\":",
        "\u{feff}{}",
        "{'tenant':'a'}",
        "// x\n{}",
        "NaN",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for (from, to) in [
        ("\"user\":\"u\"", "\"user\":\"u\",\"user\":\"u2\""),
        ("\"user\":\"u\"", "\"user\":\"u\",\"\\u0075ser\":\"u2\""),
        ("\"tenant\":\"a\"", "\"tenant\":\"a\",\"tenant\":\"ab\""),
        ("\"text\"", "\"role\":\"system\",\"text\""),
        ("\"text\"", "\"extra\":1,\"text\""),
        ("\"text\"", "\"status\":\"maybe\",\"text\""),
        ("\"text\"", "\"mode\":null,\"text\""),
        ("\"text\"", "\"finding\":\"yes\",\"text\""),
        ("\"text\"", "\"owner\":\"a b\",\"text\""),
        ("\"text\"", "\"owner\":\"\",\"text\""),
        ("\"user\":\"u\"", "\"user\":\"\u{443}\""),
        ("\"user\":\"u\"", "\"user\":\"u\\u0000\""),
        ("\"user\":\"u\"", "\"user\":\"u\\ud800\""),
        ("\"user\":\"u\"", "\"user\":\"u/../u2\""),
        ("\"user\":\"u\"", "\"user\":\" u\""),
        ("\"user\":\"u\"", "\"user\":\"u\\n\""),
        ("\"user\":\"u\"", "\"user\":\"\u{202e}u\""),
        ("\"user\":\"u\"", "\"user\":\"\u{ff55}\""),
        ("\"user\":\"u\"", "\"user\":\"u\u{200b}\""),
        ("\"user\":\"u\"", "\"user\":null"),
        ("\"user\":\"u\"", "\"user\":1"),
        ("\"tenant\":\"a\"", "\"tenant\":{\"id\":\"a\"}"),
        ("\"thread\":\"t\"", "\"thread\":\"\""),
        ("\"turn\":\"9\"", "\"turn\":9"),
        ("\"turn\":\"9\",", ""),
        ("}", "} {}"),
        ("}", "}x"),
        ("}", ",}"),
        ("\"a\"", "a"),
    ] {
        let body = alter(from, to);
        assert_ne!(body, turn);
        bodies.push(body.into_bytes());
    }
    bodies.push([turn.as_bytes(), &[0xff]].concat());
    bodies.push(alter("pilot", "\u{1}").into_bytes());
    bodies.push([&b"{\"text\":\""[..], &[0xc3, 0x28], b"\"}"].concat());
    bodies.push(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes());
    bodies.push(
        format!(
            "{{\"extra\":{}1{}}}",
            "{\"a\":".repeat(10_000),
            "}".repeat(10_000)
        )
        .into_bytes(),
    );
    for body in bodies {
        let name = String::from_utf8_lossy(&body[..body.len().min(120)]).into_owned();
        let mut asked = request("POST /v1/turns", &key(), Some(&Value::Null));
        asked.body = body;
        arena.refused(&name, asked, 400, "invalid-request");
    }
    // Too long: a statement, and a body of 100 MB.
    let mut asked = request("POST /v1/turns", &key(), Some(&Value::Null));
    asked.body = alter("I am a pilot.", &"I am a pilot. ".repeat(20_000)).into_bytes();
    arena.refused("280 kB of text", asked, 413, "text-too-large");
    for (line, by) in [
        ("POST /v1/turns", key()),
        ("POST /v1/grants", key()),
        ("POST /v1/recall", own()),
        ("POST /mcp", own()),
    ] {
        let mut asked = request(line, &by, Some(&Value::Null));
        asked.body = vec![b' '; 100_000_000];
        arena.refused(line, asked, 413, "body-too-large");
    }
}

#[test]
fn mcp_is_no_way_around() {
    let mut arena = Arena::new();
    let call = |name: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    // Arguments that name somebody, or are not those of the tool.
    for tool in ["remember", "recall", "profile", "forget"] {
        for field in [
            "tenant", "user", "userId", "scope", "project", "thread", "agent", "_meta", "grant",
        ] {
            for value in ["u2", "ab", "u"] {
                let mut arguments = json!({});
                match tool {
                    "remember" => arguments["text"] = "I am a pilot.".into(),
                    "recall" => arguments["query"] = "allergic?".into(),
                    "forget" => arguments["id"] = "01ARYZ6S41TSV4RRFFQ69G5FAV".into(),
                    _ => {}
                }
                arguments[field] = value.into();
                arena.refused_rpc(
                    &arguments.to_string(),
                    request("POST /mcp", &own(), Some(&call(tool, arguments.clone()))),
                    -32_602,
                );
            }
        }
    }
    for (name, arguments) in [
        ("export", json!({})),
        ("Recall", json!({ "query": "allergic?" })),
        ("recall ", json!({ "query": "allergic?" })),
        ("", json!({})),
        ("recall", json!({})),
        ("recall", json!([])),
        ("recall", json!({ "query": 1 })),
        (
            "recall",
            json!({ "query": "allergic?", "budgetTokens": -5 }),
        ),
        ("forget", json!({ "id": ["x"] })),
        ("remember", json!({ "text": null })),
    ] {
        arena.refused_rpc(
            name,
            request("POST /mcp", &own(), Some(&call(name, arguments))),
            -32_602,
        );
    }
    // Somebody else's record.
    let (_, list) = arena
        .kit
        .ask("GET /v1/records?tenant=ab&user=u", &key(), None);
    let id = list["records"][0]["id"].clone();
    let response = arena.sent(
        "foreign id",
        request(
            "POST /mcp",
            &own(),
            Some(&call("forget", json!({ "id": id }))),
        ),
    );
    assert_eq!(json_of(&response)["result"]["isError"], true);
    assert!(
        json_of(&response)["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("unknown-id")
    );
    // Messages.
    for method in [
        "resources/list",
        "prompts/list",
        "sampling/createMessage",
        "tools/Call",
        "",
        "initialize ",
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        arena.refused_rpc(
            method,
            request("POST /mcp", &own(), Some(&message)),
            -32_601,
        );
    }
    for message in [
        "[]",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"user\":\"u2\"}",
        "{\"jsonrpc\":2,\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    ] {
        let mut asked = request("POST /mcp", &own(), Some(&Value::Null));
        asked.body = message.as_bytes().to_vec();
        arena.refused(message, asked, 400, "invalid-request");
    }
    for raw in [
        r#"{"name":"recall","name":"profile","arguments":{"query":"x"}}"#,
        r#"{"name":"recall","arguments":{"query":"x","query":"y"}}"#,
        r#"{"name":"recall","arguments":{"query":"x"},"user":"u2"}"#,
        r#"{"arguments":{"query":"x"}}"#,
        r#"[]"#,
    ] {
        let mut asked = request("POST /mcp", &own(), Some(&Value::Null));
        asked.body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{raw}}}"#)
            .into_bytes();
        arena.refused_rpc(raw, asked, -32_602);
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for version in ["1.0", "JSON-RPC", ""] {
        let message = with(ping.clone(), "jsonrpc", version.into());
        arena.refused_rpc(
            version,
            request("POST /mcp", &own(), Some(&message)),
            -32_600,
        );
    }
    // Pages of other origins, other revisions, other forms of answer.
    for (name, value, status, code) in [
        ("Origin", "https://evil.example.com", 403, "origin-refused"),
        ("Origin", "null", 403, "origin-refused"),
        ("Origin", "http://app.example.com", 403, "origin-refused"),
        (
            "Origin",
            "https://app.example.com.evil.com",
            403,
            "origin-refused",
        ),
        (
            "Origin",
            "https://app.example.com:8443",
            403,
            "origin-refused",
        ),
        ("Origin", "https://APP.example.com", 403, "origin-refused"),
        ("Origin", "", 403, "origin-refused"),
        ("MCP-Protocol-Version", "2024-11-05", 400, "invalid-request"),
        ("MCP-Protocol-Version", "latest", 400, "invalid-request"),
        ("MCP-Protocol-Version", "", 400, "invalid-request"),
        ("Accept", "text/html", 406, "not-acceptable"),
        ("Accept", "text/event-stream", 406, "not-acceptable"),
    ] {
        let mut asked = request("POST /mcp", &own(), Some(&ping));
        asked.headers.push((name.to_owned(), value.to_owned()));
        arena.refused(&format!("{name}: {value}"), asked, status, code);
    }
    for (name, value) in [
        ("Origin", "https://app.example.com"),
        ("MCP-Protocol-Version", "2025-06-18"),
        ("Accept", "application/json, text/event-stream"),
    ] {
        let mut asked = request("POST /mcp", &own(), Some(&ping));
        asked.headers.push((name.to_owned(), value.to_owned()));
        assert_eq!(arena.sent(name, asked).status, 200, "{name}");
    }
    assert!(arena.cases >= 150, "{}", arena.cases);
}

#[test]
fn ids_that_are_one_text_when_joined_are_two_memories() {
    let mut kit = Kit::new();
    let pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", "d"),
        ("a.b", "c"),
        ("a", "b.c"),
        ("a-b", "c"),
        ("a", "b-c"),
        ("a~b", "c"),
        ("a_b", "c"),
    ];
    for (at, (tenant, user)) in pairs.iter().enumerate() {
        kit.tell(tenant, user, "1", &format!("I am allergic to canary{at}x."));
    }
    assert_eq!(kit.world.spaces.len(), pairs.len());
    for (at, (tenant, user)) in pairs.iter().enumerate() {
        assert!(Name::new(*tenant).is_ok() && Name::new(*user).is_ok());
        let grant = kit.grant(&json!({ "tenant": tenant, "user": user }));
        let (_, answer) = kit.ask(
            "POST /v1/recall",
            &grant,
            Some(&json!({ "query": "what am I allergic to?" })),
        );
        let prompt = answer["prompt"].as_str().unwrap();
        for other in 0..pairs.len() {
            assert_eq!(
                prompt.contains(&format!("canary{other}x")),
                other == at,
                "{tenant}/{user}: {prompt}"
            );
        }
    }
}
