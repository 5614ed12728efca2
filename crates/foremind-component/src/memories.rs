//! The exported interface.

use std::cell::RefCell;
use std::str::FromStr;

use foremind_engine::{Audience, Exposure, ForgetTarget, Prompt};
use foremind_memory::{
    DataKey, KeySource, Memory, OpenOptions, OpenReply, OpenStep, Opening, Reply, Request,
    Response, Step, Written,
};
use foremind_types::{Ambient, Error, ErrorCode, Name, RecordId, Role, Scope};
use zeroize::Zeroizing;

use crate::bindings::exports::foremind::memory::memories::{
    self, Guest, GuestMemory, Memory as MemoryHandle,
};
use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random::get_random_bytes;
use crate::errors::case;
use crate::model::Model;
use crate::values::Values;

/// Tokens of a prompt when the caller names no budget.
const BUDGET_TOKENS: u32 = 512;

/// The component.
pub(crate) struct Component;

impl Guest for Component {
    type Memory = Open;
}

/// An open memory and its bucket.
pub(crate) struct Open {
    memory: RefCell<Memory>,
    values: Values,
    model: Model,
    clock: Clock,
}

impl GuestMemory for Open {
    fn open(
        bucket: String,
        options: memories::OpenOptions,
    ) -> Result<MemoryHandle, memories::Error> {
        open(&bucket, options).map(MemoryHandle::new).map_err(case)
    }

    fn remember(
        &self,
        scope: memories::Scope,
        text: String,
    ) -> Result<Vec<String>, memories::Error> {
        self.remembered(scope, text).map_err(case)
    }

