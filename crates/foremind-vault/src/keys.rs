use core::fmt;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
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
    fn check(&self) -> [u8; v1::SLOT_CHECK_BYTES] {
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

/// How the data key of a memory is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrapMethod {
    /// By 32 bytes of the host, here.
    Host,
    /// By the host itself, which keeps an opaque blob in the slot (a non-extractable `WebCrypto` key).
    External,
}

impl fmt::Display for WrapMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "a key of the host",
            Self::External => "the platform (device key)",
        })
    }
}

/// The value `key`, read.
#[derive(Clone, Debug)]
pub struct KeySlot {
    memory_id: MemoryId,
    method: WrapMethod,
    check: [u8; v1::SLOT_CHECK_BYTES],
    blob: Vec<u8>,
    header: HeadToken,
}

impl KeySlot {
    /// Reads the stored value; no key is needed.
    ///
    /// # Errors
    /// Altered, foreign or newer bytes.
    pub fn read(value: &[u8]) -> Result<Self, VaultError> {
        let key = Key::slot();
        let (header, _) = format::unframe(&key, Kind::Slot, value)?;
        let cut = || VaultError::Layout {
            key: key.clone(),
            part: "key slot",
        };
        let blob = value.get(v1::SLOT_BLOB_AT..).ok_or_else(cut)?;
        if blob.len() > v1::SLOT_BLOB_BYTES_MAX {
            return Err(cut());
        }
        let mut memory_id = [0; 16];
        memory_id.copy_from_slice(&value[v1::SLOT_MEMORY_AT..v1::SLOT_METHOD_AT]);
        let mut check = [0; v1::SLOT_CHECK_BYTES];
        check.copy_from_slice(&value[v1::SLOT_CHECK_AT..v1::SLOT_BLOB_AT]);
        Ok(Self {
            memory_id: MemoryId(memory_id),
            method: match value[v1::SLOT_METHOD_AT] {
                v1::METHOD_HOST => WrapMethod::Host,
                v1::METHOD_EXTERNAL => WrapMethod::External,
                _ => return Err(cut()),
            },
            check,
            blob: blob.to_vec(),
            header,
        })
    }

    /// The memory.
    #[must_use]
    pub fn memory_id(&self) -> MemoryId {
        self.memory_id
    }

    /// How the data key is wrapped.
    #[must_use]
    pub fn method(&self) -> WrapMethod {
        self.method
    }

    /// What the host wrapped; for [`WrapMethod::External`].
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Unwraps the data key with the host's key.
    ///
    /// # Errors
    /// [`VaultError::WrapMethod`] when it is not wrapped so, [`VaultError::WrongKey`].
    pub fn unwrap_host(&self, host_key: &[u8; 32]) -> Result<DataKey, VaultError> {
        if self.method != WrapMethod::Host {
            return Err(VaultError::WrapMethod {
                stored: self.method,
            });
        }
        let (nonce, sealed) = self
            .blob
            .split_first_chunk::<{ v1::NONCE_BYTES }>()
            .ok_or(VaultError::WrongKey)?;
        let plain = wrapping_cipher(host_key)
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: &slot_associated(&self.header, self.memory_id, self.check),
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| VaultError::WrongKey)?;
        let bytes: [u8; 32] = plain
            .as_slice()
            .try_into()
            .map_err(|_| VaultError::WrongKey)?;
        let data_key = DataKey::new(bytes);
        self.accept(&data_key)?;
        Ok(data_key)
    }

    /// Whether this is the data key of the memory.
    ///
    /// # Errors
    /// [`VaultError::WrongKey`].
    pub fn accept(&self, data_key: &DataKey) -> Result<(), VaultError> {
        if data_key.check() == self.check {
            Ok(())
        } else {
            Err(VaultError::WrongKey)
        }
    }

    /// The stored value for a data key wrapped by 32 bytes of the host.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`] if sealing fails.
    pub fn write_host(
        memory_id: MemoryId,
        data_key: &DataKey,
        host_key: &[u8; 32],
        generation: u64,
        draws: &mut Draws,
    ) -> Result<Vec<u8>, VaultError> {
        let header = format::header(Kind::Slot, generation, draws.bytes());
        let check = data_key.check();
        let nonce: [u8; v1::NONCE_BYTES] = draws.bytes();
        let sealed = wrapping_cipher(host_key)
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: data_key.as_bytes(),
                    aad: &slot_associated(&header, memory_id, check),
                },
            )
            .map_err(|_| VaultError::Unstorable {
                what: "the data key",
            })?;
        let blob = [&nonce[..], &sealed].concat();
        Ok(slot_value(header, memory_id, v1::METHOD_HOST, check, &blob))
    }

    /// The stored value for a data key that the host wrapped into `blob`.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`] when the blob is empty or longer than 4096 bytes.
    pub fn write_external(
        memory_id: MemoryId,
        data_key: &DataKey,
        blob: &[u8],
        generation: u64,
        draws: &mut Draws,
    ) -> Result<Vec<u8>, VaultError> {
        if blob.is_empty() || blob.len() > v1::SLOT_BLOB_BYTES_MAX {
            return Err(VaultError::Unstorable {
                what: "a wrapped key of this size",
            });
        }
        let header = format::header(Kind::Slot, generation, draws.bytes());
        let check = data_key.check();
        Ok(slot_value(
            header,
            memory_id,
            v1::METHOD_EXTERNAL,
            check,
            blob,
        ))
    }
}

