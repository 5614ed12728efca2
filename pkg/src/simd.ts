/** A module of one function, `(v128, v128, v128) -> v128`, which is one `i32x4.relaxed_dot_i8x16_i7x16_add_s`. */
const PROBE = new Uint8Array([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x08, 0x01, 0x60, 0x03, 0x7b, 0x7b, 0x7b, 0x01, 0x7b],
  ...[0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x0d, 0x01, 0x0b, 0x00, 0x20, 0x00, 0x20, 0x01, 0x20, 0x02, 0xfd, 0x93, 0x02, 0x0b],
]);

/**
 * Whether the relaxed-simd module runs here, asked of the engine itself: a browser's name and version say less, since features
 * sit behind flags. Where it runs it is as fast as the other one or faster, and gives the same bits: its kernels are chosen
 * inside, by how the processor carries the instruction out.
 */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(PROBE);
}
