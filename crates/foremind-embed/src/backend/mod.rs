//! The network behind the tokens: one trait, one module for each way to run it.

use crate::EmbedError;
use crate::pack::Pack;
#[cfg(not(feature = "onnx"))]
use crate::pack::Section;

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

/// Loads the weights of a pack with the first backend of this build that knows them.
///
/// # Errors
/// [`EmbedError::SectionMissing`] when the pack has no weights for this build, [`EmbedError::BadWeights`].
pub(crate) fn load(pack: Pack) -> Result<Box<dyn Backend>, EmbedError> {
    #[cfg(feature = "onnx")]
    return Ok(Box::new(onnx::Onnx::load(pack)?));
    #[cfg(not(feature = "onnx"))]
    {
        pack.section(Section::Onnx)?;
        Err(EmbedError::BadWeights {
            what: "expected weights that this build runs, found an ONNX file, which needs the feature `onnx`"
                .to_owned(),
        })
    }
}
