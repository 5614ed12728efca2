import { aborted, closed } from './errors.js';
import type { CoreRequest, CoreResponse } from './core.js';
import type { Backend, MemoryEvent } from './session.js';
import type {
  Audience, BudgetOptions, CallOptions, Chain, Disclosure, Domain, Durability, ExportOptions, ForgetTarget, Forgotten, Grade, ImportOptions, Imported,
  ForgetOptions, Ingested, KeySource, ListOptions, Listed, MemoryEvents, MemoryRecord, OpenOptions, Pending, Prompt, Readiness, RecallOptions,
  Receipt, RememberOptions, Remembered, Repaired, Rescanned, Role, Scope, Stats, Status, StorageState, Tier, Turn, Verified, VerifyOptions,
} from './types.js';
import {
  asOfOf, booleanOf, budgetOf, deadlineOf, fileOf, given, idOf, invalid, keyOf, limitOf, nameOf, oneOf, optionsOf, passphraseOf, receiptOf, scopeOf, signalOf,
  targetOf,
  textOf, type Fields,
} from './validate.js';

/** When the caller says nothing; the core's own default. */
const BUDGET_TOKENS = 512;
/** Prompts that the list of disclosures keeps. */
const DISCLOSURES = 1000;
const ROLES: readonly Role[] = ['user', 'assistant', 'tool'];
const TIERS: readonly Tier[] = ['profile', 'store'];
const GRADES: readonly Grade[] = ['modifier', 'circumstance', 'informer'];
const STATUSES: readonly Status[] = ['current', 'superseded', 'retracted', 'expired', 'quarantined', 'erased'];
const DOMAINS: readonly Domain[] = [
  'allergy', 'medication', 'condition', 'procedure', 'pregnancy', 'disability', 'mental-health', 'diet', 'food',
  'fitness', 'religion', 'culture', 'immigration', 'legal', 'policy', 'finance', 'job', 'licence', 'home', 'location',
  'pets', 'dependant', 'devices', 'safety', 'goal', 'instruction', 'session', 'people', 'travel', 'study',
  'appearance', 'hobby', 'general',
];

const role = (value: unknown, what: string) => oneOf(value, ROLES, what);
const audienceOf = (value: unknown, what: string) => oneOf(value, ['remote', 'device'] as const, what);
const tier = (value: unknown, what: string) => oneOf(value, TIERS, what);

/**
 * One open memory: an isolated store of one owner. Every verb takes a scope first, may be given an
 * `AbortSignal`, and rejects with a `ForemindError`; nothing throws synchronously.
 */
export class OpenMemory {
  /** The name it was opened by. */
  readonly name: string;
  readonly #backend: Backend;
  readonly #listeners = new Map<keyof MemoryEvents, Set<(detail: never) => void>>();
  readonly #pseudonyms = new Map<string, string>();
  #disclosures: Disclosure[] = [];
  #isClosed = false;

  /** Opens a memory, begins it where there is none, and takes in a file that `export` has written. */
  static async import<M extends OpenMemory>(
    this: { open(options: OpenOptions): Promise<M> },
    options: OpenOptions,
    file: Uint8Array | Blob,
    how?: ImportOptions,
  ): Promise<M> {
    const memory = await this.open(options);
    try {
      await memory.import(file, how);
      return memory;
    } catch (error) {
      await memory.close();
      throw error;
    }
  }

  /** The visible profile of a memory that is stored, without opening the memory: a few values are read, and no model.
   * `storage-lost` where nothing is stored. */
  static async profile(options: OpenOptions, scope: Scope, budget?: BudgetOptions): Promise<Prompt> {
    const { budgetTokens, audience } = optionsOf(budget, 'options');
    const request = { verb: 'profile', scope: scopeOf(scope), budgetTokens: BUDGET_TOKENS, ...budgetOf(budgetTokens), ...given('audience', audience, audienceOf) };
    return answerOf<Prompt>(await askOf(this)(options, request));
  }

