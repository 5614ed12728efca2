//! What concerns a memory as a whole: its profile as a value of its own, and what an import brings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use foremind_types::small::SmallSet;

use foremind_guard::{Guard, Refusal, Verdict};
use foremind_types::limits::RECORDS;
use foremind_types::order::sort_by;
use foremind_types::{
    Ambient, Change, Entry, Error, ErrorCode, Reason, Record, RecordId, Revision, Route, Scope,
    Status,
};

use crate::engine::{Engine, invalid};
use crate::identity::identity;
use crate::op::{Answer, Plan};
use crate::read;
use crate::recall::{Time, status_at};
use crate::request::Audience;
use crate::response::{Prompt, Rescanned, Response};
use crate::state::State;
use crate::statements::{held_back_route, tells_of_owner};

/// Records that one step of a rescan looks at: some tens of milliseconds.
const RESCANNED: u32 = 256;

/// The reason that a verdict has since the owner released its record.
const RELEASED: &str = "owner-released";

/// Whether the owner released the record from quarantine.
fn is_released(record: &Record) -> bool {
    let reasons = &record.route.reasons;
    reasons.iter().any(|reason| reason.signal == RELEASED)
}

fn with_status(record: &Record, status: Status, route: Route) -> [Change; 2] {
    let revise = |revision| Change::Revise {
        id: record.id,
        revision,
    };
    [
        revise(Revision::Status {
            status,
            valid_to_ms: record.times.valid_to_ms,
        }),
        revise(Revision::Route(Box::new(route))),
    ]
}

fn redact(guard: &Guard, text: &mut String) {
    match guard.turn(text) {
        Ok(Cow::Owned(redacted)) => *text = redacted,
        Ok(Cow::Borrowed(_)) => {}
        Err(_) => text.clear(),
    }
}

/// The profile of a memory without the rest of it.
#[derive(Debug)]
pub struct ProfileView {
    state: State,
}

impl ProfileView {
    /// From what [`Engine::profile_records`] gave: the records of the profile tier, each with the time when it was
    /// last told or confirmed. The salt is that of [`Engine::salt`].
    #[must_use]
    pub fn new(records: Vec<(Record, i64)>, salt: [u8; 16]) -> Self {
        let mut state = State::of_profile(records);
        state.salt = salt;
        Self { state }
    }

    /// What the engine would answer to `profile`, to the byte.
    ///
    /// # Errors
    /// `invalid-argument` for a budget out of range.
    pub fn prompt(
        &self,
        scope: &Scope,
        budget_tokens: u32,
        audience: Audience,
        now_ms: i64,
    ) -> Result<Prompt, Error> {
        let time = Time::new(now_ms, None);
        read::profile(&self.state, scope, budget_tokens, audience, time)
    }
}

impl Engine {
    /// The records that stand in the profile now or once something expires, with the time when each was last told
    /// or confirmed.
    #[must_use]
    pub fn profile_records(&self) -> Vec<(Record, i64)> {
        self.state.profile_records(&BTreeMap::new())
    }

    /// The same, as it will be once `entries` are applied; `None` when they change nothing of it.
    #[must_use]
    pub fn profile_after(&self, entries: &[Entry]) -> Option<Vec<(Record, i64)>> {
        let after = self.state.slots_after(entries);
        self.state
            .changes_profile(&after)
            .then(|| self.state.profile_records(&after))
    }

    /// What placeholders are made with: a secret of the memory, the same for as long as it lives.
    pub fn salt(&mut self, salt: [u8; 16]) {
        self.state.salt = salt;
    }

    /// Passes a record that comes from outside through the guard, as every text is that is told.
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn admit(&self, record: &mut Record) -> Result<(), Error> {
        // What the guard blocks is no reason to refuse all the rest: its kind is left.
        let text = match self.guard.turn(&record.text) {
            Err(Refusal::Blocked { kind }) => ["[REDACTED:", kind, "]"].concat(),
            other => other?.into_owned(),
        };
        match self.guard.statement(&text)? {
            // What a file says of its verdicts is not believed: the router is asked.
            Verdict::Quarantine {
                text,
                reasons,
                sure,
            } => {
                let told = Ambient {
                    now_ms: record.times.told_ms,
                    utc_offset_min: record.times.utc_offset_min,
                    entropy: [0; 32],
                };
                if sure || !tells_of_owner(&self.router.route(&text, &told)) {
                    record.status = Status::Quarantined;
                    record.route = held_back_route(&record.route, reasons);
                }
                record.text = text.into_string();
            }
            Verdict::Accept(text) => record.text = text.into_string(),
            _ => record.status = Status::Quarantined,
        }
        let told = [&mut record.attribute, &mut record.value];
        let quotes = record.evidence.iter_mut().map(|link| &mut link.quote);
        let whys = record.supersedes.iter_mut().map(|link| &mut link.why);
        for text in told.into_iter().flatten().chain(quotes).chain(whys) {
            redact(&self.guard, text);
        }
        self.admit_route(&mut record.route);
        Ok(())
    }

    /// Passes the words that a verdict from outside quotes through the guard. That the owner released something is not
    /// believed.
    pub fn admit_route(&self, route: &mut Route) {
        route.reasons.retain(|reason| reason.signal != RELEASED);
        for reason in &mut route.reasons {
            redact(&self.guard, &mut reason.matched);
        }
    }

