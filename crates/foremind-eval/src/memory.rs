//! One memory with its driver: no store, a clock of its own.

use foremind_engine::{
    Audience, Engine, Exposure, ForgetTarget, IngestMode, Prompt, Reply, Request, Response, Step,
    TurnStatus,
};
use foremind_types::{
    Ambient, Change, Entry, Error, ErrorCode, Name, Record, RecordId, Role, Scope, WriterId,
};

use crate::input::Problem;
use crate::stages::Stages;
use crate::tasks::Turn;

/// 2026-11-02 09:00 UTC: the first session.
const FIRST_SESSION_MS: i64 = 1_793_610_000_000;
/// The benchmark's sessions have no times. An hour between them lets facts of the moment live on for some.
const SESSION_GAP_MS: i64 = 3_600_000;
const TURN_GAP_MS: i64 = 60_000;

/// An engine and the entries that made it.
pub(crate) struct Memory<'s> {
    engine: Engine,
    stages: &'s Stages,
    pub(crate) entries: Vec<Entry>,
    pub(crate) now_ms: i64,
    scope: Scope,
    writer: WriterId,
    calls: u64,
    /// Who the prompts are for.
    pub(crate) audience: Audience,
}

impl<'s> Memory<'s> {
    /// An empty one. Writers of entries that are put together must differ.
    ///
    /// # Errors
    /// [`Problem::Input`] for a head without calibration.
    pub(crate) fn new(writer: u64, stages: &'s Stages) -> Result<Self, Problem> {
        let user = Name::new("owner").map_err(refused)?;
        Ok(Self {
            engine: stages.engine()?,
            stages,
            entries: Vec::new(),
            now_ms: FIRST_SESSION_MS,
            scope: Scope::user(user),
            writer: WriterId(writer),
            calls: 0,
            audience: audience(),
        })
    }

