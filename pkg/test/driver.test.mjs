import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { Core } from '../dist/core.js';
import { coreGlue } from '../dist/glue.js';
import { ERROR_CODES, ForemindError } from '../dist/errors.js';
import { HostKey } from '../dist/keys.js';
import { OpenMemory } from '../dist/memory.js';
import { Session } from '../dist/session.js';
import { MemoryStore } from '../dist/stores/memory.js';
import { failsWith, key, me } from './support.mjs';

const bindings = await import('../dist/foremind_core.js');
bindings.initSync({ module: await readFile(new URL('../dist/foremind_core_bg.wasm', import.meta.url)) });
const data = await readFile(new URL('../dist/foremind_data.txt', import.meta.url), 'utf8');

/** The real core, whose `step` may be made to fail as a trap does. */
function trappable() {
  const control = { trap: undefined, renewed: 0 };
  const real = coreGlue(bindings, data);
  const glue = {
    open: (options) => wrap(real.open(options)),
    renew() {
      control.renewed += 1;
      real.renew();
    },
  };
  const wrap = (object) =>
    new Proxy(object, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args) => {
          if (name === 'step' && control.trap) {
            const trap = control.trap;
            control.trap = undefined;
            throw trap;
          }
          const result = value.apply(target, args);
          return name === 'take' ? wrap(result) : result;
        };
      },
    });
  return { core: new Core(glue), control };
}

async function session({ core, store = new MemoryStore(), embedder } = {}) {
  return Session.open({ core: core ?? trappable().core, store, keys: new HostKey(key), embedder });
}

const remember = (text) => ({ verb: 'remember', scope: me, text });

test('every error code crosses the border, with the fault that the core gives it', () => {
  const rows = bindings.errors();
  assert.deepEqual(rows.map(({ code }) => code), [...ERROR_CODES]);
  for (const { code, fault } of rows) {
    assert.equal(new ForemindError(code, '').fault, fault, code);
    const core = new Core({ open: () => bindings.throwError(code), renew: () => assert.fail(`${code} is no trap`) });
    assert.throws(() => core.open({}), (error) => error instanceof ForemindError && error.code === code && error.fault === fault);
  }
});

test('a trap: pending calls reject with internal, the memory is opened again, nothing acknowledged is lost', async () => {
  const { core, control } = trappable();
  const store = new MemoryStore();
  const opened = await session({ core, store });
  await opened.call(remember('I am allergic to tree nuts'));
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const read = store.read.bind(store);
  store.read = async (keys) => {
    await gate;
    return read(keys);
  };
  const pending = [opened.call({ verb: 'stats', scope: me }), opened.call({ verb: 'list', scope: me })];
  await new Promise((resolve) => setTimeout(resolve, 5));
  control.trap = new WebAssembly.RuntimeError('unreachable quokka');
  const trapped = opened.call({ verb: 'profile', scope: me });
  for (const call of [...pending, trapped]) await assert.rejects(call, failsWith('internal', 'quokka'));
  assert.equal(control.renewed, 1, 'one trap, one new instance');
  release();
  const { prompt } = await opened.call({ verb: 'profile', scope: me, budgetTokens: 512 });
  assert.match(prompt, /tree nuts/);
  await opened.call(remember('I have a cat'));
  assert.equal((await opened.call({ verb: 'stats', scope: me })).records, 2);
  await opened.close();
});

test('a trap of one memory drops every memory of that instance, and each comes back by itself', async () => {
  const { core, control } = trappable();
  const [a, b] = [await session({ core }), await session({ core })];
  await a.call(remember('I ski'));
  await b.call(remember('I skate'));
  control.trap = new RangeError('Maximum call stack size exceeded');
  await assert.rejects(a.call(remember('I swim')), failsWith('internal'));
  assert.match((await b.call({ verb: 'list', scope: me })).records[0].text, /skate/);
  assert.match((await a.call({ verb: 'list', scope: me })).records[0].text, /ski/);
  assert.equal(control.renewed, 1);
});

test('after a trap an emptied store is a loss, not a new memory', async () => {
  const { core, control } = trappable();
  const values = new Map();
  const opened = await session({ core, store: new MemoryStore(values) });
  control.trap = new WebAssembly.RuntimeError('unreachable');
  await assert.rejects(opened.call(remember('I ski')), failsWith('internal'));
  const kept = new Map(values);
  values.clear();
  await assert.rejects(opened.call(remember('I ski')), failsWith('storage-lost'));
  assert.equal(values.size, 0);
  for (const [name, value] of kept) values.set(name, value);
  await opened.call(remember('I ski'));
});

test('a store that fails: its error comes out, the state stays as it was, the next call works', async () => {
  const store = new MemoryStore();
  const opened = await session({ store });
  const commit = store.commit.bind(store);
  for (const code of ['quota-exceeded', 'storage-failed', 'storage-lost', 'storage-denied']) {
    store.commit = async () => {
      throw new ForemindError(code, 'made to fail by the test');
    };
    await assert.rejects(opened.call(remember('I ski')), failsWith(code));
    store.commit = commit;
    assert.equal((await opened.call({ verb: 'stats', scope: me })).records, 0);
  }
  await opened.call(remember('I ski'));
  assert.equal((await opened.call({ verb: 'stats', scope: me })).records, 1);
});

