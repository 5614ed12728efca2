//! The prompt of a query: the visible profile, and what words and meaning of the query bring back.

use std::collections::BTreeSet;

use foremind_types::small::SmallMap;

use foremind_index::{dequantise, fuse};
use foremind_types::limits::{CONTEXT_ITEMS, CONTEXT_ITEMS_PER_DOMAIN, PROFILE_ITEMS};
use foremind_types::order::set_of;
use foremind_types::{
    Domain, Embedding, Grade, Record, RecordId, Scope, Status, SupersedeKind, Supersedes, Tier,
};

use crate::join::{Join, Joined};
use crate::profile::{self, Candidate};
use crate::render;
use crate::response::{Dropped, DroppedReason, Prompt, Section, Shown};
use crate::state::State;
use crate::tokens;
use crate::veil::Veil;

/// Least share of the query's informative words that a record must have to be found by words.
const WORDS_FLOOR: f32 = 0.25;
/// Least cosine to be found by meaning: unrelated sentences lie around 0.1 with the shipped model.
const MEANING_FLOOR: f32 = 0.25;
/// Least cosine where another record is above [`MEANING_FLOOR`]: the question has an answer here, and this may be the rest
/// of it.
const MEANING_FLOOR_BESIDE: f32 = 0.15;
/// So far behind the nearest, in cosine, is nothing that answers the same question.
const BESIDE_DISTANCE: f32 = 0.3;
/// Most steps from a replaced record to what is current.
const LINE_STEPS: usize = 1_024;
/// Most records that are shown because a link joins them to one that was found.
const LINKED_SHOWN: usize = 3;
/// Dropped records from which on circumstances are no longer reported.
const REPORTED: usize = 64;
/// Most candidates of each ranking.
const CANDIDATES: usize = 64;

/// What is asked.
pub(crate) struct Question<'q> {
    /// The words; absent for the profile alone.
    pub(crate) query: Option<&'q str>,
    /// The query's vector, if it has one.
    pub(crate) vector: Option<&'q Embedding>,
    /// What the query asks about; absent for the profile alone.
    pub(crate) join: Option<Join<'q>>,
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

    /// The visible records that may contradict `record`, by id.
    fn conflicts(&self, record: &Record) -> impl Iterator<Item = &'s Record> {
        self.linked(record, &[SupersedeKind::Conflict])
    }

    /// The visible records that a link of one of the kinds joins to `record`, by id.
    fn linked(&self, record: &Record, kinds: &[SupersedeKind]) -> impl Iterator<Item = &'s Record> {
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
    fn leads_on(&self, record: &Record) -> bool {
        self.scope.sees(&record.scope)
            && self.time.knows(record)
            && matches!(
                self.time.status(record),
                Status::Superseded | Status::Retracted
            )
    }

    /// The visible records that took the place of `id`, by id.
    fn successors(&self, id: RecordId) -> BTreeSet<RecordId> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([id]);
        let mut ahead = vec![id];
        while let Some(id) = ahead.pop() {
            for next in self.state.replaced_by(id) {
                if seen.len() >= LINE_STEPS || !seen.insert(next) {
                    continue;
                }
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

    /// Puts in the place of what was replaced what replaced it; each stands once, at its best place.
    fn current(
        &self,
        ids: impl Iterator<Item = RecordId>,
        shown: &BTreeSet<RecordId>,
    ) -> Vec<RecordId> {
        let mut current: Vec<RecordId> = Vec::new();
        let mut listed: BTreeSet<RecordId> = shown.clone();
        for id in ids {
            let places = match self.record(id) {
                Some(_) => BTreeSet::from([id]),
                None => self.successors(id),
            };
            current.extend(places.into_iter().filter(|id| listed.insert(*id)));
        }
        current
    }

    fn record(&self, id: RecordId) -> Option<&'s Record> {
        self.state.record(id).filter(|record| self.sees(record))
    }

    /// Whether any visible record has a vector.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.state.vectors().is_empty()
            && self
                .state
                .records()
                .any(|record| self.state.has_vector(record.id) && self.sees(record))
    }
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

/// Renders the prompt.
pub(crate) fn recall(sight: &Sight<'_>, question: &Question<'_>, budget_tokens: u32) -> Prompt {
    let heading = |text| tokens::estimate_line(text).saturating_add(1);
    let frame = [render::OPEN, render::PREAMBLE]
        .into_iter()
        .map(heading)
        .sum::<u32>()
        + tokens::estimate_line(render::CLOSE);
    let mut left = budget_tokens.saturating_sub(frame);

    let candidates: Vec<Candidate<'_>> = sight
        .state
        .records()
        .filter(|record| profile::is_candidate(record) && sight.sees(record))
        .filter(|record| {
            question
                .join
                .as_ref()
                .is_none_or(|join| join.exposes(record))
        })
        .map(|record| Candidate {
            record,
            last_heard_ms: sight.state.last_heard_ms(record),
            conflicting: sight.conflicts(record).next().is_some(),
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
        let current = sight
            .state
            .records()
            .filter(|record| sight.sees(record))
            .map(|record| Candidate {
                record,
                last_heard_ms: sight.state.last_heard_ms(record),
                conflicting: false,
            });
        let room = left.saturating_sub(heading(render::JOINED));
        (joined, unjoined) = fit_joined(sight, join, join.joined(current, &shown), room);
        if !joined.is_empty() {
            left = room - joined.iter().map(|shown| shown.tokens).sum::<u32>();
        }
        shown.extend(joined.iter().map(|shown| shown.record.id));
    }

    let found = find(sight, question, &shown);
    let room = left.saturating_sub(heading(render::CONTEXT));
    let (context, unshown) = fit(sight, found.records, domains, room);
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
        domains: domains.clone(),
        stable_until_ms,
    }
}

