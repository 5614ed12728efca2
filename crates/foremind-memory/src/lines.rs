//! The form of an export: JSON Lines, version 1. docs/FORMAT.md describes it.

use foremind_types::vocabulary;
use foremind_types::{
    Change, Embedding, Entry, HeadId, MemoryId, ModelId, Name, Record, RecordId, Revision, Route,
    Scope, Status, WriterId,
};
use serde::{Deserialize, Serialize};

/// The version of this form.
pub(crate) const VERSION: u32 = 1;
/// Longest line that is read, in bytes.
pub(crate) const LINE_BYTES: usize = 16 * 1024 * 1024;

/// One line. Written with a tag, read from [`LineFields`]: serde's reading of a tagged enum keeps a copy of everything in
/// a form of its own, and compiles to many times as much.
#[derive(Debug, Serialize, Deserialize)]
#[serde(
    try_from = "LineFields",
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Line {
    /// The first.
    ForemindExport {
        version: u32,
        memory_id: String,
        at_ms: i64,
    },
    /// One commit of the log.
    Entry {
        writer: String,
        counter: u64,
        lamport: u64,
        at_ms: i64,
        changes: Vec<ChangeForm>,
    },
    /// The last: what stands before it, its own line left out.
    End { entries: u64, blake3: String },
}

/// Read from [`ChangeFields`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(
    try_from = "ChangeFields",
    tag = "change",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum ChangeForm {
    Add {
        record: Box<Record>,
    },
    Status {
        id: RecordId,
        status: Status,
        valid_to_ms: Option<i64>,
    },
    Route {
        id: RecordId,
        route: Box<Route>,
    },
    Confirmed {
        id: RecordId,
        at_ms: i64,
    },
    Told {
        id: RecordId,
        at_ms: i64,
        proof_count: u32,
    },
    Embed {
        id: RecordId,
        model_id: String,
        head_id: String,
        scale: f32,
        /// The bytes of the int8 vector, two hexadecimal digits each.
        vector: String,
        features: Vec<f32>,
    },
    Turn {
        scope: Scope,
        thread: Name,
        turn: Name,
        records: Vec<RecordId>,
    },
    Erase {
        id: RecordId,
        at_ms: i64,
    },
    Keyed {
        keyed: u8,
        /// Two hexadecimal digits each.
        vector: String,
    },
}

/// The fields of all lines.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineFields {
    kind: LineKind,
    version: Option<u32>,
    memory_id: Option<String>,
    writer: Option<String>,
    counter: Option<u64>,
    lamport: Option<u64>,
    at_ms: Option<i64>,
    changes: Option<Vec<ChangeForm>>,
    entries: Option<u64>,
    blake3: Option<String>,
}

vocabulary! {
    /// What a line or a change is.
    enum LineKind {
        ForemindExport = "foremind-export",
        Entry = "entry",
        End = "end",
    }
}

/// The fields of all changes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangeFields {
    change: ChangeKind,
    id: Option<RecordId>,
    record: Option<Box<Record>>,
    status: Option<Status>,
    valid_to_ms: Option<i64>,
    route: Option<Box<Route>>,
    at_ms: Option<i64>,
    proof_count: Option<u32>,
    model_id: Option<String>,
    head_id: Option<String>,
    scale: Option<f32>,
    vector: Option<String>,
    features: Option<Vec<f32>>,
    scope: Option<Scope>,
    thread: Option<Name>,
    turn: Option<Name>,
    records: Option<Vec<RecordId>>,
    keyed: Option<u8>,
}

vocabulary! {
    /// What a line or a change is.
    enum ChangeKind {
        Add = "add",
        Status = "status",
        Route = "route",
        Confirmed = "confirmed",
        Told = "told",
        Embed = "embed",
        Turn = "turn",
        Erase = "erase",
        Keyed = "keyed",
    }
}

const MISSING: &str = "a field is missing";

impl TryFrom<LineFields> for Line {
    type Error = &'static str;

    fn try_from(fields: LineFields) -> Result<Self, Self::Error> {
        fields.line().ok_or(MISSING)
    }
}

impl LineFields {
    fn line(self) -> Option<Line> {
        Some(match self.kind {
            LineKind::ForemindExport => Line::ForemindExport {
                version: self.version?,
                memory_id: self.memory_id?,
                at_ms: self.at_ms?,
            },
            LineKind::Entry => Line::Entry {
                writer: self.writer?,
                counter: self.counter?,
                lamport: self.lamport?,
                at_ms: self.at_ms?,
                changes: self.changes?,
            },
            LineKind::End => Line::End {
                entries: self.entries?,
                blake3: self.blake3?,
            },
        })
    }
}

impl TryFrom<ChangeFields> for ChangeForm {
    type Error = &'static str;

    fn try_from(fields: ChangeFields) -> Result<Self, Self::Error> {
        fields.form().ok_or(MISSING)
    }
}

