//! What new records do to those that are current: replace, correct, end, say again, contradict, or nothing.
//!
//! Words and vectors find candidates in the same scope, told by the same role; only the router's comparison decides. Every
//! new record is stored, whatever comes of it, and names what it replaces and why. What is decided is written down as
//! changes when the record is added, so that replaying entries never decides again: the fold stays what it is.

use std::collections::BTreeSet;

use foremind_types::small::SmallMap;

use foremind_index::{Sees, dequantise};
use foremind_router::{Facts, Relation, SETTLES};
use foremind_types::order::{map_of, set_of, sort_by_key};
use foremind_types::{
    Ambient, Change, Embedding, Record, RecordId, Revision, Status, SupersedeKind, Supersedes,
};

use crate::engine::Engine;
use crate::op::VectorCache;
use crate::recall::{is_lasting, status_at};
use crate::response::Outcome;
use crate::state::State;
use crate::statements::is_note;

/// Most candidates that words find, and that meaning finds.
const BY_WORDS: usize = 24;
const BY_MEANING: usize = 16;
/// So many statements before it in the same turn are compared as well.
const IN_TURN: usize = 16;
/// Most records that one statement replaces, and that it is marked to contradict.
const REPLACED: usize = 8;
const CONFLICTS: usize = 2;
/// Least cosine of a candidate found by meaning.
const MEANING_FLOOR: f32 = 0.3;

/// What came of the new records.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// Of earlier records.
    pub(crate) changes: Vec<Change>,
    /// Of new records, where it is more than added.
    pub(crate) outcomes: SmallMap<RecordId, Outcome>,
    /// New records that say what a known one says: they are tellings of it.
    pub(crate) same: SmallMap<RecordId, RecordId>,
    /// How many pairs were compared: the work, for tests.
    pub(crate) compared: usize,
}

/// What a comparison looks at.
struct Candidate<'c> {
    record: &'c Record,
    closeness: Option<i32>,
    /// Told in the same turn: its changes are its own.
    place: Option<usize>,
}

