// Compares the embedder module with onnxruntime on the same weights and tokens.
//
//   node fidelity.mjs --module-dir DIR --pack FILE --onnx FILE [--sentences 200]
//
// DIR holds foremind_embed.js and foremind_embed_bg.wasm. The last line of standard output is one JSON
// object; the exit code is 1 when a sentence is below the mark, 2 when an argument or file is missing.
// Times are of this process on one thread, medians of 9 after one call for warming up.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync } from "node:zlib";

import { plain, sentences } from "./sentences.mjs";

const MARK = 0.9999;
const DIMENSIONS = 384;
const HEAD = "embedding/1";

function usage(message) {
  console.error(`fidelity: ${message}`);
  process.exit(2);
}

const { values } = parseArgs({
  options: {
    "module-dir": { type: "string", default: process.env.FOREMIND_EMBED_MODULE_DIR },
    pack: { type: "string", default: process.env.FOREMIND_MODEL_PACK },
    onnx: { type: "string", default: process.env.FOREMIND_MODEL_ONNX },
    sentences: { type: "string", default: "200" },
  },
});
for (const name of ["module-dir", "pack", "onnx"]) {
  if (!values[name]) usage(`--${name} is missing`);
}
const count = Number(values.sentences);
if (!Number.isInteger(count) || count < 2) usage("--sentences is not an integer above 1");
const read = (path) => readFile(path).catch((error) => usage(error.message));

const moduleDir = resolve(values["module-dir"]);
const wasm = await read(`${moduleDir}/foremind_embed_bg.wasm`);
const pack = await read(values.pack);
const onnx = await read(values.onnx);

const readyStart = performance.now();
const embed = await import(pathToFileURL(`${moduleDir}/foremind_embed.js`).href);
const { memory } = await embed.default({ module_or_path: wasm });
const embedder = new embed.WebEmbedder(pack);
embedder.encodeF32("ready");
const readyMs = performance.now() - readyStart;

const ort = await import("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const session = await ort.InferenceSession.create(onnx, { executionProviders: ["wasm"] });

/** Mean over the tokens and L2 norm in f64, from onnxruntime's hidden states. */
async function reference(tokens) {
  const shape = [1, tokens.length];
  const tensor = (fill) => new ort.Tensor("int64", BigInt64Array.from(tokens, fill), shape);
  const feeds = {
    input_ids: tensor((id) => BigInt(id)),
    attention_mask: tensor(() => 1n),
    token_type_ids: tensor(() => 0n),
  };
  const { last_hidden_state: states } = await session.run(feeds);
  const sum = new Float64Array(DIMENSIONS);
  states.data.forEach((x, at) => {
    sum[at % DIMENSIONS] += x;
  });
  const length = Math.hypot(...sum);
  return sum.map((x) => x / length);
}

function cosine(a, b) {
  let [dot, aa, bb] = [0, 0, 0];
  for (let at = 0; at < a.length; at += 1) {
    dot += a[at] * b[at];
    aa += a[at] * a[at];
    bb += b[at] * b[at];
  }
  return dot / Math.sqrt(aa * bb);
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

async function medianMs(run) {
  await run();
  const times = [];
  for (let round = 0; round < 9; round += 1) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return Number(median(times).toFixed(2));
}

const exact = [];
const rounded = [];
let tokensTotal = 0;
for (const text of sentences(count)) {
  const tokens = embedder.tokens(text);
  const expected = await reference(tokens);
  tokensTotal += tokens.length;
  exact.push(cosine(embedder.encodeF32(text), expected));
  const [[embedding]] = embedder.encode([text], [HEAD]);
  if (embedding.vector.length !== DIMENSIONS) throw new Error("a vector of another length");
  rounded.push(cosine(embedding.vector, expected));
}

const lengths = [16, 64, 256];
const wasmMs = [];
const ortMs = [];
for (const length of lengths) {
  const text = plain(length - 2);
  const tokens = embedder.tokens(text);
  if (tokens.length !== length) throw new Error(`expected ${length} tokens, found ${tokens.length}`);
  wasmMs.push(await medianMs(() => embedder.encodeF32(text)));
  ortMs.push(await medianMs(() => reference(tokens)));
}

const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const cosineMin = Math.min(...exact);
console.log(
  JSON.stringify({
    sentences: count,
    tokensMean: tokensTotal / count,
    cosineMin,
    cosineMean: mean(exact),
    int8CosineMin: Math.min(...rounded),
    int8CosineMean: mean(rounded),
    lengths,
    wasmMs,
    ortMs,
    readyMs: Math.round(readyMs),
    memoryBytes: memory.buffer.byteLength,
    wasmBytes: wasm.length,
    wasmBrotliBytes: brotliCompressSync(wasm).length,
    node: process.version,
  }),
);
// NaN is below every mark, too.
process.exit(cosineMin >= MARK ? 0 : 1);
