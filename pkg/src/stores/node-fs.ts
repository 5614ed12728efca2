import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, readdir, rename, rm, stat, statfs, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

import type { Batch, Value } from '../core.js';
import { ForemindError } from '../errors.js';
import type { Durability } from '../types.js';
import { headMatches, type Capabilities, type Room, type Store } from './store.js';

/** How long a lock is waited for before the store counts as failed. */
const LOCK_WAIT_MS = 40_000;
/** A lock is held for milliseconds. One so old belongs to a frozen process, to another host, or to a process
 * id that was given out again. */
const LOCK_STALE_MS = 30_000;
const LOCK = 'lock';
const JOURNAL = 'journal';
const MAGIC = 'foremind-journal-1\n';
const DIGEST_BYTES = 32;
/** Files of one batch that are written at the same time. */
const WRITES_AT_ONCE = 8;

/**
 * A folder for each memory, a file for each key.
 *
 * Why a crash at any point leaves the old or the new state, never a mixture: under the lock the whole batch is
 * written to one journal file (temporary name, fsync, rename, fsync of the folder). That rename is the commit.
 * Before it nothing of the batch is visible. After it the batch is applied file by file, each put with the same
 * temporary name, fsync and rename, and the journal is removed last. Whoever takes the lock next and finds a
 * journal applies it again from the start, which is idempotent, before reading or writing anything. A journal
 * carries a SHA-256 of its content, so one that the disk cut is refused as a whole.
 *
 * The lock is a file made with `O_EXCL` that names its process. It is taken over when that process is dead, or
 * after 30 s. A process that was frozen for so long checks before each rename that the lock is still its own.
 */
