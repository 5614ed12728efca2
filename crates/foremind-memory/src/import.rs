//! Merging an export into a memory.

use std::collections::BTreeSet;

use foremind_types::order::map_of;
use foremind_types::small::SmallMap;

use foremind_engine::Engine;
use foremind_types::{
    Ambient, Change, Entry, Error, ErrorCode, Record, RecordId, Revision, Status, WriterId,
};
use foremind_vault::{Batch, Draws, ParcelError, ParcelReader, Passphrase};
use zeroize::Zeroizing;

use crate::Memory;
use crate::catch_up::{CatchUp, Progress};
use crate::json;
use crate::lines::{self, LINE_BYTES, Line, VERSION};
use crate::memory::{Planned, Prepared};
use crate::task::{Report, TaskReply, TaskStep, out_of_turn};

/// How often other writers may be faster.
const REPLANS: u32 = 32;
/// A batch is committed once its lines have so many bytes.
const BATCH_BYTES: usize = 512 * 1024;

/// Takes entries as they are, under their own names, so that taking them twice changes nothing and the fold of both
/// logs is what it would be if all had been written in one memory.
#[derive(Debug)]
pub(crate) struct Import {
    source: Source,
    /// Entries that are read and not yet committed, with the bytes of their lines.
    pending: Vec<Entry>,
    pending_bytes: usize,
    /// Of each writer, how far the file goes.
    counters: SmallMap<WriterId, u64>,
    added: BTreeSet<RecordId>,
    /// What the guard holds back.
    held_back: BTreeSet<RecordId>,
    /// All entries of the file folded by themselves, to restore what is erased here.
    aside: Option<Box<Engine>>,
    replans: u32,
    ended: bool,
    /// Merging and restoring, after everything else.
    last: bool,
    entries: u64,
    known: u64,
    records: u64,
    merged: u64,
    restored: u64,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Start,
    Feeding,
    CatchingUp(Box<CatchUp>),
    Reading(Box<Planned>),
    Committing(Box<Batch>),
    Finished,
}

impl Import {
    pub(crate) fn new(passphrase: Option<Passphrase>, restore: bool) -> Self {
        Self {
            source: Source::new(passphrase),
            pending: Vec::new(),
            pending_bytes: 0,
            counters: SmallMap::new(),
            added: BTreeSet::new(),
            held_back: BTreeSet::new(),
            aside: restore.then(Box::default),
            replans: 0,
            ended: false,
            last: false,
            entries: 0,
            known: 0,
            records: 0,
            merged: 0,
            restored: 0,
            phase: Phase::Start,
        }
    }

    pub(crate) fn step(
        &mut self,
        memory: &mut Memory,
        reply: TaskReply,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        match (phase, reply) {
            (Phase::Start, TaskReply::Begin) => Ok(self.feed_me()),
            (Phase::Feeding, TaskReply::Piece(piece)) => {
                match piece {
                    Some(piece) => self.take(memory, &piece)?,
                    None => self.end(memory)?,
                }
                if self.pending_bytes < BATCH_BYTES && !self.ended {
                    return Ok(self.feed_me());
                }
                Ok(self.catch_up(memory))
            }
            (Phase::CatchingUp(mut reader), TaskReply::Values(values)) => {
                match memory.feed(&mut reader, &values)? {
                    Progress::Read(keys) => {
                        self.phase = Phase::CatchingUp(reader);
                        Ok(TaskStep::NeedRead { keys })
                    }
                    Progress::Done => self.plan(memory, draws, at),
                }
            }
            (Phase::Reading(planned), TaskReply::Values(values)) => {
                self.write(memory, *planned, &values, draws)
            }
            (Phase::Committing(batch), TaskReply::Committed) => {
                self.replans = 0;
                memory.installed(*batch)?;
                if !memory.is_swept() {
                    return self.commit(memory, Vec::new(), draws);
                }
                self.after(memory, draws, at)
            }
            (Phase::Committing(_), TaskReply::Conflict) => self.again(memory),
            _ => Err(out_of_turn()),
        }
    }

    fn feed_me(&mut self) -> TaskStep {
        self.phase = Phase::Feeding;
        TaskStep::NeedPiece
    }

