//! The core and the embedder as a WASI component.
