//! The prompt of a query: the visible profile, what bears on the question, and what was found for it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use foremind_types::small::SmallMap;

use foremind_index::{Work, tokens};
use foremind_router::MAY_REPLACE;
use foremind_types::limits::{CONTEXT_ITEMS, CONTEXT_ITEMS_PER_DOMAIN, PROFILE_ITEMS};
use foremind_types::order::set_of;
use foremind_types::{
    Domain, Embedding, Grade, Record, RecordId, Scope, Severity, Status, SupersedeKind, Supersedes,
    Tier, Ttl,
};

use crate::find::{Found, Hit, find};
use crate::join::{Join, Joined};
use crate::profile::{self, Candidate};
use crate::render::{self, Mark};
use crate::response::{Dropped, DroppedReason, Prompt, Section, Shown};
use crate::state::State;
use crate::veil::Veil;

/// Most steps from a replaced record to what is current.
const LINE_STEPS: usize = 1_024;
/// Tokens that a line has at least: its domain, who told it and when.
const LEAST_TOKENS: u32 = 12;
/// Dropped records from which on circumstances are no longer reported.
const REPORTED: usize = 64;

/// What is asked.
pub(crate) struct Question<'q> {
    /// The words; absent for the profile alone.
    pub(crate) query: Option<&'q str>,
    /// The query's vector, if it has one.
    pub(crate) vector: Option<&'q Embedding>,
    /// What the query asks about; absent for the profile alone.
    pub(crate) join: Option<Join<'q>>,
    /// The time that the query names, from and until, Unix milliseconds.
    pub(crate) then: Option<(i64, i64)>,
    /// How much may be looked at.
    pub(crate) work: Work,
    /// Whether each item tells how it was found.
    pub(crate) explain: bool,
}

/// Where a record may be shown: current at `now_ms` and visible from the scope.
pub(crate) struct Sight<'s> {
    pub(crate) state: &'s State,
    pub(crate) scope: &'s Scope,
    pub(crate) time: Time,
    pub(crate) veil: Veil<'s>,
}

/// When something is asked, and for when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    now_ms: i64,
    /// Only if it is past.
    as_of_ms: Option<i64>,
}

impl Time {
    /// A time to come is now: nobody knows more of it.
    pub(crate) fn new(now_ms: i64, as_of_ms: Option<i64>) -> Self {
        Self {
            now_ms,
            as_of_ms: as_of_ms.filter(|at_ms| *at_ms < now_ms),
        }
    }

    /// The time that is asked for.
    pub(crate) fn asked_ms(self) -> i64 {
        self.as_of_ms.unwrap_or(self.now_ms)
    }

    fn status(self, record: &Record) -> Status {
        match self.as_of_ms {
            None => status_at(record, self.now_ms),
            Some(at_ms) => status_as_of(record, at_ms),
        }
    }

    /// Whether it had been told by then.
    fn knows(self, record: &Record) -> bool {
        self.as_of_ms
            .is_none_or(|at_ms| record.times.told_ms <= at_ms)
    }
}

impl<'s> Sight<'s> {
    pub(crate) fn sees(&self, record: &Record) -> bool {
        self.scope.sees(&record.scope)
            && self.time.knows(record)
            && self.time.status(record) == Status::Current
    }

    /// Whether its own time ran out: a question that finds it shows it as past. An exception that is over says nothing any
    /// more: what it was an exception to holds.
    pub(crate) fn is_past(&self, record: &Record) -> bool {
        let excepts = |link: &Supersedes| link.kind == SupersedeKind::Excepted;
        self.scope.sees(&record.scope)
            && self.time.knows(record)
            && record.status == Status::Current
            && self.time.status(record) == Status::Expired
            && !record.supersedes.iter().any(excepts)
    }

    /// What its line says beside its dates. What endangers or lasts by its nature is never called outdated by a likeness.
    fn mark(&self, record: &Record) -> Mark {
        if self.is_past(record) {
            return Mark::Past;
        }
        let lasting = is_lasting(record);
        let mut mark = Mark::Plain;
        for other in self.linked(record, &[SupersedeKind::Conflict]) {
            let begun = other
                .times
                .valid_from_ms
                .is_none_or(|from_ms| from_ms <= self.time.asked_ms());
            let replaces = |link: &Supersedes| link.id == record.id && link.why == MAY_REPLACE;
            if begun && !lasting && other.supersedes.iter().any(replaces) {
                return Mark::Outdated(other.times.told_ms);
            }
            mark = Mark::Conflicting;
        }
        mark
    }

