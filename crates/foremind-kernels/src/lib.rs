//! int8 and f32 products for the sentence embedder: portable, simd128, relaxed, native.
//!
//! Every function is generic over [`lanes::Lanes`], a vocabulary of 128-bit operations, and gives the same bits with
//! all of its implementations: products are sums of integers, sums of floats have one fixed order, exp and erf are
//! made of IEEE operations, nothing is fused. `tests/` compares them with scalar code and with a naive oracle,
//! `tests/kernels/identity.mjs` the WebAssembly builds with the native one.
//!
//! From below: [`activations`] and [`weights`] hold the two factors as the tiles of [`product`] read them;
//! [`attention`] and [`norm`] are the rest of a layer; [`encoder`] stacks layers; [`dense`] is what adapters and heads add. What is not finite never becomes an
//! integer: such a row counts as zeros where it is quantised, and [`norm::unit`] refuses it at the end.

pub mod activations;
pub mod attention;
pub mod dense;
pub mod encoder;
pub mod lanes;
pub mod math;
pub mod norm;
pub mod product;
pub mod weights;

/// Inputs that share one step of their weights. Half of it costs 4 % of a forward pass, and gives at equal bytes a mean
/// cosine to f32 that is better by 4e-5.
pub const GROUP: usize = 128;
/// Rows of a tile.
pub const TILE_ROWS: usize = 4;
/// Outputs of a tile.
pub const TILE_COLUMNS: usize = 8;

/// How products of activations and weights are formed. Both give the same bits; which is faster depends on the
/// processor: sevens where it has a byte dot product (x86 VNNI, Arm dotprod) and the build may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// i16 x i16, two products at once.
    Pairs,
    /// i8 x 7 bits, four products at once, activations in two halves.
    Sevens,
}

impl Kernel {
    /// The faster kernel of this build and processor: sevens where relaxed-simd's byte dot product is one instruction.
    ///
    /// Where it is three (x86 without VNNI), sevens take 1.1 to 1.3 of onnxruntime-web's time at 16 to 256 tokens, pairs 0.54 to 0.70.
    /// V8 11, which has it behind a flag, takes its operands the other way round: not exact, so pairs.
    #[must_use]
    pub fn fastest() -> Self {
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        if lanes::dot_sevens_is_exact::<lanes::Native>()
            && !lanes::dot_sevens_saturates::<lanes::Native>()
        {
            return Self::Sevens;
        }
        Self::Pairs
    }
}
