import type { Core, CoreRequest, CoreResponse, CoreTask } from './core.js';
import { drive, driveOpen, driveProfile, driveSurvey, driveTask, type Encoder, type Opened, type Outcome } from './driver.js';
import { LoadedEmbedder, type EmbedderSource } from './embedder.js';
import { ForemindError, closed } from './errors.js';
import { ROUTE_HEAD, type HeadFiles } from './heads.js';
import type { Keys } from './keys.js';
import type { Store } from './stores/store.js';
import type { Durability, KeySource, MemoryEvents, Readiness } from './types.js';

/** One event, as it crosses to the facade. */
export type MemoryEvent = { [Name in keyof MemoryEvents]: { name: Name; detail: MemoryEvents[Name] } }[keyof MemoryEvents];

/** What the facade talks to: a session in this realm, or one behind a worker. */
export interface Backend {
  readonly created: boolean;
  durability: Durability;
  readonly ready: Promise<Readiness>;
  onevent?: (event: MemoryEvent) => void;
  call(request: CoreRequest, signal: AbortSignal | undefined): Promise<CoreResponse>;
  close(): Promise<void>;
}

export interface SessionParts {
  core: Core;
  store: Store;
  keys: Keys;
  /** Makes what `rekey` asks for. */
  keysFor(key: KeySource): Keys;
  /** Lines of a guard policy. */
  policy?: string | undefined;
  /** Absent when no embedder is wanted. */
  embedder?: EmbedderSource | undefined;
  /** Absent: words alone judge. */
  heads?: HeadFiles | undefined;
}

/** The core and its store, made side by side. A store without a core is closed again. */
export async function together(core: Promise<Core>, store: Promise<Store>): Promise<{ core: Core; store: Store }> {
  store.catch(() => {});
  try {
    return { core: await core, store: await store };
  } catch (error) {
    await store.then((opened) => opened.close(), () => {});
    throw error;
  }
}

/** Verbs that write. They take turns, so that an instance never conflicts with itself. */
const WRITERS = new Set(['remember', 'ingest', 'update', 'confirm', 'release', 'rescan', 'forget', 'judge', 'backfill', 'import', 'rekey', 'destroy']);
/** Verbs that are tasks of the core, with what they take and give beside a request and a response. */
const TASKS = new Set(['export', 'import', 'verify', 'rekey', 'destroy']);
/** Records of one background step: short, so that calls in between do not wait long. */
const BACKFILL_RECORDS = 8;
/** How long a write waits for the file of the n-gram head. */
const NGRAMS_WAIT_MS = 1_000;

/** One open memory in this realm. */
export class Session implements Backend {
  onevent?: (event: MemoryEvent) => void;
  readonly ready: Promise<Readiness>;
  readonly created: boolean;
  durability: Durability;

  readonly #parts: SessionParts;
  readonly #closing = new AbortController();
  readonly #pending = new Set<Promise<unknown>>();
  readonly #encoder: Encoder = {};
  #embedder: LoadedEmbedder | undefined;
  /** Fetched early, so that it is there offline. */
  readonly #fetchedNgrams: Promise<Uint8Array | undefined>;
  /** What each life of the core is told. Nobody needs the n-grams before something is written. */
  #ngrams: Uint8Array | undefined;
  #asked = false;
  #head: string | undefined;
  #opened: Promise<Opened>;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #announced: number;
  #waking = false;
  #wokenAgain = false;

