//! What a query brings back: by words and by meaning, by what stands beside it in its conversation, by the names that
//! records share, by the time that the query names; and in which order.
//!
//! Words and meaning are blended by their scores and not by their ranks. Source: S. Bruch, S. Gai, A. Ingber, "An Analysis of
//! Fusion Functions for Hybrid Retrieval", 2023; docs/RECALL.md has the figures of both on two benchmarks.

use std::collections::BTreeSet;

use foremind_index::{normalise, quantise, terms};
use foremind_types::order::sort_by;
use foremind_types::{Record, RecordId, SupersedeKind};

use crate::recall::{Question, Sight};
use crate::response::Explain;
use crate::slots::At;

/// Least share of the query's informative words that a record must have to be found by words.
const WORDS_FLOOR: f32 = 0.25;
/// Least cosine to be found by meaning: unrelated sentences lie around 0.1 with the shipped model.
const MEANING_FLOOR: f32 = 0.25;
/// Least cosine where another record is above [`MEANING_FLOOR`]: the question has an answer here, and this may be the rest
/// of it.
const MEANING_FLOOR_BESIDE: f32 = 0.15;
/// So far behind the nearest, in cosine, is nothing that answers the same question.
const BESIDE_DISTANCE: f32 = 0.3;
/// Least evidence, as [`evidence`] counts it, that any of a thousand records answers the question: below it nothing is
/// shown. Fewer records come less near by chance, so less is asked of them.
const EVIDENCE_FLOOR: f32 = 0.6;
const EVIDENCE_LOG2_RECORDS: f32 = 10.0;
/// Most candidates of each ranking.
const CANDIDATES: usize = 64;
/// Share of the blend that goes to words where there are vectors.
const WORDS_SHARE: f32 = 0.5;
/// What a record gets of the scores of those told just before it in the same conversation, nearest first: they say what it
/// is about.
const BEFORE: [f32; 2] = [0.15, 0.05];
/// So many of the best bring those told just after them,
const FOLLOWED: usize = 16;
/// if they score at least this share of the very best.
const LEADING: f32 = 0.5;
/// What a record gets that was told in the time that the query names.
const TOLD_THEN: f32 = 0.25;
/// Most records that a named time brings by itself.
const OF_THEN: usize = 24;
/// A query with a time and at most so many terms asks for all that happened then.
const TIME_ALONE: usize = 3;
/// What a record of today has before one of long ago.
const RECENCY: f32 = 0.02;
/// After so many days half of that is left.
const RECENCY_DAYS: f32 = 60.0;
/// What a record of a domain has that the query asks about.
const DOMAIN_PRIOR: f32 = 0.02;
/// So many of the best are looked through for names.
const NAMING: usize = 3;
/// Most names of one record.
const NAMES: usize = 6;
/// A name in more records than these links nothing.
const NAMED_MOST: usize = 6;
/// What a record gets that shares a name with one of the best, as a share of that one's score.
const NAMED_SHARE: f32 = 0.25;
/// So many of the best bring what belongs to them.
const BELONGING: usize = 3;
/// Most records that are shown because something joins them to one that was found.
const LINKED_SHOWN: usize = 3;
/// So many of the best are looked through for statements that say nearly the same.
const ALIKE_AMONG: usize = 6;
/// Cosine of two statements from which both may be answers of different days to one question.
const ALIKE: f32 = 0.5;
/// The later one goes first if it scores this share of the earlier one, and has this share of its words of the question: what
/// is alike but for the word that is asked for is about something else.
const ALIKE_SHARE: f32 = 0.4;
const ALIKE_WORDS: f32 = 0.6;
const DAY_MS: f32 = 86_400_000.0;

/// What was found.
pub(crate) struct Found<'s> {
    /// Best first.
    pub(crate) hits: Vec<Hit<'s>>,
    pub(crate) lexical_only: bool,
    /// Whether the work did not last for all.
    pub(crate) partial: bool,
}

/// A record that was found.
pub(crate) struct Hit<'s> {
    pub(crate) record: &'s Record,
    pub(crate) why: Vec<&'static str>,
    pub(crate) explain: Explain,
}

