//! Activations: rows of f32 to rows of 14-bit integers with one step a row, laid out as the tiles read them.

use crate::lanes::Lanes;
use crate::math::{largest, nearest, steps};
use crate::{GROUP, Kernel, TILE_ROWS};

/// Largest magnitude of a quantised activation: 14 bits with sign, the most that two halves of seven bits hold. With
/// 12 bits, which cost the same time, the mean cosine to f32 lost 2e-4 on texts in many languages.
pub const ACTIVATION_MAX: i32 = 8191;
/// Added to an activation before it is split into two halves of seven bits, so that both are non-negative.
pub(crate) const SEVENS_OFFSET: i32 = 8192;

/// Quantised rows of `inputs` values in tiles of [`TILE_ROWS`]; the rows that a last tile lacks are zeros.
///
/// Pairs: `[tile][input / 2][row][2]`, i16. Sevens: `[tile][group]{high, low}[16][row][4]`, bytes, with
/// `activation + 8192 = 128 * high + low`. Both take `2 * TILE_ROWS * inputs` bytes a tile.
#[derive(Debug, Default)]
pub struct Activations {
    rows: usize,
    inputs: usize,
    /// Words of four bytes: a pair of i16, or four bytes of a half.
    words: Vec<[i16; 2]>,
    steps: Vec<f32>,
    /// A tile of pairs, before its halves are split.
    pairs: Vec<[i16; 2]>,
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
        self.words.resize(
            self.rows.div_ceil(TILE_ROWS) * TILE_ROWS * inputs / 2,
            [0; 2],
        );
        self.steps.clear();
        let tiles = self.words.chunks_exact_mut(TILE_ROWS * inputs / 2);
        for (rows, words) in rows.chunks(TILE_ROWS * inputs).zip(tiles) {
            let tile = Tile::new::<L>(rows.chunks_exact(inputs), ACTIVATION_MAX as f32);
            self.steps
                .extend_from_slice(&tile.steps[..rows.len() / inputs]);
            match kernel {
                Kernel::Pairs => tile.quantise::<L>(words, TILE_ROWS),
                Kernel::Sevens => {
                    self.pairs.resize(words.len(), [0; 2]);
                    tile.quantise::<L>(&mut self.pairs, TILE_ROWS);
                    split(&self.pairs, words);
                }
            }
        }
    }
}

/// Up to four rows on their way to integers.
pub(crate) struct Tile<'a> {
    rows: [&'a [[f32; 4]]; TILE_ROWS],
    factors: [f32; TILE_ROWS],
    /// All ones, or zeros where a row is absent or counts as zeros, whatever its products are.
    masks: [i32; TILE_ROWS],
    /// What a unit of each row is worth.
    pub steps: [f32; TILE_ROWS],
}

impl<'a> Tile<'a> {
    /// The first four of `rows`, multiples of 8 long, to be rounded to `levels` steps of either sign.
    #[inline(always)]
    pub(crate) fn new<L: Lanes>(rows: impl Iterator<Item = &'a [f32]>, levels: f32) -> Self {
        let mut tile = Self {
            rows: [&[]; TILE_ROWS],
            factors: [0.0; TILE_ROWS],
            masks: [0; TILE_ROWS],
            steps: [0.0; TILE_ROWS],
        };
        for (lane, row) in rows.take(TILE_ROWS).enumerate() {
            let row = row.as_chunks::<4>().0;
            if lane == 0 {
                // A row that is absent reads the first one, masked.
                tile.rows = [row; TILE_ROWS];
            }
            tile.rows[lane] = row;
            if let Some((factor, step)) = steps(largest::<L>(row), levels) {
                tile.factors[lane] = factor;
                tile.steps[lane] = step;
                tile.masks[lane] = -1;
            }
        }
        tile
    }

    /// Writes pair `p` of row `r` to `words[p * stride + r]`.
    #[inline(always)]
    pub(crate) fn quantise<L: Lanes>(&self, words: &mut [[i16; 2]], stride: usize) {
        let factors = self.factors.map(L::splat);
        let masks = self.masks.map(L::splat_i32);
        let [a, b, c, d] = self.rows.map(|row| row.as_chunks::<2>().0);
        let eights = a.iter().zip(b).zip(c).zip(d);
        for ((((a, b), c), d), words) in eights.zip(words.chunks_mut(4 * stride)) {
            let eight = |row: &[[f32; 4]; 2], lane: usize| {
                let four = |half: usize| {
                    let scaled = L::mul(L::load(&row[half]), factors[lane]);
                    L::and_i32(nearest::<L>(scaled), masks[lane])
                };
                L::narrow(four(0), four(1))
            };
            let pairs = L::transpose([eight(a, 0), eight(b, 1), eight(c, 2), eight(d, 3)]);
            for (pair, words) in pairs.into_iter().zip(words.chunks_mut(stride)) {
                if let Some(to) = words.as_flattened_mut().first_chunk_mut() {
                    L::store_i16(to, pair);
                }
            }
        }
    }
}

/// Pairs to halves of quads, group by group.
#[inline(always)]
fn split(pairs: &[[i16; 2]], words: &mut [[i16; 2]]) {
    const HALF: usize = GROUP / 4 * TILE_ROWS;
    let groups = words.as_chunks_mut::<{ 2 * HALF }>().0;
    for (pairs, group) in pairs.as_chunks::<{ 2 * HALF }>().0.iter().zip(groups) {
        let (high, low) = group.split_at_mut(HALF);
        let steps = pairs.as_chunks::<{ 2 * TILE_ROWS }>().0.iter();
        let halves = high
            .as_chunks_mut::<TILE_ROWS>()
            .0
            .iter_mut()
            .zip(low.as_chunks_mut::<TILE_ROWS>().0);
        for (pairs, (high, low)) in steps.zip(halves) {
            for row in 0..TILE_ROWS {
                let [a, b] = pairs[row].map(|v| v + SEVENS_OFFSET as i16);
                let [c, d] = pairs[TILE_ROWS + row].map(|v| v + SEVENS_OFFSET as i16);
                let join = |first: i16, second: i16| first | (second << 8);
                high[row] = [join(a >> 7, b >> 7), join(c >> 7, d >> 7)];
                low[row] = [join(a & 127, b & 127), join(c & 127, d & 127)];
            }
        }
    }
}
