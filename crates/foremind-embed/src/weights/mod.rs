//! The shipped weights: int8, entropy-coded, read from section [`Section::Int8`](crate::pack::Section::Int8).
//!
//! All numbers are little-endian; nothing is aligned. The section is, in this order:
//!
//! | part | what |
//! |---|---|
//! | [`VERSION`] `u16`, layers `u16`, vocabulary `u32`, width `u16`, wide `u16`, positions `u16`, zero `u16` | the shape |
//! | vector x 2 | scale and shift of the embeddings' normalisation |
//! | places | position embeddings, the token type's added: a step `f32` for each position, then coded values twice, high and low: a value is 8 * high + low |
//! | words | base `f32`, a step code `u8` for each word, words of each run `u8`, a table, then the runs, one lane each; no run at all for a word of 0 words, whose values are 0 |
//! | layers x (matrix, matrix, norm, matrix, matrix, norm) | queries, keys, values; merge; expand; contract |
//!
//! - *table*: first symbol `i8`, number of symbols - 1 `u8`, a frequency `u16` for each (see [`rans`]).
//! - *coded values*: a table, bytes of the run `u32`, a run of eight lanes.
//! - *vector*: a step `f32`, then `i16` for each number.
//! - *norm*: two vectors, scale and shift.
//! - *matrix*: base `f32`, coded step codes, coded values, a vector of the bias. Values and step codes lie as
//!   `foremind_kernels::weights::Matrix::new` takes them.
//! - A *step code* `c` of 0 to 127 means base * 2^(c / 8).

mod quantiser;
mod rans;
#[cfg(test)]
mod tests;

use core::ops::Range;

use foremind_kernels::Kernel;
use foremind_kernels::encoder::{Encoder, Layer};
use foremind_kernels::norm::Norm;
use foremind_kernels::weights::Matrix;
use foremind_kernels::{GROUP, TILE_COLUMNS};

use crate::{EmbedError, TOKENS_MAX};
use rans::Model;

pub use quantiser::{Checkpoint, QuantiseError, quantise};

/// The version of the section that this build writes and reads.
pub const VERSION: u16 = 1;

/// Lanes of every run but those of words.
const LANES: usize = 8;
/// Lanes of the run of a word. Each lane costs two bytes a word.
const WORD_LANES: usize = 1;
const LAYERS_MAX: usize = 12;
const WIDE_MAX: usize = 4096;
const VOCABULARY_MAX: usize = 1 << 17;
/// Bounds what a vector of i16 can hold to 1000, so that no sum of the network can overflow.
const VECTOR_STEP_MAX: f32 = 0.03;
const EMBEDDING_STEP_MAX: f32 = 1.0;

/// 2^(k / 8), rounded to f32.
const EIGHTHS: [f32; 8] = [
    1.0,
    1.090_507_7,
    1.189_207_1,
    1.296_839_6,
    std::f32::consts::SQRT_2,
    1.542_210_8,
    1.681_792_9,
    1.834_008_1,
];

/// The step of a code in 0..=127.
fn step(base: f32, code: u8) -> f32 {
    let octave = f32::from_bits((127 + u32::from(code & 127) / 8) << 23);
    base * octave * EIGHTHS[usize::from(code % 8)]
}

/// Weights ready to compute with. Word embeddings stay as they are stored, and are decoded when a text needs them.
pub(crate) struct Weights {
    pub encoder: Encoder,
    pub norm: Norm,
    /// `[position][width]`
    pub places: Vec<f32>,
    words: Words,
}

struct Words {
    model: Model,
    base: f32,
    /// The step codes, as a range of the section.
    codes: Range<usize>,
    /// Where the run of each word starts in the section, and where the last one ends.
    starts: Vec<u32>,
}

