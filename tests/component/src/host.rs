use foremind_testkit::SeededAmbient;
use foremind_types::Ambient;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime::{Error as Trap, ResourceLimiter, Result};

use crate::bindings::wasi::clocks::wall_clock::{self, Datetime};
use crate::bindings::wasi::keyvalue0_2_0_draft2::atomics::{self, CasError};
use crate::bindings::wasi::keyvalue0_2_0_draft2::store::{self, Error, KeyResponse};
use crate::bindings::wasi::random::random;
use crate::buckets::{Bucket, Buckets, Gone, Snapshot};
use crate::http::Http;

/// The bucket that every host refuses to open.
const DENIED: &str = "denied";

/// What the clock of an instance shows.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// One second more at each reading.
    Ticking,
    /// What the test sets; each reading costs `step_ms`.
    Set { now_ms: i64, step_ms: i64 },
}

/// What one instance may reach.
pub struct Host {
    buckets: Buckets,
    pub(crate) table: ResourceTable,
    ambient: SeededAmbient,
    time: Time,
    now: Ambient,
    before_swap: Option<Box<dyn FnMut() -> bool + Send>>,
    pub(crate) http: Http,
    peak: Peak,
}

/// The largest linear memory that was asked for. Nothing is refused.
#[derive(Default)]
struct Peak(usize);

impl ResourceLimiter for Peak {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        self.0 = self.0.max(desired);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> Result<bool> {
        Ok(true)
    }
}

impl Host {
    pub(crate) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.peak
    }

    /// Bytes of the instance's linear memory.
    pub fn memory_bytes(&self) -> usize {
        self.peak.0
    }

    pub(crate) fn new(buckets: &Buckets, seed: u64) -> Self {
        let ambient = SeededAmbient::new(seed);
        Self {
            buckets: buckets.clone(),
            table: ResourceTable::new(),
            now: ambient.clone().tick(),
            ambient,
            time: Time::Ticking,
            before_swap: None,
            http: Http::default(),
            peak: Peak::default(),
        }
    }

    /// From now on the clock stands at a time, and goes on by so much at each reading.
    pub fn set_clock(&mut self, now_ms: i64, step_ms: i64) {
        self.time = Time::Set { now_ms, step_ms };
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: i64) {
        match &mut self.time {
            Time::Ticking => self.ambient.advance_ms(ms),
            Time::Set { now_ms, .. } => *now_ms += ms,
        }
    }

    /// Runs something between what this instance read and its next swap of `head`; again at the one after it
    /// as long as that returns true.
    pub fn before_swap(&mut self, run: impl FnMut() -> bool + Send + 'static) {
        self.before_swap = Some(Box::new(run));
    }

    pub(crate) fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    pub(crate) fn bucket(&self, bucket: &Resource<Bucket>) -> Result<&str> {
        Ok(&self.table.get(bucket)?.0)
    }

    pub(crate) fn drop_bucket(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }

    /// A bucket of that name, or why there is none.
    pub(crate) fn open_bucket(
        &mut self,
        name: String,
    ) -> Result<std::result::Result<Resource<Bucket>, Refusal>> {
        if name == DENIED {
            return Ok(Err(Refusal::Denied));
        }
        // An empty name stands for one that the host does not know; all others it makes.
        if name.is_empty() && !self.buckets.exists(&name) {
            return Ok(Err(Refusal::Unknown));
        }
        Ok(Ok(self.table.push(Bucket(name))?))
    }
}

/// Why a host opens no bucket.
pub(crate) enum Refusal {
    Denied,
    Unknown,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied => Self::AccessDenied,
            Refusal::Unknown => Self::NoSuchStore,
        }
    }
}

impl From<Gone> for Error {
    fn from(gone: Gone) -> Self {
        Self::Other(gone.why())
    }
}

impl store::Host for Host {
    fn open(&mut self, identifier: String) -> Result<Result<Resource<Bucket>, Error>> {
        Ok(self.open_bucket(identifier)?.map_err(Error::from))
    }
}

impl store::HostBucket for Host {
    fn get(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(self
            .buckets
            .get(self.bucket(&bucket)?, &key)
            .map_err(Error::from))
    }

    fn set(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> Result<Result<(), Error>> {
        let put = self.buckets.put(self.bucket(&bucket)?, &key, Some(value));
        Ok(put.map_err(Error::from))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        let put = self.buckets.put(self.bucket(&bucket)?, &key, None);
        Ok(put.map_err(Error::from))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<bool, Error>> {
        let value = self.buckets.get(self.bucket(&bucket)?, &key);
        Ok(value.map(|value| value.is_some()).map_err(Error::from))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> Result<Result<KeyResponse, Error>> {
        let page = self.buckets.page(self.bucket(&bucket)?, cursor.as_deref());
        Ok(page
            .map(|(keys, cursor)| KeyResponse { keys, cursor })
            .map_err(Error::from))
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.drop_bucket(bucket)
    }
}

impl atomics::Host for Host {
    fn increment(&mut self, _: Resource<Bucket>, _: String, _: i64) -> Result<Result<i64, Error>> {
        Err(Trap::msg("the component counts nothing in the store"))
    }

    fn swap(&mut self, cas: Resource<Snapshot>, value: Vec<u8>) -> Result<Result<(), CasError>> {
        let expected = self.table.delete(cas)?;
        // Alone in its bucket, or with a memory's name before it.
        if expected.key.split('/').next_back() == Some("head")
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
                    Err(gone) => return Ok(Err(CasError::StoreError(gone.into()))),
                };
                let again = self.table.push(Snapshot { value, ..expected })?;
                Ok(Err(CasError::CasFailed(again)))
            }
            Err(gone) => Ok(Err(CasError::StoreError(gone.into()))),
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
            Err(gone) => Ok(Err(gone.into())),
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
        if let Time::Set { now_ms, step_ms } = &mut self.time {
            *now_ms += *step_ms;
            self.now.now_ms = *now_ms;
        }
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
