// The entry for Cloudflare Workers: many memories behind HTTP. The Worker reads requests, checks grants and embeds; each
// memory is a Durable Object of its own, backed by SQLite. Nothing is done at global scope.
import { DurableObject } from 'cloudflare:workers';

import { Core, type CoreRequest, type CoreResponse, type Embedding, type Value } from './core.js';
import { drive, driveOpen, driveProfile, driveTask, type Encoder, type Opened } from './driver.js';
import { LoadedEmbedder, modelMissing } from './embedder.js';
import { ForemindError, toPlain, type PlainError } from './errors.js';
import * as coreBindings from './foremind_core.js';
import coreModule from './foremind_core_bg.wasm';
import coreData from './foremind_data.txt';
import * as embedBindings from './foremind_embed.js';
import embedModule from './foremind_embed_relaxed_bg.wasm';
import * as serviceBindings from './foremind_service.js';
import serviceModule from './foremind_service_bg.wasm';
import { coreGlue, embedGlue } from './glue.js';
import { HostKey } from './keys.js';
import { Publisher, pack, unpack, type ReplicaProfile, type ReplicaStore } from './replica.js';
import { DurableObjectStore } from './stores/durable-object.js';

/** A text to a vector, in the Worker; undefined while the model is not there. */
type Encode = (texts: string[], heads: string[]) => Promise<Embedding[][] | undefined>;

/** A request as the service writes it: the verb is the name of its only field. */
type Asked = { [verb: string]: { [field: string]: unknown } };

type Work = { kind: 'ask'; request: Asked; deadlineMs?: number; maxAgeMs?: number } | { kind: 'export' } | { kind: 'remove' };

/** Answers of a memory are JSON: one text crosses to the Worker and into the service quicker than hundreds of fields. */
type Ran =
  | { kind: 'absent' }
  | { kind: 'response'; response: string }
  | { kind: 'prompt'; prompt: string }
  | { kind: 'late'; prompt: string }
  | { kind: 'replica'; prompt: string; generation: number; ageMs: number; error?: PlainError }
  | { kind: 'file'; file: Uint8Array }
  | { kind: 'removed'; receipt?: unknown }
  | { kind: 'run-failed'; error: PlainError };

type ServiceStep =
  | { kind: 'run'; space: string; key: Uint8Array; create: boolean; work: Work }
  | { kind: 'get'; name: string }
  | { kind: 'swap'; name: string; expected?: Uint8Array; value: Uint8Array }
  | { kind: 'done'; status: number; headers: [string, string][]; body: Uint8Array };

interface Namespace<Stub> {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** The bindings that the Worker needs; `templates/workers` has them. */
export interface Env {
  /** A secret: the configuration of the service, JSON (docs/SERVICE.md). */
  FOREMIND_CONFIG: string;
  /** Of the class `MemoryObject`, backed by SQLite. */
  MEMORIES: Namespace<Pick<MemoryObject, 'run' | 'publish'>>;
  /** Of the class `DirectoryObject`, backed by SQLite. */
  DIRECTORY: Namespace<Pick<DirectoryObject, 'value' | 'swap'>>;
  /** Static assets, `minilm-l6-v2.fmpack` among them; or `MODEL`. Without either, records are found by their words. */
  ASSETS?: { fetch(url: string): Promise<Response> };
  /** A KV namespace: a replica of each memory's profile, near to where it is asked for. */
  REPLICA?: ReplicaStore;
  /** An R2 bucket that holds `minilm-l6-v2.fmpack`. */
  MODEL?: { get(name: string): Promise<{ body: ReadableStream<Uint8Array> } | null> };
}

/** The model's file name. */
const MODEL = 'minilm-l6-v2.fmpack';
/** As in the service: what is beyond is not read. */
const BODY_BYTES = 1024 * 1024;
/** How long a body may take, in milliseconds. */
const BODY_MS = 10_000;
/** How long after its deadline a recall is waited for before the replica is asked, in milliseconds: the object falls back by itself. */
const GRACE_MS = 100;
const WRITERS = new Set(['remember', 'ingest', 'forget']);

let core: Core | undefined;

/** One core for all memories in this isolate. */
function coreOf(): Core {
  if (!core) {
    coreBindings.initSync({ module: coreModule });
    core = new Core(coreGlue(coreBindings, coreData));
  }
  return core;
}

/** Lines of the guard's policy: part of the configuration. */
function policyOf({ FOREMIND_CONFIG }: Env): string | undefined {
  return (JSON.parse(FOREMIND_CONFIG) as { policy?: string }).policy;
}

/** One memory. Only the Worker reaches it: an object has no address of its own. */
export class MemoryObject extends DurableObject<Env> {
  #opened: Promise<Opened> | undefined;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #publisher: Publisher | undefined;

