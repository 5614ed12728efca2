import type { Embedding } from './core.js';
import type { Encoder } from './driver.js';
import { ForemindError, isPlainError } from './errors.js';
import { PackIntake, type ModelPin } from './intake.js';
import type { Progress } from './types.js';

/** One loaded embedder of the embed module. */
export interface EmbedderObject {
  readonly modelId: string;
  encode(texts: string[], heads: string[]): Embedding[][];
  /** Adds the heads of an adapter file. */
  loadAdapter(file: Uint8Array): void;
  free(): void;
}

/** Takes a model file piece by piece, straight into the module's memory. */
export interface PackLoaderObject {
  push(chunk: Uint8Array): void;
  /** Ends the loader, whatever comes of it. */
  finish(): EmbedderObject;
  free(): void;
}

/** One instantiation of an embed module. */
export interface EmbedGlue {
  loader(bytes: number): PackLoaderObject;
  /** In the build that runs ONNX files. */
  fromOnnx?: (id: string, vocabulary: Uint8Array, onnx: Uint8Array) => EmbedderObject;
  renew(): void;
}

export type OnProgress = (progress: Progress) => void;

/** What a model reads its bytes into; ready when the module is. */
export interface Intakes {
  open(pin: ModelPin): Promise<PackIntake>;
  glue: Promise<EmbedGlue>;
}

/** Where an embedder comes from: both parts are loaded after the core, and only when wanted. */
export interface EmbedderSource {
  glue(): Promise<EmbedGlue>;
  /** Rejects with `model-missing`, `model-invalid`, `newer-format` or `aborted`. */
  model(intakes: Intakes, onProgress: OnProgress, signal: AbortSignal): Promise<EmbedderObject>;
}

/** Most texts of one call into the module, as in `limits::EMBED_TEXTS`: between calls others get their turn. */
const BATCH_TEXTS = 8;
/** The module reads the first 65,536 bytes of a text, which are no more UTF-16 units than that. The rest would only be
 * copied, to a worker and into the module. */
const TEXT_UNITS_MAX = 65_536;

/** A loaded embedder that survives its own module's trap, and lets others in between batches. */
export class LoadedEmbedder implements Encoder {
  readonly modelId: string;
  #object: EmbedderObject | undefined;
  readonly #glue: EmbedGlue;

  private constructor(glue: EmbedGlue, object: EmbedderObject) {
    this.#glue = glue;
    this.#object = object;
    this.modelId = object.modelId;
  }

  /** Loads the embed module and the model, at once. */
  static async load(source: EmbedderSource, onProgress: OnProgress, signal: AbortSignal): Promise<LoadedEmbedder> {
    const glue = source.glue();
    // Its failure is met where the model opens an intake, or below.
    glue.catch(() => {});
    const intakes: Intakes = { glue, open: async (pin) => new PackIntake(await glue, pin) };
    try {
      const object = await source.model(intakes, onProgress, signal);
      return new LoadedEmbedder(await glue, object);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ForemindError) throw error;
      if (isPlainError(error)) throw new ForemindError(error.code, error.message);
      // A trap: out of memory, most likely.
      (await glue).renew();
      throw new ForemindError('model-invalid', 'the model file could not be loaded; install its package again');
    }
  }

  /** Encodes each text for each head, 8 texts at a time; between those the thread is free and `signal` is looked at. */
  encode: Encoder['encode'] = async (texts, heads, signal, onBatch) => {
    const rows: Embedding[][] = [];
    for (let at = 0; at < texts.length; at += BATCH_TEXTS) {
      if (at > 0) await new Promise((resolve) => setTimeout(resolve));
      signal?.throwIfAborted();
      rows.push(...this.#batch(texts.slice(at, at + BATCH_TEXTS), heads));
      onBatch?.(rows.length);
    }
    return rows;
  };

  /** Adds the heads of a file; false when they belong to another model. */
  adapt(file: Uint8Array): boolean {
    try {
      this.#object?.loadAdapter(file);
      return this.#object !== undefined;
    } catch (error) {
      if (isPlainError(error)) return false;
      this.#object = undefined;
      this.encode = undefined;
      this.#glue.renew();
      throw error;
    }
  }

  close(): void {
    this.encode = undefined;
    this.#object?.free();
    this.#object = undefined;
  }

  #batch(texts: string[], heads: string[]): Embedding[][] {
    if (!this.#object) throw new ForemindError('model-invalid', 'the embedder has stopped');
    try {
      return this.#object.encode(texts.map(beginning), heads);
    } catch (error) {
      // A trap leaves the module's memory in an unknown state: the memory goes on lexically without it.
      if (!isPlainError(error)) {
        this.#object = undefined;
        this.encode = undefined;
        this.#glue.renew();
      }
      throw error;
    }
  }
}

/** What the embedder may read of a text, never cut inside a character. */
export function beginning(text: string): string {
  if (text.length <= TEXT_UNITS_MAX) return text;
  const last = text.charCodeAt(TEXT_UNITS_MAX - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? TEXT_UNITS_MAX - 1 : TEXT_UNITS_MAX);
}

export function modelMissing(why: string): ForemindError {
  return new ForemindError('model-missing', `the model file cannot be read (${why}); the memory works by words alone until it is there`);
}
