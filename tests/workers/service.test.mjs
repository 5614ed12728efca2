// The service inside of workerd: the Worker with its grants, one Durable Object for each memory.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { Miniflare } from 'miniflare';

import { Desk, KEY, NUTS, deployment, modules } from './deployment.mjs';

let host;
let model;
let assetReads = 0;

before(async () => {
  const folder = process.env.FOREMIND_MODEL_FOLDER;
  model = folder && (await readdir(folder)).includes('minilm-l6-v2.fmpack') ? await readFile(`${folder}/minilm-l6-v2.fmpack`) : undefined;
  host = new Miniflare({
    ...(await deployment()),
    serviceBindings: {
      ASSETS: async () => {
        assetReads += 1;
        const { Response } = await import('miniflare');
        return model ? new Response(model) : new Response(null, { status: 404 });
      },
    },
  });
});

after(() => host?.dispose());

const ask = (...parts) => new Desk(host).ask(...parts);
const grant = (body) => new Desk(host).grant(body);
const tell = (...parts) => new Desk(host).tell(...parts);

const ALL = ['recall', 'profile', 'read', 'remember', 'forget'];

describe('the service in workerd', () => {
  test('a turn is told once and recalled by its owner alone', async () => {
    const first = await tell('a', 'u', '1', NUTS);
    assert.equal(first.repeated, false);
    assert.equal((await tell('a', 'u', '1', NUTS)).repeated, true);
    const own = await ask('POST /v1/recall', await grant({ tenant: 'a', user: 'u' }), { query: 'any macaron recipes?' });
    assert.equal(own.status, 200);
    assert.match(own.answer.prompt, /tree nuts/);
    assert.equal(own.answer.reason, undefined);
    for (const [tenant, user] of [['a', 'uu'], ['a', 'u2'], ['ab', 'u'], ['A', 'u']]) {
      const { answer } = await ask('POST /v1/recall', await grant({ tenant, user }), { query: 'any macaron recipes?' });
      assert.equal(answer.prompt, '', `${tenant}/${user}`);
    }
  });

  test('records are listed, exported and erased, and a memory goes as a whole', async () => {
    await tell('b', 'u', '1', NUTS);
    const token = await grant({ tenant: 'b', user: 'u', verbs: ALL });
    const { answer: list } = await ask('GET /v1/records', token);
    assert.equal(list.records.length, 1);
    const exported = await ask('GET /v1/export?tenant=b&user=u', KEY);
    assert.equal(exported.status, 200);
    assert.match(exported.text, /tree nuts/);
    const { erased, receipt } = (await ask(`DELETE /v1/records/${list.records[0].id}`, token)).answer;
    assert.equal(erased, 1);
    assert.equal(receipt.counts.records, 1);
    assert.match(receipt.mac, /^[0-9a-f]{64}$/);
    assert.equal((await ask(`GET /v1/records/${list.records[0].id}`, token)).answer.code, 'unknown-id');
    const gone = await ask('DELETE /v1/memory?tenant=b&user=u', KEY);
    assert.equal(gone.status, 200);
    assert.match(gone.answer.receipt.mac, /^[0-9a-f]{64}$/);
    assert.equal((await ask('DELETE /v1/memory?tenant=b&user=u', KEY)).status, 204);
    assert.equal((await ask('GET /v1/export?tenant=b&user=u', KEY)).status, 404);
    assert.equal((await tell('b', 'u', '1', NUTS)).repeated, false);
  });

  test('MCP tools remember and recall', async () => {
    const token = await grant({ tenant: 'c', user: 'u', verbs: ALL });
    const call = (name, args) => ask('POST /mcp', token, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
    assert.equal((await call('remember', { text: NUTS })).answer.result.isError, false);
    assert.match((await call('profile', {})).answer.result.content[0].text, /tree nuts/);
    for (const method of ['GET', 'DELETE']) assert.equal((await ask(`${method} /mcp`, token)).status, 405);
  });

  test('memories without an owner are reported', async () => {
    await tell('d', 'u1', '1', NUTS);
    await grant({ tenant: 'd', user: 'u2', owner: 'team@example.com' });
    const users = { '': [], '&owner=none': [] };
    for (const filter of Object.keys(users)) {
      for (let after = 0; after !== undefined; ) {
        const { answer } = await ask(`GET /v1/memories?tenant=d&after=${after}${filter}`, KEY);
        users[filter].push(...answer.memories.map(({ user }) => user));
        after = answer.next;
      }
    }
    assert.deepEqual(users[''].sort(), ['u1', 'u2']);
    assert.deepEqual(users['&owner=none'], ['u1']);
  });

  test('who is not who he says gets the documented problem', async () => {
    await tell('e', 'u', '1', NUTS);
    const now = Math.floor(Date.now() / 1000);
    const claims = { jti: 'j', aud: 'foremind', iat: now, exp: now + 600, tenant: 'e', user: 'u', verbs: ALL };
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const sign = (header, body, byte = 21) => {
      const message = `${part(header)}.${part(body)}`;
      return `Bearer ${message}.${createHmac('sha256', Buffer.alloc(32, byte)).update(message).digest('base64url')}`;
    };
    const header = { alg: 'HS256', kid: 'h1' };
    assert.equal((await ask('GET /v1/records', sign(header, claims))).status, 200, 'node signs what the service takes');
    for (const [name, token, status, code] of [
      ['alg none', `Bearer ${part({ alg: 'none', kid: 'h1' })}.${part(claims)}.`, 401, 'grant-invalid'],
      ['forged', sign(header, claims, 22), 401, 'grant-invalid'],
      ['swapped kid', sign({ ...header, kid: 'e1' }, claims), 401, 'grant-invalid'],
      ['text as exp', sign(header, { ...claims, exp: `${now + 600}` }), 401, 'grant-invalid'],
      ['too long', sign(header, { ...claims, exp: now + 90_000 }), 401, 'grant-invalid'],
      ['expired', sign(header, { ...claims, iat: now - 700, exp: now - 100 }), 401, 'grant-expired'],
      ['none', undefined, 401, 'unauthenticated'],
    ]) {
      const { answer, headers } = await ask('GET /v1/records', token);
      assert.deepEqual([answer.status, answer.code], [status, code], name);
      assert.equal(headers.get('content-type'), 'application/problem+json');
    }
    for (const [line, body, status] of [
      ['GET /v1/records?user=u2', undefined, 403], ['GET /v1/records?user=u&user=u', undefined, 400], ['GET /v1/recall', undefined, 405],
      ['GET /v1/%72ecords', undefined, 404], ['POST /v1/recall', '{"query":"x","query":"y"}', 400], ['POST /v1/recall', '{', 400],
      ['POST /v1/turns', { tenant: 'e', user: 'u', thread: 't', turn: '2', text: NUTS }, 403],
    ]) {
      const { answer } = await ask(line, sign(header, claims), body);
      assert.equal(answer?.status, status, `${line}: ${JSON.stringify(answer)}`);
      assert.doesNotMatch(JSON.stringify(answer), /nuts/);
    }
  });

  test('a body is read no further than it may be long', async () => {
    const { status, answer } = await ask('POST /v1/turns', KEY, 'x'.repeat(20_000_000));
    assert.deepEqual([status, answer.code], [413, 'body-too-large']);
  });

  test('a body that does not come to its end is given up', async () => {
    const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{')) });
    const url = new URL('/v1/turns', await host.ready);
    const headers = { authorization: KEY, 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body, duplex: 'half' });
    assert.deepEqual([response.status, (await response.json()).code], [408, 'body-too-slow']);
  });

  test('the model is read once, and finds what words do not', async (context) => {
    if (!model) return context.skip('no model file: FOREMIND_MODEL_FOLDER');
    await tell('f', 'u', '1', 'My bicycle is a green Brompton.');
    const reads = assetReads;
    const { answer } = await ask('POST /v1/recall', await grant({ tenant: 'f', user: 'u' }), { query: 'how do I usually ride to the office?', deadlineMs: 5_000 });
    assert.equal(answer.lexicalOnly, false, JSON.stringify(answer));
    assert.equal(reads, 1);
    assert.equal(assetReads, 1);
  });

  test('metrics tell nothing of what was told', async () => {
    const { status, text } = await ask('GET /metrics', KEY);
    assert.equal(status, 200);
    assert.match(text, /foremind_requests_total\{route="turns",status="200"\} [1-9]/);
    assert.doesNotMatch(text, /nuts/);
  });

  test('all that is deployed stays below 3 MB compressed', async () => {
    let bytes = 0;
    for (const { contents } of await modules()) bytes += gzipSync(contents).length;
    assert.ok(bytes < 3_000_000, `${bytes}`);
  });
});
