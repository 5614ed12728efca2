use foremind_memory::{
    DataKey, KeySource, Memory, Op, OpenOptions, OpenReply, OpenStep, Opening, PublishReply,
    PublishStep, Published, Publisher, Reply, Report, Request, Response, Step, Survey, Task,
    TaskReply, TaskStep, Written,
};
use foremind_types::{Error, ErrorCode};
use foremind_vault::Key;

use crate::{Encoder, LaggingStore, SeededAmbient, Store};

/// Runs an operation to its end.
///
/// # Errors
/// The operation's.
pub fn drive(
    memory: &mut Memory,
    request: Request,
    store: &mut dyn Store,
    encoder: &mut dyn Encoder,
    ambient: &mut SeededAmbient,
) -> Result<Response, Error> {
    let mut running = Running::new(memory, request);
    loop {
        if let Some(result) = running.tick(memory, store, encoder, ambient) {
            return result;
        }
    }
}

/// An operation that a test moves on step by step, to interleave it with others.
#[derive(Debug)]
pub struct Running {
    op: Op,
    reply: Option<Reply>,
}

impl Running {
    /// Begins.
    #[must_use]
    pub fn new(memory: &Memory, request: Request) -> Self {
        Self {
            op: memory.begin(request),
            reply: Some(Reply::Begin),
        }
    }

    /// Takes one step and does what it asks for; `Some` at the end.
    pub fn tick(
        &mut self,
        memory: &mut Memory,
        store: &mut dyn Store,
        encoder: &mut dyn Encoder,
        ambient: &mut SeededAmbient,
    ) -> Option<Result<Response, Error>> {
        let reply = self.reply.take()?;
        let reply = match memory.step(&mut self.op, reply, &ambient.tick()) {
            Step::NeedEmbed { texts, heads } => Reply::Embedded(encoder.encode(&texts, &heads)),
            Step::NeedRead { keys } => match store.read(&keys) {
                Ok(values) => Reply::Values(values),
                Err(error) => Reply::Failed(error),
            },
            Step::NeedNames => match store.names() {
                Ok(names) => Reply::Names(Some(names)),
                Err(error) if error.code == ErrorCode::Unsupported => Reply::Names(None),
                Err(error) => Reply::Failed(error),
            },
            Step::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => match store.write(expected_head, &puts, &deletes, strict) {
                Ok(Written::Committed) => Reply::Committed,
                Ok(Written::Conflict) => Reply::Conflict,
                Err(error) => Reply::Failed(error),
            },
            Step::Done(result) => return Some(result),
        };
        self.reply = Some(reply);
        None
    }
}

/// What an opening gives.
pub type Opened = Result<Memory, Error>;

/// Stands for a platform that wraps keys by itself.
#[derive(Clone, Copy, Debug)]
pub struct FakeWrapper(pub u8);

impl FakeWrapper {
    /// Marks and masks the key.
    #[must_use]
    pub fn wrap(self, data_key: &DataKey) -> Vec<u8> {
        let masked = data_key.as_bytes().iter().map(|byte| byte ^ self.0);
        core::iter::once(self.0).chain(masked).collect()
    }

    /// Inverse of [`FakeWrapper::wrap`].
    ///
    /// # Errors
    /// `wrong-key` for what another one wrapped.
    pub fn unwrap(self, wrapped: &[u8]) -> Result<DataKey, Error> {
        let wrong = || Error::new(ErrorCode::WrongKey, "wrapped by another key");
        let (mark, masked) = wrapped.split_first().ok_or_else(wrong)?;
        let mut bytes: [u8; 32] = masked.try_into().map_err(|_| wrong())?;
        if *mark != self.0 {
            return Err(wrong());
        }
        for byte in &mut bytes {
            *byte ^= self.0;
        }
        Ok(DataKey::new(bytes))
    }
}

/// Opens with a key of the host.
///
/// # Errors
/// The opening's.
pub fn open(host_key: [u8; 32], store: &mut dyn Store, ambient: &mut SeededAmbient) -> Opened {
    let options = OpenOptions::new(KeySource::Host(DataKey::new(host_key)));
    open_with(options, FakeWrapper(0), store, ambient)
}

/// Opens with any options.
///
/// # Errors
/// The opening's.
pub fn open_with(
    options: OpenOptions,
    wrapper: FakeWrapper,
    store: &mut dyn Store,
    ambient: &mut SeededAmbient,
) -> Opened {
    let mut opening = Opening::new(options);
    let mut reply = OpenReply::Begin;
    loop {
        reply = match opening.step(reply, &ambient.tick()) {
            OpenStep::NeedRead { keys } => read_opening(store, &keys),
            OpenStep::NeedKey { wrapped, .. } => match wrapper.unwrap(&wrapped) {
                Ok(data_key) => OpenReply::DataKey(data_key),
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::WrapKey { data_key } => OpenReply::Wrapped(wrapper.wrap(&data_key)),
            OpenStep::Profile => OpenReply::Continue,
            OpenStep::NeedNames => store
                .names()
                .map_or_else(OpenReply::Failed, OpenReply::Names),
            OpenStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => match store.write(expected_head, &puts, &deletes, strict) {
                Ok(Written::Committed) => OpenReply::Committed,
                Ok(Written::Conflict) => OpenReply::Conflict,
                Err(error) => OpenReply::Failed(error),
            },
            OpenStep::Done(result) => return result,
        };
    }
}

/// Reads for an opening. Where batches are not atomic, a making that was cut is told from a lost head.
pub fn read_opening(store: &mut dyn Store, keys: &[Key]) -> OpenReply {
    let read = |store: &mut dyn Store| {
        let mut values = store.read(keys)?;
        if keys == [Key::slot(), Key::head()]
            && !store.capabilities().atomic_batch
            && let [slot @ Some(_), None] = values.as_mut_slice()
            && !store.names()?.iter().any(|name| Key::is_of_log(name))
            && let Some(slot) = slot.take()
        {
            return Ok(OpenReply::KeyAlone(slot));
        }
        Ok(OpenReply::Values(values))
    };
    read(store).unwrap_or_else(OpenReply::Failed)
}

/// What a task reads and writes beside the store.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// What was exported, or is to be imported.
    pub bytes: Vec<u8>,
    /// How much is handed over at once; 0: everything.
    pub piece_bytes: usize,
    /// How much is handed over already.
    pub read: usize,
}