  private constructor(parts: SessionParts, opened: Opened, durability: Durability) {
    this.#parts = parts;
    this.#opened = Promise.resolve(opened);
    this.#announced = opened.memory.generation;
    this.created = opened.created;
    this.durability = durability;
    parts.store.onwake = () => void this.#wake();
    parts.store.onlost = (message) => this.#emit({ name: 'lost', detail: { message } });
    // What is written until the encoder is there waits for its head rather than for nothing.
    this.#head = parts.heads && parts.embedder ? ROUTE_HEAD : undefined;
    this.#equip(opened);
    this.#fetchedNgrams = (parts.heads?.ngrams(this.#closing.signal) ?? Promise.resolve(undefined)).catch(() => undefined);
    this.ready = this.#loadEmbedder().then(async (readiness) => {
      await this.#fetchedNgrams;
      return readiness;
    });
    // Whoever does not ask for `ready` is not to be ended by an unhandled rejection.
    this.ready.catch(() => {});
  }

  /** `existing`: the memory is known to exist, see `driveOpen`. */
  static async open(parts: SessionParts, existing = false, signal = new AbortController().signal): Promise<Session> {
    try {
      const opened = await driveOpen(parts.core, parts.store, parts.keys, existing, signal, parts.policy);
      return new Session(parts, opened, await parts.store.durability());
    } catch (error) {
      parts.keys.clear();
      await parts.store.close();
      throw error;
    }
  }

  async call(request: CoreRequest, signal?: AbortSignal): Promise<CoreResponse> {
    if (this.#closing.signal.aborted) throw closed();
    // Asked of the realm, not of the core.
    if (request.verb === 'requests') return { kind: 'requests', count: requestsOfRealm() };
    if (request.verb === 'storage') return { kind: 'storage', durability: this.durability, ...(await this.#parts.store.room?.()) };
    const stop = new AbortController();
    const unlink = [link(signal, stop), link(this.#closing.signal, stop)];
    const run = () => this.#run(request, stop.signal);
    const { store } = this.#parts;
    const write = async () => {
      await this.#takeNgrams();
      return store.turn ? store.turn(run) : run();
    };
    const work = WRITERS.has(request.verb) ? this.#inTurn(write) : run();
    this.#pending.add(work);
    try {
      return (await work).response;
    } finally {
      this.#pending.delete(work);
      for (const undo of unlink) undo();
    }
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(closed());
    // A commit that has begun is awaited: what it reports to its caller stays true.
    await Promise.allSettled([...this.#pending, this.ready]);
    const opened = await this.#opened.catch(() => undefined);
    if (opened && !opened.life.over) this.#parts.core.guard(opened.life, () => opened.memory.free());
    this.#embedder?.close();
    this.#parts.keys.clear();
    await this.#parts.store.close();
  }

  async #run(request: CoreRequest, signal: AbortSignal): Promise<Outcome> {
    const { core, store } = this.#parts;
    const opened = await this.#current();
    const outcome = TASKS.has(request.verb)
      ? await this.#task(opened, request, signal)
      : await drive(core, opened, store, this.#encoder, request, signal, WRITERS.has(request.verb));
    if (outcome.wrote) {
      if (!opened.life.over) this.#announced = opened.memory.generation;
      this.#emit({ name: 'changed', detail: { by: 'self' } });
    }
    return outcome;
  }

  async #task(opened: Opened, { verb, key, file, ...rest }: CoreRequest, signal: AbortSignal): Promise<Outcome> {
    const { core, store } = this.#parts;
    const keys = verb === 'rekey' ? this.#parts.keysFor(key as KeySource) : undefined;
    const own = verb === 'destroy' ? this.#parts.keys : undefined;
    const task = { task: verb, ...rest, ...(keys ?? own)?.wrap } as CoreTask;
    try {
      const outcome = await driveTask(core, opened, { store, keys: keys ?? own, file: file as Uint8Array | undefined }, task, signal);
      if (keys) {
        // From here on the old key opens nothing, and after a trap the new one is asked for.
        this.#parts.keys.clear();
        this.#parts.keys = keys;
      }
      return { response: { ...outcome.report, ...(outcome.file ? { file: outcome.file } : {}) }, wrote: outcome.wrote };
    } catch (error) {
      keys?.clear();
      throw error;
    }
  }

  /** The memory of the core's present life; opened again from the store when the life before ended in a trap. */
  async #current(): Promise<Opened> {
    for (;;) {
      const seen = this.#opened;
      const opened = await seen;
      if (!opened.life.over) return opened;
      if (this.#opened !== seen) continue;
      // Calls that come meanwhile wait for the same opening. Should it fail, the next call tries once more.
      const { core, store, keys } = this.#parts;
      const again = driveOpen(core, store, keys, true, this.#closing.signal, this.#parts.policy);
      this.#opened = again;
      again.then(
        (fresh) => this.#equip(fresh),
        () => {
          this.#opened = seen;
        },
      );
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastWrite.then(work);
    this.#lastWrite = turn.catch(() => {});
    return turn;
  }

  async #loadEmbedder(): Promise<Readiness> {
    const source = this.#parts.embedder;
    if (!source) return { modelId: null };
    const signal = this.#closing.signal;
    // One turn of the loop, so that whoever opened can attach to progress before it begins.
    await new Promise((resolve) => setTimeout(resolve));
    try {
      const embedder = await LoadedEmbedder.load(source, (detail) => this.#emit({ name: 'progress', detail }), signal);
      if (signal.aborted) embedder.close();
      signal.throwIfAborted();
      this.#embedder = embedder;
      await this.#adapt(embedder);
      signal.throwIfAborted();
      Object.defineProperty(this.#encoder, 'encode', { get: () => embedder.encode, configurable: true });
      void this.#backfill(embedder.modelId);
      return { modelId: embedder.modelId };
    } catch (error) {
      if (signal.aborted) throw closed();
      if (error instanceof ForemindError) throw error;
      throw new ForemindError('model-invalid', 'the embedder could not be started; the memory works by words alone');
    }
  }

  /** Tells the core what judges beside words. */
  #equip({ memory, life }: Opened): void {
    if (life.over) return;
    this.#parts.core.guard(life, () => {
      if (this.#ngrams) memory.useNgrams(this.#ngrams);
      memory.useHead(this.#head);
    });
  }

  /** Loads the head on the encoder. Without its file, or with a model of the user's own, the encoder gives vectors alone. */
  async #adapt(embedder: LoadedEmbedder): Promise<void> {
    const file = await this.#parts.heads?.adapter(this.#closing.signal).catch(() => undefined);
    if (file && !this.#closing.signal.aborted && embedder.adapt(file)) return;
    this.#head = undefined;
    const opened = await this.#opened.catch(() => undefined);
    if (opened) this.#equip(opened);
  }

  /** Gives the n-gram head to the core, once. A slow network holds no write up for long: words judge until the file is there. */
  async #takeNgrams(): Promise<void> {
    if (this.#asked) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<'late'>((resolve) => (timer = setTimeout(() => resolve('late'), NGRAMS_WAIT_MS)));
    const file = await Promise.race([this.#fetchedNgrams, late]);
    clearTimeout(timer);
    if (file === 'late') return;
    this.#asked = true;
    const opened = await this.#opened.catch(() => undefined);
    if (!file || !opened || this.#closing.signal.aborted) return;
    this.#ngrams = file;
    try {
      this.#equip(opened);
    } catch {
      // A file of another version: words judge those languages.
      this.#ngrams = undefined;
    }
  }

  /** Encodes what was written before the embedder was there, or by another model. Ends by itself, with `close()`, or on any failure:
   * what is left is done at the next opening. */
  async #backfill(model: string): Promise<void> {
    let done = 0;
    try {
      for (;;) {
        const { encoded, remaining } = (await this.call({ verb: 'backfill', max: BACKFILL_RECORDS, model })) as unknown as {
          encoded: number;
          remaining: number;
        };
        done += encoded;
        if (done > 0) {
          this.#emit({ name: 'progress', detail: { phase: 'backfill', loaded: done, total: done + remaining } });
        }
        if (remaining === 0 || encoded === 0) return;
        // Lets calls in that came meanwhile: encoding holds the thread.
        await new Promise((resolve) => setTimeout(resolve));
      }
    } catch {
      // Lost, full, closed, or a trap: every call reports that to its own caller.
    }
  }

  /** Another tab has written. Wakes that come during a refresh are answered by one more. */
  async #wake(): Promise<void> {
    void this.#opened.then((opened) => (opened.head = undefined), () => {});
    if (this.#waking) {
      this.#wokenAgain = true;
      return;
    }
    this.#waking = true;
    try {
      do {
        this.#wokenAgain = false;
        await this.call({ verb: 'refresh' });
        const { memory, life } = await this.#opened;
        const generation = life.over ? this.#announced : memory.generation;
        if (generation !== this.#announced) {
          this.#announced = generation;
          this.#emit({ name: 'changed', detail: { by: 'other' } });
        }
      } while (this.#wokenAgain);
    } catch {
      // The next call meets the same failure and reports it.
    } finally {
      this.#waking = false;
    }
  }

  #emit(event: MemoryEvent): void {
    if (this.#closing.signal.aborted) return;
    this.onevent?.(event);
  }
}

/** One answer from a memory that is not open and is not opened: its `profile`, or a `survey` of what is stored. */
export async function once({ core, store, keys }: SessionParts, request: CoreRequest, signal = new AbortController().signal): Promise<CoreResponse> {
  try {
    if (request.verb === 'survey') return await driveSurvey(core, store, keys, request['repair'] === true, signal, request['receipt']);
    return await driveProfile(core, store, keys, request as CoreRequest & { scope: unknown; budgetTokens: number }, signal);
  } finally {
    keys.clear();
    await store.close();
  }
}

/** What the realm's resource timing lists: every fetch, module and wasm file. Hosts without it count nothing. */
function requestsOfRealm(): number {
  return globalThis.performance?.getEntriesByType?.('resource').length ?? 0;
}

/** Aborts `stop` with `signal`, and gives the way to undo that. */
function link(signal: AbortSignal | undefined, stop: AbortController): () => void {
  if (!signal) return () => {};
  const abort = () => stop.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return () => signal.removeEventListener('abort', abort);
}
