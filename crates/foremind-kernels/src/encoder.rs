//! The transformer layers of the sentence encoder (BERT with post-normalisation), over the kernels of this crate.

use core::ops::Range;

use crate::Kernel;
use crate::activations::Activations;
use crate::attention::{self, attention};
use crate::dense::{Deltas, Part};
use crate::lanes::Lanes;
use crate::math::gelu_all;
use crate::norm::Norm;
use crate::product::linear;
use crate::weights::Matrix;

/// One layer. `w` is the width of the states, `f` the width of the feed-forward part.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Queries, keys and values, one below the other: 3`w` x `w`.
    pub project: Matrix,
    /// What the heads found, back into the states: `w` x `w`.
    pub merge: Matrix,
    /// Follows `merge` and its residual.
    pub merge_norm: Norm,
    /// `f` x `w`, GELU follows.
    pub expand: Matrix,
    /// `w` x `f`.
    pub contract: Matrix,
    /// Follows `contract` and its residual.
    pub contract_norm: Norm,
}

/// A stack of layers of equal shape.
#[derive(Clone, Debug)]
pub struct Encoder {
    kernel: Kernel,
    width: usize,
    layers: Vec<Layer>,
}

/// Working memory of [`Encoder::run`], reused from call to call; it grows with the longest run.
#[derive(Debug, Default)]
pub struct Workspace {
    activations: Activations,
    attention: attention::Scratch,
    projected: Vec<f32>,
    mixed: Vec<f32>,
    merged: Vec<f32>,
    expanded: Vec<f32>,
}

/// Rows that go through the feed-forward part together: their expanded states stay in the second-level cache.
const BLOCK_ROWS: usize = 32;

impl Encoder {
    /// A stack of layers whose shapes fit each other; `None` when they do not, or when there is none.
    pub fn new(layers: Vec<Layer>) -> Option<Self> {
        let first = layers.first()?;
        let (kernel, width) = (first.merge.kernel(), first.merge.outputs());
        let fits = |layer: &Layer| {
            let wide = layer.expand.outputs();
            let shape = |m: &Matrix, outputs, inputs| {
                m.kernel() == kernel && m.outputs() == outputs && m.inputs() == inputs
            };
            let norm = |n: &Norm| n.scale.len() == width && n.shift.len() == width;
            shape(&layer.project, 3 * width, width)
                && shape(&layer.merge, width, width)
                && shape(&layer.expand, wide, width)
                && shape(&layer.contract, width, wide)
                && norm(&layer.merge_norm)
                && norm(&layer.contract_norm)
        };
        layers.iter().all(fits).then_some(Self {
            kernel,
            width,
            layers,
        })
    }

    /// Values of one state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The layers, the one that sees the embeddings first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Runs the layers over `states`, in place: the rows of `lengths.len()` sequences, one after the other.
    ///
    /// The states of a sequence do not depend on what stands beside it, to the bit.
    ///
    /// # Panics
    /// When the lengths do not add up to the rows, or one is not in 1..=[`attention::LONGEST`].
    pub fn run<L: Lanes>(&self, states: &mut [f32], lengths: &[usize], space: &mut Workspace) {
        self.run_layers::<L>(0..self.layers.len(), None, states, lengths, space);
    }

    /// As [`Encoder::run`], of some of the layers, their matrices changed by `deltas`. Running layers in several calls gives the bits of one.
    ///
    /// # Panics
    /// As [`Encoder::run`]; when there are no such layers, or a change has another shape than its matrix.
    pub fn run_layers<L: Lanes>(
        &self,
        layers: Range<usize>,
        deltas: Option<&Deltas>,
        states: &mut [f32],
        lengths: &[usize],
        space: &mut Workspace,
    ) {
        assert!(states.len() == lengths.iter().sum::<usize>() * self.width);
        for (number, layer) in layers.clone().zip(&self.layers[layers]) {
            let deltas = deltas.map(|deltas| (deltas, number));
            self.attend::<L>(layer, deltas, states, lengths, space);
            for rows in states.chunks_mut(BLOCK_ROWS * self.width) {
                self.feed_forward::<L>(layer, deltas, rows, space);
            }
        }
    }

    /// Whether each of `deltas` has the shape of its matrix.
    pub fn accepts(&self, deltas: &Deltas) -> bool {
        deltas.shapes().all(|(layer, part, shape)| {
            let of = |layer: &Layer| match part {
                Part::Query | Part::Key | Part::Value | Part::Merge => (self.width, self.width),
                Part::Expand => (layer.expand.outputs(), self.width),
                Part::Contract => (self.width, layer.contract.inputs()),
            };
            self.layers.get(layer).map(of) == Some(shape)
        })
    }

    fn attend<L: Lanes>(
        &self,
        layer: &Layer,
        deltas: Changes<'_>,
        states: &mut [f32],
        lengths: &[usize],
        space: &mut Workspace,
    ) {
        let size = states.len();
        space.projected.resize(3 * size, 0.0);
        space.mixed.resize(size, 0.0);
        space.merged.resize(size, 0.0);
        let activations = &mut space.activations;
        activations.quantise::<L>(self.kernel, states, self.width);
        linear::<L>(activations, &layer.project, &mut space.projected);
        for (index, part) in [Part::Query, Part::Key, Part::Value]
            .into_iter()
            .enumerate()
        {
            let first = index * self.width;
            change::<L>(
                deltas,
                part,
                states,
                &mut space.projected,
                3 * self.width,
                first,
            );
        }
        let (mut projected, mut mixed) = (&space.projected[..], &mut space.mixed[..]);
        for length in lengths {
            let (from, rest) = projected.split_at(3 * length * self.width);
            let (to, more) = mixed.split_at_mut(length * self.width);
            attention::<L>(from, self.width, to, &mut space.attention);
            (projected, mixed) = (rest, more);
        }
        activations.quantise::<L>(self.kernel, &space.mixed, self.width);
        linear::<L>(activations, &layer.merge, &mut space.merged);
        change::<L>(
            deltas,
            Part::Merge,
            &space.mixed,
            &mut space.merged,
            self.width,
            0,
        );
        layer.merge_norm.apply::<L>(states, &space.merged);
    }

    fn feed_forward<L: Lanes>(
        &self,
        layer: &Layer,
        deltas: Changes<'_>,
        rows: &mut [f32],
        space: &mut Workspace,
    ) {
        let wide = layer.expand.outputs();
        let activations = &mut space.activations;
        activations.quantise::<L>(self.kernel, rows, self.width);
        space.expanded.resize(activations.rows() * wide, 0.0);
        linear::<L>(activations, &layer.expand, &mut space.expanded);
        change::<L>(deltas, Part::Expand, rows, &mut space.expanded, wide, 0);
        gelu_all::<L>(&mut space.expanded);
        activations.quantise::<L>(self.kernel, &space.expanded, wide);
        let merged = &mut space.merged[..rows.len()];
        linear::<L>(activations, &layer.contract, merged);
        change::<L>(
            deltas,
            Part::Contract,
            &space.expanded,
            merged,
            self.width,
            0,
        );
        layer.contract_norm.apply::<L>(rows, merged);
    }
}

/// The changes of an encoder and the number of the layer at hand.
type Changes<'a> = Option<(&'a Deltas, usize)>;

fn change<L: Lanes>(
    deltas: Changes<'_>,
    part: Part,
    input: &[f32],
    output: &mut [f32],
    stride: usize,
    first: usize,
) {
    if let Some(delta) = deltas.and_then(|(deltas, layer)| deltas.of(layer, part)) {
        delta.add::<L>(input, output, stride, first);
    }
}
