//! `fermyon:spin/key-value@2.0.0`, which neither compares nor counts.

use foremind_memory::Capabilities;
use foremind_types::Error;

use super::{denied, no_bucket, not_offered, other};
use crate::bindings::fermyon::spin::key_value::{self as store, Store};

pub(crate) const CAPABILITIES: Capabilities = Capabilities::SINGLE;

pub(crate) struct Bucket(Store);

impl Bucket {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        Store::open(name).map(Self).map_err(failed)
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
        self.0.get_keys().map_err(failed)
    }

    /// Whether the value was the expected one, and is `value` now. In three steps: of two that pass each other unseen
    /// one replaces the other's. No log is written by it, only what the service keeps for itself.
    pub(crate) fn swap(
        &self,
        name: &str,
        is_expected: impl Fn(Option<&[u8]>) -> bool,
        value: &[u8],
    ) -> Result<bool, Error> {
        if !is_expected(self.get(name)?.as_deref()) {
            return Ok(false);
        }
        self.set(name, value)?;
        Ok(self.get(name)?.as_deref() == Some(value))
    }

    #[allow(clippy::unused_self, reason = "as in the other worlds")]
    pub(crate) fn ticket(&self, _: &str) -> Result<u64, Error> {
        Err(not_offered())
    }
}

fn failed(error: store::Error) -> Error {
    match error {
        store::Error::StoreTableFull => other("the host has too many stores open"),
        store::Error::NoSuchStore => no_bucket(),
        store::Error::AccessDenied => denied(),
        store::Error::Other(why) => other(why),
    }
}
