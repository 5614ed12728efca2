//! The other stores that the component is built for.

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::buckets::{Bucket, Gone};
use crate::host::{Host, Refusal};

#[allow(
    missing_docs,
    clippy::all,
    reason = "generated from wit/, where everything is described"
)]
pub(crate) mod draft {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "library-draft",
        with: {
            "wasi:keyvalue/store@0.2.0-draft.bucket": crate::buckets::Bucket,
            "wasi:clocks/wall-clock": crate::bindings::wasi::clocks::wall_clock,
            "wasi:random/random": crate::bindings::wasi::random::random,
        },
        imports: { default: trappable },
    });
}

#[allow(
    missing_docs,
    clippy::all,
    reason = "generated from wit/, where everything is described"
)]
pub(crate) mod spin {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "library-spin",
        with: {
            "fermyon:spin/key-value.store": crate::buckets::Bucket,
            "wasi:clocks/wall-clock": crate::bindings::wasi::clocks::wall_clock,
            "wasi:random/random": crate::bindings::wasi::random::random,
        },
        imports: { default: trappable },
    });
}

mod counting {
    use super::draft::wasi::keyvalue0_2_0_draft::atomics;
    use super::draft::wasi::keyvalue0_2_0_draft::store::{self, Error, KeyResponse};
    use super::{Bucket, Gone, Host, Refusal, Resource, Result};

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

    type Answer<T> = Result<std::result::Result<T, Error>>;

    impl store::Host for Host {
        fn open(&mut self, identifier: String) -> Answer<Resource<Bucket>> {
            Ok(self.open_bucket(identifier)?.map_err(Error::from))
        }
    }

    impl store::HostBucket for Host {
        fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
            let value = self.buckets().get(self.bucket(&bucket)?, &key);
            Ok(value.map_err(Error::from))
        }

        fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
            let put = self.buckets().put(self.bucket(&bucket)?, &key, Some(value));
            Ok(put.map_err(Error::from))
        }

        fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
            let put = self.buckets().put(self.bucket(&bucket)?, &key, None);
            Ok(put.map_err(Error::from))
        }

        fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
            let value = self.buckets().get(self.bucket(&bucket)?, &key);
            Ok(value.map(|value| value.is_some()).map_err(Error::from))
        }

        fn list_keys(
            &mut self,
            bucket: Resource<Bucket>,
            cursor: Option<u64>,
        ) -> Answer<KeyResponse> {
            // A position in the list, two names a page.
            let names = match self.buckets().names(self.bucket(&bucket)?) {
                Ok(names) => names,
                Err(gone) => return Ok(Err(gone.into())),
            };
            let start = usize::try_from(cursor.unwrap_or_default())?;
            let keys: Vec<String> = names.iter().skip(start).take(2).cloned().collect();
            let end = start + keys.len();
            let cursor = (end < names.len()).then_some(end as u64);
            Ok(Ok(KeyResponse { keys, cursor }))
        }

        fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
            self.drop_bucket(bucket)
        }
    }

    impl atomics::Host for Host {
        fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Answer<u64> {
            let number = self.buckets().increment(self.bucket(&bucket)?, &key, delta);
            Ok(number.map_err(Error::from))
        }
    }
}

mod single {
    use super::spin::fermyon::spin::key_value::{self, Error};
    use super::{Bucket, Gone, Host, Refusal, Resource, Result};

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

    type Answer<T> = Result<std::result::Result<T, Error>>;

    impl key_value::Host for Host {}

    impl key_value::HostStore for Host {
        fn open(&mut self, label: String) -> Answer<Resource<Bucket>> {
            Ok(self.open_bucket(label)?.map_err(Error::from))
        }

        fn get(&mut self, store: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
            let value = self.buckets().get(self.bucket(&store)?, &key);
            Ok(value.map_err(Error::from))
        }

        fn set(&mut self, store: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
            let put = self.buckets().put(self.bucket(&store)?, &key, Some(value));
            Ok(put.map_err(Error::from))
        }

        fn delete(&mut self, store: Resource<Bucket>, key: String) -> Answer<()> {
            let put = self.buckets().put(self.bucket(&store)?, &key, None);
            Ok(put.map_err(Error::from))
        }

        fn exists(&mut self, store: Resource<Bucket>, key: String) -> Answer<bool> {
            let value = self.buckets().get(self.bucket(&store)?, &key);
            Ok(value.map(|value| value.is_some()).map_err(Error::from))
        }

        fn get_keys(&mut self, store: Resource<Bucket>) -> Answer<Vec<String>> {
            let names = self.buckets().names(self.bucket(&store)?);
            Ok(names.map_err(Error::from))
        }

        fn drop(&mut self, store: Resource<Bucket>) -> Result<()> {
            self.drop_bucket(store)
        }
    }
}
