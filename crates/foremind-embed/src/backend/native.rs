//! The shipped encoder: our own kernels over int8 weights.

use core::ops::Range;
use std::sync::Mutex;

use foremind_kernels::Kernel;
use foremind_kernels::dense::Deltas;
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
    /// What lies behind the words is decoded into matrices and freed.
    pub(super) fn load(mut pack: Pack) -> Result<Self, EmbedError> {
        let weights = Weights::read(pack.section(Section::Int8)?, HIDDEN, Kernel::fastest())?;
        pack.truncate_section(Section::Int8, weights.words_end());
        Ok(Self {
            pack,
            weights,
            space: Mutex::default(),
        })
    }

    /// The embeddings of all tokens, normalised.
    fn embeddings(&self, texts: &[Vec<u32>]) -> Result<Vec<f32>, EmbedError> {
        let section = self.pack.section(Section::Int8)?;
        let mut states = vec![0.0; texts.iter().map(Vec::len).sum::<usize>() * HIDDEN];
        let mut rest = &mut states[..];
        for tokens in texts {
            let size = tokens.len() * HIDDEN;
            let Some(places) = self.weights.places.get(..size).filter(|p| !p.is_empty()) else {
                return Err(EmbedError::Inference {
                    what: format!("{} tokens", tokens.len()),
                });
            };
            let (rows, more) = rest.split_at_mut(size);
            for (row, token) in rows.chunks_exact_mut(HIDDEN).zip(tokens) {
                self.weights.word(section, *token, row)?;
            }
            self.weights.norm.apply::<Lanes>(rows, places);
            rest = more;
        }
        Ok(states)
    }
}

impl Backend for Native {
    fn vocabulary_size(&self) -> usize {
        self.weights.vocabulary_size()
    }

    fn accepts(&self, deltas: &Deltas) -> bool {
        self.weights.encoder.accepts(deltas)
    }

    fn states(
        &self,
        texts: &[Vec<u32>],
        wanted: &[Option<&Deltas>],
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let mut plain = self.embeddings(texts)?;
        // A second caller does not wait for the first one's memory.
        let (mut shared, mut own) = (self.space.try_lock().ok(), Workspace::default());
        let space = shared.as_deref_mut().unwrap_or(&mut own);
        let encoder = &self.weights.encoder;
        let firsts: Vec<Option<usize>> = wanted
            .iter()
            .map(|deltas| deltas.and_then(Deltas::first_layer))
            .collect();
        let mut found = vec![Vec::new(); wanted.len()];
        for run in plan(&firsts, encoder.layers().len()) {
            match run.of {
                None => {
                    encoder.run_layers::<Lanes>(run.layers, None, &mut plain, &lengths, space);
                }
                Some(at) => {
                    let mut states = plain.clone();
                    encoder.run_layers::<Lanes>(
                        run.layers,
                        wanted[at],
                        &mut states,
                        &lengths,
                        space,
                    );
                    found[at] = states;
                }
            }
        }
        for (found, first) in found.iter_mut().zip(&firsts) {
            if first.is_none() {
                found.clone_from(&plain);
            }
        }
        Ok(found)
    }
}

/// Layers to run, on the plain states or on a copy of them that becomes one of the results.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    of: Option<usize>,
    layers: Range<usize>,
}

/// How to get the results whose first changed layers are `firsts` (`None`: no change) with each layer run on the plain
/// states at most once, and never beyond the last one that is needed so.
fn plan(firsts: &[Option<usize>], layers: usize) -> Vec<Run> {
    let mut branches: Vec<(usize, usize)> = firsts
        .iter()
        .enumerate()
        .filter_map(|(at, first)| Some(((*first)?, at)))
        .collect();
    branches.sort_unstable();
    let mut runs = Vec::new();
    let mut done = 0;
    let mut plain_to = |runs: &mut Vec<Run>, end: usize| {
        if end > done {
            runs.push(Run {
                of: None,
                layers: done..end,
            });
            done = end;
        }
    };
    for (first, at) in branches {
        plain_to(&mut runs, first);
        runs.push(Run {
            of: Some(at),
            layers: first..layers,
        });
    }
    if firsts.contains(&None) {
        plain_to(&mut runs, layers);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(firsts: &[Option<usize>], expected: &[(Option<usize>, Range<usize>)]) {
        let expected: Vec<Run> = expected
            .iter()
            .map(|(of, layers)| Run {
                of: *of,
                layers: layers.clone(),
            })
            .collect();
        assert_eq!(plan(firsts, 6), expected);
    }

    #[test]
    fn lower_layers_are_run_once() {
        check(&[None], &[(None, 0..6)]);
        check(&[None, None], &[(None, 0..6)]);
        check(&[Some(3)], &[(None, 0..3), (Some(0), 3..6)]);
        check(&[Some(0)], &[(Some(0), 0..6)]);
        check(
            &[Some(4), None, Some(2), Some(4)],
            &[
                (None, 0..2),
                (Some(2), 2..6),
                (None, 2..4),
                (Some(0), 4..6),
                (Some(3), 4..6),
                (None, 4..6),
            ],
        );
    }
}
