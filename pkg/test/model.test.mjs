import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, test } from 'node:test';

import { fetchModel } from '../dist/model-fetch.js';
import { failsWith } from './support.mjs';

const pack = new Uint8Array(100_000).map((_, at) => at % 251);
const sha256 = createHash('sha256').update(pack).digest('hex');
const url = new URL('https://app.test/assets/model.fmpack');
const location = { url, sha256, bytes: pack.length };
const never = new AbortController().signal;

let fetched;
let cache;
let answer;

/** A cache, a lock and a network that count. */
beforeEach(() => {
  fetched = 0;
  cache = new Map();
  answer = () => new Response(pack);
  globalThis.fetch = async (_url, { signal }) => {
    fetched += 1;
    signal.throwIfAborted();
    return answer();
  };
  const opened = {
    match: async (key) => cache.get(key)?.clone(),
    put: async (key, response) => void cache.set(key, response),
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

test('fetched once, with progress in bytes; from then on it comes from the cache', async () => {
  const progress = [];
  assert.deepEqual(await fetchModel(location, (detail) => progress.push(detail), never), pack);
  assert.deepEqual(progress[0], { phase: 'model', loaded: 0, total: pack.length });
  assert.deepEqual(progress.at(-1), { phase: 'model', loaded: pack.length, total: pack.length });
  assert.deepEqual(await fetchModel(location, () => assert.fail('no progress without a download'), never), pack);
  assert.equal(fetched, 1);
});

test('instances that start together download once', async () => {
  const all = await Promise.all([1, 2, 3].map(() => fetchModel(location, () => {}, never)));
  for (const one of all) assert.deepEqual(one, pack);
  assert.equal(fetched, 1);
});

test('an altered cached copy is thrown away and fetched again', async () => {
  await fetchModel(location, () => {}, never);
  const [key] = cache.keys();
  cache.set(key, new Response(pack.slice(1)));
  assert.deepEqual(await fetchModel(location, () => {}, never), pack);
  assert.equal(fetched, 2);
});

test('a new version takes the place of the old one', async () => {
  await fetchModel(location, () => {}, never);
  const next = new Uint8Array([1, 2, 3]);
  answer = () => new Response(next);
  const nextHash = createHash('sha256').update(next).digest('hex');
  assert.deepEqual(await fetchModel({ url, sha256: nextHash }, () => {}, never), next);
  assert.equal(cache.size, 1);
  assert.ok([...cache.keys()][0].endsWith(nextHash));
});

test('what is not the model is refused, and never cached', async () => {
  for (const [what, response, code] of [
    ['cut', () => new Response(pack.slice(0, 50_000)), 'model-invalid'],
    ['one bit', () => new Response(pack.map((byte, at) => (at === 9 ? byte ^ 1 : byte))), 'model-invalid'],
    ['absent', () => new Response('', { status: 404 }), 'model-missing'],
    ['a start page', () => new Response('<html>', { headers: { 'content-type': 'text/html; charset=utf-8' } }), 'model-missing'],
    ['no network', () => Promise.reject(new TypeError('Failed to fetch')), 'model-missing'],
  ]) {
    answer = response;
    await assert.rejects(fetchModel(location, () => {}, never), failsWith(code), what);
    assert.equal(cache.size, 0, what);
  }
});

test('abort, before and during the download', async () => {
  await assert.rejects(fetchModel(location, () => {}, AbortSignal.abort()), failsWith('aborted'));
  const stop = new AbortController();
  answer = () => new Response(new ReadableStream({ start: (body) => void stop.signal.addEventListener('abort', () => body.error(stop.signal.reason)) }));
  const download = fetchModel(location, () => stop.abort(), stop.signal);
  await assert.rejects(download, failsWith('aborted'));
  assert.equal(cache.size, 0);
});

test('without a cache or locks it is fetched each time', async () => {
  delete globalThis.caches;
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: {} });
  for (const _ of [1, 2]) assert.deepEqual(await fetchModel(location, () => {}, never), pack);
  assert.equal(fetched, 2);
});
