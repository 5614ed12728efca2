// The visible profile of a memory in a store that is read late (Cloudflare KV): what reading it takes, as one value, so that no
// reader ever sees half of it. docs/FORMAT.md lays it out.
import type { Core, CoreResponse, Value } from './core.js';
import { driveProfile, reachProfile } from './driver.js';
import { toPlain } from './errors.js';
import { HostKey } from './keys.js';
import type { Store } from './stores/store.js';

/** The part of a KV namespace that is used here. */
export interface ReplicaStore {
  get(name: string, type: 'arrayBuffer'): Promise<ArrayBuffer | null>;
  put(name: string, value: Uint8Array): Promise<void>;
  delete(name: string): Promise<void>;
}

/** A profile out of a replica. */
export interface ReplicaProfile {
  /** How many commits led to it. */
  generation: number;
  /** At most so many milliseconds ago it was the newest one. */
  ageMs: number;
  /** As `profile` answers. */
  response: CoreResponse;
}

/** Least time from one publication to the next, in milliseconds: what KV takes for each name. */
export const PUBLISH_EVERY_MS = 1_000;
/** Longest wait after failures, in milliseconds. */
const LONGEST_WAIT_MS = 64_000;

const MAGIC = [0x46, 0x4d, 0x52, 0x50];
const VERSION = 1;
const AT_MS_AT = 8;
const MAC_AT = 16;
const VALUES_AT = 48;
/** In `head`, as in every value of the log. */
const GENERATION_AT = 8;

/** Keeps the replica of one memory up to date while its object lives: at most one publication a second, fewer after failures. */
export class Publisher {
  readonly #replica: ReplicaStore;
  readonly #name: string;
  #wanted: (() => Promise<Uint8Array | undefined>) | undefined;
  #running: Promise<void> | undefined;
  #putting: Promise<unknown> | undefined;
  #notBeforeMs = 0;
  #failures = 0;
  #stopped = false;

  constructor(replica: ReplicaStore, name: string) {
    this.#replica = replica;
    this.#name = name;
  }

