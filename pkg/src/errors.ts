/** Who can mend an error: the caller, the host (its store, key or model), or foremind itself. */
export type Fault = 'caller' | 'host' | 'foremind';

const FAULTS = {
  'invalid-argument': 'caller',
  'text-empty': 'caller',
  'text-too-large': 'caller',
  'unknown-id': 'caller',
  closed: 'caller',
  aborted: 'caller',
  'key-missing': 'caller',
  'wrong-key': 'caller',
  unsupported: 'host',
  'storage-denied': 'host',
  'quota-exceeded': 'host',
  'storage-lost': 'host',
  'storage-failed': 'host',
  conflict: 'host',
  corrupt: 'host',
  'newer-format': 'host',
  'model-missing': 'host',
  'model-invalid': 'host',
  'limit-reached': 'caller',
  internal: 'foremind',
} as const satisfies Record<string, Fault>;

/** The stable name of an error; what to branch on. */
export type ErrorCode = keyof typeof FAULTS;

/** Every code, in the order of the core's list. */
export const ERROR_CODES = Object.freeze(Object.keys(FAULTS)) as readonly ErrorCode[];

/**
 * The one error class of foremind. `message` says what to do and never carries text that a person told
 * the memory; it is not stable, `code` is.
 */
export class ForemindError extends Error {
  /** What to branch on. */
  readonly code: ErrorCode;
  /** Who can mend it. */
  readonly fault: Fault;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = 'ForemindError';
    this.code = code;
    this.fault = FAULTS[code];
  }
}

/** An error as it crosses the borders to the core and to the worker. */
export interface PlainError {
  code: ErrorCode;
  message: string;
}

/** @internal */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(FAULTS, code);
}

/** @internal Whether a thrown value is an error that a module made on purpose. Anything else is a trap. */
export function isPlainError(value: unknown): value is PlainError {
  if (typeof value !== 'object' || value === null) return false;
  const { code, message } = value as Partial<PlainError>;
  return isErrorCode(code) && typeof message === 'string';
}

/** @internal */
export function fromPlain(error: PlainError): ForemindError {
  return new ForemindError(error.code, error.message);
}

/** @internal Foreign messages may quote what they failed on, so none passes: only the class name does. */
export function toPlain(error: unknown): PlainError {
  if (isPlainError(error)) return { code: error.code, message: error.message };
  const kind = error instanceof Error ? error.name : typeof error;
  return { code: 'internal', message: `an unexpected ${kind} stopped the call; try it again, and report it if it stays` };
}

/** @internal */
export function aborted(): ForemindError {
  return new ForemindError('aborted', 'the abort signal fired before the operation was written; nothing was changed');
}

/** @internal */
export function closed(): ForemindError {
  return new ForemindError('closed', 'the memory is closed; open it again with Memory.open');
}
