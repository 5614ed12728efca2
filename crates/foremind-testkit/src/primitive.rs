//! Stores that have single values only, with and without compare-and-swap, and one that is read late.

use std::collections::BTreeMap;

use foremind_memory::{Capabilities, Commit, StoreReply, StoreStep, Written};
use foremind_types::{Error, ErrorCode};
use foremind_vault::{HeadToken, Key};

use crate::Store;
use crate::suite::Race;

/// How a planned failure ends a [`PrimitiveStore`]: everything after it fails too, as if the machine had gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The write does not happen.
    Before,
    /// The write happens, and nobody hears of it.
    After,
    /// Of the values that one write has, those of the bits that are set; nothing was synced between them.
    Some(u64),
}

/// A store in memory of single values: it writes commits by the strategy that its capabilities allow.
#[derive(Clone, Debug)]
pub struct PrimitiveStore {
    values: BTreeMap<Key, Vec<u8>>,
    tickets: BTreeMap<String, u64>,
    capabilities: Capabilities,
    crash: Option<(u64, Crash)>,
    dead: bool,
    writes: u64,
    /// What another one writes during the next commit, and when.
    pub meanwhile: Option<(Race, BTreeMap<Key, Vec<u8>>)>,
}

impl PrimitiveStore {
    /// Empty.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            values: BTreeMap::new(),
            tickets: BTreeMap::new(),
            capabilities,
            crash: None,
            dead: false,
            writes: 0,
            meanwhile: None,
        }
    }

    /// Plans a failure at a write, counted from now, or ends one.
    pub fn crash(&mut self, crash: Option<(u64, Crash)>) {
        self.crash = crash;
        self.writes = 0;
        self.dead = false;
    }

    /// Writes since the last [`PrimitiveStore::crash`]: sets, swaps, deletions and tickets, each once.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Everything stored.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<Key, Vec<u8>> {
        &self.values
    }

    /// Everything stored, to be tampered with.
    pub fn values_mut(&mut self) -> &mut BTreeMap<Key, Vec<u8>> {
        &mut self.values
    }

    fn alive(&self) -> Result<(), Error> {
        if self.dead {
            let message = "a planned failure of the store";
            return Err(Error::new(ErrorCode::StorageFailed, message));
        }
        Ok(())
    }

    /// Counts a write; which of its values are written, by bits.
    fn write_mask(&mut self) -> Result<u64, Error> {
        self.alive()?;
        let due = self.crash.filter(|(at, _)| *at == self.writes);
        self.writes += 1;
        self.dead = due.is_some();
        Ok(match due {
            Some((_, Crash::Before)) => 0,
            Some((_, Crash::Some(mask))) => mask,
            Some((_, Crash::After)) | None => u64::MAX,
        })
    }

    fn serve(&mut self, step: StoreStep) -> Result<StoreReply, Error> {
        let bit = |mask: u64, at: usize| mask >> (at % 64) & 1 == 1;
        let reply = match step {
            StoreStep::Get(key) => {
                self.alive()?;
                StoreReply::Value(self.values.get(&key).cloned())
            }
            StoreStep::Set(puts) => {
                let mask = self.write_mask()?;
                for (at, (key, value)) in puts.into_iter().enumerate() {
                    if bit(mask, at) {
                        self.values.insert(key, value);
                    }
                }
                StoreReply::Done
            }
            StoreStep::Delete(keys) => {
                let mask = self.write_mask()?;
                for (at, key) in keys.iter().enumerate() {
                    if bit(mask, at) {
                        self.values.remove(key);
                    }
                }
                StoreReply::Done
            }
            StoreStep::Swap {
                key,
                expected,
                value,
            } => {
                let mask = self.write_mask()?;
                let swapped = match (self.values.get(&key), expected) {
                    (None, None) => true,
                    (Some(head), Some(expected)) => HeadToken::of(head) == Some(expected),
                    _ => false,
                };
                if swapped && bit(mask, 0) {
                    self.values.insert(key, value);
                }
                StoreReply::Swapped(swapped)
            }
            StoreStep::Ticket(name) => {
                let mask = self.write_mask()?;
                let number = self.tickets.entry(name).or_default();
                if bit(mask, 0) {
                    *number += 1;
                }
                StoreReply::Ticket(*number)
            }
            StoreStep::DropTicket(name) => {
                let mask = self.write_mask()?;
                if bit(mask, 0) {
                    self.tickets.remove(&name);
                }
                StoreReply::Done
            }
            StoreStep::End(_) => StoreReply::Done,
        };
        self.alive()?;
        Ok(reply)
    }
}

