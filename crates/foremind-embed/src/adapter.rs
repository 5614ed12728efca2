//! Adapters: low-rank changes of the encoder's matrices and small heads on its states, from a file of their own.
//!
//! After Hu et al. 2021, "LoRA" (<https://arxiv.org/abs/2106.09685>), but never merged into the weights: those are
//! integers, and a layer without changes is run once for all heads. docs/EMBEDDER.md lays the file out.

use foremind_kernels::dense::{Delta, Deltas, Part, RANK_MAX, attention_pool, dots};
use foremind_kernels::lanes::Native as Lanes;
use foremind_kernels::math::gelu_all;
use foremind_kernels::norm::{mean_pool, to_int8, unit};
use foremind_types::{Embedding, HeadId, ModelId};

use crate::backend::HIDDEN;
use crate::pack::{ADAPTER_MAGIC, Pack, Section, write_container};
use crate::{EMBEDDING_HEAD, EmbedError};

/// The version of the section that this build writes and reads.
pub const VERSION: u16 = 1;
/// Most features of a head.
pub const FEATURES_MAX: usize = 64;
/// Most outputs of a linear map that another one follows.
pub const INNER_MAX: usize = 512;
/// Most linear maps of a head.
pub const MAPS_MAX: usize = 3;
/// Most heads of one file.
pub const HEADS_MAX: usize = 64;
/// Longest head id, in bytes.
pub const HEAD_ID_BYTES_MAX: usize = 64;
/// Bounds what an i16 times a step can be to 1000, so that no sum overflows.
const STEP_MAX: f32 = 0.03;

/// What an adapter file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Changes, ascending by (layer, part), each matrix at most once.
    pub changes: Vec<Change>,
    /// Heads, their ids distinct.
    pub heads: Vec<HeadContent>,
}

/// A low-rank change of one matrix: `W x` becomes `W x + B (A x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// From 0.
    pub layer: usize,
    /// The matrix.
    pub part: Part,
    /// 1 to 16.
    pub rank: usize,
    /// `[rank][inputs]`
    pub a: Vec<f32>,
    /// `[outputs][rank]`
    pub b: Vec<f32>,
}

/// A head: pooled states, and linear maps of them.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadContent {
    /// Its id, in every embedding that it makes.
    pub id: String,
    /// It runs on the changed encoder.
    pub adapted: bool,
    /// It gives the pooled state as int8 vector.
    pub vector: bool,
    /// The maps take the pooled state scaled to length 1.
    pub unit: bool,
    /// How the states of the tokens become one.
    pub pooling: Pooling,
    /// Applied in order; the last one's outputs are the features.
    pub maps: Vec<Map>,
}

/// How the states of the tokens become one.
#[derive(Clone, Debug, PartialEq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// Their mean weighted by softmax(state . query), with a query of 384 numbers.
    Attention(Vec<f32>),
    /// The state of the first token, `[CLS]`.
    First,
}

/// A linear map and what follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What follows.
    pub activation: Activation,
    /// `[outputs][inputs]`
    pub weights: Vec<f32>,
    /// One number an output.
    pub bias: Vec<f32>,
}

/// What follows a linear map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Activation {
    None,
    Relu,
    Gelu,
}

impl Activation {
    const ALL: [Self; 3] = [Self::None, Self::Relu, Self::Gelu];
}

fn bad(what: impl Into<String>) -> EmbedError {
    EmbedError::BadAdapter { what: what.into() }
}

/// `(outputs, inputs)` of a matrix of a width and a feed-forward width.
fn shape(part: Part, wide: usize) -> (usize, usize) {
    match part {
        Part::Query | Part::Key | Part::Value | Part::Merge => (HIDDEN, HIDDEN),
        Part::Expand => (wide, HIDDEN),
        Part::Contract => (HIDDEN, wide),
    }
}

