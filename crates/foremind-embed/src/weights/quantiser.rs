//! From the f32 checkpoint to the section of int8 weights. Equal checkpoints give equal bytes.

use core::fmt;

use foremind_kernels::{GROUP, TILE_COLUMNS};

use super::rans::Model;
use super::{LANES, VERSION, WORD_LANES, step};
use crate::TOKENS_MAX;

/// A float checkpoint of a BERT encoder, its tensors by their usual names (`encoder.layer.0.output.dense.weight`),
/// row-major.
pub trait Checkpoint {
    /// The values of a tensor, or `None` when there is none of that name.
    fn tensor(&self, name: &str) -> Option<Vec<f32>>;
}

/// Why a checkpoint was not packed: it is not the model that this packs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantiseError {
    /// A tensor is absent or has another size.
    Tensor {
        /// Its name.
        name: String,
        /// Numbers expected; 0 when any number would do.
        expected: usize,
        /// Numbers found.
        found: usize,
    },
    /// A tensor holds values that the format cannot express: not finite, or of a range too wide.
    Values {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for QuantiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor {
                name,
                expected,
                found,
            } => {
                write!(
                    f,
                    "the checkpoint's {name} should have {expected} numbers and has {found}"
                )
            }
            Self::Values { name } => {
                write!(
                    f,
                    "the checkpoint's {name} holds numbers that cannot be packed"
                )
            }
        }
    }
}

impl core::error::Error for QuantiseError {}

/// Largest magnitude of a weight and of a word's value.
const WEIGHT_MAX: f32 = 127.0;
/// Largest magnitude of a position's value: 11 bits, since in each position a few values are much larger than the rest.
const PLACE_MAX: f32 = 1011.0;
/// The root mean square of a word's values, in steps, for a word of the table's own root mean square at
/// [`MIDDLE_WORD`].
const WORD_LEVELS: f32 = 10.6;
/// Words are numbered by how frequent they are, but for the first thousand, which are letters and signs.
const FREQUENT_WORDS: usize = 1000;
const MIDDLE_WORD: f32 = 8000.0;
/// The words that every text has, or that stand for unknown ones.
const EVERYWHERE: [&[u8]; 3] = [b"[CLS]", b"[SEP]", b"[UNK]"];
/// The words that no text can have: brackets are words of their own to the tokenizer.
const NOWHERE: &[u8] = b"[unused";

/// Packs a checkpoint, whose words are the lines of `vocabulary`, into a section.
///
/// Weights have one step for each output and 128 inputs, the smallest of eight to the octave with which the largest
/// weight fits 8 bits. Words have one step each, in proportion to length^(3/4) and number^(1/4). Entropy coding makes a
/// common step the cheapest for a given error; but words are normalised to one length later, and the error of a
/// frequent word is met more often. Reserved words have no values.
///
/// # Errors
/// [`QuantiseError`].
pub fn quantise(checkpoint: &dyn Checkpoint, vocabulary: &[u8]) -> Result<Vec<u8>, QuantiseError> {
    let source = Source(checkpoint);
    let norm_name = "embeddings.LayerNorm";
    let width = source.any(&format!("{norm_name}.weight"))?.len();
    let words_name = "embeddings.word_embeddings.weight";
    let words = source.any(words_name)?;
    let tokens: Vec<&[u8]> = vocabulary
        .trim_ascii_end()
        .split(|byte| *byte == b'\n')
        .collect();
    source.of(words_name, tokens.len() * width)?;
    let wide = source.any("encoder.layer.0.intermediate.dense.bias")?.len();
    let layers = (0..)
        .take_while(|layer| {
            checkpoint
                .tensor(&format!("encoder.layer.{layer}.output.dense.bias"))
                .is_some()
        })
        .count();

    let mut section = Vec::new();
    section.extend(VERSION.to_le_bytes());
    section.extend((layers as u16).to_le_bytes());
    section.extend((tokens.len() as u32).to_le_bytes());
    for size in [width, wide, TOKENS_MAX, 0] {
        section.extend((size as u16).to_le_bytes());
    }
    put_norm(&mut section, &source, norm_name, width)?;
    put_places(&mut section, &source, width)?;
    put_words(&mut section, words_name, &words, &tokens)?;
    for layer in 0..layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let attention =
            ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
        put_matrix(&mut section, &source, &attention, width, width)?;
        put_matrix(
            &mut section,
            &source,
            &[name("attention.output.dense")],
            width,
            width,
        )?;
        put_norm(
            &mut section,
            &source,
            &name("attention.output.LayerNorm"),
            width,
        )?;
        put_matrix(
            &mut section,
            &source,
            &[name("intermediate.dense")],
            wide,
            width,
        )?;
        put_matrix(&mut section, &source, &[name("output.dense")], width, wide)?;
        put_norm(&mut section, &source, &name("output.LayerNorm"), width)?;
    }
    Ok(section)
}

