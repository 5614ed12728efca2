//! `fermyon:spin/key-value@2.0.0`, which neither compares nor counts.

use foremind_memory::{Capabilities, HeadToken};
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

    #[allow(clippy::unused_self, reason = "as in the other worlds")]
    pub(crate) fn swap(&self, _: &str, _: Option<HeadToken>, _: &[u8]) -> Result<bool, Error> {
        Err(not_offered())
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
