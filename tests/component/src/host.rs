use foremind_testkit::SeededAmbient;
use foremind_types::Ambient;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime::{Error as Trap, Result};

use crate::bindings::wasi::clocks::wall_clock::{self, Datetime};
use crate::bindings::wasi::keyvalue::atomics::{self, CasError};
use crate::bindings::wasi::keyvalue::store::{self, Error, KeyResponse};
use crate::bindings::wasi::random::random;
use crate::buckets::{Bucket, Buckets, Snapshot};

/// The bucket that every host refuses to open.
const DENIED: &str = "denied";

/// What one instance may reach.
pub struct Host {
    buckets: Buckets,
    table: ResourceTable,
    ambient: SeededAmbient,
    now: Ambient,
    before_swap: Option<Box<dyn FnMut() -> bool + Send>>,
}

impl Host {
    pub(crate) fn new(buckets: &Buckets, seed: u64) -> Self {
        let ambient = SeededAmbient::new(seed);
        Self {
            buckets: buckets.clone(),
            table: ResourceTable::new(),
            now: ambient.clone().tick(),
            ambient,
            before_swap: None,
        }
    }

    /// Runs something between what this instance read and its next swap of `head`; again at the one after it
    /// as long as that returns true.
    pub fn before_swap(&mut self, run: impl FnMut() -> bool + Send + 'static) {
        self.before_swap = Some(Box::new(run));
    }

    fn bucket(&self, bucket: &Resource<Bucket>) -> Result<&str> {
        Ok(&self.table.get(bucket)?.0)
    }
}

impl store::Host for Host {
    fn open(&mut self, identifier: String) -> Result<Result<Resource<Bucket>, Error>> {
        if identifier == DENIED {
            return Ok(Err(Error::AccessDenied));
        }
        // An empty name stands for one that the host does not know; all others it makes.
        if identifier.is_empty() && !self.buckets.exists(&identifier) {
            return Ok(Err(Error::NoSuchStore));
        }
        Ok(Ok(self.table.push(Bucket(identifier))?))
    }
}

impl store::HostBucket for Host {
    fn get(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(self.buckets.get(self.bucket(&bucket)?, &key))
    }

    fn set(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> Result<Result<(), Error>> {
        Ok(self.buckets.put(self.bucket(&bucket)?, &key, Some(value)))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        Ok(self.buckets.put(self.bucket(&bucket)?, &key, None))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<bool, Error>> {
        let value = self.buckets.get(self.bucket(&bucket)?, &key);
        Ok(value.map(|value| value.is_some()))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> Result<Result<KeyResponse, Error>> {
        let page = self.buckets.page(self.bucket(&bucket)?, cursor.as_deref());
        Ok(page.map(|(keys, cursor)| KeyResponse { keys, cursor }))
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for Host {
    fn increment(&mut self, _: Resource<Bucket>, _: String, _: i64) -> Result<Result<i64, Error>> {
        Err(Trap::msg("the component counts nothing in the store"))
    }

    fn swap(&mut self, cas: Resource<Snapshot>, value: Vec<u8>) -> Result<Result<(), CasError>> {
        let expected = self.table.delete(cas)?;
        if expected.key == "head"
            && let Some(mut run) = self.before_swap.take()
            && run()
        {
            self.before_swap = Some(run);
        }
        match self.buckets.swap(&expected, value) {
            Ok(true) => Ok(Ok(())),
            Ok(false) => {
                let value = self.buckets.get(&expected.bucket, &expected.key);
                let value = match value {
                    Ok(value) => value,
                    Err(error) => return Ok(Err(CasError::StoreError(error))),
                };
                let again = self.table.push(Snapshot { value, ..expected })?;
                Ok(Err(CasError::CasFailed(again)))
            }
            Err(error) => Ok(Err(CasError::StoreError(error))),
        }
    }
}

impl atomics::HostCas for Host {
    fn new(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> Result<Result<Resource<Snapshot>, Error>> {
        let bucket = self.bucket(&bucket)?.to_owned();
        match self.buckets.get(&bucket, &key) {
            Ok(value) => Ok(Ok(self.table.push(Snapshot { bucket, key, value })?)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn current(&mut self, cas: Resource<Snapshot>) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(Ok(self.table.get(&cas)?.value.clone()))
    }

    fn drop(&mut self, cas: Resource<Snapshot>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl wall_clock::Host for Host {
    fn now(&mut self) -> Result<Datetime> {
        self.now = self.ambient.tick();
        let now_ms = u64::try_from(self.now.now_ms)?;
        Ok(Datetime {
            seconds: now_ms / 1_000,
            nanoseconds: u32::try_from(now_ms % 1_000)? * 1_000_000,
        })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Err(Trap::msg("the component asks for no resolution"))
    }
}

impl random::Host for Host {
    /// The entropy that belongs to the last reading of the clock, so that the native engine can be given the same.
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        if len != 32 {
            return Err(Trap::msg("the component draws 32 bytes a step"));
        }
        Ok(self.now.entropy.to_vec())
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        Err(Trap::msg("the component draws bytes"))
    }
}
