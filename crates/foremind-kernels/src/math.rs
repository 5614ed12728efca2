//! exp, GELU and rounding out of IEEE additions and multiplications, so that no host's mathematics library
//! decides a bit.

use crate::lanes::Lanes;

/// Adding 1.5 * 2^23 to a value of magnitude below 2^22 rounds it to the nearest integer, ties to even, and leaves
/// that integer in the low bits of the sum.
const ROUNDING: f32 = 12_582_912.0;

/// Nearest integers, ties to even, of values in -2^22..2^22.
#[inline(always)]
pub fn nearest<L: Lanes>(x: L::F) -> L::I {
    let shifted = L::bits(L::add(x, L::splat(ROUNDING)));
    L::sub_i32(shifted, L::splat_i32(ROUNDING.to_bits() as i32))
}

/// e^x for x <= 0, which is no NaN; below -87 it stays at e^-87 (1.6e-38), the last value before subnormal numbers.
///
/// Range reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes `expf`): within 2 units in the last place.
#[inline(always)]
pub fn exp_nonpositive<L: Lanes>(x: L::F) -> L::F {
    let x = L::max(x, L::splat(-87.0));
    let shifted = L::add(
        L::mul(x, L::splat(core::f32::consts::LOG2_E)),
        L::splat(ROUNDING),
    );
    let n = L::sub(shifted, L::splat(ROUNDING));
    let r = L::sub(x, L::mul(n, L::splat(0.693_359_4)));
    let r = L::sub(r, L::mul(n, L::splat(-2.121_944_4e-4)));
    let mut p = L::splat(1.987_569_2e-4);
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        p = L::add(L::mul(p, r), L::splat(c));
    }
    let y = L::add(L::add(L::mul(p, L::mul(r, r)), r), L::splat(1.0));
    // The rounding constant's own bits leave the word with the shift.
    L::from_bits(L::add_i32(L::bits(y), L::shl::<23>(L::bits(shifted))))
}

/// Beyond this the Gaussian distribution function counts as 0 and 1.
const GELU_END: f32 = 4.5;
/// Coefficients of t, t^3, ... of (Phi(4.5 t) - 1/2) on -1..1, least largest error of the product with x.
const GELU_ODD: [f32; 9] = [
    1.794_206_7,
    -6.012_851_7,
    17.687_395,
    -38.771_614,
    61.612_843,
    -68.212_88,
    49.366_456,
    -20.826_994,
    3.863_440_3,
];

/// x * Phi(x), the Gaussian error linear unit with the error function (not its tanh approximation), off by at most
/// 8e-5 for |x| up to 8, and 8e-6 of |x| beyond: less than what rounding to 14 bits does to it next. A polynomial,
/// because the exact function, with its division and exponential, took twice the time.
#[inline(always)]
pub fn gelu<L: Lanes>(x: L::F) -> L::F {
    // Of the bounds, neither can be seen to be chosen for a zero or, since x is a factor of the result, a NaN.
    let below = L::max(x, L::splat(-GELU_END));
    let negated = L::sub(L::splat(0.0), below);
    let clamped = L::max(negated, L::splat(-GELU_END));
    let t = L::mul(clamped, L::splat(-1.0 / GELU_END));
    let square = L::mul(t, t);
    let [most @ .., last] = GELU_ODD;
    let mut p = L::splat(last);
    for c in most.into_iter().rev() {
        p = L::add(L::mul(p, square), L::splat(c));
    }
    L::mul(x, L::add(L::mul(p, t), L::splat(0.5)))
}

/// [`gelu`] of each value, in place.
///
/// # Panics
/// When the number of values is no multiple of 4.
pub fn gelu_all<L: Lanes>(values: &mut [f32]) {
    assert!(values.len().is_multiple_of(4));
    for four in values.as_chunks_mut::<4>().0 {
        let value = gelu::<L>(L::load(four));
        L::store(four, value);
    }
}

/// The sum of eight running sums, lane `i` of a row having gone to sum `i % 8`: first the halves, then the even and
/// the odd lanes.
#[inline(always)]
pub fn sum_eight<L: Lanes>(low: L::F, high: L::F) -> f32 {
    let mut s = [0.0; 4];
    L::store(&mut s, L::add(low, high));
    (s[0] + s[2]) + (s[1] + s[3])
}

/// Largest magnitude of a row, its bits compared as integers: a NaN or an infinity is larger than every number.
#[inline(always)]
pub fn largest<L: Lanes>(rows: &[[f32; 4]]) -> f32 {
    let mask = L::splat_i32(i32::MAX);
    let mut most = [L::splat_i32(0); 2];
    for pair in rows.chunks(2) {
        for (most, four) in most.iter_mut().zip(pair) {
            *most = L::max_i32(*most, L::and_i32(L::bits(L::load(four)), mask));
        }
    }
    let mut lanes = [0; 4];
    L::store_i32(&mut lanes, L::max_i32(most[0], most[1]));
    f32::from_bits(lanes.into_iter().fold(0, i32::max) as u32)
}

/// Rows whose largest magnitude is outside of this range count as zeros: below, the inverse could overflow; above,
/// which only broken weights reach, a product of two rows could.
pub const MAGNITUDES: core::ops::RangeInclusive<f32> = 1e-30..=1e15;

/// `(factor, step)` that map a row of the given largest magnitude to integers of at most `levels` and back.
/// `None` for a row outside of [`MAGNITUDES`] (zeros, not finite): it counts as zeros with step 0.
#[inline(always)]
pub fn steps(largest: f32, levels: f32) -> Option<(f32, f32)> {
    MAGNITUDES
        .contains(&largest)
        .then(|| (levels / largest, largest / levels))
}