    /// The visible records that a link of one of the kinds joins to `record`, by id.
    pub(crate) fn linked(
        &self,
        record: &Record,
        kinds: &[SupersedeKind],
    ) -> impl Iterator<Item = &'s Record> {
        let conflict = |link: &&Supersedes| kinds.contains(&link.kind);
        let earlier = record
            .supersedes
            .iter()
            .filter(conflict)
            .map(|link| link.id);
        let later = self.state.replaced_by(record.id).filter(|id| {
            self.state.record(*id).is_some_and(|later| {
                later
                    .supersedes
                    .iter()
                    .any(|link| link.id == record.id && kinds.contains(&link.kind))
            })
        });
        let ids = set_of(earlier.chain(later));
        ids.into_iter().filter_map(|id| self.record(id))
    }

    /// Whether it was replaced by something, so that what it says leads to that.
    pub(crate) fn leads_on(&self, record: &Record) -> bool {
        self.scope.sees(&record.scope)
            && self.time.knows(record)
            && matches!(
                self.time.status(record),
                Status::Superseded | Status::Retracted
            )
    }

    /// The visible records that took the place of `id`, by id. What is in `seen` was come by before and is passed over.
    pub(crate) fn successors(
        &self,
        id: RecordId,
        seen: &mut BTreeSet<RecordId>,
    ) -> BTreeSet<RecordId> {
        let mut found = BTreeSet::new();
        let mut steps = 0;
        seen.insert(id);
        let mut ahead = vec![id];
        while let Some(id) = ahead.pop() {
            for next in self.state.replaced_by(id) {
                if steps >= LINE_STEPS || !seen.insert(next) {
                    continue;
                }
                steps += 1;
                let Some(record) = self.state.record(next) else {
                    continue;
                };
                if self.sees(record) {
                    found.insert(next);
                } else if self.leads_on(record) {
                    ahead.push(next);
                }
            }
        }
        found
    }

    pub(crate) fn record(&self, id: RecordId) -> Option<&'s Record> {
        self.state.record(id).filter(|record| self.sees(record))
    }

    /// Whether any visible record has a vector.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.state.vectors().is_empty()
            && self.state.with_vectors().any(|record| self.sees(record))
    }
}

/// Whether it endangers when it is missing, or lasts by its nature.
pub(crate) fn is_lasting(record: &Record) -> bool {
    record.route.severity == Severity::Severe || record.route.ttl == Ttl::Permanent
}

/// When a record stops to count by itself, if it does.
pub(crate) fn ends_ms(record: &Record) -> Option<i64> {
    let ends = [record.route.ttl.until_ms(), record.times.valid_to_ms];
    ends.into_iter().flatten().min()
}

/// The status with the passing of time taken into account.
pub(crate) fn status_at(record: &Record, now_ms: i64) -> Status {
    let over = ends_ms(record).is_some_and(|ends| ends <= now_ms);
    match record.status {
        // What ends on a day that was set for it is replaced then; its own time runs out otherwise.
        Status::Current if record.times.valid_to_ms.is_some_and(|to| to <= now_ms) => {
            Status::Superseded
        }
        Status::Current if over => Status::Expired,
        status => status,
    }
}

/// The status at a time of the past: what was replaced later was current then; what was never true was not.
fn status_as_of(record: &Record, at_ms: i64) -> Status {
    let over = ends_ms(record).is_some_and(|ends| ends <= at_ms);
    match record.status {
        Status::Superseded if record.times.valid_to_ms.is_some_and(|to| to > at_ms) && !over => {
            Status::Current
        }
        Status::Current => status_at(record, at_ms),
        status => status,
    }
}

/// Tokens of a heading and its break.
fn heading(text: &str) -> u32 {
    tokens::estimate_line(text).saturating_add(1)
}

/// Tokens of what every prompt has.
fn frame_tokens() -> u32 {
    static FRAME: OnceLock<u32> = OnceLock::new();
    *FRAME.get_or_init(|| {
        heading(render::OPEN) + heading(render::PREAMBLE) + tokens::estimate_line(render::CLOSE)
    })
}

