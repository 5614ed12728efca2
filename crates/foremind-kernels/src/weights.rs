//! Weights: int8 with one step for each output and group of 128 inputs, laid out as the tiles read them.

use crate::activations::SEVENS_OFFSET;
use crate::{GROUP, Kernel, TILE_COLUMNS};

/// Bytes of one block: the weights of [`TILE_COLUMNS`] outputs and one group of inputs.
pub const BLOCK: usize = TILE_COLUMNS * GROUP;

/// A matrix of `outputs` x `inputs` weights with its bias.
///
/// Values lie in blocks, `[outputs / 8][inputs / 128][BLOCK]`; within a block `[input / 2][output][2]` for
/// [`Kernel::Pairs`] and `[input / 4][output][4]` for [`Kernel::Sevens`]. Steps lie as `[outputs / 8][inputs / 128][8]`.
#[derive(Clone, Debug)]
pub struct Matrix {
    kernel: Kernel,
    outputs: usize,
    inputs: usize,
    values: Vec<i8>,
    steps: Vec<f32>,
    /// What the offset of the halves adds to the sum of a block's output, negated. Empty for pairs.
    corrections: Vec<i32>,
    bias: Vec<f32>,
}

/// Why a matrix was refused: an error of who made the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixError {
    /// Outputs are no multiple of 8, inputs none of 128, or a part has another length than they imply.
    Shape,
    /// A weight of -128, which the byte dot product of some hardware would saturate on.
    Value,
    /// A step that is not in 0..=16, or a bias beyond 1000: with such weights sums could overflow to infinity.
    Range,
}

impl core::fmt::Display for MatrixError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Shape => "a matrix of weights has the wrong shape",
            Self::Value => "a weight is -128",
            Self::Range => "a step or a bias is out of range",
        })
    }
}

impl core::error::Error for MatrixError {}

impl Matrix {
    /// A matrix from values in blocks of pairs, `[outputs / 8][inputs / 128][input / 2][output][2]`, steps in
    /// `[outputs / 8][inputs / 128][8]` and `outputs` bias terms.
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn new(
        kernel: Kernel,
        outputs: usize,
        inputs: usize,
        mut values: Vec<i8>,
        steps: Vec<f32>,
        bias: Vec<f32>,
    ) -> Result<Self, MatrixError> {
        let shaped = outputs.is_multiple_of(TILE_COLUMNS)
            && inputs.is_multiple_of(GROUP)
            && outputs.checked_mul(inputs) == Some(values.len())
            && values.len() == steps.len() * GROUP
            && bias.len() == outputs;
        if !shaped {
            return Err(MatrixError::Shape);
        }
        if values.contains(&i8::MIN) {
            return Err(MatrixError::Value);
        }
        let sound = steps.iter().all(|s| (0.0..=16.0).contains(s))
            && bias.iter().all(|b| b.abs() <= 1000.0);
        if !sound {
            return Err(MatrixError::Range);
        }
        let mut corrections = Vec::new();
        if kernel == Kernel::Sevens {
            corrections.reserve_exact(steps.len());
            for block in values.as_chunks_mut::<BLOCK>().0 {
                corrections.extend(output_sums(block).map(|sum| -SEVENS_OFFSET * sum));
                pairs_to_quads(block);
            }
        }
        Ok(Self {
            kernel,
            outputs,
            inputs,
            values,
            steps,
            corrections,
            bias,
        })
    }

    /// As [`Matrix::new`], from row-major values `[outputs][inputs]` and steps `[outputs][inputs / 128]`.
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn from_rows(
        kernel: Kernel,
        outputs: usize,
        inputs: usize,
        values: &[i8],
        steps: &[f32],
        bias: Vec<f32>,
    ) -> Result<Self, MatrixError> {
        let groups = inputs / GROUP;
        if values.len() != outputs * inputs
            || steps.len() != outputs * groups
            || !outputs.is_multiple_of(TILE_COLUMNS)
            || !inputs.is_multiple_of(GROUP)
        {
            return Err(MatrixError::Shape);
        }
        let mut blocks = Vec::with_capacity(values.len());
        let mut block_steps = Vec::with_capacity(steps.len());
        for panel in 0..outputs / TILE_COLUMNS {
            let output = |column: usize| panel * TILE_COLUMNS + column;
            for group in 0..groups {
                for pair in 0..GROUP / 2 {
                    for column in 0..TILE_COLUMNS {
                        let at = output(column) * inputs + group * GROUP + 2 * pair;
                        blocks.extend_from_slice(&values[at..at + 2]);
                    }
                }
                block_steps.extend((0..TILE_COLUMNS).map(|c| steps[output(c) * groups + group]));
            }
        }
        Self::new(kernel, outputs, inputs, blocks, block_steps, bias)
    }

    /// Which tiles the layout is for.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Rows of the matrix.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Columns of the matrix.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Heap memory held.
    pub fn bytes(&self) -> usize {
        self.values.len() + 4 * (self.steps.len() + self.corrections.len() + self.bias.len())
    }

    /// Values, steps, corrections and bias of eight outputs.
    pub(crate) fn panel(&self, panel: usize) -> Panel<'_> {
        let (values, steps) = (
            TILE_COLUMNS * self.inputs,
            TILE_COLUMNS * self.inputs / GROUP,
        );
        Panel {
            values: &self.values[panel * values..(panel + 1) * values],
            steps: &self.steps[panel * steps..(panel + 1) * steps],
            corrections: self
                .corrections
                .get(panel * steps..(panel + 1) * steps)
                .unwrap_or_default(),
            bias: &self.bias[panel * TILE_COLUMNS..(panel + 1) * TILE_COLUMNS],
        }
    }
}

pub(crate) struct Panel<'a> {
    pub values: &'a [i8],
    pub steps: &'a [f32],
    pub corrections: &'a [i32],
    pub bias: &'a [f32],
}

fn output_sums(block: &[i8; BLOCK]) -> [i32; TILE_COLUMNS] {
    let mut sums = [0; TILE_COLUMNS];
    for pairs in block.as_chunks::<{ 2 * TILE_COLUMNS }>().0 {
        for (sum, pair) in sums.iter_mut().zip(pairs.as_chunks::<2>().0) {
            *sum += i32::from(pair[0]) + i32::from(pair[1]);
        }
    }
    sums
}

fn pairs_to_quads(block: &mut [i8; BLOCK]) {
    // Two steps of pairs, 32 bytes, become one of quads.
    for step in block.as_chunks_mut::<{ 4 * TILE_COLUMNS }>().0 {
        let pairs = *step;
        for (column, quad) in step.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let second = 2 * TILE_COLUMNS + 2 * column;
            *quad = [
                pairs[2 * column],
                pairs[2 * column + 1],
                pairs[second],
                pairs[second + 1],
            ];
        }
    }
}
