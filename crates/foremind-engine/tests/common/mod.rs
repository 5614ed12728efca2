//! One memory with its driver: the only place where these tests touch the step protocol.
#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]

use foremind_engine::{EMBEDDING_HEAD, Engine, Prompt, Reply, Request, Response, Step};
use foremind_types::{
    Ambient, Change, Embedding, EncodeFailure, Entry, Error, ErrorCode, HeadId, ModelId, Name,
    Record, RecordId, Scope, VECTOR_DIMENSIONS, WriterId,
};

/// 2026-11-29 12:00 UTC.
pub const NOON_MS: i64 = 1_795_953_600_000;
pub const DAY_MS: i64 = 86_400_000;

pub struct Memory {
    pub engine: Engine,
    pub now_ms: i64,
    /// How texts are encoded.
    pub embedder: Result<(), EncodeFailure>,
    /// The embedder's model.
    pub model: &'static str,
    pub entries: Vec<Entry>,
    pub encode_requests: usize,
    pub strict_commits: usize,
    writer: WriterId,
    calls: u64,
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn scope(user: &str) -> Scope {
    Scope::user(name(user))
}

pub fn in_project(user: &str, project: &str) -> Scope {
    Scope {
        project: Some(name(project)),
        ..scope(user)
    }
}

/// A request from its JSON, whose `verb` names it, as a binding makes it.
pub fn request(json: serde_json::Value) -> Request {
    try_request(json).unwrap()
}

/// The same, when it is none.
pub fn try_request(mut json: serde_json::Value) -> Result<Request, serde_json::Error> {
    let verb = json.as_object_mut().unwrap().remove("verb").unwrap();
    serde_json::from_value(serde_json::json!({ verb.as_str().unwrap(): json }))
}

/// Words hashed into buckets: texts that share words are near.
pub fn embedding(text: &str, model: &str) -> Embedding {
    let mut buckets = [0_f32; VECTOR_DIMENSIONS];
    let lower = text.to_lowercase();
    for word in lower
        .split(|c: char| !c.is_alphanumeric())
        // Function words are short; a real embedder makes little of them.
        .filter(|w| w.len() > 3)
    {
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        buckets[(hash % VECTOR_DIMENSIONS as u64) as usize] += 1.0;
    }
    let norm = buckets.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
    let most = buckets.iter().fold(1e-6_f32, |most, x| most.max(*x)) / norm;
    let scale = most / 127.0;
    Embedding {
        model_id: ModelId(model.to_owned()),
        head_id: HeadId(EMBEDDING_HEAD.to_owned()),
        vector: buckets
            .iter()
            .map(|x| (x / norm / scale).round() as i8)
            .collect(),
        scale,
        features: Vec::new(),
    }
}

impl Memory {
    pub fn new() -> Self {
        Self::of_writer(1)
    }

    pub fn of_writer(writer: u64) -> Self {
        Self {
            engine: Engine::new(),
            now_ms: NOON_MS,
            embedder: Ok(()),
            model: "words",
            entries: Vec::new(),
            encode_requests: 0,
            strict_commits: 0,
            writer: WriterId(writer),
            calls: 0,
        }
    }

    pub fn lexical() -> Self {
        Self {
            embedder: Err(EncodeFailure::NotReady),
            ..Self::new()
        }
    }

    pub fn at(&mut self) -> Ambient {
        self.calls += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.calls.to_le_bytes());
        entropy[8..16].copy_from_slice(&self.writer.0.to_le_bytes());
        Ambient {
            now_ms: self.now_ms,
            utc_offset_min: 0,
            entropy,
        }
    }

    pub fn encoded(&self, texts: &[String]) -> Reply {
        Reply::Encoded(self.embedder.map(|()| {
            texts
                .iter()
                .map(|text| vec![embedding(text, self.model)])
                .collect()
        }))
    }

    /// Makes an entry of changes and applies it.
    pub fn commit(&mut self, changes: Vec<Change>) {
        let entry = Entry {
            writer: self.writer,
            counter: self.entries.len() as u64,
            lamport: self.entries.len() as u64 + 1,
            at_ms: self.now_ms,
            changes,
        };
        self.engine.apply(entry.clone());
        self.entries.push(entry);
    }

    pub fn run(&mut self, request: Request) -> Result<Response, Error> {
        let mut op = self.engine.begin(request);
        let mut reply = Reply::Begin;
        loop {
            let at = self.at();
            reply = match self.engine.step(&mut op, reply, &at) {
                Step::Done(result) => return result,
                Step::Encode { texts, heads } => {
                    assert_eq!(heads, [HeadId(EMBEDDING_HEAD.to_owned())]);
                    assert!(
                        !texts.is_empty() && texts.len() <= foremind_types::limits::EMBED_TEXTS
                    );
                    self.encode_requests += 1;
                    self.encoded(&texts)
                }
                Step::Commit { changes, strict } => {
                    assert!(!changes.is_empty());
                    self.strict_commits += usize::from(strict);
                    self.commit(changes);
                    Reply::Committed
                }
            };
        }
    }

    pub fn code(&mut self, request: Request) -> ErrorCode {
        self.run(request).unwrap_err().code
    }

    pub fn remember(&mut self, scope: &Scope, text: &str) -> Record {
        let request =
            request(serde_json::json!({"verb": "remember", "scope": scope, "text": text}));
        match self.run(request).unwrap() {
            Response::Remember { mut records } if records.len() == 1 => records.remove(0).record,
            other => panic!("{other:?}"),
        }
    }

    pub fn recall(&mut self, scope: &Scope, query: &str, budget_tokens: u32) -> Prompt {
        let request = Request::Recall {
            audience: foremind_engine::Audience::Device,
            scope: scope.clone(),
            query: query.to_owned(),
            budget_tokens,
            as_of_ms: None,
            exposure: foremind_engine::Exposure::Full,
            deadline_ms: None,
            explain: false,
        };
        match self.run(request).unwrap() {
            Response::Recall(prompt) => prompt,
            other => panic!("{other:?}"),
        }
    }

    pub fn profile(&mut self, scope: &Scope, budget_tokens: u32) -> Prompt {
        let request = Request::Profile {
            audience: foremind_engine::Audience::Device,
            scope: scope.clone(),
            budget_tokens,
            as_of_ms: None,
        };
        match self.run(request).unwrap() {
            Response::Profile(prompt) => prompt,
            other => panic!("{other:?}"),
        }
    }

    pub fn list(&mut self, scope: &Scope) -> Vec<Record> {
        let list = request(serde_json::json!({"verb": "list", "scope": scope, "limit": 1000}));
        match self.run(list).unwrap() {
            Response::List(listing) => listing.records,
            other => panic!("{other:?}"),
        }
    }

    pub fn get(&mut self, scope: &Scope, id: RecordId) -> Result<Record, Error> {
        let scope = scope.clone();
        match self.run(Request::Get { scope, id })? {
            Response::Get { record } => Ok(record),
            other => panic!("{other:?}"),
        }
    }

    pub fn forget(&mut self, scope: &Scope, target: serde_json::Value) -> Result<u32, Error> {
        let forget = serde_json::json!({"verb": "forget", "scope": scope, "target": target});
        match self.run(request(forget))? {
            Response::Forget { erased, .. } => Ok(erased),
            other => panic!("{other:?}"),
        }
    }
}
