//! Multi-head attention of one sequence, both of its products in integers.
//!
//! Queries and keys are quantised to 14 bits by token and head, values to 12 bits by channel. The exponentials of a
//! row become integers as large as cannot overflow, and what they mix is divided by their own exact sum at the end.

use crate::TILE_ROWS;
use crate::activations::Tile;
use crate::lanes::Lanes;
use crate::math::{exp_nonpositive, nearest, steps, sum_eight};

/// Channels of a head.
pub const HEAD: usize = 32;
/// Longest sequence, in tokens.
pub const LONGEST: usize = 512;

const COLUMNS: usize = crate::TILE_COLUMNS;
const PAIRS: usize = HEAD / 2;
/// 32 products of two such values stay below 2^31.
const QUERY_MAX: f32 = 8191.0;
const VALUE_MAX: f32 = 2047.0;
/// What the integer exponentials of a row add up to, or less when the largest meets [`SHARE_MAX`]. Rounded up, 512 of
/// them exceed this by at most 256, and 2047 times as much stays below 2^31.
const SHARES_SUM: f32 = 1_048_576.0;
/// Largest integer exponential.
const SHARE_MAX: f32 = 32_767.0;

type Pair = [i16; 2];

/// Working memory, reused from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    /// `[token / 4][channel / 2][token % 4]`
    queries: Vec<Pair>,
    query_steps: Vec<f32>,
    /// `[token / 8][channel / 2][token % 8]`
    keys: Vec<Pair>,
    key_steps: Vec<f32>,
    /// `[channel / 8][token / 2][channel % 8]`, pairs of tokens
    values: Vec<Pair>,
    /// `[token % 4][token]`
    scores: Vec<f32>,
    /// `[token / 2][token % 4]`, pairs of keys
    shares: Vec<Pair>,
}

/// `output[t][h] = sum_u softmax_u(q[t][h] . k[u][h] / sqrt(32)) * v[u][h]` for tokens t, u and heads h.
///
/// `projected` holds a row of queries, keys and values, `3 * width`, for each token; `output` a row of `width`, the
/// heads side by side.
///
/// # Panics
/// When there are no or more than [`LONGEST`] tokens, or the lengths are not these.
pub fn attention<L: Lanes>(
    projected: &[f32],
    width: usize,
    output: &mut [f32],
    scratch: &mut Scratch,
) {
    let tokens = output.len() / width;
    assert!(width.is_multiple_of(HEAD) && (1..=LONGEST).contains(&tokens));
    assert!(output.len() == tokens * width && projected.len() == 3 * output.len());
    let padded = tokens.next_multiple_of(COLUMNS);
    scratch.resize(padded);
    for first in (0..width).step_by(HEAD) {
        let part = |index: usize| {
            let at = index * width + first;
            projected
                .chunks_exact(3 * width)
                .map(move |row| &row[at..at + HEAD])
        };
        scratch.queries::<L>(part(0));
        scratch.keys::<L>(part(1));
        let value_steps = scratch.values::<L>(projected, 3 * width, 2 * width + first);
        for tile in 0..tokens.div_ceil(TILE_ROWS) {
            scratch.score::<L>(tile);
            let sums = scratch.exponentials::<L>(tokens);
            let rows = output[tile * TILE_ROWS * width..].chunks_mut(width);
            scratch.mix::<L>(&sums, &value_steps, rows.map(|row| &mut row[first..]));
        }
    }
}

impl Scratch {
    fn resize(&mut self, padded: usize) {
        self.queries.clear();
        self.queries.resize(padded * PAIRS, [0; 2]);
        self.query_steps.clear();
        self.query_steps.resize(padded, 0.0);
        self.keys.clear();
        self.keys.resize(padded * PAIRS, [0; 2]);
        self.key_steps.clear();
        self.key_steps.resize(padded, 0.0);
        self.values.clear();
        self.values.resize(padded * PAIRS, [0; 2]);
        self.scores.resize(TILE_ROWS * padded, 0.0);
        self.shares.resize(TILE_ROWS * padded / 2, [0; 2]);
    }

