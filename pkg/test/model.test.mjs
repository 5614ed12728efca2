import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, test } from 'node:test';

import { PackIntake } from '../dist/intake.js';
import { fetchModel } from '../dist/model-fetch.js';
import { failsWith } from './support.mjs';

const pack = new Uint8Array(100_000).map((_, at) => at % 251);
const sha256 = createHash('sha256').update(pack).digest('hex');
const url = new URL('https://app.test/assets/model.fmpack');
const location = { url, hash: 'a'.repeat(64), bytes: pack.length };
const never = new AbortController().signal;

let fetched;
let cache;
let answer;
let largest;
let dropped;

/** The module's side: keeps what it is given, and refuses what is not `wanted`, as the module does by its hashes. */
function intakes(wanted = pack) {
  return {
    glue: Promise.resolve({}),
    async open() {
      const parts = [];
      return {
        push(chunk) {
          largest = Math.max(largest, chunk.length);
          parts.push(Buffer.from(chunk));
        },
        finish() {
          const whole = Buffer.concat(parts);
          if (!whole.equals(Buffer.from(wanted))) throw { code: 'model-invalid', message: 'the weights of the model file are altered' };
          return { modelId: 'fake', encode: () => [], free() {} };
        },
        drop: () => void (dropped += 1),
      };
    },
  };
}

/** Keys of the cached models; the marks that they are whole are not counted. */
const models = () => [...cache.keys()].filter((key) => !key.endsWith('foremind-whole='));

/** A body that comes in pieces, as from a network. */
const inPieces = (bytes) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 10_000) controller.enqueue(bytes.slice(at, at + 10_000));
        controller.close();
      },
    }),
  );

/** A cache, a lock and a network that count. */
beforeEach(() => {
  fetched = 0;
  largest = 0;
  dropped = 0;
  cache = new Map();
  answer = () => inPieces(pack);
  globalThis.fetch = async (_url, { signal }) => {
    fetched += 1;
    signal.throwIfAborted();
    return answer();
  };
  const opened = {
    match: async (key) => cache.has(key) && inPieces(cache.get(key)),
    put: async (key, response) => void cache.set(key, new Uint8Array(await response.arrayBuffer())),
    delete: async (request) => cache.delete(request.url ?? request),
    keys: async () => [...cache.keys()].map((key) => ({ url: key })),
  };
  globalThis.caches = { open: async () => opened };
  let last = Promise.resolve();
  const locks = {
    request(_name, _options, body) {
      const turn = last.then(body);
      last = turn.catch(() => {});
      return turn;
    },
  };
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { locks } });
});

test('fetched once, piece by piece, with progress in bytes; from then on it comes from the cache', async () => {
  const progress = [];
  assert.equal((await fetchModel(location, intakes(), (detail) => progress.push(detail), never)).modelId, 'fake');
  assert.deepEqual(progress[0], { phase: 'model', loaded: 0, total: pack.length });
  assert.deepEqual(progress.at(-1), { phase: 'model', loaded: pack.length, total: pack.length });
  await fetchModel(location, intakes(), () => assert.fail('no progress without a download'), never);
  assert.equal(fetched, 1);
  assert.equal(largest, 10_000, 'never more than one piece at once');
});

test('instances that start together download once', async () => {
  await Promise.all([1, 2, 3].map(() => fetchModel(location, intakes(), () => {}, never)));
  assert.equal(fetched, 1);
});

test('an altered cached copy is thrown away and fetched again', async () => {
  await fetchModel(location, intakes(), () => {}, never);
  const [key] = models();
  cache.set(key, pack.slice(1));
  await fetchModel(location, intakes(), () => {}, never);
  assert.equal(fetched, 2);
  assert.deepEqual(cache.get(key), pack);
  assert.equal(dropped, 1, 'what had been read of it is given back');
});

test('a copy whose writer died has no mark, and does not count', async () => {
  await fetchModel(location, intakes(), () => {}, never);
  const mark = [...cache.keys()].find((key) => !models().includes(key));
  cache.delete(mark);
  cache.set(models()[0], pack.slice(0, 500));
  await fetchModel(location, intakes(), () => {}, never);
  assert.equal(fetched, 2);
  assert.deepEqual(cache.get(models()[0]), pack);
});

test('a new version takes the place of the old one', async () => {
  await fetchModel(location, intakes(), () => {}, never);
  const next = new Uint8Array([1, 2, 3]);
  answer = () => inPieces(next);
  await fetchModel({ url, hash: 'b'.repeat(64) }, intakes(next), () => {}, never);
  assert.equal(models().length, 1);
  assert.ok(models()[0].endsWith('b'.repeat(64)));
  assert.equal(cache.size, 2, 'the model and its mark');
});

