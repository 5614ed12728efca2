use foremind_engine::{Audience, Engine, Guard, ProfileView, Response};
use foremind_types::{Ambient, Error, ErrorCode, MemoryId, Scope, WriterId};
use foremind_vault::{DataKey, Draws, Key, KeySlot, Vault, VaultError, WrapMethod};

use crate::catch_up::{CatchUp, Progress};
use crate::merge::Merge;
use crate::rekey::{unusable, wrapped};
use crate::task::{TaskReply, TaskStep, out_of_turn};
use crate::{KeySource, Memory, Op, OpenOptions, OpenReply, OpenStep, Reply, Step};

/// How often an opening starts over because the store moved under it.
const ATTEMPTS: u32 = 8;

/// Opens a memory, or makes one where there is none.
#[derive(Debug)]
pub struct Opening {
    options: OpenOptions,
    phase: Phase,
    attempts: u32,
    steps: u64,
    profile: Option<ProfileView>,
    /// Of a replica.
    stamp: Option<Vec<u8>>,
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
    /// Reading the stored profile.
    Glancing(Box<Vault>),
    Shown(Box<Vault>),
    /// Looking for journals of others.
    Merging {
        memory: Box<Memory>,
        merge: Box<Merge>,
    },
    /// Finishing an erasure that was cut.
    Sweeping {
        memory: Box<Memory>,
        op: Op,
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
            profile: None,
            stamp: None,
        }
    }

    /// Says what the opening needs next. `reply` answers the step before; `at.entropy` is fresh for each call.
    pub fn step(&mut self, reply: OpenReply, at: &Ambient) -> OpenStep {
        let mut draws = Draws::new(&at.entropy, 0, self.steps);
        self.steps = self.steps.wrapping_add(1);
        let phase = core::mem::replace(&mut self.phase, Phase::Finished);
        if let Phase::Sweeping { memory, op } = phase {
            return self.sweep(memory, op, reply, at);
        }
        if let Phase::Merging { memory, merge } = phase {
            return self.merge(memory, merge, task_reply(reply), &mut draws, at);
        }
        let result = self.advance(phase, reply, &mut draws);
        if let Ok(OpenStep::Done(Ok(mut memory))) = result {
            if self.options.journals {
                memory.keep_journals();
                let merge = Box::default();
                return self.merge(Box::new(memory), merge, TaskReply::Begin, &mut draws, at);
            }
            return self.begin_sweep(Box::new(memory), at);
        }
        result.unwrap_or_else(|error| OpenStep::Done(Err(error)))
    }

    /// The prompt of the stored profile, once [`OpenStep::Profile`] was seen: what the opened memory will answer,
    /// to the byte.
    ///
    /// # Errors
    /// `invalid-argument` for a budget out of range, `internal` before.
    pub fn profile(
        &self,
        scope: &Scope,
        budget_tokens: u32,
        audience: Audience,
        now_ms: i64,
    ) -> Result<Response, Error> {
        let view = self
            .profile
            .as_ref()
            .ok_or_else(|| Error::new(ErrorCode::Internal, "the stored profile was not read"))?;
        let prompt = view.prompt(scope, budget_tokens, audience, now_ms)?;
        Ok(Response::Profile(prompt))
    }

    fn merge(
        &mut self,
        mut memory: Box<Memory>,
        mut merge: Box<Merge>,
        reply: TaskReply,
        draws: &mut Draws,
        at: &Ambient,
    ) -> OpenStep {
        let step = match merge.step(&mut memory, reply, draws) {
            Err(error) => return OpenStep::Done(Err(error)),
            Ok(None) => return self.begin_sweep(memory, at),
            Ok(Some(step)) => step,
        };
        self.phase = Phase::Merging { memory, merge };
        match step {
            TaskStep::NeedRead { keys } => OpenStep::NeedRead { keys },
            TaskStep::NeedNames => OpenStep::NeedNames,
            TaskStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => OpenStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            },
            _ => OpenStep::Done(Err(out_of_turn())),
        }
    }

    fn begin_sweep(&mut self, memory: Box<Memory>, at: &Ambient) -> OpenStep {
        if self.options.stale_reads {
            return OpenStep::Done(Ok(*memory));
        }
        let op = memory.begin_sweep();
        self.sweep(memory, op, OpenReply::Begin, at)
    }

    /// Takes out what is left of an erasure that was cut. What fails here is done by later commits.
    fn sweep(
        &mut self,
        mut memory: Box<Memory>,
        mut op: Op,
        reply: OpenReply,
        at: &Ambient,
    ) -> OpenStep {
        let reply = match reply {
            OpenReply::Begin => Reply::Begin,
            OpenReply::Values(values) => Reply::Values(values),
            OpenReply::Committed => Reply::Committed,
            OpenReply::Conflict => Reply::Conflict,
            OpenReply::Failed(error) => Reply::Failed(error),
            _ => Reply::Failed(out_of_turn()),
        };
        match memory.step(&mut op, reply, at) {
            Step::NeedRead { keys } => {
                self.phase = Phase::Sweeping { memory, op };
                OpenStep::NeedRead { keys }
            }
            Step::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => {
                self.phase = Phase::Sweeping { memory, op };
                OpenStep::Commit {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                }
            }
            Step::NeedEmbed { .. } | Step::NeedNames | Step::Done(_) => OpenStep::Done(Ok(*memory)),
        }
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
                self.stamp = values.next().flatten();
                match (slot, head) {
                    (Some(slot), Some(head)) => self.unwrap(&slot, Some(head), draws),
                    (None, None) => self.create(draws),
                    _ if self.options.stale_reads => Err(Error::new(
                        ErrorCode::StorageLost,
                        "no memory is published here, or it cannot be seen yet",
                    )),
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
                    .map_err(unusable)?;
                self.write_new(memory_id, &data_key, Some(slot), draws)
            }
            (Phase::Glancing(vault), OpenReply::Values(values)) => {
                let value = values.into_iter().next().flatten();
                // Whatever is wrong with it: the log says the same, and says what is wrong.
                let Ok(heard) = vault.read_profile(value) else {
                    return self.read_runs(vault, draws);
                };
                let records = heard.into_iter().map(|one| (one.record, one.heard_ms));
                self.profile = Some(ProfileView::new(records.collect(), vault.salt()));
                self.phase = Phase::Shown(vault);
                Ok(OpenStep::Profile)
            }
            (Phase::Shown(vault), OpenReply::Continue) => self.read_runs(vault, draws),
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
            keys: if self.options.stale_reads {
                vec![Key::slot(), Key::head(), Key::stamp()]
            } else {
                vec![Key::slot(), Key::head()]
            },
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
            KeySource::Passphrase { passphrase, .. } => {
                let data_key = slot.unwrap_passphrase(passphrase)?;
                self.unwrapped(slot.memory_id(), &data_key, head.as_deref(), draws)
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
            key @ (KeySource::Host(_) | KeySource::Passphrase { .. }) => {
                let slot = wrapped(key, memory_id, &data_key, 0, draws)?;
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
        let (mut vault, mut batch) = Vault::create(memory_id, data_key, draws)?;
        if self.options.atomic_batches {
            vault.expect_atomic_batches();
        }
        // The head last, as in every batch. A store that writes it by compare-and-swap may be left with the
        // slot alone; two that finish it then seal with the same data key, and the first head stays.
        // The slot first, since in such a store it decides whose memory this is.
        if let Some(slot) = slot {
            batch.puts.insert(0, (Key::spare(), slot.clone()));
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
        let mut vault = Box::new(vault);
        if self.options.atomic_batches {
            vault.expect_atomic_batches();
        }
        if self.options.stale_reads {
            vault.read_stale();
            if let Some(stamp) = self.stamp.take() {
                vault.saw_stamp(&stamp);
            }
        }
        if self.options.profile_first
            && let Some(key) = vault.profile_key()
        {
            self.phase = Phase::Glancing(vault);
            return Ok(OpenStep::NeedRead { keys: vec![key] });
        }
        self.read_runs(vault, draws)
    }

    fn read_runs(&mut self, vault: Box<Vault>, draws: &mut Draws) -> Result<OpenStep, Error> {
        let (reader, progress) = CatchUp::opened(&vault);
        self.follow(progress, vault, Box::default(), reader, draws)
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
        let guard = Guard::with_policy(self.options.policy.clone());
        OpenStep::Done(Ok(Memory::new(
            engine.with_guard(guard),
            vault,
            writer,
            self.options.exclusive,
        )))
    }
}

fn task_reply(reply: OpenReply) -> TaskReply {
    match reply {
        OpenReply::Values(values) => TaskReply::Values(values),
        OpenReply::Names(names) => TaskReply::Names(Some(names)),
        OpenReply::Committed => TaskReply::Committed,
        OpenReply::Conflict => TaskReply::Conflict,
        OpenReply::Failed(error) => TaskReply::Failed(error),
        _ => TaskReply::Failed(out_of_turn()),
    }
}
