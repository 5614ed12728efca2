//! The exported interfaces.

use std::cell::{RefCell, RefMut};
use std::str::FromStr;

use foremind_engine::{Audience, Exposure, ForgetTarget, IngestMode, Noted, Prompt, TurnStatus};
use foremind_memory::{
    DataKey, Key, KeySource, Memory, OpenOptions, OpenReply, OpenStep, Opening, Policy, Reply,
    Report, Request, Response, Step, Task, TaskReply, TaskStep, Written,
};
use foremind_types::{Error, ErrorCode, Grade, Name, RecordId, Role, Scope};
use zeroize::Zeroizing;

use crate::bindings::exports::foremind::memory::judge_queue::{self, Guest as GuestQueue};
use crate::bindings::exports::foremind::memory::keys::Guest as GuestKeys;
use crate::bindings::exports::foremind::memory::memories::{
    self, Guest, GuestMemory, Memory as MemoryHandle, MemoryBorrow,
};
use crate::bindings::exports::foremind::memory::types;
use crate::clock::Clock;
use crate::errors::case;
use crate::model::Model;
use crate::values::Values;

/// Tokens of a prompt when the caller names no budget.
pub(crate) const BUDGET_TOKENS: u32 = 512;

/// The component.
pub(crate) struct Component;

impl Guest for Component {
    type Memory = Open;
}

impl GuestKeys for Component {
    fn rekey(memory: MemoryBorrow<'_>, key: Vec<u8>) -> Result<(), types::Error> {
        memory.get::<Open>().rekeyed(key).map_err(case)
    }
}

impl GuestQueue for Component {
    fn pending(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
    ) -> Result<(Vec<judge_queue::Waiting>, u32), types::Error> {
        memory.get::<Open>().pending(scope).map_err(case)
    }

    fn judge(
        memory: MemoryBorrow<'_>,
        scope: types::Scope,
        id: String,
        grade: judge_queue::Grade,
    ) -> Result<(), types::Error> {
        memory.get::<Open>().judged(scope, &id, grade).map_err(case)
    }
}

/// An open memory and its bucket.
pub(crate) struct Open {
    memory: RefCell<Memory>,
    values: Values,
    model: Model,
    clock: Clock,
}

impl GuestMemory for Open {
    fn open(bucket: String, options: memories::OpenOptions) -> Result<MemoryHandle, types::Error> {
        open(&bucket, options).map(MemoryHandle::new).map_err(case)
    }

    fn remember(&self, scope: types::Scope, text: String) -> Result<Vec<String>, types::Error> {
        self.remembered(scope, text).map_err(case)
    }

    fn ingest(
        &self,
        scope: types::Scope,
        thread: String,
        turn: String,
        text: String,
    ) -> Result<Vec<String>, types::Error> {
        self.ingested(scope, thread, turn, text).map_err(case)
    }