impl ChangeFields {
    fn form(self) -> Option<ChangeForm> {
        Some(match self.change {
            ChangeKind::Add => ChangeForm::Add {
                record: self.record?,
            },
            ChangeKind::Status => ChangeForm::Status {
                id: self.id?,
                status: self.status?,
                valid_to_ms: self.valid_to_ms,
            },
            ChangeKind::Route => ChangeForm::Route {
                id: self.id?,
                route: self.route?,
            },
            ChangeKind::Confirmed => ChangeForm::Confirmed {
                id: self.id?,
                at_ms: self.at_ms?,
            },
            ChangeKind::Told => ChangeForm::Told {
                id: self.id?,
                at_ms: self.at_ms?,
                proof_count: self.proof_count?,
            },
            ChangeKind::Embed => ChangeForm::Embed {
                id: self.id?,
                model_id: self.model_id?,
                head_id: self.head_id?,
                scale: self.scale?,
                vector: self.vector?,
                features: self.features?,
            },
            ChangeKind::Turn => ChangeForm::Turn {
                scope: self.scope?,
                thread: self.thread?,
                turn: self.turn?,
                records: self.records?,
            },
            ChangeKind::Erase => ChangeForm::Erase {
                id: self.id?,
                at_ms: self.at_ms?,
            },
            ChangeKind::Keyed => ChangeForm::Keyed {
                keyed: self.keyed?,
                vector: self.vector?,
            },
        })
    }
}

impl Line {
    pub(crate) fn begin(memory_id: MemoryId, at_ms: i64) -> Self {
        Self::ForemindExport {
            version: VERSION,
            memory_id: memory_id.to_string(),
            at_ms,
        }
    }

    /// `None` for a change that this version has no form for.
    pub(crate) fn entry(entry: &Entry) -> Option<Self> {
        Some(Self::Entry {
            writer: format!("{:016x}", entry.writer.0),
            counter: entry.counter,
            lamport: entry.lamport,
            at_ms: entry.at_ms,
            changes: entry.changes.iter().map(form).collect::<Option<_>>()?,
        })
    }
}

fn form(change: &Change) -> Option<ChangeForm> {
    Some(match change {
        Change::Add(record) => ChangeForm::Add {
            record: record.clone(),
        },
        Change::Revise { id, revision } => {
            let id = *id;
            match revision {
                Revision::Status {
                    status,
                    valid_to_ms,
                } => ChangeForm::Status {
                    id,
                    status: *status,
                    valid_to_ms: *valid_to_ms,
                },
                Revision::Route(route) => ChangeForm::Route {
                    id,
                    route: route.clone(),
                },
                Revision::Confirmed { at_ms } => ChangeForm::Confirmed { id, at_ms: *at_ms },
                Revision::Told { at_ms, proof_count } => ChangeForm::Told {
                    id,
                    at_ms: *at_ms,
                    proof_count: *proof_count,
                },
                _ => return None,
            }
        }
        Change::Embed { id, embedding } => ChangeForm::Embed {
            id: *id,
            model_id: embedding.model_id.0.clone(),
            head_id: embedding.head_id.0.clone(),
            scale: embedding.scale,
            vector: hex(embedding.vector.iter().map(|one| one.cast_unsigned())),
            features: embedding.features.clone(),
        },
        Change::Turn {
            scope,
            thread,
            turn,
            records,
        } => ChangeForm::Turn {
            scope: scope.clone(),
            thread: thread.clone(),
            turn: turn.clone(),
            records: records.clone(),
        },
        Change::Erase { id, at_ms } => ChangeForm::Erase {
            id: *id,
            at_ms: *at_ms,
        },
        Change::Keyed { kind, bytes } => ChangeForm::Keyed {
            keyed: *kind,
            vector: hex(bytes.iter().copied()),
        },
        _ => return None,
    })
}

/// The entry of a line; `None` when a part is out of its range.
pub(crate) fn entry(
    writer: &str,
    counter: u64,
    lamport: u64,
    at_ms: i64,
    changes: Vec<ChangeForm>,
) -> Option<Entry> {
    if writer.len() != 16 || lamport == u64::MAX || counter == u64::MAX {
        return None;
    }
    Some(Entry {
        writer: WriterId(u64::from_str_radix(writer, 16).ok()?),
        counter,
        lamport,
        at_ms,
        changes: changes.into_iter().map(change).collect::<Option<_>>()?,
    })
}

fn change(form: ChangeForm) -> Option<Change> {
    let revise = |id, revision| Change::Revise { id, revision };
    Some(match form {
        ChangeForm::Add { record } => Change::Add(record),
        ChangeForm::Status {
            id,
            status,
            valid_to_ms,
        } => revise(
            id,
            Revision::Status {
                status,
                valid_to_ms,
            },
        ),
        ChangeForm::Route { id, route } => revise(id, Revision::Route(route)),
        ChangeForm::Confirmed { id, at_ms } => revise(id, Revision::Confirmed { at_ms }),
        ChangeForm::Told {
            id,
            at_ms,
            proof_count,
        } => revise(id, Revision::Told { at_ms, proof_count }),
        ChangeForm::Embed {
            id,
            model_id,
            head_id,
            scale,
            vector,
            features,
        } => {
            let bytes = unhex(&vector)?;
            let vector = bytes.into_iter().map(u8::cast_signed).collect();
            let embedding = Embedding {
                model_id: ModelId(model_id),
                head_id: HeadId(head_id),
                vector,
                scale,
                features,
            };
            crate::memory::is_sound(&embedding).then_some(Change::Embed { id, embedding })?
        }
        ChangeForm::Turn {
            scope,
            thread,
            turn,
            records,
        } => Change::Turn {
            scope,
            thread,
            turn,
            records,
        },
        ChangeForm::Erase { id, at_ms } => Change::Erase { id, at_ms },
        ChangeForm::Keyed { keyed, vector } => Change::Keyed {
            kind: keyed,
            bytes: unhex(&vector)?,
        },
    })
}

pub(crate) fn hex(bytes: impl Iterator<Item = u8>) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| u8::try_from(value(&pair[0])? * 16 + value(&pair[1])?).ok())
        .collect()
}
