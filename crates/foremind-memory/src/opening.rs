use foremind_engine::Engine;
use foremind_types::{Ambient, Error, ErrorCode, MemoryId, WriterId};
use foremind_vault::{DataKey, Draws, Key, KeySlot, Vault, VaultError, WrapMethod};

use crate::catch_up::{CatchUp, Progress};
use crate::{KeySource, Memory, OpenOptions, OpenReply, OpenStep};

/// How often an opening starts over because the store moved under it.
const ATTEMPTS: u32 = 8;

/// Opens a memory, or makes one where there is none.
#[derive(Debug)]
pub struct Opening {
    options: OpenOptions,
    phase: Phase,
    attempts: u32,
    steps: u64,
}

#[derive(Debug)]
enum Phase {
    Start,
    Reading,
    Unwrapping {
        slot: KeySlot,
        /// Absent where the making of the memory was cut.
        head: Option<Vec<u8>>,
    },
    Wrapping {
        memory_id: MemoryId,
        data_key: DataKey,
    },
    Creating(Box<Vault>),
    CatchingUp {
        vault: Box<Vault>,
        engine: Box<Engine>,
        reader: CatchUp,
    },
    Finished,
}

impl Opening {
    /// Starts; the first step's reply is [`OpenReply::Begin`].
    #[must_use]
    pub fn new(options: OpenOptions) -> Self {
        Self {
            options,
            phase: Phase::Start,
            attempts: 0,
            steps: 0,
        }
    }

    /// Says what the opening needs next. `reply` answers the step before; `at.entropy` is fresh for each call.
    pub fn step(&mut self, reply: OpenReply, at: &Ambient) -> OpenStep {
        let mut draws = Draws::new(&at.entropy, 0, self.steps);
        self.steps = self.steps.wrapping_add(1);
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        self.advance(phase, reply, &mut draws)
            .unwrap_or_else(|error| OpenStep::Done(Err(error)))
    }

    fn advance(
        &mut self,
        phase: Phase,
        reply: OpenReply,
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        match (phase, reply) {
            (_, OpenReply::Failed(error)) => Err(error),
            (Phase::Start, OpenReply::Begin) => Ok(self.read()),
            (Phase::Reading, OpenReply::Values(values)) => {
                let mut values = values.into_iter();
                let (slot, head) = (values.next().flatten(), values.next().flatten());
                match (slot, head) {
                    (Some(slot), Some(head)) => self.unwrap(&slot, Some(head), draws),
                    (None, None) => self.create(draws),
                    (slot, _) => {
                        // The two are read one after the other where a store has no snapshot: look again.
                        let absent = if slot.is_some() {
                            Key::head()
                        } else {
                            Key::slot()
                        };
                        self.again(VaultError::Half { absent }.into())
                    }
                }
            }
            (Phase::Reading, OpenReply::KeyAlone(slot)) => {
                self.may_create()?;
                self.unwrap(&slot, None, draws)
            }
            (Phase::Unwrapping { slot, head }, OpenReply::DataKey(data_key)) => {
                slot.accept(&data_key)?;
                self.unwrapped(slot.memory_id(), &data_key, head.as_deref(), draws)
            }
            (
                Phase::Wrapping {
                    memory_id,
                    data_key,
                },
                OpenReply::Wrapped(blob),
            ) => {
                let slot = KeySlot::write_external(memory_id, &data_key, &blob, 0, draws)
                    .map_err(|error| Error::new(ErrorCode::InvalidArgument, error.to_string()))?;
                self.write_new(memory_id, &data_key, Some(slot), draws)
            }
            (Phase::Creating(vault), OpenReply::Committed) => {
                Ok(self.done(Engine::new(), *vault, draws))
            }
            (Phase::Creating(_), OpenReply::Conflict) => self.again(Error::new(
                ErrorCode::Conflict,
                "the store refuses a new memory and shows no other one; try again",
            )),
            (
                Phase::CatchingUp {
                    mut vault,
                    mut engine,
                    mut reader,
                },
                OpenReply::Values(values),
            ) => {
                let progress = reader.feed(&values, &mut vault, &mut engine)?;
                self.follow(progress, vault, engine, reader, draws)
            }
            _ => Err(Error::new(
                ErrorCode::Internal,
                "the reply does not answer the step before it",
            )),
        }
    }

    fn read(&mut self) -> OpenStep {
        self.phase = Phase::Reading;
        OpenStep::NeedRead {
            keys: vec![Key::slot(), Key::head()],
        }
    }