fn wrapping_cipher(host_key: &[u8; 32]) -> XChaCha20Poly1305 {
    let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_WRAP, host_key));
    XChaCha20Poly1305::new((&*key).into())
}

fn slot_associated(
    header: &HeadToken,
    memory_id: MemoryId,
    check: [u8; v1::SLOT_CHECK_BYTES],
) -> Vec<u8> {
    [&v1::DOMAIN_SLOT[..], &header.0, &memory_id.0, &check].concat()
}

fn slot_value(
    header: HeadToken,
    memory_id: MemoryId,
    method: u8,
    check: [u8; v1::SLOT_CHECK_BYTES],
    blob: &[u8],
) -> Vec<u8> {
    let content = [&memory_id.0[..], &[method], &check, blob].concat();
    format::frame(header, &content)
}

/// The derived keys of an open memory.
pub(crate) struct Seals {
    memory_id: MemoryId,
    cipher: XChaCha20Poly1305,
    name_key: Zeroizing<[u8; 32]>,
}

impl Seals {
    pub(crate) fn new(memory_id: MemoryId, data_key: &DataKey) -> Self {
        let seal_key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_SEAL, data_key.as_bytes()));
        Self {
            memory_id,
            // The cipher zeroes its own copy when dropped (feature `zeroize` of the crate).
            cipher: XChaCha20Poly1305::new((&*seal_key).into()),
            name_key: Zeroizing::new(blake3::derive_key(v1::CONTEXT_NAME, data_key.as_bytes())),
        }
    }

    pub(crate) fn memory_id(&self) -> MemoryId {
        self.memory_id
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
        let sealed = self
            .cipher
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: plain,
                    aad: &self.associated(key, &header),
                },
            )
            .ok()?;
        Some(format::frame(header, &[&nonce[..], &sealed].concat()))
    }

    /// Checks and unseals a value found under `key`.
    pub(crate) fn unseal(
        &self,
        key: &Key,
        kind: Kind,
        value: &[u8],
    ) -> Result<(HeadToken, Zeroizing<Vec<u8>>), VaultError> {
        let (header, content) = format::unframe(key, kind, value)?;
        let (nonce, sealed) = content
            .split_first_chunk::<{ v1::NONCE_BYTES }>()
            .ok_or_else(|| VaultError::NotForemind { key: key.clone() })?;
        let plain = self
            .cipher
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: &self.associated(key, &header),
                },
            )
            .map_err(|_| VaultError::Seal { key: key.clone() })?;
        Ok((header, Zeroizing::new(plain)))
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
