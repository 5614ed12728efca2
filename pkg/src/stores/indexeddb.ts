import type { Batch, Value } from '../core.js';
import { ForemindError } from '../errors.js';
import type { Durability } from '../types.js';
import { HEAD_TOKEN_BYTES, type Capabilities, type Room, type Store } from './store.js';

/** Version 1 kept the head among the values, version 2 nothing beside the head. */
const VERSION = 3;
const VALUES = 'values';
const HEADS = 'heads';
const SLOT = 'slot';
/** The head's row while there is no head. */
const NO_HEAD = 'none';
/**
 * The most bytes of one stored part; longer values are divided. Chromium moves values of more than 64 KiB into files of
 * their own: writing one then needs the tab until the file is complete, deleting one leaves it for later, and reading one in a
 * transaction with `commit()` never answers.
 */
const PART_BYTES = 60 * 1024;
/** The most bytes of a head's row, the values beside the head included. */
const ROW_BYTES = 56 * 1024;
/** What a commit that folds writes stays for long: values of more bytes get rows of their own at once. */
const FOLD_TAIL_BYTES = 4 * 1024;
/** How long an opening may take before the database counts as blocked by another connection. */
const OPEN_WAIT_MS = 10_000;
/** How long other connections have to give way. */
const BLOCKED_WAIT_MS = 1_500;
/** Names of the log: what is put under them is put once. */
const LOG_NAME = /^[0-9a-f]{32}$/;
/** A commit that deletes so many values folds segments. */
const FOLD_DELETES = 8;
/** How long a lock is waited for: a tab that the system has frozen keeps its own. */
const LOCK_WAIT_MS = 1_000;
/** For how long a lock that was not given is not asked for again. */
const LOCK_BROKEN_MS = 10_000;
/** For how long tabs stand in line after one of them was too late. */
const CONTENDED_MS = 2_000;
/** How many bytes may be written before the browser is asked again for the room that is left. */
const ROOM_CHECK_BYTES = 1 << 20;

/**
 * One database for each memory, and a `BroadcastChannel` of the same name that wakes the other tabs. A message that is
 * lost costs nothing, since a commit compares and a read looks at the head.
 *
 * A commit is one `readwrite` transaction, and IndexedDB runs those one after the other across tabs, so no tab leads.
 * The comparison is made by the database: the head is in a row of its own whose key is the head's token, and a unique index
 * allows one row only. The transaction deletes the row of the expected token and adds the new one: where the head is another,
 * its row stays, the addition breaks the index, and all of it is undone. (Where there is no head, there is a row that says so.)
 * So every request can be sent at once, with `commit()` behind them, and a tab that is frozen or killed while it waits for
 * answers holds nothing up, which one that has to read, compare and then write would. Reads end in the same way.
 *
 * A request costs more than the bytes that it brings: each one that a commit sends takes a sixth of the time of a bare put. So
 * the values that the latest commits wrote lie in the head's row, in its *tail*, until they are deleted: most commits are these
 * two requests, and what they replace is left out of the new row. What the row has no room for gets rows of its own.
 */
