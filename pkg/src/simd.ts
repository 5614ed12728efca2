// What this engine's WebAssembly can do, asked of the engine itself. A browser's name and version say less: features sit
// behind flags, and engines lag behind each other.

/** `() -> v128`: a relaxed dot product of zeros, the instruction that the faster embedder is made of. */
const RELAXED_DOT = [
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
  0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, // type 0: () -> v128
  0x03, 0x02, 0x01, 0x00, // function 0 has type 0
  0x0a, 0x13, 0x01, 0x11, 0x00, // code: one body of 17 bytes, no locals
  0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, // three times i32.const 0, i8x16.splat
  0xfd, 0x93, 0x02, // i32x4.relaxed_dot_i8x16_i7x16_add_s
  0x0b,
];

/** Whether the relaxed-simd module runs here. It gives the same bits as the other one. */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(new Uint8Array(RELAXED_DOT));
}
