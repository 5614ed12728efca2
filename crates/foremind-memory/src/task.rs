//! What concerns a memory as a whole: export, import, verify, repair, rekey.

use foremind_types::{Ambient, Error, ErrorCode, Receipt};
use foremind_vault::{Draws, HeadToken, Key, Passphrase, WrapMethod};
use serde::Serialize;

use crate::destroy::Destroy;
use crate::erasure::ReceiptCheck;
use crate::export::Export;
use crate::import::Import;
use crate::rekey::Rekey;
use crate::replica::read_only;
use crate::survey::Survey;
use crate::{DataKey, KeySource, Memory};

/// A task of an open memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Task {
    /// Everything stored, as a file: sealed by a passphrase, or plain JSON Lines.
    Export {
        /// Absent: plain.
        passphrase: Option<Passphrase>,
    },
    /// Merges an export into this memory. Ids stay, what is here already is not doubled, what was erased here or
    /// there stays erased. A task that fails on the way has taken whole entries only; the next one goes on.
    Import {
        /// For a sealed export, and only for one.
        passphrase: Option<Passphrase>,
        /// Brings back what was erased here, under new ids.
        restore: bool,
    },
    /// Reads everything stored and says what is damaged, missing or of no use.
    Verify {
        /// An erasure whose receipt is looked at as well.
        receipt: Option<Box<Receipt>>,
    },
    /// Wraps the data key anew: the old key opens the memory no more.
    Rekey {
        /// Who keeps the new key.
        key: KeySource,
    },
    /// Ends the memory: destroys the wrapped data key, then deletes every value. Nothing can be done with it afterwards.
    Destroy {
        /// Under whose key the receipt is: the one that wraps the data key.
        key: KeySource,
    },
}

/// What a task needs next.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskStep {
    /// Read values; answer with [`TaskReply::Values`].
    NeedRead {
        /// At least one.
        keys: Vec<Key>,
    },
    /// List the names of all values; answer with [`TaskReply::Names`].
    NeedNames,
    /// Unwrap the data key; answer with [`TaskReply::DataKey`].
    NeedKey {
        /// How it is wrapped.
        method: WrapMethod,
        /// What the host wrapped.
        wrapped: Vec<u8>,
    },
    /// Wrap the data key; answer with [`TaskReply::Wrapped`].
    WrapKey {
        /// 32 bytes.
        data_key: DataKey,
    },
    /// Write a batch, as in [`crate::Step::Commit`].
    Commit {
        /// What must be the head.
        expected_head: Option<HeadToken>,
        /// Values to write.
        puts: Vec<(Key, Vec<u8>)>,
        /// Values to delete.
        deletes: Vec<Key>,
        /// Whether the batch must be durable before the answer.
        strict: bool,
    },
    /// Write a batch whatever stands in the store: a repair. Durable before the answer; answer with
    /// [`TaskReply::Committed`].
    Replace {
        /// Values to write.
        puts: Vec<(Key, Vec<u8>)>,
        /// Values to delete, some of which may be absent.
        deletes: Vec<Key>,
    },
    /// The next bytes of an export, to be put behind those before; answer with [`TaskReply::Continue`].
    Piece(Vec<u8>),
    /// The next bytes of what is imported; answer with [`TaskReply::Piece`].
    NeedPiece,
    /// The end.
    Done(Result<Report, Error>),
}

/// What the host answers to a [`TaskStep`].
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskReply {
    /// The first call.
    Begin,
    /// One for each key, in the order asked; `None`: absent.
    Values(Vec<Option<Vec<u8>>>),
    /// The names of all values, in any order; `None` where the store cannot list them.
    Names(Option<Vec<String>>),
    /// The unwrapped data key.
    DataKey(DataKey),
    /// The wrapped data key, 1 to 4096 bytes.
    Wrapped(Vec<u8>),
    /// The batch is written.
    Committed,
    /// The head was not the expected one; nothing was written.
    Conflict,
    /// The piece is taken.
    Continue,
    /// The next piece of what is imported, of any size; `None`: the end.
    Piece(Option<Vec<u8>>),
    /// The host gave up or its store failed.
    Failed(Error),
}

