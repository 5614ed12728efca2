import type { BrowserModel } from '../browser-model.js';
import type { PlainError } from '../errors.js';
import type { Embedding, Progress } from '../types.js';

/** From the page to the worker of an embedder. */
export type ToEncoder = { type: 'open'; model: BrowserModel } | { type: 'encode'; id: number; texts: string[] };

/** From the worker of an embedder to its page. */
export type FromEncoder =
  | { type: 'progress'; progress: Progress }
  | { type: 'opened'; modelId: string }
  | { type: 'refused'; error: PlainError }
  | { type: 'vectors'; id: number; vectors: Embedding[] }
  | { type: 'failure'; id: number; error: PlainError };
