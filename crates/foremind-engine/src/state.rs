//! The fold: entries in, records out. Every facet of the state is a join (the least addition, the greatest
//! revision, the least erasure, a union), so neither order nor repetition of entries can show in it.
//!
//! The indexes beside it are functions of the records, kept up as these change.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use foremind_types::small::{SmallMap, SmallSet};

use crate::protocol::EMBEDDING_HEAD;
use foremind_index::{Vectors, check};
use foremind_router::KIND_REASON;
use foremind_types::order::{set_of, sort_by_key};
use foremind_types::{
    Change, Embedding, Entry, HeadId, ModelId, Name, Reason, Record, RecordId, Revision, Route,
    Scope, Stage, Stamp, Status, WriterId,
};
use rustc_hash::FxBuildHasher;

use crate::identity::{Identity, identity};
use crate::veil::{Given, Gives};
use crate::word_index::WordIndex;

/// So many ids around one are looked through for its conversation.
const BESIDE_IDS: usize = 16;

/// The state of one memory.
#[derive(Debug, Default)]
pub(crate) struct State {
    slots: BTreeMap<RecordId, Slot>,
    turns: BTreeMap<TurnKey, BTreeSet<RecordId>>,
    seen: SmallMap<WriterId, Seen>,
    /// What placeholders are made with.
    pub(crate) salt: [u8; 16],
    // Derived from here on.
    words: OnceLock<WordIndex>,
    vectors: Vectors,
    /// Asked for when something is written; made then.
    same: OnceLock<Same>,
    replaced_by: SmallMap<RecordId, SmallSet<RecordId>>,
    /// Who has evidence from whom.
    quoted_by: SmallMap<RecordId, SmallSet<RecordId>>,
    without_vector: BTreeSet<RecordId>,
    bearing: BTreeSet<RecordId>,
}

/// The records of each identity.
type Same = HashMap<Identity, SmallSet<RecordId>, FxBuildHasher>;

/// What names a turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TurnKey {
    pub(crate) scope: Scope,
    pub(crate) thread: Name,
    pub(crate) turn: Name,
}

/// What is known of one id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    added: Option<Added>,
    /// Most records are never revised.
    revised: Option<Box<Revised>>,
    /// The vector itself lives in the index only.
    embedded: Option<Stamp>,
    /// The earliest erasure. A slot that has it has nothing else.
    erased_ms: Option<i64>,
}

/// The greatest revision of each kind.
#[derive(Clone, Debug, Default)]
struct Revised {
    status: Option<(Stamp, Status, Option<i64>)>,
    route: Option<(RouteRank, Box<Route>)>,
    confirmed: Option<(Stamp, i64)>,
    told: Option<(Stamp, i64, u32)>,
}

/// The least addition.
#[derive(Clone, Debug)]
struct Added {
    stamp: Stamp,
    /// Whether its own verdict was the owner's.
    by_owner: bool,
    /// With the winning revisions written into it.
    record: Box<Record>,
    /// Derived from its text.
    given: Given,
}

/// Orders verdicts: the owner's beats any other, else the later one wins.
type RouteRank = (bool, Stamp);

/// Which entries of a writer were applied.
#[derive(Debug, Default)]
struct Seen {
    /// All below were.
    next: u64,
    /// And these, which came early.
    ahead: SmallSet<u64>,
}

impl Seen {
    /// Whether the entry is new; it is not any more afterwards.
    fn take(&mut self, counter: u64) -> bool {
        if counter < self.next || !self.ahead.insert(counter) {
            return false;
        }
        while self.ahead.remove(&self.next) {
            self.next += 1;
        }
        true
    }
}

impl State {
    pub(crate) fn apply(&mut self, entry: Entry) {
        if !self
            .seen
            .entry(entry.writer)
            .or_default()
            .take(entry.counter)
        {
            return;
        }
        let mut stamp = entry.stamp(0);
        for (position, change) in (0..).zip(entry.changes) {
            stamp.position = position;
            self.change(change, stamp);
        }
    }

