use foremind_kernels::dense::Deltas;
use foremind_kernels::lanes::Native as Lanes;
use foremind_kernels::norm::{mean_pool, unit};
use foremind_types::limits::EMBED_TEXTS;
use foremind_types::{Embedding, HeadId, ModelId, VECTOR_DIMENSIONS};

use crate::adapter::{self, Adapter, HeadContent, Pooling};
use crate::backend::{self, Backend, HIDDEN};
use crate::pack::{Pack, Section};
use crate::{EmbedError, TOKENS_MAX, WordPiece};

/// The head that every model has: the sentence vector itself, without features.
pub const EMBEDDING_HEAD: &str = "embedding/1";

/// A text counts as its first 64 KiB, cut at a character. Its first 254 tokens lie within, unless it is mostly white
/// space or words without a token of their own.
pub const TEXT_BYTES_MAX: usize = 65_536;

/// A loaded model.
pub struct Embedder {
    model_id: ModelId,
    word_piece: WordPiece,
    backend: Box<dyn Backend>,
    /// The head [`EMBEDDING_HEAD`].
    embedding: HeadContent,
    adapters: Vec<Adapter>,
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
            embedding: HeadContent {
                id: EMBEDDING_HEAD.to_owned(),
                adapted: false,
                vector: true,
                unit: false,
                pooling: Pooling::Mean,
                maps: Vec::new(),
            },
            adapters: Vec::new(),
        })
    }

    /// Adds the heads of an adapter file.
    ///
    /// # Errors
    /// [`EmbedError::AdapterOfAnotherModel`]; [`EmbedError::BadAdapter`] also when a head of the same id is loaded or
    /// the model has no such matrices; those of [`adapter::read`]. Nothing is added then.
    pub fn load_adapter(&mut self, file: Vec<u8>) -> Result<(), EmbedError> {
        let (model_id, content) = adapter::read(file)?;
        if model_id != self.model_id {
            return Err(EmbedError::AdapterOfAnotherModel {
                expected: self.model_id.clone(),
                found: model_id,
            });
        }
        let adapter = Adapter::new(content)?;
        let bad = |what: String| Err(EmbedError::BadAdapter { what });
        if !self.backend.accepts(&adapter.deltas) {
            return bad("expected changes of matrices that the model has, found others".to_owned());
        }
        if let Some(head) = adapter
            .heads
            .iter()
            .find(|head| self.head(&head.id).is_some())
        {
            let id = head.id.escape_debug();
            return bad(format!("expected new heads, found `{id}`, which is loaded"));
        }
        self.adapters.push(adapter);
        Ok(())
    }

    /// The heads that texts can be encoded for.
    pub fn heads(&self) -> impl Iterator<Item = HeadId> + '_ {
        let of_adapters = self.adapters.iter().flat_map(|adapter| &adapter.heads);
        core::iter::once(&self.embedding)
            .chain(of_adapters)
            .map(|head| HeadId(head.id.clone()))
    }

    /// A head, and the adapter whose changes it runs on.
    fn head(&self, id: &str) -> Option<(&HeadContent, Option<usize>)> {
        if id == EMBEDDING_HEAD {
            return Some((&self.embedding, None));
        }
        self.adapters.iter().enumerate().find_map(|(at, adapter)| {
            let head = adapter.heads.iter().find(|head| head.id == id)?;
            let changed = head.adapted && adapter.deltas.first_layer().is_some();
            Some((head, changed.then_some(at)))
        })
    }

    /// Names the weights.
    #[must_use]
    pub fn model_id(&self) -> &ModelId {
        &self.model_id
    }

    /// Encodes each of `texts` for each of `heads`; the result is indexed `[text][head]`.
    ///
    /// A text is cut to its first [`TEXT_BYTES_MAX`] bytes and then to its first 254 tokens. What a text is encoded to
    /// depends on that text alone.
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
        let heads = heads
            .iter()
            .map(|id| {
                self.head(&id.0)
                    .ok_or_else(|| EmbedError::UnknownHead { found: id.clone() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let texts: Vec<&str> = texts.iter().map(|text| cut(text)).collect();
        if let Some(at) = texts.iter().position(|text| text.trim().is_empty()) {
            return Err(EmbedError::TextEmpty { at });
        }
        if heads.is_empty() {
            return Ok(vec![Vec::new(); texts.len()]);
        }
        // Each adapter once, and the plain encoder where a head needs it.
        let mut used: Vec<Option<usize>> = heads.iter().map(|(_, adapter)| *adapter).collect();
        used.sort_unstable();
        used.dedup();
        let wanted: Vec<Option<&Deltas>> = used
            .iter()
            .map(|adapter| adapter.map(|at| &self.adapters[at].deltas))
            .collect();
        let mut rows = Vec::with_capacity(texts.len());
        let tokens = texts.iter().map(|text| self.tokens(text)).collect();
        for batch in batches(tokens) {
            let states = self.backend.states(&batch, &wanted)?;
            let mut start = 0;
            for tokens in &batch {
                let end = start + tokens.len() * HIDDEN;
                let row = heads.iter().map(|(head, adapter)| {
                    // Every adapter of a head is among those used.
                    let of = used.binary_search(adapter).unwrap_or_default();
                    head.apply(&self.model_id, &states[of][start..end])
                });
                rows.push(row.collect::<Result<Vec<_>, _>>()?);
                start = end;
            }
        }
        Ok(rows)
    }

    /// The unit vector of a text before it becomes int8: the oracle of tests and benchmarks.
    ///
    /// # Errors
    /// [`EmbedError::TextEmpty`], [`EmbedError::Inference`].
    pub fn encode_f32(&self, text: &str) -> Result<[f32; VECTOR_DIMENSIONS], EmbedError> {
        if cut(text).trim().is_empty() {
            return Err(EmbedError::TextEmpty { at: 0 });
        }
        self.unit_vector(text)
    }

    /// The token ids that a text is encoded from, for comparisons with other runtimes.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.word_piece.tokens(cut(text))
    }

    fn unit_vector(&self, text: &str) -> Result<[f32; VECTOR_DIMENSIONS], EmbedError> {
        let states = self.backend.states(&[self.tokens(text)], &[None])?;
        let mut mean = [0.0; HIDDEN];
        mean_pool::<Lanes>(&states[0], &mut mean);
        if unit::<Lanes>(&mut mean) {
            Ok(mean)
        } else {
            Err(EmbedError::Inference {
                what: "the mean of the hidden states has no direction".to_owned(),
            })
        }
    }
}

/// Texts that go through the layers together: as many as have [`TOKENS_MAX`] tokens at most. Short ones share tiles
/// that they would leave half empty; more would only take more memory.
fn batches(texts: Vec<Vec<u32>>) -> Vec<Vec<Vec<u32>>> {
    let mut batches: Vec<Vec<Vec<u32>>> = Vec::new();
    let mut filled = usize::MAX;
    for tokens in texts {
        filled = filled.saturating_add(tokens.len());
        match batches.last_mut() {
            Some(batch) if filled <= TOKENS_MAX => batch.push(tokens),
            _ => {
                filled = tokens.len();
                batches.push(vec![tokens]);
            }
        }
    }
    batches
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
