//! A host in memory, and short ways to ask it.
#![allow(dead_code, reason = "each suite uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not know for such"
)]

use std::collections::BTreeMap;

use base64ct::{Base64UrlUnpadded, Encoding};
use foremind_memory::{Capabilities, HeadToken, Key, Written};
use foremind_service::{Batch, Config, Host, HttpRequest, HttpResponse, Service, serve};
use foremind_types::{Ambient, Embedding, EncodeFailure, Error, ErrorCode, HeadId};
use jwt_compact::alg::{Ed25519, Hs256, Hs256Key, SigningKey};
use jwt_compact::{Algorithm, AlgorithmExt, Claims, Header};
use serde_json::{Value, json};

/// 30 November 2026.
pub const NOW_MS: i64 = 1_796_000_000_000;

/// A store in memory, and a clock that tests set.
#[derive(Clone, Default)]
pub struct World {
    pub spaces: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    pub values: BTreeMap<String, Vec<u8>>,
    pub now_ms: i64,
    /// What each step costs.
    pub step_ms: i64,
    pub draws: u64,
    /// Every call of the store fails from now on.
    pub broken: bool,
    pub writes: usize,
    /// So many writes go on, and no later one: of this code.
    pub last_write: Option<(usize, ErrorCode)>,
}

impl World {
    fn works(&self) -> Result<(), Error> {
        if self.broken {
            return Err(Error::new(ErrorCode::StorageFailed, "the store is away"));
        }
        Ok(())
    }

    /// A store that is full is still read; one whose connection is lost is not.
    fn writes(&mut self) -> Result<(), Error> {
        self.works()?;
        match self.last_write {
            Some((last, code)) if self.writes >= last => {
                self.broken = code != ErrorCode::QuotaExceeded;
                Err(Error::new(code, "the store takes no more"))
            }
            _ => Ok(()),
        }
    }
}

