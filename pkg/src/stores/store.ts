import type { Batch, Value } from '../core.js';
import type { Durability } from '../types.js';

/** The most bytes that the core gives a store as one value. A store whose host allows less divides and joins. */
export const VALUE_BYTES = 1_044_480;

/** How many bytes at the start of `head` are its token. */
export const HEAD_TOKEN_BYTES = 32;

/** What a store can do; the conformance suite (`tests/stores/`) holds it to each word. */
export interface Capabilities {
  /** A commit is there as a whole or not at all, for readers and after a crash at any point. */
  readonly atomicBatch: boolean;
  /** A commit compares the head and swaps it in one step, also against other processes and tabs. */
  readonly cas: boolean;
  /** There is a counter that gives each number once. */
  readonly ticket: boolean;
  /** A read that begins after an acknowledged commit sees it, in every instance. */
  readonly readAfterWrite: boolean;
  /** The names of all stored values can be listed. Only `verify` and repair ask for that. */
  readonly list: boolean;
}

/** What the host says about room, in bytes; what it does not tell is absent. Browsers count the whole origin. */
export interface Room {
  usedBytes?: number;
  quotaBytes?: number;
}

/**
 * Where one memory's bytes are. Keys are `head`, `key`, `spare` or 32 hexadecimal digits, under which a value is put once, and
 * perhaps deleted, but never replaced; values are at most {@link VALUE_BYTES}. Every failure is a `ForemindError` with a storage code.
 */
export interface Store {
  readonly capabilities: Capabilities;
  /** The values in the order of the keys, all of one moment: never half of a batch. */
  read(keys: string[]): Promise<Value[]>;
  /**
   * Writes all or nothing, provided that the token of `head` still is `expectedHead` (or, without that, that
   * neither `head` nor `key` exists). False when it does not: somebody else was faster. `puts` holds the new
   * `head`, and no name is in both `puts` and `deletes`.
   */
  commit(batch: Batch): Promise<boolean>;
  /** Writes all or nothing, whatever the head is. Only for repair, where the head may be what is damaged. */
  replace(puts: Batch['puts'], deletes: string[]): Promise<void>;
  /** Runs an operation that writes, when it is this instance's turn among several that are writing. Only a courtesy: an
   * operation outside of it is as safe. */
  turn?<T>(work: () => Promise<T>): Promise<T>;
  /** The names of all stored values, in no particular order. Where `capabilities.list` is true. */
  list?(): Promise<string[]>;
  /** How safe acknowledged writes are. */
  durability(): Promise<Durability>;
  /** How much room is used and left, where the host says so. */
  room?(): Promise<Room>;
  /** Called when another instance has written. */
  onwake?: () => void;
  /** Called once when the store goes away under us. */
  onlost?: (message: string) => void;
  close(): Promise<void>;
}

/** Whether `head` is what a batch was planned on. The token is the first bytes of the value. */
export function headMatches(head: Value, expected: Uint8Array | undefined): boolean {
  if (!expected || !head) return !expected && !head;
  return head.length >= expected.length && expected.every((byte, at) => head[at] === byte);
}