export class IndexedDbStore implements Store {
  readonly capabilities: Capabilities = { atomicBatch: true, cas: true, ticket: false, readAfterWrite: true, list: true };
  onwake?: () => void;
  onlost?: (message: string) => void;
  readonly #database: IDBDatabase;
  /** The head's row as this instance last saw it, by its key. */
  #known: { key: string; row: HeadRow } | undefined;
  readonly #channel: BroadcastChannel | undefined;
  /** Bytes that may be written before the browser is asked for room again, and what was left when it was. */
  #room = { untilAsked: 0, left: Infinity };
  #contendedUntil = 0;
  #lockBrokenUntil = 0;
  #lost: string | undefined;
  #closed = false;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Giving way at once keeps this tab from blocking whoever deletes the database or brings a newer layout.
    database.onversionchange = ({ newVersion }) => {
      database.close();
      this.#lose(
        newVersion === null
          ? 'the stored memory was deleted from another tab; open it again to begin a new one'
          : 'another tab has a newer foremind and took the stored memory over; reload this page',
      );
    };
    // The browser closed it: storage cleared by the user, or evicted.
    database.onclose = () => this.#lose('the browser closed the stored memory (site data cleared or evicted); open it again');
    if (typeof BroadcastChannel !== 'undefined') {
      this.#channel = new BroadcastChannel(database.name);
      this.#channel.onmessage = ({ data }) => {
        this.#contendedUntil = performance.now() + CONTENDED_MS;
        if (data === 'written') this.onwake?.();
      };
    }
  }

  static async open(name: string): Promise<IndexedDbStore> {
    if (typeof indexedDB === 'undefined') {
      throw new ForemindError('unsupported', "there is no IndexedDB here; open with storage: 'memory' to keep nothing");
    }
    return new IndexedDbStore(await openDatabase(`foremind:${name}`));
  }

  async read(keys: string[]): Promise<Value[]> {
    for (const atOnce of [true, false]) {
      // The row that is known most often is the stored one still: its key is all that has to be asked for.
      const values = (this.#known && (await this.#read(keys, atOnce, this.#known))) ?? (await this.#read(keys, atOnce, undefined));
      if (values) return values;
    }
    return keys.map(() => undefined);
  }

  async commit(batch: Batch): Promise<boolean> {
    await this.#checkRoom(batch);
    const write = () => this.#write(batch);
    const folds = batch.deletes.length >= FOLD_DELETES;
    // Two tabs that fold at once would both do the work, and one of them in vain.
    const written = await (folds ? this.#locked('fold', write) : write());
    if (!written) this.#contendedUntil = performance.now() + CONTENDED_MS;
    this.#channel?.postMessage(written ? 'written' : 'too late');
    return written;
  }

  async replace(puts: Batch['puts'], deletes: string[]): Promise<void> {
    const head = puts.find(([key]) => key === 'head')?.[1];
    this.#known = undefined;
    await this.#transact<void>('readwrite', 'strict', false, (heads, values) => {
      const stored = heads.openCursor();
      stored.onsuccess = () => {
        const cursor = stored.result;
        const row = cursor?.value as HeadRow | undefined;
        const named = [...deletes, ...puts.map(([name]) => name)];
        for (const key of named) values.delete(partsOf(key));
        for (const [name, part] of storedParts(puts)) values.put(part, name);
        const kept = Object.entries(row?.tail ?? {}).filter(([name]) => !named.includes(name));
        if (row && !head && !deletes.includes('head')) {
          cursor?.update({ ...row, tail: Object.fromEntries(kept) });
          return;
        }
        // What lies beside the head that goes is not named by that.
        for (const [name, value] of kept) values.put(value, name);
        heads.clear();
        heads.add(headRow(head ?? new Uint8Array()), head ? rowOf(head) : NO_HEAD);
      };
      return () => undefined;
    });
    this.#channel?.postMessage('written');
  }

  /** While several tabs write, they stand in line: whoever was too late would be too late again and again, since it has to read
   * what the faster one already knows. Nothing depends on the line. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    return performance.now() < this.#contendedUntil ? this.#locked('write', work) : work();
  }

  async list(): Promise<string[]> {
    return this.#transact<string[]>('readonly', 'default', true, (heads, values) => {
      const names = values.getAllKeys();
      const row = heads.index(SLOT).get('head') as IDBRequest<HeadRow | undefined>;
      return () => [
        ...(names.result as string[]).filter((name) => !name.includes('.')),
        ...(row.result?.bytes.length ? ['head'] : []),
        ...Object.keys(row.result?.tail ?? {}),
      ];
    });
  }

  async durability(): Promise<Durability> {
    try {
      return (await navigator.storage.persisted()) ? 'persistent' : 'best-effort';
    } catch {
      return 'best-effort';
    }
  }

  async room(): Promise<Room> {
    try {
      const { usage, quota } = await navigator.storage.estimate();
      return { ...(usage === undefined ? {} : { usedBytes: usage }), ...(quota === undefined ? {} : { quotaBytes: quota }) };
    } catch {
      // Insecure contexts and some private modes have no estimate.
      return {};
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#channel?.close();
    // Transactions under way end first; the browser sees to that.
    this.#database.close();
  }

  /** Undefined when the head's row is not the one that is `known`, or an answer did not come before the transaction ended. */
  #read(keys: string[], atOnce: boolean, known: { key: string; row: HeadRow } | undefined): Promise<Value[] | undefined> {
    return this.#transact<Value[] | undefined>('readonly', 'default', atOnce, (heads, values) => {
      const index = heads.index(SLOT);
      const key = index.getKey('head');
      const asked = known ? undefined : index.get('head');
      const has = (name: string) => known && (known.row.tail?.[name] || (name === 'head' && known.row.parts === undefined));
      const parts = keys.map((name) => (has(name) ? undefined : values.getAll(partsOf(name))));
      return () => {
        if ([key, asked, ...parts].some((request) => request && request.readyState !== 'done')) return undefined;
        if (known && key.result !== known.key) return undefined;
        // There always is a row, unless somebody else took it out.
        const row = known?.row ?? (asked?.result as HeadRow | undefined);
        this.#known = row && { key: key.result as string, row };
        return keys.map((name, at) => {
          const more = (parts[at]?.result ?? []) as Part[];
          // Copies, since the row is kept.
          return name === 'head' ? joined(row ? [row, ...more] : [])?.slice() : (row?.tail?.[name]?.slice() ?? joined(more));
        });
      };
    });
  }

  async #write(batch: Batch): Promise<boolean> {
    // All that takes time comes before the transaction: what is sent while it is open is sent in one go.
    const head = batch.puts.find(([key]) => key === 'head')?.[1];
    if (!head) throw new ForemindError('internal', 'the core wrote no head; please report this');
    const [from, to] = [batch.expectedHead ? rowOf(batch.expectedHead) : NO_HEAD, rowOf(head)];
    // The core has read the head that it expects; where this instance knows another one by now, it is too late.
    if (from !== NO_HEAD && this.#known?.key !== from) await this.read(['head']);
    if (from !== NO_HEAD && this.#known?.key !== from) return false;
    const { row, puts, deletes } = planned(head, batch, this.#known?.row.tail);
    let taken = false;
    const write = (heads: IDBObjectStore, values: IDBObjectStore) => {
      for (const range of deletes) values.delete(range);
      for (const [name, part] of puts) values.put(part, name);
      heads.delete(from);
      // The last request: when one before it fails, Firefox goes on with the commit that was sent already.
      const swap = heads.add(row, to);
      swap.onerror = () => (taken ||= swap.error?.name === 'ConstraintError');
    };
    this.#known = undefined;
    try {
      return await this.#transact<boolean>('readwrite', batch.strict ? 'strict' : 'relaxed', from !== NO_HEAD, (heads, values, transaction) => {
        if (from !== NO_HEAD) {
          write(heads, values);
          return () => {
            this.#known = { key: to, row };
            return true;
          };
        }
        // The making of a memory happens once, and also needs the absence of a key: here the answer is waited for.
        const key = values.getKey('key');
        key.onsuccess = () => {
          if (key.result === undefined) write(heads, values);
          else transaction.abort();
          taken ||= key.result !== undefined;
        };
        return () => true;
      });
    } catch (error) {
      if (taken) return false;
      throw error;
    }
  }

  /** Runs `work` under a Web Lock; without one where that does not come soon or not at all. */
  async #locked<T>(what: string, work: () => Promise<T>): Promise<T> {
    const locks = globalThis.navigator?.locks;
    if (!locks || performance.now() < this.#lockBrokenUntil) return work();
    let begun: Promise<T> | undefined;
    try {
      await locks.request(`${this.#database.name}:${what}`, { signal: AbortSignal.timeout(LOCK_WAIT_MS) }, () => (begun = work()));
    } catch {
      // Not given in time, or not allowed here. What `work` says is awaited below.
      if (!begun) this.#lockBrokenUntil = performance.now() + LOCK_BROKEN_MS;
    }
    return begun ?? work();
  }

  /** Refuses what the browser says it has no room for, before anything is written. Commits that also delete are left to
   * the browser, since forgetting makes room. */
  async #checkRoom(batch: Batch): Promise<void> {
    const bytes = batch.puts.reduce((sum, [, { length }]) => sum + length, 0);
    this.#room.untilAsked -= bytes;
    this.#room.left -= bytes;
    const asking = this.#room.untilAsked < 0 || this.#room.left < 0 ? this.#askForRoom() : undefined;
    if (this.#room.left >= 0 || batch.deletes.length > 0) return;
    await asking;
    if (this.#room.left < bytes) throw full();
    this.#room.left -= bytes;
  }

  async #askForRoom(): Promise<void> {
    this.#room.untilAsked = ROOM_CHECK_BYTES;
    const { usedBytes, quotaBytes } = await this.room();
    this.#room.left = usedBytes === undefined || quotaBytes === undefined ? Infinity : quotaBytes - usedBytes;
  }

  /** Sends the requests of `work`, and with `atOnce` the commit behind them; resolves with what `work` gives, once they
   * are done. */
  #transact<T>(
    mode: IDBTransactionMode,
    durability: IDBTransactionDurability,
    atOnce: boolean,
    work: (heads: IDBObjectStore, values: IDBObjectStore, transaction: IDBTransaction) => () => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined || this.#closed) {
        reject(new ForemindError('storage-lost', this.#lost ?? 'this store is closed; open the memory again'));
        return;
      }
      let transaction: IDBTransaction | undefined;
      try {
        transaction = this.#database.transaction([HEADS, VALUES], mode, { durability });
        const sent = transaction;
        const result = work(sent.objectStore(HEADS), sent.objectStore(VALUES), sent);
        sent.oncomplete = () => resolve(result());
        sent.onabort = () => reject(this.#explain(sent.error));
        // Browsers of before 2021 commit by themselves when the answers have come.
        if (atOnce) sent.commit?.();
      } catch (error) {
        reject(this.#explain(error));
        try {
          // What was sent before the failure must not be committed.
          transaction?.abort();
        } catch {
          // It had ended.
        }
      }
    });
  }

  #explain(error: unknown): ForemindError {
    if (this.#lost !== undefined) return new ForemindError('storage-lost', this.#lost);
    return explain(error);
  }

  #lose(message: string): void {
    if (this.#lost !== undefined || this.#closed) return;
    this.#lost = message;
    this.onlost?.(message);
  }
}

