use serde::{Deserialize, Serialize};

use crate::vocabulary;

/// Dimensions of every stored vector.
pub const VECTOR_DIMENSIONS: usize = 384;

/// Names the weights that made a vector. Vectors of different models are never compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelId(pub String);

/// Names the head (`embedding`, `route`, ...) and its version that made a vector or features.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeadId(pub String);

/// What `encode(texts, heads)` returns for one text and one head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Embedding {
    /// The weights.
    pub model_id: ModelId,
    /// The head.
    pub head_id: HeadId,
    /// Symmetric int8 quantisation of a unit vector of [`VECTOR_DIMENSIONS`]: `x[i] = vector[i] * scale`.
    /// Empty when the head gives features only.
    pub vector: Vec<i8>,
    /// See `vector`; positive and finite.
    pub scale: f32,
    /// At most 64 outputs of the head; empty for the plain embedding head.
    pub features: Vec<f32>,
}

vocabulary! {
    /// Why a text has no embedding now.
    pub enum EncodeFailure {
        /// No embedder yet: still loading, or none wanted. Encoding is done later.
        NotReady = "not-ready",
        /// The embedder failed; the text stays lexical until an encoding succeeds.
        Failed = "failed",
        /// The caller gave up.
        Aborted = "aborted",
    }
}