/// Writes an adapter file for the model `model_id`. Equal arguments give equal bytes.
///
/// # Errors
/// [`EmbedError::BadAdapter`] for content that the reader would refuse.
pub fn write(model_id: &ModelId, content: &Content) -> Result<Vec<u8>, EmbedError> {
    let mut section = Vec::new();
    section.extend(VERSION.to_le_bytes());
    section.extend((content.changes.len() as u16).to_le_bytes());
    section.extend((content.heads.len() as u16).to_le_bytes());
    section.extend([0; 2]);
    for change in &content.changes {
        let (layer, rank) = (u8::try_from(change.layer), u8::try_from(change.rank));
        let (Ok(layer), Ok(rank)) = (layer, rank) else {
            return Err(bad("expected layers and ranks below 256, found more"));
        };
        let (outputs, inputs) = shape(change.part, WIDE);
        section.extend([layer, change.part as u8, rank, 0]);
        put_rows(&mut section, &change.a, change.rank, inputs)?;
        put_rows(&mut section, &change.b, outputs, change.rank)?;
    }
    for head in &content.heads {
        section.push(u8::try_from(head.id.len()).unwrap_or(u8::MAX));
        section.extend(head.id.as_bytes());
        let flags = [head.adapted, head.vector, head.unit];
        section.push((0..3).map(|bit| u8::from(flags[bit]) << bit).sum());
        section.push(match head.pooling {
            Pooling::Mean => 0,
            Pooling::Attention(_) => 1,
            Pooling::First => 2,
        });
        section.push(u8::try_from(head.maps.len()).unwrap_or(u8::MAX));
        if let Pooling::Attention(query) = &head.pooling {
            put_rows(&mut section, query, 1, HIDDEN)?;
        }
        let mut inputs = HIDDEN;
        for map in &head.maps {
            let outputs = map.bias.len();
            section.extend([map.activation as u8, 0]);
            section.extend(u16::try_from(outputs).unwrap_or(u16::MAX).to_le_bytes());
            put_rows(&mut section, &map.weights, outputs, inputs)?;
            put_rows(&mut section, &map.bias, 1, outputs)?;
            inputs = outputs;
        }
    }
    let file = write_container(ADAPTER_MAGIC, &model_id.0, &[(Section::Adapter, &section)]);
    read(file.clone()).map(|_| file)
}

/// The feed-forward width that changes of it are written for.
const WIDE: usize = 1536;

fn put_rows(
    section: &mut Vec<u8>,
    values: &[f32],
    rows: usize,
    columns: usize,
) -> Result<(), EmbedError> {
    if columns == 0 || values.len() != rows * columns {
        return Err(bad(format!(
            "expected {rows} rows of {columns} numbers, found {} numbers",
            values.len()
        )));
    }
    for row in values.chunks_exact(columns) {
        let largest = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let step = largest / 32_767.0;
        if step > STEP_MAX || row.iter().any(|x| x.is_nan()) {
            return Err(bad("expected numbers of at most 983, found larger ones"));
        }
        section.extend(step.to_le_bytes());
        for x in row {
            let integer = if step > 0.0 {
                (x / step).round_ties_even() as i16
            } else {
                0
            };
            section.extend(integer.to_le_bytes());
        }
    }
    Ok(())
}

