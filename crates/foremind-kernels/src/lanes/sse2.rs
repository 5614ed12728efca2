use core::arch::x86_64::*;

use super::{Lanes, Portable};

/// SSE2, which every x86_64 processor has: no detection, one path.
#[derive(Clone, Copy, Debug)]
pub struct Sse2;

// SAFETY (of every block below that names no other reason): the intrinsic needs SSE2, which is part of the x86_64
// baseline, and touches registers only.
macro_rules! sse2 {
    ($intrinsic:expr) => {
        // SAFETY: see above.
        unsafe { $intrinsic }
    };
}

#[allow(unused_unsafe)] // some intrinsics became safe functions in recent compilers, others did not
impl Lanes for Sse2 {
    type F = __m128;
    type I = __m128i;
    type H = __m128i;
    type B = __m128i;

    #[inline(always)]
    fn splat(value: f32) -> __m128 {
        sse2!(_mm_set1_ps(value))
    }
    #[inline(always)]
    fn load(from: &[f32; 4]) -> __m128 {
        // SAFETY: a reference to 16 bytes; the load is the unaligned one.
        unsafe { _mm_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(to: &mut [f32; 4], value: __m128) {
        // SAFETY: an exclusive reference to 16 bytes; the store is the unaligned one.
        unsafe { _mm_storeu_ps(to.as_mut_ptr(), value) }
    }
    #[inline(always)]
    fn add(a: __m128, b: __m128) -> __m128 {
        sse2!(_mm_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(a: __m128, b: __m128) -> __m128 {
        sse2!(_mm_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(a: __m128, b: __m128) -> __m128 {
        sse2!(_mm_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(a: __m128, b: __m128) -> __m128 {
        sse2!(_mm_div_ps(a, b))
    }
    #[inline(always)]
    fn max(a: __m128, b: __m128) -> __m128 {
        // maxps returns its second operand unless the first is greater.
        sse2!(_mm_max_ps(b, a))
    }
    #[inline(always)]
    fn bits(a: __m128) -> __m128i {
        sse2!(_mm_castps_si128(a))
    }
    #[inline(always)]
    fn from_bits(a: __m128i) -> __m128 {
        sse2!(_mm_castsi128_ps(a))
    }
    #[inline(always)]
    fn to_f32(a: __m128i) -> __m128 {
        sse2!(_mm_cvtepi32_ps(a))
    }

    #[inline(always)]
    fn splat_i32(value: i32) -> __m128i {
        sse2!(_mm_set1_epi32(value))
    }
    #[inline(always)]
    fn load_i32(from: &[i32; 4]) -> __m128i {
        // SAFETY: a reference to 16 bytes; the load is the unaligned one.
        unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_i32(to: &mut [i32; 4], value: __m128i) {
        // SAFETY: an exclusive reference to 16 bytes; the store is the unaligned one.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn add_i32(a: __m128i, b: __m128i) -> __m128i {
        sse2!(_mm_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32(a: __m128i, b: __m128i) -> __m128i {
        sse2!(_mm_sub_epi32(a, b))
    }
    #[inline(always)]
    fn max_i32(a: __m128i, b: __m128i) -> __m128i {
        sse2!({
            let mask = _mm_cmpgt_epi32(a, b);
            _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b))
        })
    }
    #[inline(always)]
    fn and_i32(a: __m128i, b: __m128i) -> __m128i {
        sse2!(_mm_and_si128(a, b))
    }
    #[inline(always)]
    fn shl<const BITS: u32>(a: __m128i) -> __m128i {
        sse2!(_mm_sll_epi32(a, _mm_cvtsi32_si128(BITS as i32)))
    }
    #[inline(always)]
    fn narrow(a: __m128i, b: __m128i) -> __m128i {
        sse2!(_mm_packs_epi32(a, b))
    }
    #[inline(always)]
    fn store_i16(to: &mut [i16; 8], value: __m128i) {
        // SAFETY: an exclusive reference to 16 bytes; the store is the unaligned one.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn interleave(a: __m128i, b: __m128i) -> (__m128i, __m128i) {
        sse2!((_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)))
    }
    #[inline(always)]
    fn transpose(rows: [__m128i; 4]) -> [__m128i; 4] {
        let [a, b, c, d] = rows;
        sse2!({
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (ef, gh) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(ab, cd),
                _mm_unpackhi_epi64(ab, cd),
                _mm_unpacklo_epi64(ef, gh),
                _mm_unpackhi_epi64(ef, gh),
            ]
        })
    }
    #[inline(always)]
    fn dot(a: __m128i, b: __m128i) -> __m128i {
        sse2!(_mm_madd_epi16(a, b))
    }

    #[inline(always)]
    unsafe fn widen(from: *const i8) -> __m128i {
        // SAFETY: the caller vouches for 8 bytes, and this load takes no more; the rest as above.
        unsafe {
            let bytes = _mm_loadl_epi64(from.cast());
            _mm_srai_epi16::<8>(_mm_unpacklo_epi8(bytes, bytes))
        }
    }
    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> __m128i {
        // SAFETY: the caller vouches for 16 bytes; the load is the unaligned one.
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> __m128i {
        // SAFETY: the caller vouches for 4 bytes.
        unsafe { _mm_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const i8) -> __m128i {
        // SAFETY: the caller vouches for 16 bytes; the load is the unaligned one.
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn splat_quad(from: *const i8) -> __m128i {
        // SAFETY: the caller vouches for 4 bytes.
        unsafe { _mm_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    fn dot_sevens(weights: __m128i, sevens: __m128i, sum: __m128i) -> __m128i {
        // No native build computes with sevens outside tests: pmaddubsw is not in the baseline.
        let mut parts = ([0i8; 16], [0i8; 16], [0i32; 4]);
        // SAFETY: three exclusive 16-byte arrays; the stores are the unaligned ones.
        unsafe {
            _mm_storeu_si128(parts.0.as_mut_ptr().cast(), weights);
            _mm_storeu_si128(parts.1.as_mut_ptr().cast(), sevens);
            _mm_storeu_si128(parts.2.as_mut_ptr().cast(), sum);
        }
        let lanes = Portable::dot_sevens(parts.0, parts.1, parts.2);
        // SAFETY: 16 readable bytes; the load is the unaligned one.
        unsafe { _mm_loadu_si128(lanes.as_ptr().cast()) }
    }
}
