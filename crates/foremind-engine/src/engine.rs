use std::sync::OnceLock;

use foremind_guard::Guard;
use foremind_router::{HeadError, NgramHead, Router};
use foremind_types::{Ambient, Entry, Error, ErrorCode, HeadId, Status};

use crate::op::Op;
use crate::state::State;
use crate::{Reply, Request, Step};

/// One memory: its state, and the rules that change it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    pub(crate) guard: Guard,
    pub(crate) router: Router,
    /// The head on the encoder that judges what words leave open.
    pub(crate) head: Option<HeadId>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// An empty memory. The router's lexicons are read once for all memories of the process, when they are first needed.
    #[must_use]
    pub fn new() -> Self {
        static ROUTER: OnceLock<Router> = OnceLock::new();
        Self {
            state: State::default(),
            guard: Guard::new(),
            router: ROUTER.get_or_init(Router::new).clone(),
            head: None,
        }
    }

    /// The same memory with a guard of the host's.
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// What would become of a text that is remembered: its statements, redacted, and whether they are current or quarantined.
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn judged(&self, text: &str, at: &Ambient) -> Result<Vec<(String, Status)>, Error> {
        let statements = crate::statements::whole(&self.guard, &self.router, text, at)?;
        let judged = statements
            .into_iter()
            .map(|statement| (statement.text.into_string(), statement.status));
        Ok(judged.collect())
    }

    /// Gives the router an n-gram head for what words alone leave open, without an encoder.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] when the router has no calibration for it.
    pub fn use_ngrams(&mut self, head: NgramHead) -> Result<(), HeadError> {
        self.router = self.router.clone().with_ngrams(head)?;
        Ok(())
    }

    /// Has the encoder asked for `head` as well, which judges English statements that words alone leave open or in doubt. What is
    /// written while there is no encoder is judged when it is encoded. `None`: the encoder has no such head.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] when the router has no calibration for it; nothing is changed then.
    pub fn use_head(&mut self, head: Option<HeadId>) -> Result<(), HeadError> {
        self.router = self.router.clone().with_encoder_head(head.as_ref())?;
        self.head = head;
        Ok(())
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
