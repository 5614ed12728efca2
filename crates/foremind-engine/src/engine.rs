use foremind_types::{Ambient, Entry, Error, ErrorCode};

use crate::{Reply, Request, Step};

/// The state of one memory.
#[derive(Debug, Default)]
pub struct Engine {}

/// An operation under way. Several may be under way on one engine.
#[derive(Debug)]
pub struct Op {
    request: Request,
}

impl Engine {
    /// The state of an empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds an entry into the state. Applying it again changes nothing, and the order of concurrent
    /// entries does not matter.
    pub fn apply(&mut self, _entry: &Entry) {}

    /// Starts an operation; the first step's reply is [`Reply::Begin`].
    #[must_use]
    pub fn begin(&self, request: Request) -> Op {
        Op { request }
    }

    /// Says what `op` needs next. The state never changes here.
    pub fn step(&mut self, op: &mut Op, _reply: Reply, _at: &Ambient) -> Step {
        Step::Done(Err(Error::new(
            ErrorCode::Internal,
            match op.request {
                Request::Refresh {} => "no refresh",
                _ => "no such verb",
            },
        )))
    }

    /// A hash of the state, equal for equal states.
    #[must_use]
    pub fn state_digest(&self) -> [u8; 32] {
        [0; 32]
    }
}
