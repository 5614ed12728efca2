use foremind_engine::{self as engine, Engine, Request};
use foremind_types::{
    Ambient, Change, Embedding, EncodeFailure, Entry, Error, ErrorCode, MemoryId,
    VECTOR_DIMENSIONS, WriterId,
};
use foremind_vault::{Batch, Draws, HeadToken, Key, Plan, Run, Vault, VaultError};

use crate::catch_up::{CatchUp, Progress};
use crate::{Reply, Step};

/// How often an operation plans again because another writer was faster.
const REPLANS: u32 = 32;

/// An open memory: engine and log behind one step protocol.
#[derive(Debug)]
pub struct Memory {
    engine: Engine,
    vault: Vault,
    writer: WriterId,
    exclusive: bool,
    /// Steps taken; see [`Draws::new`].
    steps: u64,
}

/// An operation under way. Several may be under way on one memory.
#[derive(Debug)]
pub struct Op {
    refresh_only: bool,
    engine_op: engine::Op,
    begun: bool,
    replans: u32,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Start,
    CatchingUp(Box<CatchUp>),
    Encoding {
        texts: usize,
        heads: usize,
    },
    /// Reading what the commit rewrites.
    Reading(Box<Reading>),
    Committing(Box<Batch>),
    Finished,
}

#[derive(Debug)]
struct Reading {
    entry: Entry,
    strict: bool,
    plan: Plan,
    base: HeadToken,
    runs: Vec<Run>,
}

impl Memory {
    pub(crate) fn new(engine: Engine, vault: Vault, writer: WriterId, exclusive: bool) -> Self {
        Self {
            engine,
            vault,
            writer,
            exclusive,
            steps: 0,
        }
    }

    /// Starts an operation; the first step's reply is [`Reply::Begin`].
    #[must_use]
    pub fn begin(&self, request: Request) -> Op {
        Op {
            refresh_only: matches!(request, Request::Refresh {}),
            engine_op: self.engine.begin(request),
            begun: false,
            replans: 0,
            phase: Phase::Start,
        }
    }

