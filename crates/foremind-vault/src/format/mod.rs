//! What is stored, one module for each frozen format, and the header that all formats share.

mod convert;
#[cfg(test)]
mod oracle;
mod read;
pub(crate) mod v1;

pub(crate) use convert::{encode_entries, encode_profile};
pub(crate) use read::{decode_entries, decode_manifest, decode_profile};

use crate::{HeadToken, Key, VaultError};

/// What a hostile plaintext of a run does.
#[must_use]
pub fn fuzz_entries(plain: &[u8]) -> Option<Vec<foremind_types::Entry>> {
    decode_entries(plain).ok()
}

/// A plaintext to begin from.
#[must_use]
pub fn fuzz_seed(entries: &[foremind_types::Entry]) -> Option<Vec<u8>> {
    encode_entries(entries).ok()
}

/// What a hostile plaintext of a profile does.
#[must_use]
pub fn fuzz_profile(plain: &[u8]) -> bool {
    decode_profile(plain).is_ok()
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Head,
    Slot,
    Log,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Head => v1::KIND_HEAD,
            Self::Slot => v1::KIND_SLOT,
            Self::Log => v1::KIND_LOG,
        }
    }
}

/// The header of a value of the current format.
pub(crate) fn header(kind: Kind, generation: u64, commit: [u8; v1::COMMIT_BYTES]) -> HeadToken {
    let mut bytes = [0; v1::HEADER_BYTES];
    bytes[..v1::FORMAT_AT].copy_from_slice(&v1::MAGIC);
    bytes[v1::FORMAT_AT..v1::KIND_AT].copy_from_slice(&v1::FORMAT.to_le_bytes());
    bytes[v1::KIND_AT] = kind.code();
    bytes[v1::GENERATION_AT..v1::COMMIT_AT].copy_from_slice(&generation.to_le_bytes());
    bytes[v1::COMMIT_AT..].copy_from_slice(&commit);
    HeadToken(bytes)
}

/// Header, checksum and content in one value.
pub(crate) fn frame(header: HeadToken, content: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(v1::CHECKED_AT + content.len());
    value.extend_from_slice(&header.0);
    value.extend_from_slice(&checksum(&header.0, content));
    value.extend_from_slice(content);
    value
}

/// Header and content of a value whose checksum, format and kind are right.
///
/// # Errors
/// [`VaultError::NotForemind`], [`VaultError::Checksum`], [`VaultError::NewerFormat`], [`VaultError::Header`].
pub(crate) fn unframe<'v>(
    key: &Key,
    kind: Kind,
    value: &'v [u8],
) -> Result<(HeadToken, &'v [u8]), VaultError> {
    let not_ours = || VaultError::NotForemind { key: key.clone() };
    let token = HeadToken::of(value).ok_or_else(not_ours)?;
    let content = value.get(v1::CHECKED_AT..).ok_or_else(not_ours)?;
    if token.0[..v1::FORMAT_AT] != v1::MAGIC {
        return Err(not_ours());
    }
    // The checksum comes first: a damaged format number must not look like a newer foremind.
    if value[v1::CHECKSUM_AT..v1::CHECKED_AT] != checksum(&token.0, content) {
        return Err(VaultError::Checksum { key: key.clone() });
    }
    let format = u16::from_le_bytes([token.0[v1::FORMAT_AT], token.0[v1::FORMAT_AT + 1]]);
    let wrong = |field| VaultError::Header {
        key: key.clone(),
        field,
    };
    match format {
        v1::FORMAT => {}
        0 => return Err(wrong("format")),
        _ => {
            return Err(VaultError::NewerFormat {
                key: key.clone(),
                format,
            });
        }
    }
    if token.0[v1::KIND_AT] != kind.code() {
        return Err(wrong("kind"));
    }
    if token.0[v1::RESERVED_AT] != 0 {
        return Err(wrong("reserved byte"));
    }
    Ok((token, content))
}

/// Header and content of a value of the current format and of this kind, whatever its checksum; `None` sends the asker to
/// [`unframe`], which says what is wrong.
pub(crate) fn unframe_unchecked(kind: Kind, value: &[u8]) -> Option<(HeadToken, &[u8])> {
    let token = HeadToken::of(value)?;
    let expected = header(kind, 0, [0; v1::COMMIT_BYTES]);
    let alike = token.0[..v1::GENERATION_AT] == expected.0[..v1::GENERATION_AT];
    Some((token, value.get(v1::CHECKED_AT..)?)).filter(|_| alike)
}

fn checksum(header: &[u8], content: &[u8]) -> [u8; v1::CHECKSUM_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header);
    hasher.update(content);
    let mut sum = [0; v1::CHECKSUM_BYTES];
    hasher.finalize_xof().fill(&mut sum);
    sum
}
