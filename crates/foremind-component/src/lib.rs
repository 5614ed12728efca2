//! The core as a WASI component: the world in `wit/`, and a driver that is as synchronous as the host's store.
//!
//! All that the component can reach is what that world names. It is built for `wasm32-unknown-unknown`, where the
//! standard library imports nothing, and `cargo xtask build` wraps it.
//!
//! By itself it finds records by their words only. The feature `embedder` links the embedder, to which the host hands its
//! model file when it opens a memory; with the feature `model` the component holds that file, and the host need not.
//! The world is the same.
//!
//! There is one component for each kind of store that hosts offer: for `wasi:keyvalue` draft 2 by default, for its first draft with the feature
//! `draft`, for Spin's stores with `spin` (which wins). They differ in [`bucket`] alone.
//!
//! The feature `service` exports an HTTP handler instead: the hosted service, with all its memories in one bucket.

#[cfg(all(feature = "service", feature = "draft", not(feature = "spin")))]
compile_error!("there is no world of the service on the first draft of wasi:keyvalue");

mod bucket;
mod clock;
#[cfg(not(feature = "service"))]
mod disclosure;
#[cfg(not(feature = "service"))]
mod erasure;
#[cfg(not(feature = "service"))]
mod errors;
#[cfg(not(feature = "service"))]
mod memories;
mod model;
#[cfg(feature = "service")]
mod service;
mod values;

#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "generated from wit/: the canonical ABI moves values by pointer"
)]
mod bindings {
    #[cfg(not(any(feature = "draft", feature = "spin", feature = "service")))]
    wit_bindgen::generate!({
        world: "library",
        path: "../../wit",
        generate_all,
    });

    #[cfg(all(feature = "draft", not(any(feature = "spin", feature = "service"))))]
    wit_bindgen::generate!({
        world: "library-draft",
        path: "../../wit",
        generate_all,
    });

    #[cfg(all(feature = "spin", not(feature = "service")))]
    wit_bindgen::generate!({
        world: "library-spin",
        path: "../../wit",
        generate_all,
    });

    #[cfg(all(feature = "service", not(feature = "spin")))]
    wit_bindgen::generate!({
        world: "service",
        path: "../../wit",
        generate_all,
    });

    #[cfg(all(feature = "service", feature = "spin"))]
    wit_bindgen::generate!({
        world: "service-spin",
        path: "../../wit",
        generate_all,
    });

    export!(Component with_types_in self);

    #[cfg(not(feature = "service"))]
    use crate::memories::Component;
    #[cfg(feature = "service")]
    use crate::service::Component;
}