impl Weights {
    /// Reads a section, whose values are then laid out for `kernel`.
    ///
    /// # Errors
    /// [`EmbedError::BadWeights`].
    pub(crate) fn read(section: &[u8], width: usize, kernel: Kernel) -> Result<Self, EmbedError> {
        let mut reader = Reader {
            bytes: section,
            at: 0,
        };
        let version = reader.u16()?;
        if version != VERSION {
            return Err(bad(format!(
                "expected weights of version {VERSION}, found {version}"
            )));
        }
        let layers = reader.within("layers", 1..=LAYERS_MAX)?;
        let vocabulary = reader.u32()? as usize;
        let found = reader.within("width", 1..=usize::from(u16::MAX))?;
        let wide = reader.within("width of the feed-forward part", GROUP..=WIDE_MAX)?;
        let positions = reader.within("positions", TOKENS_MAX..=512)?;
        if found != width || !wide.is_multiple_of(GROUP) || reader.u16()? != 0 {
            return Err(bad(format!(
                "expected states of {width} numbers, found {found}"
            )));
        }
        if !(1..=VOCABULARY_MAX).contains(&vocabulary) {
            return Err(bad(format!(
                "expected at most {VOCABULARY_MAX} words, found {vocabulary}"
            )));
        }
        let norm = reader.norm(width)?;
        let places = reader.places(positions, width)?;
        let words = reader.words(vocabulary)?;
        let mut layer = || {
            Ok(Layer {
                project: reader.matrix(kernel, 3 * width, width)?,
                merge: reader.matrix(kernel, width, width)?,
                merge_norm: reader.norm(width)?,
                expand: reader.matrix(kernel, wide, width)?,
                contract: reader.matrix(kernel, width, wide)?,
                contract_norm: reader.norm(width)?,
            })
        };
        let layers = (0..layers)
            .map(|_| layer())
            .collect::<Result<Vec<_>, EmbedError>>()?;
        if reader.at != section.len() {
            return Err(bad("bytes after the last layer"));
        }
        let encoder = Encoder::new(layers).ok_or(bad("layers of unequal shape"))?;
        Ok(Self {
            encoder,
            norm,
            places,
            words,
        })
    }

    /// Rows of the embedding table.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.words.starts.len() - 1
    }

    /// Where the words end in the section; nothing behind is read again.
    pub(crate) fn words_end(&self) -> usize {
        self.words.starts.last().map_or(0, |end| *end as usize)
    }

    /// Writes the embedding of a word, from the section that these weights were read from.
    ///
    /// # Errors
    /// [`EmbedError::Inference`] for a word beyond the vocabulary, or when its run is altered.
    pub(crate) fn word(
        &self,
        section: &[u8],
        word: u32,
        row: &mut [f32],
    ) -> Result<(), EmbedError> {
        let words = &self.words;
        let failed = || EmbedError::Inference {
            what: format!("the embedding of word {word} cannot be read"),
        };
        let index = word as usize;
        let (Some([start, end]), Some(code)) = (
            words.starts.get(index..index + 2),
            section
                .get(words.codes.clone())
                .and_then(|codes| codes.get(index)),
        ) else {
            return Err(failed());
        };
        let run = section
            .get(*start as usize..*end as usize)
            .ok_or_else(failed)?;
        if run.is_empty() {
            row.fill(0.0);
            return Ok(());
        }
        let mut symbols = vec![0; row.len()];
        if !words.model.decode::<WORD_LANES>(run, &mut symbols) {
            return Err(failed());
        }
        let step = step(words.base, *code);
        for (x, symbol) in row.iter_mut().zip(symbols) {
            *x = f32::from(symbol) * step;
        }
        Ok(())
    }
}

