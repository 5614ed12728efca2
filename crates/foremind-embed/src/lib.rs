//! Text to sentence vector: WordPiece, MiniLM, pooling.
//!
//! [`Embedder::load`] takes one model file (see [`pack`]), checks it and builds the network;
//! [`Embedder::encode`] turns texts into int8 vectors that carry their model and head; an [`adapter`] adds heads. The crate knows
//! nothing of hosts: bytes and strings go in, numbers come out.

pub mod adapter;
mod backend;
mod embedder;
mod error;
pub mod pack;
pub mod weights;
mod wordpiece;

pub use embedder::{EMBEDDING_HEAD, Embedder, TEXT_BYTES_MAX};
pub use error::EmbedError;
pub use foremind_kernels::dense::Part;
pub use wordpiece::{TOKENS_MAX, WordPiece};
