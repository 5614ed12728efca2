import { browserParts, type BrowserModel, type BrowserOptions } from './browser-parts.js';
import { aborted } from './errors.js';
import { OpenMemory } from './memory.js';
import { WorkerBackend } from './rpc/client.js';
import { Session, type Backend } from './session.js';
import type { ModelSource, OpenOptions } from './types.js';
import { invalid, openOptionsOf } from './validate.js';

export * from './public.js';

/** One open memory; see {@link OpenMemory}. */
export class Memory extends OpenMemory {
  /**
   * Opens a memory, and begins it when nothing is stored under its name (see `created`). Everything runs in a
   * worker of its own where there are workers. Rejects with `unsupported`, `storage-denied`, `storage-lost`,
   * `wrong-key`, `key-missing`, `corrupt`, `newer-format`.
   */
  static async open(options: OpenOptions): Promise<Memory> {
    const { name, key, model, storage, signal } = openOptionsOf(options);
    if (signal?.aborted) throw aborted();
    const plain: BrowserOptions = { name, storage, model: modelOf(model) };
    if (key) plain.key = key.slice();
    const backend: Backend =
      typeof Worker === 'undefined'
        ? await Session.open(await browserParts(plain), false, signal)
        : await WorkerBackend.open(plain, signal);
    if (storage === 'default') askToPersist(backend);
    return new Memory(name, backend);
  }
}

/** Only a page may ask, and the answer may be a person's: nothing waits for it. */
function askToPersist(backend: Backend): void {
  if (typeof document === 'undefined' || backend.durability === 'persistent') return;
  navigator.storage?.persist?.().then(
    (granted) => {
      if (!granted) return;
      backend.durability = 'persistent';
      backend.onevent?.({ name: 'durability', detail: 'persistent' });
    },
    () => {},
  );
}

function modelOf(model: ModelSource | undefined): BrowserModel {
  if (model === undefined) return { from: 'package' };
  if (model === false) return { from: 'none' };
  if (model instanceof Uint8Array) return { from: 'bytes', pack: model };
  if (typeof model === 'string' || model instanceof URL) return { from: 'url', url: absolute(model) };
  return { from: 'url', url: absolute(model.url), sha256: model.sha256 };
}

/** Relative to the page, as every other URL a page names; the worker has another base. */
function absolute(url: string | URL): string {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    throw invalid('model is not a URL');
  }
}