test('what is not the model is refused, and never cached', async () => {
  const pinned = { url, sha256 };
  for (const [what, response, code] of [
    ['cut', () => inPieces(pack.slice(0, 50_000)), 'model-invalid'],
    ['one bit', () => inPieces(pack.map((byte, at) => (at === 9 ? byte ^ 1 : byte))), 'model-invalid'],
    ['absent', () => new Response('', { status: 404 }), 'model-missing'],
    ['a start page', () => new Response('<html>', { headers: { 'content-type': 'text/html; charset=utf-8' } }), 'model-missing'],
    ['no network', () => Promise.reject(new TypeError('Failed to fetch')), 'model-missing'],
  ]) {
    answer = response;
    for (const place of [location, pinned]) {
      const refused = (error) => error.code === code;
      await assert.rejects(fetchModel(place, intakes(), () => {}, never), refused, what);
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(models().length, 0, what);
    }
  }
});

test('one that is pinned to its SHA-256 is accepted when it has it', async () => {
  assert.equal((await fetchModel({ url, sha256 }, intakes(), () => {}, never)).modelId, 'fake');
  assert.equal(models().length, 1);
});

test('abort before and during the download; trying again downloads it', async () => {
  await assert.rejects(fetchModel(location, intakes(), () => {}, AbortSignal.abort()), failsWith('aborted'));
  const stop = new AbortController();
  const half = (detail) => detail.loaded >= 50_000 && stop.abort();
  await assert.rejects(fetchModel(location, intakes(), half, stop.signal), failsWith('aborted'));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(models().length, 0, 'half a model is not kept');
  assert.equal((await fetchModel(location, intakes(), () => {}, never)).modelId, 'fake');
  assert.equal(models().length, 1);
});

test('without a cache or locks, or without room, it is fetched each time', async () => {
  const full = await caches.open();
  globalThis.caches = { open: async () => ({ ...full, put: async () => Promise.reject(new DOMException('full', 'QuotaExceededError')) }) };
  for (const _ of [1, 2]) await fetchModel(location, intakes(), () => {}, never);
  delete globalThis.caches;
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: {} });
  for (const _ of [1, 2]) await fetchModel(location, intakes(), () => {}, never);
  assert.equal(fetched, 4);
});

/** A model file's header as docs in `pack` describe it: one section, a model id of 4 bytes, and its hash. */
function header(bytes) {
  const start = new Uint8Array(24 + 4 + 52 + 32);
  start.set(Buffer.from('fmpack\r\n'));
  const view = new DataView(start.buffer);
  view.setUint16(8, 1, true);
  view.setUint16(10, 1, true);
  view.setUint16(12, 4, true);
  view.setBigUint64(16, BigInt(bytes), true);
  start.fill(0xab, start.length - 32);
  return start;
}

test('the header is checked against the pin before anything is made of it', () => {
  const made = [];
  const glue = {
    loader(bytes) {
      const loader = { bytes, received: 0, push: (chunk) => void (loader.received += chunk.length), finish: () => 'embedder', free: () => {} };
      made.push(loader);
      return loader;
    },
  };
  const file = new Uint8Array(1000);
  file.set(header(1000));
  const hash = 'ab'.repeat(32);
  for (const size of [1, 7, 112, 1000]) {
    const intake = new PackIntake(glue, { bytes: 1000, hash });
    for (let at = 0; at < file.length; at += size) intake.push(file.subarray(at, at + size));
    assert.equal(intake.finish(), 'embedder');
    assert.deepEqual([made.at(-1).bytes, made.at(-1).received], [1000, 1000]);
  }
  const count = made.length;
  assert.throws(() => new PackIntake(glue, { bytes: 999, hash }).push(file), failsWith('model-invalid'));
  assert.throws(() => new PackIntake(glue, { bytes: 1000, hash: 'cd'.repeat(32) }).push(file), failsWith('model-invalid'));
  assert.throws(() => new PackIntake(glue, {}).push(header(2 ** 40)), failsWith('model-invalid'));
  assert.equal(made.length, count, 'no memory was taken for them');
  // What is no model file goes to the module, whose refusal says what was found.
  const foreign = new PackIntake(glue, {});
  foreign.push(new TextEncoder().encode('<!doctype html>'));
  assert.equal(made.at(-1).bytes, 15);
});
