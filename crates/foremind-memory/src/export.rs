//! Everything stored, as a file.

use foremind_types::{Ambient, Error, ErrorCode};
use foremind_vault::{
    Draws, PARCEL_FRAME_BYTES, ParcelWriter, Passphrase, PassphraseCost, Run, VaultError,
};

use crate::Memory;
use crate::catch_up::{CatchUp, Progress, VALUES_PER_READ};
use crate::json;
use crate::lines::Line;
use crate::task::{Report, TaskReply, TaskStep, out_of_turn};

/// How often runs may be folded away under it.
const ATTEMPTS: u32 = 32;

/// Writes the log, entry by entry. What is committed meanwhile may or may not be in it.
#[derive(Debug)]
pub(crate) struct Export {
    passphrase: Option<Passphrase>,
    writer: Option<ParcelWriter>,
    attempts: u32,
    /// The last entry written.
    done: u64,
    entries: u64,
    bytes: u64,
    hash: blake3::Hasher,
    /// Plaintext that is not written yet.
    held: Vec<u8>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Start,
    CatchingUp(Box<CatchUp>),
    Ready,
    Reading(Vec<Run>),
    Ending,
    Finished,
}

impl Export {
    pub(crate) fn new(passphrase: Option<Passphrase>) -> Self {
        Self {
            passphrase,
            writer: None,
            attempts: 0,
            done: 0,
            entries: 0,
            bytes: 0,
            hash: blake3::Hasher::new(),
            held: Vec::new(),
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
                if let Some(passphrase) = self.passphrase.take() {
                    let cost = PassphraseCost::default();
                    let writer = ParcelWriter::new(&passphrase, cost, draws)?;
                    self.writer = Some(writer);
                }
                self.line(Line::begin(memory.memory_id(), at.now_ms))?;
                Ok(self.catch_up(memory))
            }
            (Phase::CatchingUp(mut reader), TaskReply::Values(values)) => {
                match memory.feed(&mut reader, &values)? {
                    Progress::Read(keys) => {
                        self.phase = Phase::CatchingUp(reader);
                        Ok(TaskStep::NeedRead { keys })
                    }
                    Progress::Done => self.next(memory),
                }
            }
            (Phase::Ready, TaskReply::Continue) => self.next(memory),
            (Phase::Reading(runs), TaskReply::Values(values)) => self.read(memory, &runs, &values),
            (Phase::Ending, TaskReply::Continue) => Ok(TaskStep::Done(Ok(Report::Export {
                entries: self.entries,
                bytes: self.bytes,
            }))),
            _ => Err(out_of_turn()),
        }
    }

    fn catch_up(&mut self, memory: &Memory) -> TaskStep {
        let (reader, keys) = CatchUp::start(memory.vault());
        self.phase = Phase::CatchingUp(Box::new(reader));
        TaskStep::NeedRead { keys }
    }

    fn next(&mut self, memory: &Memory) -> Result<TaskStep, Error> {
        let vault = memory.vault();
        let rest = vault.head().runs().iter();
        let rest = rest.filter(|run| *run.sequences().end() > self.done);
        let mut keys = Vec::new();
        let mut runs = Vec::new();
        for run in rest {
            if !keys.is_empty() && keys.len() + run.values() > VALUES_PER_READ {
                break;
            }
            keys.extend(vault.keys_of(run));
            runs.push(run.clone());
        }
        if keys.is_empty() {
            return self.end();
        }
        self.phase = Phase::Reading(runs);
        Ok(TaskStep::NeedRead { keys })
    }

    fn read(
        &mut self,
        memory: &Memory,
        runs: &[Run],
        mut values: &[Option<Vec<u8>>],
    ) -> Result<TaskStep, Error> {
        for run in runs {
            let (own, later) = values.split_at(run.values().min(values.len()));
            values = later;
            let entries = match memory.vault().read_run(run, own) {
                Ok(entries) => entries,
                Err(error @ VaultError::Missing { .. }) => {
                    // Folded away meanwhile, or lost.
                    self.attempts += 1;
                    if self.attempts >= ATTEMPTS {
                        return Err(error.into());
                    }
                    return Ok(self.catch_up(memory));
                }
                Err(error) => return Err(error.into()),
            };
            let done = self.done;
            for one in entries.into_iter().filter(|one| one.sequence > done) {
                let line = Line::entry(&one.entry).ok_or_else(|| {
                    Error::new(ErrorCode::Internal, "an entry has no form in an export")
                })?;
                self.line(line)?;
                self.done = one.sequence;
                self.entries += 1;
            }
        }
        if self.held.len() < PARCEL_FRAME_BYTES {
            return self.next(memory);
        }
        let piece = self.seal(false)?;
        self.phase = Phase::Ready;
        Ok(TaskStep::Piece(piece))
    }

    fn end(&mut self) -> Result<TaskStep, Error> {
        self.line(Line::End {
            entries: self.entries,
            blake3: self.hash.finalize().to_hex().to_string(),
        })?;
        let piece = self.seal(true)?;
        self.phase = Phase::Ending;
        Ok(TaskStep::Piece(piece))
    }

    fn line(&mut self, line: Line) -> Result<(), Error> {
        let from = self.held.len();
        let written = json::codec().and_then(|codec| (codec.write)(&json::Line(line)));
        let json = written
            .ok_or_else(|| Error::new(ErrorCode::Internal, "an entry cannot be written as JSON"))?;
        self.held.extend_from_slice(json.as_bytes());
        self.held.push(b'\n');
        self.hash.update(&self.held[from..]);
        Ok(())
    }

    /// What is held, as it goes to the file.
    fn seal(&mut self, last: bool) -> Result<Vec<u8>, Error> {
        let plain = core::mem::take(&mut self.held);
        let piece = match &mut self.writer {
            None => plain,
            Some(writer) => {
                let plain = zeroize::Zeroizing::new(plain);
                let mut piece = Vec::new();
                if self.bytes == 0 {
                    piece.extend_from_slice(writer.header());
                }
                let frames = plain.len().div_ceil(PARCEL_FRAME_BYTES);
                for (number, frame) in plain.chunks(PARCEL_FRAME_BYTES).enumerate() {
                    piece.extend(writer.frame(frame, last && number + 1 == frames)?);
                }
                piece
            }
        };
        self.bytes += piece.len() as u64;
        Ok(piece)
    }
}
