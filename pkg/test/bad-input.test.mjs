import assert from 'node:assert/strict';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { ForemindError, Memory } from '../dist/node.js';
import { failsWith, key, me, open, testIn } from './support.mjs';

const secret = 'quokka';

testIn('texts', async (directory) => {
  const memory = await open(directory);
  for (const [what, text, code] of [
    ['empty', '', 'text-empty'],
    ['white space', ' \n\t\u200b', 'text-empty'],
    ['1 MB', `${secret} `.repeat(150_000), 'text-too-large'],
    ['a lone high surrogate', `${secret} \ud800`, 'invalid-argument'],
    ['a lone low surrogate', `\udc00 ${secret}`, 'invalid-argument'],
    ['NUL', `${secret}\0`, 'invalid-argument'],
    ['a number', 5, 'invalid-argument'],
    ['null', null, 'invalid-argument'],
    ['nothing', undefined, 'invalid-argument'],
    ['an object', { text: secret }, 'invalid-argument'],
  ]) {
    await assert.rejects(memory.remember(me, text), failsWith(code, secret), `remember ${what}`);
    await assert.rejects(memory.ingest(me, { thread: 't', turn: '1', role: 'user', text }), failsWith(code, secret), `ingest ${what}`);
  }
  for (const query of ['\ud800', 5, null, undefined]) await assert.rejects(memory.recall(me, query), failsWith('invalid-argument'));
  assert.equal((await memory.stats(me)).records, 0, 'nothing was stored');
  // A pair of surrogates is a character.
  await memory.remember(me, 'I grow 🌵 at home.');
  assert.match((await memory.recall(me, 'what do I grow at home?')).prompt, /🌵/);
  await memory.close();
});

