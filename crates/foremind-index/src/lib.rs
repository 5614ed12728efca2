//! BM25, vectors, and what texts cost.
//!
//! The index knows places, texts and vectors, and nothing of what a record means: which record stands at a place, and whether it may
//! be found, is asked of the caller for each search. Scores are quantised to 1e-4 before they are compared and
//! ties go by id, so every host ranks alike. What is removed leaves no trace in memory that the index owns.

mod analysis;
mod best;
mod bm25;
mod number;
pub mod tokens;
mod vectors;
mod work;

pub use analysis::{normalise, terms};
pub use best::Sees;
pub use bm25::{Bm25, Lexical, LexicalHit};
pub use number::quantise;
pub use vectors::{VectorError, VectorHit, Vectors, check, dequantise};
pub use work::Work;
