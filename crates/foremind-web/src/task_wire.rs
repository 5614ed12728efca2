//! Tasks as they cross: steps and replies in the form of `wire`.

use foremind_memory::{Report, Task, TaskReply, TaskStep};
use foremind_types::{Error, Receipt};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use zeroize::Zeroize;

use crate::wire::{Wrap, data_key, names, passphrase_of, source, stored, token, values};

/// A task with its arguments.
#[derive(Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum TaskIn {
    Export {
        #[serde(default)]
        passphrase: Option<String>,
    },
    Import {
        #[serde(default)]
        passphrase: Option<String>,
        #[serde(default)]
        restore: bool,
    },
    Verify {
        #[serde(default)]
        receipt: Option<Box<Receipt>>,
    },
    Rekey {
        wrap: Wrap,
        #[serde(default)]
        key: Option<ByteBuf>,
        #[serde(default)]
        passphrase: Option<String>,
    },
    Destroy {
        wrap: Wrap,
        #[serde(default)]
        key: Option<ByteBuf>,
        #[serde(default)]
        passphrase: Option<String>,
    },
}

impl TaskIn {
    pub(crate) fn into_task(self) -> Result<Task, Error> {
        Ok(match self {
            Self::Export { passphrase } => Task::Export {
                passphrase: passphrase.map(passphrase_of).transpose()?,
            },
            Self::Import {
                passphrase,
                restore,
            } => Task::Import {
                passphrase: passphrase.map(passphrase_of).transpose()?,
                restore,
            },
            Self::Verify { receipt } => Task::Verify { receipt },
            Self::Rekey {
                wrap,
                key,
                passphrase,
            } => Task::Rekey {
                key: source(wrap, key, passphrase)?,
            },
            Self::Destroy {
                wrap,
                key,
                passphrase,
            } => Task::Destroy {
                key: source(wrap, key, passphrase)?,
            },
        })
    }
}

/// What a task needs.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum TaskStepOut {
    Read {
        keys: Vec<String>,
    },
    Names {},
    NeedKey {
        wrapped: ByteBuf,
    },
    WrapKey {
        data_key: ByteBuf,
    },
    Commit {
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_head: Option<ByteBuf>,
        puts: Vec<(String, ByteBuf)>,
        deletes: Vec<String>,
        strict: bool,
    },
    Replace {
        puts: Vec<(String, ByteBuf)>,
        deletes: Vec<String>,
    },
    Piece {
        bytes: ByteBuf,
    },
    NeedPiece {},
    Done {
        report: Report,
    },
    Failed {
        error: Error,
    },
}

impl TaskStepOut {
    pub(crate) fn of(step: TaskStep) -> Self {
        match step {
            TaskStep::NeedRead { keys } => Self::Read { keys: names(&keys) },
            TaskStep::NeedNames => Self::Names {},
            TaskStep::NeedKey { wrapped, .. } => Self::NeedKey {
                wrapped: ByteBuf::from(wrapped),
            },
            TaskStep::WrapKey { data_key } => Self::WrapKey {
                data_key: ByteBuf::from(data_key.as_bytes().to_vec()),
            },
            TaskStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => Self::Commit {
                expected_head: token(expected_head),
                puts: values(puts),
                deletes: names(&deletes),
                strict,
            },
            TaskStep::Replace { puts, deletes } => Self::Replace {
                puts: values(puts),
                deletes: names(&deletes),
            },
            TaskStep::Piece(bytes) => Self::Piece {
                bytes: ByteBuf::from(bytes),
            },
            TaskStep::NeedPiece => Self::NeedPiece {},
            TaskStep::Done(Ok(report)) => Self::Done { report },
            TaskStep::Done(Err(error)) => Self::Failed { error },
            _ => Self::Failed {
                error: Error::new(
                    foremind_types::ErrorCode::Internal,
                    "a step that this build cannot send",
                ),
            },
        }
    }
}

impl Drop for TaskStepOut {
    fn drop(&mut self) {
        if let Self::WrapKey { data_key } = self {
            data_key.zeroize();
        }
    }
}

/// What the driver answers to a task.
#[derive(Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum TaskReplyIn {
    Begin {},
    Values {
        values: Vec<Option<ByteBuf>>,
    },
    Names {
        #[serde(default)]
        names: Option<Vec<String>>,
    },
    Key {
        key: ByteBuf,
    },
    Wrapped {
        wrapped: ByteBuf,
    },
    Committed {},
    Conflict {},
    Continue {},
    Piece {
        #[serde(default)]
        bytes: Option<ByteBuf>,
    },
    Failed {
        error: Error,
    },
}

impl TaskReplyIn {
    pub(crate) fn into_reply(self) -> Result<TaskReply, Error> {
        Ok(match self {
            Self::Begin {} => TaskReply::Begin,
            Self::Values { values } => TaskReply::Values(stored(values)),
            Self::Names { names } => TaskReply::Names(names),
            Self::Key { key } => TaskReply::DataKey(data_key(key)?),
            Self::Wrapped { wrapped } => TaskReply::Wrapped(wrapped.into_vec()),
            Self::Committed {} => TaskReply::Committed,
            Self::Conflict {} => TaskReply::Conflict,
            Self::Continue {} => TaskReply::Continue,
            Self::Piece { bytes } => TaskReply::Piece(bytes.map(ByteBuf::into_vec)),
            Self::Failed { error } => TaskReply::Failed(error),
        })
    }
}
