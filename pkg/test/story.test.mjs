import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { Memory } from '../dist/node.js';
import { failsWith, key, me, open, testIn } from './support.mjs';

testIn('the macaron story: told, forgotten about, reopened, asked', async (directory) => {
  const memory = await open(directory);
  assert.equal(memory.created, true);
  assert.equal(memory.durability, 'persistent');
  const { records } = await memory.remember(me, "I'm allergic to tree nuts");
  assert.equal(records.length, 1);
  assert.equal(records[0].outcome, 'added');
  const { route } = records[0].record;
  assert.equal(route.tier, 'profile');
  for (const number of [route.score, route.priority, ...route.reasons.map(({ weight }) => weight)]) {
    assert.ok(String(number).length <= 6, `${number} is quantised to 1e-4`);
  }
  const turn = { thread: 't1', turn: '1', role: 'user', text: 'We painted the fence on Saturday. My sister lives in Porto.' };
  const first = await memory.ingest(me, turn);
  assert.equal(first.repeated, false);
  assert.ok(first.records.length >= 1);
  await memory.close();

  const again = await open(directory);
  assert.equal(again.created, false);
  const { prompt, profile, tokens, lexicalOnly } = await again.recall(me, 'Any good macaron recipes?', { budgetTokens: 512 });
  assert.match(prompt, /avoid: tree nuts/);
  assert.ok(tokens > 0 && tokens <= 512);
  assert.equal(profile[0].record.id, records[0].record.id);
  assert.equal(lexicalOnly, true);
  assert.equal((await again.ingest(me, turn)).repeated, true);
  await again.close();
});

testIn('every verb answers in the shape that its type says', async (directory) => {
  const memory = await open(directory);
  const { records: [{ record }] } = await memory.remember(me, 'My cat is called Miso.', { role: 'user', thread: 't1', turn: '4', tier: 'profile' });
  assert.deepEqual(record.provenance, { role: 'user', thread: 't1', turn: '4', statement: 0 });
  assert.deepEqual(await memory.get(me, record.id), record);
  assert.deepEqual((await memory.list(me, { tier: 'profile', limit: 1 })).records.map(({ id }) => id), [record.id]);
  assert.deepEqual((await memory.history(me, record.id)).map(({ record: { id } }) => id), [record.id]);
  assert.equal((await memory.update(me, record.id, { tier: 'store' })).route.tier, 'store');
  assert.equal(typeof (await memory.confirm(me, record.id)).confirmedMs, 'number');
  assert.equal(typeof (await memory.profile(me)).prompt, 'string');
  assert.equal((await memory.pending(me)).waiting, 0);
  const stats = await memory.stats(me);
  assert.deepEqual([stats.records, stats.store, stats.profile], [1, 1, 0]);
  const { erased, receipt } = await memory.forget(me, { id: record.id });
  assert.equal(erased, 1);
  assert.equal((await memory.verify({ receipt })).receipt.holds, true);
  await assert.rejects(memory.forget(me, { id: record.id }), failsWith('unknown-id'));
  assert.equal((await memory.stats(me)).records, 0);
  await memory.close();
});

testIn('scopes are a wall: another user neither sees nor reaches a record', async (directory) => {
  const memory = await open(directory);
  const { records: [{ record }] } = await memory.remember(me, 'I have a visa until March.');
  const eve = { user: 'eve' };
  await assert.rejects(memory.get(eve, record.id), failsWith('unknown-id'));
  await assert.rejects(memory.forget(eve, { id: record.id }), failsWith('unknown-id'));
  assert.equal((await memory.recall(eve, 'visa until March')).prompt, '');
  await memory.close();
});

testIn('two memories on one folder: each sees the other, none loses a write', async (directory) => {
  const [a, b] = await Promise.all([open(directory), open(directory)]);
  assert.equal([a, b].filter(({ created }) => created).length, 1, 'one made it, the other used it');
  const told = [];
  for (let n = 0; n < 12; n++) told.push((n % 2 ? a : b).remember(me, `Note number ${n} is about topic ${n * 17}.`));
  await Promise.all(told);
  for (const memory of [a, b]) assert.equal((await memory.stats(me)).records, 12);
  await Promise.all([a.close(), b.close()]);
  const c = await open(directory);
  assert.equal((await c.stats(me)).records, 12);
  await c.close();
});

testIn('events: own writes are announced, an unsubscribed listener is left alone', async (directory) => {
  const memory = await open(directory);
  const seen = [];
  const off = memory.on('changed', (detail) => seen.push(detail));
  await memory.remember(me, 'I cycle to work.');
  off();
  await memory.remember(me, 'I read in the evening.');
  assert.deepEqual(seen, [{ by: 'self' }]);
  await memory.close();
});

test('a memory in memory is volatile and needs no folder', async () => {
  const memory = await Memory.open({ name: 'ada', key, storage: 'memory', model: false });
  assert.equal(memory.durability, 'volatile');
  assert.deepEqual(await memory.ready, { modelId: null });
  await memory.remember(me, 'I never eat pork.');
  assert.match((await memory.recall(me, 'dinner')).prompt, /pork/);
  await memory.close();
});

test("the demo's story ends with the allergy in the prompt", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(new URL('../../xtask/story.mjs', import.meta.url))]);
  const [profile, prompt] = stdout.split('PROMPT:');
  assert.match(profile, /^PROFILE:\n- .*tree nuts/);
  assert.match(prompt, /tree nuts/);
  const [, tokens, budget] = /(\d+) of (\d+) tokens/.exec(prompt);
  assert.ok(Number(tokens) <= Number(budget));
});