impl Store for PrimitiveStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.alive()?;
        Ok(keys
            .iter()
            .map(|key| self.values.get(key).cloned())
            .collect())
    }

    fn names(&mut self) -> Result<Vec<String>, Error> {
        self.alive()?;
        // In no order that anybody could rely on.
        Ok(self.values.keys().rev().map(ToString::to_string).collect())
    }

    fn write(
        &mut self,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        strict: bool,
    ) -> Result<Written, Error> {
        let strategy = self.capabilities.strategy()?;
        let mut commit = Commit::new(strategy, expected_head, puts, deletes, strict);
        let mut reply = StoreReply::Begin;
        loop {
            let step = commit.step(reply);
            if let StoreStep::End(end) = step {
                return end;
            }
            let due = match &self.meanwhile {
                Some((Race::Seen, _)) => matches!(step, StoreStep::Get(_)),
                Some((Race::Unseen, _)) => matches!(step, StoreStep::Set(_)),
                None => false,
            };
            if let Some((_, others)) = self.meanwhile.take_if(|_| due) {
                self.values.extend(others);
            }
            reply = self.serve(step).unwrap_or_else(StoreReply::Failed);
        }
    }

    fn replace(&mut self, puts: &[(Key, Vec<u8>)], deletes: &[Key]) -> Result<(), Error> {
        self.serve(StoreStep::Set(puts.to_vec()))?;
        self.serve(StoreStep::Delete(deletes.to_vec())).map(|_| ())
    }
}

/// Values by the names that a memory uses.
pub(crate) fn keyed(values: BTreeMap<String, Vec<u8>>) -> BTreeMap<Key, Vec<u8>> {
    values
        .into_iter()
        .filter_map(|(name, value)| Some((Key::parse(&name)?, value)))
        .collect()
}

/// What was written to a value and when; `None`: deleted.
type Versions = Vec<(u64, Option<Vec<u8>>)>;

/// A store that is read late: an answer is up to [`LaggingStore::LAG_MS`] old, what was not there when it was asked for
/// is remembered as absent for so long, and a value is written at most once a second (429 otherwise). As a replica that a
/// service keeps in many places.
#[derive(Clone, Debug, Default)]
pub struct LaggingStore {
    now_ms: u64,
    written: BTreeMap<Key, Versions>,
    absent_until_ms: BTreeMap<Key, u64>,
    /// Reads so far, where each is answered from another place.
    scattered: Option<u64>,
}

impl LaggingStore {
    /// How late a read may be.
    pub const LAG_MS: u64 = 60_000;

    /// As the default, but that each value is read from a place of its own, which lags by 0 to [`LaggingStore::LAG_MS`].
    #[must_use]
    pub fn scattered() -> Self {
        Self {
            scattered: Some(0),
            ..Self::default()
        }
    }

    /// Lets time pass.
    pub fn advance_ms(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    /// Everything written, as it will be seen once time has passed.
    #[must_use]
    pub fn latest(&self) -> BTreeMap<Key, Vec<u8>> {
        let last = |versions: &Versions| versions.last().and_then(|(_, value)| value.clone());
        let values = self.written.iter();
        values
            .filter_map(|(key, versions)| Some((key.clone(), last(versions)?)))
            .collect()
    }

    fn lag_ms(&mut self) -> u64 {
        let Some(reads) = &mut self.scattered else {
            return Self::LAG_MS;
        };
        *reads += 1;
        let hash = blake3::hash(&reads.to_le_bytes());
        let lag = u64::from(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]));
        lag * Self::LAG_MS / u64::from(u16::MAX)
    }

    /// Publishes a value.
    ///
    /// # Errors
    /// `storage-failed` when the value was written less than a second ago.
    pub fn publish(&mut self, key: &Key, value: Option<Vec<u8>>) -> Result<(), Error> {
        let versions = self.written.entry(key.clone()).or_default();
        if versions
            .last()
            .is_some_and(|(at_ms, _)| self.now_ms - at_ms < 1_000)
        {
            let message = "429: this value was written less than a second ago";
            return Err(Error::new(ErrorCode::StorageFailed, message));
        }
        versions.push((self.now_ms, value));
        Ok(())
    }
}

impl Store for LaggingStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            atomic_batch: false,
            cas: false,
            ticket: false,
            read_after_write: false,
            list: false,
        }
    }

    fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::new();
        for key in keys {
            let missing = self.absent_until_ms.get(key);
            if missing.is_some_and(|until_ms| *until_ms > self.now_ms) {
                values.push(None);
                continue;
            }
            let seen_ms = self.now_ms.checked_sub(self.lag_ms());
            let versions = self.written.get(key).into_iter().flatten();
            let seen = versions.rev().find(|(at_ms, _)| Some(*at_ms) <= seen_ms);
            let value = seen.and_then(|(_, value)| value.clone());
            if value.is_none() {
                self.absent_until_ms
                    .insert(key.clone(), self.now_ms + Self::LAG_MS);
            }
            values.push(value);
        }
        Ok(values)
    }

    fn names(&mut self) -> Result<Vec<String>, Error> {
        Err(Error::new(ErrorCode::Unsupported, "it cannot be listed"))
    }

    fn write(
        &mut self,
        _: Option<HeadToken>,
        _: &[(Key, Vec<u8>)],
        _: &[Key],
        _: bool,
    ) -> Result<Written, Error> {
        self.capabilities().strategy().map(|_| Written::Conflict)
    }

    fn replace(&mut self, _: &[(Key, Vec<u8>)], _: &[Key]) -> Result<(), Error> {
        self.capabilities().strategy().map(|_| ())
    }
}
