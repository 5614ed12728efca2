import { coreFrom, type Compiled } from './browser-core.js';
import { browserSource, type BrowserModel } from './browser-model.js';
import type { EmbedGlue } from './embedder.js';
import { Modules } from './glue.js';
import type { HeadFiles } from './heads.js';
import { DeviceKey, HostKey, KEY_BYTES, PassphraseKey, type Keys } from './keys.js';
import { together, type SessionParts } from './session.js';
import { IndexedDbStore } from './stores/indexeddb.js';
import { MemoryStore } from './stores/memory.js';
import type { KeySource } from './types.js';

/** What opens a memory in a browser, as it crosses to the worker: plain and cloneable. */
export interface BrowserOptions {
  name: string;
  key?: KeySource;
  storage: 'default' | 'memory';
  model: BrowserModel;
  policy?: string;
}

/** In a worker, or in the page where there is no worker: what makes the parts of a memory. */
export type PartsOf = (options: BrowserOptions) => Promise<SessionParts>;

/** `embed` makes the module that a variant of the package embeds with, `compiled` is the core's where another realm compiles it. */
export function partsWith(embed: () => Promise<EmbedGlue>, compiled?: Compiled): PartsOf {
  let modules: Modules | undefined;
  return async (options) => {
    modules ??= new Modules(coreFrom(compiled), data, embed);
    const made = modules;
    // The key first: what the environment lacks is said before a database is made.
    const keys = keysOf(options);
    const opening = options.storage === 'memory' ? Promise.resolve(new MemoryStore()) : IndexedDbStore.open(options.name);
    const { core, store } = await together(made.core(), opening);
    return { core, store, keys, keysFor: (key) => keysFor(options.name, key), embedder: browserSource(() => made.embed(), options.model), heads, policy: options.policy };
  };
}

// Written so that bundlers find the files.
const heads: HeadFiles = {
  adapter: (signal) => fetched(new URL('./foremind_route.fmadpt', import.meta.url), signal),
  ngrams: (signal) => fetched(new URL('./foremind_ngrams.bin', import.meta.url), signal),
};

const data = async () => (await found(fetch(new URL('./foremind_data.txt', import.meta.url)))).text();

async function fetched(url: URL, signal: AbortSignal): Promise<Uint8Array> {
  return new Uint8Array(await (await found(fetch(url, { signal }))).arrayBuffer());
}

async function found(response: Promise<Response>): Promise<Response> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`status ${status}`);
  return response;
}

/** A memory that ends with the process needs no key that outlives it, and opens where storage is denied. */
function keysOf({ name, key, storage }: BrowserOptions): Keys {
  if (storage === 'memory' && key === undefined) return new HostKey(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  return keysFor(name, key ?? 'device');
}

function keysFor(name: string, key: KeySource): Keys {
  if (key === 'device') return new DeviceKey(name);
  return key instanceof Uint8Array ? new HostKey(key) : new PassphraseKey(key.passphrase);
}
