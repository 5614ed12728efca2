// The client of the hosted service: whatever happens, a turn gets its answer.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { Client } from '../dist/client.js';

const url = 'https://memories.example.com';
const answering = (status, body) => async () => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });
const client = (fetch, timeoutMs = 60_000) => new Client({ url, grant: 'g', timeoutMs, fetch });

test('a prompt is asked for with the grant and handed on', async () => {
  const asked = [];
  const fetch = async (...request) => {
    asked.push(request);
    return new Response(JSON.stringify({ prompt: 'p', tokens: 1 }));
  };
  assert.deepEqual(await client(fetch).recall('q', { budgetTokens: 9 }), { prompt: 'p', tokens: 1 });
  assert.deepEqual(await client(fetch).profile({ budgetTokens: 9 }), { prompt: 'p', tokens: 1 });
  await client(fetch).profile();
  await client(fetch).profile({ maxAgeMs: 60_000, budgetTokens: 9 });
  const [[recall, init], [profile], [plain], [near]] = asked;
  assert.equal(String(recall), `${url}/v1/recall`);
  assert.equal(init.headers.authorization, 'Bearer g');
  assert.deepEqual(JSON.parse(init.body), { query: 'q', budgetTokens: 9 });
  assert.equal(String(profile), `${url}/v1/profile?budgetTokens=9`);
  assert.equal(String(plain), `${url}/v1/profile`);
  assert.equal(String(near), `${url}/v1/profile?maxAgeMs=60000&budgetTokens=9`);
});

test('what fails is an empty prompt with a reason', async () => {
  for (const [fetch, reason] of [
    [answering(401, { code: 'grant-expired' }), 'grant-expired'],
    [answering(502, {}), 'status 502'],
    [answering(200, 'no json'), 'unreachable'],
    [answering(200, { prompt: 1 }), 'unreachable'],
    [answering(200, 'null'), 'unreachable'],
    [async () => { throw new TypeError('fetch failed'); }, 'unreachable'],
    [() => { throw new TypeError('fetch failed'); }, 'unreachable'],
  ]) {
    assert.deepEqual(await client(fetch).recall('q'), { prompt: '', reason });
  }
});

test('what comes too late is given up, also half-way', async () => {
  let given;
  const never = (_, { signal }) => {
    given = signal;
    return new Promise(() => {});
  };
  assert.deepEqual(await client(never, 5).recall('q'), { prompt: '', reason: 'timeout' });
  assert.equal(given.aborted, true);
  const slowBody = async () => new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array([123])) }));
  assert.deepEqual(await client(slowBody, 5).profile(), { prompt: '', reason: 'timeout' });
});

test('800 milliseconds are waited for when nothing is said', async (context) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => mock.timers.reset());
  let end;
  new Client({ url, grant: 'g', fetch: () => new Promise(() => {}) }).recall('q').then((prompt) => (end = prompt));
  mock.timers.tick(799);
  await new Promise(setImmediate);
  assert.equal(end, undefined);
  mock.timers.tick(1);
  await new Promise(setImmediate);
  assert.deepEqual(end, { prompt: '', reason: 'timeout' });
});