    /// Takes out of records what they say of an erased one.
    fn unlink(&mut self, erased: RecordId) {
        let quoting = self.quoted_by.remove(&erased).unwrap_or_default();
        for id in quoting.into_iter().chain(set_of(self.replaced_by(erased))) {
            let Some(mut slot) = self.slots.remove(&id) else {
                continue;
            };
            if let Some(added) = &mut slot.added {
                self.unlink_record(&mut added.record);
            }
            self.slots.insert(id, slot);
        }
    }

    fn unlink_record(&self, record: &mut Record) {
        let gone = |id: &RecordId| {
            let slot = self.slots.get(id);
            slot.is_some_and(|slot| slot.erased_ms.is_some())
        };
        record.evidence.retain(|link| !gone(&link.id));
        for link in &mut record.supersedes {
            if gone(&link.id) {
                link.why.clear();
            }
        }
    }

    fn change(&mut self, change: Change, stamp: Stamp) {
        match change {
            Change::Add(mut record) => {
                self.unlink_record(&mut record);
                self.revise(record.id, |slot| slot.add(record, stamp));
            }
            Change::Revise { id, revision } => {
                self.revise(id, |slot| slot.revise(revision, stamp));
            }
            Change::Embed { id, embedding } => self.embed(id, &embedding, stamp),
            Change::Turn {
                scope,
                thread,
                turn,
                records,
            } => {
                let key = TurnKey {
                    scope,
                    thread,
                    turn,
                };
                self.turns.entry(key).or_default().extend(records);
            }
            Change::Erase { id, at_ms } => {
                self.revise(id, |slot| slot.erase(at_ms));
                self.unlink(id);
            }
            // Kinds that a later version adds are read by that version only.
            _ => {}
        }
    }

    /// Changes a slot and brings the indexes after it.
    fn revise(&mut self, id: RecordId, change: impl FnOnce(&mut Slot) -> bool) {
        let slot = self.slots.entry(id).or_default();
        let with_identity = self.same.get().is_some();
        let before = slot.derived(with_identity);
        if !change(slot) {
            return;
        }
        let after = slot.derived(with_identity);
        let wants_vector =
            slot.embedded.is_none() && after.as_ref().is_some_and(|after| after.current);
        if slot.erased_ms.is_some() {
            self.vectors.remove(id);
        }
        if before != after {
            if let Some(before) = before {
                if let Some(identity) = before.identity {
                    self.same_remove(&identity, id);
                }
                for earlier in &before.supersedes {
                    if let Some(later) = self.replaced_by.get_mut(earlier) {
                        later.remove(&id);
                    }
                }
                if let Some(words) = self.words.get_mut() {
                    words.remove(id);
                }
                self.bearing.remove(&id);
            }
            if let Some(after) = after {
                for quoted in after.evidence {
                    self.quoted_by.entry(quoted).or_default().insert(id);
                }
                for earlier in after.supersedes {
                    self.replaced_by.entry(earlier).or_default().insert(id);
                }
                if let (Some(same), Some(identity)) = (self.same.get_mut(), after.identity) {
                    same.entry(identity).or_default().insert(id);
                }
                let record = self.slots.get(&id).and_then(Slot::record);
                if let (Some(words), Some(record), true) =
                    (self.words.get_mut(), record, after.searchable)
                {
                    words.insert(record);
                }
                if after.bears {
                    self.bearing.insert(id);
                }
            }
        }
        if wants_vector {
            self.without_vector.insert(id);
        } else {
            self.without_vector.remove(&id);
        }
    }

