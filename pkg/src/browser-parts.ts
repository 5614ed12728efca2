import { verifyModel, packagedPin, type EmbedderSource } from './embedder.js';
import { Modules } from './glue.js';
import { DeviceKey, HostKey, KEY_BYTES } from './keys.js';
import { fetchModel, type ModelLocation } from './model-fetch.js';
import type { SessionParts } from './session.js';
import { IndexedDbStore } from './stores/indexeddb.js';
import { MemoryStore } from './stores/memory.js';

/** What opens a memory in a browser, as it crosses to the worker: plain and cloneable. */
export interface BrowserOptions {
  name: string;
  key?: Uint8Array;
  storage: 'default' | 'memory';
  model: BrowserModel;
}

export type BrowserModel = { from: 'package' } | { from: 'none' } | { from: 'bytes'; pack: Uint8Array } | { from: 'url'; url: string; sha256?: string };

let modules: Modules | undefined;

/** In the worker, or in the page where there is no worker. */
export async function browserParts(options: BrowserOptions): Promise<SessionParts> {
  modules ??= new Modules(
    (core) => core.default(),
    (embed) => embed.default(),
  );
  // The key first: what the environment lacks is said before a database is made.
  const keys = keysOf(options);
  const core = await modules.core();
  const store = options.storage === 'memory' ? new MemoryStore() : await IndexedDbStore.open(options.name);
  return { core, store, keys, embedder: embedderOf(modules, options.model) };
}

/** A memory that ends with the process needs no key that outlives it, and opens where storage is denied. */
function keysOf({ name, key, storage }: BrowserOptions): HostKey | DeviceKey {
  if (key) return new HostKey(key);
  if (storage === 'memory') return new HostKey(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  return new DeviceKey(name);
}

function embedderOf(modules: Modules, model: BrowserModel): EmbedderSource | undefined {
  const glue = () => modules.embed();
  switch (model.from) {
    case 'none':
      return undefined;
    case 'bytes':
      return { glue, pack: () => verifyModel(model.pack, undefined) };
    case 'url': {
      const location: ModelLocation = { url: new URL(model.url) };
      if (model.sha256 !== undefined) location.sha256 = model.sha256;
      return { glue, pack: (onProgress, signal) => fetchModel(location, onProgress, signal) };
    }
    case 'package': {
      const location: ModelLocation = { url: new URL('./minilm-l6-v2.fmpack', import.meta.url), ...packagedPin() };
      return { glue, pack: (onProgress, signal) => fetchModel(location, onProgress, signal) };
    }
  }
}
