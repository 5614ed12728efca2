// Compares the embedder modules with onnxruntime.
//
//   node fidelity.mjs --module-dir DIR --pack FILE --onnx FILE --vocabulary FILE [--sentences 200]
//
// DIR holds foremind_embed and foremind_onnx (.js, _bg.wasm). foremind_onnx runs the same 8-bit weights as onnxruntime
// and must give the same vectors. foremind_embed runs the shipped weights; both are roundings of one f32 model, which
// bounds how far they can be apart. The last line of standard output is one JSON object; the exit code is 1 when a
// sentence is below a mark, 2 when an argument or file is missing.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { sentences } from "./sentences.mjs";

/** Least cosine of two runtimes on equal weights. */
const SAME_WEIGHTS = 0.9999;
/** The 8-bit ONNX weights are up to 4.9 degrees (0.9964) off the f32 model, the shipped ones up to 3.6 (0.998). */
const SAME_MODEL = 0.989;
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
    vocabulary: { type: "string", default: process.env.FOREMIND_MODEL_VOCABULARY },
    sentences: { type: "string", default: "200" },
  },
});
for (const name of ["module-dir", "pack", "onnx", "vocabulary"]) {
  if (!values[name]) usage(`--${name} is missing`);
}
const count = Number(values.sentences);
if (!Number.isInteger(count) || count < 2) usage("--sentences is not an integer above 1");
const read = (path) => readFile(path).catch((error) => usage(error.message));

const moduleDir = resolve(values["module-dir"]);
const pack = await read(values.pack);
const onnx = await read(values.onnx);
const vocabulary = await read(values.vocabulary);

/** The exports of a module. */
async function load(name) {
  const bindings = await import(pathToFileURL(`${moduleDir}/${name}.js`).href);
  await bindings.default({ module_or_path: await read(`${moduleDir}/${name}_bg.wasm`) });
  return bindings;
}

const { PackLoader } = await load("foremind_embed");
const loader = new PackLoader(pack.length);
for (let at = 0; at < pack.length; at += 1 << 20) loader.push(pack.subarray(at, at + (1 << 20)));
const shipped = loader.finish();
const foremindOnnx = await load("foremind_onnx");
const brought = foremindOnnx.WebEmbedder.fromOnnx("minilm/oracle", vocabulary, onnx);

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

const sameWeights = [];
const sameModel = [];
const rounded = [];
for (const text of sentences(count)) {
  const tokens = shipped.tokens(text);
  if (String(brought.tokens(text)) !== String(tokens)) throw new Error("the modules disagree on tokens");
  const expected = await reference(tokens);
  sameWeights.push(cosine(brought.encodeF32(text), expected));
  const unit = shipped.encodeF32(text);
  sameModel.push(cosine(unit, expected));
  const [[embedding]] = shipped.encode([text], [HEAD]);
  if (embedding.vector.length !== DIMENSIONS) throw new Error("a vector of another length");
  rounded.push(cosine(embedding.vector, unit));
}

// What a user may bring by mistake is refused with what was expected and what was found.
for (const [file, part] of [[onnx.subarray(0, 1000), "ONNX"], [pack, "ONNX"]]) {
  let error;
  try {
    foremindOnnx.WebEmbedder.fromOnnx("minilm/oracle", vocabulary, file);
  } catch (thrown) {
    error = thrown;
  }
  if (error?.code !== "model-invalid" || !error.message.includes(part)) throw new Error(`no refusal: ${error}`);
}

const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const summary = (numbers) => ({ min: Math.min(...numbers), mean: mean(numbers) });
const [onEqualWeights, ofShipped, ofInt8] = [sameWeights, sameModel, rounded].map(summary);
console.log(JSON.stringify({ sentences: count, onEqualWeights, ofShipped, ofInt8, node: process.version }));
// NaN is below every mark, too.
const agree = onEqualWeights.min >= SAME_WEIGHTS && ofShipped.min >= SAME_MODEL && ofInt8.min >= SAME_WEIGHTS;
process.exit(agree ? 0 : 1);
