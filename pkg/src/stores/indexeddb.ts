import type { Batch, Value } from '../core.js';
import { ForemindError } from '../errors.js';
import type { Durability } from '../types.js';
import { headMatches, type Store } from './store.js';

const VALUES = 'values';
/** How long an opening may take before the database counts as blocked by another connection. */
const OPEN_WAIT_MS = 10_000;

/**
 * One database for each memory, one object store, and a `BroadcastChannel` of the same name. A commit is one
 * `readwrite` transaction that reads the head, compares and writes: IndexedDB runs those one after the other
 * across tabs, so no tab leads and a frozen one holds no lock. The channel only wakes the others; a message
 * that is lost costs nothing, since every call looks at the head anyway.
 */
export class IndexedDbStore implements Store {
  onwake?: () => void;
  onlost?: (message: string) => void;
  readonly #database: IDBDatabase;
  readonly #channel: BroadcastChannel | undefined;
  #lost: string | undefined;
  #closed = false;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Somebody deletes the database: giving way at once keeps this tab from blocking it.
    database.onversionchange = () => {
      database.close();
      this.#lose('the stored memory was deleted from another tab; open it again to begin a new one');
    };
    // The browser closed it: storage cleared by the user, or evicted.
    database.onclose = () => this.#lose('the browser closed the stored memory (site data cleared or evicted); open it again');
    if (typeof BroadcastChannel !== 'undefined') {
      this.#channel = new BroadcastChannel(database.name);
      this.#channel.onmessage = () => this.onwake?.();
    }
  }

  static async open(name: string): Promise<IndexedDbStore> {
    if (typeof indexedDB === 'undefined') {
      throw new ForemindError('unsupported', "there is no IndexedDB here; open with storage: 'memory' to keep nothing");
    }
    return new IndexedDbStore(await openDatabase(`foremind:${name}`));
  }

  read(keys: string[]): Promise<Value[]> {
    return this.#transact<Value[]>('readonly', {}, (values, done) => {
      const requests = keys.map((key) => values.get(key) as IDBRequest<Value>);
      done(() => requests.map((request) => request.result));
    });
  }

  async commit(batch: Batch): Promise<boolean> {
    const options: IDBTransactionOptions = batch.strict ? { durability: 'strict' } : {};
    const written = await this.#transact<boolean>('readwrite', options, (values, done) => {
      let matches = false;
      const head = values.get('head') as IDBRequest<Value>;
      const key = values.getKey('key');
      // Requests of one transaction are answered in order, so `head` is there when `key` is.
      key.onsuccess = () => {
        matches = headMatches(head.result, batch.expectedHead) && (batch.expectedHead !== undefined || key.result === undefined);
        if (!matches) return;
        for (const name of batch.deletes) values.delete(name);
        for (const [name, value] of batch.puts) values.put(value, name);
      };
      done(() => matches);
    });
    if (written) this.#channel?.postMessage('written');
    return written;
  }

  async durability(): Promise<Durability> {
    try {
      return (await navigator.storage.persisted()) ? 'persistent' : 'best-effort';
    } catch {
      return 'best-effort';
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#channel?.close();
    // Transactions under way end first; the browser sees to that.
    this.#database.close();
  }

  #transact<T>(
    mode: IDBTransactionMode,
    options: IDBTransactionOptions,
    work: (values: IDBObjectStore, done: (result: () => T) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) {
        reject(new ForemindError('storage-lost', this.#lost));
        return;
      }
      try {
        const transaction = this.#database.transaction(VALUES, mode, options);
        let result: (() => T) | undefined;
        transaction.oncomplete = () => {
          if (result) resolve(result());
        };
        transaction.onabort = () => reject(this.#explain(transaction.error));
        work(transaction.objectStore(VALUES), (give) => {
          result = give;
        });
      } catch (error) {
        reject(this.#explain(error));
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
      open = indexedDB.open(name, 1);
    } catch (error) {
      refuse(explain(error, true));
      return;
    }
    open.onblocked = () => refuse(blocked());
    open.onupgradeneeded = () => open.result.createObjectStore(VALUES);
    open.onerror = () => refuse(explain(open.error, true));
    open.onsuccess = () => {
      clearTimeout(timer);
      // Too late: nobody waits any more, and an open connection would block others.
      if (given) open.result.close();
      else resolve(open.result);
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
      return new ForemindError('quota-exceeded', 'the browser has no room left for this site; free some space and try again');
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

function denied(): ForemindError {
  return new ForemindError(
    'storage-denied',
    "the browser refuses storage to this page (private mode, or blocked in its settings); allow it, or open with storage: 'memory'",
  );
}

function storageFailed(name: string): ForemindError {
  return new ForemindError('storage-failed', `the browser could not use its storage (${name || 'unknown error'}); nothing was changed`);
}
