//! A request on its way: a machine that says what it needs next.

mod answer;
mod plan;

use foremind_engine::{Prompt, Request, Response};
use foremind_types::{Ambient, Error, ErrorCode, Name, Receipt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;
use crate::directory::{self, Note, SHARDS};
use crate::grant::Grant;
use crate::http::{HttpRequest, HttpResponse, Kind, Problem};
use crate::limits::{Buckets, Rate};
use crate::mcp::{self, Id};
use crate::metrics::Metrics;
use crate::place::Place;
use crate::routes::Routes;
use crate::wire::MemoriesAnswer;

/// How often a value is tried to be swapped.
const TRIES: u8 = 16;

/// One service: its keys, and what this instance has counted.
#[derive(Debug)]
pub struct Service {
    config: Config,
    routes: Routes,
    buckets: Buckets,
    metrics: Metrics,
}

/// Work in one memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Work {
    /// Answered with [`Answer::Response`]; past the deadline, counted from the moment it is asked for, with
    /// [`Answer::Late`], which holds the profile alone.
    Ask {
        /// The verb.
        request: Request,
        /// Only for `recall`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_ms: Option<u32>,
        /// Only for `profile`: how old an answer of a replica may be, in milliseconds. Absent or 0: the memory itself
        /// is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_age_ms: Option<u32>,
    },
    /// Everything stored, as plain JSON Lines: [`Answer::File`].
    Export,
    /// The memory is erased and its key destroyed: [`Answer::Removed`].
    Remove,
}

/// What came of it.
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each step of a request; a box would only burden the hosts"
)]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// There is no such memory, and it was not to be made.
    Absent,
    /// The verb's.
    Response(Response),
    /// The profile alone.
    Late(Prompt),
    /// The profile alone, as a replica has it.
    Replica(Replica),
    /// A file.
    File(Vec<u8>),
    /// Done; with the proof, which is absent where the memory could not be opened.
    Removed(Option<Box<Receipt>>),
}

/// The profile out of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// As the memory itself would have given it then.
    pub prompt: Prompt,
    /// How many commits led to that state.
    pub generation: u64,
    /// At most so many milliseconds ago it was the newest one.
    pub age_ms: u64,
    /// What kept the memory itself from answering; `aborted`: its time. Absent: it was not asked.
    pub instead_of: Option<ErrorCode>,
}

/// What a request needs next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Work in the memory at a place; answer with [`Reply::Ran`].
    Run {
        /// Which memory.
        place: Place,
        /// Whether it is made if there is none.
        create: bool,
        /// What to do.
        work: Work,
    },
    /// Read a value of the service itself; answer with [`Reply::Value`].
    Get {
        /// Lower-case letters, digits and `-`; at most 64.
        name: String,
    },
    /// Write one if it still is what was read; answer with [`Reply::Swapped`].
    Swap {
        /// As above.
        name: String,
        /// What was read; absent: nothing.
        expected: Option<Vec<u8>>,
        /// The new value, at most 1 MiB.
        value: Vec<u8>,
    },
    /// The end.
    Done(HttpResponse),
}

/// What the host answers.
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each step of a request; a box would only burden the hosts"
)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Reply {
    /// The first call.
    Begin,
    /// What came of the work.
    Ran(Result<Answer, Error>),
    /// The value, if there is one.
    Value(Result<Option<Vec<u8>>, Error>),
    /// Whether it was swapped.
    Swapped(Result<bool, Error>),
}

/// A request under way.
#[derive(Debug)]
pub struct Call {
    label: &'static str,
    request: Option<HttpRequest>,
    plan: Plan,
    doing: Doing,
    tries: u8,
}

/// What is left to do, in the order of the fields.
#[derive(Debug, Default)]
struct Plan {
    /// The bucket and the grant whose rate is to be charged.
    charge: Option<(String, Name)>,
    note: Option<Note>,
    run: Option<Run>,
    /// A note for which the work comes first.
    note_after: Option<Note>,
    report: Option<Report>,
    /// The id of an MCP request, which is answered in its own form.
    mcp: Option<Id>,
    end: End,
    ran: Option<Result<Answer, Error>>,
}

#[derive(Clone, Debug)]
struct Run {
    place: Place,
    work: Work,
    create: bool,
    /// What is to be noted before the memory is made, should there be none.
    make: Option<Note>,
}

