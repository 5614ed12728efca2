//! Verbs that change nothing: recall, profile, get, list, history, pending, stats.

use std::collections::VecDeque;

use foremind_index::Work;
use foremind_types::limits::{BUDGET_TOKENS, PENDING_JUDGEMENTS, QUERY_BYTES};
use foremind_types::order::{set_of, sort_by_key};
use foremind_types::{
    Ambient, Domain, Error, ErrorCode, Judgement, Record, RecordId, Scope, Status, Tier,
};

use crate::engine::{Engine, invalid};
use crate::join::Join;
use crate::manage::unknown_id;
use crate::op::{Plan, VectorCache};
use crate::recall::{self, Question, Sight, Time, status_at};
use crate::request::{Audience, Exposure};
use crate::response::{Chain, Listing, PendingList, Prompt, Response, Stats};
use crate::state::State;
use crate::veil::Veil;

/// Most records of one page.
const PAGE_RECORDS: u32 = 1_000;
/// Most records of one history.
const CHAIN_RECORDS: usize = 1_000;

/// Which records a list shows.
pub(crate) struct Filter {
    pub(crate) tier: Option<Tier>,
    pub(crate) status: Option<Status>,
    pub(crate) domain: Option<Domain>,
    pub(crate) limit: u32,
    pub(crate) after: Option<RecordId>,
}

/// What a recall asks for.
pub(crate) struct Asked<'r> {
    pub(crate) query: &'r str,
    pub(crate) budget_tokens: u32,
    pub(crate) exposure: Exposure,
    pub(crate) audience: Audience,
    pub(crate) work: Work,
    pub(crate) explain: bool,
}

impl Engine {
    pub(crate) fn recall(
        &self,
        scope: &Scope,
        asked: &Asked<'_>,
        vectors: &VectorCache,
        time: Time,
        at: &Ambient,
    ) -> Result<Plan, Error> {
        check_budget(asked.budget_tokens)?;
        let query = asked.query.trim();
        if query.is_empty() {
            return Err(Error::new(
                ErrorCode::TextEmpty,
                "the query is empty; ask for the profile if there is no question",
            ));
        }
        let query = &query[..query.floor_char_boundary(QUERY_BYTES)];
        let sight = Sight {
            veil: Veil::new(&self.state, asked.audience),
            state: &self.state,
            scope,
            time,
        };
        let has_vectors = sight.has_vectors();
        if has_vectors && let Some(texts) = vectors.missing(core::iter::once(query)) {
            return Ok(Plan::Encode(texts));
        }
        let read = self.router.query(query);
        let question = Question {
            query: Some(query),
            vector: vectors.of(query).filter(|_| has_vectors),
            join: Some(Join {
                router: &self.router,
                query: &read,
                exposure: asked.exposure,
            }),
            then: self.router.span(
                query,
                &Ambient {
                    now_ms: time.asked_ms(),
                    ..*at
                },
            ),
            work: asked.work,
            explain: asked.explain,
        };
        let prompt = recall::recall(&sight, &question, asked.budget_tokens);
        Ok(Plan::Done(Response::Recall(prompt)))
    }

    pub(crate) fn profile(
        &self,
        scope: &Scope,
        budget_tokens: u32,
        audience: Audience,
        time: Time,
    ) -> Result<Prompt, Error> {
        profile(&self.state, scope, budget_tokens, audience, time)
    }

    /// A record as it is at `now_ms`.
    pub(crate) fn record_at(&self, id: RecordId, now_ms: i64) -> Option<Record> {
        Some(at(self.state.record(id)?, now_ms))
    }

    pub(crate) fn one(&self, scope: &Scope, id: RecordId, now_ms: i64) -> Result<Record, Error> {
        self.record_at(id, now_ms)
            .filter(|record| reaches(scope, record))
            .ok_or_else(unknown_id)
    }

