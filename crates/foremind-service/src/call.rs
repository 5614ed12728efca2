//! A request on its way: a machine that says what it needs next.

use foremind_engine::{Audience, Exposure, ForgetTarget, Prompt, Request, Response};
use foremind_types::limits::BUDGET_TOKENS;
use foremind_types::{Ambient, Error, ErrorCode, Name, RecordId, Role, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;
use crate::directory::{self, Note, Noting, SHARDS};
use crate::grant::{Grant, MAX_GRANT_S, Verb};
use crate::http::{HttpRequest, HttpResponse, Kind, Problem};
use crate::limits::{Buckets, Rate};
use crate::mcp::{self, Id, Tool, Wanted};
use crate::metrics::Metrics;
use crate::place::{Place, name};
use crate::routes::{self, Caller, Endpoint, Routes, body, equal, no_query, query};
use crate::wire::{
    ForgottenAnswer, GrantAnswer, GrantBody, HealthAnswer, ListAnswer, ListQuery, MemoriesAnswer,
    MemoriesQuery, MemoryQuery, Mode, Owner, PlaceQuery, ProfileQuery, PromptAnswer, RecallBody,
    RememberAnswer, TurnAnswer, TurnBody,
};

/// Most milliseconds that a recall may be given.
const DEADLINE_MS: u32 = 5_000;
/// How often a value is tried to be swapped.
const TRIES: u8 = 16;
/// Shards that one page of the report reads.
const PAGE: u16 = 16;

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
    /// Done.
    Removed,
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

    /// Reads the request: who makes it, and what is to be done.
    fn plan(
        &mut self,
        call: &mut Call,
        request: &HttpRequest,
        at: &Ambient,
    ) -> Result<(), Problem> {
        let (endpoint, id) = self.routes.find(request)?;
        call.label = endpoint.label();
        let plan = &mut call.plan;
        if endpoint == Endpoint::Health {
            no_query(request)?;
            let answer = HealthAnswer {
                status: "ok",
                version: env!("CARGO_PKG_VERSION"),
            };
            plan.end = End::Ready(HttpResponse::json(200, &answer));
            return Ok(());
        }
        if endpoint == Endpoint::Mcp {
            mcp::check(&self.config, request)?;
        }
        let caller = Caller::of(&self.config, request, at.now_ms)?;
        if let Caller::Grant(grant) = &caller {
            if self.config.shared_rates {
                plan.charge = Some((self.bucket(&grant.tenant, &grant.user), grant.jti.clone()));
            } else {
                let rate = self.rate();
                // With whose it is, since others may choose the same id for theirs.
                let Grant {
                    tenant, user, jti, ..
                } = &**grant;
                self.buckets
                    .take(rate, &format!("{tenant}/{user}/{jti}"), at.now_ms)
                    .map_err(limited)?;
            }
        }
        match endpoint {
            Endpoint::Health => {}
            Endpoint::Turns => {
                let turn: TurnBody = service_body(&caller, request)?;
                caller.service(Some(&turn.tenant))?;
                self.turn(plan, turn);
            }
            Endpoint::Recall => {
                let grant = caller.grant(Verb::Recall)?;
                no_query(request)?;
                let asked: RecallBody = body(request)?;
                equal(
                    grant,
                    asked.project.as_ref(),
                    asked.thread.as_ref(),
                    asked.agent.as_ref(),
                )?;
                if asked.mode == Mode::Off {
                    plan.end = End::Prompt(Some("mode"));
                } else {
                    self.recall(
                        plan,
                        grant,
                        asked.query,
                        asked.budget_tokens,
                        asked.deadline_ms,
                    )?;
                }
            }
            Endpoint::Profile => {
                let grant = caller.grant(Verb::Profile)?;
                let asked: ProfileQuery = query(request)?;
                equal(
                    grant,
                    asked.project.as_ref(),
                    asked.thread.as_ref(),
                    asked.agent.as_ref(),
                )?;
                self.profile(plan, grant, asked.budget_tokens, asked.max_age_ms)?;
            }
            Endpoint::Grants => {
                let asked: GrantBody = service_body(&caller, request)?;
                caller.service(Some(&asked.tenant))?;
                self.grant(plan, asked, at)?;
            }
            Endpoint::List => {
                let asked: ListQuery = query(request)?;
                let named = PlaceQuery {
                    tenant: asked.tenant,
                    user: asked.user,
                    project: asked.project,
                    thread: asked.thread,
                    agent: asked.agent,
                };
                let (tenant, scope) = caller.place(named, Verb::Read)?;
                if !(1..=1_000).contains(&asked.limit) {
                    return Err(Problem::new(
                        Kind::InvalidRequest,
                        "`limit` must be 1 to 1,000",
                    ));
                }
                plan.end = End::List;
                self.ask(
                    plan,
                    &tenant,
                    Request::List {
                        scope,
                        tier: asked.tier,
                        status: asked.status,
                        domain: asked.domain,
                        limit: asked.limit,
                        after: asked.after,
                    },
                );
            }
            Endpoint::Get => {
                let (tenant, scope) = caller.place(query(request)?, Verb::Read)?;
                let id = record_id(id.as_deref())?;
                plan.end = End::Record;
                self.ask(plan, &tenant, Request::Get { scope, id });
            }
            Endpoint::ForgetScope => {
                let (tenant, scope) = caller.place(query(request)?, Verb::Forget)?;
                plan.end = End::Forgotten(true);
                let target = ForgetTarget::Scope;
                self.ask(
                    plan,
                    &tenant,
                    Request::Forget {
                        scope,
                        target,
                        preview: None,
                    },
                );
            }
            Endpoint::Forget => {
                let (tenant, scope) = caller.place(query(request)?, Verb::Forget)?;
                self.forget(plan, &tenant, scope, id.as_deref())?;
            }
            Endpoint::RemoveMemory => {
                let MemoryQuery { tenant, user } = service_query(&caller, request)?;
                caller.service(Some(&tenant))?;
                plan.end = End::Removed;
                plan.note_after = Some(Note {
                    tenant: tenant.clone(),
                    user: user.clone(),
                    what: Noting::Gone,
                });
                self.run(plan, &tenant, &user, Work::Remove);
            }
            Endpoint::Export => {
                let MemoryQuery { tenant, user } = service_query(&caller, request)?;
                caller.service(Some(&tenant))?;
                plan.end = End::Exported;
                self.run(plan, &tenant, &user, Work::Export);
            }
            Endpoint::Memories => {
                let asked: MemoriesQuery = service_query(&caller, request)?;
                caller.service(Some(&asked.tenant))?;
                plan.end = End::Reported;
                plan.report = Some(Report {
                    tenant: asked.tenant,
                    unowned: asked.owner.is_some(),
                    shard: asked.after,
                    until: asked.after.saturating_add(PAGE).min(SHARDS),
                    found: MemoriesAnswer::default(),
                });
            }
            Endpoint::Metrics => {
                // Counts of all tenants: not for a key of one.
                caller.service(None)?;
                no_query(request)?;
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                plan.end = End::Ready(HttpResponse::new(200, kind, self.metrics.text()));
            }
            Endpoint::Mcp => {
                no_query(request)?;
                let Caller::Grant(grant) = &caller else {
                    return Err(Problem::new(
                        Kind::GrantNeeded,
                        "this wants a grant for the user",
                    ));
                };
                match mcp::read(request, grant)? {
                    Wanted::Answered(response) => plan.end = End::Ready(response),
                    Wanted::Call(id, tool) => {
                        plan.mcp = Some(id);
                        self.tool(plan, grant, tool)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn bucket(&self, tenant: &Name, user: &Name) -> String {
        let purpose = "foremind service 1: name of the rates";
        format!(
            "rates-{}",
            name(self.config.master.bytes(), purpose, tenant, user.as_str())
        )
    }

    fn run(&self, plan: &mut Plan, tenant: &Name, user: &Name, work: Work) {
        plan.run = Some(Run {
            place: Place::new(self.config.master.bytes(), tenant, user),
            work,
            create: false,
            make: None,
        });
    }

    /// Work in a memory that is not made if there is none.
    fn ask(&self, plan: &mut Plan, tenant: &Name, request: Request) {
        let Some(user) = user_of(&request).cloned() else {
            return;
        };
        let work = Work::Ask {
            request,
            deadline_ms: None,
            max_age_ms: None,
        };
        self.run(plan, tenant, &user, work);
    }

    /// The same, where the memory is made if there is none.
    fn tell(&self, plan: &mut Plan, tenant: &Name, owner: Option<Owner>, request: Request) {
        self.ask(plan, tenant, request);
        if let Some(run) = &mut plan.run
            && let Work::Ask { request, .. } = &run.work
            && let Some(user) = user_of(request)
        {
            let note = Note {
                tenant: tenant.clone(),
                user: user.clone(),
                what: Noting::Known(owner.clone()),
            };
            plan.note = owner.is_some().then(|| note.clone());
            run.make = Some(note);
        }
    }

    fn turn(&mut self, plan: &mut Plan, turn: TurnBody) {
        let ignored = turn.ignored();
        plan.end = End::Turn(ignored);
        if ignored.is_none() {
            let (tenant, owner) = (turn.tenant.clone(), turn.owner.clone());
            self.tell(plan, &tenant, owner, turn.into_request());
        }
    }

    fn recall(
        &self,
        plan: &mut Plan,
        grant: &Grant,
        query: String,
        budget_tokens: u32,
        deadline_ms: Option<u32>,
    ) -> Result<(), Problem> {
        let deadline_ms = deadline_ms.unwrap_or(self.config.recall_ms);
        if !(1..=DEADLINE_MS).contains(&deadline_ms) {
            return Err(Problem::new(
                Kind::InvalidRequest,
                "`deadlineMs` must be 1 to 5,000",
            ));
        }
        let request = Request::Recall {
            audience: Audience::Device,
            scope: grant.scope(),
            query,
            budget_tokens: budget(budget_tokens)?,
            exposure: Exposure::Full,
            as_of_ms: None,
            deadline_ms: Some(deadline_ms),
            explain: false,
        };
        plan.end = End::Prompt(None);
        let work = Work::Ask {
            request,
            deadline_ms: Some(deadline_ms),
            max_age_ms: None,
        };
        self.run(plan, &grant.tenant, &grant.user, work);
        Ok(())
    }

    fn profile(
        &self,
        plan: &mut Plan,
        grant: &Grant,
        budget_tokens: u32,
        max_age_ms: Option<u32>,
    ) -> Result<(), Problem> {
        let request = Request::Profile {
            audience: Audience::Device,
            scope: grant.scope(),
            budget_tokens: budget(budget_tokens)?,
            as_of_ms: None,
        };
        plan.end = End::Prompt(None);
        let work = Work::Ask {
            request,
            deadline_ms: None,
            max_age_ms,
        };
        self.run(plan, &grant.tenant, &grant.user, work);
        Ok(())
    }

    fn grant(&self, plan: &mut Plan, asked: GrantBody, at: &Ambient) -> Result<(), Problem> {
        let invalid = |detail: &str| Problem::new(Kind::InvalidRequest, detail);
        if !(1..=MAX_GRANT_S).contains(&asked.life_s) {
            return Err(invalid("`lifeS` must be 1 to 86,400"));
        }
        let mut verbs = asked.verbs;
        verbs.sort_unstable();
        verbs.dedup();
        if verbs.is_empty() {
            return Err(invalid("a grant needs a verb"));
        }
        plan.note = asked.owner.is_some().then(|| Note {
            tenant: asked.tenant.clone(),
            user: asked.user.clone(),
            what: Noting::Known(asked.owner),
        });
        if !self
            .config
            .grants_for(self.config.signing_kid.as_str(), &asked.tenant)
        {
            return Err(Problem::new(
                Kind::Outside,
                "the key that signs is for another tenant",
            ));
        }
        let scope = Scope {
            user: asked.user,
            project: asked.project,
            thread: asked.thread,
            agent: asked.agent,
        };
        let grant = Grant::new(
            scope,
            asked.tenant,
            verbs,
            asked.life_s,
            at.now_ms,
            &at.entropy,
        );
        let grant = grant
            .ok_or_else(|| Problem::new(Kind::Internal, "the host's clock is out of range"))?;
        plan.end = End::Granted(Box::new(grant));
        Ok(())
    }

    fn forget(
        &self,
        plan: &mut Plan,
        tenant: &Name,
        scope: Scope,
        id: Option<&str>,
    ) -> Result<(), Problem> {
        let target = ForgetTarget::Id(record_id(id)?);
        plan.end = End::Forgotten(false);
        self.ask(
            plan,
            tenant,
            Request::Forget {
                scope,
                target,
                preview: None,
            },
        );
        Ok(())
    }

    fn tool(&mut self, plan: &mut Plan, grant: &Grant, tool: Tool) -> Result<(), Problem> {
        match tool {
            Tool::Remember(asked) => {
                plan.end = End::Remembered;
                let request = Request::Remember {
                    scope: grant.scope(),
                    text: asked.text,
                    role: Role::User,
                    thread: None,
                    turn: None,
                    tier: None,
                };
                self.tell(plan, &grant.tenant, None, request);
                Ok(())
            }
            Tool::Recall(asked) => self.recall(plan, grant, asked.query, asked.budget_tokens, None),
            Tool::Profile(asked) => self.profile(plan, grant, asked.budget_tokens, None),
            Tool::Forget(asked) => self.forget(plan, &grant.tenant, grant.scope(), Some(&asked.id)),
        }
    }

    /// Makes the answer of what was done.
    fn end(&mut self, call: &mut Call, _: &Ambient) -> Result<Said, Problem> {
        let end = core::mem::take(&mut call.plan.end);
        let ran = call.plan.ran.take();
        if let End::Prompt(reason) = end {
            return Ok(self.prompt(reason, ran));
        }
        let ran = ran.transpose()?;
        Ok(Said::from(match (end, ran) {
            (End::Ready(response), _) => response,
            (End::Turn(Some(why)), _) => {
                self.metrics.ignored(why);
                HttpResponse::json(200, &TurnAnswer::ignored(why))
            }
            (
                End::Turn(None),
                Some(Answer::Response(Response::Ingest {
                    records,
                    repeated,
                    ignored,
                })),
            ) => {
                let answer = TurnAnswer::new(&records, repeated, ignored);
                if let Some(why) = answer.ignored {
                    self.metrics.ignored(why);
                }
                HttpResponse::json(200, &answer)
            }
            (End::List, Some(Answer::Absent)) => HttpResponse::json(200, &ListAnswer::default()),
            (End::List, Some(Answer::Response(Response::List(listing)))) => {
                let answer = ListAnswer {
                    records: listing.records.iter().map(Into::into).collect(),
                    next: listing.next,
                };
                HttpResponse::json(200, &answer)
            }
            (End::Record | End::Forgotten(false), Some(Answer::Absent)) => {
                // As the engine says it of a memory that is there: whether it is, is nobody's business.
                return Err(unknown().into());
            }
            (End::Record, Some(Answer::Response(Response::Get { record }))) => {
                HttpResponse::json(200, &crate::wire::RecordBody::from(&record))
            }
            (End::Forgotten(true), Some(Answer::Absent)) => {
                HttpResponse::json(200, &ForgottenAnswer::default())
            }
            (
                End::Forgotten(_),
                Some(Answer::Response(Response::Forget {
                    erased, receipt, ..
                })),
            ) => HttpResponse::json(200, &ForgottenAnswer { erased, receipt }),
            (End::Remembered, Some(Answer::Response(Response::Remember { records }))) => {
                let records = records.iter().map(|noted| (&noted.record).into()).collect();
                HttpResponse::json(200, &RememberAnswer { records })
            }
            (End::Removed, Some(Answer::Removed | Answer::Absent)) => HttpResponse::empty(204),
            (End::Exported, Some(Answer::Absent)) => {
                return Err(Problem::new(Kind::NotFound, "there is no such memory"));
            }
            (End::Exported, Some(Answer::File(file))) => {
                HttpResponse::new(200, "application/x-ndjson", file)
            }
            (End::Granted(grant), _) => {
                let token = grant.token(&self.config);
                let answer = GrantAnswer {
                    grant: token.ok_or_else(|| {
                        Problem::new(Kind::Internal, "the grant cannot be signed")
                    })?,
                    expires_ms: grant.exp.saturating_mul(1_000),
                };
                HttpResponse::json(201, &answer)
            }
            (End::Reported, _) => {
                let found = call.plan.report.take().map(|report| report.found);
                HttpResponse::json(200, &found.unwrap_or_default())
            }
            _ => {
                return Err(Problem::new(
                    Kind::Internal,
                    "the answer is of another kind of work",
                ));
            }
        }))
    }

    fn prompt(&mut self, reason: Option<&'static str>, ran: Option<Result<Answer, Error>>) -> Said {
        let answer = match (reason, ran) {
            (Some(reason), _) => PromptAnswer::without(reason),
            (
                _,
                Some(Ok(Answer::Response(Response::Recall(prompt) | Response::Profile(prompt)))),
            ) => PromptAnswer::new(prompt, None),
            (_, Some(Ok(Answer::Late(prompt)))) => PromptAnswer::new(prompt, Some("deadline")),
            (_, Some(Ok(Answer::Replica(replica)))) => {
                let why = replica.instead_of.map(|code| match code {
                    ErrorCode::Aborted => "deadline",
                    code => code.as_str(),
                });
                PromptAnswer {
                    generation: Some(replica.generation),
                    age_ms: Some(replica.age_ms),
                    ..PromptAnswer::new(replica.prompt, why)
                }
            }
            // Nobody has told anything yet.
            (_, Some(Ok(Answer::Absent))) => PromptAnswer::default(),
            (_, Some(Err(error))) => PromptAnswer::failed(&error),
            _ => PromptAnswer::without(ErrorCode::Internal.as_str()),
        };
        if let Some(reason) = &answer.reason {
            self.metrics.fallback(reason);
        }
        Said {
            response: HttpResponse::json(200, &answer),
            text: Some(answer.prompt),
        }
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

fn record_id(text: Option<&str>) -> Result<RecordId, Problem> {
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| unknown().into())
}

fn budget(tokens: u32) -> Result<u32, Problem> {
    if (1..=BUDGET_TOKENS).contains(&tokens) {
        return Ok(tokens);
    }
    Err(Problem::new(
        Kind::InvalidRequest,
        "`budgetTokens` must be 1 to 1,000,000",
    ))
}

/// A body that only the holder of a service key may send: who may not, learns nothing about its form.
fn service_body<T: serde::de::DeserializeOwned>(
    caller: &Caller,
    request: &HttpRequest,
) -> Result<T, Problem> {
    refuse_grants(caller)?;
    no_query(request)?;
    body(request)
}

fn service_query<T: serde::de::DeserializeOwned>(
    caller: &Caller,
    request: &HttpRequest,
) -> Result<T, Problem> {
    refuse_grants(caller)?;
    routes::query(request)
}

fn refuse_grants(caller: &Caller) -> Result<(), Problem> {
    match caller {
        Caller::Grant(_) => caller.service(None),
        Caller::Service(_) => Ok(()),
    }
}

/// Whose memory a request is for.
fn user_of(request: &Request) -> Option<&Name> {
    match request {
        Request::Remember { scope, .. }
        | Request::Ingest { scope, .. }
        | Request::Recall { scope, .. }
        | Request::Profile { scope, .. }
        | Request::Get { scope, .. }
        | Request::List { scope, .. }
        | Request::Forget { scope, .. } => Some(&scope.user),
        _ => None,
    }
}