    /// Looks at what is stored with the patterns of now. What holds something that is redacted today is written anew and
    /// the old record erased; what is an instruction is quarantined, unless the owner released it.
    pub(crate) fn rescan(&self, scope: &Scope, after: Option<RecordId>, at: &Ambient) -> Plan {
        let mut changes = Vec::new();
        let mut found = Rescanned::default();
        let mut last = None;
        let inside = self.state.records_after(after);
        for old in inside.filter(|record| scope.contains(&record.scope)) {
            if found.looked == RESCANNED {
                found.next = last;
                break;
            }
            last = Some(old.id);
            found.looked += 1;
            let mut record = old.clone();
            if self.admit(&mut record).is_err() {
                record.status = Status::Quarantined;
            }
            if record.status == old.status || is_released(old) {
                record.status = old.status;
                record.route = old.route.clone();
            }
            if record == *old {
                continue;
            }
            let newly = record.status != old.status;
            found.quarantined += u32::from(newly);
            let rewritten = record.text != old.text
                || record.attribute != old.attribute
                || record.value != old.value
                || record.evidence != old.evidence
                || record.supersedes != old.supersedes;
            if !rewritten {
                changes.extend(with_status(old, record.status, record.route));
                continue;
            }
            found.redacted += 1;
            let mut entropy = [0; 10];
            let mut hasher = blake3::Hasher::new_derive_key("foremind rescanned record id 1");
            hasher.update(&at.entropy);
            hasher.update(&found.redacted.to_le_bytes());
            hasher.finalize_xof().fill(&mut entropy);
            record.id = RecordId::new(at.now_ms, entropy);
            changes.push(Change::Add(Box::new(record)));
            changes.push(Change::Erase {
                id: old.id,
                at_ms: at.now_ms,
            });
        }
        match changes.is_empty() {
            true => Plan::Done(Response::Rescan(found)),
            false => Plan::Commit {
                changes,
                answer: Answer::Rescan(found),
            },
        }
    }

    /// The owner's word that a quarantined record is none: it is routed as if it had just been told, and no rescan holds it back
    /// again.
    pub(crate) fn release(&self, scope: &Scope, id: RecordId, at: &Ambient) -> Result<Plan, Error> {
        let record = self.administered(scope, id)?;
        if record.status != Status::Quarantined {
            return Err(invalid("the record is not quarantined"));
        }
        let text = self.guard.released(&record.text)?;
        let mut route = self.router.route(&text, at).route;
        route.reasons.push(Reason {
            signal: RELEASED.to_owned(),
            matched: String::new(),
            weight: 0.0,
        });
        Ok(Plan::Commit {
            changes: with_status(record, Status::Current, route).into(),
            answer: Answer::Update(id),
        })
    }

    /// Whether so many more records find room.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn has_room(&self, more: usize) -> Result<(), Error> {
        if self.state.ids().saturating_add(more) <= RECORDS {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::LimitReached,
            format!("a memory holds at most {RECORDS} records; forget some or open another"),
        ))
    }

    /// A record that is not erased, as it is stored.
    #[must_use]
    pub fn stored(&self, id: RecordId) -> Option<&Record> {
        self.state.record(id)
    }

    /// Equal for records that say the same in the same place, told by the same: what a tombstone is made of.
    #[must_use]
    pub fn identity_of(record: &Record) -> [u8; 16] {
        identity(&record.scope, record.provenance.role, &record.text)
    }

    /// Whether anything of a record is in memory: itself, its vector or its words.
    #[must_use]
    pub fn holds(&self, id: RecordId) -> bool {
        self.state.record(id).is_some() || self.state.has_vector(id) || self.state.is_indexed(id)
    }

    /// All of them.
    pub fn all_stored(&self) -> impl Iterator<Item = &Record> {
        self.state.records()
    }

    /// What makes one of those current records that say the same in the same place, told by the same: the
    /// earliest stays and counts their tellings, the others are superseded. Looks at the records of `ids` and what
    /// they are the same as.
    #[must_use]
    pub fn twins(&self, ids: &BTreeSet<RecordId>, now_ms: i64) -> Vec<Change> {
        let mut groups: SmallSet<Vec<RecordId>> = SmallSet::new();
        for record in ids.iter().filter_map(|id| self.state.record(*id)) {
            let identity = identity(&record.scope, record.provenance.role, &record.text);
            let mut same: Vec<RecordId> = self
                .state
                .same(&identity)
                .filter(|twin| status_at(twin, now_ms) == Status::Current)
                .map(|twin| twin.id)
                .collect();
            if same.len() > 1 {
                sort_by(&mut same, Ord::cmp);
                groups.insert(same);
            }
        }
        let mut changes = Vec::new();
        for group in groups {
            let records: Vec<&Record> = group
                .iter()
                .filter_map(|id| self.state.record(*id))
                .collect();
            let Some((kept, others)) = records.split_first() else {
                continue;
            };
            let heard = records
                .iter()
                .map(|one| self.state.last_heard_ms(one))
                .max();
            let told = records
                .iter()
                .fold(0_u32, |sum, one| sum.saturating_add(one.proof_count));
            changes.push(Change::Revise {
                id: kept.id,
                revision: Revision::Told {
                    at_ms: heard.unwrap_or(now_ms),
                    proof_count: told,
                },
            });
            for other in others {
                changes.push(Change::Revise {
                    id: other.id,
                    revision: Revision::Status {
                        status: Status::Superseded,
                        valid_to_ms: other.times.valid_to_ms,
                    },
                });
            }
        }
        changes
    }
}
