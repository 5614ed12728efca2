//! The log of one memory: which values hold which entries, what a commit writes, what a reader misses.

mod batch;
mod head;
mod plan;
mod receipt;
mod salvage;
mod stamp;

use foremind_types::small::SmallMap;

use foremind_types::limits::VALUE_BYTES;
use foremind_types::{Entry, MemoryId, RecordId, WriterId};
use zeroize::Zeroizing;

pub use batch::{Batch, Heard, ProfileUpdate};
pub use head::{Head, Run, fuzz_head, fuzz_manifest};
pub use plan::Plan;
pub use receipt::{Proof, mac};
pub use salvage::{Rebuilt, Salvage};

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::keys::Seals;
use crate::redact::{self, Erased};
use crate::{DataKey, Key, VaultError};
use head::{Place, journal_of, read_head, seal_head};
use stamp::Stamp;

/// Loose entries that make the next commit fold them.
pub const LOOSE_ENTRIES: usize = 32;
/// Segments of one level that are folded into one of the next.
pub const SEGMENTS_PER_LEVEL: usize = 8;
/// A run of at least so many bytes is never merged again, so that the work of one commit has a bound.
pub const FULL_BYTES: usize = 256 * 1024;
/// A run is closed once it holds so many bytes.
pub const SEGMENT_BYTES: usize = 512 * 1024;
/// Most bytes of plaintext that one commit rewrites (by folding, and by erasing), unless a single run is longer.
pub const REWRITE_BYTES: usize = 2 * 1024 * 1024;
/// Most bytes of plaintext of the stored profile.
pub const PROFILE_BYTES: usize = 256 * 1024;

const _: () = assert!(v1::CHUNK_BYTES + v1::SEALED_AT + v1::TAG_BYTES == VALUE_BYTES);

/// A generation beyond its lower 32 bits counts the repairs of a memory. What was open before a repair must be
/// opened again, because positions in the log have changed.
const EPOCH_BITS: u32 = 32;

/// An entry and its place in the log: 1 for the first entry of the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequenced {
    /// Position in the log.
    pub sequence: u64,
    /// The commit that wrote the value in which it lies; later than the entry where it was folded.
    pub generation: u64,
    /// The entry.
    pub entry: Entry,
}

/// An open log. Holds no record: only where they are.
#[derive(Debug)]
pub struct Vault {
    seals: Seals,
    head: Head,
    /// The last entry absorbed; can be ahead of `head` while a reader catches up.
    absorbed: u64,
    lamport: u64,
    /// The next entry number of each writer.
    counters: SmallMap<WriterId, u64>,
    /// Which records each entry holds something of: where an erasure has to look.
    held: SmallMap<u64, Box<[RecordId]>>,
    erased: Erased,
    /// The commit in which each of them was seen to be erased, or a later one.
    erased_in: SmallMap<RecordId, u64>,
    /// Whether something erased may still be stored.
    suspect: bool,
    /// Whether another writer can replace the head without being noticed by the store.
    journals: bool,
    /// Whether the store writes a batch as a whole.
    atomic_batches: bool,
    stale_reads: bool,
    /// Of a replica: the latest stamp of this state or of an earlier one, and the latest one of a later state.
    stamps: (Option<Stamp>, Option<Stamp>),
    /// The last entry absorbed.
    last: Option<(WriterId, u64)>,
    receipts: receipt::Receipts,
}

impl Vault {
    /// The log of a new memory, and its first batch, to which the caller adds the key slot.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`] if sealing fails.
    pub fn create(
        memory_id: MemoryId,
        data_key: &DataKey,
        draws: &mut Draws,
    ) -> Result<(Self, Batch), VaultError> {
        let seals = Seals::new(memory_id, data_key);
        let head = Head::empty(format::header(Kind::Head, 0, draws.bytes()));
        let value = seal_head(&seals, &Key::head(), &head, draws)?;
        let batch = Batch {
            expected_head: None,
            puts: vec![(Key::head(), value)],
            deletes: Vec::new(),
            head: head.clone(),
            entries: Vec::new(),
        };
        Ok((Self::with(seals, head), batch))
    }

