//! Values in a bucket of the host, which has compare-and-swap and no batches; `wit/library.wit` says what that
//! means for a write that is cut.

use foremind_memory::{HeadToken, Key, OpenReply};
use foremind_types::{Error, ErrorCode};

use crate::bindings::wasi::keyvalue::atomics::{Cas, CasError, swap};
use crate::bindings::wasi::keyvalue::store::{self, Bucket};

/// How a write ended.
pub(crate) enum Written {
    Committed,
    /// `head` was not the expected one, and still is what it was.
    Conflict,
}

/// The memory's values.
pub(crate) struct Values(Bucket);

impl Values {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        store::open(name).map(Self).map_err(failed)
    }

    pub(crate) fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| self.value(key)).collect()
    }

    fn value(&self, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(key.as_str()).map_err(failed)
    }

    /// Reads for an opening, which may find the making of a memory cut between `key` and `head`.
    pub(crate) fn read_opening(&self, keys: &[Key]) -> Result<OpenReply, Error> {
        let mut values = self.read(keys)?;
        if keys == [Key::slot(), Key::head()]
            && let [slot @ Some(_), None] = values.as_mut_slice()
            && !self.has_log()?
            && let Some(slot) = slot.take()
        {
            return Ok(OpenReply::KeyAlone(slot));
        }
        Ok(OpenReply::Values(values))
    }

    /// Whether there is any value of a log, which a memory that lost its head still has.
    fn has_log(&self) -> Result<bool, Error> {
        let mut cursor = None;
        loop {
            let page = self.0.list_keys(cursor.as_deref()).map_err(failed)?;
            if page.keys.iter().any(|name| Key::is_of_log(name)) {
                return Ok(true);
            }
            if page.cursor.is_none() {
                return Ok(false);
            }
            // A host that never ends the list is not to hang the component.
            if page.cursor == cursor {
                return Err(Error::new(
                    ErrorCode::StorageFailed,
                    "the bucket's list of keys does not advance",
                ));
            }
            cursor = page.cursor;
        }
    }

    /// Writes a batch: the new values of the log, whose names nothing refers to yet; `head` by compare-and-swap;
    /// then the deletions.
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
        let (head, slot) = (Key::head(), Key::slot());
        // The key of a memory that is there is replaced once it is sure that nobody else was faster.
        let late = |key: &Key| expected_head.is_some() && (*key == slot || *key == Key::spare());
        let Some((_, new_head)) = puts.iter().find(|(key, _)| *key == head) else {
            return Err(Error::new(ErrorCode::Internal, "a batch without a head"));
        };
        // One read instead of all the writes when another writer was faster.
        if token(self.value(&head)?.as_deref()) != Found::expected(expected_head) {
            return Ok(Written::Conflict);
        }
        for (key, value) in puts.iter().filter(|(key, _)| !late(key)) {
            if *key == slot {
                // Of two that make the memory, the second must not replace the key of the first.
                if !self.swap(key, Found::Absent, value)? {
                    return Ok(Written::Conflict);
                }
            } else if *key != head {
                self.0.set(key.as_str(), value).map_err(failed)?;
            }
        }
        let swapped = match self.swap(&head, Found::expected(expected_head), new_head) {
            // A host that lost the answer on its way says that it failed, and may have written all the same.
            Err(error) => {
                let now = self.value(&head).map_err(|_| error.clone())?;
                if now.as_deref() != Some(new_head.as_slice()) {
                    return Err(error);
                }
                true
            }
            Ok(swapped) => swapped,
        };
        if !swapped {
            for (key, _) in puts.iter().filter(|(key, _)| Key::is_of_log(key.as_str())) {
                // Nothing refers to it: what fails here costs room only.
                let _ = self.0.delete(key.as_str());
            }
            return Ok(Written::Conflict);
        }
        for (key, value) in puts.iter().filter(|(key, _)| late(key)) {
            self.0.set(key.as_str(), value).map_err(failed)?;
        }
        let mut left = None;
        for key in deletes {
            left = self.0.delete(key.as_str()).err().or(left);
        }
        match left {
            // Old values of a fold: the next commit deletes them again. What was to be erased must not pass for gone.
            Some(error) if strict => Err(failed(error)),
            _ => Ok(Written::Committed),
        }
    }

    /// Whether the value was the expected one and is `value` now.
    fn swap(&self, key: &Key, expected: Found, value: &[u8]) -> Result<bool, Error> {
        let handle = Cas::new(&self.0, key.as_str()).map_err(failed)?;
        if token(handle.current().map_err(failed)?.as_deref()) != expected {
            return Ok(false);
        }
        match swap(handle, value) {
            Ok(()) => Ok(true),
            Err(CasError::CasFailed(_)) => Ok(false),
            Err(CasError::StoreError(error)) => Err(failed(error)),
        }
    }
}

/// What is stored where something is expected.
#[derive(PartialEq, Eq)]
enum Found {
    Absent,
    Token(HeadToken),
    /// Too short for a token, so never what is expected.
    Foreign,
}

impl Found {
    fn expected(head: Option<HeadToken>) -> Self {
        head.map_or(Self::Absent, Self::Token)
    }
}

fn token(value: Option<&[u8]>) -> Found {
    match value {
        None => Found::Absent,
        Some(value) => HeadToken::of(value).map_or(Found::Foreign, Found::Token),
    }
}

fn failed(error: store::Error) -> Error {
    match error {
        store::Error::NoSuchStore => Error::new(
            ErrorCode::StorageDenied,
            "the host has no bucket of this name",
        ),
        store::Error::AccessDenied => Error::new(
            ErrorCode::StorageDenied,
            "the host denies access to the bucket",
        ),
        store::Error::Other(why) => Error::new(ErrorCode::StorageFailed, why),
    }
}
