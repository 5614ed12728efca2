//! Stores that fail, lag and conflict on purpose, seeded entropy, drivers for tests.
//!
//! Everything is deterministic: a test names its seed and its fault, and fails the same way every time.

mod driver;
mod encoder;
mod entropy;
mod store;

pub use driver::{FakeWrapper, Opened, Running, drive, open, open_with, read_opening};
pub use encoder::{Encoder, NoEncoder, WordEncoder};
pub use entropy::SeededAmbient;
pub use store::{Capabilities, Fault, FaultKind, MemoryStore, Store, Written};
