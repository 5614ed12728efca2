use core::fmt;

use foremind_engine::{Policy, Response};
use foremind_types::{Embedding, EncodeFailure, Error, HeadId};
use foremind_vault::{DataKey, HeadToken, Key, Passphrase, PassphraseCost, WrapMethod};

use crate::Memory;

/// What an operation needs next.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each step of an operation; a box would only burden the bindings"
)]
pub enum Step {
    /// Encode the texts with each of the heads; answer with [`Reply::Embedded`].
    NeedEmbed {
        /// At most [`foremind_types::limits::EMBED_TEXTS`].
        texts: Vec<String>,
        /// At least one.
        heads: Vec<HeadId>,
    },
    /// Read values; answer with [`Reply::Values`].
    NeedRead {
        /// At least one.
        keys: Vec<Key>,
    },
    /// List the names of all values; answer with [`Reply::Names`]. Only when something is erased.
    NeedNames,
    /// Write a batch; answer with [`Reply::Committed`], [`Reply::Conflict`] or [`Reply::Failed`]. The store
    /// compares the first [`HeadToken::BYTES`] bytes of its value `head` with `expected_head`, and writes
    /// everything or nothing.
    Commit {
        /// `None`: there must be no `head`.
        expected_head: Option<HeadToken>,
        /// Values to write, the new `head` among them.
        puts: Vec<(Key, Vec<u8>)>,
        /// Values to delete; some may be absent.
        deletes: Vec<Key>,
        /// Whether the batch must be durable before the answer.
        strict: bool,
    },
    /// The end; further steps give an `internal` error.
    Done(Result<Response, Error>),
}

/// What the host answers to a [`Step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The first call of an operation.
    Begin,
    /// `[text][head]`, in the order asked.
    Embedded(Result<Vec<Vec<Embedding>>, EncodeFailure>),
    /// One for each key, in the order asked; `None`: absent.
    Values(Vec<Option<Vec<u8>>>),
    /// The names of all values, in any order; `None` where the store cannot list them.
    Names(Option<Vec<String>>),
    /// The batch is written.
    Committed,
    /// The head was not the expected one; nothing was written.
    Conflict,
    /// The host gave up or its store failed; the operation ends with this error, the state is as before.
    Failed(Error),
}

/// What an opening needs next.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each step of one opening; a box would only burden the bindings"
)]
pub enum OpenStep {
    /// Read values; answer with [`OpenReply::Values`].
    NeedRead {
        /// At least one.
        keys: Vec<Key>,
    },
    /// Unwrap the data key; answer with [`OpenReply::DataKey`], or [`OpenReply::Failed`] with `wrong-key`.
    NeedKey {
        /// How it is wrapped.
        method: WrapMethod,
        /// What the host wrapped.
        wrapped: Vec<u8>,
    },
    /// Wrap the data key of a new memory; answer with [`OpenReply::Wrapped`]. The host keeps no copy.
    WrapKey {
        /// 32 bytes.
        data_key: DataKey,
    },
    /// List the names of all values; answer with [`OpenReply::Names`]. Only with [`OpenOptions::journals`].
    NeedNames,
    /// The profile can be asked for ([`crate::Opening::profile`]) while the log is still being read; answer with
    /// [`OpenReply::Continue`]. Only with [`OpenOptions::profile_first`].
    Profile,
    /// Write a batch, as in [`Step::Commit`].
    Commit {
        /// `None`: a new memory; otherwise an erasure that was cut is finished.
        expected_head: Option<HeadToken>,
        /// Values to write.
        puts: Vec<(Key, Vec<u8>)>,
        /// Values to delete.
        deletes: Vec<Key>,
        /// Whether the batch must be durable before the answer.
        strict: bool,
    },
    /// The end; further steps give an `internal` error.
    Done(Result<Memory, Error>),
}

/// What the host answers to an [`OpenStep`].
pub enum OpenReply {
    /// The first call.
    Begin,
    /// One for each key, in the order asked; `None`: absent.
    Values(Vec<Option<Vec<u8>>>),
    /// In place of the values `key` and `head`: there is this `key` and no `head`, and the host has listed the
    /// names in the store after it looked for `head` and found no value of the log ([`Key::is_of_log`]). Then
    /// the making of a memory was cut between the two, which happens where a batch is not atomic: whoever has
    /// the key finishes it. Answered with [`OpenReply::Values`], a `key` without `head` is `corrupt`.
    KeyAlone(Vec<u8>),
    /// The unwrapped data key.
    DataKey(DataKey),
    /// The wrapped data key, 1 to 4096 bytes.
    Wrapped(Vec<u8>),
    /// The names of all values, in any order.
    Names(Vec<String>),
    /// Answer to [`OpenStep::Profile`].
    Continue,
    /// The batch is written.
    Committed,
    /// Somebody else made the memory; nothing was written.
    Conflict,
    /// The host gave up or its store failed.
    Failed(Error),
}

impl fmt::Debug for OpenReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin => "Begin",
            Self::Values(_) => "Values",
            Self::KeyAlone(_) => "KeyAlone",
            Self::DataKey(_) => "DataKey",
            Self::Wrapped(_) => "Wrapped",
            Self::Names(_) => "Names",
            Self::Continue => "Continue",
            Self::Committed => "Committed",
            Self::Conflict => "Conflict",
            Self::Failed(_) => "Failed",
        })
    }
}

/// With what a memory is opened, or made if there is none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Who keeps the key that wraps the data key.
    pub key: KeySource,
    /// The host vouches that nobody else writes to the store while this memory is open: operations then do
    /// not look for what others wrote, until a commit meets a conflict.
    pub exclusive: bool,
    /// Whether a memory is made where there is none; otherwise that is a `storage-lost` error.
    pub create: bool,
    /// The lowest generation that the host accepts, if it counts them outside of the store: an older store
    /// put back is then a `storage-lost` error. 0 accepts all.
    pub min_generation: u64,
    /// Read the stored profile before the log, and say so with [`OpenStep::Profile`].
    pub profile_first: bool,
    /// For stores whose [`crate::Strategy::needs_journals`]: what other writers committed under a head that was
    /// replaced is looked for and merged, and a head that is replaced later is a `conflict` error.
    pub journals: bool,
    /// For stores that write a batch as a whole or not at all ([`crate::Capabilities::atomic_batch`]): nothing is deleted a second
    /// time in case the first was cut off. Always right when false.
    pub atomic_batches: bool,
    /// For stores that are read late: an older head than one already seen is no news, instead of a loss. Nothing can
    /// be written to such a store.
    pub stale_reads: bool,
    /// What the guard does with what it finds.
    pub policy: Policy,
}

impl OpenOptions {
    /// Shared with other writers, made if absent.
    #[must_use]
    pub fn new(key: KeySource) -> Self {
        Self {
            key,
            exclusive: false,
            create: true,
            min_generation: 0,
            profile_first: false,
            journals: false,
            atomic_batches: false,
            stale_reads: false,
            policy: Policy::default(),
        }
    }

    /// The same, with `exclusive` set.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self {
            exclusive: true,
            ..self
        }
    }
}

/// Who keeps the key that wraps the data key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KeySource {
    /// The host passes 32 bytes; foremind wraps.
    Host(DataKey),
    /// The host wraps by itself and answers [`OpenStep::NeedKey`] and [`OpenStep::WrapKey`].
    External,
    /// Words, from which a key is derived that wraps.
    Passphrase {
        /// The words.
        passphrase: Passphrase,
        /// What deriving costs when something is wrapped; absent: [`foremind_vault::PassphraseCost::default`].
        cost: Option<PassphraseCost>,
    },
}
