//! Activations: rows of f32 to rows of 12-bit integers with one step a row, laid out as the tiles read them.

use crate::lanes::Lanes;
use crate::math::{largest, nearest, steps};
use crate::{GROUP, Kernel, TILE_ROWS};

/// Largest magnitude of a quantised activation: 12 bits with sign.
pub const ACTIVATION_MAX: i32 = 2047;
/// Added to an activation before it is split into two halves of seven bits, so that both are non-negative.
pub(crate) const SEVENS_OFFSET: i32 = 2048;

/// Quantised rows of `inputs` values in tiles of [`TILE_ROWS`]; the rows that a last tile lacks are zeros.
///
/// Pairs: `[tile][input / 2][row][2]`, i16. Sevens: `[tile][group]{high, low}[16][row][4]`, bytes, with
/// `activation + 2048 = 128 * high + low`. Both take `2 * TILE_ROWS * inputs` bytes a tile.
#[derive(Debug, Default)]
pub struct Activations {
    rows: usize,
    inputs: usize,
    /// Words of four bytes: a pair of i16, or four bytes of a half.
    words: Vec<[i16; 2]>,
    steps: Vec<f32>,
    row: Vec<[i16; 8]>,
}

impl Activations {
    /// Rows held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values a row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// What one unit of each row is worth; 0 for a row that was all zeros or not finite.
    pub fn steps(&self) -> &[f32] {
        &self.steps
    }

    pub(crate) fn tile(&self, tile: usize) -> &[[i16; 2]] {
        let words = TILE_ROWS * self.inputs / 2;
        &self.words[tile * words..(tile + 1) * words]
    }

    /// Replaces the rows by `rows.len() / inputs` new ones, rounded to the nearest step of their largest magnitude /
    /// [`ACTIVATION_MAX`], ties to even.
    ///
    /// A row with a value that is not finite, and one whose largest magnitude is below 1e-30, counts as zeros.
    ///
    /// # Panics
    /// When `inputs` is no multiple of [`GROUP`] or `rows` no whole number of rows.
    pub fn quantise<L: Lanes>(&mut self, kernel: Kernel, rows: &[f32], inputs: usize) {
        assert!(inputs.is_multiple_of(GROUP) && rows.len().is_multiple_of(inputs));
        self.inputs = inputs;
        self.rows = rows.len() / inputs;
        let tiles = self.rows.div_ceil(TILE_ROWS);
        self.words.resize(tiles * TILE_ROWS * inputs / 2, [0; 2]);
        self.row.resize(inputs / 8, [0; 8]);
        self.steps.clear();
        let tile_words = TILE_ROWS * inputs / 2;
        for (tile, words) in self.words.chunks_exact_mut(tile_words).enumerate() {
            for lane in 0..TILE_ROWS {
                let at = (tile * TILE_ROWS + lane) * inputs;
                match rows.get(at..at + inputs) {
                    Some(row) => self.steps.push(quantise_row::<L>(row, &mut self.row)),
                    None => self.row.fill([0; 8]),
                }
                match kernel {
                    Kernel::Pairs => spread_pairs(&self.row, words, lane),
                    Kernel::Sevens => spread_sevens(&self.row, words, lane),
                }
            }
        }
    }
}

#[inline(always)]
fn quantise_row<L: Lanes>(row: &[f32], to: &mut [[i16; 8]]) -> f32 {
    let (fours, _) = row.as_chunks::<4>();
    let Some((factor, step)) = steps(largest::<L>(fours), ACTIVATION_MAX as f32) else {
        to.fill([0; 8]);
        return 0.0;
    };
    let factor = L::splat(factor);
    for (eight, to) in fours.as_chunks::<2>().0.iter().zip(to) {
        let low = nearest::<L>(L::mul(L::load(&eight[0]), factor));
        let high = nearest::<L>(L::mul(L::load(&eight[1]), factor));
        L::store_i16(to, L::narrow(low, high));
    }
    step
}

#[inline(always)]
fn spread_pairs(row: &[[i16; 8]], words: &mut [[i16; 2]], lane: usize) {
    let steps = words.as_chunks_mut::<{ 4 * TILE_ROWS }>().0;
    for (v, step) in row.iter().zip(steps) {
        step[lane] = [v[0], v[1]];
        step[TILE_ROWS + lane] = [v[2], v[3]];
        step[2 * TILE_ROWS + lane] = [v[4], v[5]];
        step[3 * TILE_ROWS + lane] = [v[6], v[7]];
    }
}

#[inline(always)]
fn spread_sevens(row: &[[i16; 8]], words: &mut [[i16; 2]], lane: usize) {
    let half = GROUP / 4 * TILE_ROWS;
    let groups = words.chunks_exact_mut(2 * half);
    for (row, group) in row.chunks_exact(GROUP / 8).zip(groups) {
        let (high, low) = group.split_at_mut(half);
        for (quad, v) in row.as_flattened().as_chunks::<4>().0.iter().enumerate() {
            let u = v.map(|v| v + SEVENS_OFFSET as i16);
            let at = quad * TILE_ROWS + lane;
            let join = |a: i16, b: i16| a | (b << 8);
            high[at] = [join(u[0] >> 7, u[1] >> 7), join(u[2] >> 7, u[3] >> 7)];
            low[at] = [join(u[0] & 127, u[1] & 127), join(u[2] & 127, u[3] & 127)];
        }
    }
}
