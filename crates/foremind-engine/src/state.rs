//! The fold: entries in, records out. Every facet of the state is a join (the least addition, the greatest
//! revision, the least erasure, a union), so neither order nor repetition of entries can show in it.
//!
//! The indexes beside it are functions of the records, kept up as these change.

use core::fmt::{self, Write};
use std::collections::{BTreeMap, BTreeSet, HashSet};
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
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::identity::{Identity, identity};
use crate::slots::{At, Slots};
use crate::veil::{Given, Gives};
use crate::word_index::WordIndex;

/// So many ids around one are looked through for its conversation.
const BESIDE_IDS: usize = 16;

/// The state of one memory.
#[derive(Debug, Default)]
pub(crate) struct State {
    slots: Slots,
    turns: BTreeMap<TurnKey, BTreeSet<RecordId>>,
    seen: SmallMap<WriterId, Seen>,
    /// What placeholders are made with.
    pub(crate) salt: [u8; 16],
    // Derived from here on.
    /// Every name once: records share them.
    names: HashSet<Name, FxBuildHasher>,
    words: OnceLock<WordIndex>,
    vectors: Vectors,
    /// Asked for when something is written; made then.
    same: OnceLock<Same>,
    replaced_by: SmallMap<RecordId, SmallSet<RecordId>>,
    /// Who has evidence from whom.
    quoted_by: SmallMap<RecordId, SmallSet<RecordId>>,
    /// How many slots wait for a vector.
    waiting: usize,
    /// In the order of their ids.
    bearing: Vec<u32>,
}

/// The places of each identity, by its first bytes: the records tell the rest.
type Same = HashTable<Twin>;

/// A record among those of one identity, or nearly one.
#[derive(Clone, Copy, Debug)]
struct Twin {
    identity: u32,
    place: u32,
}

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
    /// Whether it should have one; derived.
    waits: Waits,
    /// The earliest erasure. A slot that has it has nothing else.
    erased_ms: Option<i64>,
}