    #[inline(always)]
    fn queries<'a, L: Lanes>(&mut self, mut rows: impl Iterator<Item = &'a [f32]>) {
        let tiles = self.queries.as_chunks_mut::<{ TILE_ROWS * PAIRS }>().0;
        for (words, steps) in tiles.iter_mut().zip(self.query_steps.as_chunks_mut().0) {
            let tile = Tile::new::<L>(rows.by_ref(), QUERY_MAX);
            tile.quantise::<L>(words, TILE_ROWS);
            // 1 / sqrt(32)
            *steps = tile.steps.map(|step| step * 0.176_776_7);
        }
    }

    #[inline(always)]
    fn keys<'a, L: Lanes>(&mut self, mut rows: impl Iterator<Item = &'a [f32]>) {
        let panels = self.keys.as_chunks_mut::<{ COLUMNS * PAIRS }>().0;
        for (words, steps) in panels
            .iter_mut()
            .zip(self.key_steps.as_chunks_mut::<COLUMNS>().0)
        {
            for (half, steps) in steps.as_chunks_mut::<TILE_ROWS>().0.iter_mut().enumerate() {
                let tile = Tile::new::<L>(rows.by_ref(), QUERY_MAX);
                tile.quantise::<L>(&mut words[half * TILE_ROWS..], COLUMNS);
                *steps = tile.steps;
            }
        }
    }

    /// Quantises the values of a head, found in each row of `stride` at `first`; what a unit of each channel is worth.
    #[inline(always)]
    fn values<L: Lanes>(&mut self, projected: &[f32], stride: usize, first: usize) -> [f32; HEAD] {
        let mut most = [[0i32; 4]; HEAD / 4];
        let rows = || {
            projected
                .chunks_exact(stride)
                .map(|row| &row[first..first + HEAD])
        };
        let mask = L::splat_i32(i32::MAX);
        for row in rows() {
            for (most, four) in most.iter_mut().zip(row.as_chunks::<4>().0) {
                let bits = L::and_i32(L::bits(L::load(four)), mask);
                let larger = L::max_i32(L::load_i32(most), bits);
                L::store_i32(most, larger);
            }
        }
        let (mut factors, mut worth, mut masks) = ([0.0; HEAD], [0.0; HEAD], [0; HEAD]);
        for (channel, most) in most.as_flattened().iter().enumerate() {
            // A channel with a value that is not finite counts as zeros, whatever its products with 0 are.
            if let Some(found) = steps(f32::from_bits(*most as u32), VALUE_MAX) {
                (factors[channel], worth[channel]) = found;
                masks[channel] = -1;
            }
        }
        let factors = factors.as_chunks::<4>().0;
        let masks = masks.as_chunks::<4>().0;
        let eight = |row: &[f32], index: usize| {
            let fours = row.as_chunks::<4>().0;
            let of = |at: usize| {
                let scaled = L::mul(L::load(&fours[at]), L::load(&factors[at]));
                L::and_i32(nearest::<L>(scaled), L::load_i32(&masks[at]))
            };
            L::narrow(of(2 * index), of(2 * index + 1))
        };
        let panel = self.values.len() / (HEAD / COLUMNS);
        for pair in 0..projected.len().div_ceil(2 * stride) {
            let row = |token: usize| {
                let at = token * stride + first;
                projected.get(at..at + HEAD)
            };
            let (Some(even), odd) = (row(2 * pair), row(2 * pair + 1)) else {
                break;
            };
            for index in 0..HEAD / COLUMNS {
                let odd = odd.map_or(zeros::<L>(), |row| eight(row, index));
                let (low, high) = L::interleave(eight(even, index), odd);
                let at = index * panel + pair * COLUMNS;
                let to = self.values[at..at + COLUMNS].as_flattened_mut();
                let to = to.as_chunks_mut::<8>().0;
                L::store_i16(&mut to[0], low);
                L::store_i16(&mut to[1], high);
            }
        }
        worth
    }

    /// Scores of four queries and all keys; those of the keys that pad the last panel stand below all others.
    #[inline(always)]
    fn score<L: Lanes>(&mut self, tile: usize) {
        let padded = self.key_steps.len();
        let queries = &self.queries[tile * TILE_ROWS * PAIRS..(tile + 1) * TILE_ROWS * PAIRS];
        let query_steps = &self.query_steps[tile * TILE_ROWS..(tile + 1) * TILE_ROWS];
        let panels = self.keys.chunks_exact(COLUMNS * PAIRS);
        for (panel, keys) in panels.enumerate() {
            let sums = dot_tile::<L>(queries, keys);
            let at = panel * COLUMNS;
            let key_steps = self.key_steps[at..at + COLUMNS].as_chunks::<4>().0;
            for (row, (sum, step)) in sums.into_iter().zip(query_steps).enumerate() {
                let to = &mut self.scores[row * padded + at..row * padded + at + COLUMNS];
                for (half, to) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let step = L::mul(L::splat(*step), L::load(&key_steps[half]));
                    L::store(to, L::mul(L::to_f32(sum[half]), step));
                }
            }
        }
    }

    /// Exponentials of the scores as integers, and their sums.
    #[inline(always)]
    fn exponentials<L: Lanes>(&mut self, tokens: usize) -> [i32; TILE_ROWS] {
        let padded = self.key_steps.len();
        let factors = core::array::from_fn(|row| {
            let scores = &mut self.scores[row * padded..(row + 1) * padded];
            scores[tokens..].fill(f32::MIN);
            let scores = scores.as_chunks_mut::<8>().0;
            let mut most = [L::splat(f32::MIN); 2];
            for eight in scores.iter() {
                for (most, four) in most.iter_mut().zip(eight.as_chunks::<4>().0) {
                    *most = L::max(*most, L::load(four));
                }
            }
            let mut lanes = [0.0; 4];
            L::store(&mut lanes, L::max(most[0], most[1]));
            // No score is a NaN, and the sign of a zero goes in the subtraction.
            let larger = |a, b| if a < b { b } else { a };
            let most = L::splat(lanes.into_iter().fold(f32::MIN, larger));
            let mut sums = [L::splat(0.0); 2];
            for eight in scores.iter_mut() {
                for (sum, four) in sums.iter_mut().zip(eight.as_chunks_mut::<4>().0) {
                    let e = exp_nonpositive::<L>(L::sub(L::load(four), most));
                    L::store(four, e);
                    *sum = L::add(*sum, e);
                }
            }
            let factor = SHARES_SUM / sum_eight::<L>(sums[0], sums[1]);
            L::splat(if factor < SHARE_MAX {
                factor
            } else {
                SHARE_MAX
            })
        });
        self.shares::<L>(factors)
    }

    /// Exponentials times a factor for each row, rounded, into the layout of the left factor; their sums.
    #[inline(always)]
    fn shares<L: Lanes>(&mut self, factors: [L::F; TILE_ROWS]) -> [i32; TILE_ROWS] {
        let padded = self.key_steps.len();
        let row = |row: usize| {
            self.scores[row * padded..(row + 1) * padded]
                .as_chunks::<8>()
                .0
        };
        let eights = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
        let mut sums = [L::splat_i32(0); TILE_ROWS];
        for ((((a, b), c), d), to) in eights.zip(self.shares.as_chunks_mut::<{ 4 * TILE_ROWS }>().0)
        {
            let mut eight = |row: &[f32; 8], lane: usize| {
                let fours = row.as_chunks::<4>().0;
                let low = nearest::<L>(L::mul(L::load(&fours[0]), factors[lane]));
                let high = nearest::<L>(L::mul(L::load(&fours[1]), factors[lane]));
                sums[lane] = L::add_i32(sums[lane], L::add_i32(low, high));
                L::narrow(low, high)
            };
            let pairs = L::transpose([eight(a, 0), eight(b, 1), eight(c, 2), eight(d, 3)]);
            let to = to.as_flattened_mut().as_chunks_mut::<8>().0;
            for (pair, to) in pairs.into_iter().zip(to) {
                L::store_i16(to, pair);
            }
        }
        sums.map(|sum| {
            let mut lanes = [0; 4];
            L::store_i32(&mut lanes, sum);
            lanes.into_iter().sum()
        })
    }

    /// The weighted means of the values, for as many of four rows as there are.
    #[inline(always)]
    fn mix<'a, L: Lanes>(
        &self,
        sums: &[i32; TILE_ROWS],
        value_steps: &[f32; HEAD],
        rows: impl Iterator<Item = &'a mut [f32]>,
    ) {
        let panel = self.values.len() / (HEAD / COLUMNS);
        let mut mixed = [[[0.0; 4]; HEAD / 4]; TILE_ROWS];
        for (index, values) in self.values.chunks_exact(panel).enumerate() {
            let products = dot_tile::<L>(&self.shares, values);
            for ((row, product), sum) in mixed.iter_mut().zip(products).zip(sums) {
                let sum = L::splat(*sum as f32);
                for (half, product) in product.into_iter().enumerate() {
                    let four = 2 * index + half;
                    let steps = L::load(&value_steps.as_chunks::<4>().0[four]);
                    let worth = L::mul(L::to_f32(product), steps);
                    L::store(&mut row[four], L::div(worth, sum));
                }
            }
        }
        for (to, row) in rows.zip(&mixed) {
            to[..HEAD].copy_from_slice(row.as_flattened());
        }
    }
}

