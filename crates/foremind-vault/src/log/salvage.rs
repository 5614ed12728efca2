//! What can be read of a log whose head is lost or names what is lost, and a new log made of it.

use std::collections::{BTreeMap, BTreeSet};

use foremind_types::small::{SmallMap, SmallSet};

use foremind_types::order::sort_by_key;
use foremind_types::{Entry, MemoryId, RecordId, WriterId};
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::keys::Seals;
use crate::redact;
use crate::{DataKey, Key, VaultError};

use super::batch::Writer;
use super::head::{head_token, seal_head};
use super::{EPOCH_BITS, Head, Sequenced};

/// Is told of each run or profile: its generation, entries and plaintext.
type Found<'f> = dyn FnMut(u64, Vec<Entry>, &[u8]) + 'f;

/// Values of one commit that are looked for by name.
const ORDINALS: u32 = 4096;
/// Numbers of one writer that may be missing.
const HOLES: u64 = 1 << 20;

/// Unsealed chunks by their position in a commit.
type Chunks = SmallMap<u32, Zeroizing<Vec<u8>>>;

/// Collects values of a memory by name, whatever its head says.
#[derive(Debug)]
pub struct Salvage {
    seals: Seals,
    /// By generation and commit.
    commits: SmallMap<(u64, [u8; v1::COMMIT_BYTES]), Chunks>,
    generation: u64,
}

/// A log made anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebuilt {
    /// Values to write, the head last.
    pub puts: Vec<(Key, Vec<u8>)>,
    /// How many entries it holds that were found.
    pub entries: u64,
    /// How many places of lost entries are kept free, because later entries of their writers were found.
    pub holes: u64,
    /// The generation of the new head.
    pub generation: u64,
}

impl Salvage {
    /// Nothing yet.
    #[must_use]
    pub fn new(memory_id: MemoryId, data_key: &DataKey) -> Self {
        Self {
            seals: Seals::new(memory_id, data_key),
            commits: SmallMap::new(),
            generation: 0,
        }
    }

    /// The memory.
    #[must_use]
    pub fn memory_id(&self) -> MemoryId {
        self.seals.memory_id()
    }

    /// The data key.
    #[must_use]
    pub fn data_key(&self) -> &DataKey {
        self.seals.data_key()
    }

    /// Takes a generation into account that was seen elsewhere, as in a head.
    pub fn saw(&mut self, generation: u64) {
        self.generation = self.generation.max(generation);
    }

    /// Takes a value of the log that is intact.
    ///
    /// # Errors
    /// What is wrong with it; [`VaultError::Seal`] for a value of another memory.
    pub fn take(&mut self, key: &Key, value: &[u8]) -> Result<(), VaultError> {
        let (header, plain) = self.seals.check(key, Kind::Log, value)?;
        let mut commit = [0; v1::COMMIT_BYTES];
        commit.copy_from_slice(&header.0[v1::COMMIT_AT..]);
        let ordinal = (0..ORDINALS)
            .find(|ordinal| self.seals.name(&commit, *ordinal) == *key)
            .ok_or_else(|| VaultError::Header {
                key: key.clone(),
                field: "commit",
            })?;
        self.saw(header.generation());
        self.commits
            .entry((header.generation(), commit))
            .or_default()
            .insert(ordinal, plain);
        Ok(())
    }

