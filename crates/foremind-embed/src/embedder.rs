use foremind_types::limits::EMBED_TEXTS;
use foremind_types::{Embedding, HeadId, ModelId, VECTOR_DIMENSIONS};

use crate::backend::{self, Backend, HIDDEN};
use crate::pack::{Pack, Section};
use crate::quantise;
use crate::{EmbedError, WordPiece};

/// The head that every model has: the sentence vector itself, without features.
pub const EMBEDDING_HEAD: &str = "embedding/1";

/// A loaded model.
pub struct Embedder {
    model_id: ModelId,
    word_piece: WordPiece,
    backend: Box<dyn Backend>,
}

impl Embedder {
    /// Checks a model file and builds its network. The bytes are freed before the call returns.
    ///
    /// # Errors
    /// Every variant of [`EmbedError`] that is about the model file.
    pub fn load(pack: Vec<u8>) -> Result<Self, EmbedError> {
        let pack = Pack::read(pack)?;
        let word_piece = WordPiece::new(pack.section(Section::Vocabulary)?)?;
        let model_id = pack.model_id().clone();
        let backend = backend::load(pack)?;
        if backend.vocabulary_size() != word_piece.vocabulary_size() {
            return Err(EmbedError::VocabularySize {
                expected: backend.vocabulary_size(),
                found: word_piece.vocabulary_size(),
            });
        }
        Ok(Self {
            model_id,
            word_piece,
            backend,
        })
    }

    /// Names the weights.
    #[must_use]
    pub fn model_id(&self) -> &ModelId {
        &self.model_id
    }

    /// Encodes each of `texts` for each of `heads`; the result is indexed `[text][head]`.
    ///
    /// A text is cut to its first 254 tokens. What a text is encoded to depends on that text alone.
    ///
    /// # Errors
    /// [`EmbedError::TooManyTexts`] above [`EMBED_TEXTS`], [`EmbedError::UnknownHead`],
    /// [`EmbedError::TextEmpty`] (all checked before any work), [`EmbedError::Inference`].
    pub fn encode(
        &self,
        texts: &[&str],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EmbedError> {
        if texts.len() > EMBED_TEXTS {
            return Err(EmbedError::TooManyTexts {
                expected: EMBED_TEXTS,
                found: texts.len(),
            });
        }
        if let Some(found) = heads.iter().find(|head| head.0 != EMBEDDING_HEAD) {
            return Err(EmbedError::UnknownHead {
                found: found.clone(),
            });
        }
        if let Some(at) = texts.iter().position(|text| text.trim().is_empty()) {
            return Err(EmbedError::TextEmpty { at });
        }
        texts
            .iter()
            .map(|text| {
                let unit = self.unit_vector(text)?;
                let (vector, scale) = quantise::int8(&unit);
                let embedding = |head: &HeadId| Embedding {
                    model_id: self.model_id.clone(),
                    head_id: head.clone(),
                    vector: vector.clone(),
                    scale,
                    features: Vec::new(),
                };
                Ok(heads.iter().map(embedding).collect())
            })
            .collect()
    }

    /// The unit vector of a text before it becomes int8: the oracle of tests and benchmarks.
    ///
    /// # Errors
    /// [`EmbedError::TextEmpty`], [`EmbedError::Inference`].
    pub fn encode_f32(&self, text: &str) -> Result<[f32; VECTOR_DIMENSIONS], EmbedError> {
        if text.trim().is_empty() {
            return Err(EmbedError::TextEmpty { at: 0 });
        }
        self.unit_vector(text)
    }

    /// The token ids that a text is encoded from, for comparisons with other runtimes.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.word_piece.tokens(text)
    }

    fn unit_vector(&self, text: &str) -> Result<[f32; VECTOR_DIMENSIONS], EmbedError> {
        let tokens = self.tokens(text);
        let states = self.backend.hidden_states(&tokens)?;
        mean_unit(&states).ok_or_else(|| EmbedError::Inference {
            what: "the mean of the hidden states has no direction".to_owned(),
        })
    }
}

/// Mean over the tokens, scaled to length 1, as in sentence-transformers; `None` if that is no finite
/// vector. No token is padding, so the attention mask is all ones and the mean is over every row.
fn mean_unit(states: &[f32]) -> Option<[f32; HIDDEN]> {
    let mut sum = [0.0_f32; HIDDEN];
    for row in states.chunks_exact(HIDDEN) {
        for (total, x) in sum.iter_mut().zip(row) {
            *total += x;
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return None;
    }
    for x in &mut sum {
        *x /= length;
    }
    Some(sum)
}
