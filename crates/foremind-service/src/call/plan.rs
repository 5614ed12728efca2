//! What a request wants done: who makes it, and what that takes.

use foremind_engine::{Audience, Exposure, ForgetTarget, Request};
use foremind_types::limits::BUDGET_TOKENS;
use foremind_types::{Ambient, Name, RecordId, Role, Scope};

use super::{Call, End, Plan, Report, Run, Service, Work, limited, unknown};
use crate::directory::{Note, Noting, SHARDS};
use crate::grant::{Grant, MAX_GRANT_S, Verb};
use crate::http::{HttpRequest, HttpResponse, Kind, Problem};
use crate::mcp::{self, Tool, Wanted};
use crate::place::{Place, name};
use crate::routes::{self, Caller, Endpoint, body, equal, no_query, query};
use crate::wire::{
    GrantBody, HealthAnswer, ListQuery, MemoriesAnswer, MemoriesQuery, MemoryQuery, Mode, Owner,
    PlaceQuery, ProfileQuery, RecallBody, TurnBody,
};

/// Most milliseconds that a recall may be given.
const DEADLINE_MS: u32 = 5_000;
/// Shards that one page of the report reads.
const PAGE: u16 = 16;

impl Service {
    /// Reads the request: who makes it, and what is to be done.
    pub(super) fn plan(
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
