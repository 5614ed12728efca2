/** What a statement does to answers. */
export type Grade = 'modifier' | 'circumstance' | 'informer';
/** Where a record lives: in the profile (shown before the question), or in the store (retrieved on demand). */
export type Tier = 'profile' | 'store';
export type Layer = 'episode' | 'fact' | 'belief' | 'procedure' | 'answer';
/** Where a record is in its life. `erased` is a tombstone without content and is final. */
export type Status = 'current' | 'superseded' | 'retracted' | 'expired' | 'quarantined' | 'erased';
/** Whom a statement is about. A dependant (a child, a pet) counts as the owner. */
export type Subject = 'owner' | 'dependant' | 'other' | 'none';
/** How bad a wrong answer would be. */
export type Severity = 'mild' | 'moderate' | 'severe';
/** Which stage of the router decided. Nothing overrules `owner`. */
export type Stage = 'lexical' | 'semantic' | 'judge' | 'owner';
export type Judgement = 'settled' | 'pending' | 'unrouted';
export type Role = 'user' | 'assistant' | 'tool';
/** What a statement is about, and what a question asks about. */
export type Domain =
  | 'allergy' | 'medication' | 'condition' | 'procedure' | 'pregnancy' | 'disability' | 'mental-health'
  | 'diet' | 'food' | 'fitness' | 'religion' | 'culture' | 'immigration' | 'legal' | 'policy' | 'finance'
  | 'job' | 'licence' | 'home' | 'location' | 'pets' | 'dependant' | 'devices' | 'safety' | 'goal'
  | 'instruction' | 'session' | 'people' | 'travel' | 'study' | 'appearance' | 'hobby' | 'general';

/**
 * Whose and where. Mandatory on every verb, and a predicate inside the core also for access by id. Each
 * part is 1 to 128 characters of `A-Z a-z 0-9 . _ ~ -` that start with a letter or digit.
 */
export interface Scope {
  user: string;
  project?: string;
  thread?: string;
  agent?: string;
}

/** How long a record counts. */
export type Ttl =
  | { kind: 'permanent' }
  | { kind: 'until-changed' }
  | { kind: 'dated'; untilMs: number }
  | { kind: 'session'; untilMs: number };

/** One signal that fired, or one trap that held a signal back. */
export interface Reason {
  /** A stable kebab-case name such as `dietary-word`. */
  signal: string;
  /** The words that matched, as they stand in the statement; may be empty. */
  matched: string;
  /** 0 to 1; 0 for a trap. */
  weight: number;
}

/** The router's verdict on one statement. */
export interface Route {
  grade: Grade;
  tier: Tier;
  /** Rank among circumstances, 0 to 1. */
  priority: number;
  severity: Severity;
  domain: Domain;
  /** Domains of question whose answer it may change. */
  affects: Domain[];
  ttl: Ttl;
  /** Score of the deciding stage, 0 to 1. */
  score: number;
  /** Strongest first. */
  reasons: Reason[];
  stage: Stage;
  judgement: Judgement;
}

/** When a record was told and when its content holds. Times are Unix milliseconds. */
export interface Times {
  toldMs: number;
  /** The teller's offset from UTC at that time, minutes, east positive. */
  utcOffsetMin: number;
  validFromMs?: number;
  validToMs?: number;
}

export interface Provenance {
  role: Role;
  thread?: string;
  turn?: string;
  /** Position of the statement in its turn, from 0. */
  statement: number;
}

export interface Supersedes {
  id: string;
  /** `excepted`: for a time only, and the earlier record stays current. `conflict`: both stay current. */
  kind: 'changed' | 'corrected' | 'merged' | 'ended' | 'excepted' | 'conflict';
  why: string;
}

export interface Evidence {
  id: string;
  /** The exact words of the source that support the record. */
  quote: string;
}

