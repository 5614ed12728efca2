//! A WASI host for the components: their interfaces in memory, deterministic, failing when told to.

mod buckets;
mod host;
mod http;
pub mod redis;
mod worlds;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use foremind_types::ErrorCode;
use wasmtime::component::{Component, HasSelf, Linker, ResourceAny};
use wasmtime::{Config, Engine, OptLevel, Store};

pub use bindings::exports::foremind::memory::disclosure::{Audience, Disclosed, Pseudonym};
pub use bindings::exports::foremind::memory::erasure::{Receipt, Verified};
pub use bindings::exports::foremind::memory::judge_queue::{Grade, Waiting};
pub use bindings::exports::foremind::memory::memories::{ForgetTarget, OpenOptions, Prompt};
pub use bindings::exports::foremind::memory::types::{Error, Scope};
pub use buckets::{Buckets, Fault};
pub use host::Host;
pub use http::{Piece, Request, Response};

#[allow(
    missing_docs,
    clippy::all,
    reason = "generated from wit/, where everything is described"
)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "library",
        with: {
            "wasi:keyvalue/store@0.2.0-draft2.bucket": crate::buckets::Bucket,
            "wasi:keyvalue/atomics@0.2.0-draft2.cas": crate::buckets::Snapshot,
        },
        imports: { default: trappable },
    });
}

/// The store that a component is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// `wasi:keyvalue@0.2.0-draft2`.
    Draft2,
    /// `wasi:keyvalue@0.2.0-draft`.
    Draft,
    /// `fermyon:spin/key-value@2.0.0`.
    Spin,
    /// As [`World::Draft2`], with the embedder and a model inside.
    Model,
    /// The service on `wasi:keyvalue@0.2.0-draft2`.
    Service,
    /// The service on `fermyon:spin/key-value@2.0.0`.
    ServiceSpin,
}

impl World {
    /// One for each store.
    pub const ALL: [Self; 3] = [Self::Draft2, Self::Draft, Self::Spin];

    /// Where the built component is.
    #[must_use]
    pub fn path(self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../target/components")
            .join(self.file())
    }

    fn file(self) -> &'static str {
        match self {
            Self::Draft2 => "foremind.wasm",
            Self::Draft => "foremind-draft.wasm",
            Self::Spin => "foremind-spin.wasm",
            Self::Model => "foremind-model.wasm",
            Self::Service => "foremind-service.wasm",
            Self::ServiceSpin => "foremind-service-spin.wasm",
        }
    }
}

/// Whether components are compiled for speed and not at once.
static FOR_SPEED: AtomicBool = AtomicBool::new(false);

/// From now on components are compiled for speed: for measurements.
pub fn for_speed() {
    FOR_SPEED.store(true, Ordering::Relaxed);
}

/// The built component of a world and the engine it is compiled for, once for all tests.
///
/// # Errors
/// What wasmtime says of a file that is no component.
///
/// # Panics
/// If the component is not built.
#[allow(clippy::panic, reason = "a test that cannot go on")]
pub fn component(world: World) -> wasmtime::Result<&'static (Engine, Component)> {
    static COMPILED: [OnceLock<(Engine, Component)>; 6] = [const { OnceLock::new() }; 6];
    let compiled = &COMPILED[world as usize];
    if let Some(compiled) = compiled.get() {
        return Ok(compiled);
    }
    let Ok(bytes) = std::fs::read(world.path()) else {
        panic!("no component: run `cargo xtask build --profile ci` first");
    };
    let mut config = Config::new();
    if !FOR_SPEED.load(Ordering::Relaxed) {
        // Compiled once and run for seconds.
        config.cranelift_opt_level(OptLevel::None);
    }
    let engine = Engine::new(&config)?;
    let made = Component::from_binary(&engine, &bytes)?;
    Ok(compiled.get_or_init(|| (engine, made)))
}

/// The code of a case: what `errors.rs` of the component does, from the other side.
#[must_use]
pub fn code(error: &Error) -> ErrorCode {
    match error {
        Error::InvalidArgument(_) => ErrorCode::InvalidArgument,
        Error::TextEmpty(_) => ErrorCode::TextEmpty,
        Error::TextTooLarge(_) => ErrorCode::TextTooLarge,
        Error::UnknownId(_) => ErrorCode::UnknownId,
        Error::Closed(_) => ErrorCode::Closed,
        Error::Aborted(_) => ErrorCode::Aborted,
        Error::KeyMissing(_) => ErrorCode::KeyMissing,
        Error::WrongKey(_) => ErrorCode::WrongKey,
        Error::Unsupported(_) => ErrorCode::Unsupported,
        Error::StorageDenied(_) => ErrorCode::StorageDenied,
        Error::QuotaExceeded(_) => ErrorCode::QuotaExceeded,
        Error::StorageLost(_) => ErrorCode::StorageLost,
        Error::StorageFailed(_) => ErrorCode::StorageFailed,
        Error::Conflict(_) => ErrorCode::Conflict,
        Error::Corrupt(_) => ErrorCode::Corrupt,
        Error::NewerFormat(_) => ErrorCode::NewerFormat,
        Error::ModelMissing(_) => ErrorCode::ModelMissing,
        Error::ModelInvalid(_) => ErrorCode::ModelInvalid,
        Error::LimitReached(_) => ErrorCode::LimitReached,
        Error::Internal(_) => ErrorCode::Internal,
    }
}

