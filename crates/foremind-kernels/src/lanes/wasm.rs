use core::arch::wasm32::*;

use super::Lanes;

/// WebAssembly's 128-bit instructions; with `relaxed-simd` its byte dot product too.
#[derive(Clone, Copy, Debug)]
pub struct Simd128;

impl Lanes for Simd128 {
    type F = v128;
    type I = v128;
    type H = v128;
    type B = v128;

    #[inline(always)]
    fn splat(value: f32) -> v128 {
        f32x4_splat(value)
    }
    #[inline(always)]
    fn load(from: &[f32; 4]) -> v128 {
        // SAFETY: a reference to 16 bytes; v128.load needs no alignment.
        unsafe { v128_load(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(to: &mut [f32; 4], value: v128) {
        // SAFETY: an exclusive reference to 16 bytes; v128.store needs no alignment.
        unsafe { v128_store(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }
    #[inline(always)]
    fn sub(a: v128, b: v128) -> v128 {
        f32x4_sub(a, b)
    }
    #[inline(always)]
    fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }
    #[inline(always)]
    fn div(a: v128, b: v128) -> v128 {
        f32x4_div(a, b)
    }
    #[inline(always)]
    fn max(a: v128, b: v128) -> v128 {
        f32x4_pmax(a, b)
    }
    #[inline(always)]
    fn bits(a: v128) -> v128 {
        a
    }
    #[inline(always)]
    fn from_bits(a: v128) -> v128 {
        a
    }
    #[inline(always)]
    fn to_f32(a: v128) -> v128 {
        f32x4_convert_i32x4(a)
    }

    #[inline(always)]
    fn splat_i32(value: i32) -> v128 {
        i32x4_splat(value)
    }
    #[inline(always)]
    fn load_i32(from: &[i32; 4]) -> v128 {
        // SAFETY: a reference to 16 bytes; v128.load needs no alignment.
        unsafe { v128_load(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_i32(to: &mut [i32; 4], value: v128) {
        // SAFETY: an exclusive reference to 16 bytes; v128.store needs no alignment.
        unsafe { v128_store(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn add_i32(a: v128, b: v128) -> v128 {
        i32x4_add(a, b)
    }
    #[inline(always)]
    fn sub_i32(a: v128, b: v128) -> v128 {
        i32x4_sub(a, b)
    }
    #[inline(always)]
    fn max_i32(a: v128, b: v128) -> v128 {
        i32x4_max(a, b)
    }
    #[inline(always)]
    fn and_i32(a: v128, b: v128) -> v128 {
        v128_and(a, b)
    }
    #[inline(always)]
    fn shl<const BITS: u32>(a: v128) -> v128 {
        i32x4_shl(a, BITS)
    }
    #[inline(always)]
    fn narrow(a: v128, b: v128) -> v128 {
        i16x8_narrow_i32x4(a, b)
    }
    #[inline(always)]
    fn store_i16(to: &mut [i16; 8], value: v128) {
        // SAFETY: an exclusive reference to 16 bytes; v128.store needs no alignment.
        unsafe { v128_store(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn interleave(a: v128, b: v128) -> (v128, v128) {
        (
            i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b),
            i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b),
        )
    }
    #[inline(always)]
    fn transpose(rows: [v128; 4]) -> [v128; 4] {
        let [a, b, c, d] = rows;
        let (ab, cd) = (
            i32x4_shuffle::<0, 4, 1, 5>(a, b),
            i32x4_shuffle::<0, 4, 1, 5>(c, d),
        );
        let (ef, gh) = (
            i32x4_shuffle::<2, 6, 3, 7>(a, b),
            i32x4_shuffle::<2, 6, 3, 7>(c, d),
        );
        [
            i64x2_shuffle::<0, 2>(ab, cd),
            i64x2_shuffle::<1, 3>(ab, cd),
            i64x2_shuffle::<0, 2>(ef, gh),
            i64x2_shuffle::<1, 3>(ef, gh),
        ]
    }
    #[inline(always)]
    fn dot(a: v128, b: v128) -> v128 {
        i32x4_dot_i16x8(a, b)
    }

    #[inline(always)]
    unsafe fn widen(from: *const i8) -> v128 {
        // SAFETY: the caller vouches for 8 bytes.
        unsafe { i16x8_load_extend_i8x8(from) }
    }
    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> v128 {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { v128_load(from.cast()) }
    }
    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> v128 {
        // SAFETY: the caller vouches for 4 bytes; v128.load32_splat needs no alignment.
        unsafe { v128_load32_splat(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const i8) -> v128 {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { v128_load(from.cast()) }
    }
    #[inline(always)]
    unsafe fn splat_quad(from: *const i8) -> v128 {
        // SAFETY: the caller vouches for 4 bytes; v128.load32_splat needs no alignment.
        unsafe { v128_load32_splat(from.cast()) }
    }
    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    fn dot_sevens(weights: v128, sevens: v128, sum: v128) -> v128 {
        i32x4_relaxed_dot_i8x16_i7x16_add(weights, sevens, sum)
    }
    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    fn dot_sevens(weights: v128, sevens: v128, sum: v128) -> v128 {
        let low = i16x8_extmul_low_i8x16(weights, sevens);
        let high = i16x8_extmul_high_i8x16(weights, sevens);
        let even = i32x4_extadd_pairwise_i16x8(low);
        let odd = i32x4_extadd_pairwise_i16x8(high);
        let first = i32x4_shuffle::<0, 2, 4, 6>(even, odd);
        let second = i32x4_shuffle::<1, 3, 5, 7>(even, odd);
        i32x4_add(sum, i32x4_add(first, second))
    }
}
