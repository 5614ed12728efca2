import type { BrowserOptions } from '../browser-parts.js';
import type { CoreRequest, CoreResponse } from '../core.js';
import type { PlainError } from '../errors.js';
import type { MemoryEvent } from '../session.js';
import type { Durability, Readiness } from '../types.js';

/** From the page to its worker. */
export type ToWorker =
  | { type: 'open'; options: BrowserOptions; existing: boolean }
  /** The core's module, compiled while the worker started; absent when the page could not. Once, after either of the first two. */
  | { type: 'core'; module?: WebAssembly.Module }
  | { type: 'once'; options: BrowserOptions; request: CoreRequest }
  | { type: 'call'; id: number; request: CoreRequest }
  | { type: 'abort'; id: number }
  | { type: 'close' };

/** From the worker to its page. */
export type FromWorker =
  | { type: 'opened'; created: boolean; durability: Durability }
  | { type: 'answered'; response: CoreResponse }
  | { type: 'refused'; error: PlainError }
  | { type: 'ready'; readiness: Readiness }
  | { type: 'not-ready'; error: PlainError }
  | { type: 'answer'; id: number; response: CoreResponse }
  | { type: 'failure'; id: number; error: PlainError }
  | { type: 'event'; event: MemoryEvent }
  | { type: 'closed' };