  /** Does what a step of the service wants done. */
  async run(space: string, key: Uint8Array, create: boolean, work: Work, encode?: Encode): Promise<Ran> {
    try {
      const store = new DurableObjectStore(this.ctx.storage);
      if (work.kind === 'remove') return await this.#inTurn(() => this.#remove(store, space, key));
      if (!this.#opened && !create && (await isAbsent(store))) return { kind: 'absent' };
      if (work.kind === 'export') {
        const opened = await this.#open(store, key, create);
        const { file } = await driveTask(coreOf(), opened, { store }, { task: 'export' }, new AbortController().signal);
        return { kind: 'file', file: file ?? new Uint8Array() };
      }
      const request = requestOf(work.request);
      // The log is not read for it.
      if (request.verb === 'profile' && !this.#opened) return answer(await this.#profile(store, key, request));
      const ask = () => this.#ask(store, key, create, request, work.deadlineMs, encode);
      if (!WRITERS.has(request.verb)) return await ask();
      const ran = await this.#inTurn(ask);
      this.#publish(store, space, key);
      return ran;
    } catch (error) {
      return { kind: 'run-failed', error: toPlain(error) };
    }
  }

  /** Publishes the profile to the replica, within a second: its age begins anew. */
  async publish(space: string, key: Uint8Array): Promise<void> {
    const store = new DurableObjectStore(this.ctx.storage);
    if (!(await isAbsent(store))) this.#publish(store, space, key);
  }

  /** Nobody waits for it, and what fails is tried again while the object lives: a replica says how old it is. */
  #publish(store: DurableObjectStore, space: string, key: Uint8Array): void {
    const publisher = this.#publisherOf(space);
    if (publisher) this.ctx.waitUntil(publisher.publish(() => this.#inTurn(() => pack(coreOf(), store, key, Date.now()))));
  }

  #publisherOf(space: string): Publisher | undefined {
    if (!this.env.REPLICA) return undefined;
    this.#publisher ??= new Publisher(this.env.REPLICA, space);
    return this.#publisher;
  }

  async #ask(
    store: DurableObjectStore,
    key: Uint8Array,
    create: boolean,
    request: CoreRequest,
    deadlineMs: number | undefined,
    encode: Encode | undefined,
  ): Promise<Ran> {
    const encoder: Encoder = encode ? { encode: (texts, heads) => vectors(encode, texts, heads) } : {};
    const signal = deadlineMs === undefined ? new AbortController().signal : AbortSignal.timeout(deadlineMs);
    try {
      const opened = await before(signal, this.#open(store, key, create));
      const { response } = await drive(coreOf(), opened, store, encoder, request, signal, WRITERS.has(request.verb));
      return answer(response);
    } catch (error) {
      if (!signal.aborted) throw error;
      return { kind: 'late', prompt: promptOf(await this.#profile(store, key, { ...request, verb: 'profile' })) };
    }
  }

  /** The profile as it is stored: the log is not read for it. */
  async #profile(store: DurableObjectStore, key: Uint8Array, { verb, scope, budgetTokens, audience }: CoreRequest): Promise<CoreResponse> {
    const request = { verb, scope, budgetTokens: budgetTokens as number, audience };
    const keys = new HostKey(key);
    try {
      return await driveProfile(coreOf(), store, keys, request, new AbortController().signal);
    } finally {
      keys.clear();
    }
  }

  /** Opened once for as long as the object lives, and again after a trap. */
  async #open(store: DurableObjectStore, key: Uint8Array, create: boolean): Promise<Opened> {
    const known = await this.#opened?.catch(() => undefined);
    if (known && !known.life.over) return known;
    const keys = new HostKey(key);
    this.#opened = driveOpen(coreOf(), store, keys, !create, new AbortController().signal, policyOf(this.env)).finally(() => keys.clear());
    try {
      return await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  /** The key first: should the rest fail, nothing can be read all the same. What does not open goes too, without a receipt. */
  async #remove(store: DurableObjectStore, space: string, key: Uint8Array): Promise<Ran> {
    if (await isAbsent(store)) {
      // Of a removal that was cut.
      await this.#publisherOf(space)?.remove();
      this.#publisher = undefined;
      return { kind: 'absent' };
    }
    const opened = await this.#open(store, key, false).catch(() => undefined);
    this.#opened = undefined;
    const receipt = opened && (await ended(opened, store, key).catch(() => undefined));
    if (opened && !opened.life.over) coreOf().guard(opened.life, () => opened.memory.free());
    await store.replace([], ['key', 'spare']);
    await this.ctx.storage.deleteAll();
    await this.#publisherOf(space)?.remove();
    this.#publisher = undefined;
    return { kind: 'removed', ...(receipt === undefined ? {} : { receipt }) };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastWrite.then(work);
    this.#lastWrite = turn.catch(() => {});
    return turn;
  }
}

/** The same as the core takes it. */
function requestOf(asked: Asked): CoreRequest {
  const [[verb, fields] = ['', {}]] = Object.entries(asked);
  return { ...fields, verb };
}

function answer(response: CoreResponse): Ran {
  return response.kind === 'recall' || response.kind === 'profile'
    ? { kind: 'prompt', prompt: promptOf(response) }
    : { kind: 'response', response: JSON.stringify(response) };
}

/** The prompt of an answer, without what says that it is one. */
function promptOf({ kind: _, ...prompt }: CoreResponse): string {
  return JSON.stringify(prompt);
}

/** Rejects when the signal fires, and leaves the work to go on: who asks next finds it done. */
function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(signal.reason);
    signal.addEventListener('abort', late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', late));
  });
}

/** Ends a memory by its own means: the receipt, under the key that wrapped the memory's. */
async function ended(opened: Opened, store: DurableObjectStore, key: Uint8Array): Promise<unknown> {
  const keys = new HostKey(key);
  try {
    const { report } = await driveTask(coreOf(), opened, { store, keys }, { task: 'destroy', ...keys.wrap }, new AbortController().signal);
    return report['receipt'];
  } finally {
    keys.clear();
  }
}

async function isAbsent(store: DurableObjectStore): Promise<boolean> {
  return (await store.read(['key', 'head'])).every((value) => value === undefined);
}

async function vectors(encode: Encode, texts: string[], heads: string[]): Promise<Embedding[][]> {
  const rows = await encode(texts, heads);
  if (!rows) throw modelMissing('it is not loaded yet');
  return rows;
}

/** Values of the service itself: one object for each, so that they do not wait for each other. */
export class DirectoryObject extends DurableObject {
  async value(): Promise<Value> {
    const value = (await this.ctx.storage.get(['value'])).get('value');
    return value instanceof Uint8Array ? value : undefined;
  }