    /// Takes entries of another memory.
    pub(crate) fn replay(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.engine.apply(entry.clone());
            self.now_ms = self.now_ms.max(entry.at_ms);
        }
        self.entries.extend_from_slice(entries);
    }

    /// Moves the clock to a session.
    pub(crate) fn session(&mut self, index: i64) {
        self.now_ms = self.now_ms.max(FIRST_SESSION_MS + index * SESSION_GAP_MS);
    }

    /// Ingests a user's turn; the records that it made or told again.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn ingest(&mut self, turn: &Turn) -> Result<Vec<Record>, Error> {
        self.now_ms += TURN_GAP_MS;
        self.ingest_in(&format!("session-{}", turn.session), &turn.id, &turn.text)
    }

    /// Ingests a user's turn of a thread at the time that it is.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn ingest_in(
        &mut self,
        thread: &str,
        turn: &str,
        text: &str,
    ) -> Result<Vec<Record>, Error> {
        let request = Request::Ingest {
            scope: self.scope.clone(),
            thread: Name::new(thread).map_err(refused)?,
            turn: Name::new(turn).map_err(refused)?,
            role: Role::User,
            text: text.to_owned(),
            status: TurnStatus::Ok,
            mode: IngestMode::On,
            finding: false,
        };
        match self.run(request)? {
            Response::Ingest { records, .. } => Ok(records.into_iter().map(|n| n.record).collect()),
            _ => Err(mismatch()),
        }
    }

    /// Stores a text as one record, said in a turn of a thread; the records that hold it.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn remember(
        &mut self,
        thread: &str,
        turn: &str,
        text: &str,
    ) -> Result<Vec<RecordId>, Error> {
        let request = Request::Remember {
            scope: self.scope.clone(),
            text: text.to_owned(),
            role: Role::User,
            thread: Some(Name::new(thread).map_err(refused)?),
            turn: Some(Name::new(turn).map_err(refused)?),
            tier: None,
        };
        match self.run(request)? {
            Response::Remember { records } => Ok(records.iter().map(|n| n.record.id).collect()),
            _ => Err(mismatch()),
        }
    }

    /// Forgets a record for good.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn forget(&mut self, id: RecordId) -> Result<(), Error> {
        let (scope, target) = (self.scope.clone(), ForgetTarget::Id(id));
        match self.run(Request::Forget {
            scope,
            target,
            preview: None,
        })? {
            Response::Forget { .. } => Ok(()),
            _ => Err(mismatch()),
        }
    }

    /// A record as it is now; `None` once it is forgotten.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn get(&mut self, id: RecordId) -> Result<Option<Record>, Error> {
        let scope = self.scope.clone();
        match self.run(Request::Get { scope, id }) {
            Ok(Response::Get { record }) => Ok(Some(record)),
            Err(error) if error.code == ErrorCode::UnknownId => Ok(None),
            Err(error) => Err(error),
            Ok(_) => Err(mismatch()),
        }
    }

    /// The prompt for a query.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn recall(
        &mut self,
        query: &str,
        budget_tokens: u32,
        exposure: Exposure,
    ) -> Result<Prompt, Error> {
        self.recall_as_of(query, budget_tokens, exposure, None)
    }

    /// The prompt for a query as it would have been at a time of the past.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn recall_as_of(
        &mut self,
        query: &str,
        budget_tokens: u32,
        exposure: Exposure,
        as_of_ms: Option<i64>,
    ) -> Result<Prompt, Error> {
        let (scope, query) = (self.scope.clone(), query.to_owned());
        match self.run(Request::Recall {
            scope,
            query,
            budget_tokens,
            as_of_ms,
            exposure,
            audience: self.audience,
            deadline_ms: None,
            explain: true,
        })? {
            Response::Recall(prompt) => Ok(prompt),
            _ => Err(mismatch()),
        }
    }

    /// The visible profile.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn profile(&mut self, budget_tokens: u32) -> Result<Prompt, Error> {
        let scope = self.scope.clone();
        match self.run(Request::Profile {
            scope,
            budget_tokens,
            as_of_ms: None,
            audience: self.audience,
        })? {
            Response::Profile(prompt) => Ok(prompt),
            _ => Err(mismatch()),
        }
    }

    fn run(&mut self, request: Request) -> Result<Response, Error> {
        let mut op = self.engine.begin(request);
        let mut reply = Reply::Begin;
        loop {
            self.calls += 1;
            let mut entropy = [0; 32];
            entropy[..8].copy_from_slice(&self.calls.to_le_bytes());
            entropy[8..16].copy_from_slice(&self.writer.0.to_le_bytes());
            let at = Ambient {
                now_ms: self.now_ms,
                utc_offset_min: 0,
                entropy,
            };
            reply = match self.engine.step(&mut op, reply, &at) {
                Step::Done(result) => return result,
                Step::Encode { texts, heads } => Reply::Encoded(self.stages.encode(&texts, &heads)),
                Step::Commit { changes, .. } => {
                    self.commit(changes);
                    Reply::Committed
                }
            };
        }
    }

    fn commit(&mut self, changes: Vec<Change>) {
        let own = self.entries.iter().filter(|e| e.writer == self.writer);
        let entry = Entry {
            writer: self.writer,
            counter: own.count() as u64,
            lamport: self.entries.len() as u64 + 1,
            at_ms: self.now_ms,
            changes,
        };
        self.engine.apply(entry.clone());
        self.entries.push(entry);
    }
}

fn refused(error: foremind_types::IdError) -> Error {
    Error::new(ErrorCode::InvalidArgument, format!("id: {error}"))
}

fn mismatch() -> Error {
    Error::new(ErrorCode::Internal, "the response is of another verb")
}

/// Who the prompts are for: `FOREMIND_AUDIENCE=device`, or a model elsewhere.
fn audience() -> Audience {
    match std::env::var("FOREMIND_AUDIENCE") {
        Ok(word) if word == "device" => Audience::Device,
        _ => Audience::Remote,
    }
}
