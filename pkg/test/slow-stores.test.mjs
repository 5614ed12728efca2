// Stores that answer late, in another order than asked, wrongly, or not at all what they should.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { Core } from '../dist/core.js';
import { coreGlue } from '../dist/glue.js';
import { HostKey } from '../dist/keys.js';
import { Session } from '../dist/session.js';
import { MemoryStore } from '../dist/stores/memory.js';
import { failsWith, key, me } from './support.mjs';

const bindings = await import('../dist/foremind_core.js');
bindings.initSync({ module: await readFile(new URL('../dist/foremind_core_bg.wasm', import.meta.url)) });
const data = await readFile(new URL('../dist/foremind_data.txt', import.meta.url), 'utf8');
const glue = coreGlue(bindings, data);

const session = (store) => Session.open({ core: new Core(glue), store, keys: new HostKey(key) });
const remember = (text) => ({ verb: 'remember', scope: me, text });
const listed = async (opened) => (await opened.call({ verb: 'list', scope: me, limit: 1000 })).records.map(({ text }) => text).sort();
const note = (number) => `Note ${number} is about subject ${number}.`;

/** A seeded order of small waits. */
function waits(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return new Promise((resolve) => setTimeout(resolve, state % 7));
  };
}

/** Every answer comes after a wait of its own, so that later calls are often answered first. */
function unordered(store, seed) {
  const wait = waits(seed);
  const slow = (method) => async (...args) => {
    await wait();
    const result = await method(...args);
    await wait();
    return result;
  };
  store.read = slow(store.read.bind(store));
  store.commit = slow(store.commit.bind(store));
  return store;
}

test('answers in any order: three instances write and read at once, everything is there, once, in all of them', async () => {
  const values = new Map();
  const opened = await Promise.all([1, 2, 3].map((seed) => session(unordered(new MemoryStore(values), seed))));
  const told = await Promise.all(
    Array.from({ length: 45 }, async (_, number) => {
      const one = opened[number % 3];
      await one.call(remember(note(number)));
      // Reads in between, not waiting for their turn.
      await one.call({ verb: 'stats', scope: me });
      return note(number);
    }),
  );
  for (const one of opened) assert.deepEqual(await listed(one), [...told].sort());
  for (const one of opened) await one.close();
});

test('values in another order than asked are refused, whatever they are', async () => {
  const values = new Map();
  const writer = await session(new MemoryStore(values));
  for (let number = 0; number < 5; number += 1) await writer.call(remember(note(number)));
  await writer.close();
  for (const mix of [(all) => all.reverse(), (all) => all.slice(1), () => [], (all) => all.map((_, at) => all[(at + 1) % all.length])]) {
    const store = new MemoryStore(values);
    const read = store.read.bind(store);
    store.read = async (keys) => (keys.length > 1 ? mix(await read(keys)) : read(keys));
    await assert.rejects(session(store), (error) => error.name === 'ForemindError' && ['corrupt', 'storage-failed', 'internal', 'invalid-argument', 'storage-lost', 'conflict'].includes(error.code));
  }
  const whole = await session(new MemoryStore(values));
  assert.equal((await listed(whole)).length, 5, 'nothing of it was written');
});

test('an older state of the store put back under an open memory is a loss, not a shorter memory', async () => {
  const values = new Map();
  const opened = await session(new MemoryStore(values));
  await opened.call(remember(note(1)));
  const before = new Map(values);
  await opened.call(remember(note(2)));
  values.clear();
  for (const [name, value] of before) values.set(name, value);
  await assert.rejects(opened.call({ verb: 'list', scope: me }), failsWith('storage-lost'));
  await assert.rejects(opened.call(remember(note(3))), failsWith('storage-lost'));
});

test('a write does not ask for the head that it knows; what others wrote meanwhile is found all the same', async () => {
  const values = new Map();
  const store = new MemoryStore(values);
  let reads = 0;
  const read = store.read.bind(store);
  store.read = (keys) => {
    reads += 1;
    return read(keys);
  };
  const [mine, other] = [await session(store), await session(new MemoryStore(values))];
  await mine.call(remember(note(1)));
  reads = 0;
  for (let number = 2; number < 6; number += 1) await mine.call(remember(note(number)));
  assert.equal(reads, 0, 'nobody else wrote');

  // No wake comes: the commit is refused once, and planned again.
  const { records } = await other.call(remember(note(6)));
  await mine.call(remember(note(7)));
  assert.ok(reads > 0);
  assert.equal((await listed(mine)).length, 7);
  await other.call(remember(note(8)));

  // An operation that ends without a commit is not answered from what is no longer so.
  const { id } = (await other.call(remember(note(9)))).records[0].record;
  assert.equal((await mine.call({ verb: 'forget', scope: me, target: { id } })).erased, 1);
  await assert.rejects(other.call({ verb: 'forget', scope: me, target: { id } }), failsWith('unknown-id'));
  await mine.call({ verb: 'forget', scope: me, target: { id: records[0].record.id } });
  assert.deepEqual(await listed(other), [1, 2, 3, 4, 5, 7, 8].map(note).sort());
});

test('a store that never answers holds up only who waits for it', async () => {
  const store = new MemoryStore();
  const opened = await session(store);
  await opened.call(remember(note(1)));
  const read = store.read.bind(store);
  store.read = () => new Promise(() => {});
  const stop = new AbortController();
  const waiting = opened.call({ verb: 'list', scope: me }, stop.signal);
  await new Promise((resolve) => setTimeout(resolve, 5));
  store.read = read;
  assert.equal((await listed(opened)).length, 1);
  stop.abort();
  await assert.rejects(waiting, failsWith('aborted'));
});