/** The unit of memory. Named so that it does not hide TypeScript's own `Record`. */
export interface MemoryRecord {
  /** A ULID; ids sort by the time of telling. */
  id: string;
  scope: Scope;
  text: string;
  layer: Layer;
  route: Route;
  subject: Subject;
  attribute?: string;
  value?: string;
  times: Times;
  status: Status;
  supersedes: Supersedes[];
  evidence: Evidence[];
  provenance: Provenance;
  confirmedMs?: number;
  /** How often it was told; at least 1. */
  proofCount: number;
}

/** Options that every verb takes. */
export interface CallOptions {
  /** Gives up the call. Until the write has begun nothing is changed and the call rejects with `aborted`. */
  signal?: AbortSignal;
}

export interface RememberOptions extends CallOptions {
  /** Who said it; `user` when left out. */
  role?: Role;
  thread?: string;
  turn?: string;
  /** The owner's own choice of tier, which the router does not overrule. */
  tier?: Tier;
}

/** One turn of a conversation. The same `(thread, turn)` given twice returns the first result. */
export interface Turn {
  thread: string;
  turn: string;
  role: Role;
  /** At most 256 KiB of UTF-8. */
  text: string;
  /** A turn that failed leaves nothing behind. */
  status?: 'ok' | 'failed';
  /** `off` and `incognito` store nothing. */
  mode?: 'on' | 'off' | 'incognito';
  /** Marks an assistant's turn as a finding that is worth keeping; without it only user turns are. */
  finding?: boolean;
}

export interface BudgetOptions extends CallOptions {
  /** Hard limit on the rendered prompt, frame and headings included; 1 to 1,000,000, 512 when left out. */
  budgetTokens?: number;
  /** Who reads it. `remote` (when left out), a model elsewhere: constraints as what to avoid, placeholders for names, addresses
   * and numbers, which `restore` puts back. `device`: facts as they were told. */
  audience?: Audience;
}

export type Audience = 'remote' | 'device';

/** A placeholder in a prompt, and what it stands for. */
export interface Pseudonym {
  placeholder: string;
  text: string;
}

/** What one prompt held. */
export interface Disclosure {
  /** When it was given out, Unix milliseconds. */
  atMs: number;
  verb: 'recall' | 'profile';
  audience: Audience;
  /** Exactly the text. */
  prompt: string;
  /** The records that it shows, in order. */
  records: string[];
}

export interface RecallOptions extends BudgetOptions {
  /** For this time of the past instead of now: what had been told and held then. Unix milliseconds, or a Date. */
  asOf?: number | Date;
  /**
   * `full` (when left out): the visible profile, and what else bears on the question. `minimal`: only what may matter to it,
   * that is what bears on it, severe modifiers, and all when it is uncertain what the question is about.
   */
  exposure?: 'full' | 'minimal';
  /** Milliseconds that the search may take, by a rate of work, not by the clock; `partial` says when that was too little. */
  deadlineMs?: number;
  /** Whether each item tells how the search ranked it. */
  explain?: boolean;
}

export interface ListOptions extends CallOptions {
  tier?: Tier;
  status?: Status;
  domain?: Domain;
  /** 1 to 1,000; 100 when left out. */
  limit?: number;
  /** Continues after this id. */
  after?: string;
}

/** What `forget` reaches: one record; all that one thread left; what has at least half of the words of a query; what names a
 * person or thing; or everything inside the scope. */
export type ForgetTarget = { id: string } | { thread: string } | { query: string } | { subject: string } | 'scope' | 'all';

export interface ForgetOptions extends CallOptions {
  /** Only says what would be erased. When left out, true for a query and false otherwise. */
  preview?: boolean;
}

export interface Shown {
  record: MemoryRecord;
  /** The line as it stands in the prompt. */
  line: string;
  tokens: number;
  /** Why it is shown, for a person to read. */
  why: string[];
  /** With `explain`, of items that the search found. */
  explain?: Explain;
}