impl Engine {
    /// Compares each of `adding` with what is current, writes into it what it replaces, and says what else changes.
    pub(crate) fn resolve(
        &self,
        adding: &mut [Record],
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Resolved {
        let mut resolved = Resolved::default();
        let mut facts: SmallMap<RecordId, Facts> = SmallMap::new();
        let mut retired: BTreeSet<RecordId> = BTreeSet::new();
        for place in 0..adding.len() {
            let (before, rest) = adding.split_at_mut(place);
            let Some(record) = rest.first_mut() else {
                break;
            };
            if record.status != Status::Current || is_note(&self.router, &record.text) {
                continue;
            }
            let own = self.router.facts(&record.text);
            let vector = vectors.of(&record.text);
            let mut found = self.candidates(record, vector, at.now_ms);
            let first = place.saturating_sub(IN_TURN);
            found.extend(
                before
                    .iter()
                    .enumerate()
                    .skip(first)
                    .map(|(place, record)| Candidate {
                        closeness: cosine(vector, vectors.of(&record.text)),
                        record,
                        place: Some(place),
                    }),
            );
            let mut pairs: Vec<(i64, RecordId, Relation, &'static str, Option<usize>)> = Vec::new();
            for candidate in &found {
                let earlier = candidate.record;
                if retired.contains(&earlier.id)
                    || earlier.status != Status::Current
                    || earlier.scope != record.scope
                    || is_note(&self.router, &earlier.text)
                {
                    continue;
                }
                let known = facts
                    .entry(earlier.id)
                    .or_insert_with(|| self.router.facts(&earlier.text));
                resolved.compared += 1;
                let compared = self.router.compare(known, &own, candidate.closeness);
                let relation = cautious(compared.relation, earlier, || {
                    self.router.overrules(known, &own)
                });
                if relation != Relation::Apart {
                    pairs.push((
                        compared.score,
                        earlier.id,
                        relation,
                        compared.why,
                        candidate.place,
                    ));
                }
            }
            sort_by_key(&mut pairs, |pair| (core::cmp::Reverse(pair.0), pair.1));
            let same = pairs
                .iter()
                .find(|pair| pair.2 == Relation::Same && pair.4.is_none());
            if let Some((_, known, ..)) = same {
                resolved.same.insert(record.id, *known);
                continue;
            }
            let mut replaced = 0;
            let mut conflicts = 0;
            let mut outcome = None;
            for (_, id, relation, why, place) in pairs {
                let earlier = match place {
                    Some(place) => before.get(place),
                    None => self.state.record(id),
                };
                let Some(earlier) = earlier else { continue };
                let effect = match Effect::of(relation, earlier, record, at.now_ms) {
                    // "Renewed until next March": the trouble does not come back with that day.
                    Effect::Except if why == SETTLES => Effect::Change,
                    effect => effect,
                };
                match effect {
                    Effect::Conflict | Effect::Beside if conflicts == CONFLICTS => continue,
                    Effect::Conflict | Effect::Beside => conflicts += 1,
                    Effect::Nothing => continue,
                    _ if replaced == REPLACED => continue,
                    _ => replaced += 1,
                }
                if let Some(outcome_of) = effect.outcome() {
                    outcome = outcome.max(Some(outcome_of));
                }
                record.supersedes.push(Supersedes {
                    id,
                    kind: effect.kind(),
                    why: why.to_owned(),
                });
                let Some((status, valid_to_ms)) = effect.status(earlier, record, at.now_ms) else {
                    continue;
                };
                // A plan that is dropped leaves what it would have replaced as it is.
                if earlier
                    .times
                    .valid_from_ms
                    .is_some_and(|from| from > at.now_ms)
                {
                    resolved
                        .changes
                        .extend(restored(&self.state, earlier, at.now_ms));
                }
                retired.insert(id);
                match place.and_then(|place| before.get_mut(place)) {
                    Some(earlier) => {
                        earlier.status = status;
                        earlier.times.valid_to_ms = valid_to_ms;
                    }
                    None => resolved.changes.push(Change::Revise {
                        id,
                        revision: Revision::Status {
                            status,
                            valid_to_ms,
                        },
                    }),
                }
            }
            sort_by_key(&mut record.supersedes, |link| link.id);
            if let Some(outcome) = outcome {
                resolved.outcomes.insert(record.id, outcome);
            } else if record
                .times
                .valid_from_ms
                .is_some_and(|from| from > at.now_ms)
            {
                resolved.outcomes.insert(record.id, Outcome::Planned);
            }
            facts.insert(record.id, own);
        }
        resolved
    }

    /// Current records of the same scope and role that may be about the same.
    fn candidates<'e>(
        &'e self,
        record: &Record,
        vector: Option<&Embedding>,
        now_ms: i64,
    ) -> Vec<Candidate<'e>> {
        let state = &self.state;
        let fits = |id: RecordId| {
            state.record(id).filter(|known| {
                known.scope == record.scope
                    && known.provenance.role == record.provenance.role
                    && status_at(known, now_ms) == Status::Current
            })
        };
        let sees = |place: u32| {
            let id = state.record_at(place)?.record.id;
            fits(id).map(|known| known.id)
        };
        let groups = state.words().groups(|scope| *scope == record.scope);
        let words = state.words().words().search(
            &record.text,
            |group| groups.contains(&group),
            &sees,
            BY_WORDS,
        );
        let mut ids = set_of(words.into_iter().map(|hit| hit.id));
        let mut near: SmallMap<RecordId, i32> = SmallMap::new();
        if let Some(vector) = vector
            && let Ok(wide) = dequantise(vector)
        {
            let search = |floor: f32, wanted: Sees<'_>, limit: usize| {
                state.vectors().search(
                    &vector.model_id,
                    &vector.head_id,
                    &wide,
                    floor,
                    wanted,
                    limit,
                )
            };
            let meaning = search(MEANING_FLOOR, &sees, BY_MEANING);
            ids.extend(meaning.iter().map(|hit| hit.id));
            let found = |place: u32| {
                let id = state.record_at(place)?.record.id;
                ids.contains(&id).then_some(id)
            };
            let all = search(-1.0, &found, ids.len());
            near = map_of(
                all.into_iter()
                    .map(|hit| (hit.id, thousandths(f64::from(hit.score)))),
            );
        }
        ids.into_iter()
            .filter_map(|id| {
                Some(Candidate {
                    record: fits(id)?,
                    closeness: near.get(&id).copied(),
                    place: None,
                })
            })
            .collect()
    }
}