/// Runs a task to its end.
///
/// # Errors
/// The task's.
pub fn run(
    memory: &mut Memory,
    task: Task,
    wrapper: FakeWrapper,
    file: &mut File,
    store: &mut dyn Store,
    ambient: &mut SeededAmbient,
) -> Result<Report, Error> {
    let mut chore = memory.begin_task(task);
    let mut reply = TaskReply::Begin;
    loop {
        let step = memory.step_task(&mut chore, reply, &ambient.tick());
        reply = match served(step, wrapper, file, store) {
            Ok(reply) => reply,
            Err(end) => return *end,
        };
    }
}

/// Verifies or repairs what is stored.
///
/// # Errors
/// The survey's.
pub fn survey(
    mut survey: Survey,
    wrapper: FakeWrapper,
    store: &mut dyn Store,
    ambient: &mut SeededAmbient,
) -> Result<Report, Error> {
    let mut reply = TaskReply::Begin;
    loop {
        let step = survey.step(reply, &ambient.tick());
        reply = match served(step, wrapper, &mut File::default(), store) {
            Ok(reply) => reply,
            Err(end) => return *end,
        };
    }
}

/// Publishes a memory to a replica, once; the replica's store takes single values, one after the other.
///
/// # Errors
/// The publication's.
pub fn publish(
    publisher: &mut Publisher,
    memory: &Memory,
    store: &mut dyn Store,
    replica: &mut LaggingStore,
    now_ms: i64,
) -> Result<Published, Error> {
    let mut reply = PublishReply::Begin;
    loop {
        let done = |result: Result<(), Error>| match result {
            Ok(()) => PublishReply::Done,
            Err(error) => PublishReply::Failed(error),
        };
        reply = match publisher.step(memory, reply, now_ms) {
            PublishStep::NeedRead { keys } => store
                .read(&keys)
                .map_or_else(PublishReply::Failed, PublishReply::Values),
            PublishStep::Write(puts) => {
                let mut puts = puts.into_iter();
                done(puts.try_for_each(|(key, value)| replica.publish(&key, Some(value))))
            }
            PublishStep::Delete(keys) => {
                done(keys.iter().try_for_each(|key| replica.publish(key, None)))
            }
            PublishStep::End(end) => return end,
            // It cannot be listed.
            _ => PublishReply::Names(None),
        };
    }
}

/// Does what a step asks for; `Err` holds the end.
fn served(
    step: TaskStep,
    wrapper: FakeWrapper,
    file: &mut File,
    store: &mut dyn Store,
) -> Result<TaskReply, Box<Result<Report, Error>>> {
    let failed = TaskReply::Failed;
    Ok(match step {
        TaskStep::NeedRead { keys } => store.read(&keys).map_or_else(failed, TaskReply::Values),
        TaskStep::NeedNames if !store.capabilities().list => TaskReply::Names(None),
        TaskStep::NeedNames => store
            .names()
            .map_or_else(failed, |names| TaskReply::Names(Some(names))),
        TaskStep::NeedKey { wrapped, .. } => wrapper
            .unwrap(&wrapped)
            .map_or_else(failed, TaskReply::DataKey),
        TaskStep::WrapKey { data_key } => TaskReply::Wrapped(wrapper.wrap(&data_key)),
        TaskStep::Commit {
            expected_head,
            puts,
            deletes,
            strict,
        } => match store.write(expected_head, &puts, &deletes, strict) {
            Ok(Written::Committed) => TaskReply::Committed,
            Ok(Written::Conflict) => TaskReply::Conflict,
            Err(error) => failed(error),
        },
        TaskStep::Replace { puts, deletes } => match store.replace(&puts, &deletes) {
            Ok(()) => TaskReply::Committed,
            Err(error) => failed(error),
        },
        TaskStep::Piece(bytes) => {
            file.bytes.extend_from_slice(&bytes);
            TaskReply::Continue
        }
        TaskStep::NeedPiece => {
            let left = &file.bytes[file.read..];
            let length = match file.piece_bytes {
                0 => left.len(),
                most => left.len().min(most),
            };
            file.read += length;
            let piece = left.get(..length).filter(|piece| !piece.is_empty());
            TaskReply::Piece(piece.map(<[u8]>::to_vec))
        }
        TaskStep::Done(end) => return Err(Box::new(end)),
        _ => failed(Error::new(ErrorCode::Internal, "a step of a later build")),
    })
}
