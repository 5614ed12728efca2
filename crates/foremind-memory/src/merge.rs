//! Where a store cannot compare and swap: what other writers committed under a head that was replaced.

use std::collections::{BTreeMap, VecDeque};

use foremind_types::small::SmallMap;

use foremind_types::order::{set_of, sort_by_key};
use foremind_types::{Entry, Error, ErrorCode, WriterId};
use foremind_vault::{Batch, Draws, Key, Run};

use crate::Memory;
use crate::catch_up::VALUES_PER_READ;
use crate::memory::{Planned, Prepared};
use crate::task::{TaskReply, TaskStep, out_of_turn};

/// How often a commit is tried.
const ATTEMPTS: u32 = 32;

/// Looks through what the head does not name for heads of others, and commits what only those have.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    strays: VecDeque<Key>,
    runs: VecDeque<Run>,
    asked: Vec<Key>,
    asked_runs: Vec<Run>,
    /// Values of this memory that are of no use once the merge is written.
    ours: Vec<Key>,
    entries: BTreeMap<(WriterId, u64), Entry>,
    /// What is to be committed.
    merged: Vec<Entry>,
    attempts: u32,
    /// Whether values of no use are deleted even if there is nothing to merge.
    clearing: bool,
    phase: Phase,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Start,
    Naming,
    Strays,
    Runs,
    Rewriting(Box<Planned>),
    Committing(Box<Batch>),
    Finished,
}

impl Merge {
    /// Deletes what is of no use as well.
    pub(crate) fn clearing() -> Self {
        Self {
            clearing: true,
            ..Self::default()
        }
    }

    /// `Ok(None)` at the end.
    pub(crate) fn step(
        &mut self,
        memory: &mut Memory,
        reply: TaskReply,
        draws: &mut Draws,
    ) -> Result<Option<TaskStep>, Error> {
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        match (phase, reply) {
            (_, TaskReply::Failed(error)) => Err(error),
            (Phase::Start, TaskReply::Begin) => {
                self.phase = Phase::Naming;
                Ok(Some(TaskStep::NeedNames))
            }
            (Phase::Naming, TaskReply::Names(names)) => {
                let named = memory.vault().names();
                let names = set_of(names.unwrap_or_default());
                let strays = names.iter().filter(|name| Key::is_of_log(name));
                let strays = strays.filter_map(|name| Key::parse(name));
                self.strays = strays.filter(|key| !named.contains(key)).collect();
                self.next(memory, draws)
            }
            (Phase::Strays, TaskReply::Values(values)) => {
                let asked = core::mem::take(&mut self.asked);
                let known: Vec<Run> = memory.vault().head().runs().to_vec();
                for (key, value) in asked.iter().zip(values) {
                    let Some(value) = value else {
                        continue;
                    };
                    if memory.vault().owns(key, &value) {
                        self.ours.push(key.clone());
                    }
                    if let Ok(head) = memory.vault().read_journal(key, &value) {
                        let runs = head.runs().iter().filter(|run| !known.contains(run));
                        self.runs.extend(runs.cloned());
                    }
                }
                self.next(memory, draws)
            }
            (Phase::Runs, TaskReply::Values(values)) => {
                let mut values = values.as_slice();
                for run in core::mem::take(&mut self.asked_runs) {
                    let (own, later) = values.split_at(run.values().min(values.len()));
                    values = later;
                    // An older head names what was folded and deleted since.
                    let Ok(read) = memory.vault().read_run(&run, own) else {
                        continue;
                    };
                    for one in read {
                        let name = (one.entry.writer, one.entry.counter);
                        if !memory.vault().knows(name.0, name.1) {
                            self.entries.insert(name, one.entry);
                        }
                    }
                }
                self.next(memory, draws)
            }
            (Phase::Rewriting(planned), TaskReply::Values(values)) => {
                self.write(memory, &planned, &values, draws)
            }
            (Phase::Committing(batch), TaskReply::Committed) => {
                memory.installed(*batch)?;
                Ok(None)
            }
            // Somebody else has the ticket, or had it and was cut: it is given up after some attempts.
            (Phase::Committing(_), TaskReply::Conflict) if self.attempts < ATTEMPTS => {
                self.attempts += 1;
                self.commit(memory, draws)
            }
            (Phase::Committing(_), TaskReply::Conflict) => Err(conflict()),
            _ => Err(out_of_turn()),
        }
    }

    fn next(&mut self, memory: &mut Memory, draws: &mut Draws) -> Result<Option<TaskStep>, Error> {
        if !self.strays.is_empty() {
            let count = self.strays.len().min(VALUES_PER_READ);
            self.asked = self.strays.drain(..count).collect();
            self.phase = Phase::Strays;
            let keys = self.asked.clone();
            return Ok(Some(TaskStep::NeedRead { keys }));
        }
        let mut keys = Vec::new();
        while let Some(run) = self.runs.front() {
            if !keys.is_empty() && keys.len() + run.values() > VALUES_PER_READ {
                break;
            }
            keys.extend(memory.vault().keys_of(run));
            self.asked_runs.extend(self.runs.pop_front());
        }
        if !keys.is_empty() {
            self.phase = Phase::Runs;
            return Ok(Some(TaskStep::NeedRead { keys }));
        }
        // Of each writer what follows without a gap.
        let mut next: SmallMap<WriterId, u64> = SmallMap::new();
        let mut entries: Vec<Entry> = Vec::new();
        for ((writer, counter), entry) in core::mem::take(&mut self.entries) {
            let known = memory.vault().next_stamp(writer).0;
            let expected = next.entry(writer).or_insert(known);
            if counter == *expected {
                *expected += 1;
                entries.push(entry);
            }
        }
        if entries.is_empty() && (!self.clearing || self.ours.is_empty()) {
            return Ok(None);
        }
        sort_by_key(&mut entries, |entry| {
            (entry.lamport, entry.writer, entry.counter)
        });
        self.merged = entries;
        self.commit(memory, draws)
    }

    fn commit(
        &mut self,
        memory: &mut Memory,
        draws: &mut Draws,
    ) -> Result<Option<TaskStep>, Error> {
        let planned = memory.planned(self.merged.clone(), true);
        let keys = memory.keys_of(&planned);
        if keys.is_empty() {
            return self.write(memory, &planned, &[], draws);
        }
        self.phase = Phase::Rewriting(Box::new(planned));
        Ok(Some(TaskStep::NeedRead { keys }))
    }

    fn write(
        &mut self,
        memory: &mut Memory,
        planned: &Planned,
        values: &[Option<Vec<u8>>],
        draws: &mut Draws,
    ) -> Result<Option<TaskStep>, Error> {
        let Prepared::Batch(mut batch) = memory.prepare(planned, values, draws)? else {
            return Err(conflict());
        };
        let mut deletes = core::mem::take(&mut batch.deletes);
        let kept = memory.vault().names();
        deletes.extend(self.ours.iter().filter(|key| !kept.contains(key)).cloned());
        let step = TaskStep::Commit {
            expected_head: batch.expected_head,
            puts: core::mem::take(&mut batch.puts),
            deletes,
            strict: true,
        };
        self.phase = Phase::Committing(batch);
        Ok(Some(step))
    }
}

fn conflict() -> Error {
    Error::new(
        ErrorCode::Conflict,
        "another writer wrote while the journals were being merged; open the memory again",
    )
}
