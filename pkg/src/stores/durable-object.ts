import type { Batch, Value } from '../core.js';
import { ForemindError } from '../errors.js';
import type { Durability } from '../types.js';
import { headMatches, type Capabilities, type Store } from './store.js';

/** The part of a Durable Object's `ctx.storage` (and of its transactions) used here. */
export interface DurableObjectValues {
  get(keys: string[]): Promise<Map<string, unknown>>;
  put(entries: { [key: string]: unknown }): Promise<void>;
  delete(keys: string[]): Promise<number>;
}

/** `ctx.storage` of a Durable Object. */
export interface DurableObjectStorageLike extends DurableObjectValues {
  list(options: { prefix: string; limit: number; startAfter?: string }): Promise<Map<string, unknown>>;
  transaction<T>(work: (transaction: DurableObjectValues) => Promise<T>): Promise<T>;
  /** Resolves when everything written so far is on the disk. */
  sync?(): Promise<void>;
  /** Of use only when the object is backed by SQLite; otherwise its members throw. */
  readonly sql?: { readonly databaseSize: number };
}

/** Keys that one call of the platform takes. */
const KEYS_A_CALL = 128;
/** Listing gives the values with the names: few at a time, for the sake of the object's memory. */
const LISTED_A_CALL = 16;
/** The most bytes of one part. SQLite-backed objects take 2 MiB a value; a part stays well below. */
const SQLITE_PART_BYTES = 1 << 20;
/** Key-value-backed objects take 128 KiB, serialised; 1 KiB is left for the platform's own framing. */
const KEY_VALUE_PART_BYTES = 127 * 1024;
/** Each first part begins with the number of parts. */
const COUNT_BYTES = 2;

/** The last turn on each storage. Transactions of one object that run at the same time nest in each other and may
 * wait for each other for ever, so all stores on one storage take turns. */
const turns = new WeakMap<DurableObjectStorageLike, Promise<unknown>>();

/**
 * A memory in the storage of a Durable Object: one transaction for each commit. A value is divided into parts
 * of at most 1 MiB (127 KiB where the object is not backed by SQLite), named `<prefix><key>`,
 * `<prefix><key>.1`, ...; the first begins with the number of parts (u16, little-endian).
 *
 * An object runs in one place at a time, so nobody else writes; the comparison of heads stands against several
 * memories opened in one object. Answers of an object leave only when its writes are safe (the platform's output gate);
 * a commit that must be durable also waits for `sync()`.
 */
export class DurableObjectStore implements Store {
  readonly capabilities: Capabilities = { atomicBatch: true, cas: true, ticket: false, readAfterWrite: true, list: true };
  readonly #storage: DurableObjectStorageLike;
  readonly #prefix: string;
  readonly #partBytes: number;
  #closed = false;

  /** `name` tells memories in one object apart. */
  constructor(storage: DurableObjectStorageLike, name = 'memory') {
    this.#storage = storage;
    this.#prefix = `foremind:${name}:`;
    this.#partBytes = isSqlite(storage) ? SQLITE_PART_BYTES : KEY_VALUE_PART_BYTES;
  }

  read(keys: string[]): Promise<Value[]> {
    return this.#inTurn(() => this.#read(this.#storage, keys));
  }