    fn embed(&mut self, id: RecordId, embedding: &Embedding, stamp: Stamp) {
        let slot = self.slots.entry(id).or_default();
        let later = slot.embedded.is_some_and(|old| old >= stamp);
        // What cannot be searched with is no embedding, on every host alike.
        if slot.erased_ms.is_some() || later || check(embedding).is_err() {
            return;
        }
        slot.embedded = Some(stamp);
        self.vectors.remove(id);
        let stored = self.vectors.insert(id, embedding);
        debug_assert!(stored.is_ok());
        self.without_vector.remove(&id);
    }

    fn same_remove(&mut self, identity: &Identity, id: RecordId) {
        let Some(same) = self.same.get_mut() else {
            return;
        };
        if let Some(ids) = same.get_mut(identity) {
            ids.remove(&id);
            if ids.is_empty() {
                same.remove(identity);
            }
        }
    }

    /// A record that is not erased.
    pub(crate) fn record(&self, id: RecordId) -> Option<&Record> {
        self.slots.get(&id)?.record()
    }

    /// What the text of a record gives away, unless it is erased.
    pub(crate) fn gives(&self, id: RecordId) -> Option<&Gives> {
        let added = self.slots.get(&id)?.added.as_ref()?;
        Some(added.given.of(&added.record.text))
    }

    /// All records that are not erased, by id.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.slots.values().filter_map(Slot::record)
    }

    /// The records that may bear on a question that they do not look like, by id.
    pub(crate) fn bearing(&self) -> impl Iterator<Item = &Record> {
        self.bearing.iter().filter_map(|id| self.record(*id))
    }

    /// Those after `id`.
    pub(crate) fn records_after(&self, id: Option<RecordId>) -> impl Iterator<Item = &Record> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, Excluded);
        self.slots
            .range((from, Unbounded))
            .filter_map(|(_, slot)| slot.record())
    }

    /// The records told in `from_ms..to_ms`, by id.
    pub(crate) fn told_between(
        &self,
        from_ms: i64,
        to_ms: i64,
    ) -> impl DoubleEndedIterator<Item = &Record> {
        let at = |ms: i64| RecordId::new(ms, [0; 10]);
        self.slots
            .range(at(from_ms)..at(to_ms.max(from_ms)))
            .filter_map(|(_, slot)| slot.record())
    }

    /// Up to `most` records of the same conversation that were told just `after` one, or just before it, nearest first.
    /// Found among the ids around it, which sort by time.
    pub(crate) fn beside(&self, record: &Record, after: bool, most: usize) -> Vec<&Record> {
        let provenance = &record.provenance;
        let key = |record: &Record| (record.times.told_ms, record.provenance.statement);
        if provenance.thread.is_none() {
            return Vec::new();
        }
        let own = key(record);
        let fits = |other: &Record| {
            let there = if after {
                key(other) > own
            } else {
                key(other) < own
            };
            there && other.provenance.thread == provenance.thread && other.scope == record.scope
        };
        // The statements of one turn have one time and are in no order among themselves.
        let edge = |at_ms: i64| RecordId::new(at_ms, [0; 10]);
        let at_ms = record.times.told_ms;
        let mut near: Vec<&Record> = if after {
            let slots = self.slots.range(edge(at_ms)..).take(BESIDE_IDS);
            let records = slots.filter_map(|(_, slot)| slot.record());
            records.filter(|other| fits(other)).collect()
        } else {
            let slots = self.slots.range(..edge(at_ms.saturating_add(1)));
            let slots = slots.rev().take(BESIDE_IDS);
            let records = slots.filter_map(|(_, slot)| slot.record());
            records.filter(|other| fits(other)).collect()
        };
        sort_by_key(&mut near, |other| key(other));
        if !after {
            near.reverse();
        }
        near.truncate(most);
        near
    }

    /// Number of ids known, erased ones included.
    pub(crate) fn ids(&self) -> usize {
        self.slots.len()
    }

    /// What a turn became, if it was ingested.
    pub(crate) fn turn(&self, key: &TurnKey) -> Option<&BTreeSet<RecordId>> {
        self.turns.get(key)
    }

    /// The records with this identity, by id.
    pub(crate) fn same(&self, identity: &Identity) -> impl Iterator<Item = &Record> {
        let same = self.same.get_or_init(|| {
            let mut same = Same::default();
            for record in self.records() {
                same.entry(identity_of(record))
                    .or_default()
                    .insert(record.id);
            }
            same
        });
        same.get(identity)
            .into_iter()
            .flatten()
            .filter_map(|id| self.record(*id))
    }

    /// What replaced a record.
    pub(crate) fn replaced_by(&self, id: RecordId) -> impl Iterator<Item = RecordId> {
        self.replaced_by.get(&id).into_iter().flatten().copied()
    }

    /// Current records without a vector, by id.
    /// Records that wait for a vector, by id: those without one, and with a `model` also those whose vector is another
    /// model's.
    pub(crate) fn without_vector(&self, model: Option<&ModelId>) -> BTreeSet<RecordId> {
        let mut ids = self.without_vector.clone();
        if let Some(model) = model {
            let head = HeadId(EMBEDDING_HEAD.to_owned());
            ids.extend(self.vectors.outside(model, &head));
        }
        ids
    }

    pub(crate) fn has_vector(&self, id: RecordId) -> bool {
        self.slots
            .get(&id)
            .is_some_and(|slot| slot.embedded.is_some())
    }

    /// Whether an index names it.
    pub(crate) fn is_indexed(&self, id: RecordId) -> bool {
        let words = self.words.get();
        words.is_some_and(|index| index.words().contains(id)) || self.vectors.contains(id)
    }

    pub(crate) fn words(&self) -> &WordIndex {
        let searchable = || self.records().filter(|record| is_searchable(record));
        self.words.get_or_init(|| WordIndex::of(searchable()))
    }

    pub(crate) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// A hash of everything that entries determine; what is derived from it is left out.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut out = Hashed(blake3::Hasher::new());
        // Hashing cannot fail. Debug output names every field, so different states read differently.
        for (id, slot) in &self.slots {
            let _ = writeln!(out, "{id:?}{slot:?}");
        }
        let _ = write!(out, "{:?}{:?}", self.turns, self.seen);
        out.0.finalize().into()
    }
}