  /** Whether the value was the expected one, and is `value` now. */
  async swap(expected: Value, value: Uint8Array): Promise<boolean> {
    return this.ctx.storage.transaction(async (values) => {
      const now = (await values.get(['value'])).get('value');
      const same = now instanceof Uint8Array ? expected?.length === now.length && expected.every((byte, at) => now[at] === byte) : !expected;
      if (same) await values.put({ value });
      return same;
    });
  }
}

let service: { config: string; bindings: serviceBindings.CoreService } | undefined;

/** One service for this isolate. */
function serviceOf(config: string): serviceBindings.CoreService {
  if (service?.config !== config) {
    serviceBindings.initSync({ module: serviceModule });
    service = { config, bindings: new serviceBindings.CoreService(config) };
  }
  return service.bindings;
}

let loading: Promise<LoadedEmbedder> | undefined;
let embedder: LoadedEmbedder | undefined;

/** One embedder for this isolate; loaded by the first request that has use for it. */
function embedderOf(env: Env): Promise<LoadedEmbedder> {
  loading ??= LoadedEmbedder.load(
    {
      glue: async () => {
        embedBindings.initSync({ module: embedModule });
        return embedGlue(embedBindings);
      },
      model: async (intakes) => {
        const body = await modelOf(env);
        const intake = await intakes.open({});
        try {
          for (const reader = body.getReader(); ; ) {
            const { value, done } = await reader.read();
            if (done) return intake.finish();
            intake.push(value);
          }
        } catch (error) {
          intake.drop();
          throw error;
        }
      },
    },
    () => {},
    new AbortController().signal,
  ).then((loaded) => (embedder = loaded), (error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function modelOf(env: Env): Promise<ReadableStream<Uint8Array>> {
  if (env.MODEL) {
    const found = await env.MODEL.get(MODEL);
    if (found) return found.body;
  }
  const response = await env.ASSETS?.fetch(`https://assets.local/${MODEL}`);
  if (!response?.ok || !response.body) throw modelMissing('neither MODEL nor ASSETS has it');
  return response.body;
}

/** What the Worker does with a request; `export default worker`. */
export const worker = {
  async fetch(request: Request, env: Env, ctx: Context): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const bindings = serviceOf(env.FOREMIND_CONFIG);
    const body = await bodyOf(request);
    if (!body) return responseOf(serviceBindings.CoreService.tooSlow() as ServiceStep & { kind: 'done' });
    const call = bindings.begin({ method: request.method, target: pathname + search, headers: [...request.headers], body });
    try {
      let reply: unknown = { kind: 'begin' };
      for (;;) {
        const step = bindings.step(call, reply, Date.now(), crypto.getRandomValues(new Uint8Array(32))) as ServiceStep;
        switch (step.kind) {
          case 'run':
            reply = await ran(env, ctx, step);
            break;
          case 'get':
            reply = await attempt('value-failed', async () => {
              const value = await env.DIRECTORY.get(env.DIRECTORY.idFromName(step.name)).value();
              return { kind: 'value', ...(value && { value }) };
            });
            break;
          case 'swap':
            reply = await attempt('swap-failed', async () => {
              const directory = env.DIRECTORY.get(env.DIRECTORY.idFromName(step.name));
              return { kind: 'swapped', swapped: await directory.swap(step.expected, step.value) };
            });
            break;
          case 'done':
            return responseOf(step);
        }
      }
    } finally {
      bindings.drop(call);
    }
  },
};

function responseOf({ status, headers, body }: ServiceStep & { kind: 'done' }): Response {
  return new Response(body.length > 0 ? new Uint8Array(body) : null, { status, headers });
}

interface Context {
  waitUntil(work: Promise<unknown>): void;
}

/** Work in a memory: in its object; or, for prompts, from the replica where that is fresh enough, or where the object fails. */
async function ran(env: Env, ctx: Context, step: ServiceStep & { kind: 'run' }): Promise<Ran> {
  const { space, key, create, work } = step;
  const memory = env.MEMORIES.get(env.MEMORIES.idFromName(space));
  const asking = async () => memory.run(space, key, create, work, encoderFor(env, ctx, work));
  if (work.kind !== 'ask' || !env.REPLICA) return asking();
  const request = requestOf(work.request);
  const replica = () => fromReplica(env, space, key, request);
  if (request.verb === 'profile' && work.maxAgeMs) {
    const near = await replica();
    if (near && near.ageMs <= work.maxAgeMs) return shown(near);
    ctx.waitUntil(memory.publish(space, key).catch(() => {}));
  }
  if (request.verb !== 'recall' && request.verb !== 'profile') return asking();
  const asked = asking().catch((): Ran => ({ kind: 'run-failed', error: UNREACHABLE }));
  const late: Ran = { kind: 'run-failed', error: LATE };
  const end = work.deadlineMs === undefined ? await asked : await Promise.race([asked, sleep(work.deadlineMs + GRACE_MS).then(() => late)]);
  if (end.kind !== 'run-failed' || !STORE_CODES.has(end.error.code)) return end;
  const near = await replica();
  return near ? shown(near, end.error) : end === late ? asked : end;
}

const UNREACHABLE: PlainError = { code: 'storage-failed', message: 'the object of this memory could not be reached' };
const LATE: PlainError = { code: 'aborted', message: 'the object of this memory did not answer in time' };
/** What a replica may stand in for. A memory that is damaged says so. */
const STORE_CODES = new Set(['aborted', 'storage-failed', 'storage-lost', 'storage-denied', 'internal']);

function shown({ response, generation, ageMs }: ReplicaProfile, error?: PlainError): Ran {
  return { kind: 'replica', prompt: promptOf(response), generation, ageMs, ...(error && { error }) };
}

/** What cannot be read there is as good as absent. */
async function fromReplica(env: Env, space: string, key: Uint8Array, request: CoreRequest): Promise<ReplicaProfile | undefined> {
  try {
    const value = await env.REPLICA?.get(space, 'arrayBuffer');
    const asked = { scope: request['scope'], budgetTokens: request['budgetTokens'] as number, audience: request['audience'] };
    return value ? await unpack(coreOf(), new Uint8Array(value), key, asked, Date.now()) : undefined;
  } catch {
    return undefined;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A write waits for the model; a prompt does not, and goes by words meanwhile. */
function encoderFor(env: Env, ctx: Context, work: Work): Encode | undefined {
  if (work.kind !== 'ask' || (!env.ASSETS && !env.MODEL)) return undefined;
  const waits = WRITERS.has(requestOf(work.request).verb);
  return async (texts, heads) => {
    const loaded = embedder ?? (waits ? await embedderOf(env) : (ctx.waitUntil(embedderOf(env).catch(() => {})), undefined));
    return loaded?.encode?.(texts, heads);
  };
}

async function attempt(failed: string, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    const known = error instanceof ForemindError ? error : new ForemindError('storage-failed', 'the directory could not be reached');
    return { kind: failed, error: toPlain(known) };
  }
}

/** The body up to one byte more than it may have: the service says what is wrong then. Undefined: it did not come in time. */
async function bodyOf(request: Request): Promise<Uint8Array | undefined> {
  if (!request.body) return new Uint8Array();
  let timer;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, BODY_MS)));
  // What says beforehand that it is small is taken as a whole: the platform holds it to that.
  const small = Number(request.headers.get('content-length') ?? Infinity) <= BODY_BYTES;
  try {
    return await (small ? Promise.race([request.bytes(), late]) : upTo(BODY_BYTES + 1, request.body, late));
  } finally {
    clearTimeout(timer);
  }
}

async function upTo(most: number, stream: ReadableStream<Uint8Array>, late: Promise<undefined>): Promise<Uint8Array | undefined> {
  const body = new Uint8Array(most);
  let length = 0;
  const reader = stream.getReader();
  while (length < most) {
    const read = await Promise.race([reader.read(), late]);
    if (!read) {
      reader.cancel().catch(() => {});
      return undefined;
    }
    if (read.done) break;
    const part = read.value.subarray(0, most - length);
    body.set(part, length);
    length += part.length;
  }
  if (length === most) await reader.cancel();
  return body.subarray(0, length);
}