/// A function of the rest of a slot, so slots that differ in it alone are the same.
#[derive(Clone, Copy, Default)]
struct Waits(bool);

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waits")
    }
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
            let Some(place) = self.slots.place(id) else {
                continue;
            };
            let Some(mut added) = self.slots.at_mut(place).added.take() else {
                continue;
            };
            self.unlink_record(&mut added.record);
            self.slots.at_mut(place).added = Some(added);
        }
    }

    fn unlink_record(&self, record: &mut Record) {
        let gone = |id: &RecordId| {
            let slot = self.slots.get(*id);
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
                self.share_names(&mut record);
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

    /// Has a record use the names that are there, and gives back what room its parts do not need.
    fn share_names(&mut self, record: &mut Record) {
        let mut share = |name: &mut Name| match self.names.get(name) {
            Some(known) => *name = known.clone(),
            None => {
                self.names.insert(name.clone());
            }
        };
        let Scope {
            user,
            project,
            thread,
            agent,
        } = &mut record.scope;
        share(user);
        let provenance = &mut record.provenance;
        let narrower = [
            project,
            thread,
            agent,
            &mut provenance.thread,
            &mut provenance.turn,
        ];
        narrower.into_iter().flatten().for_each(share);
        record.text.shrink_to_fit();
        record.route.affects.shrink_to_fit();
        record.route.reasons.shrink_to_fit();
        record.supersedes.shrink_to_fit();
    }

    /// Changes a slot and brings the indexes after it.
    fn revise(&mut self, id: RecordId, change: impl FnOnce(&mut Slot) -> bool) {
        let place = self.slots.place_for(id);
        let slot = self.slots.at_mut(place);
        let with_identity = self.same.get().is_some();
        let before = slot.derived(with_identity);
        // Its words are found by its text.
        let searchable = before.as_ref().is_some_and(|before| before.searchable);
        let indexed = slot.record().filter(|_| searchable);
        let indexed = self.words.get().and(indexed);
        let text = indexed.map(|record| record.text.clone());
        if !change(slot) {
            return;
        }
        let after = slot.derived(with_identity);
        let wants_vector =
            slot.embedded.is_none() && after.as_ref().is_some_and(|after| after.current);
        if slot.erased_ms.is_some() {
            self.vectors.remove(place);
        }
        if before != after {
            if let Some(before) = before {
                if let Some(identity) = before.identity {
                    self.same_remove(&identity, place);
                }
                for earlier in &before.supersedes {
                    if let Some(later) = self.replaced_by.get_mut(earlier) {
                        later.remove(&id);
                    }
                }
                if let (Some(words), Some(text)) = (self.words.get_mut(), text) {
                    words.remove(place, &text);
                }
                if before.bears {
                    self.slots.take(&mut self.bearing, place);
                }
            }
            if let Some(after) = after {
                for quoted in after.evidence {
                    self.quoted_by.entry(quoted).or_default().insert(id);
                }
                for earlier in after.supersedes {
                    self.replaced_by.entry(earlier).or_default().insert(id);
                }
                if let (Some(same), Some(identity)) = (self.same.get_mut(), after.identity) {
                    same_insert(same, &identity, place);
                }
                if let (Some(words), Some(at), true) = (
                    self.words.get_mut(),
                    self.slots.record(place),
                    after.searchable,
                ) {
                    words.insert(at);
                }
                if after.bears {
                    self.slots.put(&mut self.bearing, place);
                }
            }
        }
        self.set_waiting(place, wants_vector);
    }

    fn set_waiting(&mut self, place: u32, waits: bool) {
        let slot = self.slots.at_mut(place);
        let waited = core::mem::replace(&mut slot.waits, Waits(waits)).0;
        self.waiting = self.waiting + usize::from(waits) - usize::from(waited);
    }

    fn embed(&mut self, id: RecordId, embedding: &Embedding, stamp: Stamp) {
        let place = self.slots.place_for(id);
        let slot = self.slots.at_mut(place);
        let later = slot.embedded.is_some_and(|old| old >= stamp);
        // What cannot be searched with is no embedding, on every host alike.
        if slot.erased_ms.is_some() || later || check(embedding).is_err() {
            return;
        }
        slot.embedded = Some(stamp);
        self.vectors.remove(place);
        let stored = self.vectors.insert(place, embedding);
        debug_assert!(stored.is_ok());
        self.set_waiting(place, false);
    }

    fn same_remove(&mut self, identity: &Identity, place: u32) {
        let Some(same) = self.same.get_mut() else {
            return;
        };
        let hash = spread(short(identity));
        if let Ok(twin) = same.find_entry(hash, |twin| twin.place == place) {
            twin.remove();
        }
    }

    /// A record that is not erased.
    pub(crate) fn record(&self, id: RecordId) -> Option<&Record> {
        self.slots.get(id)?.record()
    }

    /// The record at a place of an index.
    pub(crate) fn record_at(&self, place: u32) -> Option<At<'_>> {
        self.slots.record(place)
    }

    /// What the text of a record gives away, unless it is erased.
    pub(crate) fn gives(&self, id: RecordId) -> Option<&Gives> {
        let added = self.slots.get(id)?.added.as_ref()?;
        Some(added.given.of(&added.record.text))
    }

    /// All records that are not erased, by id.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.slots.iter().filter_map(|(_, slot)| slot.record())
    }

    /// The records that may bear on a question that they do not look like, by id.
    pub(crate) fn bearing(&self) -> impl Iterator<Item = &Record> {
        let bearing = self.bearing.iter();
        bearing.filter_map(|place| self.slots.at(*place).record())
    }

    /// Those after `id`.
    pub(crate) fn records_after(&self, id: Option<RecordId>) -> impl Iterator<Item = &Record> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, Excluded);
        self.slots
            .range((from, Unbounded))
            .filter_map(|place| self.slots.at(place).record())
    }

    /// The records told in `from_ms..to_ms`, by id.
    pub(crate) fn told_between(
        &self,
        from_ms: i64,
        to_ms: i64,
    ) -> impl DoubleEndedIterator<Item = At<'_>> {
        let at = |ms: i64| RecordId::new(ms, [0; 10]);
        self.slots
            .range(at(from_ms)..at(to_ms.max(from_ms)))
            .filter_map(|place| self.slots.record(place))
    }

    /// Up to `most` records of the same conversation that were told just `after` one, or just before it, nearest first.
    /// Found among the ids around it, which sort by time.
    pub(crate) fn beside(&self, record: &Record, after: bool, most: usize) -> Vec<At<'_>> {
        let mut nearest: Vec<At<'_>> = Vec::new();
        let Some(thread) = &record.provenance.thread else {
            return nearest;
        };
        let key = |record: &Record| (record.times.told_ms, record.provenance.statement);
        let own = key(record);
        // Before it the latest is the nearest; of equals the lesser id is, on both sides.
        let farther = |one: &Record, other: &Record| {
            let (one_key, other_key) = (key(one), key(other));
            let order = if after {
                one_key.cmp(&other_key)
            } else {
                other_key.cmp(&one_key)
            };
            order.then(one.id.cmp(&other.id)).is_gt()
        };
        let mut look = |place: u32| {
            let Some(other) = self.slots.record(place) else {
                return;
            };
            let there = key(other.record);
            let there = if after { there > own } else { there < own };
            if there
                && other.record.provenance.thread.as_ref() == Some(thread)
                && other.record.scope == record.scope
            {
                let at = nearest.partition_point(|near| farther(other.record, near.record));
                if at < most {
                    nearest.insert(at, other);
                    nearest.truncate(most);
                }
            }
        };
        // The statements of one turn have one time and are in no order among themselves.
        let edge = |at_ms: i64| RecordId::new(at_ms, [0; 10]);
        let at_ms = record.times.told_ms;
        if after {
            let places = self.slots.range(edge(at_ms)..);
            places.take(BESIDE_IDS).for_each(&mut look);
        } else {
            let places = self.slots.range(..edge(at_ms.saturating_add(1)));
            places.rev().take(BESIDE_IDS).for_each(&mut look);
        }
        nearest
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
            for place in self.slots.places() {
                if let Some(record) = self.slots.at(place).record() {
                    same_insert(&mut same, &identity_of(record), place);
                }
            }
            same
        });
        let short = short(identity);
        let mut twins: Vec<u32> = Vec::new();
        for twin in same.iter_hash(spread(short)) {
            let record = self.slots.at(twin.place).record();
            if twin.identity == short
                && record.is_some_and(|record| identity_of(record) == *identity)
            {
                self.slots.put(&mut twins, twin.place);
            }
        }
        twins
            .into_iter()
            .filter_map(|place| self.slots.at(place).record())
    }

    /// What replaced a record.
    pub(crate) fn replaced_by(&self, id: RecordId) -> impl Iterator<Item = RecordId> {
        self.replaced_by.get(&id).into_iter().flatten().copied()
    }

    /// Records that wait for a vector, by id: those without one, and with a `model` also those whose vector is another
    /// model's.
    pub(crate) fn without_vector(&self, model: Option<&ModelId>) -> Vec<RecordId> {
        let mut outside: SmallSet<u32> = SmallSet::new();
        if let Some(model) = model {
            let head = HeadId(EMBEDDING_HEAD.to_owned());
            outside.extend(self.vectors.outside(model, &head));
        }
        if self.waiting == 0 && outside.is_empty() {
            return Vec::new();
        }
        let waits = |place: &u32| self.slots.at(*place).waits.0 || outside.contains(place);
        let waiting = self.slots.places().filter(waits);
        waiting.map(|place| self.slots.id(place)).collect()
    }

    pub(crate) fn has_vector(&self, id: RecordId) -> bool {
        self.slots
            .get(id)
            .is_some_and(|slot| slot.embedded.is_some())
    }

    /// The records that have a vector.
    pub(crate) fn with_vectors(&self) -> impl Iterator<Item = &Record> {
        let embedded = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.embedded.is_some());
        embedded.filter_map(|(_, slot)| slot.record())
    }

    /// Whether an index names it.
    pub(crate) fn is_indexed(&self, id: RecordId) -> bool {
        let indexed = |place: u32| {
            let words = self.words.get();
            words.is_some_and(|index| index.words().contains(place)) || self.vectors.contains(place)
        };
        self.slots.place(id).is_some_and(indexed)
    }

    pub(crate) fn words(&self) -> &WordIndex {
        let records = || {
            let records = self.slots.places();
            records.filter_map(|place| self.slots.record(place))
        };
        self.words
            .get_or_init(|| WordIndex::of(records().filter(|at| is_searchable(at.record))))
    }

    pub(crate) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// A hash of everything that entries determine; what is derived from it is left out.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut out = Hashed(blake3::Hasher::new());
        // Hashing cannot fail. Debug output names every field, so different states read differently.
        for (id, slot) in self.slots.iter() {
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

fn short(identity: &Identity) -> u32 {
    let [a, b, c, d, ..] = *identity;
    u32::from_le_bytes([a, b, c, d])
}

/// The table takes its place from the lower bits and what it compares first from the upper ones.
fn spread(identity: u32) -> u64 {
    u64::from(identity) << 32 | u64::from(identity)
}

fn same_insert(same: &mut Same, identity: &Identity, place: u32) {
    let identity = short(identity);
    let twin = Twin { identity, place };
    same.insert_unique(spread(identity), twin, |twin| spread(twin.identity));
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
    pub(crate) fn record(&self) -> Option<&Record> {
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
            .get(record.id)
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
                let place = state.slots.place_for(id);
                *state.slots.at_mut(place) = slot;
                state.slots.put(&mut state.bearing, place);
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
                    .or_insert_with(|| self.slots.get(id).cloned().unwrap_or_default());
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
            let before = self.slots.get(*id).and_then(Slot::in_profile);
            before != slot.in_profile()
        });
        // What is left says something of what is erased.
        changed
            || after.values().any(|slot| slot.erased_ms.is_some())
                && self
                    .slots
                    .iter()
                    .filter_map(|(_, slot)| slot.in_profile())
                    .any(|(record, _)| {
                        record.evidence.iter().any(|link| gone(&link.id))
                            || record.supersedes.iter().any(|link| gone(&link.id))
                    })
    }

    /// The records of the profile, by id, with these slots in the place of its own.
    pub(crate) fn profile_records(&self, after: &BTreeMap<RecordId, Slot>) -> Vec<(Record, i64)> {
        let kept = self.slots.iter().filter(|(id, _)| !after.contains_key(id));
        let mut records: Vec<(Record, i64)> = kept
            .map(|(_, slot)| slot)
            .chain(after.values())
            .filter_map(Slot::in_profile)
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
