//! The join of questions and facts: does a question ask about something that a fact changes?

use foremind_types::order::sort_by_key;
use foremind_types::{Domain, Route};

use crate::Tables;
use crate::questions::CueSet;

/// What a question asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Domains, strongest first.
    pub domains: Vec<Domain>,
    cues: CueSet,
    /// Each cue with the words that betray it, as they stand in the question.
    words: Vec<(u16, String)>,
}

/// How closely a fact bears on a question. Later is closer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bearing {
    /// The fact's kind is known, and the question touches only a domain that it affects.
    Domain,
    /// The question touches a domain that the fact affects, and no more is known of the fact.
    Open,
    /// The question names what the fact's kind affects; the number grows as fewer kinds affect it and more of it is named.
    Cue(u16),
}

impl Query {
    /// Whether no word of the question tells what it is about.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.domains.is_empty() && self.cues.is_empty()
    }

    pub(crate) fn new(domains: Vec<Domain>, cues: CueSet, words: Vec<(u16, String)>) -> Self {
        Self {
            domains,
            cues,
            words,
        }
    }
}

/// How closely, if at all.
pub(crate) fn bearing(tables: &Tables, query: &Query, route: &Route) -> Option<Bearing> {
    let mut best: u16 = 0;
    let mut known = false;
    for kind in tables.kinds().named(route) {
        known = true;
        if kind.affects.meets(&query.cues) {
            let mut weights = (0, 0);
            for cue in kind.affects.both(&query.cues) {
                let weight = u16::from(tables.kinds().weight(cue));
                weights = (weights.0.max(weight), weights.1 + weight);
            }
            // What tells most, and a quarter of the rest.
            best = best.max(weights.0 * 4 + (weights.1 - weights.0));
        }
    }
    if best > 0 {
        return Some(Bearing::Cue(best));
    }
    let touched = route.affects.iter().any(|d| query.domains.contains(d));
    touched.then_some(if known {
        Bearing::Domain
    } else {
        Bearing::Open
    })
}

/// The ties between question and fact, for a person to read: closest first.
pub(crate) fn why(tables: &Tables, query: &Query, route: &Route) -> Vec<String> {
    let mut ties = Vec::new();
    for kind in tables.kinds().named(route) {
        ties.extend(kind.affects.both(&query.cues).map(|cue| (kind, cue)));
    }
    ties.retain(|(_, cue)| usize::from(*cue) < tables.cues().cues.len());
    sort_by_key(&mut ties, |(_, cue)| {
        core::cmp::Reverse(tables.kinds().weight(*cue))
    });
    if ties.is_empty() {
        let touched = query.domains.iter().find(|d| route.affects.contains(d));
        return touched
            .map(|d| format!("affects: {}", d.as_str()))
            .into_iter()
            .collect();
    }
    let told = ties.into_iter().take(MOST_TIES).filter_map(|(kind, cue)| {
        let entry = tables.cues().cues.get(usize::from(cue))?;
        let words = query.words.iter().find(|(c, _)| *c == cue);
        Some(format!(
            "affects: {} ({} -> {}, \"{}\"; {})",
            entry.domain.as_str(),
            kind.name,
            entry.name,
            words.map_or("", |(_, words)| words.as_str()),
            kind.source,
        ))
    });
    told.collect()
}

/// Most ties that are told of one fact.
const MOST_TIES: usize = 3;