struct Hashed(blake3::Hasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// What the indexes hold of a record, vectors aside.
#[derive(PartialEq)]
struct Derived {
    /// Of the addition, which alone decides the text.
    added: Stamp,
    /// Only where the identities are kept.
    identity: Option<Identity>,
    supersedes: Vec<RecordId>,
    evidence: Vec<RecordId>,
    searchable: bool,
    current: bool,
    bears: bool,
}

fn identity_of(record: &Record) -> Identity {
    identity(&record.scope, record.provenance.role, &record.text)
}

/// Time is not asked here: what has expired by itself stays indexed and is left out by each search.
/// What was replaced stays as well: its words lead to what is current, and a question of the past is answered by it.
pub(crate) fn is_searchable(record: &Record) -> bool {
    matches!(
        record.status,
        Status::Current | Status::Superseded | Status::Retracted
    )
}

/// Whether it may bear on a question that it does not look like: it may be in the profile, or is of a kind that is known to.
fn bears(record: &Record) -> bool {
    let kind = |reason: &Reason| reason.signal.starts_with(KIND_REASON);
    crate::profile::is_candidate(record) || record.route.reasons.iter().any(kind)
}

fn is_current(record: &Record) -> bool {
    record.status == Status::Current
}

/// Puts `value` in place of a lesser one; tells whether it did.
fn raise<T, R: Ord>(
    place: &mut Option<T>,
    rank: R,
    value: impl FnOnce() -> T,
    rank_of: impl FnOnce(&T) -> R,
) -> bool {
    let higher = place.as_ref().is_none_or(|old| rank_of(old) < rank);
    if higher {
        *place = Some(value());
    }
    higher
}

impl Slot {
    /// The record with its revisions, unless it is erased or only known by revisions so far.
    fn record(&self) -> Option<&Record> {
        self.added.as_ref().map(|added| &*added.record)
    }

    /// What the indexes hold of it.
    fn derived(&self, with_identity: bool) -> Option<Derived> {
        let Added { record, stamp, .. } = self.added.as_ref()?;
        Some(Derived {
            added: *stamp,
            identity: with_identity.then(|| identity_of(record)),
            supersedes: record.supersedes.iter().map(|s| s.id).collect(),
            evidence: record.evidence.iter().map(|link| link.id).collect(),
            searchable: is_searchable(record),
            current: is_current(record),
            bears: bears(record),
        })
    }

    fn add(&mut self, record: Box<Record>, stamp: Stamp) -> bool {
        let later = self.added.as_ref().is_some_and(|old| old.stamp <= stamp);
        if self.erased_ms.is_some() || later {
            return false;
        }
        self.added = Some(Added {
            stamp,
            by_owner: record.route.stage == Stage::Owner,
            record,
            given: Given::default(),
        });
        self.settle();
        true
    }

    fn revise(&mut self, revision: Revision, stamp: Stamp) -> bool {
        if self.erased_ms.is_some() {
            return false;
        }
        let revised = self.revised.get_or_insert_default();
        let raised = match revision {
            Revision::Status {
                status,
                valid_to_ms,
            } => {
                // Erasure is a change of its own; a status that claims it is not believed.
                status != Status::Erased
                    && raise(
                        &mut revised.status,
                        stamp,
                        || (stamp, status, valid_to_ms),
                        |s| s.0,
                    )
            }
            Revision::Route(route) => {
                let rank = (route.stage == Stage::Owner, stamp);
                raise(&mut revised.route, rank, || (rank, route), |r| r.0)
            }
            Revision::Confirmed { at_ms } => {
                raise(&mut revised.confirmed, stamp, || (stamp, at_ms), |c| c.0)
            }
            Revision::Told { at_ms, proof_count } => raise(
                &mut revised.told,
                stamp,
                || (stamp, at_ms, proof_count),
                |t| t.0,
            ),
            _ => false,
        };
        if raised {
            self.settle();
        }
        raised
    }

    fn erase(&mut self, at_ms: i64) -> bool {
        let earliest = self.erased_ms.map_or(at_ms, |old| old.min(at_ms));
        *self = Self {
            erased_ms: Some(earliest),
            ..Self::default()
        };
        true
    }

    /// Writes the winning revisions into the record.
    fn settle(&mut self) {
        let Some(Added {
            stamp: added,
            by_owner,
            record,
            ..
        }) = &mut self.added
        else {
            return;
        };
        let Some(revised) = &self.revised else {
            return;
        };
        if let Some((stamp, status, valid_to_ms)) = &revised.status
            && stamp > added
        {
            record.status = *status;
            record.times.valid_to_ms = *valid_to_ms;
        }
        if let Some((rank, route)) = &revised.route
            && *rank > (*by_owner, *added)
        {
            record.route = (**route).clone();
        }
        if let Some((stamp, at_ms)) = &revised.confirmed
            && stamp > added
        {
            record.confirmed_ms = Some(*at_ms);
        }
        if let Some((stamp, _, proof_count)) = &revised.told
            && stamp > added
        {
            record.proof_count = *proof_count;
        }
    }

    fn last_told_ms(&self) -> Option<i64> {
        let told = self.revised.as_ref()?.told.as_ref();
        told.map(|(_, at_ms, _)| *at_ms)
    }
}

impl State {
    /// When a record was last told or confirmed, Unix milliseconds.
    pub(crate) fn last_heard_ms(&self, record: &Record) -> i64 {
        self.slots
            .get(&record.id)
            .map_or(record.times.told_ms, |slot| slot.heard_ms(record))
    }
}

/// The profile as a value of its own.
impl State {
    /// A state that holds these records only, each last heard of at the time beside it.
    pub(crate) fn of_profile(records: Vec<(Record, i64)>) -> Self {
        let stamp = Stamp {
            lamport: 0,
            writer: WriterId(0),
            counter: 0,
            position: 0,
        };
        let slot = |(record, heard_ms): (Record, i64)| {
            let slot = Slot {
                revised: Some(Box::new(Revised {
                    told: Some((stamp, heard_ms, record.proof_count)),
                    ..Revised::default()
                })),
                added: Some(Added {
                    stamp,
                    by_owner: record.route.stage == Stage::Owner,
                    record: Box::new(record),
                    given: Given::default(),
                }),
                ..Slot::default()
            };
            (slot.record().map(|record| record.id), slot)
        };
        let mut state = Self::default();
        for (id, slot) in records.into_iter().map(slot) {
            if let Some(id) = id {
                state.slots.insert(id, slot);
                state.bearing.insert(id);
            }
        }
        state
    }

    /// The slots that `entries` touch, as they will be after them.
    pub(crate) fn slots_after(&self, entries: &[Entry]) -> BTreeMap<RecordId, Slot> {
        let mut after: BTreeMap<RecordId, Slot> = BTreeMap::new();
        for entry in entries {
            for (position, change) in (0..).zip(&entry.changes) {
                let id = match change {
                    Change::Add(record) => record.id,
                    Change::Revise { id, .. } | Change::Erase { id, .. } => *id,
                    _ => continue,
                };
                let slot = after
                    .entry(id)
                    .or_insert_with(|| self.slots.get(&id).cloned().unwrap_or_default());
                let stamp = entry.stamp(position);
                match change {
                    Change::Add(record) => slot.add(record.clone(), stamp),
                    Change::Revise { revision, .. } => slot.revise(revision.clone(), stamp),
                    Change::Erase { at_ms, .. } => slot.erase(*at_ms),
                    _ => false,
                };
            }
        }
        after
    }

    /// Whether the profile is another one with these slots in the place of its own.
    pub(crate) fn changes_profile(&self, after: &BTreeMap<RecordId, Slot>) -> bool {
        let gone = |id: &RecordId| after.get(id).is_some_and(|slot| slot.erased_ms.is_some());
        let changed = after.iter().any(|(id, slot)| {
            let before = self.slots.get(id).and_then(Slot::in_profile);
            before != slot.in_profile()
        });
        // What is left says something of what is erased.
        changed
            || after.values().any(|slot| slot.erased_ms.is_some())
                && self
                    .slots
                    .values()
                    .filter_map(Slot::in_profile)
                    .any(|(record, _)| {
                        record.evidence.iter().any(|link| gone(&link.id))
                            || record.supersedes.iter().any(|link| gone(&link.id))
                    })
    }

    /// The records of the profile, by id, with these slots in the place of its own.
    pub(crate) fn profile_records(&self, after: &BTreeMap<RecordId, Slot>) -> Vec<(Record, i64)> {
        let kept = self.slots.iter().filter(|(id, _)| !after.contains_key(id));
        let mut records: Vec<(Record, i64)> = kept
            .chain(after)
            .filter_map(|(_, slot)| slot.in_profile())
            .map(|(record, heard_ms)| (record.clone(), heard_ms))
            .collect();
        sort_by_key(&mut records, |(record, _)| record.id);
        records
    }
}

impl Slot {
    /// Its record if that stands in the profile, some day or now, and when it was last heard of.
    fn in_profile(&self) -> Option<(&Record, i64)> {
        let record = self.record()?;
        let may_show = crate::profile::is_candidate(record) && is_current(record);
        may_show.then(|| (record, self.heard_ms(record)))
    }

    fn heard_ms(&self, record: &Record) -> i64 {
        record
            .times
            .told_ms
            .max(self.last_told_ms().unwrap_or(i64::MIN))
            .max(record.confirmed_ms.unwrap_or(i64::MIN))
    }
}