/** How the search ranked a record. The parts of `score` are shares of the best possible, each as far as it was added. */
export interface Explain {
  /** Place among all that was found, from 1; items of the profile have one as well. */
  rank: number;
  score: number;
  /** Share of the query's informative words that the record has. */
  words: number;
  /** Cosine of query and record, where both have a vector. */
  meaning?: number;
  /** What the records told just before it in its conversation add. */
  conversation: number;
  /** What a name adds that one of the best has as well. */
  names: number;
  /** What it adds to be told in the time that the query names. */
  time: number;
  recency: number;
  domain: number;
}

/** A record that found no room. */
export interface Dropped {
  id: string;
  section: 'profile' | 'joined' | 'context';
  /** What its line would have cost. */
  tokens: number;
  /** What it lacked: tokens, a place among the section's items, or one among the items of its domain. */
  reason: 'tokens' | 'items' | 'domain';
}

/** What `recall` and `profile` return; `profile` has neither `joined` nor context. */
export interface Prompt {
  /** The framed text for the model; empty when there is nothing to show. */
  prompt: string;
  /** Estimated tokens of `prompt`; never more than `budgetTokens`. */
  tokens: number;
  budgetTokens: number;
  /** In the order shown. */
  profile: Shown[];
  /** What else bears on the question though it does not look like it, closest first. */
  joined: Shown[];
  /** Best first. */
  context: Shown[];
  dropped: Dropped[];
  /** What placeholders stand for. Not for the model; absent when there are none. */
  pseudonyms?: Pseudonym[];
  /** True when the search went by words only, since no embedder was ready or the records have no vectors yet. */
  lexicalOnly: boolean;
  /** True when `deadlineMs` did not last for a search through all records. */
  partial?: boolean;
  /** What the query asks about, strongest first; empty when that is uncertain. */
  domains: Domain[];
  /** Until when the profile section stays the same without a write, Unix milliseconds; absent: for good. */
  stableUntilMs?: number;
}

/** What became of one statement. */
export interface Noted {
  /** The record that holds it now. */
  record: MemoryRecord;
  /**
   * `merged`: it says what a known record says. `repeated`: the turn had been ingested before. `superseded`, `corrected`,
   * `ended`: it replaces, retracts or ends an earlier record. `planned`: it holds from a date to come. `conflict`: it may
   * contradict another; both stay current. `record.supersedes` names the others and says why.
   */
  outcome: 'added' | 'merged' | 'repeated' | 'superseded' | 'corrected' | 'ended' | 'planned' | 'conflict';
}

export interface Remembered {
  /** One for each statement, in order. */
  records: Noted[];
}

export interface Ingested {
  /** One for each statement that was kept, in order. */
  records: Noted[];
  /** Whether the turn had been ingested before; nothing was written then. */
  repeated: boolean;
  /** Why the turn was not looked at, if it was not. */
  ignored?: 'mode' | 'status' | 'role';
}

export interface Listed {
  /** Earliest told first. */
  records: MemoryRecord[];
  /** Pass as `after` for the next page; absent on the last. */
  next?: string;
}

/** What `rescan` came upon. */
export interface Rescanned {
  /** Records that were looked at. */
  looked: number;
  /** Written anew without what may not be stored; the old ones are erased. */
  redacted: number;
  /** Quarantined now and not before. */
  quarantined: number;
}

/** A record in a chain of replacements. */
export interface Chain {
  record: MemoryRecord;
  /** Ids of what replaced it. */
  supersededBy: string[];
}

export interface Forgotten {
  /** How many records were erased. */
  erased: number;
  /** What was taken out, by place. */
  counts: ErasedCounts;
  /** What would be erased, when only that was asked. */
  preview?: MemoryRecord[];
  /** The proof, when something was erased: keep it outside of the memory. */
  receipt?: Receipt;
}