/// What endangers is not retired by a likeness: only by words that end or correct it, or say that its amount changed.
fn cautious(relation: Relation, earlier: &Record, overruled: impl Fn() -> bool) -> Relation {
    match relation {
        Relation::Replaces | Relation::Ends if is_lasting(earlier) && !overruled() => {
            Relation::Conflicts
        }
        relation => relation,
    }
}

/// What a new record does to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Nothing,
    Change,
    Correct,
    End,
    /// From its own beginning on.
    Plan,
    /// For its own time only.
    Except,
    Conflict,
    /// Both hold, and belong together.
    Beside,
}

impl Effect {
    fn of(relation: Relation, earlier: &Record, later: &Record, now_ms: i64) -> Self {
        let dated = |record: &Record| record.route.ttl.until_ms().is_some();
        let planned = later.times.valid_from_ms.is_some_and(|from| from > now_ms);
        match relation {
            Relation::Apart | Relation::Same => Self::Nothing,
            Relation::Conflicts => Self::Conflict,
            Relation::Beside => Self::Beside,
            Relation::Corrects => Self::Correct,
            Relation::Replaces | Relation::Ends if planned => Self::Plan,
            Relation::Replaces | Relation::Ends if dated(later) && !dated(earlier) => Self::Except,
            Relation::Replaces => Self::Change,
            Relation::Ends => Self::End,
        }
    }

    fn kind(self) -> SupersedeKind {
        match self {
            Self::Nothing | Self::Change | Self::Plan => SupersedeKind::Changed,
            Self::Correct => SupersedeKind::Corrected,
            Self::End => SupersedeKind::Ended,
            Self::Except => SupersedeKind::Excepted,
            Self::Conflict => SupersedeKind::Conflict,
            Self::Beside => SupersedeKind::Beside,
        }
    }

    fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Nothing | Self::Except | Self::Beside => None,
            Self::Change => Some(Outcome::Superseded),
            Self::Correct => Some(Outcome::Corrected),
            Self::End => Some(Outcome::Ended),
            Self::Plan => Some(Outcome::Planned),
            Self::Conflict => Some(Outcome::Conflict),
        }
    }

    /// Status and end of validity of the earlier record; `None` when it stays as it is.
    fn status(
        self,
        earlier: &Record,
        later: &Record,
        now_ms: i64,
    ) -> Option<(Status, Option<i64>)> {
        // A clock that ran backwards ends nothing before it was told.
        let end_ms = |at_ms: i64| Some(at_ms.max(earlier.times.told_ms));
        let unstarted = earlier
            .times
            .valid_from_ms
            .is_some_and(|from| from > now_ms);
        match self {
            Self::Nothing | Self::Except | Self::Conflict | Self::Beside => None,
            Self::Correct => Some((Status::Retracted, None)),
            // What never came about was never true.
            Self::Change | Self::End if unstarted => Some((Status::Retracted, None)),
            Self::Change | Self::End => Some((Status::Superseded, end_ms(now_ms))),
            Self::Plan => Some((
                Status::Current,
                end_ms(later.times.valid_from_ms.unwrap_or(now_ms)),
            )),
        }
    }
}

