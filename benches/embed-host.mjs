// One fresh process of `embed.mjs`: `node embed-host.mjs WHAT [CONTESTANT [COUNT]]` prints one JSON object. All files are in memory
// before a clock starts.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { MODELS, MODULES, cosine, foremind, onnxruntime, tract, wordIds } from './embed-contestants.mjs';
import { readyTimes, shareRounds, timeRounds } from './embed-rounds.mjs';
import { referenceKernel } from './reference-kernel.mjs';
import { hasRelaxedSimd } from '../pkg/dist/simd.js';
import { plain, sentences } from '../tests/embed/sentences.mjs';
import { FIRST_TOKENS, LENGTHS, LONG_TOKENS, ROUNDS } from './embed-plan.mjs';

const root = new URL('..', import.meta.url);
const file = async (path) => new Uint8Array(await readFile(new URL(path, root)));
const ortFolder = 'tests/node_modules/onnxruntime-web/dist/';
const memories = watchMemories();

const [what, ...rest] = process.argv.slice(2);
const works = { times, share, ready, memory, cosines };
console.log(JSON.stringify(await works[what](...rest)));
// onnxruntime keeps its process alive.
process.exit(0);

/** Reads all that a contestant needs; gives the way to make it. */
async function prepared(contestant, tokensOf) {
  const pack = await file('pkg-model/minilm-l6-v2.fmpack');
  if (contestant in MODULES) {
    const [script, module] = MODULES[contestant];
    const [bindings, wasm] = [await import(new URL(`pkg/dist/${script}`, root)), await file(`pkg/dist/${module}`)];
    if (contestant !== 'tract') return () => foremind(bindings, wasm, pack);
    const [vocabulary, onnx] = [await file('target/model/vocab.txt'), await file('target/model/model.onnx')];
    return () => tract(bindings, wasm, vocabulary, onnx);
  }
  const onnx = await file(`target/model/${MODELS[contestant]}`);
  const wasm = await file(`${ortFolder}ort-wasm-simd-threaded.wasm`);
  const ort = await import(fileURLToPath(new URL(`${ortFolder}ort.node.min.mjs`, root)));
  return () => onnxruntime(ort, wasm, onnx, tokensOf);
}

/** The tokeniser, from an embedder that is made for that alone. */
async function tokeniser() {
  const embedder = await (await prepared('simd'))();
  const kept = new Map();
  return {
    embedder,
    tokensOf(text) {
      if (!kept.has(text)) kept.set(text, embedder.tokens(text));
      return kept.get(text);
    },
  };
}

async function times() {
  const { embedder, tokensOf } = await tokeniser();
  const contestants = { simd: embedder };
  if (hasRelaxedSimd()) contestants.relaxed = await (await prepared('relaxed'))();
  for (const other of ['ort', 'ort_ours', 'tract']) contestants[other] = await (await prepared(other, tokensOf))();
  return timeRounds(contestants, LENGTHS.map((length) => plain(length - 2)), ROUNDS, (line) => console.error(`embed: node, ${line}`));
}

async function share() {
  const embedder = await (await prepared('simd'))();
  return shareRounds(embedder, plain(LONG_TOKENS - 2), await referenceKernel(), ROUNDS);
}

async function ready(contestant) {
  const texts = [plain(FIRST_TOKENS - 2), plain(LONG_TOKENS - 2)];
  const make = await prepared(contestant, wordIds(await readFile(new URL('target/model/vocab.txt', root), 'utf8'), texts));
  return readyTimes(make, ...texts);
}

/** Bytes after load and after `count` embeddings of all lengths: wasm memories, and what live ArrayBuffers grew by. */
async function memory(contestant, count) {
  const tokensOf = contestant === 'ort' ? (await tokeniser()).tokensOf : undefined;
  const texts = sentences(Number(count));
  if (tokensOf) [...texts, 'warm'].forEach(tokensOf);
  const own = memories.size;
  const buffers = async () => {
    // Twice, since what a finished promise held is free only after it.
    for (const _ of [1, 2]) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      globalThis.gc();
    }
    return process.memoryUsage().arrayBuffers;
  };
  const before = await buffers();
  let make = await prepared(contestant, tokensOf);
  const made = await make();
  make = undefined;
  await made.embed('warm');
  const bytes = () => [...memories].slice(own).reduce((sum, each) => sum + each.buffer.byteLength, 0);
  const loaded = bytes();
  for (const text of texts) await made.embed(text);
  return { loaded_bytes: loaded, after_bytes: bytes(), buffers_bytes: Math.max(0, (await buffers()) - before) };
}

/** Cosines of 500 sentences to onnxruntime on the f32 weights: of the unit vector, and of the int8 form that is stored. */
async function cosines() {
  const { embedder, tokensOf } = await tokeniser();
  const f32 = await (await prepared('f32', tokensOf))();
  const rows = [];
  for (const text of sentences(500)) {
    const expected = await f32.embed(text);
    rows.push([cosine(await embedder.embed(text), expected), cosine(embedder.stored(text), expected)]);
    if (rows.length % 100 === 0) console.error(`embed: cosine of ${rows.length} sentences`);
  }
  return rows;
}

/** Every wasm memory that is made from here on: imported ones at their constructor, exported ones at instantiation. */
function watchMemories() {
  const seen = new Set();
  const { Memory, instantiate, Instance } = WebAssembly;
  WebAssembly.Memory = class extends Memory {
    constructor(...parts) {
      super(...parts);
      seen.add(this);
    }
  };
  const look = (instance) => {
    for (const value of Object.values(instance.exports)) if (value instanceof Memory) seen.add(value);
    return instance;
  };
  WebAssembly.instantiate = async (...parts) => {
    const result = await instantiate.apply(WebAssembly, parts);
    look(result.instance ?? result);
    return result;
  };
  WebAssembly.Instance = new Proxy(Instance, { construct: (target, parts) => look(new target(...parts)) });
  return seen;
}
