//! The memory's values in a bucket of the host, written by the strategy that its store allows.

use std::rc::Rc;

#[cfg(not(feature = "service"))]
use foremind_memory::OpenReply;
use foremind_memory::{Commit, HeadToken, Key, StoreReply, StoreStep, Strategy, Written};
use foremind_types::Error;

use crate::bucket::{Bucket, CAPABILITIES};

/// The memory's values.
pub(crate) struct Values {
    bucket: Rc<Bucket>,
    strategy: Strategy,
    /// What stands before each name.
    prefix: String,
}

impl Values {
    #[cfg(not(feature = "service"))]
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        Self::within(Rc::new(Bucket::open(name)?), String::new())
    }

    /// Those of one memory in a bucket with others: the names that begin so.
    pub(crate) fn within(bucket: Rc<Bucket>, prefix: String) -> Result<Self, Error> {
        Ok(Self {
            bucket,
            strategy: CAPABILITIES.strategy()?,
            prefix,
        })
    }

    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Whether each commit keeps a copy of its head.
    #[cfg(not(feature = "service"))]
    pub(crate) fn journals(&self) -> bool {
        self.strategy.needs_journals()
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.bucket.names()?.into_iter();
        Ok(names
            .filter_map(|name| name.strip_prefix(&self.prefix).map(str::to_owned))
            .collect())
    }

    pub(crate) fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter()
            .map(|key| self.bucket.get(&self.name(key.as_str())))
            .collect()
    }

    /// Deletes values, some of which may be absent. All of them are tried, whichever fails.
    pub(crate) fn delete<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        let mut all = Ok(());
        // All of them, also after one that fails.
        for name in names {
            all = self.bucket.delete(&self.name(name)).and(all);
        }
        all
    }

    /// Reads for an opening, which may find the making of a memory cut between `key` and `head`.
    #[cfg(not(feature = "service"))]
    pub(crate) fn read_opening(&self, keys: &[Key]) -> Result<OpenReply, Error> {
        let mut values = self.read(keys)?;
        if keys == [Key::slot(), Key::head()]
            && let [slot @ Some(_), None] = values.as_mut_slice()
            && !self.names()?.iter().any(|name| Key::is_of_log(name))
            && let Some(slot) = slot.take()
        {
            return Ok(OpenReply::KeyAlone(slot));
        }
        Ok(OpenReply::Values(values))
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// The bucket's. The batch is then written as a whole or not at all, but for values that nothing refers to.
    pub(crate) fn write(
        &self,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        strict: bool,
    ) -> Result<Written, Error> {
        let mut commit = Commit::new(self.strategy, expected_head, puts, deletes, strict);
        let mut reply = StoreReply::Begin;
        loop {
            let served = match commit.step(reply) {
                StoreStep::End(end) => return end,
                step => self.serve(step),
            };
            reply = served.unwrap_or_else(StoreReply::Failed);
        }
    }

    fn serve(&self, step: StoreStep) -> Result<StoreReply, Error> {
        let bucket = &self.bucket;
        Ok(match step {
            StoreStep::Get(key) => StoreReply::Value(bucket.get(&self.name(key.as_str()))?),
            StoreStep::Set(puts) => {
                for (key, value) in &puts {
                    bucket.set(&self.name(key.as_str()), value)?;
                }
                StoreReply::Done
            }
            StoreStep::Swap {
                key,
                expected,
                value,
            } => {
                // One too short for a token is never what is expected.
                let same = |found: Option<&[u8]>| match (found, expected) {
                    (None, None) => true,
                    (Some(found), Some(expected)) => HeadToken::of(found) == Some(expected),
                    _ => false,
                };
                StoreReply::Swapped(bucket.swap(&self.name(key.as_str()), same, &value)?)
            }
            StoreStep::Ticket(name) => StoreReply::Ticket(bucket.ticket(&self.name(&name))?),
            StoreStep::DropTicket(name) => {
                bucket.delete(&self.name(&name))?;
                StoreReply::Done
            }
            StoreStep::Delete(keys) => {
                self.delete(keys.iter().map(Key::as_str))?;
                StoreReply::Done
            }
            StoreStep::End(_) => StoreReply::Done,
        })
    }
}
