//! What a commit writes.

use foremind_types::{Entry, Record};
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::keys::Seals;
use crate::redact;
use crate::{HeadToken, Key, VaultError};

use super::head::{Place, head_token, journal_of, seal_head};
use super::{Head, PROFILE_BYTES, Plan, Run, SEGMENT_BYTES, Sequenced, Vault};

/// One atomic batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The head that the batch replaces.
    pub expected_head: Option<HeadToken>,
    /// Values to write, the head last.
    pub puts: Vec<(Key, Vec<u8>)>,
    /// Values to delete.
    pub deletes: Vec<Key>,
    /// The head after it.
    pub head: Head,
    /// The entries as they were stored, if the batch holds some.
    pub entries: Vec<Sequenced>,
}

/// A record of the profile tier, and when it was last told or confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The record.
    pub record: Record,
    /// Unix milliseconds.
    pub heard_ms: i64,
}

/// What becomes of the stored profile with a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum ProfileUpdate {
    /// The entries change none of its records.
    Keep,
    /// All records of the profile tier, as they are after the entries. A profile beyond [`PROFILE_BYTES`] is
    /// not stored.
    Write(Vec<Heard>),
}

impl Vault {
    /// Builds the batch that stores `entries`, possibly none. `read` are the entries of [`Vault::reads`], run by
    /// run, and the head must not have moved since [`Vault::plan`].
    ///
    /// # Errors
    /// [`VaultError::Unstorable`].
    pub fn batch(
        &self,
        plan: &Plan,
        read: Vec<Vec<Sequenced>>,
        entries: &[Entry],
        profile: ProfileUpdate,
        draws: &mut Draws,
    ) -> Result<Batch, VaultError> {
        if read.len() != plan.rewrite.len() {
            return Err(VaultError::Unstorable {
                what: "a plan whose runs were not read",
            });
        }
        let generation = self.head.token.generation() + 1;
        let mut erased = self.erased.clone();
        for (id, at_ms) in plan.erased.iter() {
            erased.insert(*id, *at_ms);
        }
        let mut writer = Writer::new(&self.seals, generation, draws);
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
                    entry: redact::redact(&old.entry, &erased),
                    ..old
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
        let stored: Vec<Sequenced> = (self.head.last_sequence + 1..)
            .zip(entries)
            .map(|(sequence, entry)| Sequenced {
                sequence,
                generation,
                entry: redact::redact(entry, &erased),
            })
            .collect();
        writer.write(0, &stored, &mut runs)?;
        let last_sequence = self.head.last_sequence + stored.len() as u64;
        let profile = match profile {
            ProfileUpdate::Keep => self.head.profile.clone(),
            ProfileUpdate::Write(mut records) => {
                garbage.extend(self.head.profile.iter().map(|(_, place)| place.clone()));
                for heard in &mut records {
                    redact::redact_record(&mut heard.record, &erased);
                }
                writer
                    .profile(&records)?
                    .map(|place| (last_sequence, place))
            }
        };
        garbage.extend(self.head.unknown.iter().cloned());
        if self.journals {
            garbage.push(journal_of(self.head.token));
        }
        // Where another writer can replace the head, it may name what this one folded: that stays for one more commit.
        let now = if self.journals && !plan.erases {
            &[][..]
        } else {
            &garbage
        };
        let deletes = self.head.garbage.iter().chain(now);
        let deletes = deletes.flat_map(|place| place.keys(&self.seals)).collect();
        if self.atomic_batches && !self.journals {
            garbage.clear();
        }
        let (commit, mut puts) = (writer.header, writer.puts);
        let head = Head {
            token: head_token(commit),
            last_sequence,
            runs,
            profile,
            unknown: Vec::new(),
            garbage,
        };
        if self.journals {
            for key in journal_of(head.token).keys(&self.seals) {
                let value = seal_head(&self.seals, &key, &head, draws)?;
                puts.push((key, value));
            }
        }
        let value = seal_head(&self.seals, &Key::head(), &head, draws)?;
        puts.push((Key::head(), value));
        Ok(Batch {
            expected_head: Some(self.head.token),
            puts,
            deletes,
            head,
            entries: stored,
        })
    }
}

/// Writes the values of one commit.
pub(super) struct Writer<'a, 'd> {
    seals: &'a Seals,
    pub(super) header: HeadToken,
    generation: u64,
    next_ordinal: u32,
    draws: &'d mut Draws,
    pub(super) puts: Vec<(Key, Vec<u8>)>,
}

impl<'a, 'd> Writer<'a, 'd> {
    pub(super) fn new(seals: &'a Seals, generation: u64, draws: &'d mut Draws) -> Self {
        Self {
            seals,
            header: format::header(Kind::Log, generation, draws.bytes()),
            generation,
            next_ordinal: 0,
            draws,
            puts: Vec::new(),
        }
    }

    /// Writes entries as runs of one level, each closed once it is long enough.
    pub(super) fn write(
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
        let (first, last) = entries
            .first()
            .zip(entries.last())
            .ok_or(VaultError::Unstorable { what: "a run" })?;
        let plain = format::encode_entries(entries.iter().map(|one| &one.entry))?;
        Ok(Run {
            level,
            first_sequence: first.sequence,
            last_sequence: last.sequence,
            place: self.place(plain)?,
        })
    }

    fn profile(&mut self, records: &[Heard]) -> Result<Option<Place>, VaultError> {
        let plain = format::encode_profile(records)?;
        if records.is_empty() || plain.len() > PROFILE_BYTES {
            return Ok(None);
        }
        self.place(plain).map(Some)
    }

    fn place(&mut self, plain: Vec<u8>) -> Result<Place, VaultError> {
        let unstorable = || VaultError::Unstorable { what: "a value" };
        let plain = Zeroizing::new(plain);
        let mut commit = [0; v1::COMMIT_BYTES];
        commit.copy_from_slice(&self.header.0[v1::COMMIT_AT..]);
        let ordinal = self.next_ordinal;
        for chunk in plain.chunks(v1::CHUNK_BYTES) {
            let key = self.seals.name(&commit, self.next_ordinal);
            let sealed = self.seals.seal(&key, self.header, chunk, self.draws);
            self.puts.push((key, sealed.ok_or_else(unstorable)?));
            self.next_ordinal = self.next_ordinal.checked_add(1).ok_or_else(unstorable)?;
        }
        Ok(Place {
            generation: self.generation,
            commit,
            ordinal,
            chunks: self.next_ordinal - ordinal,
            bytes: plain.len() as u64,
        })
    }
}
