//! The core as a wasm module for JavaScript hosts.
