import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { Embedder, similarity } from '../dist/node.js';
import { Embedder as OnnxEmbedder } from '../dist/onnx-node.js';
import { hasRelaxedSimd } from '../dist/simd.js';
import { failsWith } from './support.mjs';

test('texts to vectors: near meanings are near, whatever the batch', async () => {
  const embedder = await Embedder.open();
  const texts = ['I am allergic to tree nuts', 'Nuts make me ill', 'The tram was late again'];
  const [nuts, ill, tram] = await embedder.encode(texts);
  assert.equal(nuts.modelId, embedder.modelId);
  assert.equal(nuts.vector.length, 384);
  assert.ok(similarity(nuts, ill) > 0.5 && similarity(nuts, tram) < 0.2, `${similarity(nuts, ill)} ${similarity(nuts, tram)}`);
  assert.equal(similarity(nuts, nuts), 1);
  assert.throws(() => similarity(nuts, { ...ill, modelId: 'another/1' }), failsWith('invalid-argument'));

  const progress = [];
  const many = await embedder.encode(Array.from({ length: 20 }, (_, at) => texts[at % 3]), { onProgress: (detail) => progress.push(detail) });
  many.forEach((vector, at) => assert.deepEqual(vector, [nuts, ill, tram][at % 3]));
  assert.deepEqual(progress.map(({ phase, loaded, total }) => [phase, loaded, total]), [['encode', 8, 20], ['encode', 16, 20], ['encode', 20, 20]]);
  embedder.close();
  await assert.rejects(embedder.encode(['x']), failsWith('closed'));
});

test('an abort between batches ends the call; the embedder goes on', async () => {
  const embedder = await Embedder.open();
  const stop = new AbortController();
  const done = [];
  const call = embedder.encode(Array(80).fill('a short text'), { signal: stop.signal, onProgress: ({ loaded }) => (done.push(loaded), loaded >= 16 && stop.abort()) });
  await assert.rejects(call, failsWith('aborted'));
  assert.deepEqual(done, [8, 16]);
  assert.equal((await embedder.encode(['a short text'])).length, 1);
  await assert.rejects(embedder.encode(['x', ' \n']), failsWith('text-empty'));
  await assert.rejects(embedder.encode('x'), failsWith('invalid-argument'));
  await assert.rejects(Embedder.open({ model: false }), failsWith('invalid-argument'));
  embedder.close();
});

test('10 MB of text in one call: cut by rule, in bounded memory', async () => {
  const embedder = await Embedder.open();
  const long = 'The harbour was quiet that morning. '.repeat(280_000);
  assert.ok(long.length > 10_000_000);
  const [short] = await embedder.encode([long.slice(0, 65_536)]);
  const before = process.memoryUsage().rss;
  const vectors = await embedder.encode([long, long, long]);
  for (const vector of vectors) assert.deepEqual(vector, short);
  // Three times ten megabytes as they stand would be more than this in UTF-8 alone.
  assert.ok(process.memoryUsage().rss - before < 30e6, `${process.memoryUsage().rss - before} bytes more`);
  embedder.close();
});

test('the relaxed binary is chosen where the engine validates it', async () => {
  const folder = new URL('../dist/', import.meta.url);
  const [plain, relaxed] = await Promise.all(['foremind_embed_bg.wasm', 'foremind_embed_relaxed_bg.wasm'].map((name) => readFile(new URL(name, folder))));
  assert.ok(WebAssembly.validate(plain));
  // The probe says of the binary what the engine says of it.
  assert.equal(hasRelaxedSimd(), WebAssembly.validate(relaxed));
});

test('an ONNX file of your own: what is wrong with it is said', async () => {
  const folder = process.env.FOREMIND_MODEL_FOLDER ?? new URL('../../target/model', import.meta.url).pathname;
  const [onnx, vocabulary] = await Promise.all(['model.onnx', 'vocab.txt'].map((name) => readFile(`${folder}/${name}`)));
  const embedder = await OnnxEmbedder.open({ model: { id: 'mine/1', onnx: `${folder}/model.onnx`, vocabulary } });
  assert.equal(embedder.modelId, 'mine/1');
  const [mine] = await embedder.encode(['I am allergic to tree nuts']);
  embedder.close();
  const shipped = await OnnxEmbedder.open();
  const [ours] = await shipped.encode(['I am allergic to tree nuts']);
  shipped.close();
  assert.throws(() => similarity(mine, ours), failsWith('invalid-argument'), 'vectors of two models never meet');
  assert.ok(similarity(mine, { ...ours, modelId: 'mine/1' }) > 0.99, 'and yet it is the same network');
  for (const model of [
    { id: 'mine/1', onnx: onnx.subarray(0, 1000), vocabulary },
    { id: 'mine/1', onnx, vocabulary: new TextEncoder().encode('[PAD]\n[UNK]\n[CLS]\n[SEP]\n') },
    { id: 'mine/1', onnx: new TextEncoder().encode('<!doctype html>'), vocabulary },
  ]) {
    await assert.rejects(OnnxEmbedder.open({ model }), failsWith('model-invalid'));
  }
  await assert.rejects(OnnxEmbedder.open({ model: { id: 'mine/1', onnx: '/no/such.onnx', vocabulary } }), failsWith('model-missing'));
  await assert.rejects(Embedder.open({ model: { id: 'mine/1', onnx, vocabulary } }), failsWith('invalid-argument'));
});