/// A record under consideration: current, or replaced by what is.
struct Candidate<'s> {
    place: u32,
    record: &'s Record,
    /// Of words and meaning, 0 to 1.
    own: f32,
    /// Whether words, meaning, or anything else lets it pass.
    by_words: bool,
    by_meaning: bool,
    by_other: Option<&'static str>,
    explain: Explain,
}

/// What words, meaning, conversation, names and time bring back.
pub(crate) fn find<'s>(sight: &Sight<'s>, question: &Question<'_>) -> Found<'s> {
    let state = sight.state;
    let vector = question.vector;
    let mut work = question.work;
    let accepts =
        |record: &Record| sight.sees(record) || sight.leads_on(record) || sight.is_past(record);
    let sees = |place: u32| {
        let record = state.record_at(place)?.record;
        accepts(record).then_some(record.id)
    };
    let index = state.words();
    let groups = index.groups(|told| sight.scope.sees(told));
    let query = question.query.unwrap_or_default();
    let words = index
        .words()
        .scores(query, |group| groups.contains(&group), &mut work);
    let by_words = words.best(&sees, CANDIDATES);
    let by_meaning = vector.map_or(Vec::new(), |vector| {
        state
            .vectors()
            .nearest(vector, 0.0, &sees, CANDIDATES, &mut work)
    });

    // Scores of both kinds as shares of the best, squared: what is far behind counts for little.
    let most_words = by_words.first().map_or(0.0, |hit| hit.score);
    let nearest = by_meaning.first().map_or(0.0, |hit| hit.score);
    let words_share = if vector.is_some() { WORDS_SHARE } else { 1.0 };
    let share = |part: f32, most: f32| {
        let share = if most > 0.0 {
            (part / most).max(0.0)
        } else {
            0.0
        };
        share * share
    };
    let answered = nearest >= MEANING_FLOOR;
    // Far behind the nearest is noise.
    let floor = (nearest - BESIDE_DISTANCE).max(MEANING_FLOOR_BESIDE);
    let own = |place: u32| {
        let (score, coverage) = words.of(place).unwrap_or_default();
        let meaning = vector.and_then(|vector| state.vectors().of(vector, place));
        let own = words_share * share(score, most_words)
            + (1.0 - words_share) * share(meaning.unwrap_or(0.0), nearest);
        (own, coverage, meaning)
    };
    let candidate = |At { place, record }: At<'s>| {
        let (own, coverage, meaning) = own(place);
        Candidate {
            place,
            record,
            own,
            by_words: coverage >= WORDS_FLOOR,
            by_meaning: answered && meaning.is_some_and(|cosine| cosine >= floor),
            by_other: None,
            explain: Explain {
                words: coverage,
                meaning,
                ..Explain::default()
            },
        }
    };

    let mut listed: BTreeSet<u32> = BTreeSet::new();
    let mut candidates: Vec<Candidate<'s>> = Vec::new();
    let places = by_words.iter().map(|hit| hit.place);
    for place in places.chain(by_meaning.iter().map(|hit| hit.place)) {
        if listed.insert(place)
            && let Some(at) = state.record_at(place)
        {
            candidates.push(candidate(at));
        }
    }
    sort_by(&mut candidates, |a, b| {
        b.own.total_cmp(&a.own).then(a.record.id.cmp(&b.record.id))
    });
    // Nothing comes near enough: what is shown would be noise.
    let best = candidates.iter().map(evidence).fold(0.0, f32::max);
    if vector.is_some() && best < evidence_floor(words.in_sight()) {
        candidates.clear();
    }
    // What leads to further records: those told just after the best, those told in a time that the query names, those that
    // share a name with one of the best.
    let mut led: Vec<(At<'s>, &'static str)> = Vec::new();
    let least = candidates.first().map_or(0.0, |best| best.own * LEADING);
    let found = |candidate: &&Candidate<'s>| candidate.by_words || candidate.by_meaning;
    for lead in candidates.iter().take(FOLLOWED).filter(found) {
        if lead.own >= least {
            let after = state.beside(lead.record, true, BEFORE.len());
            led.extend(after.into_iter().map(|at| (at, "conversation")));
        }
    }
    let mut named: Vec<(u32, f32)> = Vec::new();
    for best in candidates.iter().take(NAMING).filter(found) {
        for name in names(&best.record.text, query) {
            let sees = |group: u32| groups.contains(&group);
            let having = index.words().holders(&name, sees, NAMED_MOST);
            let others = having.into_iter().filter(|place| *place != best.place);
            named.extend(others.map(|place| (place, best.own)));
        }
    }
    let at = |(place, _): &(u32, f32)| state.record_at(*place);
    led.extend(named.iter().filter_map(at).map(|at| (at, "name")));
    if let Some((from_ms, to_ms)) = question.then {
        let told = state.told_between(from_ms, to_ms).rev().take(OF_THEN);
        led.extend(told.map(|at| (at, "time")));
    }
    for (at, _) in &led {
        if accepts(at.record) && listed.insert(at.place) {
            candidates.push(candidate(*at));
        }
    }
    // A time alone asks for all that was told then; beside other words it only ranks.
    let alone = terms(query).len() <= TIME_ALONE;
    led.retain(|(_, by)| *by != "time" || alone);

    let domains = question.join.as_ref().map(|join| &join.query.domains);
    for candidate in &mut candidates {
        let record = candidate.record;
        let by = led.iter().find(|(led, _)| led.place == candidate.place);
        candidate.by_other = by.map(|(_, by)| *by);
        let explain = &mut candidate.explain;
        for (before, share) in state.beside(record, false, BEFORE.len()).iter().zip(BEFORE) {
            // What is hidden says nothing.
            if accepts(before.record) {
                explain.conversation += share * own(before.place).0;
            }
        }
        let links = named.iter().filter(|(place, _)| *place == candidate.place);
        explain.names = links.map(|(_, own)| NAMED_SHARE * own).fold(0.0, f32::max);
        if question
            .then
            .is_some_and(|(from_ms, to_ms)| (from_ms..to_ms).contains(&record.times.told_ms))
        {
            explain.time = TOLD_THEN;
        }
        let days = (sight.time.asked_ms() - record.times.told_ms).max(0) as f32 / DAY_MS;
        explain.recency = RECENCY * RECENCY_DAYS / (RECENCY_DAYS + days);
        if domains.is_some_and(|domains| domains.contains(&record.route.domain)) {
            explain.domain = DOMAIN_PRIOR;
        }
        let sum = candidate.own
            + explain.conversation
            + explain.names
            + explain.time
            + explain.recency
            + explain.domain;
        explain.score = quantise(f64::from(sum));
    }
    sort_by(&mut candidates, |a, b| {
        let by_score = b.explain.score.total_cmp(&a.explain.score);
        by_score.then(a.record.id.cmp(&b.record.id))
    });
    later_first(sight, &mut candidates);
    Found {
        hits: shown(sight, candidates),
        lexical_only: vector.is_none(),
        partial: work.is_short(),
    }
}