/** The head's first part, and the values beside it by name. */
interface HeadRow {
  [SLOT]: 'head';
  bytes: Uint8Array;
  parts?: number;
  tail?: { [name: string]: Uint8Array };
}

/** What is stored under one name: a whole value, the first of `parts` parts of one, or a later part. */
type Part = Uint8Array | { bytes: Uint8Array; parts?: number };

/** The parts of a value, each with a buffer of its own: a view is stored with all that is behind it. */
function divided(value: Uint8Array): Part[] {
  if (value.length <= PART_BYTES) return [value.byteLength === value.buffer.byteLength ? value : value.slice()];
  const parts = Math.ceil(value.length / PART_BYTES);
  const all = Array.from({ length: parts }, (_, at) => value.slice(at * PART_BYTES, (at + 1) * PART_BYTES));
  return [{ bytes: all[0] as Uint8Array, parts }, ...all.slice(1)];
}

/** What a commit sends: the head's row, and what it puts and deletes elsewhere. `before` is the tail that the new row takes over. */
function planned(head: Uint8Array, batch: Batch, before: HeadRow['tail'] = {}): { row: HeadRow; puts: [name: string, part: Part][]; deletes: IDBKeyRange[] } {
  const row = headRow(head);
  const most = batch.deletes.length >= FOLD_DELETES ? FOLD_TAIL_BYTES : ROW_BYTES;
  const named = new Set([...batch.deletes, ...batch.puts.map(([name]) => name)]);
  const kept = Object.entries(before).filter(([name]) => !named.has(name));
  const isFresh = ([name, { length }]: Batch['puts'][number]) => batch.expectedHead && LOG_NAME.test(name) && length <= most;
  const fresh = batch.puts.filter(isFresh).map(([name, value]): Batch['puts'][number] => [name, value.slice()]);
  const rest = batch.puts.filter((put) => !isFresh(put));
  const tail: HeadRow['tail'] = {};
  let room = ROW_BYTES - row.bytes.length;
  for (const [name, value] of [...kept, ...fresh]) {
    if (value.length > room) {
      rest.push([name, value]);
    } else {
      tail[name] = value;
      room -= value.length;
    }
  }
  return { row: { ...row, tail }, puts: storedParts(rest), deletes: batch.deletes.filter((name) => !(name in before)).map(partsOf) };
}

