//! The core as a WASI component: the world in `wit/`, and a driver that is as synchronous as the host's store.
//!
//! All that the component can reach is what that world names. It is built for `wasm32-unknown-unknown`, where the
//! standard library imports nothing, and `cargo xtask build` wraps it.
//!
//! The component that `cargo xtask build` makes finds records by their words only. The feature `embedder` links the embedder, to which the host
//! hands its model file when it opens a memory. It is off, because the network's runtime would make the component several
//! times as large and minutes slower to build; the world is the same with it.

mod errors;
mod memories;
mod model;
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
    wit_bindgen::generate!({
        world: "library",
        path: "../../wit",
        generate_all,
    });

    export!(Component with_types_in self);

    use crate::memories::Component;
}