/// Reads an adapter file: the model that it belongs to, and what it holds.
///
/// # Errors
/// [`EmbedError::NotAnAdapterFile`], those of [`Pack::read`], [`EmbedError::BadAdapter`].
pub fn read(file: Vec<u8>) -> Result<(ModelId, Content), EmbedError> {
    let pack = Pack::read_container(ADAPTER_MAGIC, file)?;
    let mut reader = Reader(pack.section(Section::Adapter)?);
    let version = reader.u16()?;
    if version != VERSION {
        return Err(bad(format!("expected version {VERSION}, found {version}")));
    }
    let (changes, heads) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
    if reader.u16()? != 0 || heads > HEADS_MAX {
        return Err(bad(format!(
            "expected at most {HEADS_MAX} heads, found {heads}"
        )));
    }
    let changes = (0..changes)
        .map(|_| reader.change())
        .collect::<Result<Vec<_>, _>>()?;
    if !changes.is_sorted_by(|a, b| (a.layer, a.part) < (b.layer, b.part)) {
        return Err(bad(
            "expected each matrix once and in order, found otherwise",
        ));
    }
    let heads = (0..heads)
        .map(|_| reader.head())
        .collect::<Result<Vec<_>, _>>()?;
    if !reader.0.is_empty() {
        return Err(bad(format!(
            "expected the end, found {} bytes more",
            reader.0.len()
        )));
    }
    for (at, head) in heads.iter().enumerate() {
        if head.id == EMBEDDING_HEAD || heads[..at].iter().any(|other| other.id == head.id) {
            return Err(bad("expected a new id for each head, found one twice"));
        }
    }
    Ok((pack.model_id().clone(), Content { changes, heads }))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], EmbedError> {
        let found = self.0.len();
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| bad(format!("expected {length} bytes, found {found}")))?;
        self.0 = rest;
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

    fn rows(&mut self, rows: usize, columns: usize) -> Result<Vec<f32>, EmbedError> {
        let mut values = Vec::with_capacity(rows * columns);
        for _ in 0..rows {
            let step = self.array().map(f32::from_le_bytes)?;
            if !(0.0..=STEP_MAX).contains(&step) {
                return Err(bad(format!(
                    "expected a step of 0 to {STEP_MAX}, found {step}"
                )));
            }
            let integers = self.take(2 * columns)?.as_chunks::<2>().0;
            values.extend(
                integers
                    .iter()
                    .map(|x| f32::from(i16::from_le_bytes(*x)) * step),
            );
        }
        Ok(values)
    }

    fn change(&mut self) -> Result<Change, EmbedError> {
        let [layer, part, rank, zero] = self.array()?;
        let rank = usize::from(rank);
        let (Some(part), 0, 1..=RANK_MAX) = (Part::ALL.get(usize::from(part)), zero, rank) else {
            return Err(bad(format!(
                "expected a matrix of 0 to 5 and a rank of 1 to {RANK_MAX}, found {part} and {rank}"
            )));
        };
        let (outputs, inputs) = shape(*part, WIDE);
        Ok(Change {
            layer: usize::from(layer),
            part: *part,
            rank,
            a: self.rows(rank, inputs)?,
            b: self.rows(outputs, rank)?,
        })
    }

    fn head(&mut self) -> Result<HeadContent, EmbedError> {
        let [length] = self.array()?;
        let length = usize::from(length);
        let id =
            core::str::from_utf8(self.take(length)?).map_err(|_| bad("a head id is no UTF-8"))?;
        if !(1..=HEAD_ID_BYTES_MAX).contains(&length) {
            return Err(bad(format!(
                "expected a head id of 1 to {HEAD_ID_BYTES_MAX} bytes, found {length}"
            )));
        }
        let [flags, pooling, maps] = self.array()?;
        if flags > 7 || usize::from(maps) > MAPS_MAX {
            return Err(bad(format!(
                "expected flags up to 7 and at most {MAPS_MAX} maps, found {flags} and {maps}"
            )));
        }
        let pooling = match pooling {
            0 => Pooling::Mean,
            1 => Pooling::Attention(self.rows(1, HIDDEN)?),
            2 => Pooling::First,
            _ => {
                return Err(bad(format!(
                    "expected a pooling of 0 to 2, found {pooling}"
                )));
            }
        };
        let head = HeadContent {
            id: id.to_owned(),
            adapted: flags & 1 != 0,
            vector: flags & 2 != 0,
            unit: flags & 4 != 0,
            pooling,
            maps: self.maps(usize::from(maps))?,
        };
        if head.maps.is_empty() && !head.vector {
            return Err(bad(
                "expected a head with a vector or features, found neither",
            ));
        }
        Ok(head)
    }

    fn maps(&mut self, count: usize) -> Result<Vec<Map>, EmbedError> {
        let mut inputs = HIDDEN;
        let mut maps = Vec::with_capacity(count);
        for number in 1..=count {
            let [activation, zero] = self.array()?;
            let outputs = usize::from(self.u16()?);
            let Some(activation) = Activation::ALL.get(usize::from(activation)) else {
                return Err(bad(format!(
                    "expected an activation of 0 to 2, found {activation}"
                )));
            };
            let fits = if number == count {
                (1..=FEATURES_MAX).contains(&outputs)
            } else {
                (8..=INNER_MAX).contains(&outputs) && outputs.is_multiple_of(8)
            };
            if !fits || zero != 0 {
                return Err(bad(format!(
                    "expected 1 to {FEATURES_MAX} features, and before them multiples of 8 up to {INNER_MAX}, found {outputs}"
                )));
            }
            maps.push(Map {
                activation: *activation,
                weights: self.rows(outputs, inputs)?,
                bias: self.rows(1, outputs)?,
            });
            inputs = outputs;
        }
        Ok(maps)
    }
}