    fn recall(
        &self,
        scope: memories::Scope,
        query: String,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, memories::Error> {
        self.recalled(scope, query, budget_tokens).map_err(case)
    }

    fn profile(
        &self,
        scope: memories::Scope,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, memories::Error> {
        self.profiled(scope, budget_tokens).map_err(case)
    }

    fn forget(
        &self,
        scope: memories::Scope,
        target: memories::ForgetTarget,
    ) -> Result<u32, memories::Error> {
        self.forgotten(scope, target).map_err(case)
    }
}

impl Open {
    fn remembered(&self, scope: memories::Scope, text: String) -> Result<Vec<String>, Error> {
        let request = Request::Remember {
            scope: read_scope(scope)?,
            text,
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        match self.drive(request)? {
            Response::Remember { records } => Ok(records
                .iter()
                .map(|noted| noted.record.id.to_string())
                .collect()),
            _ => Err(mismatch()),
        }
    }

    fn recalled(
        &self,
        scope: memories::Scope,
        query: String,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, Error> {
        let request = Request::Recall {
            audience: Audience::Device,
            scope: read_scope(scope)?,
            query,
            budget_tokens: budget_tokens.unwrap_or(BUDGET_TOKENS),
            as_of_ms: None,
            exposure: Exposure::Full,
            deadline_ms: None,
            explain: false,
        };
        match self.drive(request)? {
            Response::Recall(prompt) => Ok(shown(prompt)),
            _ => Err(mismatch()),
        }
    }

    fn profiled(
        &self,
        scope: memories::Scope,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, Error> {
        let request = Request::Profile {
            audience: Audience::Device,
            scope: read_scope(scope)?,
            budget_tokens: budget_tokens.unwrap_or(BUDGET_TOKENS),
            as_of_ms: None,
        };
        match self.drive(request)? {
            Response::Profile(prompt) => Ok(shown(prompt)),
            _ => Err(mismatch()),
        }
    }

    fn forgotten(
        &self,
        scope: memories::Scope,
        target: memories::ForgetTarget,
    ) -> Result<u32, Error> {
        let target = match target {
            memories::ForgetTarget::Id(id) => {
                ForgetTarget::Id(RecordId::from_str(&id).map_err(invalid)?)
            }
            memories::ForgetTarget::Thread(thread) => {
                ForgetTarget::Thread(Name::new(thread).map_err(invalid)?)
            }
            memories::ForgetTarget::Scope => ForgetTarget::Scope,
        };
        let scope = read_scope(scope)?;
        match self.drive(Request::Forget {
            scope,
            target,
            preview: None,
        })? {
            Response::Forget { erased, .. } => Ok(erased),
            _ => Err(mismatch()),
        }
    }

    fn drive(&self, request: Request) -> Result<Response, Error> {
        // The host cannot call in while one of its own functions runs for this instance.
        let mut memory = self.memory.try_borrow_mut().map_err(|_| {
            Error::new(
                ErrorCode::Internal,
                "a call came in while another was under way",
            )
        })?;
        let mut op = memory.begin(request);
        let mut reply = Reply::Begin;
        loop {
            reply = match memory.step(&mut op, reply, &self.clock.ambient()?) {
                Step::NeedEmbed { texts, heads } => {
                    Reply::Embedded(self.model.encode(&texts, &heads))
                }
                Step::NeedRead { keys } => match self.values.read(&keys) {
                    Ok(values) => Reply::Values(values),
                    Err(error) => Reply::Failed(error),
                },
                Step::NeedNames => match self.values.names() {
                    Ok(names) => Reply::Names(Some(names)),
                    Err(error) => Reply::Failed(error),
                },
                Step::Commit {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                } => match self.values.write(expected_head, &puts, &deletes, strict) {
                    Ok(Written::Committed) => Reply::Committed,
                    Ok(Written::Conflict) => Reply::Conflict,
                    Err(error) => Reply::Failed(error),
                },
                Step::Done(result) => return result,
            };
        }
    }
}

fn open(bucket: &str, options: memories::OpenOptions) -> Result<Open, Error> {
    let key = Zeroizing::new(options.key);
    let host_key: [u8; 32] = key
        .as_slice()
        .try_into()
        .map_err(|_| Error::new(ErrorCode::InvalidArgument, "the key must have 32 bytes"))?;
    let clock = Clock::new(options.utc_offset_min)?;
    // Before anything is written: a model that is refused leaves no trace.
    let model = Model::load(options.model)?;
    let values = Values::open(bucket)?;
    let mut options = OpenOptions::new(KeySource::Host(DataKey::new(host_key)));
    options.journals = values.journals();
    let mut opening = Opening::new(options);
    let mut reply = OpenReply::Begin;
    loop {
        reply = match opening.step(reply, &clock.ambient()?) {
            OpenStep::NeedRead { keys } => match values.read_opening(&keys) {
                Ok(reply) => reply,
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::NeedKey { .. } | OpenStep::WrapKey { .. } => OpenReply::Failed(Error::new(
                ErrorCode::Internal,
                "an opening with a key of the host asked for another one",
            )),
            OpenStep::Profile => OpenReply::Continue,
            OpenStep::NeedNames => match values.names() {
                Ok(names) => OpenReply::Names(names),
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => match values.write(expected_head, &puts, &deletes, strict) {
                Ok(Written::Committed) => OpenReply::Committed,
                Ok(Written::Conflict) => OpenReply::Conflict,
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::Done(result) => {
                return Ok(Open {
                    memory: RefCell::new(result?),
                    values,
                    model,
                    clock,
                });
            }
        };
    }
}

/// The host's clock and randomness.
struct Clock {
    utc_offset_min: i16,
}

impl Clock {
    fn new(utc_offset_min: i16) -> Result<Self, Error> {
        if (-1_440..=1_440).contains(&utc_offset_min) {
            return Ok(Self { utc_offset_min });
        }
        Err(Error::new(
            ErrorCode::InvalidArgument,
            "the offset from UTC must be -1440 to 1440 minutes",
        ))
    }

    /// What one step is given.
    fn ambient(&self) -> Result<Ambient, Error> {
        let now = wall_clock::now();
        let seconds_ms = i64::try_from(now.seconds)
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000));
        match (seconds_ms, <[u8; 32]>::try_from(get_random_bytes(32))) {
            (Some(seconds_ms), Ok(entropy)) => Ok(Ambient {
                now_ms: seconds_ms.saturating_add(i64::from(now.nanoseconds / 1_000_000)),
                utc_offset_min: self.utc_offset_min,
                entropy,
            }),
            _ => Err(Error::new(
                ErrorCode::Unsupported,
                "the host's clock or randomness cannot be used",
            )),
        }
    }
}

fn read_scope(scope: memories::Scope) -> Result<Scope, Error> {
    let name = |text: String| Name::new(text).map_err(invalid);
    Ok(Scope {
        user: name(scope.user)?,
        project: scope.project.map(name).transpose()?,
        thread: scope.thread.map(name).transpose()?,
        agent: scope.agent.map(name).transpose()?,
    })
}

fn shown(prompt: Prompt) -> memories::Prompt {
    memories::Prompt {
        profile: prompt
            .profile
            .iter()
            .chain(&prompt.joined)
            .map(|shown| shown.record.id.to_string())
            .collect(),
        context: prompt
            .context
            .iter()
            .map(|shown| shown.record.id.to_string())
            .collect(),
        dropped: prompt
            .dropped
            .iter()
            .map(|dropped| dropped.id.to_string())
            .collect(),
        text: prompt.prompt,
        tokens: prompt.tokens,
        lexical_only: prompt.lexical_only,
    }
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::InvalidArgument, error.to_string())
}

fn mismatch() -> Error {
    Error::new(ErrorCode::Internal, "the answer is of another verb")
}
