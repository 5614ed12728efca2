// The frozen yardstick of `peak_share`: an integer matrix product with nothing around it, written instruction by
// instruction so that no compiler release moves it. Never tune it: figures of different days are compared through it.
//
// 128 x 384 activations (int16) times 384 x 1536 weights (int8, widened on load) with `i32x4.dot_i16x8_s`, in tiles of 4
// rows and 8 columns. Activations lie in tiles of 4 rows (for each pair of inputs 4 rows of 2), weights in panels of 8
// columns (for each pair of inputs 8 columns of 2), so that the loop walks along two pointers. A tile is a function of its
// own: an engine's register allocator then keeps the 8 sums in registers.

export const ROWS = 128;
export const INPUTS = 384;
export const OUTPUTS = 1536;
/** Multiplications and additions of one product. */
export const OPERATIONS = 2 * ROWS * INPUTS * OUTPUTS;

const ACTIVATIONS_AT = 0;
const WEIGHTS_AT = ACTIVATIONS_AT + 2 * ROWS * INPUTS;
const RESULTS_AT = WEIGHTS_AT + INPUTS * OUTPUTS;
const BYTES = RESULTS_AT + 4 * ROWS * OUTPUTS;
const TILE_ROWS = 4;
const TILE_COLUMNS = 8;
const TILE_BYTES = 2 * INPUTS * TILE_ROWS;
const PANEL_BYTES = INPUTS * TILE_COLUMNS;
/** Tiles that pass over a panel before the next panel: their activations stay in the first-level cache. */
const BLOCK_TILES = 4;

/** Unsigned LEB128. */
function unsigned(value) {
  const bytes = [];
  do {
    const rest = value >>> 7;
    bytes.push((value & 0x7f) | (rest ? 0x80 : 0));
    value = rest;
  } while (value);
  return bytes;
}

/** Signed LEB128. */
function signed(value) {
  const bytes = [];
  for (;;) {
    const byte = value & 0x7f;
    value >>= 7;
    if ((value === 0 && !(byte & 0x40)) || (value === -1 && byte & 0x40)) return [...bytes, byte];
    bytes.push(byte | 0x80);
  }
}

const I32 = 0x7f;
const V128 = 0x7b;
const get = (local) => [0x20, ...unsigned(local)];
const set = (local) => [0x21, ...unsigned(local)];
const constant = (value) => [0x41, ...signed(value)];
const add = [0x6a];
const simd = (opcode, ...immediates) => [0xfd, ...unsigned(opcode), ...immediates];
const at = (align, offset) => [align, ...unsigned(offset)];
const advance = (local, by) => [...get(local), ...constant(by), ...add, ...set(local)];
/** Runs `body` until `local` has come to `end`. */
const loopUntil = (local, end, body) => [0x03, 0x40, ...body, ...get(local), ...constant(end), 0x49, 0x0d, 0x00, 0x0b];

/** (activations of a tile, weights of a panel, results): one tile. */
function tile() {
  const [a, b, result, end, input] = [0, 1, 2, 3, 4];
  const weights = 5;
  const sums = 7;
  const pair = [
    ...[0, 1].flatMap((half) => [...get(b), ...simd(1, ...at(3, 8 * half)), ...set(weights + half)]), // v128.load8x8_s
    ...[0, 1, 2, 3].flatMap((row) => [
      ...get(a), ...simd(9, ...at(2, 4 * row)), ...set(input), // v128.load32_splat
      ...[0, 1].flatMap((half) => {
        const sum = sums + 2 * row + half;
        return [...get(sum), ...get(input), ...get(weights + half), ...simd(186), ...simd(174), ...set(sum)]; // dot, add
      }),
    ]),
    ...advance(a, 4 * TILE_ROWS),
    ...advance(b, 2 * TILE_COLUMNS),
  ];
  const code = [
    ...get(a), ...constant(TILE_BYTES), ...add, ...set(end),
    0x03, 0x40, ...pair, ...get(a), ...get(end), 0x47, 0x0d, 0x00, 0x0b,
    ...[0, 1, 2, 3].flatMap((row) =>
      [0, 1].flatMap((half) => [...get(result), ...get(sums + 2 * row + half), ...simd(11, ...at(4, 4 * OUTPUTS * row + 16 * half))]),
    ),
    0x0b,
  ];
  // Locals start as zero, the sums too.
  return [2, 1, I32, 11, V128, ...code];
}

