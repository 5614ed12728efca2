//! One memory: engine and vault behind one step protocol that every host drives.
//!
//! The crate does no I/O. [`Opening::step`] and [`Memory::step`] say what they need (values, an embedding, a
//! commit), the host provides it in its own way, synchronous or not, and answers. State changes only when the
//! host says that a commit is written, and when entries of other writers are read.

mod catch_up;
mod memory;
mod opening;
mod protocol;

pub use foremind_engine::{Request, Response};
pub use foremind_vault::{DataKey, HeadToken, Key, WrapMethod};
pub use memory::{Memory, Op};
pub use opening::Opening;
pub use protocol::{KeySource, OpenOptions, OpenReply, OpenStep, Reply, Step};