    /// Reads the stored head of an existing memory. Nothing of the log is absorbed yet.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes.
    pub fn open(memory_id: MemoryId, data_key: &DataKey, head: &[u8]) -> Result<Self, VaultError> {
        let seals = Seals::new(memory_id, data_key);
        let head = read_head(&seals, &Key::head(), head)?;
        Ok(Self::with(seals, head))
    }

    fn with(seals: Seals, head: Head) -> Self {
        Self {
            seals,
            head,
            absorbed: 0,
            lamport: 0,
            counters: SmallMap::new(),
            held: SmallMap::new(),
            erased: Erased::new(),
            erased_in: SmallMap::new(),
            suspect: false,
            journals: false,
            atomic_batches: false,
            stale_reads: false,
            stamps: (None, None),
            last: None,
            receipts: receipt::Receipts::default(),
        }
    }

    /// For stores without compare-and-swap: every commit keeps a copy of its head, and a head that does not follow from
    /// what was absorbed is a [`VaultError::Forked`].
    pub fn keep_journals(&mut self) {
        self.journals = true;
    }

    /// For stores that write a batch as a whole: what a commit deletes need not be deleted once more by the next one.
    pub fn expect_atomic_batches(&mut self) {
        self.atomic_batches = true;
    }

    /// For stores that are read late.
    pub fn read_stale(&mut self) {
        self.stale_reads = true;
    }

    /// Whether the store is read late.
    #[must_use]
    pub fn reads_stale(&self) -> bool {
        self.stale_reads
    }

    /// The stamp of a replica that holds this very state: what `head` is published since when, in Unix milliseconds.
    #[must_use]
    pub fn stamp(&self, at_ms: i64) -> Vec<u8> {
        let generation = self.head.token.generation();
        Stamp { generation, at_ms }.write(&self.seals)
    }

    /// Takes note of a stamp found in a replica; one that is altered or another memory's says nothing.
    pub fn saw_stamp(&mut self, value: &[u8]) {
        let Ok(stamp) = Stamp::read(&self.seals, value) else {
            return;
        };
        let later = |known: &Option<Stamp>| known.is_none_or(|known| stamp.at_ms > known.at_ms);
        if stamp.generation <= self.head.token.generation() {
            if later(&self.stamps.0) {
                self.stamps.0 = Some(stamp);
            }
        } else if later(&self.stamps.1) {
            self.stamps.1 = Some(stamp);
        }
    }

    /// When the state of this replica was published, or one before it; Unix milliseconds of the publisher.
    #[must_use]
    pub fn published_ms(&self) -> Option<i64> {
        self.stamps.0.map(|stamp| stamp.at_ms)
    }

    /// A later generation that was published.
    #[must_use]
    pub fn newer_generation(&self) -> Option<u64> {
        self.stamps.1.map(|stamp| stamp.generation)
    }

    /// The head that another writer, or an earlier opening, kept under a name of its own.
    ///
    /// # Errors
    /// What is wrong with it, most often that it is no head.
    pub fn read_journal(&self, key: &Key, value: &[u8]) -> Result<Head, VaultError> {
        read_head(&self.seals, key, value)
    }

    /// Whether a value of the log belongs to this memory.
    #[must_use]
    pub fn owns(&self, key: &Key, value: &[u8]) -> bool {
        self.seals.unseal(key, Kind::Log, value).is_ok()
            || self.seals.unseal(key, Kind::Head, value).is_ok()
    }

    /// The memory.
    #[must_use]
    pub fn memory_id(&self) -> MemoryId {
        self.seals.memory_id()
    }

    /// The head that the log stands at.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What the next entry of `writer` is named and stamped: its counter, and its Lamport time.
    #[must_use]
    pub fn next_stamp(&self, writer: WriterId) -> (u64, u64) {
        let counter = self.counters.get(&writer).copied().unwrap_or(0);
        (counter, self.lamport + 1)
    }