  /** Publishes what `pack` gives when its time has come; several calls until then are one. Resolves when it is done. */
  publish(pack: () => Promise<Uint8Array | undefined>): Promise<void> {
    this.#wanted = pack;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Nothing is published any more, and what is there goes. */
  async remove(): Promise<void> {
    this.#stopped = true;
    this.#wanted = undefined;
    await this.#putting?.catch(() => {});
    await this.#replica.delete(this.#name);
  }

  async #run(): Promise<void> {
    while (this.#wanted && !this.#stopped) {
      const waitMs = this.#notBeforeMs - Date.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      const pack = this.#wanted;
      this.#wanted = undefined;
      if (!pack || this.#stopped) return;
      try {
        const value = await pack();
        if (value && !this.#stopped) await (this.#putting = this.#replica.put(this.#name, value));
        this.#failures = 0;
        this.#notBeforeMs = Date.now() + PUBLISH_EVERY_MS;
      } catch {
        // What was not published is published with the next state, or this one again.
        this.#wanted ??= pack;
        this.#notBeforeMs = Date.now() + Math.min(PUBLISH_EVERY_MS * 2 ** this.#failures++, LONGEST_WAIT_MS);
      }
    }
  }
}

/** What reading the profile takes, packed; undefined where none is stored yet. No commit may come in between. */
export async function pack(core: Core, store: Store, key: Uint8Array, nowMs: number): Promise<Uint8Array | undefined> {
  const values = new Map<string, Uint8Array>();
  const recording = withRead(store, async (names) => {
    const found = await store.read(names);
    found.forEach((value, at) => value && values.set(names[at] ?? '', value));
    return found;
  });
  const keys = new HostKey(key);
  try {
    if (!(await reachProfile(core, recording, keys, new AbortController().signal))) return undefined;
  } finally {
    keys.clear();
  }
  const names = [...values].map(([name, value]) => ({ name: new TextEncoder().encode(name), value }));
  const bytes = new Uint8Array(names.reduce((sum, { name, value }) => sum + 5 + name.length + value.length, VALUES_AT));
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint16(4, VERSION, true);
  view.setUint16(6, names.length, true);
  view.setBigInt64(AT_MS_AT, BigInt(nowMs), true);
  let at = VALUES_AT;
  for (const { name, value } of names) {
    bytes[at] = name.length;
    bytes.set(name, at + 1);
    view.setUint32(at + 1 + name.length, value.length, true);
    bytes.set(value, at + 5 + name.length);
    at += 5 + name.length + value.length;
  }
  bytes.set(new Uint8Array(await crypto.subtle.sign('HMAC', await macKey(key), covered(bytes))), MAC_AT);
  return bytes;
}

/** The profile of a packed value; undefined for one that is damaged, another memory's, or of a later version. */
export async function unpack(
  core: Core,
  bytes: Uint8Array,
  key: Uint8Array,
  asked: { scope: unknown; budgetTokens: number; audience?: unknown },
  nowMs: number,
): Promise<ReplicaProfile | undefined> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < VALUES_AT || MAGIC.some((byte, at) => bytes[at] !== byte) || view.getUint16(4, true) !== VERSION) return undefined;
  const mac = new Uint8Array(bytes.subarray(MAC_AT, VALUES_AT));
  if (!(await crypto.subtle.verify('HMAC', await macKey(key), mac, covered(bytes)))) return undefined;
  const values = new Map<string, Value>();
  let at = VALUES_AT;
  for (let left = view.getUint16(6, true); left > 0; left -= 1) {
    const end = at + 1 + (bytes[at] ?? 0);
    const name = new TextDecoder().decode(bytes.subarray(at + 1, end));
    at = end + 4 + view.getUint32(end, true);
    values.set(name, bytes.slice(end + 4, at));
  }
  const head = values.get('head');
  if (!head) return undefined;
  const keys = new HostKey(key);
  try {
    const store = withRead(undefined, async (names) => names.map((name) => values.get(name)));
    const response = await driveProfile(core, store, keys, { verb: 'profile', ...asked }, new AbortController().signal);
    return {
      generation: Number(new DataView(head.buffer, head.byteOffset).getBigUint64(GENERATION_AT, true)),
      // Two machines' clocks: what was published in the future is fresh.
      ageMs: Math.max(0, nowMs - Number(view.getBigInt64(AT_MS_AT, true))),
      response,
    };
  } catch (error) {
    if (toPlain(error).code === 'invalid-argument') throw error;
    return undefined;
  } finally {
    keys.clear();
  }
}

/** What the code is over: all but itself. */
function covered(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(bytes.length - (VALUES_AT - MAC_AT));
  all.set(bytes.subarray(0, MAC_AT));
  all.set(bytes.subarray(VALUES_AT), MAC_AT);
  return all;
}

/** Derived, so that the key which wraps is used for nothing else. */
async function macKey(key: Uint8Array): Promise<CryptoKey> {
  const base = await crypto.subtle.importKey('raw', new Uint8Array(key), 'HKDF', false, ['deriveKey']);
  const info = new TextEncoder().encode('foremind profile replica 1');
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info };
  return crypto.subtle.deriveKey(derivation, base, { name: 'HMAC', hash: 'SHA-256', length: 256 }, false, ['sign', 'verify']);
}

/** A store of which only this is used. */
function withRead(store: Store | undefined, read: Store['read']): Store {
  const readOnly = () => Promise.reject(new Error('a replica is read only'));
  return {
    capabilities: store?.capabilities ?? { atomicBatch: false, cas: false, ticket: false, readAfterWrite: false, list: false },
    read,
    commit: readOnly,
    replace: readOnly,
    durability: async () => 'volatile',
    close: async () => {},
  };
}
