//! `wasi:keyvalue@0.2.0-draft`, which counts.

use foremind_memory::Capabilities;
use foremind_types::Error;

use super::{denied, endless, no_bucket, not_offered, other};
use crate::bindings::wasi::keyvalue0_2_0_draft::{atomics, store};

pub(crate) const CAPABILITIES: Capabilities = Capabilities::TICKET;

pub(crate) struct Bucket(store::Bucket);

impl Bucket {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        store::open(name).map(Self).map_err(failed)
    }

    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(name).map_err(failed)
    }

    pub(crate) fn set(&self, name: &str, value: &[u8]) -> Result<(), Error> {
        self.0.set(name, value).map_err(failed)
    }

    pub(crate) fn delete(&self, name: &str) -> Result<(), Error> {
        self.0.delete(name).map_err(failed)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let (mut names, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.0.list_keys(cursor).map_err(failed)?;
            names.extend(page.keys);
            if page.cursor.is_none() {
                return Ok(names);
            }
            if page.cursor == cursor {
                return Err(endless());
            }
            cursor = page.cursor;
        }
    }

    #[allow(clippy::unused_self, reason = "as in the other worlds")]
    pub(crate) fn swap(
        &self,
        _: &str,
        _: impl Fn(Option<&[u8]>) -> bool,
        _: &[u8],
    ) -> Result<bool, Error> {
        Err(not_offered())
    }

    /// The number after the increment.
    pub(crate) fn ticket(&self, name: &str) -> Result<u64, Error> {
        atomics::increment(&self.0, name, 1).map_err(failed)
    }
}

fn failed(error: store::Error) -> Error {
    match error {
        store::Error::NoSuchStore => no_bucket(),
        store::Error::AccessDenied => denied(),
        store::Error::Other(why) => other(why),
    }
}
