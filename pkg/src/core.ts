import { fromPlain, isPlainError, type PlainError } from './errors.js';

/** Bytes of one value, or nothing stored under the key. */
export type Value = Uint8Array | undefined;

/** What one commit writes, all or nothing. */
export interface Batch {
  /** The token at the start of `head` that the batch was planned on; absent when no head may exist. */
  expectedHead?: Uint8Array;
  puts: [key: string, value: Uint8Array][];
  deletes: string[];
  /** Must have reached the disk before it is acknowledged. */
  strict: boolean;
}

type ReadStep = { kind: 'read'; keys: string[] };
type CommitStep = { kind: 'commit' } & Batch;
type FailedStep = { kind: 'failed'; error: PlainError };

export type OpenStep =
  | ReadStep
  | CommitStep
  | FailedStep
  | { kind: 'need-key'; wrapped: Uint8Array }
  | { kind: 'wrap-key'; dataKey: Uint8Array }
  | { kind: 'profile' }
  | { kind: 'opened' };

export type Step =
  | ReadStep
  | CommitStep
  | FailedStep
  | { kind: 'names' }
  | { kind: 'embed'; texts: string[]; heads: string[] }
  | { kind: 'done'; response: CoreResponse };

/** What a task (export, import, verify, rekey) or a survey needs next. */
export type TaskStep =
  | ReadStep
  | CommitStep
  | FailedStep
  | { kind: 'names' }
  | { kind: 'replace'; puts: Batch['puts']; deletes: string[] }
  | { kind: 'piece'; bytes: Uint8Array }
  | { kind: 'need-piece' }
  | { kind: 'need-key'; wrapped: Uint8Array }
  | { kind: 'wrap-key'; dataKey: Uint8Array }
  | { kind: 'done'; report: CoreResponse };

export type StoreReply =
  | { kind: 'begin' }
  | { kind: 'values'; values: Value[] }
  | { kind: 'committed' }
  | { kind: 'conflict' }
  | FailedStep;

export type OpenReply = StoreReply | { kind: 'key'; key: Uint8Array } | { kind: 'wrapped'; wrapped: Uint8Array } | { kind: 'continue' };

export type TaskReply = OpenReply | { kind: 'names'; names?: string[] } | { kind: 'piece'; bytes?: Uint8Array };

export type Reply =
  | StoreReply
  | { kind: 'names'; names?: string[] }
  | { kind: 'embedded'; embeddings: Embedding[][] }
  | { kind: 'not-embedded'; failure: 'not-ready' | 'failed' | 'aborted' };

/** What the embedder returns for one text and one head. */
export interface Embedding {
  modelId: string;
  headId: string;
  vector: ArrayLike<number>;
  scale: number;
  features: ArrayLike<number>;
}

export type CoreRequest = { verb: string; [field: string]: unknown };
export type CoreResponse = { kind: string; [field: string]: unknown };

/** What wraps the data key: 32 bytes of the host or a passphrase, inside of the core, or something outside of it. */
export type CoreWrap = { wrap: 'host'; key: Uint8Array } | { wrap: 'passphrase'; passphrase: string } | { wrap: 'external' };

export type CoreOptions = CoreWrap & {
  /** Whether a memory is made where there is none. */
  create: boolean;
  /** Whether to stop where the stored profile can be given, before the log is read. */
  profileFirst?: boolean;
  /** Whether the store writes a batch as a whole. */
  atomicBatches?: boolean;
  /** Lines of a guard policy. */
  policy?: string;
};

export type CoreTask =
  | { task: 'export'; passphrase?: string }
  | { task: 'import'; passphrase?: string; restore?: boolean }
  | { task: 'verify'; receipt?: unknown }
  | ({ task: 'rekey' | 'destroy' } & CoreWrap);

