use foremind_types::{Change, Embedding, EncodeFailure, Error, HeadId};

use crate::Response;

/// The head whose vectors the engine stores and compares.
pub const EMBEDDING_HEAD: &str = "embedding/1";

/// What the driver answers to a [`Step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The first call of an operation.
    Begin,
    /// Answer to [`Step::Encode`]: `[text][head]`, in the order asked.
    Encoded(Result<Vec<Vec<Embedding>>, EncodeFailure>),
    /// Answer to [`Step::Commit`]: the changes are stored, and were applied to this engine.
    Committed,
    /// Answer to [`Step::Commit`]: nothing was stored, entries of other writers were applied; plan again.
    Replan,
    /// The driver gave up; the operation ends with this error and the state is as before.
    Failed(Error),
}

/// What an operation needs next.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once per operation and matched at once"
)]
pub enum Step {
    /// Encode at most [`foremind_types::limits::EMBED_TEXTS`] texts with each of the heads.
    Encode {
        /// The texts, as told.
        texts: Vec<String>,
        /// The heads.
        heads: Vec<HeadId>,
    },
    /// Store the changes as one entry, apply that entry, then reply.
    Commit {
        /// Never empty.
        changes: Vec<Change>,
        /// Whether the changes hold a modifier or an erasure, which must be durable before the reply.
        strict: bool,
    },
    /// The end; further steps give an `internal` error.
    Done(Result<Response, Error>),
}