    /// Whether an entry of this writer and number was absorbed.
    #[must_use]
    pub fn knows(&self, writer: WriterId, counter: u64) -> bool {
        self.counters
            .get(&writer)
            .is_some_and(|next| counter < *next)
    }

    /// When a record was erased, if it was; Unix milliseconds.
    #[must_use]
    pub fn erased_ms(&self, id: RecordId) -> Option<i64> {
        self.erased.get(&id).copied()
    }

    /// The data key, to be wrapped anew.
    #[must_use]
    pub fn data_key(&self) -> &DataKey {
        self.seals.data_key()
    }

    /// Reads a head found in the store. `floor` is the generation that was known when the read was asked
    /// for: a slow answer may be older than what is known by now, but not older than that.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes; [`VaultError::Replaced`] when the store went back.
    pub fn read_head(&self, value: &[u8], floor: u64) -> Result<Head, VaultError> {
        let head = read_head(&self.seals, &Key::head(), value)?;
        let (seen, found) = (self.head.token.generation(), head.token.generation());
        // Read late, not gone back, even from before a repair.
        if self.stale_reads && found < seen {
            return Err(VaultError::Replaced { seen, found });
        }
        if found >> EPOCH_BITS != seen >> EPOCH_BITS {
            return Err(VaultError::Repaired);
        }
        if self.journals && (found < seen || (found == seen && head.token != self.head.token)) {
            return Err(VaultError::Forked);
        }
        if found < floor || (found == seen && head.token != self.head.token) {
            let seen = floor.max(seen);
            return Err(VaultError::Replaced { seen, found });
        }
        Ok(head)
    }

    /// The runs of `head` that hold entries not absorbed yet, oldest first.
    #[must_use]
    pub fn missing(&self, head: &Head) -> Vec<Run> {
        let known = |run: &Run| self.head.runs.iter().any(|old| old.place == run.place);
        let missing = |run: &&Run| {
            run.last_sequence > self.absorbed
                // Where the head can be replaced, what was absorbed last must still be there.
                || self.journals && run.last_sequence == self.absorbed && !known(run)
        };
        head.runs.iter().filter(missing).cloned().collect()
    }

    /// The names of the values of a run, in order.
    #[must_use]
    pub fn keys_of(&self, run: &Run) -> Vec<Key> {
        run.place.keys(&self.seals)
    }

    /// Every name that the head accounts for, `key`, `head` and `spare` included.
    #[must_use]
    pub fn names(&self) -> foremind_types::small::SmallSet<Key> {
        let head = &self.head;
        let runs = head.runs.iter().map(|run| &run.place);
        let derived = head.profile.iter().map(|(_, place)| place);
        let places = runs.chain(derived).chain(&head.unknown);
        let mut names: foremind_types::small::SmallSet<Key> =
            places.flat_map(|place| place.keys(&self.seals)).collect();
        names.extend(journal_of(head.token).keys(&self.seals));
        names.extend([Key::slot(), Key::head(), Key::spare()]);
        names
    }

    /// The name of the value that holds the visible profile, if there is one.
    #[must_use]
    pub fn profile_key(&self) -> Option<Key> {
        let (_, place) = self.head.profile.as_ref()?;
        place.keys(&self.seals).into_iter().next()
    }

    /// Verifies and reads the value of [`Vault::profile_key`].
    ///
    /// # Errors
    /// [`VaultError::Missing`] for a `None`, and what is said of altered bytes.
    pub fn read_profile(&self, value: Option<Vec<u8>>) -> Result<Vec<Heard>, VaultError> {
        let Some((_, place)) = &self.head.profile else {
            return Ok(Vec::new());
        };
        let plain = self.read_place(place, &[value])?;
        format::decode_profile(&plain).map_err(|part| VaultError::Layout {
            key: place.keys(&self.seals).pop().unwrap_or_else(Key::head),
            part,
        })
    }

