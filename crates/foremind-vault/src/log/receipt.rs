//! What proves an erasure: keyed hashes of what was erased and of what is left, chained.
//!
//! HMAC is BLAKE3's keyed mode, under a key of its own derived from the data key. A tree is hashed as in RFC 9162
//! (a byte 0 before a leaf, 1 before a node; an odd node goes up as it is), so that no node passes for a leaf.

use std::collections::{BTreeMap, BTreeSet};

use foremind_types::{Change, Digest, Entry, Receipt, Record, RecordId};
use zeroize::Zeroizing;

use crate::format::{self, v1};
use crate::{DataKey, VaultError, redact};

use super::{Heard, Vault};

const TOMBSTONE_BYTES: usize = 16;
const LINK_BYTES: usize = 96;

/// What the log tells of erasures.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    tombstones: BTreeSet<[u8; TOMBSTONE_BYTES]>,
    /// The hash of each receipt, and of the one before it.
    previous: BTreeMap<Digest, Digest>,
    last: Digest,
    /// The position of the last one in the log.
    pub(super) last_sequence: u64,
}

impl Receipts {
    /// Takes note of what an entry holds of them; what another memory's key made is passed over.
    pub(super) fn absorb(&mut self, data_key: &DataKey, sequence: u64, entry: &Entry) {
        for change in &entry.changes {
            match change {
                Change::Keyed {
                    kind: v1::KEYED_TOMBSTONES,
                    bytes,
                } => {
                    let marks = bytes.chunks_exact(TOMBSTONE_BYTES);
                    self.tombstones.extend(marks.map(|mark| {
                        let mut one = [0; TOMBSTONE_BYTES];
                        one.copy_from_slice(mark);
                        one
                    }));
                }
                Change::Keyed {
                    kind: v1::KEYED_RECEIPT,
                    bytes,
                } => {
                    let Some((link, seal)) = bytes.split_last_chunk::<32>() else {
                        continue;
                    };
                    let Some((before, own)) = link.split_first_chunk::<32>() else {
                        continue;
                    };
                    let Ok(own) = <[u8; 32]>::try_from(own) else {
                        continue;
                    };
                    // Compared in constant time by the hash's own comparison.
                    if keyed(data_key, &[link]) == blake3::Hash::from_bytes(*seal) {
                        self.previous.insert(Digest(own), Digest(*before));
                        self.last = Digest(own);
                        self.last_sequence = sequence;
                    }
                }
                _ => {}
            }
        }
    }
}

/// What a receipt says is so, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// It is of this memory, unaltered, and the receipts before it are all known.
    pub chain: bool,
    /// Nothing was written after it.
    pub is_last: bool,
}

impl Vault {
    /// What stands in the log for an erased content, so that another record with the same one can be told: under the
    /// memory's key, so that nobody else can try contents.
    #[must_use]
    pub fn tombstone(&self, identity: &[u8; 16]) -> [u8; 16] {
        let mut mark = [0; TOMBSTONE_BYTES];
        let whole = keyed(self.data_key(), &[b"tombstone", identity]);
        mark.copy_from_slice(&whole.as_bytes()[..TOMBSTONE_BYTES]);
        mark
    }