    /// How many commits led to the state that this memory knows.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.vault.head().token().generation()
    }

    /// Which memory this is.
    #[must_use]
    pub fn memory_id(&self) -> MemoryId {
        self.vault.memory_id()
    }

    /// A hash of the logical state, equal in every instance that knows the same entries.
    #[must_use]
    pub fn state_digest(&self) -> [u8; 32] {
        self.engine.state_digest()
    }

    /// Says what `op` needs next. `reply` answers the step before; `at.entropy` is fresh for each call.
    pub fn step(&mut self, op: &mut Op, reply: Reply, at: &Ambient) -> Step {
        let mut draws = Draws::new(&at.entropy, self.writer.0, self.steps);
        self.steps = self.steps.wrapping_add(1);
        let phase = core::mem::replace(&mut op.phase, Phase::Finished);
        if let Reply::Failed(error) = reply {
            return self.give_up(op, error, &mut draws, at);
        }
        let next = match (phase, reply) {
            (Phase::Start, Reply::Begin) => {
                if self.exclusive && !op.refresh_only {
                    self.advance(op, engine::Reply::Begin, &mut draws, at)
                } else {
                    Ok(catch_up(op, &self.vault))
                }
            }
            (Phase::CatchingUp(reader), Reply::Values(values)) => {
                self.caught_up(op, reader, &values, &mut draws, at)
            }
            (Phase::Encoding { texts, heads }, Reply::Embedded(embedded)) => {
                let embedded = embedded.and_then(|embedded| shaped(embedded, texts, heads));
                self.advance(op, engine::Reply::Encoded(embedded), &mut draws, at)
            }
            (Phase::Reading(reading), Reply::Values(values)) => {
                self.rewrite(op, *reading, &values, &mut draws)
            }
            (Phase::Committing(batch), Reply::Committed) => {
                self.committed(op, *batch, &mut draws, at)
            }
            (Phase::Committing(_), Reply::Conflict) => replan(op, &self.vault),
            _ => Err(Error::new(
                ErrorCode::Internal,
                "the reply does not answer the step before it",
            )),
        };
        next.unwrap_or_else(|error| self.give_up(op, error, &mut draws, at))
    }

    fn give_up(&mut self, op: &mut Op, error: Error, draws: &mut Draws, at: &Ambient) -> Step {
        op.phase = Phase::Finished;
        if op.begun {
            let reply = engine::Reply::Failed(error.clone());
            if let engine::Step::Done(Err(error)) = self.ask_engine(op, reply, draws, at) {
                return Step::Done(Err(error));
            }
        }
        Step::Done(Err(error))
    }

    fn ask_engine(
        &mut self,
        op: &mut Op,
        reply: engine::Reply,
        draws: &mut Draws,
        at: &Ambient,
    ) -> engine::Step {
        op.begun = true;
        let at = Ambient {
            entropy: draws.bytes(),
            ..*at
        };
        self.engine.step(&mut op.engine_op, reply, &at)
    }

    /// Hands a reply to the engine and turns what it wants into a step.
    fn advance(
        &mut self,
        op: &mut Op,
        reply: engine::Reply,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        match self.ask_engine(op, reply, draws, at) {
            engine::Step::Encode { texts, heads } => {
                op.phase = Phase::Encoding {
                    texts: texts.len(),
                    heads: heads.len(),
                };
                Ok(Step::NeedEmbed { texts, heads })
            }
            engine::Step::Commit { changes, strict } => self.commit(op, changes, strict, draws, at),
            engine::Step::Done(result) => {
                op.phase = Phase::Finished;
                Ok(Step::Done(result))
            }
        }
    }

    fn caught_up(
        &mut self,
        op: &mut Op,
        mut reader: Box<CatchUp>,
        values: &[Option<Vec<u8>>],
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        match reader.feed(values, &mut self.vault, &mut self.engine)? {
            Progress::Read(keys) => {
                op.phase = Phase::CatchingUp(reader);
                Ok(Step::NeedRead { keys })
            }
            Progress::Done if op.begun => self.advance(op, engine::Reply::Replan, draws, at),
            Progress::Done => self.advance(op, engine::Reply::Begin, draws, at),
        }
    }

    fn commit(
        &mut self,
        op: &mut Op,
        changes: Vec<Change>,
        strict: bool,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        let (counter, lamport) = self.vault.next_stamp(self.writer);
        let entry = Entry {
            writer: self.writer,
            counter,
            lamport,
            at_ms: at.now_ms,
            changes,
        };
        let plan = self.vault.plan(&entry);
        let reading = Reading {
            entry,
            strict,
            base: self.vault.head().token(),
            runs: self.vault.reads(&plan),
            plan,
        };
        let keys: Vec<Key> = reading
            .runs
            .iter()
            .flat_map(|run| self.vault.keys_of(run))
            .collect();
        if keys.is_empty() {
            return self.rewrite(op, reading, &[], draws);
        }
        op.phase = Phase::Reading(Box::new(reading));
        Ok(Step::NeedRead { keys })
    }

    /// Builds the batch once everything that it rewrites is read.
    fn rewrite(
        &mut self,
        op: &mut Op,
        reading: Reading,
        mut values: &[Option<Vec<u8>>],
        draws: &mut Draws,
    ) -> Result<Step, Error> {
        if reading.base != self.vault.head().token() {
            // Another operation of this memory moved the head meanwhile.
            return replan(op, &self.vault);
        }
        let mut read = Vec::with_capacity(reading.runs.len());
        for run in &reading.runs {
            let (own, later) = values.split_at(run.values().min(values.len()));
            values = later;
            match self.vault.read_run(run, own) {
                Ok(entries) => read.push(entries),
                // Folded away by another writer; if it is lost instead, the reader finds out.
                Err(VaultError::Missing { .. }) => return replan(op, &self.vault),
                Err(error) => return Err(error.into()),
            }
        }
        let batch = self
            .vault
            .batch(&reading.plan, read, &reading.entry, draws)?;
        let step = Step::Commit {
            expected_head: batch.expected_head,
            puts: batch.puts.clone(),
            deletes: batch.deletes.clone(),
            strict: reading.strict,
        };
        // The values are on their way to the store; what remains is what the state needs afterwards.
        op.phase = Phase::Committing(Box::new(Batch {
            puts: Vec::new(),
            deletes: Vec::new(),
            ..batch
        }));
        Ok(step)
    }

    fn committed(
        &mut self,
        op: &mut Op,
        batch: Batch,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        if let Some(sequenced) = batch.entry
            && self.vault.absorb(&sequenced)?
        {
            self.engine.apply(sequenced.entry);
        }
        self.vault.install(batch.head);
        self.advance(op, engine::Reply::Committed, draws, at)
    }
}

fn catch_up(op: &mut Op, vault: &Vault) -> Step {
    let (reader, keys) = CatchUp::start(vault);
    op.phase = Phase::CatchingUp(Box::new(reader));
    Step::NeedRead { keys }
}

fn replan(op: &mut Op, vault: &Vault) -> Result<Step, Error> {
    op.replans += 1;
    if op.replans > REPLANS {
        return Err(Error::new(
            ErrorCode::Conflict,
            "other writers were faster too many times; nothing was changed, try again",
        ));
    }
    Ok(catch_up(op, vault))
}

/// The host's embeddings, if they have the shape that was asked for.
fn shaped(
    embedded: Vec<Vec<Embedding>>,
    texts: usize,
    heads: usize,
) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
    let sound = |one: &Embedding| {
        (one.vector.is_empty() || one.vector.len() == VECTOR_DIMENSIONS)
            && one.scale.is_finite()
            && one.scale > 0.0
            && one.features.len() <= 64
            && one.features.iter().all(|feature| feature.is_finite())
    };
    let fits = embedded.len() == texts
        && embedded
            .iter()
            .all(|of_text| of_text.len() == heads && of_text.iter().all(sound));
    if fits {
        Ok(embedded)
    } else {
        Err(EncodeFailure::Failed)
    }
}
