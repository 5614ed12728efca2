import type {
  Core, CoreMemory, CoreOpening, CoreOptions, CoreRequest, CoreResponse, CoreTask, Embedding, Life, OpenReply, Reply, TaskReply, TaskStep, Value,
} from './core.js';
import { ForemindError, aborted, closed, fromPlain, toPlain } from './errors.js';
import type { Keys } from './keys.js';
import type { Store } from './stores/store.js';

/** How much of an imported file crosses into the core at once. */
const PIECE_BYTES = 256 * 1024;

/** The longest wait before an operation plans again that somebody else was faster than. */
const CONFLICT_WAIT_MS = 32;

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
  /** The stored head that the core knows, as far as this instance has heard; see `drive`. */
  head?: Uint8Array | undefined;
}

/**
 * Opens a memory. `existing` says that it is known to exist, so that finding nothing is a loss
 * (`storage-lost`) and never a reason to make an empty one.
 */
export function driveOpen(core: Core, store: Store, keys: Keys, existing: boolean, signal: AbortSignal, policy?: string): Promise<Opened> {
  return runOpening<never>(core, store, keys, { ...keys.wrap, create: !existing, ...(policy === undefined ? {} : { policy }) }, signal);
}

/** The profile of an existing memory without opening it: the key, the head and one value are read. Where none is stored yet,
 * the memory is opened for it. */
export async function driveProfile(
  core: Core,
  store: Store,
  keys: Keys,
  request: CoreRequest & { scope: unknown; budgetTokens: number },
  signal: AbortSignal,
): Promise<CoreResponse> {
  const options: CoreOptions = { ...keys.wrap, create: false, profileFirst: true };
  const end = await runOpening(core, store, keys, options, signal, (opening) => ({
    response: opening.profile(request.scope, request.budgetTokens, request['audience'] === 'device', Date.now()),
  }));
  if ('response' in end) return quantised(end.response);
  try {
    return (await drive(core, end, store, {}, request, signal)).response;
  } finally {
    if (!end.life.over) core.guard(end.life, () => end.memory.free());
  }
}

/** Reads what showing the stored profile takes and nothing else; whether one is stored. */
export async function reachProfile(core: Core, store: Store, keys: Keys, signal: AbortSignal): Promise<boolean> {
  const options: CoreOptions = { ...keys.wrap, create: false, profileFirst: true };
  const end = await runOpening(core, store, keys, options, signal, () => ({ reached: true }));
  if ('reached' in end) return true;
  if (!end.life.over) core.guard(end.life, () => end.memory.free());
  return false;
}

async function runOpening<Early>(
  core: Core,
  store: Store,
  keys: Keys,
  options: CoreOptions,
  signal: AbortSignal,
  atProfile?: (opening: CoreOpening) => Early,
): Promise<Opened | Early> {
  const life = core.life;
  const opening = core.open({ ...options, atomicBatches: store.capabilities.atomicBatch });
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
          reply = await life.whileAlive(attempt(async () => ({ kind: 'key', key: await unwrapped(keys, step.wrapped) })));
          secret = reply.kind === 'key' ? reply.key : undefined;
          break;
        case 'wrap-key':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'wrapped', wrapped: await wrapped(keys, step.dataKey) })));
          break;
        case 'commit': {
          const isNew = step.expectedHead === undefined;
          reply = await life.whileAlive(attempt(async () => ({ kind: (await store.commit(step)) ? 'committed' : 'conflict' })));
          if (isNew && reply.kind === 'committed') created = true;
          break;
        }
        case 'profile':
          if (atProfile) return core.guard(life, () => atProfile(opening));
          reply = { kind: 'continue' };
          break;
        case 'failed':
          throw fromPlain(step.error);
        case 'opened':
          return { memory: core.guard(life, () => opening.take()), life, created };
      }
    }
  } finally {
    secret?.fill(0);
    // `take` has emptied it on success; after a trap its memory is gone already.
    if (!life.over) core.guard(life, () => opening.free());
  }
}

/** What a task needs beside the store. */
export interface TaskWorld {
  store: Store;
  /** Wraps a key, for `rekey` and `destroy`; unwraps it, for a survey. */
  keys?: Keys | undefined;
  /** The file to be imported. */
  file?: Uint8Array | undefined;
}

/** What became of a task. */
export interface TaskOutcome {
  report: CoreResponse;
  /** The exported file. */
  file?: Uint8Array;
  wrote: boolean;
}

