// Keys, files and damage, through the package as it is used.
import assert from 'node:assert/strict';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { Memory } from '../dist/node.js';
import { failsWith, key, me, open, testIn } from './support.mjs';

const passphrase = 'correct horse, battery staple';
const facts = ["I'm allergic to tree nuts.", 'I repainted the hallway green last weekend.', 'We watched a film about Lisbon.'];
const listed = async (memory) => (await memory.list(me, { limit: 1000 })).records.map(({ text }) => text).sort();

async function told(directory, options) {
  const memory = await open(directory, options);
  for (const fact of facts) await memory.remember(me, fact);
  return memory;
}

testIn('a passphrase opens what it has sealed, in any composition of its letters, and nothing else does', async (directory) => {
  const words = { passphrase: 'caf\u00e9 in Malm\u00f6' };
  const memory = await told(directory, { key: words });
  await memory.close();
  const again = await open(directory, { key: { passphrase: 'cafe\u0301 in Malmo\u0308' } });
  assert.deepEqual(await listed(again), [...facts].sort());
  await again.close();
  await assert.rejects(open(directory, { key: { passphrase: 'cafe in Malmo' } }), failsWith('wrong-key', 'Malmo'));
  await assert.rejects(open(directory), (error) => ['wrong-key', 'key-missing'].includes(error.code));
  for (const bad of [{ passphrase: '' }, { passphrase: 'x'.repeat(1025) }, { passphrase: 5 }, { passphrase: '\ud800' }, 'words', {}, new Uint8Array(31)]) {
    await assert.rejects(open(directory, { key: bad }), failsWith('invalid-argument'));
  }
  await assert.rejects(open(directory, { key: 'device' }), failsWith('unsupported'));
});

testIn("the caller's key is copied, also out of a Buffer, and opens again", async (directory) => {
  const mine = Buffer.alloc(32, 5);
  const memory = await told(directory, { key: mine });
  await memory.close();
  assert.deepEqual(mine, Buffer.alloc(32, 5));
  const again = await open(directory, { key: mine });
  assert.equal((await listed(again)).length, facts.length);
  await again.close();
});

testIn('rekey: the new key opens, the old one does not, and the memory at hand goes on', async (directory) => {
  const memory = await told(directory);
  const other = new Uint8Array(32).fill(9);
  const given = other.slice();
  await memory.rekey({ passphrase });
  await memory.remember(me, 'We moved to Lisbon.');
  await memory.rekey(given);
  given.fill(0);
  assert.equal((await listed(memory)).length, 4);
  await memory.close();
  await assert.rejects(open(directory), failsWith('wrong-key'));
  await assert.rejects(open(directory, { key: { passphrase } }), (error) => ['wrong-key', 'key-missing'].includes(error.code));
  const again = await open(directory, { key: other });
  assert.equal((await listed(again)).length, 4);
  for (const bad of [undefined, 'x', new Uint8Array(5), { passphrase: '' }]) await assert.rejects(again.rekey(bad), failsWith('invalid-argument'));
  await assert.rejects(again.rekey('device'), failsWith('unsupported'));
  assert.equal((await listed(again)).length, 4);
  await again.close();
});

testIn('a file that was exported sealed: nothing of it can be read, the passphrase opens it elsewhere, another does not', async (directory) => {
  const memory = await told(directory);
  const file = await memory.export({ passphrase });
  for (const word of ['allergic', 'hallway', 'Lisbon']) {
    assert.ok(!Buffer.from(file).includes(word));
    assert.ok(!Buffer.from(file).includes(Buffer.from(word, 'utf16le')));
  }
  const elsewhere = await open(join(directory, 'elsewhere'));
  await assert.rejects(elsewhere.import(file, { passphrase: 'another' }), failsWith('wrong-key', 'another'));
  await assert.rejects(elsewhere.import(file), (error) => ['key-missing', 'wrong-key'].includes(error.code));
  assert.deepEqual(await listed(elsewhere), []);
  const taken = await elsewhere.import(new Blob([file]), { passphrase });
  assert.equal(taken.records, 3);
  assert.deepEqual(await listed(elsewhere), [...facts].sort());
  const again = await elsewhere.import(file, { passphrase });
  assert.equal(again.entries, 0, 'all of it is known');
  assert.equal(again.known, taken.entries);
  const ids = async (one) => (await one.list(me)).records.map(({ id }) => id);
  assert.deepEqual(await ids(elsewhere), await ids(memory), 'the same records, not copies');
  await memory.close();
  await elsewhere.close();
});

