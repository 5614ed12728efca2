use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bindings::wasi::keyvalue::store::Error;

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

/// The buckets of a machine, shared by all instances on it.
#[derive(Clone, Debug, Default)]
pub struct Buckets(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    buckets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    fault: Option<Fault>,
    writes: u64,
    conflicts: u64,
    dead: bool,
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

    // A panicking test must not turn the others' failures into poisoned locks.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn exists(&self, bucket: &str) -> bool {
        self.state().buckets.contains_key(bucket)
    }

    pub(crate) fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let state = self.state();
        state.alive()?;
        Ok(state
            .buckets
            .get(bucket)
            .and_then(|bucket| bucket.get(key))
            .cloned())
    }

    /// One page of names after `cursor`, and where the next one starts.
    pub(crate) fn page(
        &self,
        bucket: &str,
        cursor: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let state = self.state();
        state.alive()?;
        let names = state
            .buckets
            .get(bucket)
            .into_iter()
            .flat_map(BTreeMap::keys);
        let mut page: Vec<String> = names
            .filter(|name| cursor.is_none_or(|cursor| name.as_str() > cursor))
            .take(PAGE + 1)
            .cloned()
            .collect();
        let more = page.len() > PAGE;
        page.truncate(PAGE);
        let cursor = page.last().filter(|_| more).cloned();
        Ok((page, cursor))
    }

    pub(crate) fn put(&self, bucket: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), Error> {
        let mut state = self.state();
        state.write(|state| {
            state.store(bucket, key, value);
        })
    }

    /// Whether the value still was `expected`, and is `value` now.
    pub(crate) fn swap(&self, expected: &Snapshot, value: Vec<u8>) -> Result<bool, Error> {
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
    fn alive(&self) -> Result<(), Error> {
        if self.dead {
            return Err(Error::Other("a planned failure of the host".to_owned()));
        }
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut Self)) -> Result<(), Error> {
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