/** Runs a task of an open memory: export, import, verify, rekey or destroy. */
export async function driveTask(core: Core, opened: Opened, world: TaskWorld, task: CoreTask, signal: AbortSignal): Promise<TaskOutcome> {
  const { memory, life } = opened;
  throwIfAborted(signal);
  opened.head = undefined;
  const number = core.guard(life, () => memory.beginTask(task));
  try {
    return await runTask(core, life, (reply) => memory.stepTask(number, reply, ...ambient()), world, signal);
  } finally {
    if (!life.over) core.guard(life, () => memory.dropTask(number));
  }
}

/** Looks through a memory that may not open, and repairs it if asked. */
export async function driveSurvey(core: Core, store: Store, keys: Keys, repair: boolean, signal: AbortSignal, receipt?: unknown): Promise<CoreResponse> {
  const life = core.life;
  const survey = core.survey({ ...keys.wrap, repair, ...(receipt === undefined ? {} : { receipt }) });
  try {
    return (await runTask(core, life, (reply) => survey.step(reply, ...ambient()), { store, keys }, signal)).report;
  } finally {
    if (!life.over) core.guard(life, () => survey.free());
  }
}

async function runTask(
  core: Core,
  life: Life,
  next: (reply: TaskReply) => TaskStep,
  { store, keys, file }: TaskWorld,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  const pieces: Uint8Array[] = [];
  let given = 0;
  let wrote = false;
  let secret: Uint8Array | undefined;
  let reply: TaskReply = { kind: 'begin' };
  try {
    for (;;) {
      const step = core.guard(life, () => next(reply));
      secret?.fill(0);
      secret = undefined;
      if (step.kind === 'done') {
        return { report: step.report, wrote, ...(pieces.length > 0 ? { file: joined(pieces) } : {}) };
      }
      if (step.kind === 'failed') throw fromPlain(step.error);
      throwIfAborted(signal);
      switch (step.kind) {
        case 'read':
          reply = await abortable(signal, life.whileAlive(attempt(async () => ({ kind: 'values', values: await store.read(step.keys) }))));
          break;
        case 'commit':
          // As in `drive`: the store's answer is kept whatever happens to the core.
          reply = await attempt(async () => ({ kind: (await store.commit(step)) ? 'committed' : 'conflict' }));
          wrote ||= reply.kind === 'committed';
          break;
        case 'replace':
          reply = await attempt(async () => {
            await store.replace(step.puts, step.deletes);
            return { kind: 'committed' };
          });
          wrote ||= reply.kind === 'committed';
          break;
        case 'names':
          reply = await life.whileAlive(attempt(() => namesOf(store)));
          break;
        case 'piece':
          pieces.push(step.bytes);
          reply = { kind: 'continue' };
          break;
        case 'need-piece': {
          const bytes = file?.subarray(given, given + PIECE_BYTES);
          given += bytes?.length ?? 0;
          reply = { kind: 'piece', ...(bytes?.length ? { bytes } : {}) };
          break;
        }
        case 'need-key':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'key', key: await unwrapped(keys, step.wrapped) })));
          secret = reply.kind === 'key' ? reply.key : undefined;
          break;
        case 'wrap-key':
          reply = await life.whileAlive(attempt(async () => ({ kind: 'wrapped', wrapped: await wrapped(keys, step.dataKey) })));
          break;
      }
      // A long task leaves room for other calls.
      if (step.kind === 'piece' || step.kind === 'need-piece') await new Promise((resolve) => setTimeout(resolve));
    }
  } finally {
    secret?.fill(0);
  }
}

async function unwrapped(keys: Keys | undefined, blob: Uint8Array): Promise<Uint8Array> {
  if (!keys?.open) throw new ForemindError('internal', 'the core asked for a key that it has; please report this');
  return keys.open(blob);
}

/** Wraps a data key and zeroes it. */
async function wrapped(keys: Keys | undefined, dataKey: Uint8Array): Promise<Uint8Array> {
  try {
    if (!keys?.seal) throw new ForemindError('internal', 'the core asked to wrap a key that it wraps; please report this');
    return await keys.seal(dataKey);
  } finally {
    dataKey.fill(0);
  }
}

function joined(pieces: Uint8Array[]): Uint8Array {
  const file = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    file.set(piece, at);
    at += piece.length;
  }
  return file;
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
 *
 * An operation begins by reading the head. One that `writes` is given the head that this instance knows, without asking
 * the store: when somebody else was faster, the commit is refused and it plans again on what is there. Should it end
 * without a commit, its answer counts only if the head still is the same.
 */
