import type { BrowserOptions } from '../browser-parts.js';
import type { CoreRequest, CoreResponse } from '../core.js';
import { ForemindError, aborted, closed, fromPlain } from '../errors.js';
import type { Backend, MemoryEvent } from '../session.js';
import type { Durability, KeySource, Readiness } from '../types.js';
import type { FromWorker, ToWorker } from './messages.js';

/** The part of `Worker` used here. */
export interface WorkerLike {
  postMessage(message: ToWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
}

export type Spawn = () => WorkerLike;

/** Frees the page when the worker does not come to an end by itself. */
const CLOSE_WAIT_MS = 5_000;

interface PendingCall {
  resolve: (response: CoreResponse) => void;
  reject: (error: ForemindError) => void;
}

interface Ready {
  resolve: (readiness: Readiness) => void;
  reject: (error: ForemindError) => void;
}

/** A session behind a worker of its own. A worker that dies takes its pending calls with it (`internal`); the
 * next call starts another one on the same store. */
export class WorkerBackend implements Backend {
  onevent?: (event: MemoryEvent) => void;
  created = false;
  durability: Durability = 'best-effort';
  readonly ready: Promise<Readiness>;

  readonly #options: BrowserOptions;
  readonly #spawn: Spawn;
  readonly #calls = new Map<number, PendingCall>();
  #ready!: Ready;
  #worker: Promise<WorkerLike> | undefined;
  #nextId = 0;
  #isClosed = false;

  private constructor(options: BrowserOptions, spawn: Spawn) {
    this.#options = options;
    this.#spawn = spawn;
    this.ready = new Promise((resolve, reject) => {
      this.#ready = { resolve, reject };
    });
    this.ready.catch(() => {});
  }

  static async open(options: BrowserOptions, signal: AbortSignal | undefined, spawn: Spawn): Promise<WorkerBackend> {
    const backend = new WorkerBackend(options, spawn);
    backend.#worker = backend.#start(false, signal);
    await backend.#worker;
    return backend;
  }

  async call(request: CoreRequest, signal: AbortSignal | undefined): Promise<CoreResponse> {
    this.#worker ??= this.#start(true, undefined);
    const worker = await this.#worker;
    if (this.#isClosed) throw closed();
    if (signal?.aborted) throw aborted();
    const id = this.#nextId++;
    const abort = () => worker.postMessage({ type: 'abort', id });
    signal?.addEventListener('abort', abort, { once: true });
    try {
      const response = await new Promise<CoreResponse>((resolve, reject) => {
        this.#calls.set(id, { resolve, reject });
        worker.postMessage({ type: 'call', id, request });
      });
      if (request.verb === 'rekey') this.#keep(request['key'] as KeySource);
      return response;
    } finally {
      this.#calls.delete(id);
      signal?.removeEventListener('abort', abort);
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const worker = await this.#worker?.catch(() => undefined);
    if (worker) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, CLOSE_WAIT_MS);
        const onmessage = worker.onmessage;
        worker.onmessage = (event) => {
          onmessage?.call(worker as never, event);
          if (event.data.type !== 'closed') return;
          clearTimeout(timer);
          resolve();
        };
        worker.postMessage({ type: 'close' });
      });
      worker.terminate();
    }
    this.#keep(undefined);
    this.#ready.reject(closed());
    this.#rejectCalls(closed());
  }

  /** With what a worker that comes after this one opens. */
  #keep(key: KeySource | undefined): void {
    if (this.#options.key instanceof Uint8Array) this.#options.key.fill(0);
    if (key === undefined) delete this.#options.key;
    else this.#options.key = key;
  }

  #start(existing: boolean, signal: AbortSignal | undefined): Promise<WorkerLike> {
    const starting = new Promise<WorkerLike>((resolve, reject) => {
      if (signal?.aborted) throw aborted();
      let worker: WorkerLike;
      try {
        worker = this.#spawn();
      } catch {
        throw notStarted();
      }
      const refuse = (error: ForemindError) => {
        signal?.removeEventListener('abort', abort);
        worker.terminate();
        reject(error);
      };
      const abort = () => refuse(aborted());
      signal?.addEventListener('abort', abort, { once: true });
      // Until it has opened, an error means that the script does not run here (blocked by a policy, not served).
      worker.onerror = () => refuse(notStarted());
      worker.onmessage = ({ data: message }) => {
        if (message.type === 'refused') return refuse(fromPlain(message.error));
        if (message.type !== 'opened') return;
        signal?.removeEventListener('abort', abort);
        if (!existing) this.created = message.created;
        this.durability = message.durability;
        worker.onmessage = ({ data }) => this.#receive(data);
        worker.onerror = (event) => {
          event.preventDefault?.();
          this.#mourn(worker);
        };
        worker.onmessageerror = () => this.#mourn(worker);
        resolve(worker);
      };
      worker.postMessage({ type: 'open', options: this.#options, existing });
    });
    starting.catch(() => {
      if (this.#worker === starting) this.#worker = undefined;
    });
    return starting;
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'answer':
        this.#calls.get(message.id)?.resolve(message.response);
        return;
      case 'failure':
        this.#calls.get(message.id)?.reject(fromPlain(message.error));
        return;
      case 'ready':
        this.#ready.resolve(message.readiness);
        return;
      case 'not-ready':
        this.#ready.reject(fromPlain(message.error));
        return;
      case 'event':
        this.onevent?.(message.event);
        return;
    }
  }

  #mourn(worker: WorkerLike): void {
    worker.terminate();
    this.#worker = undefined;
    const error = new ForemindError('internal', 'the worker of this memory stopped; the next call starts it again from the store');
    this.#ready.reject(error);
    this.#rejectCalls(error);
  }

  #rejectCalls(error: ForemindError): void {
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
  }
}

