//! The shipped encoder: our own kernels over int8 weights.

use std::sync::Mutex;

use foremind_kernels::Kernel;
use foremind_kernels::encoder::Workspace;
use foremind_kernels::lanes::Native as Lanes;

use super::{Backend, HIDDEN};
use crate::EmbedError;
use crate::pack::{Pack, Section};
use crate::weights::Weights;

pub(super) struct Native {
    /// Holds the word embeddings, which are decoded row by row where they lie.
    pack: Pack,
    weights: Weights,
    space: Mutex<Workspace>,
}

impl Native {
    pub(super) fn load(pack: Pack) -> Result<Self, EmbedError> {
        let weights = Weights::read(pack.section(Section::Int8)?, HIDDEN, Kernel::Pairs)?;
        Ok(Self {
            pack,
            weights,
            space: Mutex::default(),
        })
    }
}

impl Backend for Native {
    fn vocabulary_size(&self) -> usize {
        self.weights.vocabulary_size()
    }

    fn hidden_states(&self, tokens: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let size = tokens.len() * HIDDEN;
        let Some(places) = self.weights.places.get(..size).filter(|p| !p.is_empty()) else {
            return Err(EmbedError::Inference {
                what: format!("{} tokens", tokens.len()),
            });
        };
        let section = self.pack.section(Section::Int8)?;
        let mut states = vec![0.0; size];
        for (row, token) in states.chunks_exact_mut(HIDDEN).zip(tokens) {
            self.weights.word(section, *token, row)?;
        }
        self.weights.norm.apply::<Lanes>(&mut states, places);
        // A second caller does not wait for the first one's memory.
        let (mut shared, mut own) = (self.space.try_lock().ok(), Workspace::default());
        let space = shared.as_deref_mut().unwrap_or(&mut own);
        let encoder = &self.weights.encoder;
        encoder.run::<Lanes>(&mut states, &[tokens.len()], space);
        Ok(states)
    }
}