#[inline(always)]
fn zeros<L: Lanes>() -> L::H {
    L::narrow(L::splat_i32(0), L::splat_i32(0))
}

/// `sum_p rows[p][r] . columns[p][c]` of pairs p, for 4 rows r and 8 columns c.
#[inline(never)]
fn dot_tile<L: Lanes>(rows: &[Pair], columns: &[Pair]) -> [[L::I; 2]; TILE_ROWS] {
    let steps = (rows.len() / TILE_ROWS).min(columns.len() / COLUMNS);
    let (mut a, mut b) = (rows.as_ptr().cast::<i16>(), columns.as_ptr().cast::<i16>());
    let mut sums = [[L::splat_i32(0); 2]; TILE_ROWS];
    for _ in 0..steps {
        // SAFETY: both slices hold `steps` steps, of TILE_ROWS and of COLUMNS pairs.
        unsafe {
            let columns = [L::load_i16(b), L::load_i16(b.add(COLUMNS))];
            for (row, sum) in sums.iter_mut().enumerate() {
                let pair = L::splat_pair(a.add(2 * row));
                sum[0] = L::add_i32(sum[0], L::dot(pair, columns[0]));
                sum[1] = L::add_i32(sum[1], L::dot(pair, columns[1]));
            }
            a = a.add(2 * TILE_ROWS);
            b = b.add(2 * COLUMNS);
        }
    }
    sums
}