    fn again(&mut self, otherwise: Error) -> Result<OpenStep, Error> {
        self.attempts += 1;
        if self.attempts >= ATTEMPTS {
            return Err(otherwise);
        }
        Ok(self.read())
    }

    fn unwrap(
        &mut self,
        slot: &[u8],
        head: Option<Vec<u8>>,
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        let slot = KeySlot::read(slot)?;
        match &self.options.key {
            KeySource::Host(host_key) => {
                let data_key = slot.unwrap_host(host_key.as_bytes())?;
                self.unwrapped(slot.memory_id(), &data_key, head.as_deref(), draws)
            }
            KeySource::External if slot.method() == WrapMethod::External => {
                let step = OpenStep::NeedKey {
                    method: slot.method(),
                    wrapped: slot.blob().to_vec(),
                };
                self.phase = Phase::Unwrapping { slot, head };
                Ok(step)
            }
            KeySource::External => Err(VaultError::WrapMethod {
                stored: slot.method(),
            }
            .into()),
        }
    }

    fn unwrapped(
        &mut self,
        memory_id: MemoryId,
        data_key: &DataKey,
        head: Option<&[u8]>,
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        match head {
            Some(head) => self.read_log(memory_id, data_key, head, draws),
            None => self.write_new(memory_id, data_key, None, draws),
        }
    }

    /// Whether a memory that has no head yet may get one.
    fn may_create(&self) -> Result<(), Error> {
        if self.options.create && self.options.min_generation == 0 {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::StorageLost,
            "there is no memory in this store",
        ))
    }

    fn create(&mut self, draws: &mut Draws) -> Result<OpenStep, Error> {
        self.may_create()?;
        let memory_id = MemoryId(draws.bytes());
        let data_key = DataKey::new(draws.bytes());
        match &self.options.key {
            KeySource::Host(host_key) => {
                let slot =
                    KeySlot::write_host(memory_id, &data_key, host_key.as_bytes(), 0, draws)?;
                self.write_new(memory_id, &data_key, Some(slot), draws)
            }
            KeySource::External => {
                self.phase = Phase::Wrapping {
                    memory_id,
                    data_key: data_key.clone(),
                };
                Ok(OpenStep::WrapKey { data_key })
            }
        }
    }

    fn write_new(
        &mut self,
        memory_id: MemoryId,
        data_key: &DataKey,
        slot: Option<Vec<u8>>,
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        let (vault, mut batch) = Vault::create(memory_id, data_key, draws)?;
        // The head last, as in every batch. A store that writes it by compare-and-swap may be left with the
        // slot alone; two that finish it then seal with the same data key, and the first head stays.
        if let Some(slot) = slot {
            batch.puts.insert(0, (Key::slot(), slot));
        }
        self.phase = Phase::Creating(Box::new(vault));
        Ok(OpenStep::Commit {
            expected_head: batch.expected_head,
            puts: batch.puts,
            deletes: batch.deletes,
            strict: true,
        })
    }

    fn read_log(
        &mut self,
        memory_id: MemoryId,
        data_key: &DataKey,
        head: &[u8],
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        let vault = Vault::open(memory_id, data_key, head)?;
        let found = vault.head().token().generation();
        let seen = self.options.min_generation;
        if found < seen {
            return Err(VaultError::Replaced { seen, found }.into());
        }
        let (reader, progress) = CatchUp::opened(&vault);
        self.follow(progress, Box::new(vault), Box::default(), reader, draws)
    }

    fn follow(
        &mut self,
        progress: Progress,
        vault: Box<Vault>,
        engine: Box<Engine>,
        reader: CatchUp,
        draws: &mut Draws,
    ) -> Result<OpenStep, Error> {
        match progress {
            Progress::Read(keys) => {
                self.phase = Phase::CatchingUp {
                    vault,
                    engine,
                    reader,
                };
                Ok(OpenStep::NeedRead { keys })
            }
            Progress::Done => Ok(self.done(*engine, *vault, draws)),
        }
    }

    fn done(&mut self, engine: Engine, vault: Vault, draws: &mut Draws) -> OpenStep {
        let writer = WriterId(u64::from_le_bytes(draws.bytes()));
        OpenStep::Done(Ok(Memory::new(
            engine,
            vault,
            writer,
            self.options.exclusive,
        )))
    }
}