    pub(crate) fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        now_ms: i64,
    ) -> Result<Listing, Error> {
        if !(1..=PAGE_RECORDS).contains(&filter.limit) {
            return Err(invalid(format!("limit must be 1 to {PAGE_RECORDS}")));
        }
        let limit = filter.limit as usize;
        let mut records: Vec<Record> = self
            .state
            .records_after(filter.after)
            .filter(|record| {
                scope.contains(&record.scope)
                    && filter.tier.is_none_or(|tier| tier == record.route.tier)
                    && filter
                        .domain
                        .is_none_or(|domain| domain == record.route.domain)
                    && filter
                        .status
                        .is_none_or(|status| status == status_at(record, now_ms))
            })
            .take(limit + 1)
            .map(|record| at(record, now_ms))
            .collect();
        let more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| more).map(|record| record.id);
        Ok(Listing { records, next })
    }

    pub(crate) fn history(
        &self,
        scope: &Scope,
        id: RecordId,
        now_ms: i64,
    ) -> Result<Vec<Chain>, Error> {
        self.one(scope, id, now_ms)?;
        let mut found = set_of([id]);
        let mut ahead = VecDeque::from([id]);
        while let Some(id) = ahead.pop_front() {
            let earlier = self
                .state
                .record(id)
                .into_iter()
                .flat_map(|record| record.supersedes.iter().map(|s| s.id));
            for next in earlier.chain(self.state.replaced_by(id)) {
                // A chain ends where the asker does not see on.
                let seen = self.one(scope, next, now_ms).is_ok();
                if seen && found.len() < CHAIN_RECORDS && found.insert(next) {
                    ahead.push_back(next);
                }
            }
        }
        let mut chain: Vec<Chain> = found
            .into_iter()
            .filter_map(|id| self.one(scope, id, now_ms).ok())
            .map(|record| Chain {
                superseded_by: self
                    .state
                    .replaced_by(record.id)
                    .filter(|later| self.one(scope, *later, now_ms).is_ok())
                    .collect(),
                record,
            })
            .collect();
        sort_by_key(&mut chain, |link| {
            (link.record.times.told_ms, link.record.id)
        });
        Ok(chain)
    }

    pub(crate) fn pending(&self, scope: &Scope, now_ms: i64) -> PendingList {
        let waiting = self.state.records().rev().filter(|record| {
            record.route.judgement == Judgement::Pending
                && scope.contains(&record.scope)
                && status_at(record, now_ms) == Status::Current
        });
        let mut list = PendingList {
            records: Vec::new(),
            waiting: 0,
        };
        for record in waiting {
            list.waiting += 1;
            if list.records.len() < PENDING_JUDGEMENTS {
                list.records.push(record.clone());
            }
        }
        list
    }

    pub(crate) fn stats(&self, scope: &Scope, now_ms: i64) -> Stats {
        let mut stats = Stats::default();
        for record in self.state.records().filter(|r| scope.contains(&r.scope)) {
            stats.records += 1;
            stats.text_bytes += record.text.len() as u64;
            if status_at(record, now_ms) != Status::Current {
                continue;
            }
            stats.current += 1;
            match record.route.tier {
                Tier::Profile => stats.profile += 1,
                Tier::Store => stats.store += 1,
            }
            match record.route.judgement {
                Judgement::Settled => {}
                Judgement::Pending => stats.pending += 1,
                Judgement::Unrouted => stats.unrouted += 1,
            }
            if !self.state.has_vector(record.id) {
                stats.without_vector += 1;
            }
        }
        stats
    }
}

/// The prompt without a query.
pub(crate) fn profile(
    state: &State,
    scope: &Scope,
    budget_tokens: u32,
    audience: Audience,
    time: Time,
) -> Result<Prompt, Error> {
    check_budget(budget_tokens)?;
    let sight = Sight {
        veil: Veil::new(state, audience),
        state,
        scope,
        time,
    };
    let question = Question {
        query: None,
        vector: None,
        join: None,
        then: None,
        work: Work::unbounded(),
        explain: false,
    };
    Ok(recall::recall(&sight, &question, budget_tokens))
}

/// Who may look at a record: whoever sees it when recalling, and whoever administers a scope around it.
fn reaches(scope: &Scope, record: &Record) -> bool {
    scope.sees(&record.scope) || scope.contains(&record.scope)
}

/// The record with the passing of time taken into account.
fn at(record: &Record, now_ms: i64) -> Record {
    Record {
        status: status_at(record, now_ms),
        ..record.clone()
    }
}

fn check_budget(budget_tokens: u32) -> Result<(), Error> {
    if !(1..=BUDGET_TOKENS).contains(&budget_tokens) {
        return Err(invalid(format!(
            "budgetTokens must be 1 to {BUDGET_TOKENS}"
        )));
    }
    Ok(())
}
