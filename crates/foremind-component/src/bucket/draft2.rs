//! `wasi:keyvalue@0.2.0-draft2`, which compares and swaps.

use foremind_memory::Capabilities;
use foremind_types::Error;

use super::{denied, endless, no_bucket, not_offered, other};
use crate::bindings::wasi::keyvalue0_2_0_draft2::atomics::{Cas, CasError, swap};
use crate::bindings::wasi::keyvalue0_2_0_draft2::store;

pub(crate) const CAPABILITIES: Capabilities = Capabilities::SWAP;

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
            let page = self.0.list_keys(cursor.as_deref()).map_err(failed)?;
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

    /// Whether the value was the expected one, and is `value` now.
    pub(crate) fn swap(
        &self,
        name: &str,
        is_expected: impl Fn(Option<&[u8]>) -> bool,
        value: &[u8],
    ) -> Result<bool, Error> {
        let handle = Cas::new(&self.0, name).map_err(failed)?;
        if !is_expected(handle.current().map_err(failed)?.as_deref()) {
            return Ok(false);
        }
        match swap(handle, value) {
            Ok(()) => Ok(true),
            Err(CasError::CasFailed(_)) => Ok(false),
            Err(CasError::StoreError(error)) => Err(failed(error)),
        }
    }

    #[allow(clippy::unused_self, reason = "as in the other worlds")]
    pub(crate) fn ticket(&self, _: &str) -> Result<u64, Error> {
        Err(not_offered())
    }
}

fn failed(error: store::Error) -> Error {
    match error {
        store::Error::NoSuchStore => no_bucket(),
        store::Error::AccessDenied => denied(),
        store::Error::Other(why) => other(why),
    }
}
