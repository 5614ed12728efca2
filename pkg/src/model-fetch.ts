import { modelMissing, type EmbedderObject, type Intakes, type OnProgress } from './embedder.js';
import { aborted, isPlainError } from './errors.js';
import type { ModelPin, PackIntake } from './intake.js';
import { verifySha256 } from './sha256.js';

const CACHE = 'foremind-models';
/** How long another tab's download is waited for. A suspended tab keeps its lock, so the wait is bounded. */
const LOCK_WAIT_MS = 60_000;
/** Chunks that may wait for the cache's disk; the download waits with them. */
const WAITING_CHUNKS = 4;

/** What to fetch, and what it must be. */
export interface ModelLocation extends ModelPin {
  url: URL;
  sha256?: string;
}

/**
 * The model from the app's own origin, kept in the Cache API under its hash and checked each time it is read, so that it
 * crosses the network once for each version. Tabs that start together download once. From the network and from the cache
 * it goes to the module chunk by chunk.
 */
export async function fetchModel(location: ModelLocation, intakes: Intakes, onProgress: OnProgress, signal: AbortSignal): Promise<EmbedderObject> {
  const cached = await fromCache(location, intakes, signal);
  if (cached) return cached;
  const once = async () => {
    // Another tab may have finished it while this one waited for the lock.
    return (await fromCache(location, intakes, signal)) ?? (await download(location, intakes, onProgress, signal));
  };
  const locks = globalThis.navigator?.locks;
  if (!locks) return once();
  const waiting = new AbortController();
  const stop = () => waiting.abort();
  signal.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(stop, LOCK_WAIT_MS);
  let held = false;
  try {
    return await locks.request(`foremind:model:${cacheKey(location)}`, { signal: waiting.signal }, () => {
      held = true;
      clearTimeout(timer);
      return once();
    });
  } catch (error) {
    if (signal.aborted) throw aborted();
    if (held) throw error;
    return once();
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/** The whole of a file that is not worth caching, such as a vocabulary that a user brings. */
export async function fetchBytes(url: URL, onProgress: OnProgress, signal: AbortSignal): Promise<Uint8Array> {
  const response = await request(url, signal);
  const parts: Uint8Array[] = [];
  await pump(response, signal, 0, onProgress, (chunk) => void parts.push(chunk));
  return concatenated(parts);
}

function cacheKey({ url, hash, sha256 }: ModelLocation): string {
  // Never requested: only a name inside of the cache, on the model's own origin.
  const key = new URL(url);
  if (hash !== undefined) key.search = `?foremind-hash=${hash}`;
  else if (sha256 !== undefined) key.search = `?foremind-sha256=${sha256}`;
  return key.href;
}

/** The name of the entry that says that the one under `key` is whole. Browsers differ in whether an entry whose body is
 * still being written, or whose writer died, can be seen. */
function wholeKey(key: string): string {
  const whole = new URL(key);
  whole.searchParams.append('foremind-whole', '');
  return whole.href;
}

async function remove(cache: Cache, key: string): Promise<void> {
  // The mark first: without it the other entry is nothing.
  await cache.delete(wholeKey(key)).catch(() => {});
  await cache.delete(key).catch(() => {});
}

async function fromCache(location: ModelLocation, intakes: Intakes, signal: AbortSignal): Promise<EmbedderObject | undefined> {
  const kept = await lookUp(location);
  if (!kept) return undefined;
  const taking = await Taking.begin(location, intakes);
  try {
    await pump(kept.response, signal, 0, () => {}, (chunk) => taking.push(chunk));
    return await taking.finish();
  } catch (error) {
    taking.drop();
    if (signal.aborted) throw aborted();
    // A trap says nothing about the file. Everything else does: it is thrown away and fetched again.
    if (!isPlainError(error) || error.code === 'unsupported') throw error;
    await remove(kept.cache, cacheKey(location));
    return undefined;
  }
}

async function lookUp(location: ModelLocation): Promise<{ cache: Cache; response: Response } | undefined> {
  try {
    const cache = await caches.open(CACHE);
    const key = cacheKey(location);
    if (!(await cache.match(wholeKey(key)))) return undefined;
    const response = await cache.match(key);
    return response && { cache, response };
  } catch {
    // No Cache API here (insecure context, private mode): the model is fetched, the browser's HTTP cache helps.
    return undefined;
  }
}

async function download(location: ModelLocation, intakes: Intakes, onProgress: OnProgress, signal: AbortSignal): Promise<EmbedderObject> {
  const response = await request(location.url, signal);
  const encoded = response.headers.has('content-encoding');
  const total = location.bytes ?? (encoded ? 0 : Number(response.headers.get('content-length') ?? 0));
  const taking = await Taking.begin(location, intakes).catch((error: unknown) => {
    response.body?.cancel().catch(() => {});
    throw error;
  });
  const copy = await CacheCopy.begin(cacheKey(location));
  try {
    await pump(response, signal, total, onProgress, async (chunk) => {
      taking.push(chunk);
      await copy?.write(chunk);
    });
    const embedder = await taking.finish();
    await copy?.keep();
    return embedder;
  } catch (error) {
    taking.drop();
    await copy?.discard();
    if (signal.aborted) throw aborted();
    throw error;
  }
}

/** A file on its way into the module. One that is pinned to its SHA-256 is whole in JavaScript first, because browsers
 * hash only what is whole. */
class Taking {
  readonly #intake: PackIntake;
  readonly #sha256: string | undefined;
  readonly #parts: Uint8Array[] = [];

  private constructor(intake: PackIntake, sha256: string | undefined) {
    this.#intake = intake;
    this.#sha256 = sha256;
  }

  static async begin({ sha256, bytes, hash }: ModelLocation, intakes: Intakes): Promise<Taking> {
    const pin: ModelPin = {};
    if (bytes !== undefined) pin.bytes = bytes;
    if (hash !== undefined) pin.hash = hash;
    return new Taking(await intakes.open(pin), sha256);
  }

  push(chunk: Uint8Array): void {
    if (this.#sha256 === undefined) this.#intake.push(chunk);
    else this.#parts.push(chunk);
  }

  async finish(): Promise<EmbedderObject> {
    if (this.#sha256 !== undefined) {
      const whole = concatenated(this.#parts);
      await verifySha256(whole, this.#sha256);
      this.#intake.push(whole);
    }
    return this.#intake.finish();
  }

  drop(): void {
    this.#intake.drop();
  }
}

/** A copy that grows in the cache beside the download, and counts only after `keep`. */
class CacheCopy {
  readonly #cache: Cache;
  readonly #key: string;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #wanted: () => void = () => {};
  #dead = false;
  readonly #put: Promise<void>;

  private constructor(cache: Cache, key: string) {
    this.#cache = cache;
    this.#key = key;
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#wanted(),
        cancel: () => this.#die(),
      },
      { highWaterMark: WAITING_CHUNKS },
    );
    const response = new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>, { headers: { 'content-type': 'application/octet-stream' } });
    this.#put = cache.put(key, response);
    // No room: it works this time, and is fetched again the next.
    this.#put.catch(() => this.#die());
  }

  static async begin(key: string): Promise<CacheCopy | undefined> {
    try {
      return new CacheCopy(await caches.open(CACHE), key);
    } catch {
      return undefined;
    }
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#dead) return;
    this.#controller.enqueue(chunk);
    while (!this.#dead && (this.#controller.desiredSize ?? 1) <= 0) {
      await new Promise<void>((resolve) => {
        this.#wanted = resolve;
      });
    }
  }

  async keep(): Promise<void> {
    if (this.#dead) return;
    try {
      this.#controller.close();
      await this.#put;
      const mark = wholeKey(this.#key);
      await this.#cache.put(mark, new Response());
      // Earlier versions of the same file are of no more use.
      const path = new URL(this.#key).pathname;
      for (const request of await this.#cache.keys()) {
        if (![this.#key, mark].includes(request.url) && new URL(request.url).pathname === path) await this.#cache.delete(request);
      }
    } catch {
      // As in the constructor.
    }
  }

  async discard(): Promise<void> {
    if (!this.#dead) this.#controller.error(new Error('the download was not finished'));
    this.#die();
    await this.#put.catch(() => {});
    await remove(this.#cache, this.#key);
  }

  #die(): void {
    this.#dead = true;
    this.#wanted();
  }
}

async function request(url: URL, signal: AbortSignal): Promise<Response> {
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
  return response;
}

/** Hands the body on chunk by chunk. */
async function pump(
  response: Response,
  signal: AbortSignal,
  total: number,
  onProgress: OnProgress,
  take: (chunk: Uint8Array) => void | Promise<void>,
): Promise<void> {
  const reader = response.body?.getReader();
  let loaded = 0;
  onProgress({ phase: 'model', loaded, total });
  while (reader) {
    const { done, value } = await reader.read().catch(() => {
      if (signal.aborted) throw aborted();
      throw modelMissing('the download was cut');
    });
    if (done) return;
    try {
      signal.throwIfAborted();
      await take(value);
    } catch (error) {
      reader.cancel().catch(() => {});
      throw error;
    }
    loaded += value.length;
    onProgress({ phase: 'model', loaded, total });
  }
}

function concatenated(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
