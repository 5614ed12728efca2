use core::fmt;

use foremind_seal::Cipher;
use foremind_types::MemoryId;
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::{HeadToken, Key, VaultError};

/// The 256-bit key from which all other keys of a memory are derived. Zeroed when dropped; never stored
/// unwrapped.
pub struct DataKey(Zeroizing<[u8; 32]>);

impl DataKey {
    /// Takes over a key, for instance one that the host unwrapped. The caller zeroes its own copy.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key, to be wrapped by the host.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Says whether a key is the right one without giving it away.
    pub(crate) fn check(&self) -> [u8; v1::SLOT_CHECK_BYTES] {
        let derived = Zeroizing::new(blake3::derive_key(v1::CONTEXT_CHECK, &*self.0));
        let mut check = [0; v1::SLOT_CHECK_BYTES];
        check.copy_from_slice(&derived[..v1::SLOT_CHECK_BYTES]);
        check
    }
}

impl Clone for DataKey {
    fn clone(&self) -> Self {
        Self::new(*self.0)
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

/// The keys of an open memory.
pub(crate) struct Seals {
    memory_id: MemoryId,
    /// Kept to be wrapped anew.
    data_key: DataKey,
    cipher: Cipher,
    name_key: Zeroizing<[u8; 32]>,
}

impl Seals {
    pub(crate) fn new(memory_id: MemoryId, data_key: &DataKey) -> Self {
        let seal_key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_SEAL, data_key.as_bytes()));
        Self {
            memory_id,
            data_key: data_key.clone(),
            cipher: Cipher::new(&seal_key),
            name_key: Zeroizing::new(blake3::derive_key(v1::CONTEXT_NAME, data_key.as_bytes())),
        }
    }

    pub(crate) fn memory_id(&self) -> MemoryId {
        self.memory_id
    }

    pub(crate) fn data_key(&self) -> &DataKey {
        &self.data_key
    }

    /// Name of the value number `ordinal` of a commit.
    pub(crate) fn name(&self, commit: &[u8; v1::COMMIT_BYTES], ordinal: u32) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.name_key);
        hasher.update(commit);
        hasher.update(&ordinal.to_le_bytes());
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        Key::hashed(hash)
    }

    /// Seals `plain` for one place. `None` only if the cipher refuses, which it does beyond 256 GB.
    pub(crate) fn seal(
        &self,
        key: &Key,
        header: HeadToken,
        plain: &[u8],
        draws: &mut Draws,
    ) -> Option<Vec<u8>> {
        let nonce: [u8; v1::NONCE_BYTES] = draws.bytes();
        let associated = self.associated(key, &header);
        let sealed = self.cipher.seal(&nonce, &associated, plain)?;
        Some(format::frame(header, &[&nonce[..], &sealed].concat()))
    }

    /// Unseals a value found under `key`. The seal covers all of it but the checksum, which is asked only where the seal does
    /// not fit, to tell damage from what is another's: hashing is half the work of an opening. [`Self::check`] asks both.
    pub(crate) fn unseal(
        &self,
        key: &Key,
        kind: Kind,
        value: &[u8],
    ) -> Result<(HeadToken, Zeroizing<Vec<u8>>), VaultError> {
        let read = format::unframe_unchecked(kind, value)
            .and_then(|(header, content)| Some((header, self.open(key, &header, content)?)));
        match read {
            Some(read) => Ok(read),
            None => self.check(key, kind, value),
        }
    }

    /// Checks and unseals a value found under `key`, its checksum included.
    pub(crate) fn check(
        &self,
        key: &Key,
        kind: Kind,
        value: &[u8],
    ) -> Result<(HeadToken, Zeroizing<Vec<u8>>), VaultError> {
        let (header, content) = format::unframe(key, kind, value)?;
        if content.len() < v1::NONCE_BYTES {
            return Err(VaultError::NotForemind { key: key.clone() });
        }
        let plain = self.open(key, &header, content);
        let plain = plain.ok_or_else(|| VaultError::Seal { key: key.clone() })?;
        Ok((header, plain))
    }

    /// The plaintext, if the seal fits.
    fn open(&self, key: &Key, header: &HeadToken, content: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = content.split_first_chunk::<{ v1::NONCE_BYTES }>()?;
        self.cipher
            .open(nonce, &self.associated(key, header), sealed)
    }

    fn associated(&self, key: &Key, header: &HeadToken) -> Vec<u8> {
        let name = key.as_str().as_bytes();
        [&v1::DOMAIN_VALUE[..], &self.memory_id.0, &header.0, name].concat()
    }
}

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seals")
            .field("memory_id", &self.memory_id)
            .finish_non_exhaustive()
    }
}