/// Renders the prompt.
pub(crate) fn recall(sight: &Sight<'_>, question: &Question<'_>, budget_tokens: u32) -> Prompt {
    let frame = frame_tokens();
    let mut left = budget_tokens.saturating_sub(frame);

    let bearing = sight.state.bearing().filter(|record| sight.sees(record));
    let bearing: Vec<&Record> = bearing.collect();
    let candidates: Vec<Candidate<'_>> = bearing
        .iter()
        .copied()
        .filter(|record| profile::is_candidate(record))
        .filter(|record| {
            question
                .join
                .as_ref()
                .is_none_or(|join| join.exposes(record))
        })
        .map(|record| Candidate {
            record,
            last_heard_ms: sight.state.last_heard_ms(record),
            mark: sight.mark(record),
        })
        .collect();
    let stable_until_ms = candidates.iter().filter_map(|c| ends_ms(c.record)).min();
    let room = left.saturating_sub(heading(render::PROFILE));
    let mut visible = profile::choose(candidates, budget_tokens, room, sight.veil);
    if !visible.shown.is_empty() {
        left = room - visible.tokens;
    }
    let mut shown = set_of(visible.shown.iter().map(|shown| shown.record.id));

    let mut joined = Vec::new();
    let mut unjoined = Vec::new();
    let mut domains = &Vec::new();
    if let Some(join) = &question.join {
        domains = &join.query.domains;
        for shown in &mut visible.shown {
            shown.why.extend(join.why(&shown.record));
        }
        let current = bearing.iter().map(|record| Candidate {
            record,
            last_heard_ms: sight.state.last_heard_ms(record),
            mark: Mark::Plain,
        });
        let room = left.saturating_sub(heading(render::JOINED));
        (joined, unjoined) = fit_joined(sight, join, join.joined(current, &shown), room);
        if !joined.is_empty() {
            left = room - joined.iter().map(|shown| shown.tokens).sum::<u32>();
        }
        shown.extend(joined.iter().map(|shown| shown.record.id));
    }

    let mut found = match question.query {
        Some(_) => find(sight, question),
        None => Found {
            hits: Vec::new(),
            lexical_only: true,
            partial: false,
        },
    };
    if question.explain {
        for shown in visible.shown.iter_mut().chain(&mut joined) {
            let hit = found
                .hits
                .iter()
                .find(|hit| hit.record.id == shown.record.id);
            shown.explain = hit.map(|hit| hit.explain.clone());
        }
    }
    found.hits.retain(|hit| !shown.contains(&hit.record.id));
    let room = left.saturating_sub(heading(render::CONTEXT));
    let (context, unshown) = fit(sight, found.hits, domains, room, question.explain);
    let retrieved = set_of(context.iter().chain(&joined).map(|shown| shown.record.id));
    let mut dropped = visible.dropped;
    let reported = set_of(dropped.iter().map(|dropped| dropped.id));
    dropped.extend(unjoined.into_iter().filter(|d| !reported.contains(&d.id)));
    dropped.retain(|dropped| !retrieved.contains(&dropped.id));
    let reported = set_of(dropped.iter().map(|dropped| dropped.id));
    dropped.extend(unshown.into_iter().filter(|d| !reported.contains(&d.id)));

    let lines = |section: &'_ [Shown]| -> Vec<String> {
        section.iter().map(|shown| shown.line.clone()).collect()
    };
    let (profile_lines, joined_lines) = (lines(&visible.shown), lines(&joined));
    let context_lines = lines(&context);
    let prompt = render::prompt(
        profile_lines.iter().map(String::as_str),
        joined_lines.iter().map(String::as_str),
        context_lines.iter().map(String::as_str),
    );
    let section = |title: &'static str, shown: &[Shown]| match shown {
        [] => 0,
        _ => heading(title) + shown.iter().map(|shown| shown.tokens).sum::<u32>(),
    };
    // The lines were estimated when they were chosen, and the whole is their sum.
    let tokens = match prompt.is_empty() {
        true => 0,
        false => {
            frame
                + section(render::PROFILE, &visible.shown)
                + section(render::JOINED, &joined)
                + section(render::CONTEXT, &context)
        }
    };
    debug_assert_eq!(tokens, tokens::estimate(&prompt));
    let records = visible.shown.iter().chain(&joined).chain(&context);
    Prompt {
        pseudonyms: sight.veil.pseudonyms(records.map(|shown| &shown.record)),
        tokens,
        prompt,
        budget_tokens,
        profile: visible.shown,
        joined,
        context,
        dropped,
        lexical_only: found.lexical_only,
        partial: found.partial,
        domains: domains.clone(),
        stable_until_ms,
    }
}