export interface ErasedCounts {
  /** Records, each with its versions. */
  records: number;
  /** Of these, records that were not named and had no other evidence. */
  derived: number;
  vectors: number;
  /** Records in the index of words. */
  words: number;
  profile: number;
  /** Records that waited for a judgement. */
  pending: number;
  /** Stored values that were deleted. */
  values: number;
}

/** The proof of an erasure. Holds no text: hashes under the memory's key, as hexadecimal digits. */
export interface Receipt {
  memoryId: string;
  generation: number;
  atMs: number;
  /** The `mac` of the receipt before it. */
  previous: string;
  /** Merkle root over what was erased. */
  erased: string;
  /** Merkle root over all records that were left. */
  root: string;
  counts: ErasedCounts;
  mac: string;
  /** Of a whole memory: the key of this receipt, wrapped as the data key was. */
  key?: string;
}

export interface VerifyOptions extends CallOptions {
  /** Also looks whether this erasure holds. */
  receipt?: Receipt;
}

/** What a receipt is worth now. */
export interface ReceiptCheck {
  /** It is this memory's, unaltered, and every receipt before it is known. */
  chain: boolean;
  /** Erased records of which a stored value or an index holds something. */
  found: number;
  /** Whether the records are those that were left; absent when something was written since. */
  root?: boolean;
  /** Whether all of this speaks for it. */
  holds: boolean;
}

export interface Pending {
  /** Latest told first, at most 256. */
  records: MemoryRecord[];
  /** How many wait, those outside of the list included. */
  waiting: number;
}

/** Counts inside a scope. */
export interface Stats {
  /** Of any status, erased ones left out. */
  records: number;
  current: number;
  profile: number;
  store: number;
  pending: number;
  unrouted: number;
  withoutVector: number;
  textBytes: number;
}

/** How safe what is written is: `persistent` (the host promised to keep it), `best-effort` (a browser under
 * storage pressure may evict the whole origin), `volatile` (gone with the process). */
export type Durability = 'persistent' | 'best-effort' | 'volatile';

/** Where the embedder's model is: a URL, a file path (node), its bytes, `false` for none, or a description. */
export type ModelSource = string | URL | Uint8Array | false | PinnedModel | PackagedModel | OnnxModel;

/** A model of your own, held to a hash. */
export interface PinnedModel {
  url: string | URL;
  /** SHA-256 of the file, 64 lower-case hexadecimal digits. */
  sha256: string;
}

/** What the npm package of a model exports as `model`. */
export interface PackagedModel {
  url: string | URL;
  /** Length of the file. */
  bytes: number;
  /** BLAKE3 of the file's header, which holds the hashes of all that follows; 64 lower-case hexadecimal digits. */
  hash: string;
}

/** A sentence encoder that you bring: BERT's inputs, 384 dimensions, WordPiece. For `foremind/onnx`. */
export interface OnnxModel {
  /** Names the weights in each vector, 1 to 128 characters; other weights need another name. */
  id: string;
  /** The ONNX file: a URL, a file path (node), or its bytes. */
  onnx: string | URL | Uint8Array;
  /** `vocab.txt`, one token a line in the order of the ids. */
  vocabulary: string | URL | Uint8Array;
}

/**
 * What wraps a memory's data key: 32 bytes of yours (copied; yours may be zeroed afterwards), a passphrase of 1 to 1,024
 * bytes in UTF-8 (stretched with Argon2id), or, in a browser, a non-extractable key of this browser profile.
 */
export type KeySource = Uint8Array | { passphrase: string } | 'device';

/** How an exported file is written: sealed by a passphrase, or as JSON Lines that everybody can read. */
export type ExportOptions = CallOptions & ({ passphrase: string } | { plain: true });

export interface ImportOptions extends CallOptions {
  /** Of a file that is sealed. */
  passphrase?: string;
  /** Brings back what was erased here, under new ids. Without it what was forgotten stays forgotten. */
  restore?: boolean;
}

