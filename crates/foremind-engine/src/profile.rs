//! Which records stand in the visible profile, and in which order: a pure function of the records and the time.

use foremind_index::tokens;
use foremind_types::small::SmallMap;
use std::cmp::Reverse;

use foremind_types::limits::{PROFILE_BUDGET_PERCENT, PROFILE_ITEMS};
use foremind_types::order::sort_by_key;
use foremind_types::{Domain, Grade, Judgement, Record, Severity, Stage, Tier};

use crate::render::{self, Mark};
use crate::response::{Dropped, DroppedReason, Section, Shown};
use crate::veil::Veil;

/// So many records of each domain go before the others of equal grade and severity.
const DOMAIN_SLOTS: u32 = 2;
/// Most demoted circumstances that are reported; modifiers are all reported.
const REPORTED_CIRCUMSTANCES: usize = 64;

/// What takes more than this part of the room gives way to what takes less, unless it could endanger: in place of one long
/// passage a handful of facts is shown.
const BULK: u64 = 6;

/// A record that may stand in the profile.
pub(crate) struct Candidate<'s> {
    pub(crate) record: &'s Record,
    /// When it was last told or confirmed, Unix milliseconds.
    pub(crate) last_heard_ms: i64,
    /// Whether another current record may contradict it.
    pub(crate) mark: Mark,
}

/// The visible profile.
#[derive(Default)]
pub(crate) struct Visible {
    /// Modifiers first.
    pub(crate) shown: Vec<Shown>,
    pub(crate) dropped: Vec<Dropped>,
    /// Tokens of all lines.
    pub(crate) tokens: u32,
}

/// Chooses among current records of the profile tier. `room_tokens` is what the whole prompt leaves for the
/// lines; the profile takes at most [`PROFILE_BUDGET_PERCENT`] of `budget_tokens` of it.
pub(crate) fn choose(
    candidates: Vec<Candidate<'_>>,
    budget_tokens: u32,
    room_tokens: u32,
    veil: Veil<'_>,
) -> Visible {
    let share = u64::from(budget_tokens) * u64::from(PROFILE_BUDGET_PERCENT) / 100;
    let limit = u64::from(room_tokens).min(share);
    let mut visible = Visible::default();
    let mut circumstances_reported = 0;
    let bulk = limit / BULK;
    let (lean, bulky): (Vec<_>, Vec<_>) = rank(candidates).into_iter().partition(|candidate| {
        let record = candidate.record;
        record.route.severity == Severity::Severe
            || u64::from(tokens::estimate_line(&record.text)) <= bulk
    });
    for Candidate { record, mark, .. } in lean.into_iter().chain(bulky) {
        let full = visible.shown.len() >= PROFILE_ITEMS;
        // What is not shown is not veiled: its cost is that of the whole text.
        let line = render::line(record, mark, if full { veil.bare() } else { veil });
        // The line and its break.
        let tokens = tokens::estimate_line(&line).saturating_add(1);
        let lacks = if full {
            Some(DroppedReason::Items)
        } else if u64::from(visible.tokens) + u64::from(tokens) > limit {
            Some(DroppedReason::Tokens)
        } else {
            None
        };
        match lacks {
            None => {
                visible.tokens += tokens;
                visible.shown.push(Shown {
                    why: record
                        .route
                        .reasons
                        .iter()
                        .map(|reason| reason.signal.clone())
                        .collect(),
                    record: record.clone(),
                    line,
                    tokens,
                    explain: None,
                });
            }
            Some(reason) => {
                if class(record) == Class::Doubtful {
                    continue;
                }
                if record.route.grade != Grade::Modifier {
                    circumstances_reported += 1;
                    if circumstances_reported > REPORTED_CIRCUMSTANCES {
                        continue;
                    }
                }
                visible.dropped.push(Dropped {
                    id: record.id,
                    section: Section::Profile,
                    tokens,
                    reason,
                });
            }
        }
    }
    // Chosen by importance, shown by grade: the sort is stable.
    sort_by_key(&mut visible.shown, |shown| shown.record.route.grade);
    visible
}

/// Whether a record may stand in the visible profile: it belongs to it, or waits for a judgement. When unsure, it is
/// visible, as far as there is room that nothing sure needs.
pub(crate) fn is_candidate(record: &Record) -> bool {
    record.route.tier == Tier::Profile || record.route.judgement == Judgement::Pending
}

/// Best first.
fn rank(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    sort_by_key(&mut candidates, |candidate| {
        let record = candidate.record;
        (
            class(record),
            Reverse(record.route.severity),
            // Quantised to 1e-4 by the router, so the product is whole.
            Reverse((f64::from(record.route.priority) * 1e4).round() as i64),
            Reverse(candidate.last_heard_ms),
            record.id,
        )
    });
    // The best few of each domain go before the rest of their class and severity, in the same order.
    let mut taken: SmallMap<(Class, Severity, Domain), u32> = SmallMap::new();
    let mut ranked: Vec<_> = candidates
        .into_iter()
        .map(|candidate| {
            let route = &candidate.record.route;
            let class = class(candidate.record);
            let count = taken
                .entry((class, route.severity, route.domain))
                .or_default();
            *count += 1;
            (
                (class, Reverse(route.severity), *count > DOMAIN_SLOTS),
                candidate,
            )
        })
        .collect();
    sort_by_key(&mut ranked, |(key, _)| *key);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Who gives way to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Modifier,
    /// Before modifiers of leisure, since health is never evicted by entertainment.
    HealthCircumstance,
    LeisureModifier,
    Circumstance,
    LeisureCircumstance,
    /// Of the profile by a head that is not certain.
    Probable,
    /// Of the store, with a judgement pending: the first to leave, and not missed.
    Doubtful,
}

fn class(record: &Record) -> Class {
    let domain = record.route.domain;
    let leisure = matches!(domain, Domain::Hobby | Domain::Appearance);
    let route = &record.route;
    let unsure = route.judgement == Judgement::Pending && route.stage == Stage::Semantic;
    match route.grade {
        _ if route.tier == Tier::Store => Class::Doubtful,
        _ if unsure => Class::Probable,
        Grade::Modifier if leisure => Class::LeisureModifier,
        Grade::Modifier => Class::Modifier,
        _ if domain.is_health_or_food() || domain == Domain::Safety => Class::HealthCircumstance,
        _ if leisure => Class::LeisureCircumstance,
        _ => Class::Circumstance,
    }
}
