//! The embedder, where the build links it.

use foremind_types::{Embedding, EncodeFailure, Error, HeadId};

#[cfg(feature = "embedder")]
use foremind_embed::Embedder;
#[cfg(not(feature = "embedder"))]
use foremind_types::ErrorCode;

/// The model file inside the component.
#[cfg(feature = "model")]
const INSIDE: Option<&[u8]> = Some(include_bytes!(env!("FOREMIND_MODEL_FILE")));
#[cfg(all(feature = "embedder", not(feature = "model")))]
const INSIDE: Option<&[u8]> = None;

/// A model, or none: records are found by their words then.
pub(crate) struct Model {
    #[cfg(feature = "embedder")]
    embedder: Option<Embedder>,
}

impl Model {
    /// Loads the model file of the host, or else the one inside.
    ///
    /// # Errors
    /// `model-invalid` or `newer-format`; `unsupported` where the build links no embedder.
    #[cfg(feature = "embedder")]
    pub(crate) fn load(file: Option<Vec<u8>>) -> Result<Self, Error> {
        let file = file.or_else(|| INSIDE.map(<[u8]>::to_vec));
        Ok(Self {
            embedder: file.map(Embedder::load).transpose()?,
        })
    }

    /// As above.
    #[cfg(not(feature = "embedder"))]
    pub(crate) fn load(file: Option<Vec<u8>>) -> Result<Self, Error> {
        match file {
            None => Ok(Self {}),
            Some(_) => Err(Error::new(
                ErrorCode::Unsupported,
                "this build of the component has no embedder; open the memory without a model, or build it with the feature `embedder`",
            )),
        }
    }

    /// `[text][head]`.
    #[cfg(feature = "embedder")]
    pub(crate) fn encode(
        &self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        let embedder = self.embedder.as_ref().ok_or(EncodeFailure::NotReady)?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        embedder
            .encode(&texts, heads)
            .map_err(|_| EncodeFailure::Failed)
    }

    /// As above.
    #[cfg(not(feature = "embedder"))]
    pub(crate) fn encode(
        &self,
        _: &[String],
        _: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        Err(EncodeFailure::NotReady)
    }
}
