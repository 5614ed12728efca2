//! Embeds the component: `foremind-example-rust COMPONENT STORY [NOW_MS]`.
//!
//! What it imports is all that a host has to give: a bucket that compares and swaps, a clock, randomness.

#![allow(clippy::print_stdout, reason = "a program that prints prompts")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceTable};
use wasmtime::{Engine, Error, Result, Store};

use bindings::exports::foremind::memory::memories::OpenOptions;
use bindings::exports::foremind::memory::types::Scope;
use bindings::wasi::clocks::wall_clock::{self, Datetime};
use bindings::wasi::keyvalue0_2_0_draft2::{atomics, store};
use bindings::wasi::random::random;

#[allow(missing_docs, clippy::all, reason = "generated from wit/")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "library",
        with: {
            "wasi:keyvalue/store@0.2.0-draft2.bucket": crate::Bucket,
            "wasi:keyvalue/atomics@0.2.0-draft2.cas": crate::Seen,
        },
        imports: { default: trappable },
    });
}

/// What the component may reach. Put your own store in place of the map: it has to read what was written, and `swap` has
/// to be one step.
#[derive(Default)]
struct Host {
    values: BTreeMap<String, Vec<u8>>,
    table: ResourceTable,
    now_ms: Option<u64>,
}

/// An open bucket: its name, which stands before its keys.
pub struct Bucket(String);

/// What a compare-and-swap compares with.
pub struct Seen {
    key: String,
    value: Option<Vec<u8>>,
}

impl Host {
    fn key(&self, bucket: &Resource<Bucket>, key: &str) -> Result<String> {
        Ok(format!("{}/{key}", self.table.get(bucket)?.0))
    }
}

type Answer<T> = Result<std::result::Result<T, store::Error>>;

impl store::Host for Host {
    fn open(&mut self, name: String) -> Answer<Resource<Bucket>> {
        Ok(Ok(self.table.push(Bucket(name))?))
    }
}

impl store::HostBucket for Host {
    fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.values.get(&self.key(&bucket, &key)?).cloned()))
    }

    fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        let key = self.key(&bucket, &key)?;
        self.values.insert(key, value);
        Ok(Ok(()))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        let key = self.key(&bucket, &key)?;
        self.values.remove(&key);
        Ok(Ok(()))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        Ok(Ok(self.values.contains_key(&self.key(&bucket, &key)?)))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        _: Option<String>,
    ) -> Answer<store::KeyResponse> {
        let own = self.key(&bucket, "")?;
        let keys = self.values.keys().filter_map(|key| key.strip_prefix(&own));
        Ok(Ok(store::KeyResponse {
            keys: keys.map(str::to_owned).collect(),
            cursor: None,
        }))
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for Host {
    fn increment(&mut self, _: Resource<Bucket>, _: String, _: i64) -> Answer<i64> {
        Err(Error::msg("the component counts nothing"))
    }

    fn swap(
        &mut self,
        seen: Resource<Seen>,
        value: Vec<u8>,
    ) -> Result<std::result::Result<(), atomics::CasError>> {
        let Seen { key, value: old } = self.table.delete(seen)?;
        let now = self.values.get(&key).cloned();
        if now == old {
            self.values.insert(key, value);
            return Ok(Ok(()));
        }
        let again = self.table.push(Seen { key, value: now })?;
        Ok(Err(atomics::CasError::CasFailed(again)))
    }
}

impl atomics::HostCas for Host {
    fn new(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Resource<Seen>> {
        let key = self.key(&bucket, &key)?;
        let value = self.values.get(&key).cloned();
        Ok(Ok(self.table.push(Seen { key, value })?))
    }

    fn current(&mut self, seen: Resource<Seen>) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.table.get(&seen)?.value.clone()))
    }

    fn drop(&mut self, seen: Resource<Seen>) -> Result<()> {
        self.table.delete(seen)?;
        Ok(())
    }
}

impl wall_clock::Host for Host {
    fn now(&mut self) -> Result<Datetime> {
        let now_ms = match self.now_ms {
            Some(now_ms) => now_ms,
            None => u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
        };
        Ok(Datetime {
            seconds: now_ms / 1_000,
            nanoseconds: u32::try_from(now_ms % 1_000)? * 1_000_000,
        })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Ok(Datetime {
            seconds: 0,
            nanoseconds: 1_000_000,
        })
    }
}

impl random::Host for Host {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len)?];
        // In your program: the generator of your platform, such as the crate `getrandom`.
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        Err(Error::msg("the component draws bytes"))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [component, story, now @ ..] = arguments.as_slice() else {
        return Err(Error::msg("usage: COMPONENT STORY [NOW_MS]"));
    };
    let engine = Engine::default();
    let component = Component::from_file(&engine, component)?;
    let mut linker = Linker::new(&engine);
    bindings::Library::add_to_linker::<Host, HasSelf<Host>>(&mut linker, |host| host)?;
    let host = Host {
        now_ms: now.first().map(|now| now.parse()).transpose()?,
        ..Host::default()
    };
    let mut store = Store::new(&engine, host);
    let library = bindings::Library::instantiate(&mut store, &component, &linker)?;
    let memories = library.foremind_memory_memories().memory();

    let options = OpenOptions {
        // 32 bytes that the host keeps, apart from the store.
        key: vec![7; 32],
        model: None,
        utc_offset_min: 0,
        policy: None,
    };
    let failed = |error| Error::msg(format!("{error:?}"));
    let memory = memories
        .call_open(&mut store, "ada", &options)?
        .map_err(failed)?;
    let ada = Scope {
        user: "ada".to_owned(),
        project: None,
        thread: None,
        agent: None,
    };
    for line in std::fs::read_to_string(story)?.lines() {
        store.data_mut().now_ms = store.data().now_ms.map(|now_ms| now_ms + 1_000);
        if let Some(text) = line.strip_prefix("tell ") {
            memories
                .call_remember(&mut store, memory, &ada, text)?
                .map_err(failed)?;
        } else if let Some(query) = line.strip_prefix("ask ") {
            let prompt = memories
                .call_recall(&mut store, memory, &ada, query, None)?
                .map_err(failed)?;
            println!("PROMPT: {query}\n{}", prompt.text);
        }
    }
    Ok(())
}
