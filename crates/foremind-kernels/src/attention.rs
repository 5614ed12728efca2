//! Multi-head attention of one sequence, both of its products in integers.
//!
//! Queries and keys are quantised to 14 bits by token and head, values to 12 bits by channel. The exponentials of a
//! row become integers as large as cannot overflow, and what they mix is divided by their own exact sum at the end.

use crate::TILE_ROWS;
use crate::lanes::Lanes;
use crate::math::{exp_nonpositive, largest, nearest, steps, sum_eight};

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
        for (token, row) in projected.chunks_exact(3 * width).enumerate() {
            let part = |index: usize| &row[index * width + first..index * width + first + HEAD];
            scratch.query::<L>(token, part(0));
            scratch.key::<L>(token, part(1));
        }
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
    fn query<L: Lanes>(&mut self, token: usize, row: &[f32]) {
        let (pairs, step) = quantise::<L>(row);
        // 1 / sqrt(32)
        self.query_steps[token] = step * 0.176_776_7;
        let at = token / TILE_ROWS * TILE_ROWS * PAIRS + token % TILE_ROWS;
        for (pair, value) in pairs.into_iter().enumerate() {
            self.queries[at + TILE_ROWS * pair] = value;
        }
    }

    #[inline(always)]
    fn key<L: Lanes>(&mut self, token: usize, row: &[f32]) {
        let (pairs, step) = quantise::<L>(row);
        self.key_steps[token] = step;
        let at = token / COLUMNS * COLUMNS * PAIRS + token % COLUMNS;
        for (pair, value) in pairs.into_iter().enumerate() {
            self.keys[at + COLUMNS * pair] = value;
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
        let mut factors = [0.0; HEAD];
        let mut worth = [0.0; HEAD];
        let most = most.as_flattened();
        for ((factor, worth), most) in factors.iter_mut().zip(&mut worth).zip(most) {
            let most = f32::from_bits(*most as u32);
            (*factor, *worth) = steps(most, VALUE_MAX).unwrap_or_default();
        }
        let panel = self.values.len() / (HEAD / COLUMNS);
        for (token, row) in rows().enumerate() {
            let at = token / 2 * COLUMNS;
            let eights = row
                .as_chunks::<8>()
                .0
                .iter()
                .zip(factors.as_chunks::<8>().0);
            for (index, (x, factors)) in eights.enumerate() {
                let (x, factors) = (x.as_chunks::<4>().0, factors.as_chunks::<4>().0);
                let scaled =
                    |half: usize| nearest::<L>(L::mul(L::load(&x[half]), L::load(&factors[half])));
                let mut narrow = [0; 8];
                L::store_i16(&mut narrow, L::narrow(scaled(0), scaled(1)));
                let to = &mut self.values[index * panel + at..index * panel + at + COLUMNS];
                for ((to, value), factor) in to.iter_mut().zip(narrow).zip(factors.as_flattened()) {
                    // A channel with a value that is not finite counts as zeros.
                    to[token % 2] = if *factor == 0.0 { 0 } else { value };
                }
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
        core::array::from_fn(|row| {
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
            let sum = sum_eight::<L>(sums[0], sums[1]);
            let factor = SHARES_SUM / sum;
            let factor = L::splat(if factor < SHARE_MAX {
                factor
            } else {
                SHARE_MAX
            });
            let mut sums = L::splat_i32(0);
            for (eight, shares) in scores.iter().zip(self.shares.as_chunks_mut::<16>().0) {
                let fours = eight.as_chunks::<4>().0;
                let low = nearest::<L>(L::mul(L::load(&fours[0]), factor));
                let high = nearest::<L>(L::mul(L::load(&fours[1]), factor));
                sums = L::add_i32(sums, L::add_i32(low, high));
                let mut narrow = [0; 8];
                L::store_i16(&mut narrow, L::narrow(low, high));
                for (pair, value) in narrow.as_chunks::<2>().0.iter().enumerate() {
                    shares[TILE_ROWS * pair + row] = *value;
                }
            }
            let mut lanes = [0; 4];
            L::store_i32(&mut lanes, sums);
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

/// A row of a head to pairs of 14-bit integers, and what a unit is worth.
#[inline(always)]
fn quantise<L: Lanes>(row: &[f32]) -> ([Pair; PAIRS], f32) {
    let mut pairs = [[0; 2]; PAIRS];
    let fours = row.as_chunks::<4>().0;
    let Some((factor, step)) = steps(largest::<L>(fours), QUERY_MAX) else {
        return (pairs, 0.0);
    };
    let factor = L::splat(factor);
    let eights = pairs.as_flattened_mut().as_chunks_mut::<8>().0;
    for (x, to) in fours.as_chunks::<2>().0.iter().zip(eights) {
        let low = nearest::<L>(L::mul(L::load(&x[0]), factor));
        let high = nearest::<L>(L::mul(L::load(&x[1]), factor));
        L::store_i16(to, L::narrow(low, high));
    }
    (pairs, step)
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
