//! The vocabulary of foremind: ids, records, scopes, changes, embeddings, errors and limits.
//!
//! Everything here is plain data. The crate has no behaviour beyond validation and no
//! dependency on any other part, so that every arrow of the workspace can end here.
//!
//! Types that cross a border (JavaScript, WIT, JSON) serialise in camelCase with kebab-case
//! enum values. They are *not* what is stored: the vault keeps frozen copies for that.

mod change;
pub mod data;
mod decimal;
mod embedding;
mod error;
mod ids;
pub mod limits;
pub mod order;
pub mod pile;
mod receipt;
mod record;
#[cfg(feature = "schema")]
mod schema;
mod scope;
pub mod small;

mod time;
pub mod vocabulary;

// For `vocabulary!` in other crates.
#[doc(hidden)]
pub use serde;

pub use change::{Change, Entry, Revision, Stamp};
pub use decimal::decimal;
pub use embedding::{Embedding, EncodeFailure, HeadId, ModelId, VECTOR_DIMENSIONS};
pub use error::{Error, ErrorCode, Fault};
pub use ids::{IdError, MemoryId, Name, RecordId, WriterId};
pub use receipt::{Digest, ErasedCounts, Receipt};
pub use record::{
    Domain, Evidence, Grade, Judgement, Layer, Provenance, Reason, Record, Role, Route, Severity,
    Stage, Status, Subject, SupersedeKind, Supersedes, Tier, Times, Ttl,
};
pub use scope::Scope;
pub use time::Ambient;