/// What passes the floor, with what is current in the place of what was replaced, what is past by its own end, and behind each record those that may
/// contradict it or belong to it.
fn shown<'s>(sight: &Sight<'s>, candidates: Vec<Candidate<'s>>) -> Vec<Hit<'s>> {
    let mut listed: BTreeSet<RecordId> = BTreeSet::new();
    // Lines of what replaced what run together: none is followed twice.
    let mut followed: BTreeSet<RecordId> = BTreeSet::new();
    let mut hits: Vec<Hit<'s>> = Vec::new();
    for candidate in candidates {
        let by = [
            (candidate.by_words, "words"),
            (candidate.by_meaning, "meaning"),
        ];
        let by = by.into_iter().filter(|(by, _)| *by).map(|(_, name)| name);
        let why: Vec<&'static str> = by.chain(candidate.by_other).collect();
        if why.is_empty() {
            continue;
        }
        let own = candidate.record;
        let places = if sight.sees(own) || sight.is_past(own) {
            vec![own]
        } else {
            let successors = sight.successors(own.id, &mut followed).into_iter();
            successors.filter_map(|id| sight.record(id)).collect()
        };
        for record in places {
            if !listed.insert(record.id) {
                continue;
            }
            hits.push(Hit {
                record,
                why: why.clone(),
                explain: candidate.explain.clone(),
            });
            // What belongs to the best is shown with it; what contradicts a record always is.
            let kinds = [SupersedeKind::Conflict, SupersedeKind::Beside];
            let kinds = if hits.len() <= BELONGING {
                &kinds[..]
            } else {
                &kinds[..1]
            };
            for other in sight.linked(record, kinds).take(LINKED_SHOWN) {
                if listed.insert(other.id) {
                    hits.push(Hit {
                        record: other,
                        why: Vec::new(),
                        explain: candidate.explain.clone(),
                    });
                }
            }
        }
    }
    for (rank, hit) in (1..).zip(&mut hits) {
        hit.explain.rank = rank;
    }
    hits
}