#[derive(Debug)]
struct Report {
    tenant: Name,
    unowned: bool,
    shard: u16,
    until: u16,
    found: MemoriesAnswer,
}

/// What the answer is made of.
#[derive(Debug, Default)]
enum End {
    #[default]
    Nothing,
    Ready(HttpResponse),
    Turn(Option<&'static str>),
    Prompt(Option<&'static str>),
    List,
    Record,
    /// Whether a missing memory is as good as an empty one.
    Forgotten(bool),
    Remembered,
    Removed,
    Exported,
    Granted(Box<Grant>),
    Reported,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Charging,
    ChargeWritten,
    Reading,
    Writing,
    Running(Box<Run>),
    Listing,
    Over,
}

/// An answer in both of its forms.
struct Said {
    response: HttpResponse,
    /// For the model; absent: the JSON itself.
    text: Option<String>,
}

impl Service {
    /// A service with nothing counted.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            routes: Routes::new(),
            buckets: Buckets::default(),
            metrics: Metrics::default(),
        }
    }

    /// Lines of the guard's policy for the memories that it opens.
    pub(crate) fn policy(&self) -> &str {
        &self.config.policy
    }

    /// Begins; the first step's reply is [`Reply::Begin`].
    #[must_use]
    pub fn begin(&self, request: HttpRequest) -> Call {
        Call {
            label: "none",
            request: Some(request),
            plan: Plan::default(),
            doing: Doing::Nothing,
            tries: 0,
        }
    }

    /// Says what a request needs next. `reply` answers the step before; `at.entropy` is fresh for each call.
    pub fn step(&mut self, call: &mut Call, reply: Reply, at: &Ambient) -> Step {
        match self.advance(call, reply, at) {
            Ok(step) => step,
            Err(problem) => {
                let response = match &call.plan.mcp {
                    Some(id) if problem.status() != 429 => mcp::failed(id, &problem),
                    _ => problem.response(),
                };
                self.metrics.problem(problem.code());
                self.over(call, response)
            }
        }
    }

    fn over(&mut self, call: &mut Call, response: HttpResponse) -> Step {
        call.doing = Doing::Over;
        self.metrics.request(call.label, response.status);
        Step::Done(response)
    }

    fn advance(&mut self, call: &mut Call, reply: Reply, at: &Ambient) -> Result<Step, Problem> {
        let doing = core::mem::replace(&mut call.doing, Doing::Over);
        match (doing, reply) {
            (Doing::Nothing, Reply::Begin) => {
                if let Some(request) = call.request.take() {
                    self.plan(call, &request, at)?;
                }
            }
            (Doing::Charging, Reply::Value(value)) => return self.charge(call, value, at),
            // A store that fails charges nothing: what the request wants will say so.
            (Doing::ChargeWritten, Reply::Swapped(Ok(true) | Err(_))) => {
                call.plan.charge = None;
                call.tries = 0;
            }
            (Doing::ChargeWritten, Reply::Swapped(Ok(false))) => again(call)?,
            (Doing::Reading, Reply::Value(value)) => return self.note(call, value?, at),
            (Doing::Writing, Reply::Swapped(Ok(true))) => {
                call.plan.note = None;
                call.tries = 0;
            }
            (Doing::Writing, Reply::Swapped(Ok(false))) => again(call)?,
            (Doing::Writing, Reply::Swapped(Err(error))) => return Err(error.into()),
            (Doing::Running(run), Reply::Ran(result)) => self.ran(call, *run, result),
            (Doing::Listing, Reply::Value(value)) => self.list(call, value?)?,
            _ => {
                return Err(Error::new(
                    ErrorCode::Internal,
                    "the reply does not answer the step before it",
                )
                .into());
            }
        }
        self.next(call, at)
    }