    fn catch_up(&mut self, memory: &Memory) -> TaskStep {
        let (reader, keys) = CatchUp::start(memory.vault());
        self.phase = Phase::CatchingUp(Box::new(reader));
        TaskStep::NeedRead { keys }
    }

    fn again(&mut self, memory: &Memory) -> Result<TaskStep, Error> {
        self.replans += 1;
        if self.replans > REPLANS {
            return Err(Error::new(
                ErrorCode::Conflict,
                "other writers were faster too many times; import again, what was taken is not taken twice",
            ));
        }
        Ok(self.catch_up(memory))
    }

    fn take(&mut self, memory: &Memory, piece: &[u8]) -> Result<(), Error> {
        for (entry, bytes) in self.source.feed(piece)? {
            self.pending_bytes += bytes;
            let entry = self.admitted(memory, entry)?;
            self.pending.push(entry);
        }
        Ok(())
    }

    fn end(&mut self, memory: &Memory) -> Result<(), Error> {
        for (entry, bytes) in self.source.finish()? {
            self.pending_bytes += bytes;
            let entry = self.admitted(memory, entry)?;
            self.pending.push(entry);
        }
        self.ended = true;
        Ok(())
    }

    /// An entry whose texts passed the guard, and which follows those of its writer.
    fn admitted(&mut self, memory: &Memory, mut entry: Entry) -> Result<Entry, Error> {
        let next = self.counters.entry(entry.writer).or_insert(0);
        if entry.counter != *next {
            return Err(invalid(
                "the export lacks entries, or has them twice or out of order",
            ));
        }
        *next += 1;
        for change in &mut entry.changes {
            match change {
                Change::Add(record) => {
                    memory.engine().admit(record)?;
                    if record.status == Status::Quarantined {
                        self.held_back.insert(record.id);
                    }
                    // Told elsewhere, erased here: what the owner wanted gone stays so until it is asked for.
                    if self.aside.is_none()
                        && memory
                            .vault()
                            .is_erased_content(&Engine::identity_of(record))
                    {
                        *change = Change::Erase {
                            id: record.id,
                            at_ms: record.times.told_ms,
                        };
                    }
                }
                Change::Revise {
                    revision: Revision::Route(route),
                    ..
                } => memory.engine().admit_route(route),
                _ => {}
            }
        }
        // What is held back stays so, whatever the file goes on to say of it.
        entry.changes.retain(|change| match change {
            Change::Revise {
                id,
                revision: Revision::Status { .. } | Revision::Route(_),
            }
            | Change::Embed { id, .. } => !self.held_back.contains(id),
            _ => true,
        });
        if let Some(aside) = &mut self.aside {
            aside.apply(entry.clone());
        }
        Ok(entry)
    }

    /// Commits what is pending and not known here.
    fn plan(
        &mut self,
        memory: &mut Memory,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        if self.last {
            return self.after(memory, draws, at);
        }
        let (known, fresh): (Vec<Entry>, Vec<Entry>) = core::mem::take(&mut self.pending)
            .into_iter()
            .partition(|entry| memory.vault().knows(entry.writer, entry.counter));
        self.known += known.len() as u64;
        self.pending = fresh;
        let adding = self.pending.iter().flat_map(|entry| &entry.changes);
        let adding = adding.filter(|change| matches!(change, Change::Add(_)));
        memory.engine().has_room(adding.count())?;
        if self.pending.is_empty() {
            self.pending_bytes = 0;
            return self.after(memory, draws, at);
        }
        let entries = self.pending.clone();
        self.commit(memory, entries, draws)
    }

    fn commit(
        &mut self,
        memory: &mut Memory,
        entries: Vec<Entry>,
        draws: &mut Draws,
    ) -> Result<TaskStep, Error> {
        let planned = memory.planned(entries, true);
        let keys = memory.keys_of(&planned);
        if keys.is_empty() {
            return self.write(memory, planned, &[], draws);
        }
        self.phase = Phase::Reading(Box::new(planned));
        Ok(TaskStep::NeedRead { keys })
    }

    fn write(
        &mut self,
        memory: &mut Memory,
        planned: Planned,
        values: &[Option<Vec<u8>>],
        draws: &mut Draws,
    ) -> Result<TaskStep, Error> {
        let Prepared::Batch(batch) = memory.prepare(&planned, values, draws)? else {
            return self.again(memory);
        };
        let step = TaskStep::Commit {
            expected_head: batch.expected_head,
            puts: batch.puts.clone(),
            deletes: batch.deletes.clone(),
            strict: true,
        };
        self.phase = Phase::Committing(batch);
        Ok(step)
    }

