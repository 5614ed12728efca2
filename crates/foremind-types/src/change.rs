use crate::{Embedding, Name, Record, RecordId, Route, Scope, Status, WriterId};

/// The order of revisions of one record: Lamport clock first, then writer, then position, so that every
/// reader orders concurrent entries alike, whatever order they arrive in.
///
/// Source: L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", 1978.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// One more than any stamp the writer had seen.
    pub lamport: u64,
    /// The writer.
    pub writer: WriterId,
    /// The writer's entry number.
    pub counter: u64,
    /// Position of the change in its entry.
    pub position: u32,
}

/// What one commit adds. Immutable once written; named by `(writer, counter)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The writer.
    pub writer: WriterId,
    /// Counts the writer's entries from 0.
    pub counter: u64,
    /// See [`Stamp`].
    pub lamport: u64,
    /// The writer's clock, Unix milliseconds; informative only.
    pub at_ms: i64,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

impl Entry {
    /// The stamp of the change at `position`.
    #[must_use]
    pub fn stamp(&self, position: u32) -> Stamp {
        Stamp {
            lamport: self.lamport,
            writer: self.writer,
            counter: self.counter,
            position,
        }
    }
}

/// One change of state. The state is the fold of all changes; its result does not depend on the order of
/// concurrent entries: additions are by id, revisions last-writer-wins by [`Stamp`] for each facet, and an
/// erasure beats everything.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A new record.
    Add(Box<Record>),
    /// A facet of a record takes a new value.
    Revise {
        /// The record; its addition may arrive later.
        id: RecordId,
        /// The facet and its value.
        revision: Revision,
    },
    /// The vector of a record's text: derived, can be made again.
    Embed {
        /// The record.
        id: RecordId,
        /// The vector.
        embedding: Embedding,
    },
    /// A turn was ingested: its repetition returns the same records.
    Turn {
        /// Scope of the turn.
        scope: Scope,
        /// The conversation.
        thread: Name,
        /// The turn in it.
        turn: Name,
        /// What it became.
        records: Vec<RecordId>,
    },
    /// The record becomes a tombstone.
    Erase {
        /// The record.
        id: RecordId,
        /// When, Unix milliseconds.
        at_ms: i64,
    },
    /// What only the memory's own key can check, for the vault; it changes no record.
    Keyed {
        /// Which, by the vault's count.
        kind: u8,
        /// Hashes under the memory's key.
        bytes: Vec<u8>,
    },
}

/// A facet of a record that can change after it was told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Revision {
    /// Status and the end of validity.
    Status {
        /// The new status; never `Erased`, which is a change of its own.
        status: Status,
        /// When its content stopped to hold, if it did.
        valid_to_ms: Option<i64>,
    },
    /// A new verdict: by the semantic stage, a judge or the owner.
    Route(Box<Route>),
    /// The owner confirmed it.
    Confirmed {
        /// Unix milliseconds.
        at_ms: i64,
    },
    /// The same fact was told again.
    Told {
        /// Unix milliseconds.
        at_ms: i64,
        /// Total number of tellings.
        proof_count: u32,
    },
}