/// What a call gives: the host's trap outside, the component's error inside.
pub type Called<T> = wasmtime::Result<Result<T, Error>>;

/// One instance of the component.
pub struct Instance {
    store: Store<Host>,
    library: bindings::Library,
}

impl Instance {
    /// A fresh instance on these buckets. Two with the same seed are given the same times and randomness.
    ///
    /// # Errors
    /// wasmtime's, such as an import that this host does not offer.
    pub fn new(buckets: &Buckets, seed: u64) -> wasmtime::Result<Self> {
        Self::of(World::Draft2, buckets, seed)
    }

    /// As [`Instance::new`], of the component for another store. The host offers what its world names and no more.
    ///
    /// # Errors
    /// As [`Instance::new`].
    pub fn of(world: World, buckets: &Buckets, seed: u64) -> wasmtime::Result<Self> {
        let (engine, component) = component(world)?;
        let mut linker = Linker::new(engine);
        let to = &mut linker;
        // The exports are the same in every world.
        match world {
            World::Draft2 | World::Model => {
                bindings::Library::add_to_linker::<Host, HasSelf<Host>>(to, |it| it)
            }
            World::Draft => {
                worlds::draft::LibraryDraft::add_to_linker::<Host, HasSelf<Host>>(to, |it| it)
            }
            World::Spin => {
                worlds::spin::LibrarySpin::add_to_linker::<Host, HasSelf<Host>>(to, |it| it)
            }
            World::Service | World::ServiceSpin => {
                return Err(wasmtime::Error::msg("the service holds no library"));
            }
        }?;
        let mut store = Store::new(engine, Host::new(buckets, seed));
        store.limiter(Host::limiter);
        let library = bindings::Library::instantiate(&mut store, component, &linker)?;
        Ok(Self { store, library })
    }

    /// The host's side of the instance.
    pub fn host(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// `memory.open`.
    ///
    /// # Errors
    /// A trap.
    pub fn open(&mut self, bucket: &str, options: &OpenOptions) -> Called<ResourceAny> {
        let memory = self.library.foremind_memory_memories().memory();
        memory.call_open(&mut self.store, bucket, options)
    }

    /// `memory.remember`.
    ///
    /// # Errors
    /// A trap.
    pub fn remember(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        text: &str,
    ) -> Called<Vec<String>> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_remember(&mut self.store, memory, scope, text)
    }