    /// Once a commit is written, or there was nothing to write.
    fn after(
        &mut self,
        memory: &mut Memory,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        for entry in core::mem::take(&mut self.pending) {
            self.entries += 1;
            for change in &entry.changes {
                if let Change::Add(record) = change
                    && memory.engine().stored(record.id).is_some()
                {
                    self.records += 1;
                    self.added.insert(record.id);
                }
            }
        }
        self.pending_bytes = 0;
        if !self.ended {
            return Ok(self.feed_me());
        }
        if !self.last || self.replans > 0 {
            self.last = true;
            let changes = self.closing(memory, draws, at)?;
            if !changes.is_empty() {
                let entry = memory.entry(changes, at);
                return self.commit(memory, vec![entry], draws);
            }
        }
        Ok(TaskStep::Done(Ok(Report::Import {
            entries: self.entries,
            known: self.known,
            records: self.records,
            merged: self.merged,
            restored: self.restored,
        })))
    }

    /// What brings back the erased, if asked, and what makes one of those that say the same.
    fn closing(
        &mut self,
        memory: &Memory,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        if let Some(aside) = &self.aside {
            let erased: Vec<&Record> = aside
                .all_stored()
                .filter(|record| memory.vault().erased_ms(record.id).is_some())
                .collect();
            memory.engine().has_room(erased.len())?;
            let mut fresh = |record: &Record| RecordId::new(record.times.told_ms, draws.bytes());
            let renamed = map_of(erased.iter().map(|record| (record.id, fresh(record))));
            for record in erased {
                let mut record = record.clone();
                for id in core::iter::once(&mut record.id)
                    .chain(record.supersedes.iter_mut().map(|link| &mut link.id))
                    .chain(record.evidence.iter_mut().map(|link| &mut link.id))
                {
                    *id = renamed.get(id).copied().unwrap_or(*id);
                }
                changes.push(Change::Add(Box::new(record)));
            }
            self.restored = changes.len() as u64;
        }
        let twins = memory.engine().twins(&self.added, at.now_ms);
        // The file may have said so before the record itself.
        let freed = self.held_back.iter().filter(|id| {
            let stored = memory.engine().stored(**id);
            stored.is_some_and(|record| record.status != Status::Quarantined)
        });
        changes.extend(freed.map(|id| Change::Revise {
            id: *id,
            revision: Revision::Status {
                status: Status::Quarantined,
                valid_to_ms: None,
            },
        }));
        self.merged = twins
            .iter()
            .filter(|change| {
                matches!(
                    change,
                    Change::Revise {
                        revision: Revision::Status {
                            status: Status::Superseded,
                            ..
                        },
                        ..
                    }
                )
            })
            .count() as u64;
        changes.extend(twins);
        Ok(changes)
    }
}

/// The file, from bytes to entries.
#[derive(Debug)]
struct Source {
    passphrase: Option<Passphrase>,
    form: Form,
    /// Part of a line.
    held: Zeroizing<Vec<u8>>,
    hash: blake3::Hasher,
    begun: bool,
    ended: bool,
    entries: u64,
}

#[derive(Debug)]
enum Form {
    Unknown,
    Plain,
    Sealed(Box<ParcelReader>),
}

impl Source {
    fn new(passphrase: Option<Passphrase>) -> Self {
        Self {
            passphrase,
            form: Form::Unknown,
            held: Zeroizing::new(Vec::new()),
            hash: blake3::Hasher::new(),
            begun: false,
            ended: false,
            entries: 0,
        }
    }

