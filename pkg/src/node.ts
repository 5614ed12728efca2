import { ForemindError, aborted } from './errors.js';
import { HostKey } from './keys.js';
import { OpenMemory } from './memory.js';
import { defaultDirectory, nodeEmbedder, nodeModules } from './node-parts.js';
import { Session } from './session.js';
import { MemoryStore } from './stores/memory.js';
import { NodeFsStore } from './stores/node-fs.js';
import type { OpenOptions } from './types.js';
import { openOptionsOf } from './validate.js';

export * from './public.js';

/** One open memory; see {@link OpenMemory}. */
export class Memory extends OpenMemory {
  /** Opens a memory, and begins it when nothing is stored under its name (see `created`). Runs in this thread. */
  static async open(options: OpenOptions): Promise<Memory> {
    const { name, key, model, storage, directory, signal } = openOptionsOf(options);
    if (signal?.aborted) throw aborted();
    if (!key) {
      throw new ForemindError('key-missing', 'outside of a browser there is no device key; pass 32 secret random bytes as `key`');
    }
    const embedder = nodeEmbedder(model);
    const core = await nodeModules().core();
    const store = storage === 'memory' ? new MemoryStore() : await NodeFsStore.open(directory ?? defaultDirectory(), name);
    return new Memory(name, await Session.open({ core, store, keys: new HostKey(key), embedder }, false, signal));
  }
}
