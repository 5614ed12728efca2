import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { NodeFsStore, folderName } from '../dist/stores/node-fs.js';
import { failsWith, testIn } from './support.mjs';

const bytes = (text) => new TextEncoder().encode(text);
const text = (value) => value && new TextDecoder().decode(value);
const entry = (digit) => digit.repeat(32);
/** A head of a generation: the token is its first four bytes. */
const head = (generation) => bytes(`t-${String(generation).padStart(2, '0')} the manifest`);
const token = (generation) => head(generation).slice(0, 4);

const first = { puts: [['head', head(1)], ['key', bytes('wrapped')], [entry('a'), bytes('one')]], deletes: [], strict: true };
const second = { expectedHead: token(1), puts: [['head', head(2)], [entry('b'), bytes('two')]], deletes: [entry('a')], strict: false };

async function state(store) {
  return (await store.read(['head', 'key', entry('a'), entry('b')])).map(text);
}
const afterFirst = ['t-01 the manifest', 'wrapped', 'one', undefined];
const afterSecond = ['t-02 the manifest', 'wrapped', undefined, 'two'];

testIn('compare and swap', async (directory) => {
  const store = await NodeFsStore.open(directory, 'ada');
  assert.deepEqual(await state(store), [undefined, undefined, undefined, undefined]);
  assert.equal(await store.commit(second), false, 'no head is not head 1');
  assert.equal(await store.commit(first), true);
  assert.equal(await store.commit(first), false, 'there is a memory already');
  assert.deepEqual(await state(store), afterFirst);
  assert.equal(await store.commit(second), true);
  assert.equal(await store.commit(second), false, 'the head has moved on');
  assert.deepEqual(await state(store), afterSecond);
  assert.deepEqual((await readdir(join(directory, 'm-ada'))).sort(), [entry('b'), 'head', 'key'], 'nothing is left lying about');
  await store.close();
});

testIn('a store with a key but no head is no room for a new memory', async (directory) => {
  const store = await NodeFsStore.open(directory, 'ada');
  await writeFile(join(directory, 'm-ada', 'key'), 'wrapped');
  assert.equal(await store.commit(first), false);
});

testIn('eight writers in two stores: every increment counts', async (directory) => {
  const stores = [await NodeFsStore.open(directory, 'ada'), await NodeFsStore.open(directory, 'ada')];
  await stores[0].commit(first);
  const increment = async (store) => {
    for (;;) {
      const [current] = await store.read(['head']);
      const generation = Number(text(current).slice(2, 4));
      if (await store.commit({ expectedHead: current.slice(0, 4), puts: [['head', head(generation + 1)]], deletes: [], strict: false })) return;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, n) => increment(stores[n % 2])));
  assert.equal((await state(stores[1]))[0], 't-09 the manifest');
});

/** Runs the second batch in a process of its own that is killed at its nth file operation. */
function dieAt(directory, operation) {
  const program = `
    import { syncBuiltinESMExports, createRequire } from 'node:module';
    const files = createRequire(import.meta.url)('node:fs/promises');
    let count = 0;
    const step = async (body, half) => {
      count += 1;
      if (count === ${operation}) {
        if (half) await half();
        process.kill(process.pid, 'SIGKILL');
        await new Promise(() => {});
      }
      return body();
    };
    const { open } = files;
    for (const name of ['link', 'readFile', 'readdir', 'rename', 'rm', 'stat', 'unlink']) {
      const real = files[name];
      files[name] = (...args) => step(() => real(...args));
    }
    files.open = (...args) => step(async () => {
      const file = await open(...args);
      const [write, sync, close] = [file.writeFile.bind(file), file.sync.bind(file), file.close.bind(file)];
      file.writeFile = (data) => step(() => write(data), () => write(data.slice(0, data.length >> 1)));
      file.sync = () => step(sync);
      file.close = () => step(close);
      return file;
    });
    syncBuiltinESMExports();
    const { NodeFsStore } = await import(${JSON.stringify(new URL('../dist/stores/node-fs.js', import.meta.url).href)});
    const store = await NodeFsStore.open(${JSON.stringify(directory)}, 'ada');
    const u8 = (text) => new TextEncoder().encode(text);
    const written = await store.commit({
      expectedHead: u8(${JSON.stringify(text(token(1)))}),
      puts: [['head', u8(${JSON.stringify(text(head(2)))})], [${JSON.stringify(entry('b'))}, u8('two')]],
      deletes: [${JSON.stringify(entry('a'))}],
      strict: false,
    });
    process.exit(written ? 0 : 3);
  `;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('error', reject);
    child.on('exit', (code, signal) => resolve(signal ?? code));
  });
}

