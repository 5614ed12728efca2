//! Verbs that change records: update, confirm, judge, forget.

use foremind_types::{
    Change, Error, ErrorCode, Grade, Judgement, Record, RecordId, Revision, Route, Scope, Stage,
    Status, Tier,
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
        now_ms: i64,
    ) -> Result<Plan, Error> {
        let inside = |record: &&Record| scope.contains(&record.scope);
        let ids: Vec<RecordId> = match target {
            ForgetTarget::Id(id) => vec![self.administered(scope, *id)?.id],
            ForgetTarget::Thread(thread) => self
                .state
                .records()
                .filter(inside)
                .filter(|record| {
                    record.provenance.thread.as_ref() == Some(thread)
                        || record.scope.thread.as_ref() == Some(thread)
                })
                .map(|record| record.id)
                .collect(),
            ForgetTarget::Scope => self
                .state
                .records()
                .filter(inside)
                .map(|record| record.id)
                .collect(),
        };
        let erased = ids.len() as u32;
        if ids.is_empty() {
            return Ok(Plan::Done(Response::Forget { erased }));
        }
        // A plan that is forgotten before its day replaces nothing any more; what was replaced already stays so.
        let mut changes: Vec<Change> = ids
            .iter()
            .filter_map(|id| self.state.record(*id))
            .flat_map(|record| restored(&self.state, record, now_ms))
            .collect();
        changes.extend(
            ids.into_iter()
                .map(|id| Change::Erase { id, at_ms: now_ms }),
        );
        Ok(Plan::Commit {
            changes,
            answer: Answer::Forget { erased },
        })
    }

    /// A record inside the scope. Outside of it, erased and never told look the same.
    fn administered(&self, scope: &Scope, id: RecordId) -> Result<&Record, Error> {
        self.state
            .record(id)
            .filter(|record| scope.contains(&record.scope))
            .ok_or_else(unknown_id)
    }
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
