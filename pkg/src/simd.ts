// What this engine's WebAssembly can do, asked of the engine itself. A browser's name and version say less: features sit
// behind flags, engines lag behind each other, and an instruction that one processor has is several on the next.

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const V128 = 0x7b;
const SPLAT_I32 = [0xfd, 0x11];
const ADD = [0xfd, 0xae, 0x01]; // i32x4.add
const DOT = [0xfd, 0xba, 0x01]; // i32x4.dot_i16x8_s
const RELAXED_DOT = [0xfd, 0x93, 0x02]; // i32x4.relaxed_dot_i8x16_i7x16_add_s
const EXTRACT_LANE_0 = [0xfd, 0x1b, 0x00];
const get = (local: number) => [0x20, local];
const set = (local: number) => [0x21, local];

/** Sums of one loop, as independent as the ones of a tile. */
const SUMS = [1, 2, 3, 4, 5, 6];
const WEIGHTS = 7;
const LOOPS = 200_000;
const ROUNDS = 3;

/** Whether the relaxed-simd module runs here. It gives the same bits as the other one. */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(probe());
}

/**
 * Whether it is the faster one as well. A byte dot product is one instruction on processors with VNNI; elsewhere it is five,
 * and takes twice the time of the 16-bit product that the other module is made of (`bench embed`). A few milliseconds of
 * both say which; in doubt it is the other one.
 */
export function prefersRelaxedSimd(): boolean {
  if (!hasRelaxedSimd()) return false;
  const { relaxed, plain } = new WebAssembly.Instance(new WebAssembly.Module(probe())).exports as { [name: string]: (loops: number) => number };
  if (!relaxed || !plain) return false;
  let [relaxedMs, plainMs] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round += 1) {
    relaxedMs = Math.min(relaxedMs, timed(relaxed));
    plainMs = Math.min(plainMs, timed(plain));
  }
  return relaxedMs < plainMs;
}

function timed(run: (loops: number) => number): number {
  const start = performance.now();
  run(LOOPS);
  return performance.now() - start;
}

/** A module with `relaxed` and `plain`, `(loops: i32) -> i32`: as many products of either kind as four inputs take. */
function probe(): Uint8Array<ArrayBuffer> {
  const relaxed = SUMS.flatMap((sum) => [...get(sum), ...get(WEIGHTS), ...get(sum), ...RELAXED_DOT, ...set(sum)]);
  const plain = SUMS.flatMap((sum) => [...get(sum), ...get(WEIGHTS), ...DOT, ...get(sum), ...ADD, ...set(sum)]);
  const name = (text: string) => [text.length, ...Array.from(text, (letter) => letter.charCodeAt(0))];
  return new Uint8Array([
    ...HEADER,
    ...section(1, [1, 0x60, 1, 0x7f, 1, 0x7f]),
    ...section(3, [2, 0, 0]),
    ...section(7, [2, ...name('relaxed'), 0, 0, ...name('plain'), 0, 1]),
    ...section(10, [2, ...looped(relaxed), ...looped(plain)]),
  ]);
}

/** A function that does `step` twice in each loop, and returns something of all sums, so that none is left out. */
function looped(step: number[]): number[] {
  const body = [
    ...[1, SUMS.length + 1, V128],
    ...get(0), ...SPLAT_I32, ...set(WEIGHTS),
    ...[0x03, 0x40], ...step, ...step,
    ...get(0), ...[0x41, 0x01, 0x6b, 0x22, 0x00, 0x0d, 0x00, 0x0b], // count down; again until 0
    ...get(SUMS[0] ?? 1), ...SUMS.slice(1).flatMap((sum) => [...get(sum), ...ADD]), ...EXTRACT_LANE_0,
    0x0b,
  ];
  return [...leb(body.length), ...body];
}

function section(id: number, content: number[]): number[] {
  return [id, ...leb(content.length), ...content];
}

/** Unsigned LEB128 of a length below 2^14. */
function leb(length: number): number[] {
  return length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
}
