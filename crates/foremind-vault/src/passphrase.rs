//! A key from a passphrase: Argon2id (RFC 9106), with costs that are stored beside what it opens and bounded
//! before they are believed.

use core::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use crate::VaultError;

/// What deriving a key costs. Anything stored may name other costs than [`PassphraseCost::default`], so
/// [`PassphraseCost::check`] bounds what a hostile file can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassphraseCost {
    /// Memory in KiB, 8 to 262,144 (256 MiB).
    pub memory_kib: u32,
    /// Passes over that memory, 1 to 16.
    pub passes: u32,
    /// Lanes, 1 to 4. They are computed one after the other.
    pub lanes: u32,
}

impl Default for PassphraseCost {
    /// 19 MiB, 2 passes, 1 lane: the least that the OWASP Password Storage Cheat Sheet (2024) recommends for
    /// Argon2id, because the memory of a wasm module never shrinks again.
    fn default() -> Self {
        Self {
            memory_kib: 19_456,
            passes: 2,
            lanes: 1,
        }
    }
}

impl PassphraseCost {
    /// Most memory that is ever taken, in KiB.
    pub const MEMORY_KIB_MAX: u32 = 262_144;
    /// Most passes.
    pub const PASSES_MAX: u32 = 16;
    /// Most lanes.
    pub const LANES_MAX: u32 = 4;
    /// Most KiB that are passed over in all, which bounds the time.
    pub const WORK_KIB_MAX: u32 = 1_048_576;

    /// Whether the costs are within their bounds.
    ///
    /// # Errors
    /// The name of the part that is not.
    pub fn check(&self) -> Result<(), &'static str> {
        let least_kib = 8 * self.lanes.clamp(1, Self::LANES_MAX);
        if !(1..=Self::LANES_MAX).contains(&self.lanes) {
            Err("passphrase lanes")
        } else if !(least_kib..=Self::MEMORY_KIB_MAX).contains(&self.memory_kib) {
            Err("passphrase memory")
        } else if !(1..=Self::PASSES_MAX).contains(&self.passes)
            || self.memory_kib * self.passes > Self::WORK_KIB_MAX
        {
            Err("passphrase passes")
        } else {
            Ok(())
        }
    }
}

/// Words that open a memory or an export. Zeroed when dropped.
#[derive(Clone)]
pub struct Passphrase {
    bytes: Zeroizing<Vec<u8>>,
}

impl Passphrase {
    /// Most bytes.
    pub const BYTES_MAX: usize = 1024;

    /// Takes over the bytes as they are. The same letters can have several Unicode forms: a host normalises
    /// them (the npm package to NFC) before it comes here.
    ///
    /// # Errors
    /// [`VaultError::Passphrase`] when it is empty or longer than [`Passphrase::BYTES_MAX`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, VaultError> {
        let bytes = Zeroizing::new(bytes);
        if bytes.is_empty() || bytes.len() > Self::BYTES_MAX {
            return Err(VaultError::Passphrase {
                why: "it is empty or longer than 1024 bytes",
            });
        }
        Ok(Self { bytes })
    }

    /// The 32-byte key that passphrase, salt and costs give.
    ///
    /// # Errors
    /// [`VaultError::Passphrase`] for costs out of their bounds.
    pub(crate) fn derive(
        &self,
        salt: &[u8],
        cost: PassphraseCost,
    ) -> Result<Zeroizing<[u8; 32]>, VaultError> {
        let refuse = |why| VaultError::Passphrase { why };
        cost.check().map_err(refuse)?;
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32))
            .map_err(|_| refuse("passphrase costs"))?;
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(&self.bytes, salt, &mut *key)
            .map_err(|_| refuse("a key from this passphrase"))?;
        Ok(key)
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on")]
mod tests {
    use super::*;

    #[test]
    fn it_is_argon2id_of_rfc_9106() {
        // `echo -n password | argon2 somesalt -id -v 13 -t 2 -m 16 -p 1`, the reference implementation's own vector.
        let key = Passphrase::new(b"password".to_vec()).unwrap().derive(
            b"somesalt",
            PassphraseCost {
                memory_kib: 1 << 16,
                passes: 2,
                lanes: 1,
            },
        );
        let hex: String = key.unwrap().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7"
        );
    }

    #[test]
    fn costs_beyond_the_bounds_are_refused_before_any_memory_is_taken() {
        let phrase = Passphrase::new(b"open sesame".to_vec()).unwrap();
        let plain = PassphraseCost {
            memory_kib: 64,
            passes: 1,
            lanes: 1,
        };
        assert!(phrase.derive(&[1; 16], plain).is_ok());
        for (memory_kib, passes, lanes) in [
            (u32::MAX, 1, 1),
            (PassphraseCost::MEMORY_KIB_MAX + 1, 1, 1),
            (PassphraseCost::MEMORY_KIB_MAX, 5, 1),
            (7, 1, 1),
            (31, 1, 4),
            (64, 0, 1),
            (64, 17, 1),
            (64, 1, 0),
            (64, 1, u32::MAX),
        ] {
            let cost = PassphraseCost {
                memory_kib,
                passes,
                lanes,
            };
            assert!(phrase.derive(&[1; 16], cost).is_err(), "{cost:?}");
        }
    }

    #[test]
    fn it_has_bounds_and_is_not_shown() {
        assert!(Passphrase::new(Vec::new()).is_err());
        assert!(Passphrase::new(vec![b'a'; 1025]).is_err());
        let phrase = Passphrase::new(b"secret words".to_vec()).unwrap();
        assert_eq!(format!("{phrase:?}"), "Passphrase");
    }
}
