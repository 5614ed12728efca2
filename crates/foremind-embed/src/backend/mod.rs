//! The network behind the tokens: one trait, one module for each way to run it.

use foremind_kernels::dense::Deltas;

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
/// It takes the tokens of some texts (1 to 256 each, none of them padding, because padding costs time on one core).
/// A text has the same result whatever it is batched with.
pub(crate) trait Backend {
    /// Rows of the embedding table; every token id must be below.
    fn vocabulary_size(&self) -> usize;

    /// Whether the encoder has the matrices that are to be changed.
    fn accepts(&self, deltas: &Deltas) -> bool;

    /// The last hidden states, one row of [`HIDDEN`] for each token, the texts one after the other: once for each of
    /// `wanted`, which are the encoder as it is (`None`) or changed.
    ///
    /// # Errors
    /// [`EmbedError::Inference`].
    fn states(
        &self,
        texts: &[Vec<u32>],
        wanted: &[Option<&Deltas>],
    ) -> Result<Vec<Vec<f32>>, EmbedError>;
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