    /// The entries that a piece completes, each with the bytes of its line.
    fn feed(&mut self, piece: &[u8]) -> Result<Vec<(Entry, usize)>, Error> {
        match &mut self.form {
            Form::Unknown => {
                self.held.extend_from_slice(piece);
                let Some(sealed) = ParcelReader::recognises(&self.held) else {
                    return Ok(Vec::new());
                };
                let held = core::mem::take(&mut *self.held);
                self.form = match (sealed, self.passphrase.take()) {
                    (true, Some(passphrase)) => {
                        Form::Sealed(Box::new(ParcelReader::new(passphrase)))
                    }
                    (false, None) => Form::Plain,
                    (true, None) => {
                        return Err(Error::new(
                            ErrorCode::KeyMissing,
                            "the export is sealed; pass its passphrase",
                        ));
                    }
                    (false, Some(_)) => {
                        return Err(invalid(
                            "the file is no sealed export; leave out the passphrase if it is a plain one",
                        ));
                    }
                };
                self.feed(&held)
            }
            Form::Plain => {
                self.held.extend_from_slice(piece);
                self.lines()
            }
            Form::Sealed(reader) => {
                let plain = reader.feed(piece).map_err(unreadable)?;
                self.held.extend_from_slice(&plain);
                self.lines()
            }
        }
    }

    fn finish(&mut self) -> Result<Vec<(Entry, usize)>, Error> {
        if let Form::Sealed(reader) = &self.form {
            reader.finish().map_err(unreadable)?;
        }
        // The last line break may have been lost on the way.
        if !self.held.is_empty() {
            self.held.push(b'\n');
        }
        let entries = self.lines()?;
        if !self.ended {
            return Err(corrupt("the export is cut off before its end"));
        }
        Ok(entries)
    }

    fn lines(&mut self) -> Result<Vec<(Entry, usize)>, Error> {
        let held = core::mem::take(&mut *self.held);
        let mut entries = Vec::new();
        let mut rest = held.as_slice();
        while let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, later) = rest.split_at(length + 1);
            rest = later;
            if let Some(entry) = self.line(line)? {
                entries.push((entry, line.len()));
            }
        }
        if rest.len() > LINE_BYTES {
            return Err(invalid("a line of the export is longer than 16 MiB"));
        }
        *self.held = rest.to_vec();
        Ok(entries)
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Error> {
        if self.ended {
            return Err(corrupt("the export goes on after its end"));
        }
        // The cause is told without the line, which is user text.
        let text = core::str::from_utf8(line).ok();
        let read = text.and_then(|text| (json::codec()?.read)(text));
        let json::Line(read) =
            read.ok_or_else(|| invalid("a line of the file is not in the form of an export"))?;
        let hash = self.hash.finalize();
        self.hash.update(line);
        match read {
            Line::ForemindExport { version, .. } if !self.begun => {
                if version > VERSION {
                    return Err(Error::new(
                        ErrorCode::NewerFormat,
                        format!("the export has version {version}; update foremind to import it"),
                    ));
                }
                if version == 0 {
                    return Err(invalid("there is no export of version 0"));
                }
                self.begun = true;
                Ok(None)
            }
            Line::Entry {
                writer,
                counter,
                lamport,
                at_ms,
                changes,
            } if self.begun => {
                self.entries += 1;
                lines::entry(&writer, counter, lamport, at_ms, changes)
                    .map(Some)
                    .ok_or_else(|| invalid("an entry of the export has a part out of its range"))
            }
            Line::End { entries, blake3 } if self.begun => {
                if entries != self.entries || blake3 != hash.to_hex().as_str() {
                    return Err(corrupt("the export was altered"));
                }
                self.ended = true;
                Ok(None)
            }
            _ => Err(invalid("the file does not begin as an export")),
        }
    }
}

fn unreadable(error: ParcelError) -> Error {
    match error {
        ParcelError::WrongKey => Error::new(
            ErrorCode::WrongKey,
            "the passphrase does not open this export",
        ),
        ParcelError::NewerFormat(format) => Error::new(
            ErrorCode::NewerFormat,
            format!("the sealed export has format {format}; update foremind to import it"),
        ),
        ParcelError::Cut => corrupt("the sealed export is cut off before its end"),
        _ => corrupt("the sealed export was altered"),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

fn corrupt(message: &str) -> Error {
    Error::new(ErrorCode::Corrupt, message)
}

/// What a hostile file does: for the fuzz bodies. Gives the number of entries read.
#[doc(hidden)]
#[must_use]
pub fn fuzz_import(file: &[u8], piece: usize) -> usize {
    let mut source = Source::new(None);
    let mut entries = 0;
    for piece in file.chunks(piece.max(1)) {
        match source.feed(piece) {
            Ok(more) => entries += more.len(),
            Err(_) => return entries,
        }
    }
    entries + source.finish().map_or(0, |more| more.len())
}
