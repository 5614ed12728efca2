use core::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary;

vocabulary! {
    /// Who can mend an error.
    pub enum Fault {
        /// The caller passed something that cannot be used.
        Caller = "caller",
        /// The host's store, key or model is absent, full, denied or altered.
        Host = "host",
        /// foremind broke an invariant of its own.
        Foremind = "foremind",
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $fault:ident;)+) => {
        vocabulary! {
            /// The stable name of an error across every border: one list for JavaScript, WIT and HTTP.
            #[non_exhaustive]
            pub enum ErrorCode {
                $($(#[doc = $doc])+ $variant = $text,)+
            }
        }

        impl ErrorCode {
            /// Who can mend it.
            #[must_use]
            pub fn fault(self) -> Fault {
                match self { $(Self::$variant => Fault::$fault),+ }
            }
        }
    };
}

codes! {
    /// An argument has the wrong type, range or form.
    InvalidArgument = "invalid-argument", Caller;
    /// The text is empty or only white space.
    TextEmpty = "text-empty", Caller;
    /// The text is longer than the limit; nothing of it was stored.
    TextTooLarge = "text-too-large", Caller;
    /// No record of that id is visible in the scope.
    UnknownId = "unknown-id", Caller;
    /// The memory was closed.
    Closed = "closed", Caller;
    /// The caller's abort signal fired; nothing was changed.
    Aborted = "aborted", Caller;
    /// The operation needs a key and none was given.
    KeyMissing = "key-missing", Caller;
    /// The key does not open this memory.
    WrongKey = "wrong-key", Caller;
    /// The environment lacks what the operation needs (secure context, IndexedDB, WebAssembly).
    Unsupported = "unsupported", Host;
    /// The store may not be used (private mode, permissions).
    StorageDenied = "storage-denied", Host;
    /// The store is full; the operation changed nothing.
    QuotaExceeded = "quota-exceeded", Host;
    /// The store went away or was replaced under us (deleted, evicted, blocked by another version).
    StorageLost = "storage-lost", Host;
    /// The store failed otherwise; the operation changed nothing.
    StorageFailed = "storage-failed", Host;
    /// Other writers were faster too many times; the operation changed nothing.
    Conflict = "conflict", Host;
    /// Stored bytes are altered or missing.
    Corrupt = "corrupt", Host;
    /// Stored by a newer foremind: readable only by that one; nothing is written.
    NewerFormat = "newer-format", Host;
    /// The model file is absent; the memory works lexically.
    ModelMissing = "model-missing", Host;
    /// The model file is not the one it claims to be, or damaged; it is refused.
    ModelInvalid = "model-invalid", Host;
    /// A limit of the memory is reached (number of records).
    LimitReached = "limit-reached", Caller;
    /// An invariant of foremind broke; the instance was dropped and the memory reopened from its store.
    Internal = "internal", Foremind;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as it crosses borders: a code to branch on and a sentence that says what to do. The message
/// never carries text that a person told the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// What to branch on.
    pub code: ErrorCode,
    /// A sentence for a developer; not stable.
    pub message: String,
}

impl Error {
    /// Makes an error; `message` must not carry user text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_kebab_case() {
        for (at, code) in ErrorCode::ALL.iter().enumerate() {
            let text = code.as_str();
            assert!(
                text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{text}"
            );
            assert!(
                ErrorCode::ALL[..at]
                    .iter()
                    .all(|other| other.as_str() != text),
                "{text}"
            );
        }
    }
}