    /// Checks a value of the log without keeping it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, key: &Key, value: &[u8]) -> Result<(), VaultError> {
        self.seals.check(key, Kind::Log, value).map(|_| ())
    }

    /// Every entry that can be read, by writer and number; of two forms of one the later written.
    #[must_use]
    pub fn entries(&self) -> BTreeMap<(WriterId, u64), Sequenced> {
        let mut found = BTreeMap::new();
        // Ascending generations: what was redacted later takes the place of what was stored first.
        self.each(&mut |generation, entries, _| {
            for entry in entries {
                let name = (entry.writer, entry.counter);
                found.insert(
                    name,
                    Sequenced {
                        sequence: 0,
                        generation,
                        entry,
                    },
                );
            }
        });
        found
    }

    /// The records of which any value holds something, in whatever form.
    #[must_use]
    pub fn held(&self) -> BTreeSet<RecordId> {
        let mut held = BTreeSet::new();
        self.each(&mut |_, entries, profile| {
            for entry in &entries {
                held.extend(redact::held(entry));
            }
            for heard in format::decode_profile(profile).unwrap_or_default() {
                held.insert(heard.record.id);
            }
        });
        held
    }

    fn each(&self, found: &mut Found<'_>) {
        for ((generation, _), chunks) in &self.commits {
            let mut chunks = chunks.iter().peekable();
            while let Some((ordinal, first)) = chunks.next() {
                let mut entries = format::decode_entries(first);
                if entries.is_err() && first.len() == v1::CHUNK_BYTES {
                    // A run of several values.
                    let mut plain = Zeroizing::new(first.to_vec());
                    let mut next = ordinal + 1;
                    while let Some((_, chunk)) = chunks.next_if(|(at, _)| **at == next) {
                        plain.extend_from_slice(chunk);
                        next += 1;
                        if chunk.len() < v1::CHUNK_BYTES {
                            break;
                        }
                    }
                    entries = format::decode_entries(&plain);
                }
                // What is no run is a profile, which is made anew, or lacks a part.
                found(*generation, entries.unwrap_or_default(), first);
            }
        }
    }

    /// A new log of these entries, in the next epoch: all values that it needs.
    ///
    /// Entries are put in the order of their Lamport times, which the fold does not depend on. Where an entry of a
    /// writer is lost and a later one is there, an empty one takes its place. What any entry erases is left out.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`], [`VaultError::Chain`] when more than 2^20 entries of a writer are missing.
    pub fn rebuild(&self, found: Vec<Entry>, draws: &mut Draws) -> Result<Rebuilt, VaultError> {
        let mut found = found;
        sort_by_key(&mut found, |entry| {
            (entry.lamport, entry.writer, entry.counter)
        });
        let mut erased: SmallMap<RecordId, i64> = SmallMap::new();
        for entry in &found {
            for (id, at_ms) in redact::erased_by(entry) {
                erased.insert(id, at_ms);
            }
        }
        let generation = ((self.generation >> EPOCH_BITS) + 1) << EPOCH_BITS;
        let mut seen: SmallSet<(WriterId, u64)> = SmallSet::new();
        let mut next: SmallMap<WriterId, u64> = SmallMap::new();
        let mut log: Vec<Sequenced> = Vec::new();
        let (mut entries, mut holes) = (0, 0);
        // By number within a writer, should its Lamport times be out of order.
        let mut by_writer: SmallMap<WriterId, Vec<u64>> = SmallMap::new();
        for entry in &found {
            by_writer
                .entry(entry.writer)
                .or_default()
                .push(entry.counter);
        }
        if by_writer.values().any(|counters| !counters.is_sorted()) {
            sort_by_key(&mut found, |entry| (entry.writer, entry.counter));
        }
        for entry in &found {
            if !seen.insert((entry.writer, entry.counter)) {
                continue;
            }
            let expected = next.entry(entry.writer).or_insert(0);
            if entry.counter - *expected > HOLES {
                return Err(VaultError::Chain {
                    sequence: log.len() as u64,
                    link: "too many entries of a writer are missing",
                });
            }
            let empty = |counter| Entry {
                counter,
                changes: Vec::new(),
                ..entry.clone()
            };
            holes += entry.counter - *expected;
            let filled = (*expected..entry.counter).map(empty);
            for entry in filled.chain([redact::redact(entry, &erased)]) {
                log.push(Sequenced {
                    sequence: log.len() as u64 + 1,
                    generation,
                    entry,
                });
            }
            *expected = entry.counter + 1;
            entries += 1;
        }
        let mut writer = Writer::new(&self.seals, generation, draws);
        let mut runs = Vec::new();
        writer.write(1, &log, &mut runs)?;
        let (commit, mut puts) = (writer.header, writer.puts);
        let head = Head {
            runs,
            last_sequence: log.len() as u64,
            ..Head::empty(head_token(commit))
        };
        let value = seal_head(&self.seals, &Key::head(), &head, draws)?;
        puts.push((Key::head(), value));
        Ok(Rebuilt {
            puts,
            entries,
            holes,
            generation,
        })
    }
}
