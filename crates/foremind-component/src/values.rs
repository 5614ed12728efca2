//! The memory's values in a bucket of the host, written by the strategy that its store allows.

use foremind_memory::{
    Commit, HeadToken, Key, OpenReply, StoreReply, StoreStep, Strategy, Written,
};
use foremind_types::Error;

use crate::bucket::{Bucket, CAPABILITIES};

/// The memory's values.
pub(crate) struct Values {
    bucket: Bucket,
    strategy: Strategy,
}

impl Values {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        Ok(Self {
            bucket: Bucket::open(name)?,
            strategy: CAPABILITIES.strategy()?,
        })
    }

    /// Whether each commit keeps a copy of its head.
    pub(crate) fn journals(&self) -> bool {
        self.strategy.needs_journals()
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        self.bucket.names()
    }

    pub(crate) fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter()
            .map(|key| self.bucket.get(key.as_str()))
            .collect()
    }

    /// Reads for an opening, which may find the making of a memory cut between `key` and `head`.
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
            StoreStep::Get(key) => StoreReply::Value(bucket.get(key.as_str())?),
            StoreStep::Set(puts) => {
                for (key, value) in &puts {
                    bucket.set(key.as_str(), value)?;
                }
                StoreReply::Done
            }
            StoreStep::Swap {
                key,
                expected,
                value,
            } => StoreReply::Swapped(bucket.swap(key.as_str(), expected, &value)?),
            StoreStep::Ticket(name) => StoreReply::Ticket(bucket.ticket(&name)?),
            StoreStep::DropTicket(name) => {
                bucket.delete(&name)?;
                StoreReply::Done
            }
            StoreStep::Delete(keys) => {
                // All of them are tried, whichever fails.
                let mut deleted = Ok(());
                for key in &keys {
                    deleted = bucket.delete(key.as_str()).and(deleted);
                }
                deleted?;
                StoreReply::Done
            }
            StoreStep::End(_) => StoreReply::Done,
        })
    }
}
