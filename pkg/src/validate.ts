import { KEY_BYTES, PASSPHRASE_BYTES } from './keys.js';
import { ForemindError } from './errors.js';
import type { EmbedderOptions, EncodeOptions, ForgetTarget, KeySource, ModelSource, OpenOptions, Receipt, Scope } from './types.js';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/;
const BUDGET_TOKENS_MAX = 1_000_000;
const DEADLINE_MS_MAX = 60_000;
const LIMIT_MAX = 1_000;

/** Fields of a request under construction: what is absent stays absent, since the core refuses `undefined`. */
export type Fields = { [field: string]: unknown };

export function invalid(message: string): ForemindError {
  return new ForemindError('invalid-argument', message);
}

/** An options argument: absent, or an object. */
export function optionsOf<T extends object>(options: T | undefined, what: string): Partial<T> {
  if (options === undefined) return {};
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw invalid(`${what} must be an object`);
  return options;
}

export function nameOf(value: unknown, what: string): string {
  if (typeof value !== 'string' || !NAME.test(value)) {
    throw invalid(`${what} must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ - that start with a letter or digit`);
  }
  return value;
}

export function scopeOf(value: unknown): Scope {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid("the first argument must be a scope such as { user: 'ada' }");
  }
  const given = value as { [part: string]: unknown };
  const unknown = Object.keys(given).find((part) => !['user', 'project', 'thread', 'agent'].includes(part));
  if (unknown !== undefined) throw invalid('a scope has the parts user, project, thread and agent, and no others');
  const scope: Scope = { user: nameOf(given['user'], 'scope.user') };
  for (const part of ['project', 'thread', 'agent'] as const) {
    if (given[part] !== undefined) scope[part] = nameOf(given[part], `scope.${part}`);
  }
  return scope;
}

/** Text as it may cross into the core: UTF-16 with a lone surrogate has no UTF-8 form. Size and content are
 * the guard's to judge. */
export function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw invalid(`${what} must be a string`);
  if (!isWellFormed(value)) throw invalid(`${what} has a lone surrogate; it was cut in the middle of a character`);
  return value;
}

/** `String.prototype.isWellFormed` where there is one (ES2024). */
function isWellFormed(text: string): boolean {
  const native = (text as { isWellFormed?: () => boolean }).isWellFormed;
  if (native) return native.call(text);
  // With the `u` flag a pair is one character, so the class meets lone surrogates only.
  return !/[\ud800-\udfff]/u.test(text);
}

export function idOf(value: unknown, what = 'the id'): string {
  if (typeof value !== 'string' || !/^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$/.test(value)) {
    throw invalid(`${what} must be a record id: 26 characters of Crockford base32`);
  }
  return value;
}

export function oneOf<T extends string>(value: unknown, allowed: readonly T[], what: string): T {
  if (!allowed.includes(value as T)) throw invalid(`${what} must be one of ${allowed.join(', ')}`);
  return value as T;
}

export function wholeOf(value: unknown, max: number, what: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw invalid(`${what} must be a whole number from 1 to ${max}`);
  }
  return value;
}

export function budgetOf(value: unknown): Fields {
  return value === undefined ? {} : { budgetTokens: wholeOf(value, BUDGET_TOKENS_MAX, 'budgetTokens') };
}

/** A time as whole milliseconds. */
export function asOfOf(value: unknown): Fields {
  if (value === undefined) return {};
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== 'number' || !Number.isSafeInteger(ms)) throw invalid('asOf must be a valid Date or whole Unix milliseconds');
  return { asOfMs: ms };
}

export function limitOf(value: unknown): Fields {
  return value === undefined ? {} : { limit: wholeOf(value, LIMIT_MAX, 'limit') };
}

export function deadlineOf(value: unknown): Fields {
  return value === undefined ? {} : { deadlineMs: wholeOf(value, DEADLINE_MS_MAX, 'deadlineMs') };
}

/** `{ [field]: check(value) }`, or nothing when there is no value. */
export function given<T>(field: string, value: unknown, check: (value: unknown, what: string) => T): Fields {
  return value === undefined ? {} : { [field]: check(value, field) };
}

export function signalOf(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || value === null || typeof (value as AbortSignal).addEventListener !== 'function' || typeof (value as AbortSignal).aborted !== 'boolean') {
    throw invalid('signal must be an AbortSignal');
  }
  return value as AbortSignal;
}

/** The fields are the core's to check. */
export function receiptOf(value: unknown): Receipt {
  if (typeof value !== 'object' || value === null || typeof (value as Receipt).mac !== 'string') {
    throw invalid('receipt must be what `forget` gave');
  }
  return value as Receipt;
}

export function targetOf(value: unknown): ForgetTarget {
  if (value === 'scope' || value === 'all') return value;
  if (typeof value === 'object' && value !== null) {
    const target = value as { id?: unknown; thread?: unknown; query?: unknown; subject?: unknown };
    const named = Object.keys(target);
    if (named.length === 1 && named[0] === 'id') return { id: idOf(target.id) };
    if (named.length === 1 && named[0] === 'thread') return { thread: nameOf(target.thread, 'thread') };
    if (named.length === 1 && named[0] === 'query') return { query: textOf(target.query, 'query') };
    if (named.length === 1 && named[0] === 'subject') return { subject: textOf(target.subject, 'subject') };
  }
  throw invalid("what to forget must be { id }, { thread }, { query }, { subject }, 'scope' or 'all'");
}