    /// A secret of the memory by which others cannot try names.
    #[must_use]
    pub fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        salt.copy_from_slice(&keyed(self.data_key(), &[b"pseudonyms"]).as_bytes()[..16]);
        salt
    }

    /// Whether a content of this identity was erased.
    #[must_use]
    pub fn is_erased_content(&self, identity: &[u8; 16]) -> bool {
        let known = &self.receipts.tombstones;
        !known.is_empty() && known.contains(&self.tombstone(identity))
    }

    /// The change that stores tombstones, and the root over them.
    #[must_use]
    pub fn bury(&self, tombstones: &[[u8; 16]]) -> (Change, Digest) {
        let leaves = tombstones.iter().map(|mark| self.leaf(mark)).collect();
        let change = Change::Keyed {
            kind: v1::KEYED_TOMBSTONES,
            bytes: tombstones.concat(),
        };
        (change, self.merkle(leaves))
    }

    /// The root over all records, by id.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`].
    pub fn root<'r>(
        &self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Result<Digest, VaultError> {
        let mut leaves = Vec::new();
        for record in records {
            let heard = Heard {
                record: record.clone(),
                heard_ms: 0,
            };
            let plain = Zeroizing::new(format::encode_profile(&[heard])?);
            leaves.push(self.leaf(&plain));
        }
        Ok(self.merkle(leaves))
    }

    fn leaf(&self, content: &[u8]) -> Digest {
        Digest(keyed(self.data_key(), &[&[0], content]).into())
    }

    fn merkle(&self, mut level: Vec<Digest>) -> Digest {
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => {
                        Digest(keyed(self.data_key(), &[&[1], &left.0, &right.0]).into())
                    }
                    _ => pair[0],
                })
                .collect();
        }
        level.first().copied().unwrap_or_default()
    }

    /// Puts a receipt behind the last one, seals it, and gives the change that stores that.
    #[must_use]
    pub fn seal_receipt(&self, receipt: &mut Receipt) -> Change {
        receipt.previous = self.receipts.last;
        receipt.mac = mac(self.data_key(), receipt);
        let mut bytes = [receipt.previous.0, receipt.mac.0].concat();
        let seal = keyed(self.data_key(), &[&bytes]);
        bytes.extend_from_slice(seal.as_bytes());
        debug_assert_eq!(bytes.len(), LINK_BYTES);
        Change::Keyed {
            kind: v1::KEYED_RECEIPT,
            bytes,
        }
    }

    /// What the log says of a receipt.
    #[must_use]
    pub fn proof(&self, receipt: &Receipt) -> Proof {
        let known = &self.receipts.previous;
        let mut chain = receipt.memory_id == self.memory_id().to_string()
            && receipt.mac == mac(self.data_key(), receipt)
            && known.contains_key(&receipt.mac);
        let mut at = receipt.mac;
        // No longer than the list: a circle is no chain.
        for _ in 0..=known.len() {
            match known.get(&at) {
                Some(before) => at = *before,
                None => break,
            }
        }
        chain &= at == Digest::default();
        Proof {
            chain,
            is_last: self.receipts.last == receipt.mac
                && self.receipts.last_sequence == self.absorbed,
        }
    }

    /// The records of which an entry holds something.
    #[must_use]
    pub fn held_in(entry: &Entry) -> BTreeSet<RecordId> {
        redact::held(entry).into_iter().collect()
    }

    /// The records that were erased.
    pub fn erased(&self) -> impl Iterator<Item = RecordId> {
        self.erased.keys().copied()
    }
}

/// Whether a change is a receipt: nothing is to be left over from what came before it.
pub(super) fn is_receipt(change: &Change) -> bool {
    matches!(
        change,
        Change::Keyed {
            kind: v1::KEYED_RECEIPT,
            ..
        }
    )
}

/// The hash of a receipt under a memory's key, or under the receipt's own.
#[must_use]
pub fn mac(key: &DataKey, receipt: &Receipt) -> Digest {
    let counts = &receipt.counts;
    let numbers = [
        receipt.generation,
        receipt.at_ms.cast_unsigned(),
        u64::from(counts.records),
        u64::from(counts.derived),
        u64::from(counts.vectors),
        u64::from(counts.words),
        u64::from(counts.profile),
        u64::from(counts.pending),
        u64::from(counts.values),
    ];
    let numbers = numbers.map(u64::to_le_bytes).concat();
    let parts: [&[u8]; 6] = [
        b"receipt",
        receipt.memory_id.as_bytes(),
        &numbers,
        &receipt.previous.0,
        &receipt.erased.0,
        &receipt.root.0,
    ];
    Digest(keyed(key, &parts).into())
}

fn keyed(data_key: &DataKey, parts: &[&[u8]]) -> blake3::Hash {
    let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_RECEIPT, data_key.as_bytes()));
    let mut hasher = blake3::Hasher::new_keyed(&key);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}