/// Of the best that say nearly the same, what was told later goes before what was told earlier: it is what holds.
fn later_first(sight: &Sight<'_>, candidates: &mut [Candidate<'_>]) {
    let among = candidates.len().min(ALIKE_AMONG);
    for at in 0..among {
        let Some((earlier, rest)) = candidates.get(at..among).and_then(<[_]>::split_first) else {
            return;
        };
        let own = earlier.record;
        let alike = |other: &Candidate<'_>| {
            (other.by_words || other.by_meaning)
                && other.record.times.told_ms > own.times.told_ms
                && other.explain.score >= ALIKE_SHARE * earlier.explain.score
                && other.explain.words >= ALIKE_WORDS * earlier.explain.words
                && sight
                    .state
                    .vectors()
                    .between(earlier.place, other.place)
                    .is_some_and(|cosine| cosine >= ALIKE)
        };
        let later = rest.iter().enumerate().filter(|(_, other)| alike(other));
        let latest = later.max_by_key(|(_, other)| other.record.times.told_ms);
        if let Some((step, _)) = latest {
            candidates[at..=at + 1 + step].rotate_right(1);
        }
    }
}

/// How much speaks for a record's being an answer: its cosine and the share of the question's informative words.
/// docs/RECALL.md tells what else was tried.
fn evidence(candidate: &Candidate<'_>) -> f32 {
    candidate.explain.meaning.unwrap_or(0.0).max(0.0) + candidate.explain.words
}

/// The largest of many chance values grows with the logarithm of how many there are.
fn evidence_floor(records: u64) -> f32 {
    let whole = records.max(1).ilog2();
    // Straight between the powers of two.
    let log2 = whole as f32 + records.max(1) as f32 / (1_u64 << whole) as f32 - 1.0;
    EVIDENCE_FLOOR * log2.min(EVIDENCE_LOG2_RECORDS) / EVIDENCE_LOG2_RECORDS
}

/// Names in a text that the query does not say: words with a capital that do not begin a sentence, and what has digits.
fn names(text: &str, query: &str) -> Vec<String> {
    let asked = normalise(query);
    let mut found: Vec<String> = Vec::new();
    let mut begins = true;
    for token in text.split_whitespace() {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric());
        let upper = word.chars().next().is_some_and(char::is_uppercase);
        let digits = word.contains(|c: char| c.is_ascii_digit()) && word.len() > 3;
        let name = upper && !begins && word.chars().count() > 2;
        // "Dr." ends no sentence.
        let short = word.chars().count() <= 3;
        begins = token.ends_with(['!', '?', ':']) || token.ends_with('.') && !short;
        let new = !found.iter().any(|found| found == word) && !asked.contains(&normalise(word));
        if (name || digits) && new && found.len() < NAMES {
            found.push(word.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_asked_of_more_records() {
        assert_eq!(evidence_floor(0), 0.0);
        assert_eq!(evidence_floor(1_024), EVIDENCE_FLOOR);
        assert_eq!(evidence_floor(1 << 40), EVIDENCE_FLOOR);
        let floors = [1, 2, 3, 100, 128, 150, 1_000].map(evidence_floor);
        assert!(floors.is_sorted_by(|a, b| a < b), "{floors:?}");
    }

    #[test]
    fn names_are_what_has_a_capital_or_digits() {
        let text = "My cat Milo sees Dr. Okafor at Baker Street, order AC-4431. Then we pay.";
        let found = names(text, "Where does the cat go?");
        assert_eq!(found, ["Milo", "Okafor", "Baker", "Street", "AC-4431"]);
        assert!(!names(text, "Which street is Milo's vet in?").contains(&"Milo".to_owned()));
        assert!(names("I like it", "what").is_empty());
    }
}
