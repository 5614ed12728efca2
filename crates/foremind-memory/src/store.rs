//! What stores can do, and how a commit is written where one cannot write it as a whole.

use foremind_types::{Error, ErrorCode};
use foremind_vault::{HeadToken, Key};

/// What a store can do. A binding declares it; the way of writing follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "five independent abilities, each of which some store lacks"
)]
pub struct Capabilities {
    /// A batch is written as a whole or not at all, its head compared with what is expected in the same step.
    pub atomic_batch: bool,
    /// One value is compared and swapped in one step.
    pub cas: bool,
    /// A number is incremented in one step, and the new one comes back.
    pub ticket: bool,
    /// What was written is read by everybody at once.
    pub read_after_write: bool,
    /// The names of all values can be listed.
    pub list: bool,
}

/// How a commit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// As one batch.
    Batch,
    /// The values first, the head last by compare-and-swap, then what is deleted. A cut leaves values that nothing
    /// names.
    Swap,
    /// As [`Strategy::Single`], but who takes the first ticket of a generation writes it, and the others wait.
    Ticket,
    /// One writer by contract: the values, a copy of the head under a name of its own, the head, and a look whether it
    /// is still there. A commit that finds another writer's head where it expected its own is refused with a `conflict`
    /// error before it has written anything. A race that is lost unseen is a `conflict` at the next read; nothing of
    /// either is lost, and who opens the memory next merges both.
    Single,
}

impl Capabilities {
    /// Everything: `IndexedDB`, a file system with a lock, Durable Objects.
    pub const FULL: Self = Self {
        atomic_batch: true,
        cas: true,
        ticket: false,
        read_after_write: true,
        list: true,
    };
    /// `wasi:keyvalue` draft 2.
    pub const SWAP: Self = Self {
        atomic_batch: false,
        ..Self::FULL
    };
    /// `wasi:keyvalue` draft, which has `increment`.
    pub const TICKET: Self = Self {
        cas: false,
        ticket: true,
        ..Self::SWAP
    };
    /// `fermyon:spin/key-value@2.0.0`.
    pub const SINGLE: Self = Self {
        cas: false,
        ..Self::SWAP
    };

    /// How a commit is written to such a store.
    ///
    /// # Errors
    /// `unsupported` where a writer could lose what another wrote: without compare-and-swap a store must be listed,
    /// and one that reads late cannot be written to. It can be read: [`crate::OpenOptions::stale_reads`].
    pub fn strategy(self) -> Result<Strategy, Error> {
        if self.read_after_write {
            if self.atomic_batch && self.cas {
                return Ok(Strategy::Batch);
            } else if self.cas {
                return Ok(Strategy::Swap);
            } else if self.list {
                return Ok(if self.ticket {
                    Strategy::Ticket
                } else {
                    Strategy::Single
                });
            }
        }
        Err(Error::new(
            ErrorCode::Unsupported,
            "this store can only be read: it neither compares and swaps, nor lists and reads what was just written",
        ))
    }
}

impl Strategy {
    /// Whether the memory keeps journals: [`crate::OpenOptions::journals`].
    #[must_use]
    pub fn needs_journals(self) -> bool {
        matches!(self, Self::Ticket | Self::Single)
    }
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Written.
    Committed,
    /// The head was another one. Where a store has compare-and-swap nothing was written; elsewhere nothing that the
    /// head names.
    Conflict,
}

/// One thing that a store is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreStep {
    /// Read one value; answer with [`StoreReply::Value`].
    Get(Key),
    /// Write values, in any order; answer with [`StoreReply::Done`] once all are durable.
    Set(Vec<(Key, Vec<u8>)>),
    /// Write `value` if what is stored begins with `expected`, or if nothing is stored; answer with
    /// [`StoreReply::Swapped`].
    Swap {
        /// Which value.
        key: Key,
        /// `None`: there must be none.
        expected: Option<HeadToken>,
        /// The new value.
        value: Vec<u8>,
    },
    /// Increment the number of this name by 1, from 0; answer with [`StoreReply::Ticket`]. Numbers live beside the
    /// values.
    Ticket(String),
    /// Forget the number of this name, which nobody needs any more; answer with [`StoreReply::Done`].
    DropTicket(String),
    /// Delete values, some of which may be absent; answer with [`StoreReply::Done`].
    Delete(Vec<Key>),
    /// The end.
    End(Result<Written, Error>),
}

