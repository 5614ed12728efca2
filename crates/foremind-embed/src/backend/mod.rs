//! The network behind the tokens: one trait, one module for each way to run it.

use crate::EmbedError;
use crate::pack::Pack;
#[cfg(feature = "onnx")]
use crate::pack::Section;

mod native;
#[cfg(feature = "onnx")]
mod onnx;

/// Dimensions of a hidden state.
pub(crate) const HIDDEN: usize = foremind_types::VECTOR_DIMENSIONS;

/// A loaded encoder.
///
/// It takes the tokens of one text (1 to 256, none of them padding), because padding costs time on one core
/// and a text alone has the same result whatever it is batched with.
pub(crate) trait Backend {
    /// Rows of the embedding table; every token id must be below.
    fn vocabulary_size(&self) -> usize;

    /// The last hidden states, one row of [`HIDDEN`] for each token.
    ///
    /// # Errors
    /// [`EmbedError::Inference`].
    fn hidden_states(&self, tokens: &[u32]) -> Result<Vec<f32>, EmbedError>;
}

/// Loads the weights of a pack: int8 weights where it has them, else an ONNX file where this build runs one.
///
/// # Errors
/// [`EmbedError::SectionMissing`] when the pack has no weights for this build, [`EmbedError::BadWeights`].
pub(crate) fn load(pack: Pack) -> Result<Box<dyn Backend>, EmbedError> {
    #[cfg(feature = "onnx")]
    if !pack.has(Section::Int8) && pack.has(Section::Onnx) {
        return Ok(Box::new(onnx::Onnx::load(pack)?));
    }
    Ok(Box::new(native::Native::load(pack)?))
}
