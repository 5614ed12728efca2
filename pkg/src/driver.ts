import type { Core, CoreMemory, CoreOptions, CoreRequest, CoreResponse, Embedding, Life, OpenReply, Reply, Value } from './core.js';
import { ForemindError, aborted, closed, fromPlain, toPlain } from './errors.js';
import type { Keys } from './keys.js';
import type { Store } from './stores/store.js';

/** Texts to vectors, as far as that is possible now. */
export interface Encoder {
  /** Undefined while no embedder is ready. `onBatch` hears how many texts are done. */
  encode?: ((texts: string[], heads: string[], signal?: AbortSignal, onBatch?: (done: number) => void) => Promise<Embedding[][]>) | undefined;
}

/** A memory that belongs to one life of the core. */
export interface Opened {
  memory: CoreMemory;
  life: Life;
  /** Whether this opening made the memory: nothing was stored under its name before. */
  created: boolean;
}

/**
 * Opens a memory. `existing` says that it is known to exist, so that finding nothing is a loss
 * (`storage-lost`) and never a reason to make an empty one.
 */
export async function driveOpen(
  core: Core,
  store: Store,
  keys: Keys,
  existing: boolean,
  signal: AbortSignal,
): Promise<Opened> {
  const life = core.life;
  const options: CoreOptions = keys.hostKey
    ? { wrap: 'host', key: keys.hostKey, create: !existing }
    : { wrap: 'external', create: !existing };
  const opening = core.open(options);
  let created = false;
  let secret: Uint8Array | undefined;
  try {
    let reply: OpenReply = { kind: 'begin' };
    for (;;) {
      throwIfAborted(signal);
      const step = core.guard(life, () => opening.step(reply, ...ambient()));
      secret?.fill(0);
      secret = undefined;
      switch (step.kind) {
        case 'read':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'values', values: await store.read(step.keys) })));
          break;
        case 'need-key':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'key', key: await keys.unwrap(step.wrapped) })));
          secret = reply.kind === 'key' ? reply.key : undefined;
          break;
        case 'wrap-key':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'wrapped', wrapped: await keys.wrap(step.dataKey) })));
          step.dataKey.fill(0);
          break;
        case 'commit': {
          const isNew = step.expectedHead === undefined;
          reply = await life.whileAlive(attempt(async () => ({ kind: (await store.commit(step)) ? 'committed' : 'conflict' })));
          if (isNew && reply.kind === 'committed') created = true;
          break;
        }
        case 'failed':
          throw fromPlain(step.error);
        case 'opened':
          return { memory: core.guard(life, () => opening.take()), life, created };
      }
    }
  } finally {
    // `take` has emptied it on success; after a trap its memory is gone already.
    if (!life.over) core.guard(life, () => opening.free());
  }
}

/** What became of a call. */
export interface Outcome {
  response: CoreResponse;
  /** Whether anything was written. */
  wrote: boolean;
}

/**
 * Runs one operation: the only place that moves bytes between the core and the world. The core decides, this
 * loop reads, writes and embeds. Aborting works up to the commit; from there on the store decides.
 */
export async function drive(
  core: Core,
  opened: Opened,
  store: Store,
  encoder: Encoder,
  request: CoreRequest,
  signal: AbortSignal,
): Promise<Outcome> {
  const { memory, life } = opened;
  throwIfAborted(signal);
  const op = core.guard(life, () => memory.begin(request));
  let wrote = false;
  try {
    let reply: Reply = { kind: 'begin' };
    for (;;) {
      const step = core.guard(life, () => memory.step(op, reply, ...ambient()));
      if (step.kind === 'done') return { response: quantised(step.response), wrote };
      if (step.kind === 'failed') throw fromPlain(step.error);
      throwIfAborted(signal);
      switch (step.kind) {
        case 'read':
          reply = await abortable(signal, life.whileAlive(attempt(() => readExisting(store, step.keys))));
          break;
        case 'embed':
          reply = await abortable(signal, life.whileAlive(encodeNow(encoder, step.texts, step.heads, signal)));
          break;
        case 'commit':
          // The store's answer is kept even when the core dies meanwhile, so that no retry is provoked by a
          // call that had succeeded: `whileAlive` is not used here, the next `guard` reports the trap.
          reply = await attempt(async () => ({ kind: (await store.commit(step)) ? 'committed' : 'conflict' }));
          wrote ||= reply.kind === 'committed';
          break;
      }
    }
  } finally {
    if (!life.over) core.guard(life, () => memory.dropOp(op));
  }
}

async function readExisting(store: Store, keys: string[]): Promise<Reply> {
  const values: Value[] = await store.read(keys);
  // Once open, a memory has a head for as long as it exists.
  if (keys.some((key, at) => key === 'head' && values[at] === undefined)) throw lost();
  return { kind: 'values', values };
}

async function encodeNow(encoder: Encoder, texts: string[], heads: string[], signal: AbortSignal): Promise<Reply> {
  if (!encoder.encode) return { kind: 'not-embedded', failure: 'not-ready' };
  try {
    const embeddings = await encoder.encode(texts, heads, signal);
    // The core's border takes plain arrays of numbers, not typed ones.
    const plain = ({ vector, features, ...rest }: Embedding) => ({ ...rest, vector: Array.from(vector), features: Array.from(features) });
    return { kind: 'embedded', embeddings: embeddings.map((row) => row.map(plain)) };
  } catch {
    // The text stays lexical and is encoded later; a failing embedder never fails a write or a recall.
    return { kind: 'not-embedded', failure: 'failed' };
  }
}

/** Turns a failure of the host into a reply, so that the core can end the operation in order. */
async function attempt<R>(work: () => Promise<R>): Promise<R | { kind: 'failed'; error: { code: ForemindError['code']; message: string } }> {
  try {
    return await work();
  } catch (error) {
    return { kind: 'failed', error: toPlain(error) };
  }
}

/** Rejects as soon as the signal fires, whatever `work` does. */
function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(reasonOf(signal));
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw reasonOf(signal);
}

/** `close()` aborts with a `closed` error; callers abort with whatever they like. */
function reasonOf(signal: AbortSignal): ForemindError {
  const reason: unknown = signal.reason;
  return reason instanceof ForemindError && reason.code === 'closed' ? closed() : aborted();
}

function lost(): ForemindError {
  return new ForemindError(
    'storage-lost',
    'the stored memory was deleted or evicted while it was open; close it, and open it again to begin a new one',
  );
}

/**
 * Scores, priorities and weights are single-precision in the core, quantised to 1e-4. They cross as their exact
 * double (0.9 as 0.8999999761581421); this makes them what the core means. In place.
 */
function quantised<T>(value: T): T {
  if (Array.isArray(value)) value.forEach(quantised);
  else if (typeof value === 'object' && value !== null) {
    const fields = value as { [field: string]: unknown };
    for (const [field, inner] of Object.entries(fields)) {
      if (typeof inner === 'object') quantised(inner);
      else if (typeof inner === 'number' && (field === 'score' || field === 'priority' || field === 'weight')) {
        fields[field] = Math.round(inner * 1e4) / 1e4;
      }
    }
  }
  return value;
}

/** Time and randomness, fresh for each step, since the core has neither. */
function ambient(): [nowMs: number, utcOffsetMin: number, entropy: Uint8Array] {
  const now = new Date();
  return [now.getTime(), -now.getTimezoneOffset(), crypto.getRandomValues(new Uint8Array(32))];
}