/// What the store answers.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreReply {
    /// The first call.
    Begin,
    /// The value, if there is one.
    Value(Option<Vec<u8>>),
    /// It is done.
    Done,
    /// Whether it was swapped.
    Swapped(bool),
    /// The number after the increment.
    Ticket(u64),
    /// The store failed.
    Failed(Error),
}

/// Claims of one generation after which it is taken to be abandoned.
const CLAIMS: u64 = 8;

/// A commit on its way to a store that cannot write it as a whole: for bindings whose store has single values only.
#[derive(Debug)]
pub struct Commit {
    strategy: Strategy,
    expected: Option<HeadToken>,
    head: Vec<u8>,
    slot: Option<Vec<u8>>,
    log: Vec<(Key, Vec<u8>)>,
    /// Of a memory that is there: `spare` and `key`, once the head is written.
    late: Vec<(Key, Vec<u8>)>,
    deletes: Vec<Key>,
    strict: bool,
    next: Next,
    failure: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Start,
    Claim,
    Compare,
    Slot,
    Log,
    Head,
    Verify,
    VerifySlot,
    Late,
    Delete,
    DropTicket,
    Unwrite,
    Over,
}

impl Commit {
    /// Of the parts of [`crate::Step::Commit`].
    #[must_use]
    pub fn new(
        strategy: Strategy,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        strict: bool,
    ) -> Self {
        let (mut head, mut slot) = (Vec::new(), None);
        let (mut log, mut late) = (Vec::new(), Vec::new());
        for (key, value) in puts {
            let one = (key.clone(), value.clone());
            if *key == Key::head() {
                head = one.1;
            } else if *key == Key::slot() && expected_head.is_none() {
                slot = Some(one.1);
            } else if expected_head.is_some() && (*key == Key::slot() || *key == Key::spare()) {
                late.push(one);
            } else {
                log.push(one);
            }
        }
        Self {
            strategy,
            expected: expected_head,
            head,
            slot,
            log,
            late,
            deletes: deletes.to_vec(),
            strict,
            next: Next::Start,
            failure: None,
        }
    }

    /// Says what the store is asked for next; `reply` answers the step before.
    ///
    /// Ends with an error only when it is not sure that the commit is written: then it is written as a whole or not at
    /// all, but for values that nothing names.
    pub fn step(&mut self, reply: StoreReply) -> StoreStep {
        let done = self.next;
        if let StoreReply::Failed(error) = reply {
            return self.failed(done, error);
        }
        match (done, reply) {
            (Next::Start, StoreReply::Begin) => {
                if self.strategy == Strategy::Ticket {
                    self.next = Next::Claim;
                    return StoreStep::Ticket(self.ticket());
                }
                self.compare()
            }
            (Next::Claim, StoreReply::Ticket(number)) => {
                // Who was first may have been cut; what both write then is merged.
                if number > 1 && number <= CLAIMS {
                    return self.over(Ok(Written::Conflict));
                }
                self.compare()
            }
            (Next::Compare, StoreReply::Value(value)) => {
                if !is_expected(value.as_deref(), self.expected) {
                    // Somebody writes to the very memory that this writer has open and was promised to be alone with.
                    if self.strategy == Strategy::Single && self.expected.is_some() {
                        return self.over(Err(Error::new(
                            ErrorCode::Conflict,
                            "another writer is at work in a store that takes one; nothing was written, end one of them and try again",
                        )));
                    }
                    return self.over(Ok(Written::Conflict));
                }
                match self.slot.clone() {
                    None => self.log(),
                    Some(value) => {
                        self.next = Next::Slot;
                        // Of two that make the memory, the second must not replace the key of the first.
                        if self.strategy == Strategy::Swap {
                            let (key, expected) = (Key::slot(), None);
                            return StoreStep::Swap {
                                key,
                                expected,
                                value,
                            };
                        }
                        StoreStep::Set(vec![(Key::slot(), value)])
                    }
                }
            }
            (Next::Slot, StoreReply::Swapped(true) | StoreReply::Done) => self.log(),
            (Next::Slot, StoreReply::Swapped(false)) => self.over(Ok(Written::Conflict)),
            (Next::Log, StoreReply::Done) => self.write_head(),
            (Next::Head, StoreReply::Swapped(true)) => self.late(),
            (Next::Head, StoreReply::Swapped(false)) => {
                self.next = Next::Unwrite;
                let names = self.log.iter().map(|(key, _)| key.clone());
                StoreStep::Delete(names.filter(|key| Key::is_of_log(key.as_str())).collect())
            }
            (Next::Head, StoreReply::Done) => {
                self.next = Next::Verify;
                StoreStep::Get(Key::head())
            }
            (Next::Verify, StoreReply::Value(value)) => {
                if value.as_deref() == Some(self.head.as_slice()) {
                    // Somebody else may have made the memory meanwhile, and put another key in place of this one.
                    if self.slot.is_some() && self.strategy != Strategy::Swap {
                        self.next = Next::VerifySlot;
                        return StoreStep::Get(Key::slot());
                    }
                    return self.late();
                }
                // Sure that it is not written only where the store compares by itself.
                let lost = Error::new(
                    ErrorCode::Conflict,
                    "another writer replaced the head; open the memory again: both journals are kept and merged",
                );
                let error = match self.failure.take() {
                    Some(error) if self.strategy == Strategy::Swap => error,
                    _ => lost,
                };
                self.over(Err(error))
            }
            (Next::VerifySlot, StoreReply::Value(value)) => {
                if value == self.slot {
                    return self.late();
                }
                self.over(Err(Error::new(
                    ErrorCode::Conflict,
                    "another writer made a memory here at the same time; nothing was stored in either, open it again",
                )))
            }
            (Next::Late, StoreReply::Done) => self.delete(),
            (Next::Delete, StoreReply::Done) => self.drop_ticket(),
            (Next::DropTicket, StoreReply::Done) => self.over(Ok(Written::Committed)),
            (Next::Unwrite, StoreReply::Done) => self.over(Ok(Written::Conflict)),
            _ => self.over(Err(crate::task::out_of_turn())),
        }
    }

