// The replica of a profile: what is packed, what is taken for it, and how often it is published.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { mock, test } from 'node:test';

import { Core } from '../dist/core.js';
import { coreGlue } from '../dist/glue.js';
import { HostKey } from '../dist/keys.js';
import { PUBLISH_EVERY_MS, Publisher, pack, unpack } from '../dist/replica.js';
import { Session } from '../dist/session.js';
import { MemoryStore } from '../dist/stores/memory.js';
import { me } from './support.mjs';

const bindings = await import('../dist/foremind_core.js');
bindings.initSync({ module: await readFile(new URL('../dist/foremind_core_bg.wasm', import.meta.url)) });
const core = new Core(coreGlue(bindings, await readFile(new URL('../dist/foremind_data.txt', import.meta.url), 'utf8')));
const asked = { scope: me, budgetTokens: 512, audience: 'device' };
const key = () => new Uint8Array(32).fill(7);

/** A memory that was told something, on a store of its own. */
async function told(text, own = key()) {
  const store = new MemoryStore();
  const session = await Session.open({ core, store, keys: new HostKey(own) });
  await session.call({ verb: 'remember', scope: me, text });
  return { store, session };
}

test('what is packed is the profile, its generation and its age', async () => {
  const { store, session } = await told('I am allergic to tree nuts.');
  const packed = await pack(core, store, key(), 1_000);
  assert.doesNotMatch(Buffer.from(packed).toString('latin1'), /nuts/);
  const found = await unpack(core, packed, key(), asked, 1_750);
  assert.equal(found.ageMs, 750);
  assert.match(found.response.prompt, /tree nuts/);
  const { profile } = await session.call({ verb: 'profile', ...asked });
  assert.deepEqual(found.response.profile, profile);
  await session.call({ verb: 'remember', scope: me, text: 'I am on warfarin.' });
  const later = await unpack(core, await pack(core, store, key(), 2_000), key(), asked, 1_900);
  assert.ok(later.generation > found.generation);
  assert.equal(later.ageMs, 0, 'a clock that is behind makes nothing younger than now');
  // Another scope of the same memory sees its own.
  const other = await unpack(core, packed, key(), { ...asked, scope: { user: 'bob' } }, 2_000);
  assert.equal(other.response.prompt, '');
});

test('a single altered bit, a cut, or another memory\'s key makes it nothing', async () => {
  const { store } = await told('I am allergic to tree nuts.');
  const packed = await pack(core, store, key(), 1_000);
  assert.equal(await unpack(core, packed, new Uint8Array(32).fill(8), asked, 1_000), undefined);
  // Every byte before the values, and some of those.
  for (let at = 0; at < packed.length; at += at < 60 ? 1 : 11) {
    const altered = packed.slice();
    altered[at] ^= 1 << at % 8;
    assert.equal(await unpack(core, altered, key(), asked, 1_000), undefined, `byte ${at}`);
  }
  for (let length = 0; length < packed.length; length += 7) {
    assert.equal(await unpack(core, packed.slice(0, length), key(), asked, 1_000), undefined, `${length} bytes`);
  }
  assert.equal(await unpack(core, new Uint8Array([...packed, 0]), key(), asked, 1_000), undefined, 'a byte more');
});

test('a store without a memory packs nothing', async () => {
  await assert.rejects(pack(core, new MemoryStore(), key(), 1_000), { code: 'storage-lost' });
});

/** A namespace that notes when it was written to, and fails as often as it is told. */
function namespace(failures = 0) {
  const log = [];
  return {
    log,
    values: new Map(),
    async put(name, value) {
      log.push(Date.now());
      if (failures-- > 0) throw new Error('429');
      this.values.set(name, value[0]);
    },
    async delete(name) {
      this.values.delete(name);
    },
  };
}

/** Lets time pass in small steps, so that each timer's own work is done before the next. */
async function pass(ms) {
  for (let at = 0; at < ms; at += 100) {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    mock.timers.tick(100);
  }
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

test('publications are a second apart, the first at once and the last of all', async (context) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 10_000 });
  context.after(() => mock.timers.reset());
  const replica = namespace();
  const publisher = new Publisher(replica, 'name');
  for (let state = 0; state < 25; state += 1) {
    publisher.publish(async () => new Uint8Array([state]));
    await pass(100);
  }
  await pass(3_000);
  assert.equal(replica.values.get('name'), 24);
  assert.ok(replica.log.length >= 3 && replica.log.length <= 4, `${replica.log}`);
  replica.log.slice(1).forEach((time, at) => assert.ok(time - replica.log[at] >= PUBLISH_EVERY_MS, `${replica.log}`));
  assert.equal(replica.log[0], 10_000);
});

test('a namespace that takes no more is tried again, later each time', async (context) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
  context.after(() => mock.timers.reset());
  const replica = namespace(4);
  const publisher = new Publisher(replica, 'name');
  publisher.publish(async () => new Uint8Array([1]));
  await pass(20_000);
  assert.equal(replica.values.get('name'), 1);
  const waits = replica.log.slice(1).map((time, at) => time - replica.log[at]);
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000]);
});

test('what is removed is not published any more', async (context) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
  context.after(() => mock.timers.reset());
  const replica = namespace();
  const publisher = new Publisher(replica, 'name');
  publisher.publish(async () => new Uint8Array([1]));
  await pass(100);
  publisher.publish(async () => new Uint8Array([2]));
  const removed = publisher.remove();
  await pass(2_000);
  await removed;
  assert.equal(replica.values.size, 0);
  assert.equal(replica.log.length, 1);
});
