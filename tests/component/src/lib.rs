//! A WASI host for the component: its four interfaces in memory, deterministic, failing when told to.

mod buckets;
mod host;

use std::path::PathBuf;
use std::sync::OnceLock;

use wasmtime::component::{Component, HasSelf, Linker, ResourceAny};
use wasmtime::{Config, Engine, OptLevel, Store};

pub use bindings::exports::foremind::memory::memories::{
    Error, ForgetTarget, OpenOptions, Prompt, Scope,
};
pub use buckets::{Buckets, Fault};
pub use host::Host;

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
            "wasi:keyvalue/store.bucket": crate::buckets::Bucket,
            "wasi:keyvalue/atomics.cas": crate::buckets::Snapshot,
        },
        imports: { default: trappable },
    });
}

/// The built component and the engine it is compiled for, once for all tests.
///
/// # Errors
/// What wasmtime says of a file that is no component.
///
/// # Panics
/// If the component is not built.
#[allow(clippy::panic, reason = "a test that cannot go on")]
pub fn component() -> wasmtime::Result<&'static (Engine, Component)> {
    static COMPILED: OnceLock<(Engine, Component)> = OnceLock::new();
    if let Some(compiled) = COMPILED.get() {
        return Ok(compiled);
    }
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/components/foremind.wasm");
    let Ok(bytes) = std::fs::read(&path) else {
        panic!("no component: run `cargo xtask build --profile ci` first");
    };
    let mut config = Config::new();
    // Compiled once and run for seconds.
    config.cranelift_opt_level(OptLevel::None);
    let engine = Engine::new(&config)?;
    let compiled = Component::from_binary(&engine, &bytes)?;
    Ok(COMPILED.get_or_init(|| (engine, compiled)))
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
        let (engine, component) = component()?;
        let mut linker = Linker::new(engine);
        bindings::Library::add_to_linker::<Host, HasSelf<Host>>(&mut linker, |host| host)?;
        let mut store = Store::new(engine, Host::new(buckets, seed));
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
}