/** The head's row without a tail: the first part of it. */
function headRow(head: Uint8Array): HeadRow {
  const [first] = divided(head);
  return { [SLOT]: 'head', ...(first === undefined || first instanceof Uint8Array ? { bytes: first ?? head } : first) };
}

/** All parts of values by their names, without the first of the head, which is in its row. */
function storedParts(puts: Batch['puts']): [name: string, part: Part][] {
  return puts.flatMap(([key, value]) =>
    divided(value)
      .map((part, at): [string, Part] => [nameOf(key, at), part])
      .filter(([name]) => name !== 'head'),
  );
}

/** The value of stored parts in their order. Parts left by a longer value before are not looked at; where one is missing, the
 * value is too short, which the vault finds. */
function joined(stored: Part[]): Value {
  const first = stored[0];
  if (first === undefined || first instanceof Uint8Array) return first;
  if (first.bytes.length === 0) return undefined;
  const all = [first.bytes, ...stored.slice(1, first.parts ?? 1).map((part) => (part instanceof Uint8Array ? part : part.bytes))];
  if (all.length === 1) return first.bytes;
  const value = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of all) {
    value.set(part, at);
    at += part.length;
  }
  return value;
}

/** At most 18 parts make a value, so the names sort by number. */
function nameOf(key: string, part: number): string {
  return part === 0 ? key : `${key}.${String(part).padStart(4, '0')}`;
}

