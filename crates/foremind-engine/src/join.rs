//! The domain join: which facts bear on a question although they do not look like it.

use std::collections::BTreeSet;

use foremind_router::{Bearing, Query, Router};
use foremind_types::order::sort_by_key;
use foremind_types::{Domain, Grade, Record, RecordId, Severity, Tier};

use crate::profile::Candidate;
use crate::request::Exposure;

/// A question and who reads it.
pub(crate) struct Join<'q> {
    pub(crate) router: &'q Router,
    pub(crate) query: &'q Query,
    pub(crate) exposure: Exposure,
}

/// A fact that bears on the question.
pub(crate) struct Joined<'s> {
    pub(crate) record: &'s Record,
    /// Absent when the fact is shown for another reason: it is severe, or the question is uncertain.
    bearing: Option<Bearing>,
    last_heard_ms: i64,
}

impl Join<'_> {
    /// Whether a fact of the profile is shown at minimal exposure: it bears on the question, or hiding it could harm, or
    /// it is uncertain what the question is about. What is in doubt whether it belongs there is joined at most.
    pub(crate) fn exposes(&self, record: &Record) -> bool {
        self.exposure == Exposure::Full
            || record.route.tier == Tier::Profile && self.matters(record).is_some()
    }

    fn matters(&self, record: &Record) -> Option<Option<Bearing>> {
        let route = &record.route;
        let bearing = self.router.bearing(self.query, route);
        match bearing {
            Some(Bearing::Cue(_) | Bearing::Open) => return Some(bearing),
            Some(Bearing::Domain) if self.exposure == Exposure::Full => return Some(bearing),
            _ => {}
        }
        let never_hidden = route.grade == Grade::Modifier && route.severity == Severity::Severe;
        // How the owner wants to be answered may bear on any answer.
        let of_answers = route.domain == Domain::Instruction;
        let open = self.query.is_uncertain() || never_hidden || of_answers;
        (open && self.exposure == Exposure::Minimal).then_some(bearing)
    }

    /// What bears on the question among current records, those left out that are `shown` already; closest first. A record
    /// of the store is among them only when the question names what its kind of fact affects.
    pub(crate) fn joined<'s>(
        &self,
        records: impl Iterator<Item = Candidate<'s>>,
        shown: &BTreeSet<RecordId>,
    ) -> Vec<Joined<'s>> {
        let mut joined: Vec<Joined<'s>> = records
            .filter(|candidate| !shown.contains(&candidate.record.id))
            .filter_map(|candidate| {
                let record = candidate.record;
                let bearing = if record.route.tier == Tier::Profile {
                    self.matters(record)?
                } else {
                    let bearing = self.router.bearing(self.query, &record.route);
                    Some(bearing.filter(|b| matches!(b, Bearing::Cue(_)))?)
                };
                Some(Joined {
                    record,
                    bearing,
                    last_heard_ms: candidate.last_heard_ms,
                })
            })
            .collect();
        sort_by_key(&mut joined, |joined| core::cmp::Reverse(joined.rank()));
        joined
    }

    /// Why a record is shown, besides the signals of its route.
    pub(crate) fn why(&self, record: &Record) -> Vec<String> {
        self.router.ties(self.query, &record.route)
    }
}

impl Joined<'_> {
    /// Whether the question names what the fact affects.
    pub(crate) fn is_close(&self) -> bool {
        matches!(self.bearing, Some(Bearing::Cue(_)))
    }

    /// Greatest first: what the question names, weighted by severity; then severity, grade, priority, last told, id.
    fn rank(
        &self,
    ) -> (
        u32,
        Option<Bearing>,
        Severity,
        bool,
        i64,
        i64,
        core::cmp::Reverse<RecordId>,
    ) {
        let route = &self.record.route;
        let named = match self.bearing {
            Some(Bearing::Cue(closeness)) => {
                let severity = match route.severity {
                    Severity::Severe => 5,
                    Severity::Moderate => 4,
                    Severity::Mild => 3,
                };
                let kept = if route.tier == Tier::Profile { 2 } else { 1 };
                u32::from(closeness) * severity * kept
            }
            _ => 0,
        };
        (
            named,
            self.bearing,
            route.severity,
            route.grade == Grade::Modifier,
            (f64::from(route.priority) * 1e4).round() as i64,
            self.last_heard_ms,
            core::cmp::Reverse(self.record.id),
        )
    }
}
