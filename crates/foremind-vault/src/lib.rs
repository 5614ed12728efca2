//! Changes to sealed entries to key/value batches, and back. docs/FORMAT.md describes the bytes.
//!
//! The crate encodes and decodes; it reads and writes nothing. A memory is two named values, `key` (the
//! wrapped data key) and `head` (which values make up the log), and the values of the log. Values are never
//! changed in place, except the head, which a commit compares and swaps together with everything it adds
//! and deletes.

mod entropy;
mod error;
mod format;
mod key;
mod keys;
mod log;
mod redact;

pub use entropy::Draws;
pub use error::VaultError;
pub use key::{HeadToken, Key};
pub use keys::{DataKey, KeySlot, WrapMethod};
pub use log::{
    Batch, FULL_BYTES, Head, LOOSE_ENTRIES, Plan, Run, SEGMENTS_PER_LEVEL, Sequenced, Vault,
};
