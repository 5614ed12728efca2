// The replica of profiles in Workers KV, inside of workerd: what it answers, how old that is, and what stands in for what.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Miniflare } from 'miniflare';

import { Desk, KEY, NUTS, deployment } from './deployment.mjs';

/** The template's Worker, but that its objects fail or hang while the namespace says so. */
const INDEX = `
import { DirectoryObject, MemoryObject as Real, worker } from 'foremind/workers';
export { DirectoryObject, worker as default };
export class MemoryObject extends Real {
  async run(...work) {
    const mode = await this.env.REPLICA.get('mode');
    if (mode === 'fail') throw new Error('the object is gone');
    if (mode === 'hang') await new Promise((resolve) => setTimeout(resolve, 3_000));
    return super.run(...work);
  }
}
`;
const DAY_MS = 86_400_000;
const AT_MS_AT = 8;

let host;
let desk;
let kv;

before(async () => {
  host = new Miniflare({ ...(await deployment(INDEX)), kvNamespaces: { REPLICA: 'replica' } });
  desk = new Desk(host);
  kv = await host.getKVNamespace('REPLICA');
});

after(() => host?.dispose());

const names = async () => (await kv.list()).keys.map(({ name }) => name).filter((name) => name !== 'mode');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for what comes within some seconds. */
async function until(what, check) {
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(50)) {
    const found = await check();
    if (found) return found;
  }
  assert.fail(`never came: ${what}`);
}

/** The replica's answer, once there is one of that generation at least. */
const replicated = (token, generation = 0) =>
  until(`generation ${generation}`, async () => {
    const { answer } = await desk.ask(`GET /v1/profile?maxAgeMs=${DAY_MS}`, token);
    return answer.generation > generation && answer;
  });

describe('the replica in Workers KV', () => {
  test('an answer has generation and age, and shows what the memory shows', async () => {
    await desk.tell('a', 'u', '1', NUTS);
    const token = await desk.grant({ tenant: 'a', user: 'u' });
    const near = await replicated(token);
    assert.ok(near.ageMs >= 0 && near.ageMs < DAY_MS, `${near.ageMs}`);
    assert.equal(near.reason, undefined);
    const { answer: fresh } = await desk.ask('GET /v1/profile', token);
    assert.equal(fresh.generation, undefined);
    assert.match(fresh.prompt, /tree nuts/);
    assert.equal(near.prompt, fresh.prompt);
    assert.deepEqual(near.profile, fresh.profile);
    // Sealed, as everything stored.
    const [name] = await names();
    assert.match(name, /^[0-9a-f]{32}$/);
    assert.doesNotMatch(Buffer.from(await kv.get(name, 'arrayBuffer')).toString('latin1'), /nuts/);
    // A later state is a later generation.
    await desk.tell('a', 'u', '2', 'I am on warfarin.');
    const later = await replicated(token, near.generation);
    assert.match(later.prompt, /warfarin/);
  });

  test('an answer that is too old comes from the memory, and the replica is made fresh', async () => {
    await desk.tell('b', 'u', '1', NUTS);
    const token = await desk.grant({ tenant: 'b', user: 'u' });
    const first = await replicated(token);
    await until('an age', async () => (await desk.ask(`GET /v1/profile?maxAgeMs=${DAY_MS}`, token)).answer.ageMs > 200);
    const { answer } = await desk.ask('GET /v1/profile?maxAgeMs=100', token);
    assert.equal(answer.generation, undefined);
    assert.match(answer.prompt, /tree nuts/);
    const again = await until('a younger answer', async () => {
      const { answer: young } = await desk.ask('GET /v1/profile?maxAgeMs=2000', token);
      return young.generation !== undefined && young;
    });
    assert.equal(again.generation, first.generation);
    assert.equal((await desk.ask('GET /v1/profile?maxAgeMs=-1', token)).status, 400);
  });

  test('writes are published at most once a second', async () => {
    const token = await desk.grant({ tenant: 'c', user: 'u' });
    const known = new Set(await names());
    const published = new Set();
    for (let turn = 0; turn < 12; turn += 1) {
      await desk.tell('c', 'u', `${turn}`, `I am allergic to food number ${turn}.`);
      const name = (await names()).find((one) => !known.has(one));
      const value = name && (await kv.get(name, 'arrayBuffer'));
      if (value) published.add(Number(new DataView(value).getBigInt64(AT_MS_AT, true)));
      await sleep(150);
    }
    await until('the last one', async () => (await replicated(token)).prompt.includes('number 11'));
    const times = [...published].sort((one, other) => one - other);
    assert.ok(times.length > 1, `${times}`);
    times.slice(1).forEach((time, at) => assert.ok(time - times[at] >= 1_000, `${times}`));
  });

  test('it stands in for a memory that cannot be reached, and says why', async () => {
    await desk.tell('e', 'u', '1', NUTS);
    const token = await desk.grant({ tenant: 'e', user: 'u' });
    await replicated(token);
    const nobody = await desk.grant({ tenant: 'e', user: 'nobody' });
    try {
      await kv.put('mode', 'fail');
      const { status, answer } = await desk.ask('POST /v1/recall', token, { query: 'any macaron recipes?' });
      assert.deepEqual([status, answer.reason], [200, 'storage-failed']);
      assert.match(answer.prompt, /tree nuts/);
      assert.ok(answer.generation > 0 && answer.ageMs >= 0);
      const { status: emptyStatus, answer: empty } = await desk.ask('POST /v1/recall', nobody, { query: 'any macaron recipes?' });
      assert.deepEqual([emptyStatus, empty.prompt, empty.reason], [200, '', 'storage-failed']);
      await kv.put('mode', 'hang');
      const { answer: late } = await desk.ask('POST /v1/recall', token, { query: 'any macaron recipes?', deadlineMs: 50 });
      assert.equal(late.reason, 'deadline');
      assert.match(late.prompt, /tree nuts/);
      assert.ok(late.generation > 0);
    } finally {
      await kv.delete('mode');
    }
  });

  test('a memory that is removed leaves no replica', async () => {
    const before = await names();
    await desk.tell('f', 'u', '1', NUTS);
    await replicated(await desk.grant({ tenant: 'f', user: 'u' }));
    assert.equal((await names()).length, before.length + 1);
    assert.equal((await desk.ask('DELETE /v1/memory?tenant=f&user=u', KEY)).status, 200);
    assert.deepEqual((await names()).sort(), before.sort());
  });
});