  commit(batch: Batch): Promise<boolean> {
    // Whoever calls may change the bytes afterwards, and the transaction below takes turns with others.
    const puts = batch.puts.map(([key, value]): [string, Uint8Array] => [key, value.slice()]);
    return this.#inTurn(async () => {
      const written = await this.#storage.transaction(async (values) => {
        const [head, key] = await this.#read(values, ['head', 'key']);
        if (!headMatches(head, batch.expectedHead) || (!batch.expectedHead && key)) return false;
        await this.#write(values, puts, batch.deletes);
        return true;
      });
      if (written && batch.strict) await this.#storage.sync?.();
      return written;
    });
  }

  replace(puts: Batch['puts'], deletes: string[]): Promise<void> {
    return this.#inTurn(async () => {
      await this.#storage.transaction((values) => this.#write(values, puts, deletes));
      await this.#storage.sync?.();
    });
  }

  list(): Promise<string[]> {
    return this.#inTurn(async () => {
      const names: string[] = [];
      for (let page: string[] | undefined; page === undefined || page.length === LISTED_A_CALL; ) {
        const last = page?.at(-1);
        const startAfter = last === undefined ? {} : { startAfter: last };
        page = [...(await this.#storage.list({ prefix: this.#prefix, limit: LISTED_A_CALL, ...startAfter })).keys()];
        names.push(...page);
      }
      return names.map((name) => name.slice(this.#prefix.length)).filter((name) => !name.includes('.'));
    });
  }

  async durability(): Promise<Durability> {
    return 'persistent';
  }

  async close(): Promise<void> {
    this.#closed = true;
    await turns.get(this.#storage);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new ForemindError('storage-lost', 'this store is closed; make another one on the same storage'));
    const turn = (turns.get(this.#storage) ?? Promise.resolve()).then(work);
    turns.set(this.#storage, turn.catch(() => {}));
    return turn.catch((error: unknown) => {
      throw explain(error);
    });
  }

  async #read(values: DurableObjectValues, keys: string[]): Promise<Value[]> {
    const first = await fetchAll(values, keys.map((key) => this.#name(key, 0)));
    const rest = keys.flatMap((key) => this.#restOf(key, first.get(this.#name(key, 0))));
    const parts = rest.length > 0 ? await fetchAll(values, rest) : new Map<string, Uint8Array>();
    return keys.map((key) => {
      const start = first.get(this.#name(key, 0));
      if (!start) return undefined;
      // A part that is missing leaves a value that is too short: the vault's checksum finds it.
      return joined([start.subarray(COUNT_BYTES), ...this.#restOf(key, start).map((name) => parts.get(name) ?? new Uint8Array())]);
    });
  }

  async #write(values: DurableObjectValues, puts: Batch['puts'], deletes: string[]): Promise<void> {
    await this.#delete(values, [...deletes, ...puts.map(([name]) => name)]);
    for (const some of slices(puts.flatMap(([name, value]) => this.#parts(name, value)), KEYS_A_CALL)) {
      await values.put(Object.fromEntries(some));
    }
  }

  async #delete(values: DurableObjectValues, keys: string[]): Promise<void> {
    const first = await fetchAll(values, keys.map((key) => this.#name(key, 0)));
    const names = keys.flatMap((key) => {
      const start = first.get(this.#name(key, 0));
      return start ? [this.#name(key, 0), ...this.#restOf(key, start)] : [];
    });
    for (const some of slices(names, KEYS_A_CALL)) await values.delete(some);
  }

  #parts(key: string, value: Uint8Array): [string, Uint8Array][] {
    const whole = new Uint8Array(COUNT_BYTES + value.length);
    whole.set(value, COUNT_BYTES);
    const count = Math.max(1, Math.ceil(whole.length / this.#partBytes));
    new DataView(whole.buffer).setUint16(0, count, true);
    // Copies: the platform stores the whole buffer behind a view.
    return Array.from({ length: count }, (_, at) => [this.#name(key, at), whole.slice(at * this.#partBytes, (at + 1) * this.#partBytes)]);
  }

  #restOf(key: string, start: Uint8Array | undefined): string[] {
    if (!start || start.length < COUNT_BYTES) return [];
    const count = (start[0] ?? 0) | ((start[1] ?? 0) << 8);
    return Array.from({ length: Math.max(0, count - 1) }, (_, at) => this.#name(key, at + 1));
  }

  #name(key: string, part: number): string {
    return part === 0 ? `${this.#prefix}${key}` : `${this.#prefix}${key}.${part}`;
  }
}

function isSqlite(storage: DurableObjectStorageLike): boolean {
  try {
    return storage.sql?.databaseSize !== undefined;
  } catch {
    return false;
  }
}

async function fetchAll(values: DurableObjectValues, names: string[]): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  for (const some of slices([...new Set(names)], KEYS_A_CALL)) {
    for (const [name, value] of await values.get(some)) {
      if (value instanceof Uint8Array) found.set(name, value);
    }
  }
  return found;
}

function slices<T>(items: T[], length: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / length) }, (_, at) => items.slice(at * length, (at + 1) * length));
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function explain(error: unknown): ForemindError {
  if (error instanceof ForemindError) return error;
  const message = error instanceof Error ? error.message : '';
  if (/SQLITE_FULL|storage limit|quota/i.test(message)) {
    return new ForemindError('quota-exceeded', 'the storage of this Durable Object is full; forget something, or raise the limit of the plan');
  }
  return new ForemindError('storage-failed', 'the storage of this Durable Object could not be used; nothing was acknowledged');
}