export class NodeFsStore implements Store {
  readonly capabilities: Capabilities = { atomicBatch: true, cas: true, ticket: false, readAfterWrite: true, list: true };
  readonly #folder: string;
  /** Calls of this instance take turns, so that they do not poll for their own lock. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** `parent` is made when absent. */
  static async open(parent: string, name: string): Promise<NodeFsStore> {
    const folder = join(parent, folderName(name));
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw explain(error);
    }
    return new NodeFsStore(folder);
  }

  read(keys: string[]): Promise<Value[]> {
    return this.#locked(async () => {
      const values: Value[] = [];
      for (const key of keys) values.push(await this.#value(key));
      return values;
    });
  }

  commit(batch: Batch): Promise<boolean> {
    return this.#locked(async (held) => {
      if (!headMatches(await this.#value('head'), batch.expectedHead)) return false;
      if (!batch.expectedHead && (await this.#value('key'))) return false;
      await this.#write(batch, held);
      return true;
    });
  }

  replace(puts: Batch['puts'], deletes: string[]): Promise<void> {
    return this.#locked((held) => this.#write({ puts, deletes }, held));
  }

  list(): Promise<string[]> {
    return this.#locked(async () => (await readdir(this.#folder)).filter(isKey));
  }

  async durability(): Promise<Durability> {
    return 'persistent';
  }

  /** What the file system tells; used are this memory's own files. */
  async room(): Promise<Room> {
    try {
      const sizes = await Promise.all((await readdir(this.#folder)).map((name) => stat(this.#path(name)).then(({ size }) => size, () => 0)));
      const usedBytes = sizes.reduce((sum, size) => sum + size, 0);
      const { bavail, bsize } = await statfs(this.#folder);
      return { usedBytes, quotaBytes: usedBytes + bavail * bsize };
    } catch (error) {
      throw explain(error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }

  async #write(batch: Journal, held: Held): Promise<void> {
    const journal = encodeJournal(batch);
    await this.#writeFile(JOURNAL, journal, held);
    try {
      await this.#syncFolder();
    } catch (error) {
      await this.#remove(JOURNAL);
      throw error;
    }
    try {
      await this.#apply(decodeJournal(journal), held);
    } catch {
      // Committed all the same: whoever comes next applies the journal, or says why it cannot.
    }
  }

  #locked<T>(work: (held: Held) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new ForemindError('storage-lost', 'this store is closed; open the memory again'));
    const turn = this.#last.then(async () => {
      try {
        const held = await this.#lock();
        try {
          await this.#recover(held);
          return await work(held);
        } finally {
          await this.#unlock(held);
        }
      } catch (error) {
        throw explain(error);
      }
    });
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #value(key: string): Promise<Value> {
    try {
      const bytes = await readFile(this.#path(key));
      return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  async #recover(held: Held): Promise<void> {
    const journal = await this.#value(JOURNAL);
    if (!journal) return;
    const batch = decodeJournal(journal);
    if (batch) await this.#apply(batch, held);
    // Its rename was not preceded by all of its bytes (a disk that lies about fsync): the old state stands.
    else await unlink(this.#path(JOURNAL));
  }

  async #apply(batch: Journal | undefined, held: Held): Promise<void> {
    if (!batch) throw new ForemindError('internal', 'a journal just written does not decode; please report this');
    // The journal holds all of it, so their order does not matter, and the disk syncs several for the price of one.
    const waiting = [...batch.puts];
    const write = async () => {
      for (let put = waiting.pop(); put; put = waiting.pop()) await this.#writeFile(put[0], put[1], held);
    };
    const written = await Promise.allSettled(Array.from({ length: Math.min(WRITES_AT_ONCE, waiting.length) }, write));
    for (const end of written) if (end.status === 'rejected') throw end.reason;
    await this.#check(held);
    for (const key of batch.deletes) await this.#remove(key);
    await this.#syncFolder();
    await this.#remove(JOURNAL);
    for (const name of await readdir(this.#folder)) {
      // Left behind by a crash before its rename.
      if (name.endsWith('.tmp')) await this.#remove(name);
    }
  }

  async #writeFile(key: string, value: Uint8Array, held: Held): Promise<void> {
    const temporary = this.#path(`${key}.tmp`);
    try {
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(value);
        await file.sync();
      } finally {
        await file.close();
      }
      await this.#check(held);
      await rename(temporary, this.#path(key));
    } catch (error) {
      await this.#remove(`${key}.tmp`);
      throw error;
    }
  }

  async #remove(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  /** Makes renames and removals durable. Windows has no such call for folders and needs none. */
  async #syncFolder(): Promise<void> {
    if (process.platform === 'win32') return;
    const folder = await open(this.#folder, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  async #lock(): Promise<Held> {
    const held: Held = { pid: process.pid, host: hostname(), nonce: randomBytes(8).toString('hex') };
    const until = performance.now() + LOCK_WAIT_MS;
    // The content goes in before the name appears, so that nobody ever sees a lock without an owner.
    const prepared = this.#path(`lock.${held.nonce}`);
    const file = await open(prepared, 'wx', 0o600);
    try {
      await file.writeFile(JSON.stringify(held));
    } finally {
      await file.close();
    }
    try {
      for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
        try {
          await link(prepared, this.#path(LOCK));
          return held;
        } catch (error) {
          if (codeOf(error) !== 'EEXIST') throw error;
        }
        await this.#breakStaleLock(held);
        if (performance.now() > until) {
          throw new ForemindError('storage-failed', 'another process holds the memory folder and does not let go; stop it and try again');
        }
        await new Promise((resolve) => setTimeout(resolve, waitMs * (0.5 + Math.random())));
      }
    } finally {
      await rm(prepared, { force: true });
    }
  }

  async #breakStaleLock(mine: Held): Promise<void> {
    let owner: Partial<Held>;
    let ageMs: number;
    try {
      owner = JSON.parse(await readFile(this.#path(LOCK), 'utf8'));
      ageMs = Date.now() - (await stat(this.#path(LOCK))).mtimeMs;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return;
      if (!(error instanceof SyntaxError)) throw error;
      owner = {};
      ageMs = LOCK_STALE_MS + 1;
    }
    const dead = owner.host === mine.host && typeof owner.pid === 'number' && !isAlive(owner.pid);
    if (!dead && ageMs <= LOCK_STALE_MS) return;
    // Two may find it stale at once. Renaming gives it to one of them; should that one have caught a younger
    // lock instead, it puts it back.
    const aside = this.#path(`lock.stale.${mine.nonce}`);
    try {
      await rename(this.#path(LOCK), aside);
      const caught: Partial<Held> = JSON.parse(await readFile(aside, 'utf8'));
      if (caught.nonce !== owner.nonce) await link(aside, this.#path(LOCK));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST' && !(error instanceof SyntaxError)) throw error;
    } finally {
      await rm(aside, { force: true });
    }
  }

  async #check(held: Held): Promise<void> {
    let owner: Partial<Held> = {};
    try {
      owner = JSON.parse(await readFile(this.#path(LOCK), 'utf8'));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && !(error instanceof SyntaxError)) throw error;
    }
    if (owner.nonce !== held.nonce) {
      throw new ForemindError('storage-failed', 'this process was stopped for so long that another took over the memory folder; try again');
    }
  }

  async #unlock(held: Held): Promise<void> {
    try {
      await this.#check(held);
      await unlink(this.#path(LOCK));
    } catch {
      // Not ours any more, or the folder is gone: either way there is nothing to release.
    }
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}

interface Held {
  pid: number;
  host: string;
  /** Tells this holding from every other, also of the same process. */
  nonce: string;
}

interface Journal {
  puts: [key: string, value: Uint8Array][];
  deletes: string[];
}

/** Magic, SHA-256 of the rest, length of the index (u32 LE), index as JSON, then the values one after another. */
function encodeJournal(batch: Journal): Uint8Array {
  const index = Buffer.from(
    JSON.stringify({ puts: batch.puts.map(([key, value]) => [checkedKey(key), value.length]), deletes: batch.deletes.map(checkedKey) }),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32LE(index.length);
  const body = Buffer.concat([length, index, ...batch.puts.map(([, value]) => value)]);
  return Buffer.concat([Buffer.from(MAGIC), createHash('sha256').update(body).digest(), body]);
}

function decodeJournal(bytes: Uint8Array): Journal | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = MAGIC.length + DIGEST_BYTES;
  if (buffer.length < start + 4 || buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  const digest = createHash('sha256').update(buffer.subarray(start)).digest();
  if (!digest.equals(buffer.subarray(MAGIC.length, start))) return undefined;
  const indexEnd = start + 4 + buffer.readUInt32LE(start);
  const index: { puts: [string, number][]; deletes: string[] } = JSON.parse(buffer.toString('utf8', start + 4, indexEnd));
  let at = indexEnd;
  const puts = index.puts.map(([key, length]): [string, Uint8Array] => {
    const value = buffer.subarray(at, at + length);
    at += length;
    return [checkedKey(key), value];
  });
  return { puts, deletes: index.deletes.map(checkedKey) };
}

const isKey = (name: string) => /^(?:head|key|spare|[0-9a-f]{32})$/.test(name);

/** Keys become file names, so nothing but the vault's own alphabet may pass. */
function checkedKey(key: string): string {
  if (!isKey(key)) throw new ForemindError('internal', 'the core named a key of unknown form; please report this');
  return key;
}

/**
 * A folder name for a memory's name that is the same memory on every file system: upper case and dots are
 * escaped, since some systems fold the first and some forbid the second at the end; long names are hashed.
 */
export function folderName(name: string): string {
  const escaped = name.replace(/[^a-z0-9_-]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return escaped.length <= 200 ? `m-${escaped}` : `h-${createHash('sha256').update(name).digest('hex')}`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    return codeOf(error) !== 'ESRCH';
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

function explain(error: unknown): ForemindError {
  if (error instanceof ForemindError) return error;
  const code = codeOf(error);
  switch (code) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ForemindError('storage-denied', 'the memory folder may not be written; check its permissions');
    case 'ENOSPC':
    case 'EDQUOT':
      return new ForemindError('quota-exceeded', 'the disk of the memory folder is full; free some space and try again');
    case 'ENOENT':
    case 'ENOTDIR':
      return new ForemindError('storage-lost', 'the memory folder is gone; close the memory, and open it again to begin a new one');
    default:
      return new ForemindError('storage-failed', `the memory folder could not be used (${code ?? 'unknown error'}); nothing was acknowledged`);
  }
}
