//! Verbs that change records: update, confirm, judge, forget.

use foremind_index::terms;
use foremind_types::order::set_of;
use foremind_types::{
    Change, ErasedCounts, Error, ErrorCode, Grade, Judgement, Record, RecordId, Revision, Route,
    Scope, Stage, Status, Tier,
};

use crate::ForgetTarget;
use crate::engine::{Engine, invalid};
use crate::op::{Answer, Plan};
use crate::recall::status_at;
use crate::response::Response;
use crate::supersede::restored;
use crate::write::{owner_route, placed};

impl Engine {
    pub(crate) fn update(&self, scope: &Scope, id: RecordId, tier: Tier) -> Result<Plan, Error> {
        let record = self.administered(scope, id)?;
        Ok(revision(
            id,
            Revision::Route(Box::new(owner_route(&record.route, tier))),
            Answer::Update(id),
        ))
    }

    pub(crate) fn confirm(&self, scope: &Scope, id: RecordId, now_ms: i64) -> Result<Plan, Error> {
        let record = self.administered(scope, id)?;
        let status = status_at(record, now_ms);
        if status != Status::Current {
            return Err(invalid(format!(
                "the record is {}; only a current one can be confirmed",
                status.as_str()
            )));
        }
        let confirmed = Revision::Confirmed { at_ms: now_ms };
        Ok(revision(id, confirmed, Answer::Confirm(id)))
    }

    pub(crate) fn judge(&self, scope: &Scope, id: RecordId, grade: Grade) -> Result<Plan, Error> {
        let record = self.administered(scope, id)?;
        if record.route.judgement == Judgement::Settled {
            return Err(invalid("the record does not wait for a judgement"));
        }
        let tier = match grade {
            Grade::Modifier | Grade::Circumstance => Tier::Profile,
            Grade::Informer => Tier::Store,
        };
        let route = Route {
            grade,
            stage: Stage::Judge,
            ..placed(
                &Route {
                    grade,
                    ..record.route.clone()
                },
                tier,
            )
        };
        Ok(revision(
            id,
            Revision::Route(Box::new(route)),
            Answer::Judge(id),
        ))
    }

    pub(crate) fn forget(
        &self,
        scope: &Scope,
        target: &ForgetTarget,
        preview: Option<bool>,
        now_ms: i64,
    ) -> Result<Plan, Error> {
        let named = match target {
            ForgetTarget::Id(id) => {
                self.administered(scope, *id)?;
                Vec::new()
            }
            ForgetTarget::Query(text) | ForgetTarget::Subject(text) => {
                let named = terms(text);
                if named.is_empty() {
                    return Err(invalid(
                        "the words are missing by which to find what to forget",
                    ));
                }
                named
            }
            _ => Vec::new(),
        };
        let mut counts = ErasedCounts::default();
        let inside = self
            .state
            .records()
            .filter(|record| scope.contains(&record.scope));
        let mut ids = set_of(
            inside
                .filter(|record| match target {
                    ForgetTarget::Id(id) => record.id == *id,
                    ForgetTarget::Thread(thread) => {
                        record.provenance.thread.as_ref() == Some(thread)
                            || record.scope.thread.as_ref() == Some(thread)
                    }
                    ForgetTarget::Query(_) => shares(&terms(&record.text), &named),
                    ForgetTarget::Subject(_) => {
                        let told = terms(&record.text);
                        told.windows(named.len()).any(|words| words == named)
                    }
                    ForgetTarget::Scope => true,
                })
                .map(|record| record.id),
        );
        // What was concluded from nothing else goes with it, and what was concluded from that.
        loop {
            let before = ids.len();
            for record in self.state.records() {
                let evidence = &record.evidence;
                if !evidence.is_empty() && evidence.iter().all(|link| ids.contains(&link.id)) {
                    counts.derived += u32::from(ids.insert(record.id));
                }
            }
            if ids.len() == before {
                break;
            }
        }
        let erased = || ids.iter().filter_map(|id| self.state.record(*id));
        if ids.is_empty() || preview.unwrap_or(matches!(target, ForgetTarget::Query(_))) {
            return Ok(Plan::Done(Response::Forget {
                erased: 0,
                counts: ErasedCounts::default(),
                preview: erased().cloned().collect(),
                receipt: None,
            }));
        }
        let mut changes = Vec::new();
        for record in erased() {
            self.count(&mut counts, record);
            // A plan that is forgotten before its day replaces nothing any more; what was replaced already stays so.
            changes.extend(restored(&self.state, record, now_ms));
        }
        // What stands on other evidence as well counts that alone.
        for record in self.state.records().filter(|one| !ids.contains(&one.id)) {
            let lost = record.evidence.iter().filter(|link| ids.contains(&link.id));
            let lost = lost.count() as u32;
            if lost > 0 {
                changes.push(Change::Revise {
                    id: record.id,
                    revision: Revision::Told {
                        at_ms: self.state.last_heard_ms(record),
                        proof_count: record.proof_count.saturating_sub(lost).max(1),
                    },
                });
            }
        }
        changes.extend(
            ids.into_iter()
                .map(|id| Change::Erase { id, at_ms: now_ms }),
        );
        Ok(Plan::Commit {
            changes,
            answer: Answer::Forget(counts),
        })
    }

    fn count(&self, counts: &mut ErasedCounts, record: &Record) {
        counts.records += 1;
        let current = record.status == Status::Current;
        counts.vectors += u32::from(self.state.has_vector(record.id));
        counts.words += u32::from(crate::state::is_searchable(record));
        counts.profile += u32::from(current && crate::profile::is_candidate(record));
        counts.pending += u32::from(current && record.route.judgement == Judgement::Pending);
    }

    /// Where all that is stored stands.
    #[must_use]
    pub fn counts(&self) -> ErasedCounts {
        let mut counts = ErasedCounts::default();
        for record in self.state.records() {
            self.count(&mut counts, record);
        }
        counts
    }

    /// A record inside the scope. Outside of it, erased and never told look the same.
    pub(crate) fn administered(&self, scope: &Scope, id: RecordId) -> Result<&Record, Error> {
        self.state
            .record(id)
            .filter(|record| scope.contains(&record.scope))
            .ok_or_else(unknown_id)
    }
}

/// Whether a text has at least half of the words.
fn shares(told: &[String], words: &[String]) -> bool {
    let found = words.iter().filter(|word| told.contains(word)).count();
    found * 2 >= words.len()
}

pub(crate) fn unknown_id() -> Error {
    Error::new(
        ErrorCode::UnknownId,
        "no record of that id is in the scope; it may have been forgotten",
    )
}

fn revision(id: RecordId, revision: Revision, answer: Answer) -> Plan {
    Plan::Commit {
        changes: vec![Change::Revise { id, revision }],
        answer,
    }
}
