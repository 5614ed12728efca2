// The embedder's modules against native code: vectors and features must be equal in every bit.
//
//   node [--experimental-wasm-relaxed-simd] identity.mjs --module-dir DIR --pack FILE --native PROGRAM
//
// PROGRAM is the example `vectors` of foremind-embed. Texts have 2 to 256 tokens. An adapter with random numbers is
// made here, byte by byte after docs/EMBEDDER.md, so that the document is tried as well. Then 1,000 more texts are
// encoded, which must not grow the memory. Exits with 1 on a difference.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { blake3 } from "./blake3.mjs";
import { plain, sentences } from "./sentences.mjs";

const { values } = parseArgs({
  options: {
    "module-dir": { type: "string" },
    pack: { type: "string" },
    native: { type: "string" },
  },
});
const moduleDir = resolve(values["module-dir"]);
const MEMORY_BYTES_MAX = 48_000_000;

const texts = [];
for (let tokens = 3; tokens <= 256; tokens += tokens < 18 ? 1 : 31) texts.push(plain(tokens - 2));
texts.push(plain(253), plain(254), plain(400), "\u0001", ...sentences(20));
const lines = texts.map((text) => text.replaceAll(/[\r\n]/g, " "));

const pack = readFileSync(values.pack);
const modelId = pack.subarray(24, 24 + pack.readUInt16LE(12));
const adapter = adapterFile(modelId);
const folder = mkdtempSync(join(tmpdir(), "foremind-identity-"));
let native;
try {
  writeFileSync(join(folder, "adapter"), adapter);
  native = execFileSync(values.native, [values.pack, join(folder, "adapter")], {
    input: lines.join("\n"),
    maxBuffer: 1 << 28,
  });
} finally {
  rmSync(folder, { recursive: true });
}
if (native.length < lines.length * 384 * 4) throw new Error("the native program gave next to nothing");

let failures = 0;
for (const name of ["foremind_embed", "foremind_embed_relaxed"]) {
  const bytes = readFileSync(`${moduleDir}/${name}_bg.wasm`);
  if (!WebAssembly.validate(bytes)) throw new Error(`${name} needs an engine with relaxed-simd, or its flag`);
  // Glue of its own for each module: one is bound to the first that it is given.
  const bindings = await import(`${pathToFileURL(`${moduleDir}/foremind_embed.js`)}?${name}`);
  const { memory } = bindings.initSync({ module: bytes });
  const loader = new bindings.PackLoader(pack.length);
  for (let at = 0; at < pack.length; at += 1 << 20) loader.push(pack.subarray(at, at + (1 << 20)));
  const embedder = loader.finish();
  const loaded = memory.buffer.byteLength;
  embedder.loadAdapter(adapter);
  const heads = embedder.heads.slice(1);
  const parts = [];
  for (const line of lines) {
    parts.push(floats(embedder.encodeF32(line)));
    for (const { vector, scale, features } of embedder.encode([line], heads)[0]) {
      parts.push(Buffer.from(vector.buffer, vector.byteOffset, vector.length));
      parts.push(floats(Float32Array.of(scale)), floats(features));
    }
  }
  const found = Buffer.concat(parts);
  const equal = found.equals(native);
  const filled = memory.buffer.byteLength;
  for (let round = 0; round < 1000; round += 1) {
    embedder.encode([lines[round % lines.length].slice(0, 60)], ["embedding/1"]);
  }
  const grown = memory.buffer.byteLength - filled;
  const fits = filled <= MEMORY_BYTES_MAX && grown === 0;
  console.log(
    `${name}: ${equal ? `${found.length} bytes equal to native ones` : `differs from native at byte ${difference(found)}`}; ` +
      `memory ${loaded} bytes after loading, ${filled} after the longest texts, ${grown} more after 1,000 texts`,
  );
  if (!equal || !fits) failures += 1;
}
process.exitCode = failures ? 1 : 0;

function difference(found) {
  const at = found.findIndex((byte, index) => byte !== native[index]);
  return at < 0 ? Math.min(found.length, native.length) : at;
}

function floats(numbers) {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

/** A file with changes of two layers and three heads. */
function adapterFile(model) {
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
  const u8 = (...numbers) => Buffer.from(numbers);
  const u16 = (number) => u8(number & 255, number >> 8);
  const rows = (count, columns, step) => {
    const bytes = Buffer.alloc(count * (4 + 2 * columns));
    for (let row = 0, at = 0; row < count; row += 1) {
      at = bytes.writeFloatLE(step, at);
      for (let column = 0; column < columns; column += 1) at = bytes.writeInt16LE((random() >>> 16) - 32768, at);
    }
    return bytes;
  };
  const parts = [u16(1), u16(12), u16(3), u16(0)];
  for (const layer of [3, 5]) {
    for (let matrix = 0; matrix < 6; matrix += 1) {
      const rank = layer + 2 * matrix;
      const [outputs, inputs] = [matrix === 4 ? 1536 : 384, matrix === 5 ? 1536 : 384];
      parts.push(u8(layer, matrix, rank, 0), rows(rank, inputs, 2e-6), rows(outputs, rank, 2e-6));
    }
  }
  const linear = (activation, outputs, inputs) => [
    u8(activation, 0), u16(outputs), rows(outputs, inputs, 3e-6), rows(1, outputs, 1e-6),
  ];
  const id = (text) => [u8(text.length), Buffer.from(text)];
  parts.push(...id("one/1"), u8(1 | 2, 0, 0));
  parts.push(...id("two/1"), u8(1 | 4, 1, 2), rows(1, 384, 5e-6), ...linear(2, 40, 384), ...linear(0, 7, 40));
  parts.push(...id("three/1"), u8(0, 2, 1), ...linear(1, 64, 384));
  const section = Buffer.concat(parts);

  const head = Buffer.alloc(24);
  const end = 24 + model.length + 52 + 32;
  const start = Math.ceil(end / 64) * 64;
  head.write("fmadpt\r\n", "latin1");
  head.writeUInt16LE(1, 8);
  head.writeUInt16LE(1, 10);
  head.writeUInt16LE(model.length, 12);
  head.writeBigUInt64LE(BigInt(start + section.length), 16);
  const row = Buffer.alloc(20);
  row.writeUInt32LE(4, 0);
  row.writeBigUInt64LE(BigInt(start), 4);
  row.writeBigUInt64LE(BigInt(section.length), 12);
  const covered = Buffer.concat([head, model, row, blake3(section)]);
  return Buffer.concat([covered, blake3(covered), Buffer.alloc(start - end), section]);
}
