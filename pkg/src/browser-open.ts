import { browserModel } from './browser-model.js';
import type { BrowserOptions, PartsOf } from './browser-parts.js';
import { aborted } from './errors.js';
import { WorkerBackend, type Spawn } from './rpc/client.js';
import { Session, type Backend } from './session.js';
import type { OpenOptions } from './types.js';
import { openOptionsOf } from './validate.js';

/** Opens a memory in a worker of its own, or in this realm where there are no workers. */
export async function openInBrowser(options: OpenOptions, parts: PartsOf, spawn: Spawn): Promise<{ name: string; backend: Backend }> {
  const { name, key, model, storage, signal } = openOptionsOf(options);
  if (signal?.aborted) throw aborted();
  const plain: BrowserOptions = { name, storage, model: browserModel(model) };
  if (key) plain.key = key.slice();
  const backend: Backend =
    typeof Worker === 'undefined' ? await Session.open(await parts(plain), false, signal) : await WorkerBackend.open(plain, signal, spawn);
  if (storage === 'default') askToPersist(backend);
  return { name, backend };
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