/// A loaded adapter.
pub(crate) struct Adapter {
    pub deltas: Deltas,
    pub heads: Vec<HeadContent>,
}

impl Adapter {
    /// # Errors
    /// [`EmbedError::BadAdapter`].
    pub(crate) fn new(content: Content) -> Result<Self, EmbedError> {
        let deltas = content.changes.into_iter().map(|change| {
            let (outputs, inputs) = shape(change.part, WIDE);
            let delta = Delta::new(inputs, outputs, change.a, &change.b)
                .ok_or_else(|| bad("a change cannot be used"))?;
            Ok((change.layer, change.part, delta))
        });
        Ok(Self {
            deltas: Deltas::new(deltas.collect::<Result<_, EmbedError>>()?),
            heads: content.heads,
        })
    }
}

impl HeadContent {
    /// What this head gives for the states of one text.
    ///
    /// # Errors
    /// [`EmbedError::Inference`] when the numbers are not finite.
    pub(crate) fn apply(
        &self,
        model_id: &ModelId,
        states: &[f32],
    ) -> Result<Embedding, EmbedError> {
        let failed = || EmbedError::Inference {
            what: format!(
                "head `{}` gives numbers that are not finite",
                self.id.escape_debug()
            ),
        };
        let mut pooled = vec![0.0; HIDDEN];
        match &self.pooling {
            Pooling::Mean => mean_pool::<Lanes>(states, &mut pooled),
            Pooling::Attention(query) => attention_pool::<Lanes>(states, query, &mut pooled),
            Pooling::First => pooled.copy_from_slice(&states[..HIDDEN]),
        }
        let (mut vector, mut scale) = (Vec::new(), 1.0);
        if self.vector || self.unit {
            let mut direction = pooled.clone();
            if !unit::<Lanes>(&mut direction) {
                return Err(failed());
            }
            if self.vector {
                (vector, scale) = to_int8::<Lanes>(&direction).ok_or_else(failed)?;
            }
            if self.unit {
                pooled = direction;
            }
        }
        let mut features = Vec::new();
        for map in &self.maps {
            let input = if features.is_empty() {
                &pooled
            } else {
                &features
            };
            let mut output = vec![0.0; map.bias.len().next_multiple_of(4)];
            let (used, _) = output.split_at_mut(map.bias.len());
            dots::<Lanes>(input, &map.weights, used);
            for (x, bias) in used.iter_mut().zip(&map.bias) {
                *x += bias;
            }
            match map.activation {
                Activation::None => {}
                Activation::Relu => used
                    .iter_mut()
                    .for_each(|x| *x = if *x > 0.0 { *x } else { 0.0 }),
                Activation::Gelu => gelu_all::<Lanes>(&mut output),
            }
            output.truncate(map.bias.len());
            features = output;
        }
        if !features.iter().all(|x| x.is_finite()) {
            return Err(failed());
        }
        Ok(Embedding {
            model_id: model_id.clone(),
            head_id: HeadId(self.id.clone()),
            vector,
            scale,
            features,
        })
    }
}
