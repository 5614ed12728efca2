//! The end of a memory: its wrapped key first, so that nothing can be read whatever comes after, then every value.

use core::fmt::Write as _;

use foremind_engine::Engine;
use foremind_types::{Ambient, Digest, Error, Receipt};
use foremind_vault::{Draws, Key, KeySlot, mac};

use crate::catch_up::{CatchUp, Progress};
use crate::rekey::{unusable, wrapped};
use crate::task::{Report, TaskReply, TaskStep, out_of_turn};
use crate::{DataKey, KeySource, Memory};

/// The receipt is under a key of its own, which stands in it, wrapped as the data key was.
#[derive(Debug)]
pub(crate) struct Destroy {
    key: KeySource,
    receipt_key: DataKey,
    receipt: Option<Box<Receipt>>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Start,
    CatchingUp(Box<CatchUp>),
    Wrapping,
    /// Of `key` and `spare`.
    Locking,
    Naming,
    Emptying,
    Finished,
}

impl Destroy {
    pub(crate) fn new(key: KeySource) -> Self {
        Self {
            key,
            receipt_key: DataKey::new([0; 32]),
            receipt: None,
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
            (Phase::Start, TaskReply::Begin) => {
                let (reader, keys) = CatchUp::start(memory.vault());
                self.phase = Phase::CatchingUp(Box::new(reader));
                Ok(TaskStep::NeedRead { keys })
            }
            (Phase::CatchingUp(mut reader), TaskReply::Values(values)) => {
                match memory.feed(&mut reader, &values)? {
                    Progress::Read(keys) => {
                        self.phase = Phase::CatchingUp(reader);
                        Ok(TaskStep::NeedRead { keys })
                    }
                    Progress::Done => {
                        self.receipt_key = DataKey::new(draws.bytes());
                        self.wrap(memory, None, draws, at)
                    }
                }
            }
            (Phase::Wrapping, TaskReply::Wrapped(blob)) => {
                self.wrap(memory, Some(&blob), draws, at)
            }
            (Phase::Locking, TaskReply::Committed) => {
                self.phase = Phase::Naming;
                Ok(TaskStep::NeedNames)
            }
            (Phase::Naming, TaskReply::Names(names)) => {
                // Where nothing can be listed, what the head names.
                let named = || {
                    memory
                        .vault()
                        .names()
                        .iter()
                        .cloned()
                        .chain([Key::head()])
                        .collect()
                };
                let deletes: Vec<Key> = match names {
                    Some(names) => names.iter().filter_map(|name| Key::parse(name)).collect(),
                    None => named(),
                };
                self.phase = Phase::Emptying;
                self.count(deletes.len() as u32 + 2);
                Ok(replace(deletes))
            }
            (Phase::Emptying, TaskReply::Committed) => {
                let receipt = self.receipt.take().ok_or_else(out_of_turn)?;
                Ok(TaskStep::Done(Ok(Report::Destroy { receipt })))
            }
            _ => Err(out_of_turn()),
        }
    }

    fn wrap(
        &mut self,
        memory: &Memory,
        blob: Option<&[u8]>,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<TaskStep, Error> {
        let vault = memory.vault();
        let generation = memory.generation() + 1;
        let key = &self.receipt_key;
        let slot = match (&self.key, blob) {
            (KeySource::External, None) => {
                self.phase = Phase::Wrapping;
                return Ok(TaskStep::WrapKey {
                    data_key: key.clone(),
                });
            }
            (KeySource::External, Some(blob)) => {
                KeySlot::write_external(vault.memory_id(), key, blob, generation, draws)
                    .map_err(unusable)?
            }
            (source, _) => wrapped(source, vault.memory_id(), key, generation, draws)?,
        };
        let erased = memory.engine().all_stored().map(Engine::identity_of);
        let erased: Vec<[u8; 16]> = erased.map(|one| vault.tombstone(&one)).collect();
        let mut receipt = Receipt {
            memory_id: vault.memory_id().to_string(),
            generation,
            at_ms: at.now_ms,
            previous: Digest::default(),
            erased: vault.bury(&erased).1,
            root: Digest::default(),
            counts: memory.engine().counts(),
            mac: Digest::default(),
            key: Some(hexadecimal(&slot)),
        };
        // For the receipt before it.
        let _ = vault.seal_receipt(&mut receipt);
        self.receipt = Some(Box::new(receipt));
        self.phase = Phase::Locking;
        Ok(replace(vec![Key::slot(), Key::spare()]))
    }

    /// Writes down how many values go, and seals the receipt.
    fn count(&mut self, values: u32) {
        if let Some(receipt) = &mut self.receipt {
            receipt.counts.values = values;
            receipt.mac = mac(&self.receipt_key, receipt);
        }
    }
}

fn replace(deletes: Vec<Key>) -> TaskStep {
    TaskStep::Replace {
        puts: Vec::new(),
        deletes,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of hexadecimal digits; `None` for anything else.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
            _ => None,
        })
        .collect()
}
