use std::sync::OnceLock;

use foremind_guard::Guard;
use foremind_router::{HeadError, NgramHead, Router};
use foremind_types::{Ambient, Entry, Error, ErrorCode};

use crate::op::Op;
use crate::state::State;
use crate::{Reply, Request, Step};

/// One memory: its state, and the rules that change it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    pub(crate) guard: Guard,
    pub(crate) router: Router,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// An empty memory. The router's lexicons are read once for all memories of the process.
    #[must_use]
    pub fn new() -> Self {
        static ROUTER: OnceLock<Router> = OnceLock::new();
        Self {
            state: State::default(),
            guard: Guard::new(),
            router: ROUTER.get_or_init(Router::new).clone(),
        }
    }

    /// An empty memory whose router has a head for what words alone leave open.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] when the router has no calibration for it.
    pub fn with_ngrams(head: NgramHead) -> Result<Self, HeadError> {
        let mut engine = Self::new();
        engine.router = engine.router.with_ngrams(head)?;
        Ok(engine)
    }

    /// Folds an entry into the state. Applying it again changes nothing, and the order of concurrent
    /// entries does not matter: revisions may come before the addition that they revise, and an erasure
    /// beats everything.
    pub fn apply(&mut self, entry: Entry) {
        self.state.apply(entry);
    }

    /// Starts an operation; the first step's reply is [`Reply::Begin`].
    #[must_use]
    pub fn begin(&self, request: Request) -> Op {
        Op::new(request)
    }

    /// Says what `op` needs next. The state never changes here.
    ///
    /// A reply that does not answer the last step ends the operation with an `internal` error.
    pub fn step(&mut self, op: &mut Op, reply: Reply, at: &Ambient) -> Step {
        op.step(self, reply, at)
    }

    /// A hash of the state, equal for equal states, whatever the order in which entries came. It is not
    /// stable across versions.
    #[must_use]
    pub fn state_digest(&self) -> [u8; 32] {
        self.state.digest()
    }
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