testIn('plain: JSON Lines, only when asked for, and Memory.import makes a memory of them', async (directory) => {
  const memory = await told(directory);
  for (const nothing of [undefined, {}, { plain: false }, { plain: true, passphrase }]) {
    await assert.rejects(memory.export(nothing), failsWith('invalid-argument'));
  }
  const file = await memory.export({ plain: true });
  await memory.close();
  const lines = Buffer.from(file).toString('utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.ok(lines.length > facts.length);
  for (const fact of facts) assert.ok(Buffer.from(file).includes(fact));
  const made = await Memory.import({ name: 'ada', directory: join(directory, 'made'), key, model: false }, file);
  assert.equal(made.created, true);
  assert.deepEqual(await listed(made), [...facts].sort());
  await made.close();
  for (const [bad, code] of [['no file', 'invalid-argument'], [undefined, 'invalid-argument'], [new Uint8Array(), undefined], [file.slice(0, file.length >> 1), undefined], [Buffer.from('{"a":1}\n'), undefined]]) {
    await assert.rejects(
      Memory.import({ name: 'ada', directory: join(directory, 'none'), key, model: false }, bad),
      (error) => error.name === 'ForemindError' && error.code !== 'internal' && (code === undefined || error.code === code),
    );
  }
});

testIn('what was forgotten does not come back with a file, unless that is asked for', async (directory) => {
  const memory = await told(directory);
  const file = await memory.export({ plain: true });
  const { id } = (await memory.list(me)).records[0];
  await memory.forget(me, { id });
  await memory.import(file);
  assert.equal((await listed(memory)).length, 2);
  const { restored } = await memory.import(file, { restore: true });
  assert.equal(restored, 1);
  assert.deepEqual(await listed(memory), [...facts].sort());
  await memory.close();
});

testIn('verify: whole when it is; a flipped byte is found, and repair keeps the rest', async (directory) => {
  const memory = await told(directory);
  const whole = await memory.verify();
  assert.deepEqual([whole.whole, whole.damaged, whole.missing, whole.lostEntries], [true, [], [], 0]);
  await memory.close();
  const options = { name: 'ada', directory, key, model: false };
  assert.equal((await Memory.verify(options)).whole, true, 'also without opening it');

  const folder = join(directory, 'm-ada');
  const entries = (await readdir(folder)).filter((name) => /^[0-9a-f]{32}$/.test(name));
  const sizes = await Promise.all(entries.map(async (name) => (await readFile(join(folder, name))).length));
  const victim = entries[sizes.indexOf(Math.max(...sizes))];
  const bytes = await readFile(join(folder, victim));
  bytes[bytes.length >> 1] ^= 1;
  await writeFile(join(folder, victim), bytes);
  const before = new Map(await Promise.all((await readdir(folder)).map(async (name) => [name, (await readFile(join(folder, name))).toString('hex')])));
  const found = await Memory.verify(options);
  assert.equal(found.whole, false);
  assert.ok(found.damaged.some(({ name }) => name === victim), JSON.stringify(found));
  for (const [name, hex] of before) assert.equal((await readFile(join(folder, name))).toString('hex'), hex, 'verify changes nothing');

  const repaired = await Memory.repair(options);
  assert.equal(repaired.whole, false, 'what was found');
  assert.ok(repaired.kept + repaired.lost >= facts.length);
  const after = await open(directory);
  assert.equal((await after.verify()).whole, true);
  assert.ok((await listed(after)).every((text) => facts.includes(text)));
  await after.remember(me, 'It goes on.');
  await after.close();
});

testIn('the head lost: opening says so and makes nothing new, repair brings everything back', async (directory) => {
  const memory = await told(directory);
  await memory.close();
  await writeFile(join(directory, 'm-ada', 'head'), 'not a head');
  await assert.rejects(open(directory), failsWith('corrupt'));
  const { lost, changed } = await Memory.repair({ name: 'ada', directory, key, model: false });
  assert.deepEqual([lost, changed], [0, true]);
  const again = await open(directory);
  assert.deepEqual(await listed(again), [...facts].sort());
  await again.close();
  await assert.rejects(Memory.repair({ name: 'ada', directory, key: new Uint8Array(32), model: false }), failsWith('wrong-key'));
});

testIn('the profile without opening: the same text as from the open memory', async (directory) => {
  const options = { name: 'ada', directory, key, model: false };
  await assert.rejects(Memory.profile(options, me), failsWith('storage-lost'));
  const memory = await told(directory);
  for (const budgetTokens of [512, 200]) {
    const { prompt, tokens } = await memory.profile(me, { budgetTokens });
    const glance = await Memory.profile(options, me, { budgetTokens });
    assert.deepEqual([glance.prompt, glance.tokens], [prompt, tokens]);
  }
  assert.equal((await Memory.profile(options, { user: 'bob' })).prompt, '');
  await assert.rejects(Memory.profile(options, {}), failsWith('invalid-argument'));
  await assert.rejects(Memory.profile({ ...options, key: new Uint8Array(32) }, me), failsWith('wrong-key'));
  await memory.close();
});

testIn('storage says how full it is', async (directory) => {
  const memory = await told(directory);
  const state = await memory.storage();
  assert.equal(state.durability, 'persistent');
  assert.ok(state.usedBytes > 500 && state.quotaBytes > state.usedBytes, JSON.stringify(state));
  await memory.close();
  const volatile = await open(directory, { storage: 'memory' });
  assert.deepEqual(await volatile.storage(), { durability: 'volatile' });
  await volatile.close();
});

testIn('two hundred words that were told stand nowhere in the files', async (directory) => {
  const memory = await open(directory);
  const words = Array.from({ length: 200 }, (_, at) => `word${[...String(at * 7919 + 104729)].map((digit) => 'qwxzjkvyfb'[digit]).join('')}end`);
  for (let at = 0; at < words.length; at += 20) await memory.remember(me, words.slice(at, at + 20).map((word) => `The ${word} is on the shelf.`).join('\n'));
  assert.equal((await memory.stats(me)).records, 10);
  await memory.close();
  const folder = join(directory, 'm-ada');
  await writeFile(join(folder, 'plain.txt'), `${words[0]} and more`);
  const found = new Map();
  for (const name of await readdir(folder)) {
    const bytes = await readFile(join(folder, name));
    const here = words.filter((word) => bytes.includes(word) || bytes.includes(Buffer.from(word, 'utf16le')));
    if (here.length > 0) found.set(name, here);
  }
  assert.deepEqual([...found], [['plain.txt', [words[0]]]], 'only where the test left one');
});

test('copies of keys are zeroed when the memory closes', async () => {
  const { HostKey } = await import('../dist/keys.js');
  const given = new Uint8Array(32).fill(3);
  const host = new HostKey(given);
  const inside = host.wrap.key;
  assert.notEqual(inside, given);
  host.clear();
  assert.ok(inside.every((byte) => byte === 0));
  assert.ok(given.every((byte) => byte === 3), "the caller's own bytes are the caller's");
});

test('a browser that keeps no CryptoKey, or has no secure context: a code, and no weaker key in its place', async () => {
  const { DeviceKey } = await import('../dist/keys.js');
  assert.throws(() => new DeviceKey('ada'), failsWith('unsupported'), 'no IndexedDB');
  const puts = [];
  /** As much of IndexedDB as a device key uses; `put` is the browser's answer to storing a CryptoKey. */
  const fake = (put) => ({
    open() {
      const request = {};
      const store = () => {
        const read = { result: undefined };
        setTimeout(() => read.onsuccess?.());
        return { get: () => read, put: (value) => put(value) };
      };
      const transaction = () => {
        const made = { objectStore: store };
        setTimeout(() => made.oncomplete?.(), 5);
        return made;
      };
      request.result = { transaction, close() {} };
      setTimeout(() => request.onsuccess());
      return request;
    },
  });
  try {
    globalThis.indexedDB = fake((value) => {
      puts.push(value);
      throw new DOMException('it cannot be cloned', 'DataCloneError');
    });
    await assert.rejects(new DeviceKey('ada').seal(new Uint8Array(32)), failsWith('unsupported'));
    assert.equal(puts.length, 1);
    assert.equal(puts[0].extractable, false);
    globalThis.indexedDB = fake(() => {});
    await assert.rejects(new DeviceKey('ada').seal(new Uint8Array(32)), failsWith('unsupported'), 'forgets what it was given');
    await assert.rejects(new DeviceKey('ada').open(new Uint8Array(61)), failsWith('key-missing'));
    globalThis.indexedDB = {
      open() {
        throw new DOMException('denied', 'SecurityError');
      },
    };
    await assert.rejects(new DeviceKey('ada').seal(new Uint8Array(32)), failsWith('storage-denied'));
  } finally {
    delete globalThis.indexedDB;
  }
});