struct Found<'s> {
    /// Best first, with how they were found.
    records: Vec<(&'s Record, Vec<&'static str>)>,
    lexical_only: bool,
}

/// What words and meaning bring back, those left out that are `shown` already.
fn find<'s>(sight: &Sight<'s>, question: &Question<'_>, shown: &BTreeSet<RecordId>) -> Found<'s> {
    let accepts = |id: RecordId| {
        !shown.contains(&id)
            && sight
                .state
                .record(id)
                .is_some_and(|record| sight.sees(record) || sight.leads_on(record))
    };
    let groups = sight.state.words().groups(|told| sight.scope.sees(told));
    let words: Vec<RecordId> = question
        .query
        .map_or(Vec::new(), |query| {
            sight.state.words().words().search(
                query,
                |group| groups.contains(&group),
                accepts,
                CANDIDATES,
            )
        })
        .into_iter()
        .filter(|hit| hit.coverage >= WORDS_FLOOR)
        .map(|hit| hit.id)
        .collect();
    let words = sight.current(words.into_iter(), shown);
    let vector = question
        .vector
        .and_then(|vector| Some((vector, dequantise(vector).ok()?)));
    let meaning: Vec<(RecordId, f32)> = vector.as_ref().map_or(Vec::new(), |(vector, wide)| {
        sight
            .state
            .vectors()
            .search(
                &vector.model_id,
                &vector.head_id,
                wide,
                MEANING_FLOOR_BESIDE,
                accepts,
                CANDIDATES,
            )
            .into_iter()
            .map(|hit| (hit.id, hit.score))
            .collect()
    });
    let answered = meaning
        .first()
        .is_some_and(|(_, score)| *score >= MEANING_FLOOR);
    let nearest = if answered {
        meaning.first().map_or(0.0, |(_, score)| *score)
    } else {
        0.0
    };
    // Far behind the nearest is noise.
    let floor = (nearest - BESIDE_DISTANCE).max(MEANING_FLOOR_BESIDE);
    let meaning: Vec<RecordId> = meaning
        .into_iter()
        .filter(|(_, score)| answered && *score >= floor)
        .map(|(id, _)| id)
        .collect();
    let meaning = sight.current(meaning.into_iter(), shown);
    let mut fused: Vec<RecordId> = fuse(&[&words, &meaning])
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    with_linked(sight, &mut fused, shown);
    let records = fused
        .into_iter()
        .filter_map(|id| {
            let by = [("words", &words), ("meaning", &meaning)];
            let why = by
                .into_iter()
                .filter(|(_, ranking)| ranking.contains(&id))
                .map(|(name, _)| name)
                .collect();
            Some((sight.record(id)?, why))
        })
        .collect();
    Found {
        records,
        lexical_only: vector.is_none(),
    }
}

/// Puts behind each record those that may contradict it or belong to it: they are shown together.
fn with_linked(sight: &Sight<'_>, ids: &mut Vec<RecordId>, shown: &BTreeSet<RecordId>) {
    let mut listed: BTreeSet<RecordId> = shown.clone();
    let mut together = Vec::with_capacity(ids.len());
    for id in ids.drain(..) {
        if !listed.insert(id) {
            continue;
        }
        together.push(id);
        let Some(record) = sight.record(id) else {
            continue;
        };
        let others = sight
            .linked(record, &[SupersedeKind::Conflict, SupersedeKind::Beside])
            .map(|other| other.id);
        together.extend(others.take(LINKED_SHOWN).filter(|id| listed.insert(*id)));
    }
    *ids = together;
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
        let line = render::line(record, sight.conflicts(record).next().is_some(), sight.veil);
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
    found: Vec<(&Record, Vec<&'static str>)>,
    named: &[Domain],
    room_tokens: u32,
) -> (Vec<Shown>, Vec<Dropped>) {
    let mut context: Vec<Shown> = Vec::new();
    let mut dropped = Vec::new();
    let mut used = 0_u32;
    let mut of_domain: SmallMap<Domain, usize> = SmallMap::new();
    for (record, why) in found {
        let domain = record.route.domain;
        // "General" is the lack of a domain.
        let counted = domain != Domain::General && !named.contains(&domain);
        let line = render::line(record, sight.conflicts(record).next().is_some(), sight.veil);
        let tokens = tokens::estimate_line(&line).saturating_add(1);
        let places = of_domain.entry(domain).or_default();
        let lacks = if context.len() >= CONTEXT_ITEMS {
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
                    why: why.into_iter().map(str::to_owned).collect(),
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
