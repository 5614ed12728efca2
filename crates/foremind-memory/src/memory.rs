use foremind_engine::{self as engine, Engine, HeadError, NgramHead, Request, Response};
use foremind_types::{
    Ambient, Change, Embedding, EncodeFailure, Entry, Error, ErrorCode, HeadId, MemoryId, Record,
    VECTOR_DIMENSIONS, WriterId,
};
use foremind_vault::{
    Batch, Draws, HeadToken, Heard, Key, Plan, ProfileUpdate, Run, Vault, VaultError,
};

use crate::catch_up::{CatchUp, Progress};
use crate::erasure::Erasure;
use crate::merge::Merge;
use crate::replica::read_only;
use crate::task::TaskReply;
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
    /// What it erased, or an earlier operation, is being taken out of what is stored.
    sweeping: Sweeping,
    engine_op: engine::Op,
    begun: bool,
    replans: u32,
    pub(crate) erasure: Option<Box<Erasure>>,
    pub(crate) phase: Phase,
}

impl Op {
    /// Counts what is deleted.
    pub(crate) fn deletes(&mut self, keys: &[Key]) {
        if let Some(erasure) = &mut self.erasure {
            erasure.values += keys.len() as u32;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeping {
    No,
    /// Before the engine hears that its changes are written.
    AfterCommit,
    /// Nothing else is to be done.
    Only,
}

#[derive(Debug)]
pub(crate) enum Phase {
    Start,
    /// Taking out what nothing names.
    Merging(Box<Merge>),
    CatchingUp(Box<CatchUp>),
    Encoding {
        texts: usize,
        heads: usize,
    },
    /// Reading what the commit rewrites.
    Reading(Box<Planned>),
    Committing(Box<Batch>),
    Finished,
}

/// Entries to be committed, and what that rewrites.
#[derive(Debug)]
pub(crate) struct Planned {
    entries: Vec<Entry>,
    strict: bool,
    plan: Plan,
    base: HeadToken,
    runs: Vec<Run>,
}

/// What became of a plan.
pub(crate) enum Prepared {
    /// It can be written.
    Batch(Box<Batch>),
    /// The head moved meanwhile: plan again.
    Moved,
}

impl Memory {
    pub(crate) fn new(mut engine: Engine, vault: Vault, writer: WriterId, exclusive: bool) -> Self {
        engine.salt(vault.salt());
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
            sweeping: Sweeping::No,
            engine_op: self.engine.begin(request),
            begun: false,
            replans: 0,
            erasure: None,
            phase: Phase::Start,
        }
    }

    /// Starts to finish an erasure that was cut, if there is one.
    pub(crate) fn begin_sweep(&self) -> Op {
        Op {
            sweeping: Sweeping::Only,
            ..self.begin(Request::Refresh {})
        }
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn keep_journals(&mut self) {
        self.vault.keep_journals();
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The random bytes of one step.
    pub(crate) fn draws(&mut self, at: &Ambient) -> Draws {
        let draws = Draws::new(&at.entropy, self.writer.0, self.steps);
        self.steps = self.steps.wrapping_add(1);
        draws
    }

    pub(crate) fn feed(
        &mut self,
        reader: &mut CatchUp,
        values: &[Option<Vec<u8>>],
    ) -> Result<Progress, Error> {
        reader.feed(values, &mut self.vault, &mut self.engine)
    }

    pub(crate) fn is_swept(&mut self) -> bool {
        self.vault.is_swept()
    }

    /// Gives the router an n-gram head: see [`Engine::use_ngrams`].
    ///
    /// # Errors
    /// [`HeadError`] when the file is none or the router has no calibration for it; nothing is changed then.
    pub fn use_ngrams(&mut self, file: &[u8]) -> Result<(), HeadError> {
        self.engine.use_ngrams(NgramHead::read(file)?)
    }

    /// Has the encoder's head judge what words leave open, or none: see [`Engine::use_head`].
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`]; nothing is changed then.
    pub fn use_head(&mut self, head: Option<HeadId>) -> Result<(), HeadError> {
        self.engine.use_head(head)
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
        let mut draws = self.draws(at);
        let phase = core::mem::replace(&mut op.phase, Phase::Finished);
        if let Reply::Failed(error) = reply {
            return self.give_up(op, error, &mut draws, at);
        }
        let next = match (phase, reply) {
            (Phase::Start, Reply::Begin) if op.sweeping == Sweeping::Only => {
                self.sweep(op, &mut draws, at)
            }
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
            (Phase::Reading(planned), Reply::Values(values)) => {
                self.rewrite(op, &planned, &values, &mut draws)
            }
            (Phase::Committing(batch), Reply::Committed) => {
                self.committed(op, *batch, &mut draws, at)
            }
            (Phase::Committing(_) | Phase::Merging(_), Reply::Conflict) => replan(op, &self.vault),
            (Phase::Merging(merge), Reply::Values(values)) => {
                self.merge(op, merge, TaskReply::Values(values), &mut draws, at)
            }
            (Phase::Merging(merge), Reply::Names(names)) => {
                self.merge(op, merge, TaskReply::Names(names), &mut draws, at)
            }
            (Phase::Merging(merge), Reply::Committed) => {
                self.merge(op, merge, TaskReply::Committed, &mut draws, at)
            }
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
            engine::Step::Done(Ok(response)) if op.erasure.is_some() => {
                self.clear(op, response, draws, at)
            }
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
            Progress::Done if op.sweeping != Sweeping::No => self.sweep(op, draws, at),
            Progress::Done if op.erasure.as_ref().is_some_and(|one| one.is_answered()) => {
                self.clear_again(op, draws, at)
            }
            Progress::Done if op.begun => self.advance(op, engine::Reply::Replan, draws, at),
            Progress::Done => self.advance(op, engine::Reply::Begin, draws, at),
        }
    }

    fn commit(
        &mut self,
        op: &mut Op,
        mut changes: Vec<Change>,
        strict: bool,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        op.erasure = self.bury(&mut changes).map(Box::new);
        let entry = self.entry(changes, at);
        self.write(op, vec![entry], strict, draws)
    }

    /// Writes entries, or none: then what is left of erasures is taken out.
    pub(crate) fn write(
        &mut self,
        op: &mut Op,
        entries: Vec<Entry>,
        strict: bool,
        draws: &mut Draws,
    ) -> Result<Step, Error> {
        if self.vault.reads_stale() {
            return Err(read_only());
        }
        let planned = self.planned(entries, strict);
        let keys = self.keys_of(&planned);
        if keys.is_empty() {
            return self.rewrite(op, &planned, &[], draws);
        }
        op.phase = Phase::Reading(Box::new(planned));
        Ok(Step::NeedRead { keys })
    }

    /// The next entry of this memory's writer.
    pub(crate) fn entry(&self, changes: Vec<Change>, at: &Ambient) -> Entry {
        let (counter, lamport) = self.vault.next_stamp(self.writer);
        Entry {
            writer: self.writer,
            counter,
            lamport,
            at_ms: at.now_ms,
            changes,
        }
    }

    pub(crate) fn planned(&self, entries: Vec<Entry>, strict: bool) -> Planned {
        let plan = self.vault.plan(&entries);
        Planned {
            entries,
            strict,
            base: self.vault.head().token(),
            runs: self.vault.reads(&plan),
            plan,
        }
    }

    /// What a plan has to read.
    pub(crate) fn keys_of(&self, planned: &Planned) -> Vec<Key> {
        let runs = planned.runs.iter();
        runs.flat_map(|run| self.vault.keys_of(run)).collect()
    }

    /// Builds the batch once everything that it rewrites is read.
    pub(crate) fn prepare(
        &self,
        planned: &Planned,
        mut values: &[Option<Vec<u8>>],
        draws: &mut Draws,
    ) -> Result<Prepared, Error> {
        if planned.base != self.vault.head().token() {
            // Another operation of this memory moved the head meanwhile.
            return Ok(Prepared::Moved);
        }
        let mut read = Vec::with_capacity(planned.runs.len());
        for run in &planned.runs {
            let (own, later) = values.split_at(run.values().min(values.len()));
            values = later;
            match self.vault.read_run(run, own) {
                Ok(entries) => read.push(entries),
                // Folded away by another writer; if it is lost instead, the reader finds out.
                Err(VaultError::Missing { .. }) => return Ok(Prepared::Moved),
                Err(error) => return Err(error.into()),
            }
        }
        let profile = match self.engine.profile_after(&planned.entries) {
            Some(records) => ProfileUpdate::Write(heard(records)),
            // Stored by a build that kept none, or made anew by a repair.
            None if self.vault.profile_key().is_none() && !planned.entries.is_empty() => {
                ProfileUpdate::Write(heard(self.engine.profile_records()))
            }
            // What goes on with an erasure was not the one who began it: the profile is made anew, whatever that one left.
            None if planned.entries.is_empty() && planned.plan.erases() => {
                ProfileUpdate::Write(heard(self.engine.profile_records()))
            }
            None => ProfileUpdate::Keep,
        };
        let batch = self
            .vault
            .batch(&planned.plan, read, &planned.entries, profile, draws)?;
        Ok(Prepared::Batch(Box::new(batch)))
    }

    fn rewrite(
        &mut self,
        op: &mut Op,
        planned: &Planned,
        values: &[Option<Vec<u8>>],
        draws: &mut Draws,
    ) -> Result<Step, Error> {
        let Prepared::Batch(mut batch) = self.prepare(planned, values, draws)? else {
            return replan(op, &self.vault);
        };
        op.deletes(&batch.deletes);
        // The values go to the store; what remains is what the state needs afterwards.
        let step = Step::Commit {
            expected_head: batch.expected_head,
            puts: core::mem::take(&mut batch.puts),
            deletes: core::mem::take(&mut batch.deletes),
            strict: planned.strict,
        };
        op.phase = Phase::Committing(batch);
        Ok(step)
    }

    /// Takes over what the store has written.
    pub(crate) fn installed(&mut self, batch: Batch) -> Result<(), Error> {
        for sequenced in batch.entries {
            if self.vault.absorb(&sequenced)? {
                self.engine.apply(sequenced.entry);
            }
        }
        self.vault.install(batch.head);
        Ok(())
    }

    fn committed(
        &mut self,
        op: &mut Op,
        batch: Batch,
        draws: &mut Draws,
        at: &Ambient,
    ) -> Result<Step, Error> {
        self.installed(batch)?;
        op.replans = 0;
        if op.sweeping == Sweeping::No {
            op.sweeping = Sweeping::AfterCommit;
        }
        self.sweep(op, draws, at)
    }

    /// Goes on taking out what was erased, then with what waits for it.
    fn sweep(&mut self, op: &mut Op, draws: &mut Draws, at: &Ambient) -> Result<Step, Error> {
        if !self.vault.is_swept() {
            return self.write(op, Vec::new(), true, draws);
        }
        if let Some(response) = op.erasure.as_mut().and_then(|erasure| erasure.end()) {
            op.phase = Phase::Finished;
            return Ok(Step::Done(Ok(response)));
        }
        match core::mem::replace(&mut op.sweeping, Sweeping::No) {
            Sweeping::AfterCommit => self.advance(op, engine::Reply::Committed, draws, at),
            _ => {
                op.phase = Phase::Finished;
                Ok(Step::Done(Ok(Response::Refresh {})))
            }
        }
    }
}

fn heard(records: Vec<(Record, i64)>) -> Vec<Heard> {
    records
        .into_iter()
        .map(|(record, heard_ms)| Heard { record, heard_ms })
        .collect()
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
    let fits = embedded.len() == texts
        && embedded
            .iter()
            .all(|of_text| of_text.len() == heads && of_text.iter().all(is_sound));
    if fits {
        Ok(embedded)
    } else {
        Err(EncodeFailure::Failed)
    }
}

/// Whether an embedding that comes from outside has the shape of one.
pub(crate) fn is_sound(one: &Embedding) -> bool {
    (one.vector.is_empty() || one.vector.len() == VECTOR_DIMENSIONS)
        && one.scale.is_finite()
        && one.scale > 0.0
        && one.features.len() <= 64
        && one.features.iter().all(|feature| feature.is_finite())
}
