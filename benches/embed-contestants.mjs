// The embedders that `bench embed` compares, in node and in a page alike: each is made from bytes that are in memory
// already, and encodes one text on one thread to the mean of its hidden states at length 1.

export const DIMENSIONS = 384;

/** What each contestant is. */
export const NAMES = {
  simd: 'foremind, simd128',
  relaxed: 'foremind, relaxed-simd',
  ort: 'onnxruntime-web, dynamic int8',
  ort_ours: 'onnxruntime-web, our 8-bit ONNX file',
  tract: 'tract-onnx in wasm, our 8-bit ONNX file',
};

/** Script and module of ours. A script has one instance; the query gives the second binary one of its own. */
export const MODULES = {
  simd: ['foremind_embed.js', 'foremind_embed_bg.wasm'],
  relaxed: ['foremind_embed.js?relaxed', 'foremind_embed_relaxed_bg.wasm'],
  tract: ['foremind_onnx.js', 'foremind_onnx_bg.wasm'],
};
/** Model files of onnxruntime's. */
export const MODELS = { ort: 'minilm-dynamic-int8.onnx', ort_ours: 'model.onnx', f32: 'minilm-f32.onnx' };

const CHUNK_BYTES = 1 << 20;

/** One binary of the embed module with the shipped model; `glue` is its bindings. */
export async function foremind(glue, wasm, pack) {
  const { memory } = await glue.default({ module_or_path: wasm });
  const loader = new glue.PackLoader(pack.length);
  for (let at = 0; at < pack.length; at += CHUNK_BYTES) loader.push(pack.subarray(at, at + CHUNK_BYTES));
  return own(loader.finish(), memory);
}

/** The build that runs ONNX files, with tract. */
export async function tract(glue, wasm, vocabulary, onnx) {
  const { memory } = await glue.default({ module_or_path: wasm });
  return own(glue.WebEmbedder.fromOnnx('bench', vocabulary, onnx), memory);
}

function own(embedder, memory) {
  return {
    embed: async (text) => embedder.encodeF32(text),
    stored: (text) => embedder.encode([text], ['embedding/1'])[0][0].vector,
    tokens: (text) => embedder.tokens(text),
    loadAdapter: (file) => embedder.loadAdapter(file),
    heads: (text, heads) => embedder.encode([text], heads),
    wasmBytes: () => memory.buffer.byteLength,
  };
}

/** onnxruntime-web; texts come as token ids from `tokensOf`, so its tokeniser costs it nothing. */
export async function onnxruntime(ort, wasm, onnx, tokensOf) {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = wasm;
  ort.env.logLevel = 'error';
  const session = await ort.InferenceSession.create(onnx, { executionProviders: ['wasm'] });
  return {
    async embed(text) {
      const tokens = tokensOf(text);
      const shape = [1, tokens.length];
      const tensor = (fill) => new ort.Tensor('int64', BigInt64Array.from(tokens, fill), shape);
      const feeds = { input_ids: tensor((id) => BigInt(id)), attention_mask: tensor(() => 1n), token_type_ids: tensor(() => 0n) };
      return meanUnit((await session.run(feeds)).last_hidden_state.data);
    },
  };
}

function meanUnit(states) {
  const sum = new Float64Array(DIMENSIONS);
  for (let at = 0; at < states.length; at += DIMENSIONS) {
    for (let dimension = 0; dimension < DIMENSIONS; dimension += 1) sum[dimension] += states[at + dimension];
  }
  const length = Math.hypot(...sum);
  return sum.map((x) => x / length);
}

/** Token ids of texts of common words, known beforehand to whoever has no tokeniser. */
export function wordIds(vocabulary, texts) {
  const words = vocabulary.split('\n');
  const ids = new Map(texts.map((text) => [text, ['[CLS]', ...text.split(' '), '[SEP]'].map((word) => words.indexOf(word))]));
  return (text) => ids.get(text);
}

export function cosine(a, b) {
  let [dot, aa, bb] = [0, 0, 0];
  for (let at = 0; at < a.length; at += 1) {
    dot += a[at] * b[at];
    aa += a[at] * a[at];
    bb += b[at] * b[at];
  }
  return dot / Math.sqrt(aa * bb);
}