    /// Asks for what is left, or ends.
    fn next(&mut self, call: &mut Call, at: &Ambient) -> Result<Step, Problem> {
        if let Some((name, _)) = &call.plan.charge {
            call.doing = Doing::Charging;
            return Ok(Step::Get { name: name.clone() });
        }
        if call.plan.note.is_none() && call.plan.run.is_none() {
            call.plan.note = call.plan.note_after.take();
        }
        if let Some(note) = &call.plan.note {
            call.doing = Doing::Reading;
            return Ok(Step::Get {
                name: self.shard_name(note),
            });
        }
        if let Some(run) = call.plan.run.take() {
            let step = Step::Run {
                place: run.place.clone(),
                create: run.create,
                work: run.work.clone(),
            };
            call.doing = Doing::Running(Box::new(run));
            return Ok(step);
        }
        if let Some(report) = call
            .plan
            .report
            .as_ref()
            .filter(|report| report.shard < report.until)
        {
            call.doing = Doing::Listing;
            let name = directory::name_of(self.config.master.bytes(), &report.tenant, report.shard);
            return Ok(Step::Get { name });
        }
        let said = self.end(call, at)?;
        let response = match &call.plan.mcp {
            Some(id) => {
                let structured: Value =
                    serde_json::from_slice(&said.response.body).unwrap_or_default();
                let text = said.text.unwrap_or_else(|| structured.to_string());
                mcp::called(id, &text, &structured)
            }
            None => said.response,
        };
        Ok(self.over(call, response))
    }

    fn rate(&self) -> Rate {
        Rate {
            per_minute: self.config.per_minute,
            burst: self.config.burst,
        }
    }

    fn charge(
        &mut self,
        call: &mut Call,
        value: Result<Option<Vec<u8>>, Error>,
        at: &Ambient,
    ) -> Result<Step, Problem> {
        let Some((name, jti)) = call.plan.charge.clone() else {
            return self.next(call, at);
        };
        let Ok(expected) = value else {
            call.plan.charge = None;
            return self.next(call, at);
        };
        let rate = self.rate();
        let mut buckets = Buckets::read(expected.as_deref().unwrap_or_default());
        buckets
            .take(rate, jti.as_str(), at.now_ms)
            .map_err(limited)?;
        call.doing = Doing::ChargeWritten;
        Ok(Step::Swap {
            name,
            expected,
            value: buckets.stored(rate, at.now_ms),
        })
    }

    fn shard_name(&self, note: &Note) -> String {
        let master = self.config.master.bytes();
        let shard = directory::shard_of(master, &note.tenant, &note.user);
        directory::name_of(master, &note.tenant, shard)
    }

    fn note(
        &mut self,
        call: &mut Call,
        expected: Option<Vec<u8>>,
        at: &Ambient,
    ) -> Result<Step, Problem> {
        if let Some(note) = &call.plan.note {
            let name = self.shard_name(note);
            let master = self.config.master.bytes();
            if let Some(value) = directory::noted(master, &name, expected.as_deref(), note, at)? {
                call.doing = Doing::Writing;
                return Ok(Step::Swap {
                    name,
                    expected,
                    value,
                });
            }
        }
        call.plan.note = None;
        call.tries = 0;
        self.next(call, at)
    }

    fn ran(&mut self, call: &mut Call, mut run: Run, result: Result<Answer, Error>) {
        // The directory first, so that no memory is missing from it.
        if !run.create
            && matches!(result, Ok(Answer::Absent))
            && let Some(note) = run.make.take()
        {
            run.create = true;
            call.plan.note = Some(note);
            call.plan.run = Some(run);
            return;
        }
        if result.is_err() {
            call.plan.note_after = None;
        }
        call.plan.ran = Some(result);
    }

    fn list(&mut self, call: &mut Call, stored: Option<Vec<u8>>) -> Result<(), Problem> {
        if let Some(report) = &mut call.plan.report {
            let master = self.config.master.bytes();
            let name = directory::name_of(master, &report.tenant, report.shard);
            let memories = directory::listed(master, &name, &report.tenant, stored.as_deref())?;
            let wanted = memories
                .into_iter()
                .filter(|memory| !report.unowned || memory.owner.is_none());
            report.found.memories.extend(wanted);
            report.shard += 1;
            report.found.next = Some(report.shard).filter(|next| *next < SHARDS);
        }
        Ok(())
    }
}

impl From<HttpResponse> for Said {
    fn from(response: HttpResponse) -> Self {
        Self {
            response,
            text: None,
        }
    }
}

/// Tries a swap once more.
fn again(call: &mut Call) -> Result<(), Problem> {
    call.tries += 1;
    if call.tries > TRIES {
        return Err(Error::new(
            ErrorCode::Conflict,
            "others were faster too many times; nothing was changed, try again",
        )
        .into());
    }
    Ok(())
}

fn limited(after_s: u64) -> Problem {
    Problem::new(Kind::RateLimited, "wait, or ask for fewer prompts")
        .with("retry-after", after_s.to_string())
}

fn unknown() -> Error {
    Error::new(
        ErrorCode::UnknownId,
        "no record of this id is visible in this scope",
    )
}