impl Host for World {
    fn ambient(&mut self) -> Result<Ambient, Error> {
        self.draws += 1;
        self.now_ms += self.step_ms;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.draws.to_le_bytes());
        Ok(Ambient {
            now_ms: self.now_ms,
            utc_offset_min: 0,
            entropy,
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn read(&mut self, space: &str, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.works()?;
        let values = self.spaces.get(space);
        let value = |key: &Key| values.and_then(|values| values.get(key.as_str()).cloned());
        Ok(keys.iter().map(value).collect())
    }

    fn write(&mut self, space: &str, batch: &Batch) -> Result<Written, Error> {
        self.writes()?;
        let values = self.spaces.entry(space.to_owned()).or_default();
        let head = values.get("head").and_then(|head| HeadToken::of(head));
        if head != batch.expected_head {
            return Ok(Written::Conflict);
        }
        for (key, value) in &batch.puts {
            values.insert(key.as_str().to_owned(), value.clone());
        }
        for key in &batch.deletes {
            values.remove(key.as_str());
        }
        self.writes += 1;
        Ok(Written::Committed)
    }

    fn names(&mut self, space: &str) -> Result<Vec<String>, Error> {
        self.works()?;
        let values = self.spaces.get(space);
        Ok(values
            .map(|values| values.keys().cloned().collect())
            .unwrap_or_default())
    }

    fn delete(&mut self, space: &str, names: &[String]) -> Result<(), Error> {
        self.writes()?;
        if let Some(values) = self.spaces.get_mut(space) {
            values.retain(|name, _| !names.contains(name));
        }
        self.spaces.retain(|_, values| !values.is_empty());
        self.writes += 1;
        Ok(())
    }

    fn value(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.works()?;
        Ok(self.values.get(name).cloned())
    }

    fn swap(&mut self, name: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<bool, Error> {
        self.writes()?;
        if self.values.get(name).map(Vec::as_slice) != expected {
            return Ok(false);
        }
        self.values.insert(name.to_owned(), value.to_vec());
        self.writes += 1;
        Ok(true)
    }

    fn encode(&mut self, _: &[String], _: &[HeadId]) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        Err(EncodeFailure::NotReady)
    }
}

/// Base64url of 32 bytes that are all `byte`.
pub fn secret(byte: u8) -> String {
    Base64UrlUnpadded::encode_string(&[byte; 32])
}

/// The Authorization of service key `s1`.
pub fn key() -> String {
    format!("Bearer key.s1.{}", secret(11))
}

pub fn config() -> Value {
    json!({
        "master": secret(1),
        "serviceKeys": [
            { "kid": "s1", "secret": secret(11) },
            { "kid": "s2", "secret": secret(12) },
            { "kid": "only-a", "secret": secret(13), "tenant": "a" },
        ],
        "grantKeys": [
            { "alg": "HS256", "kid": "h1", "secret": secret(21) },
            { "alg": "HS256", "kid": "h2", "secret": secret(22) },
            { "alg": "EdDSA", "kid": "e1", "seed": secret(31) },
            { "alg": "EdDSA", "kid": "partner", "seed": secret(32), "tenant": "b" },
        ],
        "signingKid": "h1",
        "origins": ["https://app.example.com"],
        "perMinute": 6_000_000,
        "burst": 1_000_000,
    })
}

/// A service and its world.
pub struct Kit {
    pub service: Service,
    pub world: World,
}

impl Kit {
    pub fn new() -> Self {
        Self::with(&config())
    }

    pub fn with(config: &Value) -> Self {
        let config = Config::from_json(config.to_string().as_bytes()).unwrap();
        Self {
            service: Service::new(config),
            world: World {
                now_ms: NOW_MS,
                ..World::default()
            },
        }
    }

    pub fn send(&mut self, request: HttpRequest) -> HttpResponse {
        serve(&mut self.service, &mut self.world, request)
    }

    /// Method and target, Authorization, JSON body; status and JSON answer.
    pub fn ask(&mut self, line: &str, authorization: &str, body: Option<&Value>) -> (u16, Value) {
        let response = self.send(request(line, authorization, body));
        (response.status, json_of(&response))
    }

    pub fn grant(&mut self, body: &Value) -> String {
        let (status, answer) = self.ask("POST /v1/grants", &key(), Some(body));
        assert_eq!(status, 201, "{answer}");
        format!("Bearer {}", answer["grant"].as_str().unwrap())
    }

    pub fn tell(&mut self, tenant: &str, user: &str, turn: &str, text: &str) -> Value {
        let body =
            json!({ "tenant": tenant, "user": user, "thread": "t", "turn": turn, "text": text });
        let (status, answer) = self.ask("POST /v1/turns", &key(), Some(&body));
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

pub fn request(line: &str, authorization: &str, body: Option<&Value>) -> HttpRequest {
    let (method, target) = line.split_once(' ').unwrap();
    let mut headers = Vec::new();
    if !authorization.is_empty() {
        headers.push(("Authorization".to_owned(), authorization.to_owned()));
    }
    if body.is_some() {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    HttpRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default(),
    }
}

pub fn json_of(response: &HttpResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

pub fn header<'r>(response: &'r HttpResponse, name: &str) -> Option<&'r str> {
    let found = response.headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// Claims of a grant that holds.
pub fn claims() -> Value {
    json!({
        "jti": "j",
        "aud": "foremind",
        "iat": NOW_MS / 1_000,
        "exp": NOW_MS / 1_000 + 600,
        "tenant": "a",
        "user": "u",
        "verbs": ["recall", "profile", "read", "remember", "forget"],
    })
}

/// The key that grants of `h1` are signed with.
pub fn hs(byte: u8) -> Hs256Key {
    Hs256Key::new([byte; 32])
}

/// Signs any claims, as a maker of tokens would that has the key.
pub fn signed(kid: &str, key: &Hs256Key, claims: &Value) -> String {
    let header = Header::empty().with_key_id(kid).with_token_type("JWT");
    Hs256
        .token(&header, &Claims::new(claims.clone()), key)
        .unwrap()
}

pub fn signed_ed(kid: &str, seed: u8, claims: &Value) -> String {
    type Key = <Ed25519 as Algorithm>::SigningKey;
    let key = <Key as SigningKey<Ed25519>>::from_slice(&[seed; 32]).unwrap();
    let header = Header::empty().with_key_id(kid).with_token_type("JWT");
    Ed25519
        .token(&header, &Claims::new(claims.clone()), &key)
        .unwrap()
}

/// Signs raw JSON with HS256, so that it may hold what no serialiser writes.
pub fn signed_raw(header: &str, claims: &str, key: &Hs256Key) -> String {
    let part = |text: &str| Base64UrlUnpadded::encode_string(text.as_bytes());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = Hs256.sign(key, message.as_bytes());
    use jwt_compact::AlgorithmSignature;
    let signature = Base64UrlUnpadded::encode_string(&AlgorithmSignature::as_bytes(&signature));
    format!("{message}.{signature}")
}
