//! Reading what other writers stored.

use std::collections::VecDeque;

use foremind_types::{Error, ErrorCode};
use foremind_vault::{Head, HeadToken, Key, Run, Sequenced, Vault, VaultError};

use foremind_engine::Engine;

/// Most values asked for at once, so that opening a large memory does not hold it twice.
pub(crate) const VALUES_PER_READ: usize = 32;
/// How often a head may move away under a reader.
const ATTEMPTS: u32 = 32;

/// A reader on its way to the store's head.
#[derive(Debug)]
pub(crate) struct CatchUp {
    phase: Phase,
    attempts: u32,
    /// Whether an older head than one seen is no news.
    stale_reads: bool,
    /// Whether the first state is still being read, which has to be whole.
    opening: bool,
    /// Of a replica: what was read of the state to come.
    held: Vec<Sequenced>,
    /// The head under which a value was missing: if it is still the head then, the value is lost.
    hole: Option<(HeadToken, VaultError)>,
}

#[derive(Debug)]
enum Phase {
    Head {
        /// The generation known when the head was asked for.
        floor: u64,
    },
    Runs {
        head: Box<Head>,
        rest: VecDeque<Run>,
        asked: Vec<Run>,
    },
}

/// How far a reader is.
pub(crate) enum Progress {
    Read(Vec<Key>),
    Done,
}

impl CatchUp {
    /// Starts with reading the head: the keys to ask for.
    pub(crate) fn start(vault: &Vault) -> (Self, Vec<Key>) {
        let catch_up = Self {
            phase: head_phase(vault),
            attempts: 0,
            stale_reads: vault.reads_stale(),
            opening: false,
            held: Vec::new(),
            hole: None,
        };
        (catch_up, head_keys(vault.reads_stale()))
    }

    /// Starts from the head that `vault` was opened with.
    pub(crate) fn opened(vault: &Vault) -> (Self, Progress) {
        let (mut catch_up, _) = Self::start(vault);
        catch_up.opening = true;
        let head = vault.head().clone();
        catch_up.phase = Phase::Runs {
            rest: vault.missing(&head).into(),
            head: Box::new(head),
            asked: Vec::new(),
        };
        let progress = catch_up.ask(vault);
        (catch_up, progress)
    }

    /// Takes the values that were asked for.
    pub(crate) fn feed(
        &mut self,
        values: &[Option<Vec<u8>>],
        vault: &mut Vault,
        engine: &mut Engine,
    ) -> Result<Progress, Error> {
        match &mut self.phase {
            Phase::Head { floor } => {
                if self.stale_reads {
                    if let Some(stamp) = values.get(1).and_then(Option::as_ref) {
                        vault.saw_stamp(stamp);
                    }
                    // Where it was seen before, it is only not seen from here.
                    if values.first().is_none_or(Option::is_none) && !self.opening {
                        return Ok(Progress::Done);
                    }
                }
                let value = values.first().and_then(Option::as_ref).ok_or_else(|| {
                    Error::new(
                        ErrorCode::StorageLost,
                        "the stored memory is gone; open it again to start a new one",
                    )
                })?;
                let head = match vault.read_head(value, *floor) {
                    Err(VaultError::Replaced { seen, found })
                        if self.stale_reads && found < seen =>
                    {
                        return Ok(Progress::Done);
                    }
                    head => head?,
                };
                if let Some((token, error)) = self.hole.take()
                    && token == head.token()
                {
                    return Err(error.into());
                }
                if head.token().generation() <= vault.head().token().generation() {
                    return Ok(Progress::Done);
                }
                self.phase = Phase::Runs {
                    rest: vault.missing(&head).into(),
                    head: Box::new(head),
                    asked: Vec::new(),
                };
            }
            Phase::Runs { head, asked, .. } => {
                let mut values = values;
                for run in core::mem::take(asked) {
                    let (own, later) = values.split_at(run.values().min(values.len()));
                    values = later;
                    match vault.read_run(&run, own) {
                        // All of it or nothing: the rest may not be seen for a while.
                        Ok(entries) if self.stale_reads => self.held.extend(entries),
                        Ok(entries) => absorb(entries, vault, engine)?,
                        // What a replica does not show yet: what is known stays.
                        Err(VaultError::Missing { .. }) if self.stale_reads => {
                            if self.opening {
                                return Err(Error::new(
                                    ErrorCode::StorageFailed,
                                    "the replica cannot be seen as a whole yet; try again in a minute",
                                ));
                            }
                            return Ok(Progress::Done);
                        }
                        // Another writer folded it away since the head was read, or it is lost.
                        Err(error @ VaultError::Missing { .. }) => {
                            self.attempts += 1;
                            if self.attempts >= ATTEMPTS {
                                return Err(Error::new(
                                    ErrorCode::Conflict,
                                    "other writers moved the memory on during every attempt to read it; try again",
                                ));
                            }
                            self.hole = Some((head.token(), error));
                            self.phase = head_phase(vault);
                            return Ok(Progress::Read(head_keys(self.stale_reads)));
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        let progress = self.ask(vault);
        if matches!(progress, Progress::Done)
            && let Phase::Runs { head, .. } = &self.phase
        {
            absorb(core::mem::take(&mut self.held), vault, engine)?;
            vault.install((**head).clone());
        }
        Ok(progress)
    }

    fn ask(&mut self, vault: &Vault) -> Progress {
        let Phase::Runs { rest, asked, .. } = &mut self.phase else {
            return Progress::Done;
        };
        let mut keys = Vec::new();
        while let Some(run) = rest.front() {
            if !keys.is_empty() && keys.len() + run.values() > VALUES_PER_READ {
                break;
            }
            keys.extend(vault.keys_of(run));
            asked.extend(rest.pop_front());
        }
        if keys.is_empty() {
            Progress::Done
        } else {
            Progress::Read(keys)
        }
    }
}

fn absorb(entries: Vec<Sequenced>, vault: &mut Vault, engine: &mut Engine) -> Result<(), Error> {
    for sequenced in entries {
        if vault.absorb(&sequenced)? {
            engine.apply(sequenced.entry);
        }
    }
    Ok(())
}

/// What is asked for to see how far the store is.
fn head_keys(stale_reads: bool) -> Vec<Key> {
    if stale_reads {
        return vec![Key::head(), Key::stamp()];
    }
    vec![Key::head()]
}

fn head_phase(vault: &Vault) -> Phase {
    Phase::Head {
        floor: vault.head().token().generation(),
    }
}
