//! Four lanes of `f32` or `i32`, eight of `i16`, sixteen bytes: the little vocabulary that every kernel is written in.
//!
//! One generic source serves all hosts, so equality of results is a matter of these few operations and nothing else.
//! Each must give the bits that [`Portable`] gives for every input that is not NaN (a NaN gives some NaN). There is
//! no fused multiply-add and no reduction across lanes here: kernels spell their order of additions out.

mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;

pub use portable::Portable;

/// The fastest lanes of the target that was compiled for.
#[cfg(target_arch = "x86_64")]
pub type Native = sse2::Sse2;
/// The fastest lanes of the target that was compiled for.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub type Native = wasm::Simd128;
/// The fastest lanes of the target that was compiled for.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
pub type Native = Portable;

/// Operations on 128 bits. `F` is 4 x f32, `I` 4 x i32, `H` 8 x i16, `B` 16 bytes.
#[allow(missing_docs)] // the names are those of the arithmetic; what is not obvious has a line
pub trait Lanes: Copy + 'static {
    type F: Copy;
    type I: Copy;
    type H: Copy;
    type B: Copy;

    fn splat(value: f32) -> Self::F;
    fn load(from: &[f32; 4]) -> Self::F;
    fn store(to: &mut [f32; 4], value: Self::F);
    fn add(a: Self::F, b: Self::F) -> Self::F;
    fn sub(a: Self::F, b: Self::F) -> Self::F;
    fn mul(a: Self::F, b: Self::F) -> Self::F;
    fn div(a: Self::F, b: Self::F) -> Self::F;
    fn abs(a: Self::F) -> Self::F;
    /// The larger. With a NaN, or of two zeros of unlike sign, either: compilers turn this into the relaxed maximum
    /// where they may. Callers see to it that such a choice cannot be seen.
    fn max(a: Self::F, b: Self::F) -> Self::F;
    /// `if x < 0 { negative } else { other }`, lane by lane.
    fn where_negative(x: Self::F, negative: Self::F, other: Self::F) -> Self::F;
    fn bits(a: Self::F) -> Self::I;
    fn from_bits(a: Self::I) -> Self::F;
    /// Nearest f32, ties to even.
    fn to_f32(a: Self::I) -> Self::F;

    fn splat_i32(value: i32) -> Self::I;
    fn load_i32(from: &[i32; 4]) -> Self::I;
    fn store_i32(to: &mut [i32; 4], value: Self::I);
    fn add_i32(a: Self::I, b: Self::I) -> Self::I;
    fn sub_i32(a: Self::I, b: Self::I) -> Self::I;
    fn max_i32(a: Self::I, b: Self::I) -> Self::I;
    fn and_i32(a: Self::I, b: Self::I) -> Self::I;
    /// Shift left by a constant below 32.
    fn shl<const BITS: u32>(a: Self::I) -> Self::I;
    /// Lanes 0..4 of the result from `a`, 4..8 from `b`, saturated to i16.
    fn narrow(a: Self::I, b: Self::I) -> Self::H;
    fn store_i16(to: &mut [i16; 8], value: Self::H);
    /// Result lane `i` = `a[2i] * b[2i] + a[2i+1] * b[2i+1]`; exact but for four factors of -32768.
    fn dot(a: Self::H, b: Self::H) -> Self::I;

    /// Eight signed bytes, widened.
    ///
    /// # Safety
    /// 8 bytes at `from` are readable.
    unsafe fn widen(from: *const i8) -> Self::H;
    /// # Safety
    /// 16 bytes at `from` are readable.
    unsafe fn load_i16(from: *const i16) -> Self::H;
    /// The two values at `from`, repeated four times.
    ///
    /// # Safety
    /// 4 bytes at `from` are readable.
    unsafe fn splat_pair(from: *const i16) -> Self::H;
    /// # Safety
    /// 16 bytes at `from` are readable.
    unsafe fn load_bytes(from: *const i8) -> Self::B;
    /// The four bytes at `from`, repeated four times.
    ///
    /// # Safety
    /// 4 bytes at `from` are readable.
    unsafe fn splat_quad(from: *const i8) -> Self::B;
    /// Result lane `i` = `sum[i]` + the four products of bytes `4i..4i+4`. Every byte of `sevens` is in 0..=127 (the
    /// range in which all hardware agrees) and no byte of `weights` is -128, so sums of two products fit an i16.
    fn dot_sevens(weights: Self::B, sevens: Self::B, sum: Self::I) -> Self::I;
}
