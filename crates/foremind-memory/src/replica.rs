//! A read replica: values of a memory that are put into a store which is read late and cannot be compared with, such as
//! Cloudflare KV, so that the memory is read near to where it is asked for.

use foremind_types::small::{SmallMap, SmallSet};
use std::collections::VecDeque;

use foremind_types::{Error, ErrorCode};
use foremind_vault::{Key, Vault};

use crate::catch_up::VALUES_PER_READ;
use crate::task::out_of_turn;
use crate::{KeySource, Memory, OpenOptions};

/// Least time from the end of one publication to the next one, in milliseconds: such stores take one write a second for each name.
pub const PUBLISH_EVERY_MS: i64 = 1_000;
/// How long the replica keeps a value that the head no longer names, in milliseconds, for who still sees an older head.
pub const RETAIN_MS: i64 = 300_000;
/// Longest wait after failures, in milliseconds.
const LONGEST_WAIT_MS: i64 = 64_000;

impl OpenOptions {
    /// Of a replica: never made, never written to, and an older head than one seen is no news.
    #[must_use]
    pub fn replica(key: KeySource) -> Self {
        Self {
            create: false,
            stale_reads: true,
            ..Self::new(key)
        }
    }
}

/// How fresh the answers of a memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// How many commits led to the state that answers.
    pub generation: u64,
    /// At most so many milliseconds ago that state was the newest one; absent for a replica that has not seen yet when
    /// its state was published. 0 for a memory that reads its own store, by whose last reading it answers.
    pub age_ms: Option<u64>,
    /// A later generation that is published and cannot be seen as a whole yet.
    pub newer: Option<u64>,
}

impl Memory {
    /// How fresh this memory's answers are, as of the last operation that looked into the store.
    #[must_use]
    pub fn freshness(&self, now_ms: i64) -> Freshness {
        let vault = self.vault();
        let generation = self.generation();
        if !vault.reads_stale() {
            return Freshness {
                generation,
                age_ms: Some(0),
                newer: None,
            };
        }
        let age_ms = vault.published_ms().map(|at_ms| {
            // Two machines' clocks: what was published in the future is fresh.
            u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or_default()
        });
        Freshness {
            generation,
            age_ms,
            newer: vault.newer_generation(),
        }
    }
}

/// What a publisher needs next. It reads from the memory's own store and writes to the replica's.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PublishStep {
    /// List the names in the replica; answer with [`PublishReply::Names`].
    NeedNames,
    /// Read values from the memory's own store; answer with [`PublishReply::Values`].
    NeedRead {
        /// At least one.
        keys: Vec<Key>,
    },
    /// Write values to the replica, in any order; answer with [`PublishReply::Done`].
    Write(Vec<(Key, Vec<u8>)>),
    /// Delete values from the replica, some of which may be absent; answer with [`PublishReply::Done`].
    Delete(Vec<Key>),
    /// The end.
    End(Result<Published, Error>),
}

/// What the host answers to a [`PublishStep`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PublishReply {
    /// The first call of a publication.
    Begin,
    /// The names of all values; `None` where the replica cannot list them.
    Names(Option<Vec<String>>),
    /// One for each key, in the order asked; `None`: absent.
    Values(Vec<Option<Vec<u8>>>),
    /// It is done.
    Done,
    /// A store failed, for instance because the replica takes no more for now (429).
    Failed(Error),
}

/// What was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Of the head.
    pub generation: u64,
    /// Values written, the stamp included.
    pub values: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Keeps a replica up to date, for one memory that is open where it is written to.
///
/// The values of the log go first, then `key`, `head`, and `stamp`, which says what is published since when. One
/// publication at a time and at most one a second; nothing is written twice but `head` and `stamp`.
#[derive(Debug, Default)]
pub struct Publisher {
    /// What is in the replica, as far as this publisher wrote it.
    written: SmallMap<Key, Option<[u8; 32]>>,
    /// What is to be deleted, and since when nothing names it.
    leaving: SmallMap<Key, i64>,
    listed: bool,
    failures: u32,
    not_before_ms: Option<i64>,
    under_way: Option<Box<Publication>>,
}

#[derive(Debug)]
struct Publication {
    begun_ms: i64,
    generation: u64,
    phase: Phase,
    slot: Vec<u8>,
    head: Vec<u8>,
    stamp: Vec<u8>,
    /// What is to be read and written.
    rest: VecDeque<Key>,
    asked: Vec<Key>,
    deleting: Vec<Key>,
    done: Published,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    Naming,
    Head,
    Log,
    Writing(What),
    Deleting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Log,
    Slot,
    Head,
    Stamp,
}

