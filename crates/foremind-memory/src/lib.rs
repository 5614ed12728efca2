//! One memory: engine and vault behind one step protocol that every host drives.
//!
//! The crate does no I/O. [`Opening::step`] and [`Memory::step`] say what they need (values, an embedding, a
//! commit), the host provides it in its own way, synchronous or not, and answers. State changes only when the
//! host says that a commit is written, and when entries of other writers are read.

mod catch_up;
mod destroy;
mod erasure;
mod export;
mod import;
pub mod json;
mod lines;
mod memory;
mod merge;
mod opening;
mod protocol;
mod rekey;
mod replica;
mod store;
mod survey;
mod task;

pub use erasure::ReceiptCheck;
pub use foremind_engine::{
    Audience, Exposure, HeadError, MissingFile, Policy, PolicyError, Request, Response, has_data,
    install_data,
};
pub use foremind_vault::{DataKey, HeadToken, Key, Passphrase, PassphraseCost, WrapMethod};
pub use memory::{Memory, Op};
pub use opening::Opening;
pub use protocol::{KeySource, OpenOptions, OpenReply, OpenStep, Reply, Step};
pub use replica::{
    Freshness, PUBLISH_EVERY_MS, PublishReply, PublishStep, Published, Publisher, RETAIN_MS,
};
pub use store::{Capabilities, Commit, StoreReply, StoreStep, Strategy, Written};
pub use survey::Survey;
pub use task::{Chore, Damage, Report, Task, TaskReply, TaskStep, Verified};

/// Bodies of fuzz tests, which call inner parts with hostile bytes. No interface.
#[doc(hidden)]
pub mod fuzz {
    pub use crate::import::fuzz_import as import;
}
