//! Records, profile, recall and erasure as a state machine without I/O, clock or randomness.
//!
//! An operation is a value: [`Engine::begin`] makes an [`Op`], [`Engine::step`] says what it needs next
//! (an embedding, a commit) or that it is done. State changes in one place only, [`Engine::apply`], which
//! folds an entry into the state; so replaying a memory's entries, in any order that its writers could have
//! produced, always gives the same state.

mod engine;
mod find;
mod identity;
mod join;
mod manage;
mod op;
mod profile;
mod protocol;
mod read;
mod recall;
mod render;
mod request;
mod response;
mod slots;
mod state;
mod statements;
mod supersede;
mod upkeep;
mod veil;
mod word_index;
mod write;

pub use engine::Engine;
pub use foremind_guard::{Guard, Policy, PolicyError};
pub use foremind_index::tokens::estimate as estimate_tokens;
pub use foremind_router::{HeadError, MissingFile, NgramHead, has_data, install_data};
pub use op::Op;
pub use protocol::{EMBEDDING_HEAD, Reply, Step};
pub use request::{Audience, Exposure, ForgetTarget, IngestMode, Request, TurnStatus};
pub use response::{
    Chain, Dropped, DroppedReason, Explain, Ignored, Listing, Noted, Outcome, PendingList, Prompt,
    Rescanned, Response, Section, Shown, Stats,
};
pub use upkeep::ProfileView;
pub use veil::{Pseudonym, restored};