impl Publisher {
    /// Of a replica of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Milliseconds until the next publication may begin; it backs off after failures.
    #[must_use]
    pub fn wait_ms(&self, now_ms: i64) -> u64 {
        let until = self.not_before_ms.unwrap_or(now_ms);
        u64::try_from(until.saturating_sub(now_ms)).unwrap_or_default()
    }

    /// Says what the publication needs next; the first reply is [`PublishReply::Begin`], which gives up one that is
    /// under way. `memory` is as fresh as the host wants the replica to be: it refreshes it before.
    ///
    /// Ends with `limit-reached` when it begins too early ([`Publisher::wait_ms`]), and with `conflict` when the store has moved on from what
    /// `memory` knows. The replica is never damaged by what fails here; the next publication goes on.
    pub fn step(&mut self, memory: &Memory, reply: PublishReply, now_ms: i64) -> PublishStep {
        if reply == PublishReply::Begin {
            if self.wait_ms(now_ms) > 0 {
                return PublishStep::End(Err(Error::new(
                    ErrorCode::LimitReached,
                    "a replica takes one publication a second, and fewer after failures; try again later",
                )));
            }
            self.under_way = Some(Box::new(Publication::new(memory, now_ms)));
        }
        let Some(mut under_way) = self.under_way.take() else {
            return PublishStep::End(Err(out_of_turn()));
        };
        let step = self.advance(&mut under_way, memory.vault(), reply);
        match step {
            Ok(Some(step)) => {
                self.under_way = Some(under_way);
                step
            }
            Ok(None) => {
                self.failures = 0;
                self.not_before_ms = Some(now_ms + PUBLISH_EVERY_MS);
                PublishStep::End(Ok(under_way.done))
            }
            Err(error) => {
                let wait_ms = PUBLISH_EVERY_MS << self.failures.min(10);
                self.failures = self.failures.saturating_add(1);
                self.not_before_ms = Some(now_ms + wait_ms.min(LONGEST_WAIT_MS));
                PublishStep::End(Err(error))
            }
        }
    }

    /// `None`: it is over.
    fn advance(
        &mut self,
        now: &mut Publication,
        vault: &Vault,
        reply: PublishReply,
    ) -> Result<Option<PublishStep>, Error> {
        match (now.phase, reply) {
            (_, PublishReply::Failed(error)) => Err(error),
            (Phase::Start, PublishReply::Begin) if !self.listed => {
                now.phase = Phase::Naming;
                Ok(Some(PublishStep::NeedNames))
            }
            (Phase::Start, PublishReply::Begin) => Ok(Some(now.read_head())),
            (Phase::Naming, PublishReply::Names(names)) => {
                self.listed = true;
                // What an earlier publisher left is written anew where it is named, and leaves where it is not.
                let names = names.unwrap_or_default();
                let strays = names.iter().filter(|name| Key::is_of_log(name));
                for key in strays.filter_map(|name| Key::parse(name)) {
                    self.written.insert(key, None);
                }
                Ok(Some(now.read_head()))
            }
            (Phase::Head, PublishReply::Values(values)) => {
                let mut values = values.into_iter();
                let (slot, head) = (values.next().flatten(), values.next().flatten());
                let (Some(slot), Some(head)) = (slot, head) else {
                    return Err(moved());
                };
                let known = foremind_vault::HeadToken::of(&head) == Some(vault.head().token());
                if !known || now.generation != vault.head().token().generation() {
                    return Err(moved());
                }
                now.stamp = vault.stamp(now.begun_ms);
                (now.slot, now.head) = (slot, head);
                let named = named(vault);
                for key in self.written.keys() {
                    if Key::is_of_log(key.as_str()) && !named.contains(key) {
                        self.leaving.entry(key.clone()).or_insert(now.begun_ms);
                    }
                }
                self.leaving.retain(|key, _| !named.contains(key));
                let missing = |key: &Key| self.written.get(key).is_none_or(Option::is_none);
                now.rest = named.into_iter().filter(missing).collect();
                Ok(Some(self.log(now)))
            }
            (Phase::Log, PublishReply::Values(values)) => {
                let keys = core::mem::take(&mut now.asked);
                let values = values.into_iter().chain(core::iter::repeat(None));
                let puts: Option<Vec<_>> = keys
                    .into_iter()
                    .zip(values)
                    .map(|(key, value)| Some((key, value?)))
                    .collect();
                // Folded away since the head was read.
                let puts = puts.ok_or_else(moved)?;
                Ok(Some(now.write(What::Log, puts)))
            }
            (Phase::Writing(what), PublishReply::Done) => {
                for key in core::mem::take(&mut now.asked) {
                    let hash = match what {
                        What::Slot => *blake3::hash(&now.slot).as_bytes(),
                        What::Head => *blake3::hash(&now.head).as_bytes(),
                        What::Log | What::Stamp => [0; 32],
                    };
                    self.written.insert(key, Some(hash));
                }
                Ok(match what {
                    What::Log => Some(self.log(now)),
                    What::Slot => Some(self.head(now)),
                    What::Head => Some(now.write_stamp()),
                    What::Stamp => self.delete(now),
                })
            }
            (Phase::Deleting, PublishReply::Done) => {
                for key in core::mem::take(&mut now.deleting) {
                    self.leaving.remove(&key);
                    self.written.remove(&key);
                }
                Ok(None)
            }
            _ => Err(out_of_turn()),
        }
    }

