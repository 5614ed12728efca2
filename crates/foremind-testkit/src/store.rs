use std::collections::BTreeMap;

use foremind_memory::{Capabilities, Written};
use foremind_types::{Error, ErrorCode};
use foremind_vault::{HeadToken, Key};

/// Where values are kept.
pub trait Store {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// One value for each key, in order.
    ///
    /// # Errors
    /// The store's failure.
    fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// The names of all values.
    ///
    /// # Errors
    /// The store's failure.
    fn names(&mut self) -> Result<Vec<String>, Error>;

    /// Compares the first [`HeadToken::BYTES`] bytes of `head` with `expected_head`, then writes.
    ///
    /// # Errors
    /// The store's failure; nothing was written unless the store says otherwise.
    fn write(
        &mut self,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        strict: bool,
    ) -> Result<Written, Error>;

    /// Writes and deletes without comparing anything: a repair.
    ///
    /// # Errors
    /// The store's failure.
    fn replace(&mut self, puts: &[(Key, Vec<u8>)], deletes: &[Key]) -> Result<(), Error>;
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which store operation fails, reads and writes counted together from 0.
    pub at_operation: u64,
    /// How.
    pub kind: FaultKind,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing happens, an error comes back.
    Before,
    /// It happens, an error comes back all the same.
    After,
    /// Only so many of the values are written and nothing is deleted; only where batches are not atomic.
    Cut {
        /// Values written, in the order of the batch.
        puts: usize,
    },
    /// Everything is written, only so many are deleted; only where batches are not atomic.
    CutDeletes {
        /// Values deleted, in the order of the batch.
        deletes: usize,
    },
}

/// A store in memory with compare-and-swap, which fails when told to.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    values: BTreeMap<Key, Vec<u8>>,
    capabilities: Capabilities,
    fault: Option<Fault>,
    operations: u64,
    writes: Vec<u64>,
    commits: u64,
    conflicts: u64,
    largest_write_bytes: usize,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            capabilities: Capabilities::FULL,
            fault: None,
            operations: 0,
            writes: Vec::new(),
            commits: 0,
            conflicts: 0,
            largest_write_bytes: 0,
        }
    }
}

impl MemoryStore {
    /// A store whose batches can be cut.
    #[must_use]
    pub fn without_atomic_batches() -> Self {
        let store = Self::default();
        Self {
            capabilities: Capabilities {
                atomic_batch: false,
                ..store.capabilities
            },
            ..store
        }
    }

    /// A store that holds these values.
    #[must_use]
    pub fn with_values(values: BTreeMap<Key, Vec<u8>>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }

    /// Plans a failure, counted from now, and forgets an earlier one.
    pub fn fail(&mut self, fault: Option<Fault>) {
        self.operations = 0;
        self.writes.clear();
        self.fault = fault;
    }

    /// Operations since the last [`MemoryStore::fail`].
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Which of them were writes.
    #[must_use]
    pub fn write_operations(&self) -> &[u64] {
        &self.writes
    }

    /// Commits written, and commits refused for their head.
    #[must_use]
    pub fn commits_and_conflicts(&self) -> (u64, u64) {
        (self.commits, self.conflicts)
    }

    /// The most bytes that one batch brought.
    #[must_use]
    pub fn largest_write_bytes(&self) -> usize {
        self.largest_write_bytes
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

    fn fault(&mut self) -> Option<FaultKind> {
        let due = self
            .fault
            .filter(|fault| fault.at_operation == self.operations);
        self.operations += 1;
        due.map(|fault| fault.kind)
    }
}

fn failed() -> Error {
    Error::new(ErrorCode::StorageFailed, "a planned failure of the store")
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        if self.fault().is_some() {
            return Err(failed());
        }
        Ok(keys
            .iter()
            .map(|key| self.values.get(key).cloned())
            .collect())
    }

    fn names(&mut self) -> Result<Vec<String>, Error> {
        if self.fault().is_some() {
            return Err(failed());
        }
        Ok(self.values.keys().map(ToString::to_string).collect())
    }

    fn write(
        &mut self,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        _strict: bool,
    ) -> Result<Written, Error> {
        self.writes.push(self.operations);
        let bytes = puts.iter().map(|(_, value)| value.len()).sum();
        self.largest_write_bytes = self.largest_write_bytes.max(bytes);
        let fault = self.fault();
        if fault == Some(FaultKind::Before) {
            return Err(failed());
        }
        // A head too short for a token differs from every expected head, and from its absence.
        let head = self.values.get(&Key::head());
        let unchanged = match (head, expected_head) {
            (None, None) => true,
            (Some(head), Some(expected)) => HeadToken::of(head) == Some(expected),
            _ => false,
        };
        if !unchanged {
            self.conflicts += 1;
            return Ok(Written::Conflict);
        }
        let (put, deleted) = match fault {
            Some(FaultKind::Cut { puts }) if !self.capabilities.atomic_batch => (puts, 0),
            Some(FaultKind::CutDeletes { deletes }) if !self.capabilities.atomic_batch => {
                (usize::MAX, deletes)
            }
            _ => (usize::MAX, usize::MAX),
        };
        for (key, value) in puts.iter().take(put) {
            self.values.insert(key.clone(), value.clone());
        }
        for key in deletes.iter().take(deleted) {
            self.values.remove(key);
        }
        match fault {
            None => {
                self.commits += 1;
                Ok(Written::Committed)
            }
            Some(_) => Err(failed()),
        }
    }

    fn replace(&mut self, puts: &[(Key, Vec<u8>)], deletes: &[Key]) -> Result<(), Error> {
        self.writes.push(self.operations);
        if self.fault().is_some() {
            return Err(failed());
        }
        for (key, value) in puts {
            self.values.insert(key.clone(), value.clone());
        }
        for key in deletes {
            self.values.remove(key);
        }
        Ok(())
    }
}
