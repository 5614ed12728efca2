//! The log of one memory: which values hold which entries, what a commit writes, what a reader misses.

use std::collections::{BTreeMap, BTreeSet};

use foremind_types::limits::VALUE_BYTES;
use foremind_types::{Entry, MemoryId, RecordId, WriterId};
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::keys::Seals;
use crate::redact::{self, Erased};
use crate::{DataKey, HeadToken, Key, VaultError};

/// Loose entries that make the next commit fold them.
pub const LOOSE_ENTRIES: usize = 32;
/// Segments of one level that are folded into one of the next.
pub const SEGMENTS_PER_LEVEL: usize = 8;
/// A run of at least so many bytes is never merged again, so that the work of one commit has a bound.
pub const FULL_BYTES: usize = 256 * 1024;
/// A run is closed once it holds so many bytes.
const SEGMENT_BYTES: usize = 512 * 1024;

const _: () = assert!(v1::CHUNK_BYTES + v1::SEALED_AT + v1::TAG_BYTES == VALUE_BYTES);

/// A stretch of the log: entries of consecutive sequence numbers in one sealed plaintext, which lies in
/// one value, or in several if it is long. A run of level 0 is one loose entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    level: u8,
    first_sequence: u64,
    last_sequence: u64,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    generation: u64,
    commit: [u8; v1::COMMIT_BYTES],
    ordinal: u32,
    chunks: u32,
    bytes: u64,
}

impl Run {
    /// Sequence numbers of its entries.
    #[must_use]
    pub fn sequences(&self) -> core::ops::RangeInclusive<u64> {
        self.first_sequence..=self.last_sequence
    }

    /// How many values hold it.
    #[must_use]
    pub fn values(&self) -> usize {
        usize::try_from(self.place.chunks).unwrap_or(usize::MAX)
    }

    fn is_full(&self) -> bool {
        self.place.bytes >= FULL_BYTES as u64
    }

    fn touches(&self, sequences: &BTreeSet<u64>) -> bool {
        sequences.range(self.sequences()).next().is_some()
    }
}

/// An entry and its place in the log: 1 for the first entry of the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequenced {
    /// Position in the log.
    pub sequence: u64,
    /// The entry.
    pub entry: Entry,
}

/// A head that was read and verified, or is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    token: HeadToken,
    last_sequence: u64,
    runs: Vec<Run>,
    derived: Vec<Place>,
    /// What the commit of this head deletes. The next commit deletes it once more, because a store without
    /// atomic batches may have been stopped between the two.
    garbage: Vec<Place>,
}

impl Head {
    /// What stores compare.
    #[must_use]
    pub fn token(&self) -> HeadToken {
        self.token
    }

    /// The log, oldest first.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
}

/// What a commit has to read before it can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Positions of runs that are rewritten, ascending, each with the level it gets.
    rewrite: BTreeMap<usize, u8>,
    /// Positions of runs that only change their level.
    promote: BTreeMap<usize, u8>,
    erased: Erased,
}

