import type { Batch, Value } from '../core.js';
import type { Durability } from '../types.js';
import { headMatches, type Capabilities, type Store } from './store.js';

/** Keeps everything in a map that several instances may share, as tabs share a database. Gone with the process. */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities = { atomicBatch: true, cas: true, ticket: false, readAfterWrite: true, list: true };
  onwake?: () => void;
  readonly #values: Map<string, Uint8Array>;

  constructor(values: Map<string, Uint8Array> = new Map()) {
    this.#values = values;
  }

  async read(keys: string[]): Promise<Value[]> {
    return keys.map((key) => this.#values.get(key)?.slice());
  }

  async commit(batch: Batch): Promise<boolean> {
    if (!headMatches(this.#values.get('head'), batch.expectedHead)) return false;
    if (!batch.expectedHead && this.#values.has('key')) return false;
    await this.replace(batch.puts, batch.deletes);
    return true;
  }

  async replace(puts: Batch['puts'], deletes: string[]): Promise<void> {
    for (const key of deletes) this.#values.delete(key);
    for (const [key, value] of puts) this.#values.set(key, value.slice());
  }

  async list(): Promise<string[]> {
    return [...this.#values.keys()];
  }

  async durability(): Promise<Durability> {
    return 'volatile';
  }

  async close(): Promise<void> {}
}