export interface Imported {
  /** Entries of the log that were taken, and those that were here already. */
  entries: number;
  known: number;
  /** Records that came with them, those that were merged with records known here, and those brought back by `restore`. */
  records: number;
  merged: number;
  restored: number;
}

/** What `verify` found. */
export interface Verified {
  /** Whether nothing is damaged or missing. */
  whole: boolean;
  generation: number;
  entries: number;
  /** Stored values that were looked at, and their bytes. */
  values: number;
  bytes: number;
  damaged: { name: string; why: string }[];
  missing: string[];
  /** Values that nothing names; absent where the store cannot list. */
  orphans?: string[];
  /** Names of values that are not this memory's; absent where the store cannot list. */
  foreign?: string[];
  /** Entries that cannot be read any more. */
  lostEntries: number;
  /** Where a receipt was passed. */
  receipt?: ReceiptCheck;
}

/** What was found, and what repair kept. */
export interface Repaired extends Verified {
  /** Whether anything was written. */
  changed: boolean;
  /** Entries kept and lost. */
  kept: number;
  lost: number;
}

/** How safe and how full the storage is; what the host does not tell is absent. */
export interface StorageState {
  durability: Durability;
  /** Bytes in use: of the origin in a browser, of this memory in node. */
  usedBytes?: number;
  /** Bytes that may be in use. */
  quotaBytes?: number;
}

/** See `OpenOptions.policy`. */
export type GuardAction = 'redact' | 'block' | 'allow' | 'quarantine';

export interface OpenOptions {
  /** Names the memory: one isolated store of one owner. Same form as the parts of a scope. */
  name: string;
  /** What wraps the memory's data key. Required in node; in a browser `'device'` when left out. */
  key?: KeySource;
  /** The model of the package `foremind-minilm-l6-v2` when left out. */
  model?: ModelSource;
  /** `memory` keeps everything in this process's memory only. */
  storage?: 'default' | 'memory';
  /** Node only: the folder that holds memories, a folder each. When left out, the user's data folder of the
   * platform. */
  directory?: string;
  /** What the guard does with a kind of secret or personal data, where it differs from the default: `redact`, `block` or `allow`;
   * with instruction-shaped text (the kind `instructions`): `quarantine` or `allow`. An object, or the text of a policy file with a
   * line `kind = action` each; an error in it is refused by line and name. */
  policy?: string | { [kind: string]: GuardAction };
  /** Gives up the opening. */
  signal?: AbortSignal;
}

export interface Readiness {
  /** The model whose vectors are in use; null when `model: false` was asked for. */
  modelId: string | null;
}

export interface Progress {
  /** `model`: bytes of the model file read. `backfill`: records that got their vector since the embedder came.
   * `encode`: texts that `Embedder.encode` is done with. */
  phase: 'model' | 'backfill' | 'encode';
  loaded: number;
  /** 0 when it is not known. */
  total: number;
}

export interface EmbedderOptions {
  /** As in `Memory.open`, and never `false`. */
  model?: ModelSource;
  /** Hears how much of the model is there. */
  onProgress?: (progress: Progress) => void;
  /** Gives up the loading. */
  signal?: AbortSignal;
}

export interface EncodeOptions extends CallOptions {
  /** Called after each batch of 8. */
  onProgress?: (progress: Progress) => void;
}

/** A sentence vector of length 1: `unit[i]` is about `vector[i] * scale`. Vectors of different models never mix. */
export interface Embedding {
  modelId: string;
  headId: string;
  vector: Int8Array;
  scale: number;
}

export interface MemoryEvents {
  progress: Progress;
  /** Something was written: by this instance, or by another tab. */
  changed: { by: 'self' | 'other' };
  /** `memory.durability` has a new value. */
  durability: Durability;
  /** The store went away under the memory; every further call rejects with `storage-lost`. */
  lost: { message: string };
}