/** All names of one value's parts. No key of the core is the beginning of another. */
function partsOf(key: string): IDBKeyRange {
  return IDBKeyRange.bound(key, `${key}.\uffff`);
}

/** The key of a head's row: its token in hexadecimal. */
function rowOf(head: Uint8Array): string {
  return Array.from(head.subarray(0, HEAD_TOKEN_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function upgrade(database: IDBDatabase, transaction: IDBTransaction, from: number): void {
  // A row without a tail is a row.
  if (from === 2) return;
  const values = from < 1 ? database.createObjectStore(VALUES) : transaction.objectStore(VALUES);
  const heads = database.createObjectStore(HEADS);
  heads.createIndex(SLOT, SLOT, { unique: true });
  const none = () => heads.add({ [SLOT]: 'head', bytes: new Uint8Array() }, NO_HEAD);
  if (from < 1) {
    none();
    return;
  }
  const head = values.get('head') as IDBRequest<Value>;
  head.onsuccess = () => {
    if (!head.result) {
      none();
      return;
    }
    heads.add({ [SLOT]: 'head', bytes: head.result }, rowOf(head.result));
    values.delete('head');
  };
}

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    let given = false;
    const refuse = (error: ForemindError) => {
      given = true;
      clearTimeout(timer);
      reject(error);
    };
    const timer = setTimeout(() => refuse(blocked()), OPEN_WAIT_MS);
    let open: IDBOpenDBRequest;
    try {
      open = indexedDB.open(name, VERSION);
    } catch (error) {
      refuse(explain(error, true));
      return;
    }
    // Connections of foremind give way when they hear of it; a frozen tab's does not.
    open.onblocked = () => void setTimeout(() => given || refuse(blocked()), BLOCKED_WAIT_MS);
    open.onupgradeneeded = ({ oldVersion }) => upgrade(open.result, open.transaction as IDBTransaction, oldVersion);
    open.onerror = () => refuse(explain(open.error, true));
    open.onsuccess = () => {
      clearTimeout(timer);
      // Too late: nobody waits any more, and an open connection would block others.
      if (given) open.result.close();
      else resolve(open.result);
      given = true;
    };
  });
}

function blocked(): ForemindError {
  return new ForemindError('storage-lost', 'another tab holds the stored memory and does not give way; close it and try again');
}

/** What the browser's error names mean for the owner's data. */
function explain(error: unknown, opening = false): ForemindError {
  const name = error instanceof DOMException ? error.name : '';
  switch (name) {
    case 'QuotaExceededError':
      return full();
    case 'VersionError':
      return new ForemindError('newer-format', 'the stored memory was made by a newer foremind; update the package');
    case 'SecurityError':
    case 'NotAllowedError':
      return denied();
    case 'UnknownError':
      // Chromium, when site data is blocked in the settings. Only its message tells that from a damaged database.
      if (opening && /denied/i.test((error as DOMException).message)) return denied();
      return storageFailed(name);
    case 'InvalidStateError':
      // When opening: private mode. Later: the connection is gone.
      return opening ? denied() : new ForemindError('storage-lost', 'the connection to the stored memory is gone; open it again');
    case 'NotFoundError':
      return new ForemindError('storage-lost', 'the stored memory is gone; open it again to begin a new one');
    default:
      return storageFailed(name);
  }
}

function full(): ForemindError {
  return new ForemindError('quota-exceeded', 'the browser has no room left for this site; free some space and try again');
}

function denied(): ForemindError {
  return new ForemindError(
    'storage-denied',
    "the browser refuses storage to this page (private mode, or blocked in its settings); allow it, or open with storage: 'memory'",
  );
}

function storageFailed(name: string): ForemindError {
  return new ForemindError('storage-failed', `the browser could not use its storage (${name || 'unknown error'}); nothing was changed`);
}
