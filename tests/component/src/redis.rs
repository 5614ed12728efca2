//! A WASI host whose bucket is a Redis: `wasi:keyvalue` draft 2 with its compare-and-swap, the real clock, real randomness.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceAny, ResourceTable};
use wasmtime::{Engine, Error as Trap, Result, Store};

use crate::bindings::Library;
use crate::bindings::wasi::clocks::wall_clock::{self, Datetime};
use crate::bindings::wasi::keyvalue0_2_0_draft2::atomics::{self, CasError};
use crate::bindings::wasi::keyvalue0_2_0_draft2::store::{self, Error, KeyResponse};
use crate::bindings::wasi::random::random;
use crate::buckets::{Bucket, Snapshot};
use crate::{Called, OpenOptions, Prompt, Scope, World};

/// A connection to a Redis on a socket of this machine. The protocol (RESP 2) is a page long; the usual client brings fifty crates for
/// addresses that no test has.
pub struct Redis(BufReader<UnixStream>);

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing there.
    Nil,
    /// A number.
    Number(i64),
    /// A value, or a status.
    Bytes(Vec<u8>),
    /// Several.
    List(Vec<Reply>),
}

impl Redis {
    /// Connects.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::new(UnixStream::connect(socket)?)))
    }

    /// Sends a command and reads its answer.
    ///
    /// # Errors
    /// The system's; what the server says, as `Other`.
    pub fn ask(&mut self, command: &[&[u8]]) -> io::Result<Reply> {
        let mut sent = format!("*{}\r\n", command.len()).into_bytes();
        for part in command {
            sent.extend(format!("${}\r\n", part.len()).as_bytes());
            sent.extend(*part);
            sent.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&sent)?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let malformed = || io::Error::other("the server's answer is malformed");
        let (kind, rest) = line
            .strip_suffix("\r\n")
            .and_then(|line| line.split_at_checked(1))
            .ok_or_else(malformed)?;
        let number = || rest.parse::<i64>().map_err(|_| malformed());
        Ok(match kind {
            "+" => Reply::Bytes(rest.as_bytes().to_vec()),
            "-" => return Err(io::Error::other(rest)),
            ":" => Reply::Number(number()?),
            "$" => match usize::try_from(number()?) {
                Err(_) => Reply::Nil,
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.0.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Reply::Bytes(bytes)
                }
            },
            "*" => {
                let count = number()?.max(0);
                Reply::List(
                    (0..count)
                        .map(|_| self.reply())
                        .collect::<io::Result<_>>()?,
                )
            }
            _ => return Err(malformed()),
        })
    }

    /// The value of a name.
    ///
    /// # Errors
    /// As [`Redis::ask`].
    pub fn get(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(match self.ask(&[b"GET", name.as_bytes()])? {
            Reply::Bytes(value) => Some(value),
            _ => None,
        })
    }

    /// The names that begin so; a page of them, and where the next one begins.
    ///
    /// # Errors
    /// As [`Redis::ask`].
    pub fn scan(
        &mut self,
        prefix: &str,
        cursor: &str,
    ) -> io::Result<(Vec<String>, Option<String>)> {
        let pattern = format!("{prefix}*");
        let scan: [&[u8]; 4] = [b"SCAN", cursor.as_bytes(), b"MATCH", pattern.as_bytes()];
        let Reply::List(parts) = self.ask(&scan)? else {
            return Err(io::Error::other("no list came"));
        };
        let text = |reply: &Reply| match reply {
            Reply::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let names = match parts.get(1) {
            Some(Reply::List(names)) => names.iter().map(text).collect(),
            _ => Vec::new(),
        };
        Ok((names, parts.first().map(text).filter(|next| next != "0")))
    }
}

/// Compares and swaps in one step: scripts run alone.
const SWAP: &str = "
local now = redis.call('GET', KEYS[1])
if ARGV[1] == 'absent' then
    if now then return 0 end
elseif now ~= ARGV[2] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[3])
return 1
";

/// The machine code of a component, made once so that a host starts at once.
///
/// # Errors
/// wasmtime's, or that of reading and writing files.
pub fn precompile(world: World, to: &Path) -> Result<()> {
    let bytes = std::fs::read(world.path())?;
    std::fs::write(to, Engine::default().precompile_component(&bytes)?)?;
    Ok(())
}

/// One host: a connection, and the component's code.
pub struct RedisHost {
    engine: Engine,
    component: Component,
    linker: Linker<Reach>,
    socket: PathBuf,
}

/// What one instance may reach.
struct Reach {
    redis: Redis,
    table: ResourceTable,
}

/// An open memory in an instance of its own.
pub struct RedisMemory {
    store: Store<Reach>,
    library: Library,
    memory: ResourceAny,
}

impl RedisHost {
    /// A host on a Redis's socket, with what [`precompile`] made.
    ///
    /// # Errors
    /// wasmtime's.
    #[allow(unsafe_code, reason = "see below")]
    pub fn new(socket: &Path, code: &Path) -> Result<Self> {
        let engine = Engine::default();
        // SAFETY: the file was made by `precompile` of this very build and nobody else writes to the test's own folder.
        let component = unsafe { Component::deserialize_file(&engine, code) }?;
        let mut linker = Linker::new(&engine);
        Library::add_to_linker::<Reach, HasSelf<Reach>>(&mut linker, |it| it)?;
        Ok(Self {
            engine,
            component,
            linker,
            socket: socket.to_owned(),
        })
    }

