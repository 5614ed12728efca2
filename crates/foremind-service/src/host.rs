//! The driver for hosts whose store answers at once: WASI, and native ones.

use foremind_engine::{Audience, Prompt, Request, Response};
use foremind_memory::{
    Capabilities, Key, KeySource, Memory, OpenOptions, OpenReply, OpenStep, Opening, Policy,
    Reply as MemoryReply, Report, Step as MemoryStep, Task, TaskReply, TaskStep, Written,
};
use foremind_types::{Ambient, Embedding, EncodeFailure, Error, ErrorCode, HeadId, Receipt, Scope};

use crate::call::{Answer, Reply, Service, Step, Work};
use crate::http::{HttpRequest, HttpResponse};
use crate::place::Place;

/// What a host does for a service. Every error is one with a storage code.
pub trait Host {
    /// Time, and 32 bytes fit for cryptography, fresh at each call.
    ///
    /// # Errors
    /// `unsupported` where the host has neither.
    fn ambient(&mut self) -> Result<Ambient, Error>;

    /// What [`Host::write`] can do.
    fn capabilities(&self) -> Capabilities;

    /// Values of one memory, in the order of the keys.
    ///
    /// # Errors
    /// The store's.
    fn read(&mut self, space: &str, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// Writes what a memory wants to commit, as [`foremind_memory::Step::Commit`] says.
    ///
    /// # Errors
    /// The store's.
    fn write(&mut self, space: &str, batch: &Batch) -> Result<Written, Error>;

    /// The names of a memory's values.
    ///
    /// # Errors
    /// The store's.
    fn names(&mut self, space: &str) -> Result<Vec<String>, Error>;

    /// Deletes values of a memory, some of which may be absent.
    ///
    /// # Errors
    /// The store's.
    fn delete(&mut self, space: &str, names: &[String]) -> Result<(), Error>;

    /// A value of the service itself.
    ///
    /// # Errors
    /// The store's.
    fn value(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Writes one if it still is what was expected; whether it was.
    ///
    /// # Errors
    /// The store's.
    fn swap(&mut self, name: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<bool, Error>;

    /// `[text][head]`.
    ///
    /// # Errors
    /// Why there are no vectors now.
    fn encode(
        &mut self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure>;
}

/// A batch of [`foremind_memory::Step::Commit`].
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// What must be the head.
    pub expected_head: Option<foremind_memory::HeadToken>,
    /// Values to write.
    pub puts: Vec<(Key, Vec<u8>)>,
    /// Values to delete.
    pub deletes: Vec<Key>,
    /// Whether it must be durable before the answer.
    pub strict: bool,
}

/// Answers one request.
pub fn serve(service: &mut Service, host: &mut dyn Host, request: HttpRequest) -> HttpResponse {
    let mut call = service.begin(request);
    let mut reply = Reply::Begin;
    loop {
        let at = match host.ambient() {
            Ok(at) => at,
            Err(error) => return crate::http::Problem::from(error).response(),
        };
        reply = match service.step(&mut call, reply, &at) {
            Step::Run {
                place,
                create,
                work,
            } => Reply::Ran(run(host, service.policy(), &place, create, work, at.now_ms)),
            Step::Get { name } => Reply::Value(host.value(&name)),
            Step::Swap {
                name,
                expected,
                value,
            } => Reply::Swapped(host.swap(&name, expected.as_deref(), &value)),
            Step::Done(response) => return response,
        };
    }
}

/// How far an opening came.
enum Opened {
    Absent,
    Memory(Box<Memory>),
    /// The deadline passed; the stored profile, if it could be read.
    Late(Option<Prompt>),
}

fn run(
    host: &mut dyn Host,
    policy: &str,
    place: &Place,
    create: bool,
    work: Work,
    began_ms: i64,
) -> Result<Answer, Error> {
    match work {
        // The memory itself is at hand: its answer is as fresh as anybody may want.
        Work::Ask {
            request,
            deadline_ms,
            max_age_ms: _,
        } => {
            let until_ms = deadline_ms.map(|ms| began_ms.saturating_add(i64::from(ms)));
            ask(host, policy, place, create, request, until_ms)
        }
        Work::Export => match open(host, policy, place, false, None)? {
            Opened::Memory(mut memory) => export(host, &place.space, &mut memory),
            _ => Ok(Answer::Absent),
        },
        Work::Remove => remove(host, policy, place),
    }
}

fn ask(
    host: &mut dyn Host,
    policy: &str,
    place: &Place,
    create: bool,
    request: Request,
    until_ms: Option<i64>,
) -> Result<Answer, Error> {
    let profile = match (&request, until_ms) {
        (
            Request::Recall {
                scope,
                budget_tokens,
                ..
            },
            Some(until_ms),
        ) => Some(Asked {
            scope: scope.clone(),
            budget_tokens: *budget_tokens,
            until_ms,
        }),
        // As it is stored, as soon as it is read: the log is not needed for it.
        (
            Request::Profile {
                scope,
                budget_tokens,
                as_of_ms: None,
                ..
            },
            _,
        ) => Some(Asked {
            scope: scope.clone(),
            budget_tokens: *budget_tokens,
            until_ms: i64::MIN,
        }),
        _ => None,
    };
    let at_once = matches!(request, Request::Profile { .. });
    let mut memory = match open(host, policy, place, create, profile.as_ref())? {
        Opened::Absent => return Ok(Answer::Absent),
        Opened::Late(Some(prompt)) if at_once => {
            return Ok(Answer::Response(Response::Profile(prompt)));
        }
        Opened::Late(prompt) => return Ok(Answer::Late(prompt.unwrap_or_default())),
        Opened::Memory(memory) => memory,
    };
    match drive(
        host,
        &place.space,
        &mut memory,
        request,
        profile
            .as_ref()
            .filter(|_| !at_once)
            .map(|asked| asked.until_ms),
    )? {
        Some(response) => Ok(Answer::Response(response)),
        None => {
            let Some(asked) = profile else {
                return Err(Error::new(
                    ErrorCode::Internal,
                    "a deadline that was not set has passed",
                ));
            };
            let request = Request::Profile {
                scope: asked.scope,
                budget_tokens: asked.budget_tokens,
                as_of_ms: None,
                audience: Audience::Device,
            };
            match drive(host, &place.space, &mut memory, request, None)? {
                Some(Response::Profile(prompt)) => Ok(Answer::Late(prompt)),
                _ => Err(Error::new(
                    ErrorCode::Internal,
                    "the answer is of another verb",
                )),
            }
        }
    }
}

/// What a recall falls back to, and when.
struct Asked {
    scope: Scope,
    budget_tokens: u32,
    until_ms: i64,
}

fn open(
    host: &mut dyn Host,
    policy: &str,
    place: &Place,
    create: bool,
    asked: Option<&Asked>,
) -> Result<Opened, Error> {
    let space = &place.space;
    let mut options = OpenOptions::new(KeySource::Host(place.key.clone()));
    options.policy = Policy::parse(policy)?;
    options.create = create;
    options.profile_first = asked.is_some();
    options.journals = host.capabilities().strategy()?.needs_journals();
    let mut opening = Opening::new(options);
    let mut profile = None;
    let mut reply = OpenReply::Begin;
    loop {
        let at = host.ambient()?;
        if let (Some(asked), Some(_)) = (asked, &profile)
            && at.now_ms >= asked.until_ms
        {
            return Ok(Opened::Late(profile));
        }
        reply = match opening.step(reply, &at) {
            OpenStep::NeedRead { keys } => match read_opening(host, space, &keys) {
                Ok(OpenReply::Values(values)) if is_absent(&keys, &values) && !create => {
                    return Ok(Opened::Absent);
                }
                // Its making was cut, so nobody was told that it is there: who creates it finishes it.
                Ok(OpenReply::KeyAlone(_)) if !create => return Ok(Opened::Absent),
                Ok(reply) => reply,
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::Profile => {
                if let Some(asked) = asked {
                    let response = opening.profile(
                        &asked.scope,
                        asked.budget_tokens,
                        Audience::Device,
                        at.now_ms,
                    );
                    if let Ok(Response::Profile(prompt)) = response {
                        profile = Some(prompt);
                    }
                }
                OpenReply::Continue
            }
            OpenStep::NeedNames => host
                .names(space)
                .map_or_else(OpenReply::Failed, OpenReply::Names),
            OpenStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => {
                let batch = Batch {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                };
                match host.write(space, &batch) {
                    Ok(Written::Committed) => OpenReply::Committed,
                    Ok(Written::Conflict) => OpenReply::Conflict,
                    Err(error) => OpenReply::Failed(error),
                }
            }
            OpenStep::Done(result) => return result.map(|memory| Opened::Memory(Box::new(memory))),
            _ => OpenReply::Failed(Error::new(
                ErrorCode::Internal,
                "an opening with a key of the host asked for another one",
            )),
        };
    }
}

/// Whether neither key nor head is there.
fn is_absent(keys: &[Key], values: &[Option<Vec<u8>>]) -> bool {
    keys == [Key::slot(), Key::head()] && values.iter().all(Option::is_none)
}

/// Where batches are not atomic, a making that was cut is told from a lost head.
fn read_opening(host: &mut dyn Host, space: &str, keys: &[Key]) -> Result<OpenReply, Error> {
    let mut values = host.read(space, keys)?;
    if keys == [Key::slot(), Key::head()]
        && !host.capabilities().atomic_batch
        && let [slot @ Some(_), None] = values.as_mut_slice()
        && !host.names(space)?.iter().any(|name| Key::is_of_log(name))
        && let Some(slot) = slot.take()
    {
        return Ok(OpenReply::KeyAlone(slot));
    }
    Ok(OpenReply::Values(values))
}

/// `None`: the deadline passed before anything was to be written.
fn drive(
    host: &mut dyn Host,
    space: &str,
    memory: &mut Memory,
    request: Request,
    until_ms: Option<i64>,
) -> Result<Option<Response>, Error> {
    let mut op = memory.begin(request);
    let mut reply = MemoryReply::Begin;
    loop {
        let at = host.ambient()?;
        if until_ms.is_some_and(|until_ms| at.now_ms >= until_ms) {
            return Ok(None);
        }
        reply = match memory.step(&mut op, reply, &at) {
            MemoryStep::NeedEmbed { texts, heads } => {
                MemoryReply::Embedded(host.encode(&texts, &heads))
            }
            MemoryStep::NeedRead { keys } => host
                .read(space, &keys)
                .map_or_else(MemoryReply::Failed, MemoryReply::Values),
            MemoryStep::NeedNames => host
                .names(space)
                .map_or_else(MemoryReply::Failed, |names| MemoryReply::Names(Some(names))),
            MemoryStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => {
                let batch = Batch {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                };
                match host.write(space, &batch) {
                    Ok(Written::Committed) => MemoryReply::Committed,
                    Ok(Written::Conflict) => MemoryReply::Conflict,
                    Err(error) => MemoryReply::Failed(error),
                }
            }
            MemoryStep::Done(result) => return result.map(Some),
        };
    }
}

fn export(host: &mut dyn Host, space: &str, memory: &mut Memory) -> Result<Answer, Error> {
    let mut chore = memory.begin_task(Task::Export { passphrase: None });
    let mut file = Vec::new();
    let mut reply = TaskReply::Begin;
    loop {
        let at = host.ambient()?;
        reply = match memory.step_task(&mut chore, reply, &at) {
            TaskStep::NeedRead { keys } => host
                .read(space, &keys)
                .map_or_else(TaskReply::Failed, TaskReply::Values),
            TaskStep::Piece(bytes) => {
                file.extend_from_slice(&bytes);
                TaskReply::Continue
            }
            TaskStep::Done(result) => return result.map(|_| Answer::File(file)),
            _ => TaskReply::Failed(Error::new(
                ErrorCode::Internal,
                "an export asked for more than values",
            )),
        };
    }
}

/// Ends the memory by its own means first, which gives the proof; what does not open goes all the same. Then the key goes, and
/// whatever is left with it.
fn remove(host: &mut dyn Host, policy: &str, place: &Place) -> Result<Answer, Error> {
    let space = &place.space;
    let fixed = [Key::slot(), Key::head(), Key::spare()];
    if host.read(space, &fixed)?.iter().all(Option::is_none) {
        return Ok(Answer::Absent);
    }
    let receipt = match open(host, policy, place, false, None) {
        Ok(Opened::Memory(mut memory)) => ended(host, place, &mut memory).ok(),
        _ => None,
    };
    let fixed = fixed.map(|key| key.as_str().to_owned());
    host.delete(space, &fixed[..1])?;
    host.delete(space, &fixed[1..])?;
    let rest = host.names(space)?;
    host.delete(space, &rest)?;
    Ok(Answer::Removed(receipt))
}

/// The receipt is under the key that wrapped the memory's.
fn ended(host: &mut dyn Host, place: &Place, memory: &mut Memory) -> Result<Box<Receipt>, Error> {
    let space = &place.space;
    let mut chore = memory.begin_task(Task::Destroy {
        key: KeySource::Host(place.key.clone()),
    });
    let mut reply = TaskReply::Begin;
    loop {
        let at = host.ambient()?;
        reply = match memory.step_task(&mut chore, reply, &at) {
            TaskStep::NeedRead { keys } => host
                .read(space, &keys)
                .map_or_else(TaskReply::Failed, TaskReply::Values),
            TaskStep::NeedNames => host
                .names(space)
                .map_or_else(TaskReply::Failed, |names| TaskReply::Names(Some(names))),
            TaskStep::Replace { deletes, .. } => {
                let names: Vec<String> =
                    deletes.iter().map(|key| key.as_str().to_owned()).collect();
                host.delete(space, &names)
                    .map_or_else(TaskReply::Failed, |()| TaskReply::Committed)
            }
            TaskStep::Done(Ok(Report::Destroy { receipt })) => return Ok(receipt),
            TaskStep::Done(Err(error)) => return Err(error),
            _ => TaskReply::Failed(Error::new(
                ErrorCode::Internal,
                "the end of a memory asked for more than values",
            )),
        };
    }
}