testIn('budgets, limits, ids, scopes, options', async (directory) => {
  const memory = await open(directory);
  for (const budgetTokens of [0, -1, Number.NaN, 1.5, Infinity, 1_000_001, '512', null]) {
    await assert.rejects(memory.recall(me, 'anything', { budgetTokens }), failsWith('invalid-argument'), String(budgetTokens));
    await assert.rejects(memory.profile(me, { budgetTokens }), failsWith('invalid-argument'), String(budgetTokens));
  }
  for (const limit of [0, -1, 1_001, Number.NaN, '3']) await assert.rejects(memory.list(me, { limit }), failsWith('invalid-argument'));
  await assert.rejects(memory.get(me, '01ARZ3NDEKTSV4RRFFQ69G5FAV'), failsWith('unknown-id'));
  for (const id of ['', 'no id', 5, undefined, '01ARZ3NDEKTSV4RRFFQ69G5FAI']) await assert.rejects(memory.get(me, id), failsWith('invalid-argument'));
  for (const scope of [undefined, null, 'ada', {}, { user: '' }, { user: 'a b' }, { user: 'x'.repeat(129) }, { user: 5 }, { user: 'ada', team: 'x' }, { user: 'ada', project: null }]) {
    await assert.rejects(memory.remember(scope, 'I ski.'), failsWith('invalid-argument'), JSON.stringify(scope));
    await assert.rejects(memory.stats(scope), failsWith('invalid-argument'), JSON.stringify(scope));
  }
  for (const target of [undefined, 'everything', {}, { id: 'x' }, { thread: '' }, { id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', thread: 't' }]) {
    await assert.rejects(memory.forget(me, target), failsWith('invalid-argument'), JSON.stringify(target));
  }
  for (const options of [null, 5, 'x', [], { tier: 'top' }, { role: 'me' }, { thread: 'a b' }, { signal: {} }]) {
    await assert.rejects(memory.remember(me, 'I ski.', options), failsWith('invalid-argument'), JSON.stringify(options));
  }
  for (const turn of [undefined, null, {}, { thread: 't', turn: '1', role: 'user', text: 'a', mode: 'loud' }, { thread: 't', turn: '1', role: 'user', text: 'a', finding: 1 }]) {
    await assert.rejects(memory.ingest(me, turn), failsWith('invalid-argument'), JSON.stringify(turn));
  }
  await assert.rejects(memory.update(me, '01ARZ3NDEKTSV4RRFFQ69G5FAV', undefined), failsWith('invalid-argument'));
  await assert.rejects(memory.judge(me, '01ARZ3NDEKTSV4RRFFQ69G5FAV', 'fine'), failsWith('invalid-argument'));
  assert.throws(() => memory.on('changed', 5), failsWith('invalid-argument'));
  assert.equal((await memory.stats(me)).records, 0);
  await memory.close();
});

test('opening', async () => {
  for (const options of [
    undefined, null, 5, {}, { name: '' }, { name: 'a/b' }, { name: '..' }, { name: 'ada', key: 'secret' }, { name: 'ada', key: new Uint8Array(31) },
    { name: 'ada', key: Array(32).fill(1) }, { name: 'ada', key, model: 5 }, { name: 'ada', key, model: { url: 'x', sha256: 'x' } }, { name: 'ada', key, model: { url: 'x', bytes: 0, hash: '0'.repeat(64) } }, { name: 'ada', key, model: { onnx: 'x', vocabulary: 'y' } },
    { name: 'ada', key, storage: 'disk' }, { name: 'ada', key, directory: 5 }, { name: 'ada', key, signal: true }, { name: 'ada', key, model: 'https://example.org/m' },
  ]) {
    await assert.rejects(Memory.open(options), failsWith('invalid-argument'), JSON.stringify(options));
  }
  await assert.rejects(Memory.open({ name: 'ada' }), failsWith('key-missing'));
  await assert.rejects(Memory.open({ name: 'ada', key, signal: AbortSignal.abort() }), failsWith('aborted'));
});

testIn('a closed memory says so, and closing twice is fine', async (directory) => {
  const memory = await open(directory);
  const late = memory.remember(me, 'Said at the last moment.').then(() => 'written', (error) => error.code);
  await memory.close();
  await memory.close();
  // Either it was written, or the caller was told: never silence.
  const outcome = await late;
  assert.ok(outcome === 'written' || outcome === 'closed', outcome);
  for (const call of [() => memory.remember(me, 'x'), () => memory.recall(me, 'x'), () => memory.stats(me), () => memory.forget(me, 'scope')]) {
    await assert.rejects(call(), failsWith('closed'));
  }
  const again = await open(directory);
  assert.equal((await again.stats(me)).records, outcome === 'written' ? 1 : 0);
  await again.close();
});

testIn('abort: before the call, and in the queue; nothing is written', async (directory) => {
  const memory = await open(directory);
  await assert.rejects(memory.remember(me, 'I ski.', { signal: AbortSignal.abort() }), failsWith('aborted'));
  const first = memory.remember(me, 'I skate.');
  const stop = new AbortController();
  const second = memory.remember(me, 'I swim.', { signal: stop.signal });
  stop.abort();
  await assert.rejects(second, failsWith('aborted'));
  await first;
  assert.equal((await memory.stats(me)).records, 1);
  await memory.close();
});

testIn('wrong key, altered bytes, newer format, lost folder', async (directory) => {
  const memory = await open(directory);
  await memory.remember(me, "I'm allergic to tree nuts");
  await memory.close();
  const folder = join(directory, 'm-ada');

  await assert.rejects(open(directory, { key: new Uint8Array(32).fill(8) }), failsWith('wrong-key'));

  const options = { name: 'ada', directory, key, model: false };
  /** What is kept twice, or can be made again, is not missed in reading: then everything is there. */
  const refusedOrWhole = async (what) => {
    let opened;
    try {
      opened = await open(directory);
    } catch (error) {
      assert.ok(['corrupt', 'wrong-key'].includes(error.code), `${what}: ${error.code}`);
      return true;
    }
    assert.deepEqual((await opened.list(me)).records.map(({ text }) => text), ["I'm allergic to tree nuts"], what);
    await opened.close();
    return false;
  };
  let refused = 0;
  const names = (await readdir(folder)).sort();
  assert.ok(names.includes('head') && names.includes('key') && names.length >= 3, names.join());
  for (const name of names) {
    const bytes = await readFile(join(folder, name));
    const altered = Buffer.from(bytes);
    altered[altered.length - 1] ^= 1;
    await writeFile(join(folder, name), altered);
    refused += (await refusedOrWhole(`${name} is altered`)) ? 1 : 0;
    assert.equal((await Memory.verify(options)).whole, false, `${name} is altered`);
    await rm(join(folder, name));
    await refusedOrWhole(`${name} is missing`);
    // Memories of before have no second copy of the key.
    assert.equal((await Memory.verify(options)).whole, name === 'spare', `${name} is missing`);
    await writeFile(join(folder, name), bytes);
  }
  assert.ok(refused >= 3, 'the head, the key, the entry');
  const again = await open(directory);
  assert.match((await again.recall(me, 'macarons')).prompt, /tree nuts/, 'nothing was lost by trying');

  await rm(folder, { recursive: true });
  await assert.rejects(again.recall(me, 'macarons'), failsWith('storage-lost'));
  await assert.rejects(again.remember(me, 'I ski.'), failsWith('storage-lost'));
  await again.close();
});

testIn('model absent, and one that is none', async (directory) => {
  for (const [model, code] of [
    [join(directory, 'absent.fmpack'), 'model-missing'],
    [new Uint8Array(1000), 'model-invalid'],
    [{ url: import.meta.url, sha256: '0'.repeat(64) }, 'model-invalid'],
    [{ url: import.meta.url, bytes: 1, hash: '0'.repeat(64) }, 'model-invalid'],
    [{ id: 'mine/1', onnx: new Uint8Array(8), vocabulary: new Uint8Array(8) }, 'invalid-argument'],
  ]) {
    const memory = await open(directory, { model });
    await assert.rejects(memory.ready, failsWith(code));
    await memory.remember(me, "I'm allergic to tree nuts");
    const { prompt, lexicalOnly } = await memory.recall(me, 'Any good macaron recipes?');
    assert.match(prompt, /tree nuts/);
    assert.equal(lexicalOnly, true);
    await memory.close();
  }
});

test('an error is an Error with a code, a fault and a sentence', () => {
  const error = new ForemindError('quota-exceeded', 'the disk is full');
  assert.ok(error instanceof Error);
  assert.deepEqual([error.name, error.code, error.fault, error.message], ['ForemindError', 'quota-exceeded', 'host', 'the disk is full']);
});
