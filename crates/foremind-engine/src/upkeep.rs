//! What concerns a memory as a whole: its profile as a value of its own, and what an import brings.

use std::collections::{BTreeMap, BTreeSet};

use foremind_types::small::SmallSet;

use foremind_guard::Verdict;
use foremind_types::limits::RECORDS;
use foremind_types::{Change, Entry, Error, ErrorCode, Record, RecordId, Revision, Scope, Status};

use crate::engine::Engine;
use crate::identity::identity;
use crate::read;
use crate::recall::{Time, status_at};
use crate::request::Audience;
use crate::response::Prompt;
use crate::state::State;

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
        match self.guard.statement(&record.text)? {
            Verdict::Accept(text) => record.text = text.into_string(),
            _ => record.status = Status::Quarantined,
        }
        Ok(())
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
                same.sort_unstable();
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
