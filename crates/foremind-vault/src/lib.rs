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
mod parcel;
mod passphrase;
mod redact;
mod slot;

// The unit tests share the entries of the integration tests, which name the crate from outside.
#[cfg(test)]
extern crate self as foremind_vault;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;

pub use entropy::Draws;
pub use error::VaultError;
pub use key::{HeadToken, Key};
pub use keys::DataKey;
pub use log::{
    Batch, FULL_BYTES, Head, Heard, LOOSE_ENTRIES, PROFILE_BYTES, Plan, ProfileUpdate, Proof,
    REWRITE_BYTES, Rebuilt, Run, SEGMENT_BYTES, SEGMENTS_PER_LEVEL, Salvage, Sequenced, Vault, mac,
};
pub use parcel::{PARCEL_FRAME_BYTES, ParcelError, ParcelReader, ParcelWriter};
pub use passphrase::{Passphrase, PassphraseCost};
pub use slot::{KeySlot, WrapMethod};

/// Bodies of fuzz tests, which call inner parts with hostile bytes. No interface.
#[doc(hidden)]
pub mod fuzz {
    pub use crate::format::{fuzz_entries as entries, fuzz_profile as profile, fuzz_seed as seed};
    pub use crate::log::{fuzz_head as head, fuzz_manifest as manifest};
}
