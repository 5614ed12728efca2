//! Wrapping the data key anew.

use foremind_types::{Ambient, Error, ErrorCode};
use foremind_vault::{Batch, Draws, Key, KeySlot, PassphraseCost, Plan, ProfileUpdate, VaultError};

use crate::catch_up::{CatchUp, Progress};
use crate::task::{Report, TaskReply, TaskStep, out_of_turn};
use crate::{KeySource, Memory};

/// How often the head may move away.
const ATTEMPTS: u32 = 32;

/// The data key stays; its new wrapping is written by a commit that changes nothing else, so that two that rekey at
/// once do not both believe to have won.
#[derive(Debug)]
pub(crate) struct Rekey {
    key: KeySource,
    attempts: u32,
    blob: Option<Vec<u8>>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Start,
    CatchingUp(Box<CatchUp>),
    Wrapping,
    Committing(Box<Batch>),
    Finished,
}

impl Rekey {
    pub(crate) fn new(key: KeySource) -> Self {
        Self {
            key,
            attempts: 0,
            blob: None,
            phase: Phase::Start,
        }
    }

    pub(crate) fn step(
        &mut self,
        memory: &mut Memory,
        reply: TaskReply,
        draws: &mut Draws,
        _at: &Ambient,
    ) -> Result<TaskStep, Error> {
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        match (phase, reply) {
            (Phase::Start, TaskReply::Begin) => Ok(self.catch_up(memory)),
            (Phase::CatchingUp(mut reader), TaskReply::Values(values)) => {
                match memory.feed(&mut reader, &values)? {
                    Progress::Read(keys) => {
                        self.phase = Phase::CatchingUp(reader);
                        Ok(TaskStep::NeedRead { keys })
                    }
                    Progress::Done => self.wrap(memory, draws),
                }
            }
            (Phase::Wrapping, TaskReply::Wrapped(blob)) => {
                self.blob = Some(blob);
                self.wrap(memory, draws)
            }
            (Phase::Committing(batch), TaskReply::Committed) => {
                let generation = batch.head.token().generation();
                memory.installed(*batch)?;
                Ok(TaskStep::Done(Ok(Report::Rekey { generation })))
            }
            (Phase::Committing(_), TaskReply::Conflict) => {
                self.attempts += 1;
                if self.attempts >= ATTEMPTS {
                    return Err(Error::new(
                        ErrorCode::Conflict,
                        "other writers were faster too many times; the key is as before, try again",
                    ));
                }
                Ok(self.catch_up(memory))
            }
            _ => Err(out_of_turn()),
        }
    }

    fn catch_up(&mut self, memory: &Memory) -> TaskStep {
        let (reader, keys) = CatchUp::start(memory.vault());
        self.phase = Phase::CatchingUp(Box::new(reader));
        TaskStep::NeedRead { keys }
    }

    fn wrap(&mut self, memory: &mut Memory, draws: &mut Draws) -> Result<TaskStep, Error> {
        let vault = memory.vault();
        let (memory_id, data_key) = (vault.memory_id(), vault.data_key());
        let generation = vault.head().token().generation() + 1;
        let slot = match (&self.key, &self.blob) {
            (KeySource::External, None) => {
                self.phase = Phase::Wrapping;
                return Ok(TaskStep::WrapKey {
                    data_key: data_key.clone(),
                });
            }
            (KeySource::External, Some(blob)) => {
                KeySlot::write_external(memory_id, data_key, blob, generation, draws)
                    .map_err(unusable)?
            }
            (key, _) => wrapped(key, memory_id, data_key, generation, draws)?,
        };
        let batch = vault.batch(
            &Plan::default(),
            Vec::new(),
            &[],
            ProfileUpdate::Keep,
            draws,
        )?;
        let mut puts = vec![(Key::spare(), slot.clone()), (Key::slot(), slot)];
        puts.extend(batch.puts.iter().cloned());
        let step = TaskStep::Commit {
            expected_head: batch.expected_head,
            puts,
            deletes: batch.deletes.clone(),
            strict: true,
        };
        self.phase = Phase::Committing(Box::new(batch));
        Ok(step)
    }
}

/// The key slot for a source that foremind wraps for.
pub(crate) fn wrapped(
    key: &KeySource,
    memory_id: foremind_types::MemoryId,
    data_key: &crate::DataKey,
    generation: u64,
    draws: &mut Draws,
) -> Result<Vec<u8>, Error> {
    Ok(match key {
        KeySource::Host(host_key) => {
            KeySlot::write_host(memory_id, data_key, host_key.as_bytes(), generation, draws)?
        }
        KeySource::Passphrase { passphrase, cost } => KeySlot::write_passphrase(
            memory_id,
            data_key,
            passphrase,
            cost.unwrap_or(PassphraseCost::default()),
            generation,
            draws,
        )?,
        KeySource::External => return Err(out_of_turn()),
    })
}

pub(crate) fn unusable(error: VaultError) -> Error {
    Error::new(ErrorCode::InvalidArgument, error.to_string())
}