  /** Walks what is stored of a memory, also of one that does not open, and reports; changes nothing. With the receipt of
   * `forget(scope, 'all')`: whether that memory is gone, and the receipt is of it. */
  static async verify(options: OpenOptions & { receipt?: Receipt }): Promise<Verified> {
    const { receipt } = optionsOf(options, 'options') as { receipt?: unknown };
    return answerOf<Verified>(await askOf(this)(options, { verb: 'survey', repair: false, ...given('receipt', receipt, receiptOf) }));
  }

  /** Makes a damaged memory open again: keeps all that is intact and says what was not. Close it everywhere first. */
  static async repair(options: OpenOptions): Promise<Repaired> {
    return answerOf<Repaired>(await askOf(this)(options, { verb: 'survey', repair: true }));
  }

  /** @internal */
  constructor(name: string, backend: Backend) {
    this.name = name;
    this.#backend = backend;
    backend.onevent = (event) => this.#dispatch(event);
  }

  /** Whether this opening began the memory: nothing had been stored under its name. A host that expects an
   * existing memory sees here that it was evicted or deleted. */
  get created(): boolean {
    return this.#backend.created;
  }

  /** How safe what is written is. */
  get durability(): Durability {
    return this.#backend.durability;
  }

  /** Resolves when the embedder is loaded. Rejects with `model-missing` or `model-invalid`, and the memory goes
   * on by words alone. Nothing needs to wait for it. */
  get ready(): Promise<Readiness> {
    return this.#backend.ready;
  }