    /// The next values of the log, or what follows them.
    fn log(&self, now: &mut Publication) -> PublishStep {
        if !now.rest.is_empty() {
            let count = now.rest.len().min(VALUES_PER_READ);
            now.asked = now.rest.drain(..count).collect();
            now.phase = Phase::Log;
            let keys = now.asked.clone();
            return PublishStep::NeedRead { keys };
        }
        if self.has(&Key::slot(), &now.slot) {
            return self.head(now);
        }
        let put = (Key::slot(), now.slot.clone());
        now.write(What::Slot, vec![put])
    }

    fn head(&self, now: &mut Publication) -> PublishStep {
        if self.has(&Key::head(), &now.head) {
            return now.write_stamp();
        }
        let put = (Key::head(), now.head.clone());
        now.write(What::Head, vec![put])
    }

    fn has(&self, key: &Key, value: &[u8]) -> bool {
        self.written.get(key) == Some(&Some(*blake3::hash(value).as_bytes()))
    }

    fn delete(&mut self, now: &mut Publication) -> Option<PublishStep> {
        let due = |at_ms: &i64| now.begun_ms.saturating_sub(*at_ms) >= RETAIN_MS;
        let keys = self.leaving.iter().filter(|(_, at_ms)| due(at_ms));
        now.deleting = keys.map(|(key, _)| key.clone()).collect();
        if now.deleting.is_empty() {
            return None;
        }
        now.phase = Phase::Deleting;
        Some(PublishStep::Delete(now.deleting.clone()))
    }
}

impl Publication {
    fn new(memory: &Memory, now_ms: i64) -> Self {
        let generation = memory.generation();
        Self {
            begun_ms: now_ms,
            generation,
            phase: Phase::Start,
            slot: Vec::new(),
            head: Vec::new(),
            stamp: Vec::new(),
            rest: VecDeque::new(),
            asked: Vec::new(),
            deleting: Vec::new(),
            done: Published {
                generation,
                values: 0,
                bytes: 0,
            },
        }
    }

    fn read_head(&mut self) -> PublishStep {
        self.phase = Phase::Head;
        let keys = vec![Key::slot(), Key::head()];
        PublishStep::NeedRead { keys }
    }

    fn write(&mut self, what: What, puts: Vec<(Key, Vec<u8>)>) -> PublishStep {
        self.phase = Phase::Writing(what);
        self.asked = puts.iter().map(|(key, _)| key.clone()).collect();
        for (_, value) in &puts {
            self.done.values += 1;
            self.done.bytes += value.len() as u64;
        }
        PublishStep::Write(puts)
    }

    fn write_stamp(&mut self) -> PublishStep {
        let put = (Key::stamp(), self.stamp.clone());
        self.write(What::Stamp, vec![put])
    }
}

/// The values of the log that a reader needs.
fn named(vault: &Vault) -> SmallSet<Key> {
    let runs = vault.head().runs().iter();
    let mut named: SmallSet<Key> = runs.flat_map(|run| vault.keys_of(run)).collect();
    named.extend(vault.profile_key());
    named
}

fn moved() -> Error {
    Error::new(
        ErrorCode::Conflict,
        "the memory moved on while it was being published; refresh it and publish again",
    )
}

/// The refusal of whatever would write to a replica.
pub(crate) fn read_only() -> Error {
    Error::new(
        ErrorCode::Unsupported,
        "this is a replica, which can only be read; write to the memory that it is published from",
    )
}
