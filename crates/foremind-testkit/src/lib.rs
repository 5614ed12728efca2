//! Stores that fail, lag and conflict on purpose, seeded entropy, drivers for tests.
//!
//! Everything is deterministic: a test names its seed and its fault, and fails the same way every time.

mod driver;
mod encoder;
mod entropy;
mod primitive;
mod store;
pub mod suite;

pub use driver::{
    FakeWrapper, File, Opened, Running, drive, open, open_with, publish, read_opening, run, survey,
};
pub use encoder::{Encoder, NoEncoder, WordEncoder};
pub use entropy::SeededAmbient;
pub use foremind_memory::{Capabilities, Written};
pub use primitive::{Crash, LaggingStore, PrimitiveStore};
pub use store::{Fault, FaultKind, MemoryStore, Store};
