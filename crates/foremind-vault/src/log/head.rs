//! The head: which values make up the log.

use foremind_types::MemoryId;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::keys::Seals;
use crate::{HeadToken, Key, VaultError};

use super::FULL_BYTES;

/// Most values of one run: 4 GB, more than a module's memory. A length beyond that is no length.
const MOST_CHUNKS: u32 = 4_096;

/// A stretch of the log: entries of consecutive sequence numbers in one sealed plaintext, which lies in
/// one value, or in several if it is long. A run of level 0 is a loose entry, or what one import brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub(super) level: u8,
    pub(super) first_sequence: u64,
    pub(super) last_sequence: u64,
    pub(super) place: Place,
}

/// Which values hold a plaintext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) generation: u64,
    pub(super) commit: [u8; v1::COMMIT_BYTES],
    pub(super) ordinal: u32,
    pub(super) chunks: u32,
    pub(super) bytes: u64,
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
        self.place.values()
    }

    /// Bytes of its plaintext.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.place.bytes
    }

    pub(super) fn is_full(&self) -> bool {
        self.place.bytes >= FULL_BYTES as u64
    }
}

impl Place {
    pub(super) fn values(&self) -> usize {
        usize::try_from(self.chunks).unwrap_or(usize::MAX)
    }

    /// The names of its values, in order.
    pub(super) fn keys(&self, seals: &Seals) -> Vec<Key> {
        (0..self.chunks)
            .map(|chunk| seals.name(&self.commit, self.ordinal + chunk))
            .collect()
    }
}

/// A head that was read and verified, or is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub(super) token: HeadToken,
    pub(super) last_sequence: u64,
    pub(super) runs: Vec<Run>,
    /// The visible profile as of the last entry, and the entry that changed it last.
    pub(super) profile: Option<(u64, Place)>,
    /// Derived values of kinds that are not known here; the next commit deletes them.
    pub(super) unknown: Vec<Place>,
    /// What the commit of this head deletes. The next commit deletes it once more, because a store without
    /// atomic batches may have been stopped between the two.
    pub(super) garbage: Vec<Place>,
}

impl Head {
    pub(super) fn empty(token: HeadToken) -> Self {
        Self {
            token,
            last_sequence: 0,
            runs: Vec::new(),
            profile: None,
            unknown: Vec::new(),
            garbage: Vec::new(),
        }
    }

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

    /// The position of the last entry, which is how many there are.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Reads the clear part of a stored head: whose memory does not matter.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes.
    pub fn generation_of(value: &[u8]) -> Result<u64, VaultError> {
        let (token, _) = format::unframe(&Key::head(), Kind::Head, value)?;
        Ok(token.generation())
    }
}

/// The token of the head that a commit writes: the header of its log values with the head's kind.
pub(super) fn head_token(commit: HeadToken) -> HeadToken {
    let mut id = [0; v1::COMMIT_BYTES];
    id.copy_from_slice(&commit.0[v1::COMMIT_AT..]);
    format::header(Kind::Head, commit.generation(), id)
}

pub(super) fn seal_head(
    seals: &Seals,
    key: &Key,
    head: &Head,
    draws: &mut Draws,
) -> Result<Vec<u8>, VaultError> {
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
        derived: head
            .profile
            .iter()
            .map(|(at_sequence, place)| v1::Derived {
                kind: v1::DERIVED_PROFILE,
                at_sequence: *at_sequence,
                place: store_place(place),
            })
            .collect(),
        garbage: head.garbage.iter().map(store_place).collect(),
    };
    let unstorable = || VaultError::Unstorable { what: "the head" };
    if head.runs.iter().any(|run| run.place.chunks > MOST_CHUNKS) {
        return Err(unstorable());
    }
    let plain = postcard::to_allocvec(&manifest).map_err(|_| unstorable())?;
    if plain.len() > v1::CHUNK_BYTES {
        return Err(unstorable());
    }
    seals
        .seal(key, head.token, &plain, draws)
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

pub(super) fn read_head(seals: &Seals, key: &Key, value: &[u8]) -> Result<Head, VaultError> {
    let (token, plain) = seals.check(key, Kind::Head, value)?;
    parse(token, &plain)
}

/// Where the copy of a head lies, if it has one. How long it is, is not known: the place only serves to delete it.
pub(super) fn journal_of(token: HeadToken) -> Place {
    let mut commit = [0; v1::COMMIT_BYTES];
    commit.copy_from_slice(&token.0[v1::COMMIT_AT..]);
    Place {
        generation: token.generation(),
        commit,
        ordinal: v1::JOURNAL_ORDINAL,
        chunks: 1,
        bytes: 1,
    }
}

/// The manifest of a head whose seal is right.
fn parse(token: HeadToken, plain: &[u8]) -> Result<Head, VaultError> {
    let layout = |part| VaultError::Layout {
        key: Key::head(),
        part,
    };
    let manifest = format::decode_manifest(plain).map_err(layout)?;
    let place = |place: v1::Place| -> Result<Place, VaultError> {
        let chunks = place.bytes.div_ceil(v1::CHUNK_BYTES as u64);
        let fits = u64::from(place.chunks) == chunks
            && place.chunks <= MOST_CHUNKS
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
    let mut head = Head::empty(token);
    let mut next = 1;
    for run in manifest.runs {
        if run.first_sequence != next || run.last_sequence < next || run.last_sequence == u64::MAX {
            return Err(VaultError::Chain {
                sequence: next,
                link: "the runs of the head do not follow each other",
            });
        }
        next = run.last_sequence + 1;
        let place = place(run.place)?;
        // An entry takes more than a byte, so that a count beyond the bytes asks for no memory.
        if run.last_sequence - run.first_sequence >= place.bytes {
            return Err(layout("manifest: run"));
        }
        head.runs.push(Run {
            level: run.level,
            first_sequence: run.first_sequence,
            last_sequence: run.last_sequence,
            place,
        });
    }
    if manifest.last_sequence != next - 1 {
        return Err(VaultError::Chain {
            sequence: next,
            link: "the head names another last entry",
        });
    }
    head.last_sequence = manifest.last_sequence;
    for derived in manifest.derived {
        let kind = derived.kind;
        let place = place(derived.place)?;
        if kind != v1::DERIVED_PROFILE {
            head.unknown.push(place);
        } else if head.profile.is_some() || place.chunks != 1 {
            return Err(layout("manifest: profile"));
        } else {
            head.profile = Some((derived.at_sequence, place));
        }
    }
    head.garbage = manifest
        .garbage
        .into_iter()
        .map(place)
        .collect::<Result<_, _>>()?;
    Ok(head)
}

/// What a hostile plaintext of a head does: for the fuzz bodies, which cannot make a seal.
#[doc(hidden)]
#[must_use]
pub fn fuzz_manifest(plain: &[u8]) -> bool {
    let token = format::header(Kind::Head, u64::MAX, [0; v1::COMMIT_BYTES]);
    parse(token, plain).is_ok()
}

/// A head under another memory's keys is never right, whatever its bytes.
#[doc(hidden)]
#[must_use]
pub fn fuzz_head(value: &[u8]) -> bool {
    let seals = Seals::new(MemoryId([1; 16]), &crate::DataKey::new([1; 32]));
    read_head(&seals, &Key::head(), value).is_ok()
}