/** All tiles, block by block. */
function product() {
  const [block, panel, column, row, result] = [0, 1, 2, 3, 4];
  const tiles = [
    ...get(block), ...set(row),
    ...get(column), ...set(result),
    ...Array.from({ length: BLOCK_TILES }, () => [
      ...get(row), ...get(panel), ...get(result), 0x10, 0,
      ...advance(row, TILE_BYTES),
      ...advance(result, 4 * OUTPUTS * TILE_ROWS),
    ]).flat(),
    ...advance(panel, PANEL_BYTES),
    ...advance(column, 4 * TILE_COLUMNS),
  ];
  const [resultBlock] = [5];
  const blocks = [
    ...constant(WEIGHTS_AT), ...set(panel),
    ...get(resultBlock), ...set(column),
    ...loopUntil(panel, RESULTS_AT, tiles),
    ...advance(block, TILE_BYTES * BLOCK_TILES),
    ...advance(resultBlock, 4 * OUTPUTS * TILE_ROWS * BLOCK_TILES),
  ];
  return [
    1, 6, I32,
    ...constant(ACTIVATIONS_AT), ...set(block),
    ...constant(RESULTS_AT), ...set(resultBlock),
    ...loopUntil(block, WEIGHTS_AT, blocks),
    0x0b,
  ];
}

/** The module's bytes: a memory `memory` and a function `run`. */
export function moduleBytes() {
  const section = (id, content) => [id, ...unsigned(content.length), ...content];
  const name = (text) => [text.length, ...new TextEncoder().encode(text)];
  const bodies = [tile(), product()].map((body) => [...unsigned(body.length), ...body]);
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [2, 0x60, 3, I32, I32, I32, 0, 0x60, 0, 0]),
    ...section(3, [2, 0, 1]),
    ...section(5, [1, 0, ...unsigned(Math.ceil(BYTES / 65536))]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('run'), 0, 1]),
    ...section(10, [2, ...bodies.flat()]),
  ]);
}

/** One instance with fixed inputs, checked against the plain sum before it is used. */
export async function referenceKernel() {
  const { instance } = await WebAssembly.instantiate(moduleBytes());
  const { memory, run } = instance.exports;
  const activations = new Int16Array(memory.buffer, ACTIVATIONS_AT, ROWS * INPUTS);
  const weights = new Int8Array(memory.buffer, WEIGHTS_AT, INPUTS * OUTPUTS);
  const results = new Int32Array(memory.buffer, RESULTS_AT, ROWS * OUTPUTS);
  let state = 0x5eed;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 16;
  activations.forEach((_, index) => (activations[index] = (next() % 4095) - 2047));
  weights.forEach((_, index) => (weights[index] = (next() % 255) - 127));
  run();
  for (const [row, column] of [[0, 0], [3, 7], [77, 1001], [ROWS - 1, OUTPUTS - 1]]) {
    let sum = 0;
    for (let input = 0; input < INPUTS; input += 1) {
      const activation = activations[(row >> 2) * 4 * INPUTS + (input >> 1) * 8 + (row & 3) * 2 + (input & 1)];
      const weight = weights[(column >> 3) * 8 * INPUTS + (input >> 1) * 16 + (column & 7) * 2 + (input & 1)];
      sum += activation * weight;
    }
    if (results[row * OUTPUTS + column] !== sum) throw new Error(`the reference kernel computes ${results[row * OUTPUTS + column]} instead of ${sum}`);
  }
  return run;
}
