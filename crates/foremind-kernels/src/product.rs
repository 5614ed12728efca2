//! The product that all time goes into: quantised rows times a matrix of int8 weights, plus bias.
//!
//! A tile is 4 rows x 8 outputs, whose eight integer sums stay in registers. Within a group of 128 inputs sums are
//! integers and exact (at most 8191 * 127 * 128 < 2^27); each group's sum becomes the nearest f32, is scaled by the
//! weights' step and added in the order of groups. `output = total * row's step + bias`.
//!
//! *Pairs* multiply-add two i16 at once, weights widened on load. *Sevens* use the byte dot product: first the high
//! halves of all activations of a group, shifted left by seven, then the low halves onto the same sums.

use crate::activations::Activations;
use crate::lanes::Lanes;
use crate::weights::{BLOCK, Matrix, Panel};
use crate::{GROUP, Kernel, TILE_COLUMNS, TILE_ROWS};

/// Tiles of rows that pass over a panel of weights before the next panel: their activations stay in the first-level
/// cache with 384 inputs.
const ROW_BLOCK_TILES: usize = 4;

/// `output[row][o] = sum_i input[row][i] * weight[o][i] + bias[o]`, row-major, `input.rows()` x `weights.outputs()`.
///
/// # Panics
/// When the shapes or the kernels of input and weights differ, or `output` has another length.
pub fn linear<L: Lanes>(input: &Activations, weights: &Matrix, output: &mut [f32]) {
    assert!(input.inputs() == weights.inputs());
    assert!(output.len() == input.rows() * weights.outputs());
    match weights.kernel() {
        Kernel::Pairs => blocks::<L, Pairs>(input, weights, output),
        Kernel::Sevens => blocks::<L, Sevens>(input, weights, output),
    }
}

#[inline(always)]
fn blocks<L: Lanes, K: Tile>(input: &Activations, weights: &Matrix, output: &mut [f32]) {
    let tiles = input.rows().div_ceil(TILE_ROWS);
    for first in (0..tiles).step_by(ROW_BLOCK_TILES) {
        let last = (first + ROW_BLOCK_TILES).min(tiles);
        for panel in 0..weights.outputs() / TILE_COLUMNS {
            let weights_panel = weights.panel(panel);
            for tile in first..last {
                let place = Place {
                    stride: weights.outputs(),
                    row: tile * TILE_ROWS,
                    column: panel * TILE_COLUMNS,
                };
                let words = input.tile(tile);
                let steps = &input.steps()[place.row..];
                match steps.len() {
                    1 => tile_product::<L, K, 1>(words, &weights_panel, steps, output, &place),
                    2 => tile_product::<L, K, 2>(words, &weights_panel, steps, output, &place),
                    3 => tile_product::<L, K, 3>(words, &weights_panel, steps, output, &place),
                    _ => tile_product::<L, K, 4>(words, &weights_panel, steps, output, &place),
                }
            }
        }
    }
}

/// A tile of the output.
struct Place {
    stride: usize,
    row: usize,
    column: usize,
}

/// A function of its own, so that an engine's register allocator sees nothing but the loop.
#[inline(never)]
fn tile_product<L: Lanes, K: Tile, const ROWS: usize>(
    words: &[[i16; 2]],
    panel: &Panel<'_>,
    steps: &[f32],
    output: &mut [f32],
    place: &Place,
) {
    let totals = K::totals::<L, ROWS>(words, panel);
    let (bias, _) = panel.bias.as_chunks::<4>();
    for (row, (total, step)) in totals.into_iter().zip(steps).enumerate() {
        let step = L::splat(*step);
        let at = (place.row + row) * place.stride + place.column;
        let (to, _) = output[at..at + TILE_COLUMNS].as_chunks_mut::<4>();
        for half in 0..2 {
            let scaled = L::mul(total[half], step);
            L::store(&mut to[half], L::add(scaled, L::load(&bias[half])));
        }
    }
}

trait Tile {
    /// Sums over all groups, weights' steps applied, of the first `ROWS` rows of a tile and a panel of outputs.
    fn totals<L: Lanes, const ROWS: usize>(
        words: &[[i16; 2]],
        panel: &Panel<'_>,
    ) -> [[L::F; 2]; ROWS];
}

#[inline(always)]
fn fold<L: Lanes, const ROWS: usize>(
    totals: &mut [[L::F; 2]; ROWS],
    sums: [[L::I; 2]; ROWS],
    steps: &[f32; TILE_COLUMNS],
) {
    let (steps, _) = steps.as_chunks::<4>();
    let steps = [L::load(&steps[0]), L::load(&steps[1])];
    for (total, sum) in totals.iter_mut().zip(sums) {
        for half in 0..2 {
            let scaled = L::mul(L::to_f32(sum[half]), steps[half]);
            total[half] = L::add(total[half], scaled);
        }
    }
}

