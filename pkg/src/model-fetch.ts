import { modelMissing, verifyModel, type OnProgress } from './embedder.js';
import { ForemindError, aborted } from './errors.js';

const CACHE = 'foremind-models';
/** How long another tab's download is waited for. A suspended tab keeps its lock, so the wait is bounded. */
const LOCK_WAIT_MS = 60_000;

/** What to fetch, and what it must be. */
export interface ModelLocation {
  url: URL;
  sha256?: string;
  bytes?: number;
}

/**
 * The model from the app's own origin, kept in the Cache API under its hash and checked against it each time
 * it is read, so that it crosses the network once for each version. Tabs that start together download once.
 */
export async function fetchModel(location: ModelLocation, onProgress: OnProgress, signal: AbortSignal): Promise<Uint8Array> {
  const cached = await fromCache(location);
  if (cached) return cached;
  const download = async () => {
    // Another tab may have finished it while this one waited for the lock.
    const meanwhile = await fromCache(location);
    if (meanwhile) return meanwhile;
    const pack = await verifyModel(await fetchBytes(location, onProgress, signal), location.sha256);
    await toCache(location, pack);
    return pack;
  };
  const locks = globalThis.navigator?.locks;
  if (!locks) return download();
  const waiting = new AbortController();
  const stop = () => waiting.abort();
  signal.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(stop, LOCK_WAIT_MS);
  let held = false;
  try {
    return await locks.request(`foremind:model:${cacheKey(location)}`, { signal: waiting.signal }, () => {
      held = true;
      clearTimeout(timer);
      return download();
    });
  } catch (error) {
    if (signal.aborted) throw aborted();
    if (held) throw error;
    return download();
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

function cacheKey({ url, sha256 }: ModelLocation): string {
  // Never requested: only a name inside of the cache, on the model's own origin.
  const key = new URL(url);
  if (sha256 !== undefined) key.search = `?foremind-sha256=${sha256}`;
  return key.href;
}

async function fromCache(location: ModelLocation): Promise<Uint8Array | undefined> {
  try {
    const cache = await caches.open(CACHE);
    const response = await cache.match(cacheKey(location));
    if (!response) return undefined;
    const pack = new Uint8Array(await response.arrayBuffer());
    try {
      return await verifyModel(pack, location.sha256);
    } catch {
      await cache.delete(cacheKey(location));
      return undefined;
    }
  } catch {
    // No Cache API here (insecure context, private mode): the model is fetched, the browser's HTTP cache helps.
    return undefined;
  }
}

async function toCache(location: ModelLocation, pack: Uint8Array): Promise<void> {
  try {
    const cache = await caches.open(CACHE);
    const key = cacheKey(location);
    await cache.put(key, new Response(pack as Uint8Array<ArrayBuffer>, { headers: { 'content-type': 'application/octet-stream' } }));
    // Earlier versions of the same file are of no more use.
    const path = new URL(key).pathname;
    for (const request of await cache.keys()) {
      if (request.url !== key && new URL(request.url).pathname === path) await cache.delete(request);
    }
  } catch {
    // No room or no Cache API: it works this time, and is fetched again the next.
  }
}

async function fetchBytes({ url, bytes }: ModelLocation, onProgress: OnProgress, signal: AbortSignal): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url, { signal, credentials: 'same-origin' });
  } catch {
    if (signal.aborted) throw aborted();
    throw modelMissing('the request failed');
  }
  if (!response.ok) throw modelMissing(`HTTP status ${response.status}`);
  // A single-page server answers what it does not have with its start page.
  if (response.headers.get('content-type')?.startsWith('text/html')) throw modelMissing('the server answered with a page');
  const encoded = response.headers.has('content-encoding');
  const total = bytes ?? (encoded ? 0 : Number(response.headers.get('content-length') ?? 0));
  try {
    return await readAll(response, total, onProgress);
  } catch (error) {
    if (signal.aborted) throw aborted();
    if (error instanceof ForemindError) throw error;
    throw modelMissing('the download was cut');
  }
}

async function readAll(response: Response, total: number, onProgress: OnProgress): Promise<Uint8Array> {
  if (!response.body) return new Uint8Array(await response.arrayBuffer());
  const reader = response.body.getReader();
  const parts: Uint8Array[] = [];
  let loaded = 0;
  onProgress({ phase: 'model', loaded, total });
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    onProgress({ phase: 'model', loaded, total });
  }
  const pack = new Uint8Array(loaded);
  let at = 0;
  for (const part of parts) {
    pack.set(part, at);
    at += part.length;
  }
  return pack;
}