    /// Verifies and reads the values of a run, in the order of [`Vault::keys_of`].
    ///
    /// # Errors
    /// [`VaultError::Missing`] for a `None`, and what is said of altered bytes.
    pub fn read_run(
        &self,
        run: &Run,
        values: &[Option<Vec<u8>>],
    ) -> Result<Vec<Sequenced>, VaultError> {
        let plain = self.read_place(&run.place, values)?;
        let first = || run.place.keys(&self.seals).into_iter().next();
        let entries = format::decode_entries(&plain).map_err(|part| VaultError::Layout {
            key: first().unwrap_or_else(Key::head),
            part,
        })?;
        if entries.len() as u64 != run.last_sequence - run.first_sequence + 1 {
            return Err(VaultError::Chain {
                sequence: run.first_sequence,
                link: "the run holds another number of entries",
            });
        }
        let sequenced = |(sequence, entry)| Sequenced {
            sequence,
            generation: run.place.generation,
            entry,
        };
        Ok(run.sequences().zip(entries).map(sequenced).collect())
    }

    fn read_place(
        &self,
        place: &Place,
        values: &[Option<Vec<u8>>],
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let expected = format::header(Kind::Log, place.generation, place.commit);
        let keys = place.keys(&self.seals);
        let mut plain = Zeroizing::new(Vec::new());
        for (at, key) in keys.iter().enumerate() {
            let value = values.get(at).and_then(Option::as_deref);
            let value = value.ok_or_else(|| VaultError::Missing { key: key.clone() })?;
            let (header, chunk) = self.seals.unseal(key, Kind::Log, value)?;
            if header != expected {
                return Err(VaultError::Header {
                    key: key.clone(),
                    field: "generation",
                });
            }
            if keys.len() == 1 {
                plain = chunk;
            } else {
                plain.extend_from_slice(&chunk);
            }
        }
        if plain.len() as u64 != place.bytes {
            return Err(VaultError::Layout {
                key: keys.into_iter().next().unwrap_or_else(Key::head),
                part: "length",
            });
        }
        Ok(plain)
    }

    /// Takes note of an entry of the log, in order; `false` when it was known. Only then does the caller
    /// apply it.
    ///
    /// # Errors
    /// [`VaultError::Chain`] when it does not follow what was absorbed before.
    pub fn absorb(&mut self, sequenced: &Sequenced) -> Result<bool, VaultError> {
        let Sequenced {
            sequence,
            generation,
            entry,
        } = sequenced;
        if *sequence <= self.absorbed {
            let name = Some((entry.writer, entry.counter));
            if self.journals && *sequence == self.absorbed && name != self.last {
                return Err(VaultError::Forked);
            }
            return Ok(false);
        }
        let broken = |link| VaultError::Chain {
            sequence: *sequence,
            link,
        };
        if *sequence != self.absorbed + 1 {
            return Err(broken("entries before it are missing"));
        }
        let counter = self.counters.entry(entry.writer).or_insert(0);
        if entry.counter != *counter {
            return Err(broken("its writer's entries are not consecutive"));
        }
        *counter = counter
            .checked_add(1)
            .ok_or(broken("counter out of range"))?;
        if entry.lamport == u64::MAX {
            return Err(broken("clock out of range"));
        }
        self.absorbed = *sequence;
        self.last = Some((entry.writer, entry.counter));
        self.lamport = self.lamport.max(entry.lamport);
        self.held
            .insert(*sequence, redact::held(entry).into_iter().collect());
        self.receipts
            .absorb(self.seals.data_key(), *sequence, entry);
        for (id, at_ms) in redact::erased_by(entry) {
            self.suspect = true;
            self.erased_in.entry(id).or_insert(*generation);
            self.erased.insert(id, at_ms);
        }
        Ok(true)
    }

    /// Moves to a head whose runs were all absorbed; an older one than the current changes nothing.
    pub fn install(&mut self, head: Head) {
        if head.token.generation() > self.head.token.generation() {
            self.head = head;
            let generation = self.head.token.generation();
            if let Some(stamp) = self.stamps.1.take_if(|one| one.generation <= generation) {
                self.stamps.0 = Some(stamp);
            }
        }
    }
}