    fn failed(&mut self, done: Next, error: Error) -> StoreStep {
        match done {
            // A host that lost the answer on its way says that it failed, and may have written all the same.
            Next::Head => {
                self.failure = Some(error);
                self.next = Next::Verify;
                StoreStep::Get(Key::head())
            }
            // What fails here costs room only.
            Next::Unwrite => self.over(Ok(Written::Conflict)),
            // Old values of a fold are deleted by the next commit. What was to be erased must not pass for gone.
            Next::Delete if !self.strict => self.over(Ok(Written::Committed)),
            Next::DropTicket => self.over(Ok(Written::Committed)),
            _ => {
                let error = self.failure.take().unwrap_or(error);
                self.over(Err(error))
            }
        }
    }

    fn over(&mut self, end: Result<Written, Error>) -> StoreStep {
        self.next = Next::Over;
        StoreStep::End(end)
    }

    fn compare(&mut self) -> StoreStep {
        self.next = Next::Compare;
        StoreStep::Get(Key::head())
    }

    fn log(&mut self) -> StoreStep {
        if self.log.is_empty() {
            return self.write_head();
        }
        self.next = Next::Log;
        StoreStep::Set(self.log.clone())
    }

    fn write_head(&mut self) -> StoreStep {
        self.next = Next::Head;
        if self.strategy == Strategy::Swap {
            return StoreStep::Swap {
                key: Key::head(),
                expected: self.expected,
                value: self.head.clone(),
            };
        }
        StoreStep::Set(vec![(Key::head(), self.head.clone())])
    }

    fn late(&mut self) -> StoreStep {
        if self.late.is_empty() {
            return self.delete();
        }
        self.next = Next::Late;
        StoreStep::Set(core::mem::take(&mut self.late))
    }

    fn delete(&mut self) -> StoreStep {
        if self.deletes.is_empty() {
            return self.drop_ticket();
        }
        self.next = Next::Delete;
        StoreStep::Delete(core::mem::take(&mut self.deletes))
    }

    /// Who takes a ticket of this generation from now on finds the head moved on, whatever its number.
    fn drop_ticket(&mut self) -> StoreStep {
        if self.strategy != Strategy::Ticket {
            return self.over(Ok(Written::Committed));
        }
        self.next = Next::DropTicket;
        StoreStep::DropTicket(self.ticket())
    }

    fn ticket(&self) -> String {
        let generation = self.expected.map_or(0, |token| token.generation() + 1);
        format!("ticket-{generation}")
    }
}

/// Whether a stored head is the one that a commit was planned on.
fn is_expected(value: Option<&[u8]>, expected: Option<HeadToken>) -> bool {
    match (value, expected) {
        (None, None) => true,
        // One too short for a token differs from every expected head, and from its absence.
        (Some(value), Some(expected)) => HeadToken::of(value) == Some(expected),
        _ => false,
    }
}
