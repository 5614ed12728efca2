//! Layer normalisation, mean pooling, unit length, and the int8 form of a vector.
//!
//! A sum over a row runs in eight lanes, lane `i` of the row going to sum `i % 8`; [`sum_eight`] joins them.

use crate::lanes::Lanes;
use crate::math::{largest, nearest, steps, sum_eight};

/// The scale and shift of a layer normalisation, `width` of each.
#[derive(Clone, Debug, Default)]
pub struct Norm {
    /// Multiplies the normalised value.
    pub scale: Vec<f32>,
    /// Added after.
    pub shift: Vec<f32>,
}

/// Added to the variance, as the model was trained.
const EPSILON: f32 = 1e-12;

impl Norm {
    /// `rows = normalise(rows + added) * scale + shift`, row by row, for rows of `scale.len()` values.
    ///
    /// # Panics
    /// When the lengths differ, or the width is no multiple of 8.
    pub fn apply<L: Lanes>(&self, rows: &mut [f32], added: &[f32]) {
        let width = self.scale.len();
        assert!(width.is_multiple_of(8) && self.shift.len() == width);
        assert!(rows.len() == added.len() && rows.len().is_multiple_of(width));
        for (row, added) in rows.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
            self.row::<L>(row.as_chunks_mut().0, added.as_chunks().0);
        }
    }

    #[inline(always)]
    fn row<L: Lanes>(&self, row: &mut [[f32; 8]], added: &[[f32; 8]]) {
        let width = L::splat(self.scale.len() as f32);
        let mut sums = [L::splat(0.0); 2];
        for (x, y) in row.iter_mut().zip(added) {
            let (x, y) = (x.as_chunks_mut::<4>().0, y.as_chunks::<4>().0);
            for half in 0..2 {
                let sum = L::add(L::load(&x[half]), L::load(&y[half]));
                L::store(&mut x[half], sum);
                sums[half] = L::add(sums[half], sum);
            }
        }
        let mean = L::div(L::splat(sum_eight::<L>(sums[0], sums[1])), width);
        let mut squares = [L::splat(0.0); 2];
        for x in row.iter() {
            for (x, square) in x.as_chunks::<4>().0.iter().zip(&mut squares) {
                let x = L::sub(L::load(x), mean);
                *square = L::add(*square, L::mul(x, x));
            }
        }
        let variance = sum_eight::<L>(squares[0], squares[1]) / self.scale.len() as f32;
        let inverse = L::splat(1.0 / (variance + EPSILON).sqrt());
        let scales = self.scale.as_chunks::<4>().0;
        let shifts = self.shift.as_chunks::<4>().0;
        let fours = row.as_flattened_mut().as_chunks_mut::<4>().0;
        for ((x, scale), shift) in fours.iter_mut().zip(scales).zip(shifts) {
            let normal = L::mul(L::sub(L::load(x), mean), inverse);
            L::store(x, L::add(L::mul(normal, L::load(scale)), L::load(shift)));
        }
    }
}

/// The mean of rows of `mean.len()` values, added in the order of rows.
///
/// # Panics
/// When there is no row, or not a whole number of them.
pub fn mean_pool<L: Lanes>(rows: &[f32], mean: &mut [f32]) {
    let width = mean.len();
    assert!(!rows.is_empty() && width.is_multiple_of(4) && rows.len().is_multiple_of(width));
    let count = L::splat((rows.len() / width) as f32);
    mean.fill(0.0);
    let fours = mean.as_chunks_mut::<4>().0;
    for row in rows.chunks_exact(width) {
        for (mean, x) in fours.iter_mut().zip(row.as_chunks::<4>().0) {
            let sum = L::add(L::load(mean), L::load(x));
            L::store(mean, sum);
        }
    }
    for mean in fours {
        let value = L::div(L::load(mean), count);
        L::store(mean, value);
    }
}

/// Divides a vector, a multiple of 8 long, by its Euclidean length. False, and the vector is left as it was, when the
/// length is zero or not finite.
pub fn unit<L: Lanes>(vector: &mut [f32]) -> bool {
    let mut squares = [L::splat(0.0); 2];
    for x in vector.as_chunks::<8>().0 {
        for (x, square) in x.as_chunks::<4>().0.iter().zip(&mut squares) {
            let x = L::load(x);
            *square = L::add(*square, L::mul(x, x));
        }
    }
    let square = sum_eight::<L>(squares[0], squares[1]);
    if !(square > 0.0 && square < f32::INFINITY) {
        return false;
    }
    let length = L::splat(square.sqrt());
    for x in vector.as_chunks_mut::<4>().0 {
        let value = L::div(L::load(x), length);
        L::store(x, value);
    }
    true
}

/// Symmetric int8 form of a vector that is a multiple of 8 long: `vector[i] ~ int8[i] * scale`, nearest, ties to even.
/// `None` for a vector of zeros, or one with a value that is not finite.
pub fn to_int8<L: Lanes>(vector: &[f32]) -> Option<(Vec<i8>, f32)> {
    let fours = vector.as_chunks::<4>().0;
    let (factor, scale) = steps(largest::<L>(fours), 127.0)?;
    let factor = L::splat(factor);
    let mut int8 = Vec::with_capacity(vector.len());
    for eight in fours.as_chunks::<2>().0 {
        let low = nearest::<L>(L::mul(L::load(&eight[0]), factor));
        let high = nearest::<L>(L::mul(L::load(&eight[1]), factor));
        let mut narrow = [0; 8];
        L::store_i16(&mut narrow, L::narrow(low, high));
        int8.extend(narrow.map(|x| x as i8));
    }
    Some((int8, scale))
}
