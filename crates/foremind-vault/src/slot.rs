//! The key slot: the data key of a memory, wrapped.

use core::fmt;

use foremind_seal::Cipher;
use foremind_types::MemoryId;
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::format::{self, Kind, v1};
use crate::{DataKey, HeadToken, Key, Passphrase, PassphraseCost, VaultError};

/// How the data key of a memory is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrapMethod {
    /// By 32 bytes of the host, here.
    Host,
    /// By the host itself, which keeps an opaque blob in the slot (a non-extractable `WebCrypto` key).
    External,
    /// By a passphrase, here.
    Passphrase,
}

impl fmt::Display for WrapMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "a key of the host",
            Self::External => "the platform (device key)",
            Self::Passphrase => "a passphrase",
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
                v1::METHOD_PASSPHRASE => WrapMethod::Passphrase,
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

    /// The same slot, whichever of its two copies it was read from.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        self.header == other.header && self.blob == other.blob
    }

    /// The generation of the commit that wrote it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.header.generation()
    }

    /// Unwraps the data key with the host's key.
    ///
    /// # Errors
    /// [`VaultError::WrapMethod`] when it is not wrapped so, [`VaultError::WrongKey`].
    pub fn unwrap_host(&self, host_key: &[u8; 32]) -> Result<DataKey, VaultError> {
        self.must_be(WrapMethod::Host)?;
        let (nonce, sealed) = self
            .blob
            .split_first_chunk::<{ v1::NONCE_BYTES }>()
            .ok_or(VaultError::WrongKey)?;
        let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_WRAP, host_key));
        self.open(&key, *nonce, sealed, &[])
    }

    /// Unwraps the data key with a passphrase. Takes the time and memory that the slot asks for, within the
    /// bounds of [`PassphraseCost`].
    ///
    /// # Errors
    /// [`VaultError::WrapMethod`] when it is not wrapped so, [`VaultError::WrongKey`], and
    /// [`VaultError::Layout`] for costs out of their bounds.
    pub fn unwrap_passphrase(&self, passphrase: &Passphrase) -> Result<DataKey, VaultError> {
        self.must_be(WrapMethod::Passphrase)?;
        let layout = |part| VaultError::Layout {
            key: Key::slot(),
            part,
        };
        let (head, sealed) = self
            .blob
            .split_first_chunk::<{ v1::PASS_SEALED_AT }>()
            .ok_or_else(|| layout("passphrase blob"))?;
        let number = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&head[at..at + 4]);
            u32::from_le_bytes(bytes)
        };
        let cost = PassphraseCost {
            memory_kib: number(v1::PASS_MEMORY_KIB_AT),
            passes: number(v1::PASS_PASSES_AT),
            lanes: number(v1::PASS_LANES_AT),
        };
        cost.check().map_err(layout)?;
        let secret = passphrase.derive(&head[v1::PASS_SALT_AT..v1::PASS_NONCE_AT], cost)?;
        let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_PASS, &*secret));
        let mut nonce = [0; v1::NONCE_BYTES];
        nonce.copy_from_slice(&head[v1::PASS_NONCE_AT..]);
        self.open(&key, nonce, sealed, &head[..v1::PASS_NONCE_AT])
    }

    fn must_be(&self, method: WrapMethod) -> Result<(), VaultError> {
        if self.method == method {
            return Ok(());
        }
        Err(VaultError::WrapMethod {
            stored: self.method,
        })
    }

    fn open(
        &self,
        key: &[u8; 32],
        nonce: [u8; v1::NONCE_BYTES],
        sealed: &[u8],
        more: &[u8],
    ) -> Result<DataKey, VaultError> {
        let aad = associated(&self.header, self.memory_id, self.check, more);
        let plain = Cipher::new(key).open(&nonce, &aad, sealed);
        let plain = plain.ok_or(VaultError::WrongKey)?;
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
        let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_WRAP, host_key));
        let nonce: [u8; v1::NONCE_BYTES] = draws.bytes();
        let sealed = seal(&key, nonce, &header, memory_id, data_key, &[])?;
        let blob = [&nonce[..], &sealed].concat();
        Ok(value(header, memory_id, v1::METHOD_HOST, data_key, &blob))
    }

    /// The stored value for a data key wrapped by a passphrase.
    ///
    /// # Errors
    /// [`VaultError::Unstorable`] for costs out of their bounds, and if sealing fails.
    pub fn write_passphrase(
        memory_id: MemoryId,
        data_key: &DataKey,
        passphrase: &Passphrase,
        cost: PassphraseCost,
        generation: u64,
        draws: &mut Draws,
    ) -> Result<Vec<u8>, VaultError> {
        let header = format::header(Kind::Slot, generation, draws.bytes());
        let salt: [u8; v1::PASS_SALT_BYTES] = draws.bytes();
        let nonce: [u8; v1::NONCE_BYTES] = draws.bytes();
        let secret = passphrase.derive(&salt, cost)?;
        let key = Zeroizing::new(blake3::derive_key(v1::CONTEXT_PASS, &*secret));
        let head = [
            &cost.memory_kib.to_le_bytes()[..],
            &cost.passes.to_le_bytes(),
            &cost.lanes.to_le_bytes(),
            &salt,
        ]
        .concat();
        let sealed = seal(&key, nonce, &header, memory_id, data_key, &head)?;
        let blob = [&head[..], &nonce, &sealed].concat();
        Ok(value(
            header,
            memory_id,
            v1::METHOD_PASSPHRASE,
            data_key,
            &blob,
        ))
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
        Ok(value(
            header,
            memory_id,
            v1::METHOD_EXTERNAL,
            data_key,
            blob,
        ))
    }
}

fn seal(
    key: &[u8; 32],
    nonce: [u8; v1::NONCE_BYTES],
    header: &HeadToken,
    memory_id: MemoryId,
    data_key: &DataKey,
    more: &[u8],
) -> Result<Vec<u8>, VaultError> {
    let aad = associated(header, memory_id, data_key.check(), more);
    let sealed = Cipher::new(key).seal(&nonce, &aad, data_key.as_bytes());
    sealed.ok_or(VaultError::Unstorable {
        what: "the data key",
    })
}

/// What a wrapping is bound to; `more` are the costs and salt of a passphrase.
fn associated(
    header: &HeadToken,
    memory_id: MemoryId,
    check: [u8; v1::SLOT_CHECK_BYTES],
    more: &[u8],
) -> Vec<u8> {
    [&v1::DOMAIN_SLOT[..], &header.0, &memory_id.0, &check, more].concat()
}

fn value(
    header: HeadToken,
    memory_id: MemoryId,
    method: u8,
    data_key: &DataKey,
    blob: &[u8],
) -> Vec<u8> {
    let content = [&memory_id.0[..], &[method], &data_key.check(), blob].concat();
    format::frame(header, &content)
}