struct Pairs;

impl Tile for Pairs {
    #[inline(always)]
    fn totals<L: Lanes, const ROWS: usize>(
        words: &[[i16; 2]],
        panel: &Panel<'_>,
    ) -> [[L::F; 2]; ROWS] {
        let mut totals = [[L::splat(0.0); 2]; ROWS];
        let groups = words.as_chunks::<{ GROUP / 2 * TILE_ROWS }>().0;
        let blocks = panel.values.as_chunks::<BLOCK>().0;
        let steps = panel.steps.as_chunks::<TILE_COLUMNS>().0;
        for ((words, block), steps) in groups.iter().zip(blocks).zip(steps) {
            let mut sums = [[L::splat_i32(0); 2]; ROWS];
            let (mut a, mut b) = (words.as_ptr().cast::<i16>(), block.as_ptr());
            let end = words.as_ptr_range().end.cast::<i16>();
            while a != end {
                // SAFETY: a block holds GROUP / 2 steps of 16 weights, a tile's group GROUP / 2 steps of TILE_ROWS
                // words of two i16, and ROWS is at most TILE_ROWS.
                unsafe {
                    let weights = [L::widen(b), L::widen(b.add(TILE_COLUMNS))];
                    for (row, sum) in sums.iter_mut().enumerate() {
                        let pair = L::splat_pair(a.add(2 * row));
                        sum[0] = L::add_i32(sum[0], L::dot(pair, weights[0]));
                        sum[1] = L::add_i32(sum[1], L::dot(pair, weights[1]));
                    }
                    a = a.add(2 * TILE_ROWS);
                    b = b.add(2 * TILE_COLUMNS);
                }
            }
            fold::<L, ROWS>(core::hint::black_box(&mut totals), sums, steps);
        }
        totals
    }
}

struct Sevens;

impl Tile for Sevens {
    #[inline(always)]
    fn totals<L: Lanes, const ROWS: usize>(
        words: &[[i16; 2]],
        panel: &Panel<'_>,
    ) -> [[L::F; 2]; ROWS] {
        const HALF: usize = GROUP / 4 * TILE_ROWS;
        let mut totals = [[L::splat(0.0); 2]; ROWS];
        let groups = words.as_chunks::<{ 2 * HALF }>().0;
        let blocks = panel.values.as_chunks::<BLOCK>().0;
        let steps = panel.steps.as_chunks::<TILE_COLUMNS>().0;
        let corrections = panel.corrections.as_chunks::<TILE_COLUMNS>().0;
        let scales = steps.iter().zip(corrections);
        for ((words, block), (steps, corrections)) in groups.iter().zip(blocks).zip(scales) {
            let (high, low) = words.split_at(HALF);
            let mut sums = [[L::splat_i32(0); 2]; ROWS];
            sevens::<L, ROWS>(&mut sums, high, block);
            let (corrections, _) = corrections.as_chunks::<4>();
            let corrections = [L::load_i32(&corrections[0]), L::load_i32(&corrections[1])];
            for sum in &mut sums {
                for half in 0..2 {
                    sum[half] = L::add_i32(L::shl::<7>(sum[half]), corrections[half]);
                }
            }
            sevens::<L, ROWS>(&mut sums, low, block);
            fold::<L, ROWS>(core::hint::black_box(&mut totals), sums, steps);
        }
        totals
    }
}

#[inline(always)]
fn sevens<L: Lanes, const ROWS: usize>(
    sums: &mut [[L::I; 2]; ROWS],
    half: &[[i16; 2]],
    block: &[i8; BLOCK],
) {
    let (mut a, mut b) = (half.as_ptr().cast::<i8>(), block.as_ptr());
    let end = half.as_ptr_range().end.cast::<i8>();
    while a != end {
        // SAFETY: a block holds GROUP / 4 steps of 32 weights, a half of a tile's group GROUP / 4 steps of TILE_ROWS
        // words of four bytes, and ROWS is at most TILE_ROWS.
        unsafe {
            let weights = [L::load_bytes(b), L::load_bytes(b.add(16))];
            for (row, sum) in sums.iter_mut().enumerate() {
                let quad = L::splat_quad(a.add(4 * row));
                sum[0] = L::dot_sevens(weights[0], quad, sum[0]);
                sum[1] = L::dot_sevens(weights[1], quad, sum[1]);
            }
            a = a.add(4 * TILE_ROWS);
            b = b.add(4 * TILE_COLUMNS);
        }
    }
}
