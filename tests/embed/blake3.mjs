// BLAKE3 as its paper describes it (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020, section 2), for files made by tests:
// a second implementation of the hash that the container uses.

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8];
const CHUNK = 1024;

const rotate = (x, by) => (x >>> by) | (x << (32 - by));

function compress(chaining, words, counter, length, flags) {
  const high = Math.floor(counter / 2 ** 32);
  const v = [...chaining, ...IV.slice(0, 4), counter | 0, high, length, flags];
  const mix = (a, b, c, d, x, y) => {
    v[a] = (v[a] + v[b] + x) | 0;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] = (v[c] + v[d]) | 0;
    v[b] = rotate(v[b] ^ v[c], 12);
    v[a] = (v[a] + v[b] + y) | 0;
    v[d] = rotate(v[d] ^ v[a], 8);
    v[c] = (v[c] + v[d]) | 0;
    v[b] = rotate(v[b] ^ v[c], 7);
  };
  let m = words;
  for (let round = 0; round < 7; round += 1) {
    for (let i = 0; i < 4; i += 1) mix(i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1]);
    for (let i = 0; i < 4; i += 1) {
      mix(i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4), m[8 + 2 * i], m[9 + 2 * i]);
    }
    m = ORDER.map((from) => m[from]);
  }
  return v.slice(0, 8).map((x, i) => x ^ v[8 + i]);
}

/** The last block of a chunk, still to be compressed: as a chunk's value, or as the root. */
function chunk(bytes, counter) {
  let chaining = IV;
  let start = CHUNK_START;
  for (let at = 0; ; at += 64) {
    const part = bytes.subarray(at, at + 64);
    const block = new Uint8Array(64);
    block.set(part);
    const view = new DataView(block.buffer);
    const words = Array.from({ length: 16 }, (_, i) => view.getInt32(4 * i, true));
    if (at + 64 >= bytes.length) return [chaining, words, counter, part.length, start | CHUNK_END];
    chaining = compress(chaining, words, counter, 64, start);
    start = 0;
  }
}

function tree(bytes, counter) {
  if (bytes.length <= CHUNK) return chunk(bytes, counter);
  // The left part is the largest power of two of chunks that leaves something for the right.
  let left = CHUNK;
  while (2 * left < bytes.length) left *= 2;
  const children = [tree(bytes.subarray(0, left), counter), tree(bytes.subarray(left), counter + left / CHUNK)];
  return [IV, children.flatMap((child) => compress(...child)), 0, 64, PARENT];
}

/** The 32-byte hash. */
export function blake3(bytes) {
  const [chaining, words, , length, flags] = tree(bytes, 0);
  // The root's counter is that of the output block.
  const out = Buffer.alloc(32);
  compress(chaining, words, 0, length, flags | ROOT).forEach((word, i) => out.writeInt32LE(word, 4 * i));
  return out;
}