/// One atomic batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The head that the batch replaces.
    pub expected_head: Option<HeadToken>,
    /// Values to write, the head among them.
    pub puts: Vec<(Key, Vec<u8>)>,
    /// Values to delete.
    pub deletes: Vec<Key>,
    /// The head after it.
    pub head: Head,
    /// The entry as it was stored, if the batch holds one.
    pub entry: Option<Sequenced>,
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
    counters: BTreeMap<WriterId, u64>,
    /// Which records each entry holds something of: where an erasure has to look.
    held: BTreeMap<u64, Box<[RecordId]>>,
    erased: Erased,
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
        let head = Head {
            token: format::header(Kind::Head, 0, draws.bytes()),
            last_sequence: 0,
            runs: Vec::new(),
            derived: Vec::new(),
            garbage: Vec::new(),
        };
        let value = seal_head(&seals, &head, draws)?;
        let batch = Batch {
            expected_head: None,
            puts: vec![(Key::head(), value)],
            deletes: Vec::new(),
            head: head.clone(),
            entry: None,
        };
        Ok((Self::with(seals, head), batch))
    }

    /// Reads the stored head of an existing memory. Nothing of the log is absorbed yet.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes.
    pub fn open(memory_id: MemoryId, data_key: &DataKey, head: &[u8]) -> Result<Self, VaultError> {
        let seals = Seals::new(memory_id, data_key);
        let head = read_head(&seals, head)?;
        Ok(Self::with(seals, head))
    }

    fn with(seals: Seals, head: Head) -> Self {
        Self {
            seals,
            head,
            absorbed: 0,
            lamport: 0,
            counters: BTreeMap::new(),
            held: BTreeMap::new(),
            erased: Erased::new(),
        }
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

    /// Reads a head found in the store. `floor` is the generation that was known when the read was asked
    /// for: a slow answer may be older than what is known by now, but not older than that.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes; [`VaultError::Replaced`] when the store went back.
    pub fn read_head(&self, value: &[u8], floor: u64) -> Result<Head, VaultError> {
        let head = read_head(&self.seals, value)?;
        let (seen, found) = (self.head.token.generation(), head.token.generation());
        if found < floor || (found == seen && head.token != self.head.token) {
            let seen = floor.max(seen);
            return Err(VaultError::Replaced { seen, found });
        }
        Ok(head)
    }

    /// The runs of `head` that hold entries not absorbed yet, oldest first.
    #[must_use]
    pub fn missing(&self, head: &Head) -> Vec<Run> {
        let missing = |run: &&Run| run.last_sequence > self.absorbed;
        head.runs.iter().filter(missing).cloned().collect()
    }

    /// The names of the values of a run, in order.
    #[must_use]
    pub fn keys_of(&self, run: &Run) -> Vec<Key> {
        self.place_keys(&run.place)
    }

    fn place_keys(&self, place: &Place) -> Vec<Key> {
        (0..place.chunks)
            .map(|chunk| self.seals.name(&place.commit, place.ordinal + chunk))
            .collect()
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
        let keys = self.keys_of(run);
        let first = keys.first().cloned().unwrap_or_else(Key::head);
        let mut plain = Zeroizing::new(Vec::new());
        for (at, key) in keys.iter().enumerate() {
            let value = values.get(at).and_then(Option::as_deref);
            let value = value.ok_or_else(|| VaultError::Missing { key: key.clone() })?;
            let (header, chunk) = self.seals.unseal(key, Kind::Log, value)?;
            if header != format::header(Kind::Log, run.place.generation, run.place.commit) {
                return Err(VaultError::Header {
                    key: key.clone(),
                    field: "generation",
                });
            }
            plain.extend_from_slice(&chunk);
        }
        let layout = |part| VaultError::Layout {
            key: first.clone(),
            part,
        };
        if plain.len() as u64 != run.place.bytes {
            return Err(layout("length"));
        }
        let entries = format::decode_entries(&plain).map_err(layout)?;
        if entries.len() as u64 != run.last_sequence - run.first_sequence + 1 {
            return Err(VaultError::Chain {
                sequence: run.first_sequence,
                link: "the run holds another number of entries",
            });
        }
        let sequenced = |(sequence, entry)| Sequenced { sequence, entry };
        Ok(run.sequences().zip(entries).map(sequenced).collect())
    }

    /// Takes note of an entry of the log, in order; `false` when it was known. Only then does the caller
    /// apply it.
    ///
    /// # Errors
    /// [`VaultError::Chain`] when it does not follow what was absorbed before.
    pub fn absorb(&mut self, sequenced: &Sequenced) -> Result<bool, VaultError> {
        let Sequenced { sequence, entry } = sequenced;
        if *sequence <= self.absorbed {
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
        self.lamport = self.lamport.max(entry.lamport);
        self.held
            .insert(*sequence, redact::held(entry).into_iter().collect());
        self.erased.extend(redact::erased_by(entry));
        Ok(true)
    }

    /// Moves to a head whose runs were all absorbed; an older one than the current changes nothing.
    pub fn install(&mut self, head: Head) {
        if head.token.generation() > self.head.token.generation() {
            self.head = head;
        }
    }

    /// What storing `entry` on the current head involves.
    #[must_use]
    pub fn plan(&self, entry: &Entry) -> Plan {
        let erased = redact::erased_by(entry);
        let mut plan = Plan::default();
        if !erased.is_empty() {
            let holds = |ids: &[RecordId]| ids.iter().any(|id| erased.contains_key(id));
            let sequences = self.held.iter().filter(|(_, ids)| holds(ids));
            let sequences: BTreeSet<u64> = sequences.map(|(sequence, _)| *sequence).collect();
            for (at, run) in self.head.runs.iter().enumerate() {
                if run.touches(&sequences) {
                    plan.rewrite.insert(at, run.level);
                }
            }
        }
        if let Some((first, level)) = fold(&self.head.runs) {
            for (at, run) in self.head.runs.iter().enumerate().skip(first) {
                if run.is_full() && !plan.rewrite.contains_key(&at) {
                    plan.promote.insert(at, level);
                } else {
                    plan.rewrite.insert(at, level);
                }
            }
        }
        plan.erased = erased;
        plan
    }

    /// The runs that [`Vault::batch`] needs, in the order in which it needs them.
    #[must_use]
    pub fn reads(&self, plan: &Plan) -> Vec<Run> {
        let runs = plan.rewrite.keys().filter_map(|at| self.head.runs.get(*at));
        runs.cloned().collect()
    }

    /// Builds the batch that stores `entry`. `read` are the entries of [`Vault::reads`], run by run, and
    /// the head must not have moved since [`Vault::plan`].
    ///
    /// # Errors
    /// [`VaultError::Unstorable`].
    pub fn batch(
        &self,
        plan: &Plan,
        read: Vec<Vec<Sequenced>>,
        entry: &Entry,
        draws: &mut Draws,
    ) -> Result<Batch, VaultError> {
        if read.len() != plan.rewrite.len() {
            return Err(VaultError::Unstorable {
                what: "a plan whose runs were not read",
            });
        }
        let generation = self.head.token.generation() + 1;
        let mut writer = Writer {
            seals: &self.seals,
            header: format::header(Kind::Log, generation, draws.bytes()),
            generation,
            next_ordinal: 0,
            draws,
            puts: Vec::new(),
        };
        let mut garbage: Vec<Place> = Vec::new();
        let mut runs = Vec::new();
        // Neighbours that get the same level become one stretch.
        let mut stretch: Option<(u8, Vec<Sequenced>)> = None;
        let mut read = read.into_iter();
        for (at, run) in self.head.runs.iter().enumerate() {
            let Some(&level) = plan.rewrite.get(&at) else {
                if let Some((level, entries)) = stretch.take() {
                    writer.write(level, &entries, &mut runs)?;
                }
                let level = plan.promote.get(&at).copied().unwrap_or(run.level);
                runs.push(Run {
                    level,
                    ..run.clone()
                });
                continue;
            };
            garbage.push(run.place.clone());
            let redacted = read
                .next()
                .unwrap_or_default()
                .into_iter()
                .map(|old| Sequenced {
                    sequence: old.sequence,
                    entry: redact::redact(&old.entry, &plan.erased),
                });
            let folds = level > run.level;
            match &mut stretch {
                Some((same, entries)) if *same == level && folds => entries.extend(redacted),
                _ => {
                    if let Some((level, entries)) = stretch.replace((level, redacted.collect())) {
                        writer.write(level, &entries, &mut runs)?;
                    }
                }
            }
        }
        if let Some((level, entries)) = stretch {
            writer.write(level, &entries, &mut runs)?;
        }
        let sequence = self.head.last_sequence + 1;
        let mut erased = self.erased.clone();
        erased.extend(plan.erased.iter().map(|(id, at_ms)| (*id, *at_ms)));
        let stored = Sequenced {
            sequence,
            entry: redact::redact(entry, &erased),
        };
        writer.write(0, core::slice::from_ref(&stored), &mut runs)?;
        // Derived values describe the state before this entry.
        garbage.extend(self.head.derived.iter().cloned());
        let deletes = self.head.garbage.iter().chain(&garbage);
        let deletes = deletes.flat_map(|place| self.place_keys(place)).collect();
        let commit = writer.header;
        let mut puts = writer.puts;
        let head = Head {
            token: head_token(commit),
            last_sequence: sequence,
            runs,
            derived: Vec::new(),
            garbage,
        };
        puts.push((Key::head(), seal_head(&self.seals, &head, draws)?));
        Ok(Batch {
            expected_head: Some(self.head.token),
            puts,
            deletes,
            head,
            entry: Some(stored),
        })
    }
}

/// From which run on a commit folds, and into which level; `None` when there is nothing to fold.
fn fold(runs: &[Run]) -> Option<(usize, u8)> {
    let trailing = |before: usize, level: u8, full_too: bool| {
        let tail = runs[..before].iter().rev();
        tail.take_while(|run| run.level == level && (full_too || !run.is_full()))
            .count()
    };
    let loose = trailing(runs.len(), 0, true);
    if loose < LOOSE_ENTRIES {
        return None;
    }
    let mut first = runs.len() - loose;
    let mut level = 1;
    loop {
        let segments = trailing(first, level, false);
        if segments < SEGMENTS_PER_LEVEL || level == u8::MAX {
            return Some((first, level));
        }
        first -= segments;
        level += 1;
    }
}

struct Writer<'a, 'd> {
    seals: &'a Seals,
    header: HeadToken,
    generation: u64,
    next_ordinal: u32,
    draws: &'d mut Draws,
    puts: Vec<(Key, Vec<u8>)>,
}

impl Writer<'_, '_> {
    /// Writes entries as runs of one level, each closed once it is long enough.
    fn write(
        &mut self,
        level: u8,
        entries: &[Sequenced],
        runs: &mut Vec<Run>,
    ) -> Result<(), VaultError> {
        let mut rest = entries;
        while !rest.is_empty() {
            let mut bytes = 0;
            let mut taken = 0;
            while taken < rest.len() && bytes < SEGMENT_BYTES {
                // Alone, an entry is at least as long as its share of a run that pools strings.
                bytes += Zeroizing::new(format::encode_entries([&rest[taken].entry])?).len();
                taken += 1;
            }
            let (run, later) = rest.split_at(taken);
            rest = later;
            runs.push(self.run(level, run)?);
        }
        Ok(())
    }

    fn run(&mut self, level: u8, entries: &[Sequenced]) -> Result<Run, VaultError> {
        let unstorable = || VaultError::Unstorable { what: "a run" };
        let plain = Zeroizing::new(format::encode_entries(
            entries.iter().map(|one| &one.entry),
        )?);
        let mut commit = [0; v1::COMMIT_BYTES];
        commit.copy_from_slice(&self.header.0[v1::COMMIT_AT..]);
        let ordinal = self.next_ordinal;
        for chunk in plain.chunks(v1::CHUNK_BYTES) {
            let key = self.seals.name(&commit, self.next_ordinal);
            let sealed = self.seals.seal(&key, self.header, chunk, self.draws);
            self.puts.push((key, sealed.ok_or_else(unstorable)?));
            self.next_ordinal = self.next_ordinal.checked_add(1).ok_or_else(unstorable)?;
        }
        let (first, last) = entries.first().zip(entries.last()).ok_or_else(unstorable)?;
        Ok(Run {
            level,
            first_sequence: first.sequence,
            last_sequence: last.sequence,
            place: Place {
                generation: self.generation,
                commit,
                ordinal,
                chunks: self.next_ordinal - ordinal,
                bytes: plain.len() as u64,
            },
        })
    }
}

/// The token of the head that a commit writes: the header of its log values with the head's kind.
fn head_token(commit: HeadToken) -> HeadToken {
    let mut id = [0; v1::COMMIT_BYTES];
    id.copy_from_slice(&commit.0[v1::COMMIT_AT..]);
    format::header(Kind::Head, commit.generation(), id)
}

fn seal_head(seals: &Seals, head: &Head, draws: &mut Draws) -> Result<Vec<u8>, VaultError> {
    let manifest = v1::Manifest {
        last_sequence: head.last_sequence,
        runs: head
            .runs
            .iter()
            .map(|run| v1::Run {
                level: run.level,
                first_sequence: run.first_sequence,
                last_sequence: run.last_sequence,
                place: store_place(&run.place),
            })
            .collect(),
        derived: Vec::new(),
        garbage: head.garbage.iter().map(store_place).collect(),
    };
    let unstorable = || VaultError::Unstorable { what: "the head" };
    let plain = postcard::to_allocvec(&manifest).map_err(|_| unstorable())?;
    if plain.len() > v1::CHUNK_BYTES {
        return Err(unstorable());
    }
    seals
        .seal(&Key::head(), head.token, &plain, draws)
        .ok_or_else(unstorable)
}

fn store_place(place: &Place) -> v1::Place {
    v1::Place {
        generation: place.generation,
        commit: place.commit,
        ordinal: place.ordinal,
        chunks: place.chunks,
        bytes: place.bytes,
    }
}

fn read_head(seals: &Seals, value: &[u8]) -> Result<Head, VaultError> {
    let key = Key::head();
    let (token, plain) = seals.unseal(&key, Kind::Head, value)?;
    let layout = |part| VaultError::Layout {
        key: key.clone(),
        part,
    };
    let (manifest, rest): (v1::Manifest, _) =
        postcard::take_from_bytes(&plain).map_err(|_| layout("manifest"))?;
    if !rest.is_empty() {
        return Err(layout("manifest: bytes left over"));
    }
    let place = |place: v1::Place| -> Result<Place, VaultError> {
        let chunks = place.bytes.div_ceil(v1::CHUNK_BYTES as u64);
        let fits = u64::from(place.chunks) == chunks
            && place.ordinal.checked_add(place.chunks).is_some()
            && place.generation <= token.generation();
        if !fits {
            return Err(layout("manifest: place"));
        }
        Ok(Place {
            generation: place.generation,
            commit: place.commit,
            ordinal: place.ordinal,
            chunks: place.chunks,
            bytes: place.bytes,
        })
    };
    let mut runs = Vec::with_capacity(manifest.runs.len());
    let mut next = 1;
    for run in manifest.runs {
        if run.first_sequence != next || run.last_sequence < next || run.last_sequence == u64::MAX {
            return Err(VaultError::Chain {
                sequence: next,
                link: "the runs of the head do not follow each other",
            });
        }
        next = run.last_sequence + 1;
        runs.push(Run {
            level: run.level,
            first_sequence: run.first_sequence,
            last_sequence: run.last_sequence,
            place: place(run.place)?,
        });
    }
    if manifest.last_sequence != next - 1 {
        return Err(VaultError::Chain {
            sequence: next,
            link: "the head names another last entry",
        });
    }
    Ok(Head {
        token,
        last_sequence: manifest.last_sequence,
        runs,
        derived: manifest
            .derived
            .into_iter()
            .map(|derived| place(derived.place))
            .collect::<Result<_, _>>()?,
        garbage: manifest
            .garbage
            .into_iter()
            .map(place)
            .collect::<Result<_, _>>()?,
    })
}
