import type { Embedding } from './core.js';
import type { Encoder } from './driver.js';
import { ForemindError, isPlainError } from './errors.js';
import { MODEL } from './model-manifest.js';
import type { Progress } from './types.js';

/** One loaded embedder of the embed module. */
export interface EmbedderObject {
  readonly modelId: string;
  encode(texts: string[], heads: string[]): Embedding[][];
  free(): void;
}

/** One instantiation of the embed module. */
export interface EmbedGlue {
  load(pack: Uint8Array): EmbedderObject;
  renew(): void;
}

export type OnProgress = (progress: Progress) => void;

/** Where an embedder comes from: both parts are loaded after the core, and only when wanted. */
export interface EmbedderSource {
  glue(): Promise<EmbedGlue>;
  pack(onProgress: OnProgress, signal: AbortSignal): Promise<Uint8Array>;
}

/** Loads the embed module and the model. Rejects with `model-missing`, `model-invalid` or `aborted`. */
export class LoadedEmbedder implements Encoder {
  readonly modelId: string;
  #object: EmbedderObject | undefined;
  readonly #glue: EmbedGlue;

  private constructor(glue: EmbedGlue, object: EmbedderObject) {
    this.#glue = glue;
    this.#object = object;
    this.modelId = object.modelId;
  }

  static async load(source: EmbedderSource, onProgress: OnProgress, signal: AbortSignal): Promise<LoadedEmbedder> {
    const [module, file] = await Promise.allSettled([source.glue(), source.pack(onProgress, signal)]);
    // What is wrong with the file is said first: it is what a host can mend.
    if (file.status === 'rejected') throw file.reason;
    if (module.status === 'rejected') throw module.reason;
    const [glue, pack] = [module.value, file.value];
    signal.throwIfAborted();
    try {
      return new LoadedEmbedder(glue, glue.load(pack));
    } catch (error) {
      if (!isPlainError(error)) glue.renew();
      throw new ForemindError(
        'model-invalid',
        isPlainError(error) ? error.message : 'the model file could not be loaded; install the package again',
      );
    }
  }

  encode: ((texts: string[], heads: string[]) => Promise<Embedding[][]>) | undefined = async (texts, heads) => {
    if (!this.#object) throw new ForemindError('model-invalid', 'the embedder has stopped');
    try {
      return this.#object.encode(texts, heads);
    } catch (error) {
      // A trap leaves the module's memory in an unknown state: the memory goes on lexically without it.
      if (!isPlainError(error)) {
        this.#object = undefined;
        this.encode = undefined;
        this.#glue.renew();
      }
      throw error;
    }
  };

  close(): void {
    this.encode = undefined;
    this.#object?.free();
    this.#object = undefined;
  }
}

/** The pin of the model that this package was built with. */
export function packagedPin(): { bytes: number; sha256: string } | null {
  return MODEL;
}

/** Refuses a model that is not the pinned one. */
export async function verifyModel(pack: Uint8Array, sha256: string | undefined): Promise<Uint8Array> {
  if (sha256 === undefined) return pack;
  if (!globalThis.crypto?.subtle) {
    throw new ForemindError('unsupported', 'the model cannot be verified outside of a secure context; serve the page over https');
  }
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', pack as Uint8Array<ArrayBuffer>));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  if (hex !== sha256) {
    throw new ForemindError('model-invalid', 'the model file is not the one this package was built with; it was cut, altered or replaced');
  }
  return pack;
}

export function modelMissing(why: string): ForemindError {
  return new ForemindError('model-missing', `the model file cannot be read (${why}); the memory works by words alone until it is there`);
}