struct Source<'a>(&'a dyn Checkpoint);

impl Source<'_> {
    fn any(&self, name: &str) -> Result<Vec<f32>, QuantiseError> {
        let absent = || QuantiseError::Tensor {
            name: name.to_owned(),
            expected: 0,
            found: 0,
        };
        let values = self
            .0
            .tensor(name)
            .filter(|values| !values.is_empty())
            .ok_or_else(absent)?;
        if values.iter().all(|x| x.is_finite()) {
            Ok(values)
        } else {
            Err(unfit(name))
        }
    }

    fn of(&self, name: &str, expected: usize) -> Result<Vec<f32>, QuantiseError> {
        let values = self.any(name)?;
        if values.len() == expected {
            return Ok(values);
        }
        Err(QuantiseError::Tensor {
            name: name.to_owned(),
            expected,
            found: values.len(),
        })
    }
}

fn unfit(name: &str) -> QuantiseError {
    QuantiseError::Values {
        name: name.to_owned(),
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// The nearest integers of values in steps; the caller knows that they fit.
fn integers(values: &[f32], step: f32) -> impl Iterator<Item = i8> {
    values
        .iter()
        .map(move |x| (x / step).round_ties_even() as i8)
}

fn put_vector(section: &mut Vec<u8>, values: &[f32]) {
    let step = (largest(values) / 32_767.0).max(f32::MIN_POSITIVE);
    section.extend(step.to_le_bytes());
    section.extend(
        values
            .iter()
            .flat_map(|x| ((x / step).round_ties_even() as i16).to_le_bytes()),
    );
}

fn put_norm(
    section: &mut Vec<u8>,
    source: &Source<'_>,
    name: &str,
    width: usize,
) -> Result<(), QuantiseError> {
    put_vector(section, &source.of(&format!("{name}.weight"), width)?);
    put_vector(section, &source.of(&format!("{name}.bias"), width)?);
    Ok(())
}

fn table(values: &[i8]) -> Option<Model> {
    let (first, last) = (*values.iter().min()?, *values.iter().max()?);
    let mut counts = vec![0; (i32::from(last) - i32::from(first) + 1) as usize];
    for value in values {
        counts[(i32::from(*value) - i32::from(first)) as usize] += 1;
    }
    Model::fitting(first, &counts)
}

fn put_table(section: &mut Vec<u8>, model: &Model) {
    section.extend(model.first().to_le_bytes());
    section.push((model.frequencies().len() - 1) as u8);
    section.extend(model.frequencies().iter().flat_map(|f| f.to_le_bytes()));
}

fn put_coded(section: &mut Vec<u8>, name: &str, values: &[i8]) -> Result<(), QuantiseError> {
    let model = table(values).ok_or_else(|| unfit(name))?;
    let run = model.encode::<LANES>(values).ok_or_else(|| unfit(name))?;
    put_table(section, &model);
    section.extend((run.len() as u32).to_le_bytes());
    section.extend(run);
    Ok(())
}

fn put_places(
    section: &mut Vec<u8>,
    source: &Source<'_>,
    width: usize,
) -> Result<(), QuantiseError> {
    let name = "embeddings.position_embeddings.weight";
    let mut places = source.any(name)?;
    if places.len() < TOKENS_MAX * width {
        return source.of(name, TOKENS_MAX * width).map(drop);
    }
    places.truncate(TOKENS_MAX * width);
    let types = source.any("embeddings.token_type_embeddings.weight")?;
    if types.len() < width {
        return source
            .of("embeddings.token_type_embeddings.weight", 2 * width)
            .map(drop);
    }
    let mut values = Vec::with_capacity(places.len());
    for row in places.chunks_exact_mut(width) {
        for (x, of_type) in row.iter_mut().zip(&types) {
            *x += of_type;
        }
        let step = (largest(row) / PLACE_MAX).max(f32::MIN_POSITIVE);
        section.extend(step.to_le_bytes());
        values.extend(row.iter().map(|x| (x / step).round_ties_even() as i16));
    }
    // high * 8 + low, with low in -4..=3; 1011 is the most whose high part is 126.
    let high: Vec<i8> = values.iter().map(|x| ((x + 4) >> 3) as i8).collect();
    let low: Vec<i8> = values
        .iter()
        .zip(&high)
        .map(|(x, high)| (x - i16::from(*high) * 8) as i8)
        .collect();
    put_coded(section, name, &high)?;
    put_coded(section, name, &low)
}

/// The smallest code whose step is at least `least`; `None` beyond 127.
fn code(base: f32, least: f32) -> Option<u8> {
    (0..=127).find(|code| step(base, *code) >= least)
}

fn root_mean_square(values: &[f32]) -> f32 {
    let squares: f64 = values.iter().map(|x| f64::from(*x).powi(2)).sum();
    (squares / values.len() as f64).sqrt() as f32
}

fn put_words(
    section: &mut Vec<u8>,
    name: &str,
    words: &[f32],
    tokens: &[&[u8]],
) -> Result<(), QuantiseError> {
    let width = words.len() / tokens.len();
    let common = root_mean_square(words);
    let fourth_root = |x: f32| x.sqrt().sqrt();
    let wanted = |number: usize, row: &[f32]| {
        let root = fourth_root(root_mean_square(row) / common);
        let number = number.max(FREQUENT_WORDS) as f32 / MIDDLE_WORD;
        common / WORD_LEVELS * root * root * root * fourth_root(number)
    };
    let steps: Vec<f32> = words
        .chunks_exact(width)
        .zip(tokens)
        .enumerate()
        .map(|(number, (row, token))| {
            let wanted = if EVERYWHERE.contains(token) {
                wanted(0, row) / 1.5
            } else {
                wanted(number, row)
            };
            // The step that keeps the largest value within 8 bits is a floor that only odd words meet.
            wanted.max(largest(row) / WEIGHT_MAX).max(f32::MIN_POSITIVE)
        })
        .collect();
    let base = steps.iter().copied().fold(f32::MAX, f32::min);
    let codes: Option<Vec<u8>> = steps.iter().map(|least| code(base, *least)).collect();
    let codes = codes.ok_or_else(|| unfit(name))?;
    let used = |token: &[u8]| !token.starts_with(NOWHERE);
    let rows = || words.chunks_exact(width).zip(tokens).zip(&codes);
    let coded: Vec<i8> = rows()
        .filter(|((_, token), _)| used(token))
        .flat_map(|((row, _), code)| integers(row, step(base, *code)))
        .collect();
    let model = table(&coded).ok_or_else(|| unfit(name))?;
    let mut coded = coded.chunks_exact(width);
    let mut lengths = Vec::with_capacity(codes.len());
    let mut runs = Vec::new();
    for token in tokens {
        if !used(token) {
            lengths.push(0);
            continue;
        }
        let row = coded.next().ok_or_else(|| unfit(name))?;
        let run = model.encode::<WORD_LANES>(row).ok_or_else(|| unfit(name))?;
        let words = u8::try_from((run.len() - 4 * WORD_LANES) / 2)
            .ok()
            .filter(|words| *words > 0);
        lengths.push(words.ok_or_else(|| unfit(name))?);
        runs.extend(run);
    }
    section.extend(base.to_le_bytes());
    section.extend(&codes);
    section.extend(lengths);
    put_table(section, &model);
    section.extend(runs);
    Ok(())
}

/// Puts the weights and biases of the layers `names`, one below the other.
fn put_matrix(
    section: &mut Vec<u8>,
    source: &Source<'_>,
    names: &[String],
    outputs: usize,
    inputs: usize,
) -> Result<(), QuantiseError> {
    let name = &names[0];
    let (mut weights, mut bias) = (Vec::new(), Vec::new());
    for name in names {
        weights.extend(source.of(&format!("{name}.weight"), outputs * inputs)?);
        bias.extend(source.of(&format!("{name}.bias"), outputs)?);
    }
    if !bias.len().is_multiple_of(TILE_COLUMNS) || !inputs.is_multiple_of(GROUP) {
        return Err(unfit(name));
    }
    let least = |group: &[f32]| (largest(group) / WEIGHT_MAX).max(f32::MIN_POSITIVE);
    let base = weights
        .chunks_exact(GROUP)
        .map(least)
        .fold(f32::MAX, f32::min);
    let groups = inputs / GROUP;
    let mut codes = Vec::with_capacity(weights.len() / GROUP);
    let mut values = Vec::with_capacity(weights.len());
    for panel in weights.chunks_exact(TILE_COLUMNS * inputs) {
        for group in 0..groups {
            let rows: [&[f32]; TILE_COLUMNS] = core::array::from_fn(|column| {
                let at = column * inputs + group * GROUP;
                &panel[at..at + GROUP]
            });
            let mut steps = [0.0; TILE_COLUMNS];
            for (step_of, row) in steps.iter_mut().zip(rows) {
                let code = code(base, least(row)).ok_or_else(|| unfit(name))?;
                *step_of = step(base, code);
                codes.push(code as i8);
            }
            for pair in 0..GROUP / 2 {
                for (row, step) in rows.iter().zip(steps) {
                    values.extend(integers(&row[2 * pair..2 * pair + 2], step));
                }
            }
        }
    }
    section.extend(base.to_le_bytes());
    put_coded(section, name, &codes)?;
    put_coded(section, name, &values)?;
    put_vector(section, &bias);
    Ok(())
}
