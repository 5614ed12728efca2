use core::fmt;

use foremind_types::{Error, ErrorCode};

use crate::Key;

/// Why stored values cannot be read or written. All but [`VaultError::WrongKey`], [`VaultError::WrapMethod`],
/// [`VaultError::Passphrase`] and [`VaultError::Unstorable`] are the store's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VaultError {
    /// Shorter than its header, or its first bytes are not foremind's.
    NotForemind {
        /// The value.
        key: Key,
    },
    /// The checksum does not fit: bytes were altered or cut off.
    Checksum {
        /// The value.
        key: Key,
    },
    /// The checksum fits and the seal does not: the value belongs to another memory, another name or
    /// another generation, or somebody forged it.
    Seal {
        /// The value.
        key: Key,
    },
    /// The header contradicts where the value was found.
    Header {
        /// The value.
        key: Key,
        /// The field.
        field: &'static str,
    },
    /// The unsealed content is not in the layout of its format.
    Layout {
        /// The value.
        key: Key,
        /// The part.
        part: &'static str,
    },
    /// The head names a value that is not there.
    Missing {
        /// The value.
        key: Key,
    },
    /// One of `key` and `head` is there without the other.
    Half {
        /// Which one is absent.
        absent: Key,
    },
    /// The log has a hole, a repetition or a foreign link.
    Chain {
        /// Where.
        sequence: u64,
        /// What is wrong.
        link: &'static str,
    },
    /// Written by a newer foremind.
    NewerFormat {
        /// The value.
        key: Key,
        /// Its format; this build knows formats up to 1.
        format: u16,
    },
    /// The head is older than one already seen, or another of the same age.
    Replaced {
        /// Generation already seen.
        seen: u64,
        /// Generation found.
        found: u64,
    },
    /// Another writer replaced the head in a store that cannot prevent it.
    Forked,
    /// The memory was repaired while it was open.
    Repaired,
    /// The key does not open the key slot.
    WrongKey,
    /// The key slot is wrapped in another way than the one asked for.
    WrapMethod {
        /// How it is wrapped.
        stored: crate::WrapMethod,
    },
    /// A passphrase or its costs cannot be used.
    Passphrase {
        /// Why.
        why: &'static str,
    },
    /// The data cannot be written in the current format.
    Unstorable {
        /// What.
        what: &'static str,
    },
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForemind { key } => write!(f, "value {key} was not written by foremind"),
            Self::Checksum { key } => write!(f, "value {key} was altered or cut off"),
            Self::Seal { key } => write!(
                f,
                "value {key} is whole but not sealed for this place in this memory"
            ),
            Self::Header { key, field } => write!(f, "value {key} has a wrong {field}"),
            Self::Layout { key, part } => write!(f, "value {key} holds an unreadable {part}"),
            Self::Missing { key } => write!(f, "value {key} is missing"),
            Self::Half { absent } => write!(f, "the memory is there but its value {absent} is not"),
            Self::Chain { sequence, link } => write!(f, "log entry {sequence}: {link}"),
            Self::NewerFormat { key, format } => write!(
                f,
                "value {key} has format {format}; update foremind to open this memory, nothing was changed"
            ),
            Self::Replaced { seen, found } => write!(
                f,
                "the store went back from generation {seen} to {found}; reopen the memory"
            ),
            Self::Forked => f.write_str(
                "another writer replaced the head; open the memory again: both journals are kept and merged",
            ),
            Self::Repaired => f.write_str("the memory was repaired meanwhile; reopen it"),
            Self::WrongKey => {
                f.write_str("the key does not open this memory; pass the key it was made with")
            }
            Self::WrapMethod { stored } => write!(
                f,
                "this memory's data key is wrapped by {stored}; open it with that kind of key"
            ),
            Self::Passphrase { why } => write!(f, "the passphrase cannot be used: {why}"),
            Self::Unstorable { what } => write!(f, "{what} cannot be stored"),
        }
    }
}

impl core::error::Error for VaultError {}

impl VaultError {
    /// The code under which this crosses borders.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotForemind { .. }
            | Self::Checksum { .. }
            | Self::Seal { .. }
            | Self::Header { .. }
            | Self::Layout { .. }
            | Self::Missing { .. }
            | Self::Half { .. }
            | Self::Chain { .. } => ErrorCode::Corrupt,
            Self::Forked => ErrorCode::Conflict,
            Self::NewerFormat { .. } => ErrorCode::NewerFormat,
            Self::Replaced { .. } | Self::Repaired => ErrorCode::StorageLost,
            Self::WrongKey => ErrorCode::WrongKey,
            Self::WrapMethod { stored } => match stored {
                crate::WrapMethod::Host => ErrorCode::KeyMissing,
                crate::WrapMethod::Passphrase => ErrorCode::KeyMissing,
                crate::WrapMethod::External => ErrorCode::WrongKey,
            },
            Self::Passphrase { .. } => ErrorCode::InvalidArgument,
            Self::Unstorable { .. } => ErrorCode::Internal,
        }
    }
}

impl From<VaultError> for Error {
    fn from(error: VaultError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
