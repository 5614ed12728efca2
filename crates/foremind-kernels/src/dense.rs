//! f32 products with small matrices: low-rank changes of a large one, attention pooling, heads.
//!
//! Sums have one order: [`dots`] adds in eight lanes, input `i` going to lane `i % 8`, joined by [`sum_eight`];
//! [`Delta`] adds its ranks one after the other.

use crate::lanes::Lanes;
use crate::math::{exp_nonpositive, sum_eight};

/// Most ranks of a [`Delta`].
pub const RANK_MAX: usize = 16;

/// `output[o] = row . weights[o]`, `weights` row-major, a row as long as `row`.
///
/// # Panics
/// When the length of `row` is no multiple of 8, or `weights` has another number of rows than `output`.
pub fn dots<L: Lanes>(row: &[f32], weights: &[f32], output: &mut [f32]) {
    assert!(row.len().is_multiple_of(8) && weights.len() == row.len() * output.len());
    for (to, weights) in output.iter_mut().zip(weights.chunks_exact(row.len())) {
        let mut sums = [L::splat(0.0); 2];
        for (x, w) in row
            .as_chunks::<8>()
            .0
            .iter()
            .zip(weights.as_chunks::<8>().0)
        {
            let (x, w) = (x.as_chunks::<4>().0, w.as_chunks::<4>().0);
            for half in 0..2 {
                let product = L::mul(L::load(&x[half]), L::load(&w[half]));
                sums[half] = L::add(sums[half], product);
            }
        }
        *to = sum_eight::<L>(sums[0], sums[1]);
    }
}

/// The mean of rows weighted by `softmax(row . query)`.
///
/// # Panics
/// When there is no row, not a whole number of them, or the width is no multiple of 8.
pub fn attention_pool<L: Lanes>(rows: &[f32], query: &[f32], mean: &mut [f32]) {
    let width = query.len();
    assert!(!rows.is_empty() && rows.len().is_multiple_of(width) && mean.len() == width);
    let mut scores = vec![0.0; rows.len() / width];
    for (score, row) in scores.iter_mut().zip(rows.chunks_exact(width)) {
        dots::<L>(row, query, core::slice::from_mut(score));
    }
    // A score that is not finite, which only broken weights give, makes the mean so, and the caller refuses that.
    let larger = |a: f32, b: f32| if a < b { b } else { a };
    let most = scores.iter().copied().fold(f32::MIN, larger);
    mean.fill(0.0);
    let mut sum = 0.0;
    for (score, row) in scores.iter().zip(rows.chunks_exact(width)) {
        let difference = score - most;
        if difference.is_nan() {
            mean.fill(f32::NAN);
            return;
        }
        let mut share = [0.0; 4];
        L::store(&mut share, exp_nonpositive::<L>(L::splat(difference)));
        sum += share[0];
        let share = L::splat(share[0]);
        for (to, x) in mean
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .zip(row.as_chunks::<4>().0)
        {
            let value = L::add(L::load(to), L::mul(L::load(x), share));
            L::store(to, value);
        }
    }
    for to in mean.as_chunks_mut::<4>().0 {
        let value = L::div(L::load(to), L::splat(sum));
        L::store(to, value);
    }
}

/// A low-rank change `B A` of a matrix of `outputs` x `inputs`.
#[derive(Clone, Debug)]
pub struct Delta {
    rank: usize,
    inputs: usize,
    outputs: usize,
    /// `[rank][inputs]`
    a: Vec<f32>,
    /// `[rank][outputs]`: B transposed.
    b: Vec<f32>,
}

impl Delta {
    /// A change from `a`, `[rank][inputs]`, and `b`, `[outputs][rank]`. `None` when a length does not fit, the rank is
    /// not 1 to [`RANK_MAX`], a side is no multiple of 8, or a number is beyond 1000 or not finite.
    #[must_use]
    pub fn new(inputs: usize, outputs: usize, a: Vec<f32>, b: &[f32]) -> Option<Self> {
        let rank = a.len().checked_div(inputs)?;
        let fits = (1..=RANK_MAX).contains(&rank)
            && inputs.is_multiple_of(8)
            && outputs.is_multiple_of(8)
            && a.len() == rank * inputs
            && b.len() == rank * outputs
            && a.iter().chain(b).all(|x| x.abs() <= 1000.0);
        fits.then(|| Self {
            rank,
            inputs,
            outputs,
            b: (0..rank)
                .flat_map(|r| b.iter().skip(r).step_by(rank))
                .copied()
                .collect(),
            a,
        })
    }

    /// `(outputs, inputs)` of the matrix that this changes.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.outputs, self.inputs)
    }

    /// Adds `B (A x)` for each row x of `input` to the columns from `first` on of the same row of `output`, whose rows
    /// are `stride` long.
    ///
    /// # Panics
    /// When the rows of `input` and `output` are not as many, or too short.
    pub fn add<L: Lanes>(&self, input: &[f32], output: &mut [f32], stride: usize, first: usize) {
        assert!(input.len() / self.inputs == output.len() / stride);
        let rows = input.chunks_exact(self.inputs);
        for (row, output) in rows.zip(output.chunks_exact_mut(stride)) {
            let mut ranks = [0.0; RANK_MAX];
            let ranks = &mut ranks[..self.rank];
            dots::<L>(row, &self.a, ranks);
            let to = output[first..first + self.outputs].as_chunks_mut::<4>().0;
            for (at, to) in to.iter_mut().enumerate() {
                let mut sum = L::splat(0.0);
                for (share, b) in ranks.iter().zip(self.b.chunks_exact(self.outputs)) {
                    let b = L::load(&b.as_chunks::<4>().0[at]);
                    sum = L::add(sum, L::mul(b, L::splat(*share)));
                }
                let value = L::add(L::load(to), sum);
                L::store(to, value);
            }
        }
    }
}

/// The matrices of a layer, in the order of adapter files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // see `encoder::Layer`
pub enum Part {
    Query,
    Key,
    Value,
    Merge,
    Expand,
    Contract,
}

impl Part {
    /// All of them, by their number.
    pub const ALL: [Self; 6] = [
        Self::Query,
        Self::Key,
        Self::Value,
        Self::Merge,
        Self::Expand,
        Self::Contract,
    ];
}

/// Changes of the matrices of an encoder.
#[derive(Clone, Debug, Default)]
pub struct Deltas(Vec<(usize, Part, Delta)>);

impl Deltas {
    /// Changes of matrices by layer and part, each at most once.
    #[must_use]
    pub fn new(deltas: Vec<(usize, Part, Delta)>) -> Self {
        Self(deltas)
    }

    /// The first layer with a change; `None` without any.
    #[must_use]
    pub fn first_layer(&self) -> Option<usize> {
        self.0.iter().map(|(layer, _, _)| *layer).min()
    }

    /// The change of one matrix.
    #[must_use]
    pub fn of(&self, layer: usize, part: Part) -> Option<&Delta> {
        self.0
            .iter()
            .find(|(l, p, _)| (*l, *p) == (layer, part))
            .map(|(_, _, delta)| delta)
    }

    /// Layer, part and shape `(outputs, inputs)` of each change.
    pub fn shapes(&self) -> impl Iterator<Item = (usize, Part, (usize, usize))> + '_ {
        self.0
            .iter()
            .map(|(layer, part, delta)| (*layer, *part, delta.shape()))
    }
}
