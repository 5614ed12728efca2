//! The embedder as a wasm module for JavaScript hosts.