/** For how long a worker that has answered stays for the next question: starting one takes far longer than a profile. */
const IDLE_MS = 10_000;

interface Idle {
  worker: WorkerLike;
  timer: ReturnType<typeof setTimeout>;
}

/** At most one for each way of starting workers. */
const idle = new Map<Spawn, Idle>();

/** One answer from a worker that has no memory open. It answers one question at a time, and ends when none comes. */
export function answerOnce(options: BrowserOptions, request: CoreRequest, signal: AbortSignal | undefined, spawn: Spawn): Promise<CoreResponse> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) throw aborted();
    const worker = takeIdle(spawn) ?? started(spawn);
    const end = (settle: () => void, keep = false) => {
      signal?.removeEventListener('abort', abort);
      if (keep) keepIdle(spawn, worker);
      else worker.terminate();
      settle();
    };
    const abort = () => end(() => reject(aborted()));
    signal?.addEventListener('abort', abort, { once: true });
    worker.onerror = () => end(() => reject(notStarted()));
    worker.onmessage = ({ data: message }) => {
      if (message.type === 'answered') end(() => resolve(message.response), true);
      if (message.type === 'refused') end(() => reject(fromPlain(message.error)));
    };
    worker.postMessage({ type: 'once', options, request });
  });
}

function takeIdle(spawn: Spawn): WorkerLike | undefined {
  const kept = idle.get(spawn);
  if (!kept) return undefined;
  clearTimeout(kept.timer);
  idle.delete(spawn);
  return kept.worker;
}

function keepIdle(spawn: Spawn, worker: WorkerLike): void {
  takeIdle(spawn)?.terminate();
  const timer = setTimeout(() => takeIdle(spawn)?.terminate(), IDLE_MS);
  // In a process that would end otherwise, a worker that waits for nothing does not keep it.
  (timer as { unref?: () => void }).unref?.();
  const drop = () => {
    if (idle.get(spawn)?.worker === worker) takeIdle(spawn);
    worker.terminate();
  };
  worker.onmessage = null;
  worker.onerror = drop;
  idle.set(spawn, { worker, timer });
}

function started(spawn: Spawn): WorkerLike {
  try {
    return spawn();
  } catch {
    throw notStarted();
  }
}

export function notStarted(): ForemindError {
  return new ForemindError(
    'unsupported',
    "the worker script could not be started; the package's scripts must be served from the page's origin and allowed by its policy (worker-src 'self')",
  );
}
