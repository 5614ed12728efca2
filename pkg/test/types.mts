// Checked by tsc against the installed package, never run.
import { Embedder, ERROR_CODES, ForemindError, Memory, similarity, type Embedding, type ErrorCode, type Fault, type MemoryRecord, type Prompt } from 'foremind';

const memory: Memory = await Memory.open({ name: 'ada', key: new Uint8Array(32), model: { url: '/model', sha256: '0'.repeat(64) } });
const me = { user: 'ada' };

const { records } = await memory.remember(me, 'text', { tier: 'profile', signal: AbortSignal.timeout(1000) });
const record: MemoryRecord | undefined = records[0]?.record;
const prompt: Prompt = await memory.recall(me, 'query', { budgetTokens: 512 });
const grade: 'modifier' | 'circumstance' | 'informer' | undefined = prompt.profile[0]?.record.route.grade;
await memory.forget(me, { id: record?.id ?? '' });
await memory.forget(me, 'scope');
memory.on('progress', ({ phase, loaded, total }) => [phase satisfies 'model' | 'backfill' | 'encode', loaded + total]);
memory.on('changed', ({ by }) => by satisfies 'self' | 'other');
const durability: 'persistent' | 'best-effort' | 'volatile' = memory.durability;
const { modelId } = await memory.ready;

const embedder: Embedder = await Embedder.open({ model: { url: '/model', bytes: 1, hash: '0'.repeat(64) } });
const [a, b]: Embedding[] = await embedder.encode(['one', 'two'], { onProgress: ({ loaded }) => loaded.toFixed() });
if (a && b) similarity(a, b).toFixed();
await Memory.open({ name: 'ada', model: { id: 'mine/1', onnx: '/m.onnx', vocabulary: '/vocab.txt' } });

const file: Uint8Array = await memory.export({ passphrase: 'words' });
const { records: taken } = await memory.import(new Blob([new Uint8Array(1)]), { passphrase: 'words', restore: false });
const restored: Memory = await Memory.import({ name: 'bob', key: { passphrase: 'words' } }, file);
const { whole, damaged } = await memory.verify();
const { kept, lost, changed } = await Memory.repair({ name: 'ada', key: 'device' });
const glance: Prompt = await Memory.profile({ name: 'ada' }, me, { budgetTokens: 100 });
await memory.rekey('device');
const { usedBytes, quotaBytes } = await memory.storage();
console.log(taken, restored.created, whole, damaged[0]?.why, kept + lost, changed, glance.tokens, usedBytes, quotaBytes);
// @ts-expect-error: sealed or plain is said
await memory.export({});
// @ts-expect-error: a key is bytes, a passphrase or the device's
await memory.rekey('secret');

try {
  await memory.close();
} catch (error) {
  if (error instanceof ForemindError) {
    const fault: Fault = error.fault;
    switch (error.code) {
      case 'quota-exceeded':
      case 'storage-lost':
        console.log(fault, ERROR_CODES);
    }
    // @ts-expect-error: no such code
    if (error.code === 'no-such-code') console.log(error.code satisfies ErrorCode);
  }
}

// @ts-expect-error: a scope is mandatory
await memory.recall('query');
// @ts-expect-error: a scope names a user
await memory.recall({}, 'query');
// @ts-expect-error: no such tier
await memory.update(me, 'id', { tier: 'top' });
// @ts-expect-error: no such event
memory.on('nothing', () => {});
// @ts-expect-error: a name is mandatory
await Memory.open({});
// @ts-expect-error: what the implementation hangs on is not public
new Memory('ada', {});

console.log(grade, durability, modelId);