test('a store that always conflicts ends in conflict, not in a loop', async () => {
  const store = new MemoryStore();
  const opened = await session({ store });
  let tries = 0;
  store.commit = async () => {
    tries += 1;
    return false;
  };
  await assert.rejects(opened.call(remember('I ski')), failsWith('conflict'));
  assert.ok(tries > 1 && tries < 100, String(tries));
});

test('an aborted read ends the call at once; an abort during the commit lets the commit decide', async () => {
  const store = new MemoryStore();
  const opened = await session({ store });
  const read = store.read.bind(store);
  store.read = () => new Promise(() => {});
  const stop = new AbortController();
  const hanging = opened.call({ verb: 'stats', scope: me }, stop.signal);
  stop.abort();
  await assert.rejects(hanging, failsWith('aborted'));
  store.read = read;
  const late = new AbortController();
  const commit = store.commit.bind(store);
  store.commit = async (batch) => {
    late.abort();
    return commit(batch);
  };
  assert.equal((await opened.call(remember('I ski'), late.signal)).records.length, 1);
});

/** An embedder that may be slow to come, and gives each text a vector of its own. */
function fakeEmbedder() {
  let arrive;
  const arrived = new Promise((resolve) => (arrive = resolve));
  const encoded = [];
  const embedding = (text, headId) => {
    encoded.push(text);
    const vector = new Int8Array(384);
    vector[text.length % 384] = 127;
    return { modelId: 'test/1', headId, vector, scale: 1 / 127, features: [] };
  };
  const object = {
    modelId: 'test/1',
    encode: (texts, heads) => texts.map((text) => heads.map((head) => embedding(text, head))),
    free() {},
  };
  const source = { glue: async () => ({ renew() {} }), model: async () => (await arrived, object) };
  return { source, arrive, encoded, object };
}

test('told before the embedder is there: lexical at once, encoded afterwards, with progress', async () => {
  const { source, arrive, encoded } = fakeEmbedder();
  const opened = await session({ embedder: source });
  const progress = [];
  const memory = new OpenMemory('ada', opened);
  memory.on('progress', (detail) => progress.push(detail));
  const texts = Array.from({ length: 20 }, (_, n) => `Note ${'x'.repeat(n + 1)} number ${n}.`);
  for (const text of texts) await memory.remember(me, text);
  assert.equal((await memory.recall(me, 'which notes are there?')).lexicalOnly, true);
  assert.equal((await memory.stats(me)).withoutVector, 20);
  const finished = new Promise((resolve) => memory.on('progress', (detail) => detail.loaded === detail.total && resolve()));
  arrive();
  assert.deepEqual(await memory.ready, { modelId: 'test/1' });
  await finished;
  assert.equal((await memory.stats(me)).withoutVector, 0);
  assert.deepEqual([...encoded].sort(), [...texts].sort(), 'each once');
  assert.deepEqual(progress.at(-1), { phase: 'backfill', loaded: 20, total: 20 });
  assert.equal((await memory.recall(me, 'which notes are there?')).lexicalOnly, false);
  await memory.close();
});

test('close ends the background work', async () => {
  const { source, arrive, encoded } = fakeEmbedder();
  const opened = await session({ embedder: source });
  for (let n = 0; n < 20; n++) await opened.call(remember(`Note number ${n}.`));
  arrive();
  await opened.ready;
  await opened.close();
  const soFar = encoded.length;
  assert.ok(soFar < 20, `${soFar} of 20 were encoded before the end`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(encoded.length, soFar);
});

test('close while the model is on its way: ready rejects with closed', async () => {
  const opened = await session({
    embedder: {
      glue: async () => ({}),
      model: (_intakes, _progress, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    },
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  await opened.close();
  await assert.rejects(opened.ready, failsWith('closed'));
});

test('an embedder that traps is dropped: writes and recalls go on by words', async () => {
  const { source, arrive, object } = fakeEmbedder();
  arrive();
  const opened = await session({ embedder: source });
  await opened.ready;
  object.encode = () => {
    throw new WebAssembly.RuntimeError('unreachable');
  };
  await opened.call(remember('I never eat pork'));
  const { prompt, lexicalOnly } = await opened.call({ verb: 'recall', scope: me, query: 'pork for dinner?' });
  assert.match(prompt, /pork/);
  assert.equal(lexicalOnly, true);
  await opened.close();
});

test('a wake from another instance: what it wrote is there, and announced once', async () => {
  const values = new Map();
  const [a, b] = [new MemoryStore(values), new MemoryStore(values)];
  const [writer, reader] = [await session({ store: a }), await session({ store: b })];
  const seen = [];
  const announced = new Promise((resolve) => {
    reader.onevent = (event) => {
      seen.push(event);
      resolve();
    };
  });
  await writer.call(remember('I ski'));
  b.onwake();
  b.onwake();
  await announced;
  assert.equal((await reader.call({ verb: 'stats', scope: me })).records, 1);
  assert.deepEqual(seen, [{ name: 'changed', detail: { by: 'other' } }]);
});