    fn recall(
        &self,
        scope: types::Scope,
        query: String,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, types::Error> {
        self.recalled(scope, query, budget_tokens).map_err(case)
    }

    fn profile(
        &self,
        scope: types::Scope,
        budget_tokens: Option<u32>,
    ) -> Result<memories::Prompt, types::Error> {
        self.profiled(scope, budget_tokens).map_err(case)
    }

    fn forget(
        &self,
        scope: types::Scope,
        target: memories::ForgetTarget,
    ) -> Result<u32, types::Error> {
        self.forgotten(scope, target).map_err(case)
    }
}

impl Open {
    fn remembered(&self, scope: types::Scope, text: String) -> Result<Vec<String>, Error> {
        let request = Request::Remember {
            scope: read_scope(scope)?,
            text,
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        match self.drive(request)? {
            Response::Remember { records } => Ok(ids(&records)),
            _ => Err(mismatch()),
        }
    }

    fn ingested(
        &self,
        scope: types::Scope,
        thread: String,
        turn: String,
        text: String,
    ) -> Result<Vec<String>, Error> {
        let request = Request::Ingest {
            scope: read_scope(scope)?,
            thread: Name::new(thread).map_err(invalid)?,
            turn: Name::new(turn).map_err(invalid)?,
            role: Role::User,
            text,
            status: TurnStatus::Ok,
            mode: IngestMode::On,
            finding: false,
        };
        match self.drive(request)? {
            Response::Ingest { records, .. } => Ok(ids(&records)),
            _ => Err(mismatch()),
        }
    }

    fn recalled(
        &self,
        scope: types::Scope,
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
        scope: types::Scope,
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

    fn forgotten(&self, scope: types::Scope, target: memories::ForgetTarget) -> Result<u32, Error> {
        match self.drive(forget(scope, target, false)?)? {
            Response::Forget { erased, .. } => Ok(erased),
            _ => Err(mismatch()),
        }
    }

    fn pending(&self, scope: types::Scope) -> Result<(Vec<judge_queue::Waiting>, u32), Error> {
        let scope = read_scope(scope)?;
        let Response::Pending(list) = self.drive(Request::Pending { scope })? else {
            return Err(mismatch());
        };
        let waiting = list.records.into_iter().map(|record| judge_queue::Waiting {
            id: record.id.to_string(),
            grade: match record.route.grade {
                Grade::Modifier => judge_queue::Grade::Modifier,
                Grade::Circumstance => judge_queue::Grade::Circumstance,
                Grade::Informer => judge_queue::Grade::Informer,
            },
            text: record.text,
        });
        Ok((waiting.collect(), list.waiting))
    }

    fn judged(
        &self,
        scope: types::Scope,
        id: &str,
        grade: judge_queue::Grade,
    ) -> Result<(), Error> {
        let request = Request::Judge {
            scope: read_scope(scope)?,
            id: RecordId::from_str(id).map_err(invalid)?,
            grade: match grade {
                judge_queue::Grade::Modifier => Grade::Modifier,
                judge_queue::Grade::Circumstance => Grade::Circumstance,
                judge_queue::Grade::Informer => Grade::Informer,
            },
        };
        match self.drive(request)? {
            Response::Judge { .. } => Ok(()),
            _ => Err(mismatch()),
        }
    }

    fn rekeyed(&self, key: Vec<u8>) -> Result<(), Error> {
        let key = KeySource::Host(host_key(key)?);
        self.task(Task::Rekey { key }).map(|_| ())
    }

    /// Does a task, which must need nothing but values.
    pub(crate) fn task(&self, task: Task) -> Result<Report, Error> {
        let mut memory = self.borrow()?;
        let mut chore = memory.begin_task(task);
        let mut reply = TaskReply::Begin;
        loop {
            let step = memory.step_task(&mut chore, reply, &self.clock.ambient()?);
            reply = match step {
                TaskStep::Done(result) => return result,
                step => task_reply(&self.values, step),
            };
        }
    }

    fn borrow(&self) -> Result<RefMut<'_, Memory>, Error> {
        // The host cannot call in while one of its own functions runs for this instance.
        self.memory.try_borrow_mut().map_err(|_| {
            Error::new(
                ErrorCode::Internal,
                "a call came in while another was under way",
            )
        })
    }

    pub(crate) fn drive(&self, request: Request) -> Result<Response, Error> {
        let mut memory = self.borrow()?;
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

/// What the store answers to a step of a task.
pub(crate) fn task_reply(values: &Values, step: TaskStep) -> TaskReply {
    let answer = match step {
        TaskStep::NeedRead { keys } => values.read(&keys).map(TaskReply::Values),
        TaskStep::NeedNames => values.names().map(|names| TaskReply::Names(Some(names))),
        TaskStep::Commit {
            expected_head,
            puts,
            deletes,
            strict,
        } => values
            .write(expected_head, &puts, &deletes, strict)
            .map(|written| match written {
                Written::Committed => TaskReply::Committed,
                Written::Conflict => TaskReply::Conflict,
            }),
        // Of the tasks here the end of a memory alone asks for it, and writes nothing.
        TaskStep::Replace { deletes, .. } => values
            .delete(deletes.iter().map(Key::as_str))
            .map(|()| TaskReply::Committed),
        _ => Err(Error::new(
            ErrorCode::Internal,
            "a task asked for more than values",
        )),
    };
    answer.unwrap_or_else(TaskReply::Failed)
}

fn open(bucket: &str, options: memories::OpenOptions) -> Result<Open, Error> {
    let key = host_key(options.key)?;
    let clock = Clock::new(options.utc_offset_min)?;
    // Before anything is written: a model that is refused leaves no trace.
    let model = Model::load(options.model)?;
    let policy = Policy::parse(options.policy.as_deref().unwrap_or_default())?;
    let values = Values::open(bucket)?;
    let mut options = OpenOptions::new(KeySource::Host(key));
    options.policy = policy;
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

/// The request: to erase, or to show what would be.
pub(crate) fn forget(
    scope: types::Scope,
    target: memories::ForgetTarget,
    preview: bool,
) -> Result<Request, Error> {
    Ok(Request::Forget {
        scope: read_scope(scope)?,
        target: match target {
            memories::ForgetTarget::Id(id) => {
                ForgetTarget::Id(RecordId::from_str(&id).map_err(invalid)?)
            }
            memories::ForgetTarget::Thread(thread) => {
                ForgetTarget::Thread(Name::new(thread).map_err(invalid)?)
            }
            memories::ForgetTarget::Query(text) => ForgetTarget::Query(text),
            memories::ForgetTarget::Subject(text) => ForgetTarget::Subject(text),
            memories::ForgetTarget::Scope => ForgetTarget::Scope,
        },
        preview: Some(preview),
    })
}

pub(crate) fn host_key(bytes: Vec<u8>) -> Result<DataKey, Error> {
    let bytes = Zeroizing::new(bytes);
    let key: [u8; 32] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| Error::new(ErrorCode::InvalidArgument, "the key must have 32 bytes"))?;
    Ok(DataKey::new(key))
}

fn ids(records: &[Noted]) -> Vec<String> {
    let ids = records.iter().map(|noted| noted.record.id.to_string());
    ids.collect()
}

pub(crate) fn read_scope(scope: types::Scope) -> Result<Scope, Error> {
    let name = |text: String| Name::new(text).map_err(invalid);
    Ok(Scope {
        user: name(scope.user)?,
        project: scope.project.map(name).transpose()?,
        thread: scope.thread.map(name).transpose()?,
        agent: scope.agent.map(name).transpose()?,
    })
}

pub(crate) fn shown(prompt: Prompt) -> memories::Prompt {
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

pub(crate) fn invalid(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::InvalidArgument, error.to_string())
}

pub(crate) fn mismatch() -> Error {
    Error::new(ErrorCode::Internal, "the answer is of another verb")
}
