//! int8 and f32 products for the sentence embedder: portable, simd128, relaxed, native.
