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
    /// The larger. With a NaN, or of two zeros of unlike sign, either: compilers turn this into the relaxed maximum
    /// where they may. Callers see to it that such a choice cannot be seen.
    fn max(a: Self::F, b: Self::F) -> Self::F;
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
    /// `a[0], b[0], a[1], b[1], ...`, in two parts.
    fn interleave(a: Self::H, b: Self::H) -> (Self::H, Self::H);
    /// Rows of four pairs to columns: result `p` holds pair `p` of each row.
    fn transpose(rows: [Self::H; 4]) -> [Self::H; 4];
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

/// Whether [`Lanes::dot_sevens`] gives exact sums at the ends of its range and in its middle.
pub fn dot_sevens_is_exact<L: Lanes>() -> bool {
    let weights: [i8; 16] = [
        127, -127, -127, 127, -127, -127, -127, -127, 127, 127, 127, 127, -1, 3, -77, 0,
    ];
    let sevens: [i8; 16] = [
        127, 127, 1, 0, 127, 127, 127, 127, 127, 127, 127, 127, 126, 64, 85, 127,
    ];
    let start = 1 << 20;
    let mut found = [0; 4];
    // SAFETY: both arrays have 16 bytes. The detour keeps the compiler from working the sums out itself.
    let (weights_lanes, sevens_lanes) = unsafe {
        (
            L::load_bytes(core::hint::black_box(weights.as_ptr())),
            L::load_bytes(core::hint::black_box(sevens.as_ptr())),
        )
    };
    let sums = L::dot_sevens(weights_lanes, sevens_lanes, L::splat_i32(start));
    L::store_i32(&mut found, sums);
    let exact = |lane: usize| {
        let products =
            (4 * lane..4 * lane + 4).map(|i| i32::from(weights[i]) * i32::from(sevens[i]));
        start + products.sum::<i32>()
    };
    (0..4).all(|lane| found[lane] == exact(lane))
}

/// Whether [`Lanes::dot_sevens`], given bytes beyond its range, saturates sums of two products to an i16.
///
/// This tells processors apart without a clock: x86 without VNNI multiplies bytes by an instruction that saturates, and
/// needs two more for the sum. VNNI's one instruction does not saturate, nor does Arm's. Results are never made so.
pub fn dot_sevens_saturates<L: Lanes>() -> bool {
    let (weights, beyond) = ([127_i8; 16], [-1_i8; 16]);
    // SAFETY: both arrays have 16 bytes. The detour keeps the compiler from working the sums out itself.
    let (weights, beyond) = unsafe {
        (
            L::load_bytes(core::hint::black_box(weights.as_ptr())),
            L::load_bytes(core::hint::black_box(beyond.as_ptr())),
        )
    };
    let mut found = [0; 4];
    L::store_i32(&mut found, L::dot_sevens(weights, beyond, L::splat_i32(0)));
    found[0] == 2 * i32::from(i16::MAX)
}