/// What a task did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Report {
    /// See [`Task::Export`].
    Export {
        /// Entries of the log.
        entries: u64,
        /// Bytes of the file.
        bytes: u64,
    },
    /// See [`Task::Import`].
    Import {
        /// Entries taken.
        entries: u64,
        /// Entries that were here already.
        known: u64,
        /// Records that the entries added.
        records: u64,
        /// Records that say what another one says, and were superseded by it.
        merged: u64,
        /// Records that were brought back.
        restored: u64,
    },
    /// See [`Task::Verify`].
    Verify(Verified),
    /// See [`crate::Survey`].
    Repair {
        /// What was found before.
        #[serde(flatten)]
        found: Verified,
        /// Whether anything was written.
        changed: bool,
        /// Entries kept.
        kept: u64,
        /// Entries that are lost.
        lost: u64,
    },
    /// See [`Task::Rekey`].
    Rekey {
        /// The commit that did it.
        generation: u64,
    },
    /// See [`Task::Destroy`].
    Destroy {
        /// [`Survey::of_receipt`] checks it.
        receipt: Box<Receipt>,
    },
}

/// What is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Of the head; 0 when it cannot be read.
    pub generation: u64,
    /// Entries read.
    pub entries: u64,
    /// Entries that the head names and that cannot be read.
    pub lost_entries: u64,
    /// Values read, damaged ones included.
    pub values: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values that are not what they should be.
    pub damaged: Vec<Damage>,
    /// Values that should be there.
    pub missing: Vec<String>,
    /// Values of this memory that nothing names: what a cut commit left; absent where the store cannot list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphans: Option<Vec<String>>,
    /// Names of values that are not this memory's; absent where the store cannot list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Vec<String>>,
    /// Whether nothing is damaged or missing.
    pub whole: bool,
    /// What the receipt is worth, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptCheck>,
}

/// A damaged value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

/// A task under way.
#[derive(Debug)]
pub struct Chore(Kind);

#[derive(Debug)]
enum Kind {
    Export(Box<Export>),
    Import(Box<Import>),
    Verify(Box<Survey>),
    Rekey(Box<Rekey>),
    Destroy(Box<Destroy>),
}

impl Memory {
    /// Starts a task; the first step's reply is [`TaskReply::Begin`]. Operations may go on beside it.
    #[must_use]
    pub fn begin_task(&self, task: Task) -> Chore {
        Chore(match task {
            Task::Export { passphrase } => Kind::Export(Box::new(Export::new(passphrase))),
            Task::Import {
                passphrase,
                restore,
            } => Kind::Import(Box::new(Import::new(passphrase, restore))),
            Task::Verify { receipt } => {
                Kind::Verify(Box::new(Survey::opened(self.vault(), receipt)))
            }
            Task::Rekey { key } => Kind::Rekey(Box::new(Rekey::new(key))),
            Task::Destroy { key } => Kind::Destroy(Box::new(Destroy::new(key))),
        })
    }

    /// Says what a task needs next. `reply` answers the step before; `at.entropy` is fresh for each call.
    pub fn step_task(&mut self, chore: &mut Chore, reply: TaskReply, at: &Ambient) -> TaskStep {
        if let TaskReply::Failed(error) = reply {
            return TaskStep::Done(Err(error));
        }
        if matches!(chore.0, Kind::Import(_) | Kind::Rekey(_) | Kind::Destroy(_))
            && self.vault().reads_stale()
        {
            return TaskStep::Done(Err(read_only()));
        }
        let mut draws = self.draws(at);
        let step = match &mut chore.0 {
            Kind::Export(task) => task.step(self, reply, &mut draws, at),
            Kind::Import(task) => task.step(self, reply, &mut draws, at),
            Kind::Verify(task) => {
                let mut step = task.step(reply, at);
                if let TaskStep::Done(Ok(Report::Verify(found))) = &mut step
                    && let Some(check) = &mut found.receipt
                {
                    check.remembers(self);
                }
                return step;
            }
            Kind::Rekey(task) => task.step(self, reply, &mut draws, at),
            Kind::Destroy(task) => task.step(self, reply, &mut draws, at),
        };
        step.unwrap_or_else(|error| TaskStep::Done(Err(error)))
    }
}

/// The refusal of a reply that does not fit.
pub(crate) fn out_of_turn() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the reply does not answer the step before it",
    )
}

/// What a draw of a task is made from, outside of a memory.
pub(crate) fn draws_of(at: &Ambient, step: u64) -> Draws {
    Draws::new(&at.entropy, 0, step)
}