testIn('killed at each file operation of a commit: the old state or the new one, and the next commit works', async (directory) => {
  let seen = '';
  let operation = 1;
  for (; ; operation++) {
    const folder = join(directory, String(operation));
    const before = await NodeFsStore.open(folder, 'ada');
    await before.commit(first);
    const end = await dieAt(folder, operation);
    const after = await NodeFsStore.open(folder, 'ada');
    const found = await state(after);
    const isNew = found[0] === afterSecond[0];
    assert.deepEqual(found, isNew ? afterSecond : afterFirst, `a mixture after operation ${operation}`);
    if (end === 0) {
      assert.ok(isNew, 'acknowledged, so there');
      break;
    }
    assert.equal(end, 'SIGKILL');
    seen += isNew ? 'n' : 'o';
    const expectedHead = token(isNew ? 2 : 1);
    assert.equal(await after.commit({ expectedHead, puts: [['head', head(3)]], deletes: [], strict: false }), true);
    assert.equal((await state(after))[0], 't-03 the manifest');
    assert.ok(!(await readdir(join(folder, 'm-ada'))).some((name) => name.endsWith('.tmp') || name === 'journal'));
  }
  assert.match(seen, /^o{5,}n{5,}$/, 'old up to the rename of the journal, new from there on');
});

testIn('a journal that the disk cut is refused as a whole', async (directory) => {
  const store = await NodeFsStore.open(directory, 'ada');
  await store.commit(first);
  const journal = join(directory, 'm-ada', 'journal');
  for (const cut of ['', 'foremind-journal-1\n', `foremind-journal-1\n${'x'.repeat(60)}`]) {
    await writeFile(journal, cut);
    assert.deepEqual(await state(store), afterFirst);
  }
  await assert.rejects(readFile(journal), { code: 'ENOENT' });
});

testIn('a lock of a dead process, an old one and a broken one are taken over; a live one is waited for', async (directory) => {
  const store = await NodeFsStore.open(directory, 'ada');
  await store.commit(first);
  const lock = join(directory, 'm-ada', 'lock');
  const gone = await new Promise((resolve) => {
    const child = spawn(process.execPath, ['-e', '']);
    child.on('exit', () => resolve(child.pid));
  });
  await writeFile(lock, JSON.stringify({ pid: gone, host: hostname(), nonce: 'x' }));
  assert.deepEqual(await state(store), afterFirst, 'dead');

  await writeFile(lock, JSON.stringify({ pid: process.pid, host: 'elsewhere', nonce: 'x' }));
  const anHourAgo = new Date(Date.now() - 3_600_000);
  await utimes(lock, anHourAgo, anHourAgo);
  assert.deepEqual(await state(store), afterFirst, 'old');

  await writeFile(lock, '{');
  assert.deepEqual(await state(store), afterFirst, 'broken');

  await writeFile(lock, JSON.stringify({ pid: process.pid, host: hostname(), nonce: 'x' }));
  let done = false;
  const waiting = state(store).then((found) => {
    done = true;
    return found;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(done, false, 'a live owner is respected');
  await import('node:fs/promises').then(({ unlink }) => unlink(lock));
  assert.deepEqual(await waiting, afterFirst);
});

testIn('keys that are none never become file names', async (directory) => {
  const store = await NodeFsStore.open(directory, 'ada');
  for (const bad of ['../up', 'lock', 'journal', '', 'A'.repeat(32)]) {
    await assert.rejects(store.commit({ puts: [[bad, bytes('x')]], deletes: [], strict: false }), failsWith('internal'), bad);
  }
});

testIn('a folder that cannot be made', async (directory) => {
  await writeFile(join(directory, 'file'), '');
  await assert.rejects(NodeFsStore.open(join(directory, 'file'), 'ada'), (error) => error.code.startsWith('storage-'));
});

test('names that some file system would fold together get folders of their own', () => {
  const names = ['ada', 'Ada', 'ADA', 'ada.', 'ada~', 'a.d.a', 'x'.repeat(128), 'X'.repeat(128), 'con'];
  const folders = names.map(folderName);
  assert.equal(new Set(folders.map((name) => name.toLowerCase())).size, names.length);
  for (const folder of folders) assert.match(folder, /^[mh]-[a-z0-9_%-]{1,253}$/);
});
