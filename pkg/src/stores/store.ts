import type { Batch, Value } from '../core.js';
import type { Durability } from '../types.js';

/**
 * Where one memory's bytes are. Keys are `head`, `key` or 32 hexadecimal digits; values are at most 1 MiB.
 * Every failure is a `ForemindError` with a storage code.
 */
export interface Store {
  /** The values in the order of the keys, all of one moment: never half of a batch. */
  read(keys: string[]): Promise<Value[]>;
  /**
   * Writes all or nothing, provided that `head` still starts with `expectedHead` (or, without that, that
   * neither `head` nor `key` exists). False when it does not: somebody else was faster.
   */
  commit(batch: Batch): Promise<boolean>;
  /** How safe acknowledged writes are. */
  durability(): Promise<Durability>;
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