export async function drive(
  core: Core,
  opened: Opened,
  store: Store,
  encoder: Encoder,
  request: CoreRequest,
  signal: AbortSignal,
  writes = false,
): Promise<Outcome> {
  const assumed = writes ? opened.head : undefined;
  let end: { outcome: Outcome } | { error: unknown };
  try {
    end = { outcome: await run(core, opened, store, encoder, request, signal, writes, assumed) };
  } catch (error) {
    end = { error };
  }
  const committed = 'outcome' in end && end.outcome.wrote;
  if (assumed && !committed && opened.head === assumed && !opened.life.over && !signal.aborted) {
    const [head] = await store.read(['head']);
    if (!sameBytes(head, assumed)) {
      opened.head = undefined;
      return run(core, opened, store, encoder, request, signal, writes, undefined);
    }
  }
  if ('error' in end) throw end.error;
  return end.outcome;
}

async function run(
  core: Core,
  opened: Opened,
  store: Store,
  encoder: Encoder,
  request: CoreRequest,
  signal: AbortSignal,
  writes: boolean,
  assumed: Uint8Array | undefined,
): Promise<Outcome> {
  const { memory, life } = opened;
  throwIfAborted(signal);
  const op = core.guard(life, () => memory.begin(request));
  let wrote = false;
  let conflicts = 0;
  try {
    let reply: Reply = { kind: 'begin' };
    for (;;) {
      const step = core.guard(life, () => memory.step(op, reply, ...ambient()));
      if (step.kind === 'done') return { response: quantised(step.response), wrote };
      if (step.kind === 'failed') throw fromPlain(step.error);
      throwIfAborted(signal);
      switch (step.kind) {
        case 'read':
          if (assumed && step.keys.length === 1 && step.keys[0] === 'head') {
            reply = { kind: 'values', values: [assumed] };
            assumed = undefined;
            break;
          }
          reply = await abortable(signal, life.whileAlive(attempt(() => readExisting(store, step.keys))));
          if (reply.kind === 'values') noteHead(opened, reply.values[step.keys.indexOf('head')], writes);
          break;
        case 'names':
          reply = await life.whileAlive(attempt(() => namesOf(store)));
          break;
        case 'embed':
          reply = await abortable(signal, life.whileAlive(encodeNow(encoder, step.texts, step.heads, signal)));
          break;
        case 'commit':
          // The store's answer is kept even when the core dies meanwhile, so that no retry is provoked by a
          // call that had succeeded: `whileAlive` is not used here, the next `guard` reports the trap.
          opened.head = undefined;
          reply = await attempt(async () => ({ kind: (await store.commit(step)) ? 'committed' : 'conflict' }));
          if (reply.kind === 'conflict') await sleep(Math.random() * Math.min(2 ** conflicts++, CONFLICT_WAIT_MS));
          if (reply.kind !== 'committed') break;
          wrote = true;
          opened.head = step.puts.find(([key]) => key === 'head')?.[1];
          break;
      }
    }
  } finally {
    if (!life.over) core.guard(life, () => memory.dropOp(op));
  }
}

/** Writers take turns, so that what one of them read is what the core will know. Others may be overtaken by a commit. */
function noteHead(opened: Opened, head: Value, writes: boolean): void {
  if (!head) return;
  if (writes) opened.head = head;
  else if (!sameBytes(head, opened.head)) opened.head = undefined;
}

function sameBytes(one: Value, other: Value): boolean {
  return one !== undefined && other !== undefined && one.length === other.length && one.every((byte, at) => byte === other[at]);
}

async function readExisting(store: Store, keys: string[]): Promise<Reply> {
  const values: Value[] = await store.read(keys);
  // Once open, a memory has a head for as long as it exists.
  if (keys.some((key, at) => key === 'head' && values[at] === undefined)) throw lost();
  return { kind: 'values', values };
}

async function namesOf(store: Store): Promise<{ kind: 'names'; names?: string[] }> {
  const names = await store.list?.();
  return { kind: 'names', ...(names ? { names } : {}) };
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

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Time and randomness, fresh for each step, since the core has neither. */
function ambient(): [nowMs: number, utcOffsetMin: number, entropy: Uint8Array] {
  const now = new Date();
  return [now.getTime(), -now.getTimezoneOffset(), crypto.getRandomValues(new Uint8Array(32))];
}
