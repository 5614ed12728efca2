// Embeds the component in JavaScript: remember.mjs COMPONENT STORY [NOW_MS].
//
// jco makes an ES module of it, which any engine with WebAssembly runs. What it imports is all that a host has to give: a bucket
// that compares and swaps, a clock, randomness. Put your own store in place of the map: it has to answer at once, to read what
// was written, and `swap` has to be one step.
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { transpile } from '@bytecodealliance/jco-transpile';

const [component, story, start] = process.argv.slice(2);
if (!story) throw new Error('usage: remember.mjs COMPONENT STORY [NOW_MS]');

/** What the clock shows; absent: the time. */
let nowMs = start === undefined ? undefined : Number(start);

const values = new Map();

class Bucket {
  constructor(name) {
    this.prefix = `${name}/`;
  }
  get(key) {
    return values.get(this.prefix + key);
  }
  set(key, value) {
    values.set(this.prefix + key, value.slice());
  }
  delete(key) {
    values.delete(this.prefix + key);
  }
  exists(key) {
    return values.has(this.prefix + key);
  }
  listKeys() {
    const own = [...values.keys()].filter((key) => key.startsWith(this.prefix));
    return { keys: own.map((key) => key.slice(this.prefix.length)), cursor: undefined };
  }
}

class Cas {
  static new(bucket, key) {
    return Object.assign(new Cas(), { key: bucket.prefix + key, seen: values.get(bucket.prefix + key) });
  }
  current() {
    return this.seen;
  }
}

/** An answer that is an error is thrown, with the case as its payload. */
function swap(cas, value) {
  const now = values.get(cas.key);
  if (now !== cas.seen) throw { payload: { tag: 'cas-failed', val: Object.assign(new Cas(), { key: cas.key, seen: now }) } };
  values.set(cas.key, value.slice());
}

const imports = {
  'wasi:keyvalue/store': { Bucket, open: (name) => new Bucket(name) },
  'wasi:keyvalue/atomics': { Cas, swap },
  'wasi:clocks/wall-clock': {
    now() {
      const ms = nowMs ?? Date.now();
      return { seconds: BigInt(Math.floor(ms / 1000)), nanoseconds: (ms % 1000) * 1_000_000 };
    },
  },
  'wasi:random/random': { getRandomBytes: (length) => crypto.getRandomValues(new Uint8Array(Number(length))) },
};

/** The component as a module; `cargo xtask` or your bundler would do this once, when it builds. */
async function load(component) {
  const { files } = await transpile(component, { name: 'foremind', instantiation: 'async', wasiShim: false, noNodejsCompat: true, quiet: true });
  const folder = await mkdtemp(join(dirname(fileURLToPath(import.meta.url)), 'made-'));
  try {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), content);
    }
    const { instantiate } = await import(pathToFileURL(join(folder, 'foremind.js')));
    return await instantiate(async (name) => WebAssembly.compile(await readFile(join(folder, name))), imports);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const { memories } = await load(component);
// 32 bytes that the host keeps, apart from the store.
const memory = memories.Memory.open('ada', { key: new Uint8Array(32).fill(7), utcOffsetMin: 0 });
const ada = { user: 'ada' };
for (const line of (await readFile(story, 'utf8')).split('\n')) {
  if (nowMs !== undefined) nowMs += 1000;
  const [verb, text] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)];
  if (verb === 'tell') memory.remember(ada, text);
  if (verb === 'ask') process.stdout.write(`PROMPT: ${text}\n${memory.recall(ada, text, undefined).text}\n`);
}