  /** How many network requests the realm in which this memory runs has made, its own loading included. A page does
   * not see the requests of its workers, so this is where one watches that nothing leaves after `ready`. Counts up
   * to what resource timing keeps (250 by default). */
  async requests(options?: CallOptions): Promise<number> {
    const { signal } = optionsOf(options, 'options');
    return (await this.#call<{ count: number }>(signal, () => ({ verb: 'requests' }))).count;
  }

  /** Stores a text as a record (a long one as several). `text-empty`, `text-too-large`. */
  async remember(scope: Scope, text: string, options?: RememberOptions): Promise<Remembered> {
    const { role: by, thread, turn, tier: to, signal } = optionsOf(options, 'options');
    return this.#call<Remembered>(signal, () => ({
      verb: 'remember',
      scope: scopeOf(scope),
      text: textOf(text, 'text'),
      ...given('role', by, role),
      ...given('thread', thread, nameOf),
      ...given('turn', turn, nameOf),
      ...given('tier', to, tier),
    }));
  }

  /** Takes what is worth keeping from a turn of a conversation. */
  async ingest(scope: Scope, turn: Turn, options?: CallOptions): Promise<Ingested> {
    const { signal } = optionsOf(options, 'options');
    return this.#call<Ingested>(signal, () => {
      if (typeof turn !== 'object' || turn === null) throw invalid('a turn must be an object with thread, turn, role and text');
      return {
        verb: 'ingest',
        scope: scopeOf(scope),
        thread: nameOf(turn.thread, 'thread'),
        turn: nameOf(turn.turn, 'turn'),
        role: role(turn.role, 'role'),
        text: textOf(turn.text, 'text'),
        ...given('status', turn.status, (value, what) => oneOf(value, ['ok', 'failed'] as const, what)),
        ...given('mode', turn.mode, (value, what) => oneOf(value, ['on', 'off', 'incognito'] as const, what)),
        ...given('finding', turn.finding, booleanOf),
      };
    });
  }

  /** What the model should know before it answers `query`: the profile, and what is relevant. */
  async recall(scope: Scope, query: string, options?: RecallOptions): Promise<Prompt> {
    const { budgetTokens, asOf, exposure, audience, deadlineMs, explain, signal } = optionsOf(options, 'options');
    return this.#disclosed('recall', audience, this.#call<Prompt>(signal, () => ({
      verb: 'recall',
      scope: scopeOf(scope),
      query: textOf(query, 'query'),
      ...budgetOf(budgetTokens),
      ...asOfOf(asOf),
      ...given('exposure', exposure, (value, what) => oneOf(value, ['full', 'minimal'] as const, what)),
      ...given('audience', audience, audienceOf),
      ...deadlineOf(deadlineMs),
      ...given('explain', explain, booleanOf),
    })));
  }

  /** The visible profile alone. Byte-stable until a write or `stableUntilMs`. */
  async profile(scope: Scope, options?: RecallOptions): Promise<Prompt> {
    const { budgetTokens, asOf, audience, signal } = optionsOf(options, 'options');
    return this.#disclosed('profile', audience, this.#call<Prompt>(signal, () => ({
      verb: 'profile',
      scope: scopeOf(scope),
      ...budgetOf(budgetTokens),
      ...asOfOf(asOf),
      ...given('audience', audience, audienceOf),
    })));
  }

  /** An answer with what the placeholders of this memory's prompts stand for. */
  restore(answer: string): string {
    return textOf(answer, 'answer').replace(/\[[a-z]+-[a-z2-9]{5}\]/g, (placeholder) => this.#pseudonyms.get(placeholder) ?? placeholder);
  }

  /** What each prompt held, exactly, since this memory was opened: the latest 1,000, oldest first. `forget` empties the list and
   * what `restore` knows, since both may hold what is gone. */
  disclosures(): Disclosure[] {
    return [...this.#disclosures];
  }

  /** One record. `unknown-id` when the scope sees none of that id. */
  async get(scope: Scope, id: string, options?: CallOptions): Promise<MemoryRecord> {
    return (await this.#byId<{ record: MemoryRecord }>('get', scope, id, options)).record;
  }

  /** The records inside a scope, earliest told first. */
  async list(scope: Scope, options?: ListOptions): Promise<Listed> {
    const { tier: of, status, domain, limit, after, signal } = optionsOf(options, 'options');
    return this.#call<Listed>(signal, () => ({
      verb: 'list',
      scope: scopeOf(scope),
      ...given('tier', of, tier),
      ...given('status', status, (value, what) => oneOf(value, STATUSES, what)),
      ...given('domain', domain, (value, what) => oneOf(value, DOMAINS, what)),
      ...limitOf(limit),
      ...given('after', after, idOf),
    }));
  }

  /** What a record replaced and what replaced it, earliest first. */
  async history(scope: Scope, id: string, options?: CallOptions): Promise<Chain[]> {
    return (await this.#byId<{ records: Chain[] }>('history', scope, id, options)).records;
  }

  /** The owner's own verdict on where a record belongs; nothing overrules it. */
  async update(scope: Scope, id: string, change: { tier: Tier }, options?: CallOptions): Promise<MemoryRecord> {
    const response = await this.#byId<{ record: MemoryRecord }>('update', scope, id, options, () => {
      if (typeof change !== 'object' || change === null) throw invalid('the change must be an object with a tier');
      return { tier: tier(change.tier, 'tier') };
    });
    return response.record;
  }

  /** The owner says that a record still holds. */
  async confirm(scope: Scope, id: string, options?: CallOptions): Promise<MemoryRecord> {
    return (await this.#byId<{ record: MemoryRecord }>('confirm', scope, id, options)).record;
  }

  /** The owner says that a quarantined record (`list` with `status: 'quarantined'`) is no instruction: it is current from now on. */
  async release(scope: Scope, id: string, options?: CallOptions): Promise<MemoryRecord> {
    return (await this.#byId<{ record: MemoryRecord }>('release', scope, id, options)).record;
  }

  /** Looks at what is stored with the guard's patterns of now, which may be newer than those it was told under: what they redact is
   * written anew and the old record erased, what is shaped like an instruction is quarantined. */
  async rescan(scope: Scope, options?: CallOptions): Promise<Rescanned> {
    const { signal } = optionsOf(options, 'options');
    const all: Rescanned = { looked: 0, redacted: 0, quarantined: 0 };
    let after: string | undefined;
    do {
      // A part at a time, so that other calls come in between.
      const { next, ...part } = await this.#call<Rescanned & { next?: string }>(signal, () => ({ verb: 'rescan', scope: scopeOf(scope), ...(after === undefined ? {} : { after }) }));
      all.looked += part.looked;
      all.redacted += part.redacted;
      all.quarantined += part.quarantined;
      after = next;
    } while (after !== undefined);
    return all;
  }

  /** Erases for good: a record, what a thread left, what a query finds or names a subject, or all inside the scope; with it
   * what was concluded from nothing else. Gives a receipt that `verify` checks. An id that is not there is `unknown-id`.
   * `'all'` ends the memory itself, of whichever scope its records are: the wrapped data key is destroyed, then every value deleted,
   * and this memory is closed. Its receipt is under the key that opened it, and `Memory.verify` checks it. */
  async forget(scope: Scope, target: ForgetTarget, options?: ForgetOptions): Promise<Forgotten> {
    const { preview, signal } = optionsOf(options, 'options');
    if (target === 'all') {
      scopeOf(scope);
      if (preview !== undefined && booleanOf(preview, 'preview')) throw invalid("'all' has no preview: `stats` counts what there is");
      const { receipt } = await this.#call<{ receipt: Receipt }>(signal, () => ({ verb: 'destroy' }));
      this.#pseudonyms.clear();
      this.#disclosures = [];
      await this.close();
      return { erased: receipt.counts.records, counts: receipt.counts, preview: [], receipt };
    }
    const forgotten = await this.#call<Forgotten>(signal, () => ({
      verb: 'forget',
      scope: scopeOf(scope),
      target: targetOf(target),
      ...given('preview', preview, booleanOf),
    }));
    if (forgotten.erased > 0) {
      this.#pseudonyms.clear();
      this.#disclosures = [];
    }
    return forgotten;
  }

  /** Records in doubt, for a model of the host to judge. */
  async pending(scope: Scope, options?: CallOptions): Promise<Pending> {
    const { signal } = optionsOf(options, 'options');
    return this.#call<Pending>(signal, () => ({ verb: 'pending', scope: scopeOf(scope) }));
  }

  /** The verdict of the host's own model on a record in doubt. */
  async judge(scope: Scope, id: string, grade: Grade, options?: CallOptions): Promise<MemoryRecord> {
    const response = await this.#byId<{ record: MemoryRecord }>('judge', scope, id, options, () => ({
      grade: oneOf(grade, GRADES, 'grade'),
    }));
    return response.record;
  }

  /** Counts inside a scope. */
  async stats(scope: Scope, options?: CallOptions): Promise<Stats> {
    const { signal } = optionsOf(options, 'options');
    return this.#call<Stats>(signal, () => ({ verb: 'stats', scope: scopeOf(scope) }));
  }

  /** How safe and how full the storage is. */
  async storage(options?: CallOptions): Promise<StorageState> {
    const { signal } = optionsOf(options, 'options');
    return this.#call<StorageState>(signal, () => ({ verb: 'storage' }));
  }

  /** Everything in the memory as one file, lossless: sealed by a passphrase, or as JSON Lines that everybody can read.
   * Which of the two is said, never assumed. */
  async export(options: ExportOptions): Promise<Uint8Array> {
    const { passphrase, plain, signal } = optionsOf(options as { passphrase?: unknown; plain?: unknown; signal?: AbortSignal }, 'options');
    const { file } = await this.#call<{ file: Uint8Array }>(signal, () => {
      if ((passphrase === undefined) === (plain !== true)) throw invalid('say { passphrase } to seal the file, or { plain: true }');
      return { verb: 'export', ...given('passphrase', passphrase, passphraseOf) };
    });
    return file;
  }

  /** Takes in a file that `export` has written, of this memory or of another. What is known stays as it is, what was
   * forgotten here stays forgotten (unless `restore`). `wrong-key`, `corrupt`, `newer-format`; nothing is taken then. */
  async import(file: Uint8Array | Blob, options?: ImportOptions): Promise<Imported> {
    const { passphrase, restore, signal } = optionsOf(options, 'options');
    const bytes = await fileOf(file);
    return this.#call<Imported>(signal, () => ({
      verb: 'import',
      file: bytes,
      ...given('passphrase', passphrase, passphraseOf),
      ...given('restore', restore, booleanOf),
    }));
  }

  /** Walks everything that is stored and reports; changes nothing. With a receipt it says whether that erasure holds: the
   * chain of receipts, no trace in any stored value or index, and the root if nothing was written since. */
  async verify(options?: VerifyOptions): Promise<Verified> {
    const { receipt, signal } = optionsOf(options, 'options');
    return this.#call<Verified>(signal, () => ({ verb: 'verify', ...given('receipt', receipt, receiptOf) }));
  }

  /** Wraps the data key anew: from here on the memory opens with this key, and no longer with the one before. What is
   * stored is not encrypted again, so a copy made earlier still opens with the earlier key. */
  async rekey(key: KeySource, options?: CallOptions): Promise<void> {
    const { signal } = optionsOf(options, 'options');
    await this.#call(signal, () => ({ verb: 'rekey', key: keyOf(key) }));
  }

  /** Listens to an event; returns the way to stop. What a listener throws is reported, not passed on. */
  on<Name extends keyof MemoryEvents>(name: Name, listener: (detail: MemoryEvents[Name]) => void): () => void {
    if (typeof listener !== 'function') throw invalid('a listener must be a function');
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Ends everything that is under way and lets go of the store. Writes that had begun are finished first.
   * Further calls reject with `closed`; closing again does nothing. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#backend.close();
  }

  async #disclosed(verb: Disclosure['verb'], audience: Audience | undefined, call: Promise<Prompt>): Promise<Prompt> {
    const given = await call;
    for (const { placeholder, text } of given.pseudonyms ?? []) this.#pseudonyms.set(placeholder, text);
    const records = [...given.profile, ...given.joined, ...given.context].map(({ record }) => record.id);
    this.#disclosures.push({ atMs: Date.now(), verb, audience: audience ?? 'remote', prompt: given.prompt, records });
    if (this.#disclosures.length > DISCLOSURES) this.#disclosures.shift();
    return given;
  }

  #byId<T>(verb: string, scope: Scope, id: string, options: CallOptions | undefined, more: () => Fields = () => ({})): Promise<T> {
    const { signal } = optionsOf(options, 'options');
    return this.#call<T>(signal, () => ({ verb, scope: scopeOf(scope), id: idOf(id), ...more() }));
  }

  async #call<T>(signal: unknown, request: () => CoreRequest): Promise<T> {
    if (this.#isClosed) throw closed();
    const checked = signalOf(signal);
    const built = request();
    if (checked?.aborted) throw aborted();
    return answerOf<T>(await this.#backend.call(built, checked));
  }

  #dispatch(event: MemoryEvent): void {
    for (const listener of this.#listeners.get(event.name) ?? []) {
      try {
        (listener as (detail: unknown) => void)(event.detail);
      } catch (error) {
        // As an event target would: the others are called, and the failure shows up where failures are seen.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** @internal What an entry's class answers by without opening a memory. */
export type Ask = (options: OpenOptions, request: CoreRequest) => Promise<CoreResponse>;

function askOf(entry: unknown): Ask {
  return (entry as { ask: Ask }).ask;
}

/** A response without the word that names it. */
function answerOf<T>({ kind: _, ...response }: CoreResponse): T {
  return response as T;
}