/** The opening machine of one memory. */
export interface CoreOpening {
  step(reply: OpenReply, nowMs: number, utcOffsetMin: number, entropy: Uint8Array): OpenStep;
  /** The profile as it is stored, between `profile` and `opened`. */
  profile(scope: unknown, budgetTokens: number, forDevice: boolean, nowMs: number): CoreResponse;
  /** The memory, once, after `opened`. */
  take(): CoreMemory;
  free(): void;
}

/** One open memory. Several operations may be in flight on it. */
export interface CoreMemory {
  begin(request: CoreRequest): number;
  step(op: number, reply: Reply, nowMs: number, utcOffsetMin: number, entropy: Uint8Array): Step;
  dropOp(op: number): void;
  beginTask(task: CoreTask): number;
  stepTask(task: number, reply: TaskReply, nowMs: number, utcOffsetMin: number, entropy: Uint8Array): TaskStep;
  dropTask(task: number): void;
  /** Gives the router its n-gram head, for languages that the encoder does not know. */
  useNgrams(file: Uint8Array): void;
  /** Says which head of the encoder judges what words leave open; absent: none. */
  useHead(head?: string): void;
  readonly generation: number;
  free(): void;
}

/** Looks through a memory that may not open. */
export interface CoreSurvey {
  step(reply: TaskReply, nowMs: number, utcOffsetMin: number, entropy: Uint8Array): TaskStep;
  free(): void;
}

/** One instantiation of the core module. */
export interface CoreGlue {
  open(options: CoreOptions): CoreOpening;
  survey(options: CoreWrap & { repair: boolean; receipt?: unknown }): CoreSurvey;
  /** Throws the old instance away and makes a fresh one of the same module. */
  renew(): void;
}

/**
 * A core that may die. wasm has no unwinding: after a trap its memory is in an unknown state, so no further
 * call may reach that instance. `guard` is the only way to the core; the first trap renews the instance and
 * tells everybody who holds objects of the old one.
 */
export class Core {
  readonly #glue: CoreGlue;
  #life = new Life();

  constructor(glue: CoreGlue) {
    this.#glue = glue;
  }

  /** The current instance's life; objects of the core belong to the life in which they were made. */
  get life(): Life {
    return this.#life;
  }

  open(options: CoreOptions): CoreOpening {
    return this.guard(this.#life, () => this.#glue.open(options));
  }

  survey(options: CoreWrap & { repair: boolean; receipt?: unknown }): CoreSurvey {
    return this.guard(this.#life, () => this.#glue.survey(options));
  }

  /** Calls into the core. Errors that the core made on purpose come out as such; all else ends this life. */
  guard<T>(life: Life, call: () => T): T {
    if (life.over) throw trapError();
    try {
      return call();
    } catch (error) {
      if (isPlainError(error)) throw fromPlain(error);
      if (!life.over) {
        this.#life = new Life();
        life.end();
        try {
          this.#glue.renew();
        } catch {
          // Out of memory, most likely. The next call traps at once and tries again.
        }
      }
      throw trapError();
    }
  }
}

/** From instantiation to trap. */
export class Life {
  over = false;
  readonly #mourners = new Set<() => void>();

  /** Rejects with `internal` should the instance die while `work` is going on. */
  whileAlive<T>(work: Promise<T>): Promise<T> {
    if (this.over) return Promise.reject(trapError());
    return new Promise((resolve, reject) => {
      const mourn = () => reject(trapError());
      this.#mourners.add(mourn);
      work.then(resolve, reject).finally(() => this.#mourners.delete(mourn));
    });
  }

  end(): void {
    this.over = true;
    for (const mourn of this.#mourners) mourn();
    this.#mourners.clear();
  }
}

function trapError() {
  // The trap's own message may quote what it failed on; it is dropped.
  return fromPlain({
    code: 'internal',
    message:
      'foremind broke an invariant of its own; the instance was dropped and the memory is opened again from its store. ' +
      'A write that was under way may or may not have been stored. Please report it',
  });
}
