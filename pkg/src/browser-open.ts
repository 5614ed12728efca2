import { browserModel } from './browser-model.js';
import type { BrowserOptions, PartsOf } from './browser-parts.js';
import type { CoreRequest, CoreResponse } from './core.js';
import { aborted } from './errors.js';
import { WorkerBackend, answerOnce, type Spawn } from './rpc/client.js';
import { Session, once, type Backend } from './session.js';
import type { OpenOptions } from './types.js';
import { openOptionsOf } from './validate.js';

/** Opens a memory in a worker of its own, or in this realm where there are no workers. */
export async function openInBrowser(options: OpenOptions, parts: PartsOf, spawn: Spawn): Promise<{ name: string; backend: Backend }> {
  const { name, storage, signal } = openOptionsOf(options);
  const plain = plainOf(options);
  if (signal?.aborted) throw aborted();
  const backend: Backend =
    typeof Worker === 'undefined' ? await Session.open(await parts(plain), false, signal) : await WorkerBackend.open(plain, signal, spawn);
  if (storage === 'default') askToPersist(backend);
  return { name, backend };
}

/** One answer from a memory that is not opened for it. */
export async function askInBrowser(options: OpenOptions, request: CoreRequest, parts: PartsOf, spawn: Spawn): Promise<CoreResponse> {
  const { signal } = openOptionsOf(options);
  const plain = plainOf({ ...options, model: false });
  if (signal?.aborted) throw aborted();
  return typeof Worker === 'undefined' ? once(await parts(plain), request, signal) : answerOnce(plain, request, signal, spawn);
}

function plainOf(options: OpenOptions): BrowserOptions {
  const { name, key, model, storage, policy } = openOptionsOf(options);
  return { name, storage, model: browserModel(model), ...(key === undefined ? {} : { key }), ...(policy === undefined ? {} : { policy }) };
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
