import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WorkerBackend, answerOnce } from '../dist/rpc/client.js';
import { failsWith, me } from './support.mjs';

const options = { name: 'ada', storage: 'default', model: { from: 'none' } };

/** Workers whose side of the conversation the test speaks. */
function fakeWorkers(answer) {
  const spawned = [];
  const spawn = () => {
    const worker = {
      onmessage: null,
      onerror: null,
      onmessageerror: null,
      terminated: false,
      sent: [],
      postMessage(message) {
        worker.sent.push(message);
        queueMicrotask(() => answer(message, worker));
      },
      say: (data) => worker.onmessage?.({ data }),
      terminate() {
        worker.terminated = true;
      },
    };
    spawned.push(worker);
    return worker;
  };
  return { spawn, spawned };
}

const opens = (message, worker) => {
  if (message.type === 'open') worker.say({ type: 'opened', created: !message.existing, durability: 'best-effort' });
  if (message.type === 'close') worker.say({ type: 'closed' });
};

test('calls are matched to their answers, whatever their order', async () => {
  const waiting = [];
  const { spawn, spawned } = fakeWorkers((message, worker) => {
    opens(message, worker);
    if (message.type === 'call') waiting.push(message);
    if (waiting.length === 2) {
      const [first, second] = waiting.splice(0);
      worker.say({ type: 'failure', id: second.id, error: { code: 'unknown-id', message: 'there is no such record' } });
      worker.say({ type: 'answer', id: first.id, response: { kind: 'stats', records: 3 } });
    }
  });
  const backend = await WorkerBackend.open(options, undefined, spawn);
  const stats = backend.call({ verb: 'stats', scope: me }, undefined);
  await assert.rejects(backend.call({ verb: 'get', scope: me, id: 'x' }, undefined), failsWith('unknown-id'));
  assert.equal((await stats).records, 3);
  await backend.close();
  assert.ok(spawned[0].terminated);
  await assert.rejects(backend.call({ verb: 'stats', scope: me }, undefined), failsWith('closed'));
});

test('an abort crosses, and the answer stays the one that the worker gives', async () => {
  const { spawn } = fakeWorkers((message, worker) => {
    opens(message, worker);
    if (message.type === 'abort') worker.say({ type: 'failure', id: message.id, error: { code: 'aborted', message: 'nothing was changed' } });
  });
  const backend = await WorkerBackend.open(options, undefined, spawn);
  const stop = new AbortController();
  const call = backend.call({ verb: 'stats', scope: me }, stop.signal);
  await Promise.resolve();
  stop.abort();
  await assert.rejects(call, failsWith('aborted'));
});

test('a worker that dies: pending calls reject with internal, the next call starts another on the same memory', async () => {
  const { spawn, spawned } = fakeWorkers((message, worker) => {
    opens(message, worker);
    if (message.type === 'call' && spawned.length === 2) worker.say({ type: 'answer', id: message.id, response: { kind: 'stats', records: 1 } });
  });
  const backend = await WorkerBackend.open(options, undefined, spawn);
  assert.equal(backend.created, true);
  const pending = backend.call({ verb: 'stats', scope: me }, undefined);
  await new Promise((resolve) => setTimeout(resolve));
  spawned[0].onerror({ preventDefault() {} });
  await assert.rejects(pending, failsWith('internal'));
  assert.ok(spawned[0].terminated);
  assert.equal((await backend.call({ verb: 'stats', scope: me }, undefined)).records, 1);
  assert.equal(spawned[1].sent[0].existing, true, 'what was there must be there');
  assert.equal(backend.created, true, 'still what the first opening found');
});

test('a worker that cannot start, one that refuses, and an opening that is given up', async () => {
  const broken = fakeWorkers((_message, worker) => worker.onerror?.({}));
  await assert.rejects(WorkerBackend.open(options, undefined, broken.spawn), failsWith('unsupported'));
  await assert.rejects(WorkerBackend.open(options, undefined, () => { throw new Error('blocked by policy'); }), failsWith('unsupported'));
  const refusing = fakeWorkers((_message, worker) => worker.say({ type: 'refused', error: { code: 'storage-denied', message: 'private mode' } }));
  await assert.rejects(WorkerBackend.open(options, undefined, refusing.spawn), failsWith('storage-denied'));
  assert.ok(refusing.spawned[0].terminated);
  const silent = fakeWorkers(() => {});
  const stop = new AbortController();
  const opening = WorkerBackend.open(options, stop.signal, silent.spawn);
  stop.abort();
  await assert.rejects(opening, failsWith('aborted'));
  assert.ok(silent.spawned[0].terminated);
});

test('single answers: the worker stays for the next question, answers one at a time, and ends with what goes wrong', async () => {
  const held = [];
  const { spawn, spawned } = fakeWorkers(({ request }, worker) => {
    if (request.verb === 'survey') worker.say({ type: 'refused', error: { code: 'corrupt', message: 'the head is damaged' } });
    else if (request.held) held.push(worker);
    else worker.say({ type: 'answered', response: { kind: 'profile', prompt: request.text } });
  });
  const ask = (request, signal) => answerOnce(options, { verb: 'profile', ...request }, signal, spawn);
  assert.equal((await ask({ text: 'first' })).prompt, 'first');
  assert.equal((await ask({ text: 'second' })).prompt, 'second');
  assert.equal(spawned.length, 1, 'the same worker');

  // While it is busy, another one is started; one of them is kept afterwards.
  const waiting = [ask({ held: true }), ask({ held: true })];
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(spawned.length, 2);
  for (const [at, worker] of held.entries()) worker.say({ type: 'answered', response: { kind: 'profile', prompt: `held ${at}` } });
  assert.deepEqual((await Promise.all(waiting)).map(({ prompt }) => prompt), ['held 0', 'held 1']);
  assert.deepEqual(spawned.map(({ terminated }) => terminated), [true, false]);

  await assert.rejects(ask({ verb: 'survey' }), failsWith('corrupt'));
  assert.ok(spawned[1].terminated);
  const stop = new AbortController();
  const given = ask({ held: true }, stop.signal);
  stop.abort();
  await assert.rejects(given, failsWith('aborted'));
  assert.equal(spawned.length, 3);
  assert.ok(spawned[2].terminated);

  // One that fails while nobody asks is not asked again.
  await ask({ text: 'fourth' });
  spawned[3].onerror({});
  assert.ok(spawned[3].terminated);
  assert.equal((await ask({ text: 'fifth' })).prompt, 'fifth');
  assert.equal(spawned.length, 5);
});