    /// Opens a memory, or makes it.
    ///
    /// # Errors
    /// A trap, or the system's when there is no connection.
    pub fn open(&self, bucket: &str, options: &OpenOptions) -> Called<RedisMemory> {
        let reach = Reach {
            redis: Redis::connect(&self.socket)?,
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, reach);
        let library = Library::instantiate(&mut store, &self.component, &self.linker)?;
        let memory = library.foremind_memory_memories().memory();
        Ok(memory
            .call_open(&mut store, bucket, options)?
            .map(|memory| RedisMemory {
                store,
                library,
                memory,
            }))
    }
}

impl RedisMemory {
    /// `memory.ingest`.
    ///
    /// # Errors
    /// A trap.
    pub fn ingest(
        &mut self,
        scope: &Scope,
        (thread, turn): (&str, &str),
        text: &str,
    ) -> Called<Vec<String>> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_ingest(&mut self.store, self.memory, scope, thread, turn, text)
    }

    /// `memory.recall`.
    ///
    /// # Errors
    /// A trap.
    pub fn recall(&mut self, scope: &Scope, query: &str) -> Called<Prompt> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_recall(&mut self.store, self.memory, scope, query, None)
    }
}

impl Reach {
    fn key(&self, bucket: &Resource<Bucket>, key: &str) -> Result<String> {
        Ok(format!("{}/{key}", self.table.get(bucket)?.0))
    }

    fn ask(&mut self, command: &[&[u8]]) -> std::result::Result<Reply, Error> {
        self.redis.ask(command).map_err(said)
    }
}

/// What the server says, in the interface's words.
fn said(error: io::Error) -> Error {
    Error::Other(error.to_string())
}

type Answer<T> = Result<std::result::Result<T, Error>>;

impl store::Host for Reach {
    fn open(&mut self, identifier: String) -> Answer<Resource<Bucket>> {
        Ok(Ok(self.table.push(Bucket(identifier))?))
    }
}

impl store::HostBucket for Reach {
    fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        let key = self.key(&bucket, &key)?;
        Ok(self.redis.get(&key).map_err(said))
    }

    fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        let key = self.key(&bucket, &key)?;
        let set = self.ask(&[b"SET", key.as_bytes(), &value]);
        Ok(set.map(drop))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        let key = self.key(&bucket, &key)?;
        Ok(self.ask(&[b"DEL", key.as_bytes()]).map(drop))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        let key = self.key(&bucket, &key)?;
        let found = self.ask(&[b"EXISTS", key.as_bytes()]);
        Ok(found.map(|found| found == Reply::Number(1)))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> Answer<KeyResponse> {
        let prefix = self.key(&bucket, "")?;
        let page = self.redis.scan(&prefix, cursor.as_deref().unwrap_or("0"));
        Ok(page.map_err(said).map(|(keys, cursor)| KeyResponse {
            keys: keys
                .iter()
                .filter_map(|key| key.strip_prefix(&prefix).map(str::to_owned))
                .collect(),
            cursor,
        }))
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for Reach {
    fn increment(&mut self, _: Resource<Bucket>, _: String, _: i64) -> Answer<i64> {
        Err(Trap::msg("the component counts nothing in the store"))
    }

    fn swap(
        &mut self,
        cas: Resource<Snapshot>,
        value: Vec<u8>,
    ) -> Result<std::result::Result<(), CasError>> {
        let Snapshot {
            bucket,
            key,
            value: seen,
        } = self.table.delete(cas)?;
        let full = format!("{bucket}/{key}");
        let kind: &[u8] = if seen.is_none() {
            b"absent"
        } else {
            b"present"
        };
        let seen = seen.unwrap_or_default();
        let swapped = self.ask(&[
            b"EVAL",
            SWAP.as_bytes(),
            b"1",
            full.as_bytes(),
            kind,
            &seen,
            &value,
        ]);
        match swapped {
            Ok(Reply::Number(1)) => Ok(Ok(())),
            Ok(_) => match self.redis.get(&full).map_err(said) {
                Ok(value) => {
                    let again = self.table.push(Snapshot { bucket, key, value })?;
                    Ok(Err(CasError::CasFailed(again)))
                }
                Err(error) => Ok(Err(CasError::StoreError(error))),
            },
            Err(error) => Ok(Err(CasError::StoreError(error))),
        }
    }
}

impl atomics::HostCas for Reach {
    fn new(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Resource<Snapshot>> {
        let bucket = self.table.get(&bucket)?.0.clone();
        let found = self.redis.get(&format!("{bucket}/{key}")).map_err(said);
        Ok(match found {
            Ok(value) => Ok(self.table.push(Snapshot { bucket, key, value })?),
            Err(error) => Err(error),
        })
    }

    fn current(&mut self, cas: Resource<Snapshot>) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.table.get(&cas)?.value.clone()))
    }

    fn drop(&mut self, cas: Resource<Snapshot>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl wall_clock::Host for Reach {
    fn now(&mut self) -> Result<Datetime> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Ok(Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Err(Trap::msg("the component asks for no resolution"))
    }
}

impl random::Host for Reach {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len)?];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        Err(Trap::msg("the component draws bytes"))
    }
}