/// What holds on since `plan`, which was to replace it, does not come about: those of its earlier records that are current
/// until it begins.
pub(crate) fn restored(state: &State, plan: &Record, now_ms: i64) -> Vec<Change> {
    let Some(from_ms) = plan.times.valid_from_ms.filter(|from| *from > now_ms) else {
        return Vec::new();
    };
    plan.supersedes
        .iter()
        .filter_map(|link| state.record(link.id))
        .filter(|earlier| {
            earlier.scope == plan.scope
                && earlier.status == Status::Current
                && earlier.times.valid_to_ms == Some(from_ms)
        })
        .map(|earlier| Change::Revise {
            id: earlier.id,
            revision: Revision::Status {
                status: Status::Current,
                valid_to_ms: None,
            },
        })
        .collect()
}

fn thousandths(cosine: f64) -> i32 {
    (cosine * 1000.0) as i32
}

/// Of two vectors of one model and head.
fn cosine(a: Option<&Embedding>, b: Option<&Embedding>) -> Option<i32> {
    let (a, b) = a.zip(b)?;
    if a.model_id != b.model_id || a.head_id != b.head_id || a.vector.len() != b.vector.len() {
        return None;
    }
    let sum: i64 = a
        .vector
        .iter()
        .zip(&b.vector)
        .map(|(x, y)| i64::from(*x) * i64::from(*y))
        .sum();
    Some(thousandths(
        sum as f64 * f64::from(a.scale) * f64::from(b.scale),
    ))
}

#[cfg(test)]
mod tests {
    use foremind_types::{Entry, Name, Role, Scope, WriterId};

    use super::*;
    use crate::statements;
    use crate::write::{Told, record_of};

    const DAY_MS: i64 = 86_400_000;

    fn ambient(call: u64) -> Ambient {
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&call.to_le_bytes());
        Ambient {
            now_ms: 20_000 * DAY_MS + call as i64,
            utc_offset_min: 0,
            entropy,
        }
    }

    /// The records of a turn, as `note` makes them.
    fn records(engine: &Engine, text: &str, at: &Ambient) -> Vec<Record> {
        let scope = Scope::user(Name::new("ada").unwrap());
        let told = Told {
            scope: &scope,
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        statements::of_turn(&engine.guard, &engine.router, text, at)
            .unwrap()
            .iter()
            .enumerate()
            .map(|(position, statement)| record_of(&told, position as u16, statement, at))
            .collect()
    }

    fn add(engine: &mut Engine, counter: u64, mut changes: Vec<Change>, records: Vec<Record>) {
        changes.extend(
            records
                .into_iter()
                .map(|record| Change::Add(Box::new(record))),
        );
        engine.apply(Entry {
            writer: WriterId(1),
            counter,
            lamport: counter + 1,
            at_ms: 0,
            changes,
        });
    }

    /// The work of a write does not grow with the versions before it.
    #[test]
    fn thousands_of_versions_cost_as_much_as_a_few() {
        // The full count is 10,000.
        let versions = if std::env::var_os("FOREMIND_LONG").is_some() {
            10_000
        } else {
            300
        };
        let mut engine = Engine::new();
        let mut most = 0;
        for n in 0..versions {
            let at = ambient(n);
            let text = format!("My salary is {} euros before tax now.", 30_000 + 1_000 * n);
            let mut adding = records(&engine, &text, &at);
            let resolved = engine.resolve(&mut adding, &VectorCache::default(), &at);
            most = most.max(resolved.compared);
            add(&mut engine, n, resolved.changes, adding);
        }
        let current = engine
            .state
            .records()
            .filter(|r| r.status == Status::Current);
        assert_eq!(current.count(), 1);
        assert!(most <= 2, "{most} comparisons");
    }

    #[test]
    fn a_turn_of_hundreds_of_contradictions_is_bounded() {
        let engine = Engine::new();
        let at = ambient(0);
        let text: String = (0..500)
            .map(|n| format!("The notice period on our flat is {n} weeks. "))
            .collect();
        let mut adding = records(&engine, &text, &at);
        let statements = adding.len();
        assert!(statements > 400);
        let resolved = engine.resolve(&mut adding, &VectorCache::default(), &at);
        assert!(resolved.compared <= statements * IN_TURN);
        let links = adding.iter().map(|record| record.supersedes.len()).max();
        assert!(links.unwrap() <= REPLACED + CONFLICTS);
    }
}
