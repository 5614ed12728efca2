//! What a replica says about itself: which generation was the newest one, and when.

use crate::format::v1;
use crate::keys::Seals;
use crate::{Key, VaultError};

const MAGIC: &[u8; 4] = b"FMST";
const VERSION: u16 = 1;
const GENERATION_AT: usize = 8;
const TIME_AT: usize = GENERATION_AT + 8;
const CHECK_AT: usize = TIME_AT + 8;
const CHECK_BYTES: usize = 16;
const STAMP_BYTES: usize = CHECK_AT + CHECK_BYTES;
const CONTEXT: &str = "foremind replica 1 stamp";

/// A generation, and when it was the newest one; Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) generation: u64,
    pub(super) at_ms: i64,
}

impl Stamp {
    pub(super) fn write(self, seals: &Seals) -> Vec<u8> {
        let mut value = Vec::with_capacity(STAMP_BYTES);
        value.extend(MAGIC);
        value.extend(VERSION.to_le_bytes());
        value.extend([0; 2]);
        value.extend(self.generation.to_le_bytes());
        value.extend(self.at_ms.to_le_bytes());
        let check = check(seals, &value);
        value.extend(check);
        value
    }

    pub(super) fn read(seals: &Seals, value: &[u8]) -> Result<Self, VaultError> {
        let key = Key::stamp;
        let (said, found) = value
            .split_at_checked(CHECK_AT)
            .filter(|(said, _)| said.starts_with(MAGIC))
            .ok_or_else(|| VaultError::NotForemind { key: key() })?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&said[at..at + 8]);
            bytes
        };
        let version = u16::from_le_bytes([said[4], said[5]]);
        if version > VERSION {
            return Err(VaultError::NewerFormat {
                key: key(),
                format: version,
            });
        }
        if found != check(seals, said) {
            return Err(VaultError::Seal { key: key() });
        }
        Ok(Self {
            generation: u64::from_le_bytes(number(GENERATION_AT)),
            at_ms: i64::from_le_bytes(number(TIME_AT)),
        })
    }
}

/// Binds what is said to the memory and to who has its data key.
fn check(seals: &Seals, said: &[u8]) -> [u8; CHECK_BYTES] {
    let key = zeroize::Zeroizing::new(blake3::derive_key(CONTEXT, seals.data_key().as_bytes()));
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(&seals.memory_id().0);
    hasher.update(said);
    let mut check = [0; CHECK_BYTES];
    hasher.finalize_xof().fill(&mut check);
    check
}

const _: () = assert!(STAMP_BYTES < v1::SEALED_AT);

#[cfg(test)]
mod tests {
    use foremind_types::MemoryId;

    use super::*;
    use crate::DataKey;

    #[test]
    fn a_stamp_is_read_by_its_memory_and_unaltered_only() {
        let seals = Seals::new(MemoryId([3; 16]), &DataKey::new([7; 32]));
        let stamp = Stamp {
            generation: 5,
            at_ms: -9,
        };
        let value = stamp.write(&seals);
        assert_eq!(value.len(), 40);
        assert_eq!(Stamp::read(&seals, &value), Ok(stamp));
        for bit in 0..value.len() * 8 {
            let mut altered = value.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(Stamp::read(&seals, &altered).is_err(), "bit {bit}");
        }
        for length in 0..value.len() {
            assert!(
                Stamp::read(&seals, &value[..length]).is_err(),
                "{length} bytes"
            );
        }
        for other in [
            Seals::new(MemoryId([4; 16]), &DataKey::new([7; 32])),
            Seals::new(MemoryId([3; 16]), &DataKey::new([8; 32])),
        ] {
            assert!(Stamp::read(&other, &value).is_err());
        }
    }
}