/// Takes of what bears on the question what finds room, closest first. What only shares a domain with it leaves half of
/// the room to the context.
fn fit_joined(
    sight: &Sight<'_>,
    join: &Join<'_>,
    joined: Vec<Joined<'_>>,
    room_tokens: u32,
) -> (Vec<Shown>, Vec<Dropped>) {
    let mut taken: Vec<Shown> = Vec::new();
    let mut dropped = Vec::new();
    let mut used = 0_u32;
    for joined in joined {
        let record = joined.record;
        let line = render::line(record, sight.mark(record), sight.veil);
        let tokens = tokens::estimate_line(&line).saturating_add(1);
        let room = if joined.is_close() {
            room_tokens
        } else {
            room_tokens / 2
        };
        let lacks = if taken.len() >= PROFILE_ITEMS {
            Some(DroppedReason::Items)
        } else if tokens > room.saturating_sub(used) {
            Some(DroppedReason::Tokens)
        } else {
            None
        };
        match lacks {
            None => {
                used += tokens;
                taken.push(Shown {
                    record: record.clone(),
                    line,
                    tokens,
                    why: join.why(record),
                    explain: None,
                });
            }
            // What stays behind in the profile is reported there; the store's is not missed.
            Some(reason) if record.route.tier == Tier::Profile => {
                if record.route.grade == Grade::Modifier || dropped.len() < REPORTED {
                    dropped.push(Dropped {
                        id: record.id,
                        section: Section::Joined,
                        tokens,
                        reason,
                    });
                }
            }
            Some(_) => {}
        }
    }
    (taken, dropped)
}

/// Takes what finds room, best first.
fn fit(
    sight: &Sight<'_>,
    found: Vec<Hit<'_>>,
    named: &[Domain],
    room_tokens: u32,
    explain: bool,
) -> (Vec<Shown>, Vec<Dropped>) {
    let mut context: Vec<Shown> = Vec::new();
    let mut dropped = Vec::new();
    let mut used = 0_u32;
    let mut of_domain: SmallMap<Domain, usize> = SmallMap::new();
    for hit in found {
        let full = context.len() >= CONTEXT_ITEMS;
        // As many again as can be shown: what ranks behind those is not missed.
        if (full || room_tokens - used < LEAST_TOKENS) && dropped.len() >= CONTEXT_ITEMS {
            break;
        }
        let record = hit.record;
        let domain = record.route.domain;
        // "General" is the lack of a domain.
        // What the best is about is what is asked about.
        let best = context
            .first()
            .is_none_or(|best| best.record.route.domain == domain);
        let counted = domain != Domain::General && !named.contains(&domain) && !best;
        // As in the profile: what is not shown is not veiled.
        let veil = if full { sight.veil.bare() } else { sight.veil };
        let line = render::line(record, sight.mark(record), veil);
        let tokens = tokens::estimate_line(&line).saturating_add(1);
        let places = of_domain.entry(domain).or_default();
        let lacks = if full {
            Some(DroppedReason::Items)
        } else if counted && *places >= CONTEXT_ITEMS_PER_DOMAIN {
            Some(DroppedReason::Domain)
        } else if tokens > room_tokens - used {
            Some(DroppedReason::Tokens)
        } else {
            None
        };
        match lacks {
            None => {
                used += tokens;
                *places += 1;
                context.push(Shown {
                    record: record.clone(),
                    line,
                    tokens,
                    why: hit.why.into_iter().map(str::to_owned).collect(),
                    explain: explain.then_some(hit.explain),
                });
            }
            Some(reason) => dropped.push(Dropped {
                id: record.id,
                section: Section::Context,
                tokens,
                reason,
            }),
        }
    }
    (context, dropped)
}