fn bad(what: impl Into<String>) -> EmbedError {
    EmbedError::BadWeights { what: what.into() }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], EmbedError> {
        let rest = &self.bytes[self.at..];
        let taken = rest
            .get(..length)
            .ok_or_else(|| bad("the weights end too early"))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EmbedError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, EmbedError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, EmbedError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A positive number of at most `most`.
    fn step(&mut self, most: f32) -> Result<f32, EmbedError> {
        let step = self.array().map(f32::from_le_bytes)?;
        if step > 0.0 && step <= most {
            Ok(step)
        } else {
            Err(bad(format!("a step is {step}")))
        }
    }

    fn within(
        &mut self,
        what: &str,
        range: core::ops::RangeInclusive<usize>,
    ) -> Result<usize, EmbedError> {
        let found = usize::from(self.u16()?);
        if range.contains(&found) {
            return Ok(found);
        }
        let (least, most) = range.into_inner();
        Err(bad(format!(
            "expected {least} to {most} {what}, found {found}"
        )))
    }

    fn vector(&mut self, length: usize) -> Result<Vec<f32>, EmbedError> {
        let step = self.step(VECTOR_STEP_MAX)?;
        let values = self.take(2 * length)?.as_chunks::<2>().0;
        Ok(values
            .iter()
            .map(|x| f32::from(i16::from_le_bytes(*x)) * step)
            .collect())
    }

    fn norm(&mut self, width: usize) -> Result<Norm, EmbedError> {
        Ok(Norm {
            scale: self.vector(width)?,
            shift: self.vector(width)?,
        })
    }

    fn table(&mut self) -> Result<Model, EmbedError> {
        let [first, symbols] = self.array()?;
        let frequencies = self
            .take(2 * (usize::from(symbols) + 1))?
            .as_chunks::<2>()
            .0;
        let frequencies = frequencies.iter().map(|f| u16::from_le_bytes(*f)).collect();
        Model::new(first as i8, frequencies).ok_or(bad("a table of frequencies does not add up"))
    }

    fn coded(&mut self, length: usize) -> Result<Vec<i8>, EmbedError> {
        let model = self.table()?;
        let bytes = self.u32()? as usize;
        let mut values = vec![0; length];
        if model.decode::<LANES>(self.take(bytes)?, &mut values) {
            Ok(values)
        } else {
            Err(bad("a run of coded values is altered"))
        }
    }

    fn places(&mut self, positions: usize, width: usize) -> Result<Vec<f32>, EmbedError> {
        let steps = (0..positions)
            .map(|_| self.step(EMBEDDING_STEP_MAX))
            .collect::<Result<Vec<_>, _>>()?;
        let high = self.coded(positions * width)?;
        let low = self.coded(positions * width)?;
        let values = high.iter().zip(&low).enumerate();
        Ok(values
            .map(|(at, (high, low))| {
                f32::from(8 * i16::from(*high) + i16::from(*low)) * steps[at / width]
            })
            .collect())
    }

    fn words(&mut self, vocabulary: usize) -> Result<Words, EmbedError> {
        let base = self.step(EMBEDDING_STEP_MAX)?;
        let codes = self.at..self.at + vocabulary;
        let sound = |code: &u8| *code < 128 && step(base, *code) <= EMBEDDING_STEP_MAX;
        if !self.take(vocabulary)?.iter().all(sound) {
            return Err(bad("the step of a word is out of range"));
        }
        let lengths = self.take(vocabulary)?;
        let model = self.table()?;
        let mut starts = Vec::with_capacity(vocabulary + 1);
        let mut end = self.at;
        starts.push(end as u32);
        for words in lengths {
            if *words > 0 {
                end += 4 * WORD_LANES + 2 * usize::from(*words);
            }
            starts.push(end as u32);
        }
        self.take(end - self.at)?;
        Ok(Words {
            model,
            base,
            codes,
            starts,
        })
    }

    fn matrix(
        &mut self,
        kernel: Kernel,
        outputs: usize,
        inputs: usize,
    ) -> Result<Matrix, EmbedError> {
        let base = self.step(16.0)?;
        let codes = self.coded(outputs * inputs / GROUP)?;
        let steps = codes
            .into_iter()
            .map(|code| u8::try_from(code).map(|code| step(base, code)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| bad("a step code is negative"))?;
        let values = self.coded(outputs * inputs)?;
        let bias = self.vector(outputs)?;
        debug_assert!(outputs.is_multiple_of(TILE_COLUMNS));
        Matrix::new(kernel, outputs, inputs, values, steps, bias).map_err(|e| bad(e.to_string()))
    }
}