/** Checked options of `Memory.open`. */
export interface CheckedOptions {
  name: string;
  key?: KeySource;
  model?: ModelSource;
  storage: 'default' | 'memory';
  directory?: string;
  policy?: string;
  signal?: AbortSignal;
}

export function openOptionsOf(options: unknown): CheckedOptions {
  if (typeof options !== 'object' || options === null) throw invalid("Memory.open takes an object such as { name: 'ada' }");
  const { name, key, model, storage, directory, policy, signal } = options as Partial<OpenOptions>;
  const checked: CheckedOptions = { name: nameOf(name, 'name'), storage: 'default' };
  if (storage !== undefined) checked.storage = oneOf(storage, ['default', 'memory'] as const, 'storage');
  if (key !== undefined) checked.key = keyOf(key);
  if (model !== undefined) checked.model = modelOf(model);
  if (directory !== undefined) {
    if (typeof directory !== 'string' || directory === '') throw invalid('directory must be a path');
    checked.directory = directory;
  }
  if (policy !== undefined) checked.policy = policyOf(policy);
  const checkedSignal = signalOf(signal);
  if (checkedSignal) checked.signal = checkedSignal;
  return checked;
}

/** The lines of a policy; the core reads them and names a line that it cannot use. */
function policyOf(policy: unknown): string {
  // What has its entries elsewhere, as a Map has, would be a policy of nothing.
  const plain = typeof policy === 'object' && policy !== null && [Object.prototype, null].includes(Object.getPrototypeOf(policy));
  if (!plain) return textOf(policy, 'policy');
  return textOf(Object.entries(policy).map(([kind, action]) => `${kind} = ${String(action)}`).join('\n'), 'policy');
}

export function embedderOptionsOf(options: unknown): EmbedderOptions {
  const { model, onProgress, signal } = optionsOf(options as EmbedderOptions | undefined, 'the options');
  const checked: EmbedderOptions = {};
  if (model !== undefined) checked.model = modelOf(model);
  if (model === false) throw invalid('an embedder needs a model; leave `model` out for the one that ships');
  const listener = listenerOf(onProgress);
  if (listener) checked.onProgress = listener;
  const checkedSignal = signalOf(signal);
  if (checkedSignal) checked.signal = checkedSignal;
  return checked;
}

export function encodeOptionsOf(options: unknown): EncodeOptions {
  const { onProgress, signal } = optionsOf(options as EncodeOptions | undefined, 'the options');
  const checked: EncodeOptions = {};
  const listener = listenerOf(onProgress);
  if (listener) checked.onProgress = listener;
  const checkedSignal = signalOf(signal);
  if (checkedSignal) checked.signal = checkedSignal;
  return checked;
}

function listenerOf(value: unknown): EncodeOptions['onProgress'] {
  if (value !== undefined && typeof value !== 'function') throw invalid('onProgress must be a function');
  return value as EncodeOptions['onProgress'];
}

function modelOf(model: unknown): ModelSource {
  if (model === false || model instanceof Uint8Array || isPlace(model)) return model;
  if (typeof model === 'object' && model !== null) {
    const { url, sha256, bytes, hash, id, onnx, vocabulary } = model as { [field: string]: unknown };
    if (isPlace(url) && isHash(sha256)) return { url, sha256 };
    if (isPlace(url) && isHash(hash) && typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes > 0) return { url, bytes, hash };
    if (isFile(onnx) && isFile(vocabulary)) {
      if (typeof id !== 'string' || !/^[!-~]{1,128}$/.test(id)) throw invalid('model.id must be 1 to 128 visible ASCII characters; it names your weights');
      return { id, onnx, vocabulary };
    }
  }
  throw invalid('model must be a URL, a path, a Uint8Array, { url, sha256 }, { url, bytes, hash }, { id, onnx, vocabulary } or false');
}

function isPlace(value: unknown): value is string | URL {
  return value instanceof URL || (typeof value === 'string' && value !== '');
}

function isFile(value: unknown): value is string | URL | Uint8Array {
  return value instanceof Uint8Array || isPlace(value);
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** A copy that nobody else changes. */
export function keyOf(key: unknown): KeySource {
  if (key === 'device') return key;
  if (key instanceof Uint8Array && key.length === KEY_BYTES) return new Uint8Array(key); // not `slice`, which shares the bytes of a Buffer
  if (typeof key === 'object' && key !== null && !(key instanceof Uint8Array) && 'passphrase' in key) {
    return { passphrase: passphraseOf(key.passphrase) };
  }
  throw invalid(`key must be a Uint8Array of ${KEY_BYTES} bytes, { passphrase } or 'device'`);
}

export function passphraseOf(value: unknown): string {
  const words = textOf(value, 'the passphrase').normalize('NFC');
  const bytes = new TextEncoder().encode(words).length;
  if (bytes < 1 || bytes > PASSPHRASE_BYTES) throw invalid(`the passphrase must be 1 to ${PASSPHRASE_BYTES} bytes long`);
  return words;
}

/** The bytes of a file that is to be imported. */
export async function fileOf(value: unknown): Promise<Uint8Array> {
  if (value instanceof Uint8Array) return value;
  if (typeof Blob !== 'undefined' && value instanceof Blob) return new Uint8Array(await value.arrayBuffer());
  throw invalid('the file must be a Uint8Array or a Blob');
}

export function booleanOf(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw invalid(`${what} must be true or false`);
  return value;
}