    /// `memory.ingest`.
    ///
    /// # Errors
    /// A trap.
    pub fn ingest(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        (thread, turn): (&str, &str),
        text: &str,
    ) -> Called<Vec<String>> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_ingest(&mut self.store, memory, scope, thread, turn, text)
    }

    /// `keys.rekey`.
    ///
    /// # Errors
    /// A trap.
    pub fn rekey(&mut self, memory: ResourceAny, key: &[u8]) -> Called<()> {
        let keys = self.library.foremind_memory_keys();
        keys.call_rekey(&mut self.store, memory, key)
    }

    /// `judge-queue.pending`.
    ///
    /// # Errors
    /// A trap.
    pub fn pending(&mut self, memory: ResourceAny, scope: &Scope) -> Called<(Vec<Waiting>, u32)> {
        let queue = self.library.foremind_memory_judge_queue();
        queue.call_pending(&mut self.store, memory, scope)
    }

    /// `judge-queue.judge`.
    ///
    /// # Errors
    /// A trap.
    pub fn judge(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        id: &str,
        grade: Grade,
    ) -> Called<()> {
        let queue = self.library.foremind_memory_judge_queue();
        queue.call_judge(&mut self.store, memory, scope, id, grade)
    }

    /// `memory.recall`.
    ///
    /// # Errors
    /// A trap.
    pub fn recall(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        query: &str,
        budget_tokens: Option<u32>,
    ) -> Called<Prompt> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_recall(&mut self.store, memory, scope, query, budget_tokens)
    }

    /// `memory.profile`.
    ///
    /// # Errors
    /// A trap.
    pub fn profile(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        budget_tokens: Option<u32>,
    ) -> Called<Prompt> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_profile(&mut self.store, memory, scope, budget_tokens)
    }

    /// `memory.forget`.
    ///
    /// # Errors
    /// A trap.
    pub fn forget(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        target: &ForgetTarget,
    ) -> Called<u32> {
        let verbs = self.library.foremind_memory_memories().memory();
        verbs.call_forget(&mut self.store, memory, scope, target)
    }

    /// `erasure.forget`.
    ///
    /// # Errors
    /// A trap.
    pub fn erase(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        target: &ForgetTarget,
    ) -> Called<(u32, Option<Receipt>)> {
        let erasure = self.library.foremind_memory_erasure();
        erasure.call_forget(&mut self.store, memory, scope, target)
    }

    /// `erasure.preview`.
    ///
    /// # Errors
    /// A trap.
    pub fn preview(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        target: &ForgetTarget,
    ) -> Called<Vec<String>> {
        let erasure = self.library.foremind_memory_erasure();
        erasure.call_preview(&mut self.store, memory, scope, target)
    }

    /// `erasure.destroy`.
    ///
    /// # Errors
    /// A trap.
    pub fn destroy(&mut self, memory: ResourceAny, key: &[u8]) -> Called<Receipt> {
        let erasure = self.library.foremind_memory_erasure();
        erasure.call_destroy(&mut self.store, memory, key)
    }

    /// `erasure.verify`.
    ///
    /// # Errors
    /// A trap.
    pub fn verify(&mut self, memory: ResourceAny, receipt: Option<&Receipt>) -> Called<Verified> {
        let erasure = self.library.foremind_memory_erasure();
        erasure.call_verify(&mut self.store, memory, receipt)
    }

    /// `erasure.verify-end`.
    ///
    /// # Errors
    /// A trap.
    pub fn verify_end(&mut self, bucket: &str, key: &[u8], receipt: &Receipt) -> Called<Verified> {
        let erasure = self.library.foremind_memory_erasure();
        erasure.call_verify_end(&mut self.store, bucket, key, receipt)
    }

    /// `disclosure.recall`.
    ///
    /// # Errors
    /// A trap.
    pub fn disclose(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        query: &str,
        audience: Audience,
    ) -> Called<Disclosed> {
        let disclosure = self.library.foremind_memory_disclosure();
        disclosure.call_recall(&mut self.store, memory, scope, query, None, audience)
    }

    /// `disclosure.profile`.
    ///
    /// # Errors
    /// A trap.
    pub fn disclose_profile(
        &mut self,
        memory: ResourceAny,
        scope: &Scope,
        audience: Audience,
    ) -> Called<Disclosed> {
        let disclosure = self.library.foremind_memory_disclosure();
        disclosure.call_profile(&mut self.store, memory, scope, None, audience)
    }

    /// `disclosure.restore`.
    ///
    /// # Errors
    /// A trap.
    pub fn restore(&mut self, answer: &str, pseudonyms: &[Pseudonym]) -> wasmtime::Result<String> {
        let disclosure = self.library.foremind_memory_disclosure();
        disclosure.call_restore(&mut self.store, answer, pseudonyms)
    }
}

/// One instance of the service.
pub struct ServiceInstance {
    store: Store<Host>,
    handler: Handler,
}

enum Handler {
    Swap(http::swap::Service),
    Spin(http::spin::ServiceSpin),
}

impl ServiceInstance {
    /// A fresh instance on these buckets; `config` is what the host's variable holds.
    ///
    /// # Errors
    /// wasmtime's, such as an import that this host does not offer; a world without the handler.
    pub fn new(
        world: World,
        buckets: &Buckets,
        seed: u64,
        config: Option<&str>,
    ) -> wasmtime::Result<Self> {
        let (engine, component) = component(world)?;
        let mut linker = Linker::new(engine);
        let to = &mut linker;
        let mut store = Store::new(engine, Host::new(buckets, seed));
        store.data_mut().http.config = config.map(str::to_owned);
        let handler = match world {
            World::Service => {
                http::swap::Service::add_to_linker::<Host, HasSelf<Host>>(to, |it| it)?;
                Handler::Swap(http::swap::Service::instantiate(
                    &mut store, component, &linker,
                )?)
            }
            World::ServiceSpin => {
                http::spin::ServiceSpin::add_to_linker::<Host, HasSelf<Host>>(to, |it| it)?;
                Handler::Spin(http::spin::ServiceSpin::instantiate(
                    &mut store, component, &linker,
                )?)
            }
            _ => return Err(wasmtime::Error::msg("this world has no handler")),
        };
        Ok(Self { store, handler })
    }

    /// The host's side of the instance.
    pub fn host(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// How many times a body was read.
    pub fn body_reads(&mut self) -> usize {
        self.store.data_mut().http.reads
    }

    /// Hands one request over.
    ///
    /// # Errors
    /// A trap, or a handler that answers nothing.
    pub fn handle(&mut self, request: Request) -> wasmtime::Result<Response> {
        let host = self.store.data_mut();
        let request = host.table.push(request)?;
        let out = host.table.push(http::Out)?;
        match &self.handler {
            Handler::Swap(service) => {
                service
                    .wasi_http_incoming_handler()
                    .call_handle(&mut self.store, request, out)
            }
            Handler::Spin(service) => {
                service
                    .wasi_http_incoming_handler()
                    .call_handle(&mut self.store, request, out)
            }
        }?;
        let answer = self.store.data_mut().http.take();
        answer.ok_or_else(|| wasmtime::Error::msg("the handler did not answer"))
    }
}
