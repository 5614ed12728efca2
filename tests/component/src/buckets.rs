use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foremind_testkit::suite::{Race, Values};

/// Names of one page of a listing: few, so that small stores have several pages.
const PAGE: usize = 3;

/// From when on a store fails, counted in writes (set, swap, delete) since the fault was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This write does not happen; it and everything after it fails.
    Before(u64),
    /// This write happens and says that it failed; everything after it fails.
    After(u64),
}

/// A planned failure, which each interface says in its own words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

impl Gone {
    pub(crate) fn why(self) -> String {
        "a planned failure of the host".to_owned()
    }
}

/// The buckets of a machine, shared by all instances on it.
#[derive(Clone, Debug, Default)]
pub struct Buckets(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    buckets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// What `increment` counts, by the bucket's name and the number's.
    numbers: BTreeMap<(String, String), u64>,
    fault: Option<Fault>,
    writes: u64,
    conflicts: u64,
    dead: bool,
    /// What somebody else writes into a bucket, and when.
    race: Option<(Race, String, Values)>,
    /// Readings of `head` since a race was planned.
    looks: u64,
}

/// An open bucket.
#[derive(Debug)]
pub struct Bucket(pub(crate) String);

/// What a compare-and-swap compares with.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) value: Option<Vec<u8>>,
}

impl Buckets {
    /// One bucket with these values.
    #[must_use]
    pub fn with(name: &str, values: BTreeMap<String, Vec<u8>>) -> Self {
        let buckets = Self::default();
        buckets.state().buckets.insert(name.to_owned(), values);
        buckets
    }

    /// Everything in a bucket.
    #[must_use]
    pub fn values(&self, bucket: &str) -> BTreeMap<String, Vec<u8>> {
        self.state()
            .buckets
            .get(bucket)
            .cloned()
            .unwrap_or_default()
    }

    /// Lets a test tamper with a bucket.
    pub fn tamper(&self, bucket: &str, with: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) {
        with(self.state().buckets.entry(bucket.to_owned()).or_default());
    }

    /// Names of the numbers that are counted in a bucket.
    #[must_use]
    pub fn counted(&self, bucket: &str) -> Vec<String> {
        let state = self.state();
        let numbers = state.numbers.keys().filter(|(own, _)| own == bucket);
        numbers.map(|(_, name)| name.clone()).collect()
    }

    /// Plans a failure, or ends one.
    pub fn fail(&self, fault: Option<Fault>) {
        let mut state = self.state();
        state.fault = fault;
        state.writes = 0;
        state.dead = false;
    }

    /// Writes since the last [`Buckets::fail`].
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Swaps that met another value than the one compared with.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.state().conflicts
    }

    /// Plans that somebody else writes during the next commit to a bucket.
    pub fn race(&self, when: Race, bucket: &str, others: Values) {
        let mut state = self.state();
        state.race = Some((when, bucket.to_owned(), others));
        state.looks = 0;
    }

    // A panicking test must not turn the others' failures into poisoned locks.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn exists(&self, bucket: &str) -> bool {
        self.state().buckets.contains_key(bucket)
    }

    pub(crate) fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, Gone> {
        let mut state = self.state();
        state.alive()?;
        if key == "head" {
            state.looks += 1;
            // The first look is that of the operation, the second that of its commit.
            if state.looks == 2 {
                state.run_race(Race::Seen);
            }
        }
        Ok(state
            .buckets
            .get(bucket)
            .and_then(|bucket| bucket.get(key))
            .cloned())
    }

    /// All names, numbers among them, in no order that anybody could rely on.
    pub(crate) fn names(&self, bucket: &str) -> Result<Vec<String>, Gone> {
        let state = self.state();
        state.alive()?;
        Ok(state.names(bucket).into_iter().rev().collect())
    }

    /// One page of names after `cursor`, and where the next one starts.
    pub(crate) fn page(
        &self,
        bucket: &str,
        cursor: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), Gone> {
        let state = self.state();
        state.alive()?;
        let mut page: Vec<String> = state
            .names(bucket)
            .into_iter()
            .filter(|name| cursor.is_none_or(|cursor| name.as_str() > cursor))
            .take(PAGE + 1)
            .collect();
        let more = page.len() > PAGE;
        page.truncate(PAGE);
        let cursor = page.last().filter(|_| more).cloned();
        Ok((page, cursor))
    }

    pub(crate) fn put(&self, bucket: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), Gone> {
        let mut state = self.state();
        state.run_race(Race::Unseen);
        state.write(|state| {
            if value.is_none() {
                let number = (bucket.to_owned(), key.to_owned());
                state.numbers.remove(&number);
            }
            state.store(bucket, key, value);
        })
    }

    /// The number after the increment.
    pub(crate) fn increment(&self, bucket: &str, key: &str, delta: u64) -> Result<u64, Gone> {
        let mut state = self.state();
        let mut number = 0;
        state.write(|state| {
            let name = (bucket.to_owned(), key.to_owned());
            let counted = state.numbers.entry(name).or_default();
            *counted += delta;
            number = *counted;
        })?;
        Ok(number)
    }

    /// Whether the value still was `expected`, and is `value` now.
    pub(crate) fn swap(&self, expected: &Snapshot, value: Vec<u8>) -> Result<bool, Gone> {
        let Snapshot {
            bucket,
            key,
            value: expected,
        } = expected;
        let mut state = self.state();
        let mut swapped = false;
        state.write(|state| {
            let current = state.buckets.get(bucket).and_then(|bucket| bucket.get(key));
            if current == expected.as_ref() {
                state.store(bucket, key, Some(value));
                swapped = true;
            } else {
                state.conflicts += 1;
            }
        })?;
        Ok(swapped)
    }
}

impl State {
    fn names(&self, bucket: &str) -> BTreeSet<String> {
        let values = self.buckets.get(bucket).into_iter();
        let numbers = self.numbers.keys().filter(|(own, _)| own == bucket);
        values
            .flat_map(BTreeMap::keys)
            .chain(numbers.map(|(_, name)| name))
            .cloned()
            .collect()
    }

    fn run_race(&mut self, when: Race) {
        if let Some((_, bucket, others)) = self.race.take_if(|(due, ..)| *due == when) {
            self.buckets.entry(bucket).or_default().extend(others);
        }
    }

    fn alive(&self) -> Result<(), Gone> {
        if self.dead {
            return Err(Gone);
        }
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut Self)) -> Result<(), Gone> {
        self.alive()?;
        let number = self.writes;
        self.writes += 1;
        if self.fault == Some(Fault::Before(number)) {
            self.dead = true;
        } else {
            write(self);
            self.dead = self.fault == Some(Fault::After(number));
        }
        self.alive()
    }

    fn store(&mut self, bucket: &str, key: &str, value: Option<Vec<u8>>) {
        let bucket = self.buckets.entry(bucket.to_owned()).or_default();
        match value {
            Some(value) => bucket.insert(key.to_owned(), value),
            None => bucket.remove(key),
        };
    }
}
