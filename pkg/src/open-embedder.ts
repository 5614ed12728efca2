import { beginning, type LoadedEmbedder } from './embedder.js';
import { ForemindError, aborted, closed } from './errors.js';
import type { Embedding, EncodeOptions } from './types.js';
import { encodeOptionsOf, invalid, textOf } from './validate.js';

/** What {@link OpenEmbedder} talks to: an embedder in this realm, or one behind a worker. */
export interface EncoderBackend {
  readonly modelId: string;
  /** One batch. */
  encode(texts: string[]): Promise<Embedding[]>;
  close(): void;
}

/** The head whose vector is the sentence's own. */
const HEAD = 'embedding/1';
/** Most texts of one batch, as in `limits::EMBED_TEXTS`. */
const BATCH_TEXTS = 8;

/** An open embedder: texts to vectors, without a memory. */
export class OpenEmbedder {
  readonly #backend: EncoderBackend;
  #isClosed = false;

  /** @internal */
  constructor(backend: EncoderBackend) {
    this.#backend = backend;
  }

  /** Names the weights; every vector carries it. */
  get modelId(): string {
    return this.#backend.modelId;
  }

  /**
   * One vector for each text, in order. A text is read up to its 254th token. However many and however long the texts,
   * they cross to the embedder in batches of 8, with `onProgress` after each and `signal` looked at between them.
   * Rejects with `text-empty`, `invalid-argument`, `aborted`, `closed`, `internal`.
   */
  async encode(texts: readonly string[], options?: EncodeOptions): Promise<Embedding[]> {
    const { signal, onProgress } = encodeOptionsOf(options);
    if (!Array.isArray(texts)) throw invalid('encode takes an array of texts');
    texts.forEach((text, at) => {
      if (textOf(text, `text ${at}`).trim() === '') throw new ForemindError('text-empty', `text ${at} is empty or only white space`);
    });
    const vectors: Embedding[] = [];
    for (let at = 0; at < texts.length; at += BATCH_TEXTS) {
      if (this.#isClosed) throw closed();
      if (signal?.aborted) throw aborted();
      vectors.push(...(await this.#backend.encode(texts.slice(at, at + BATCH_TEXTS).map(beginning))));
      onProgress?.({ phase: 'encode', loaded: vectors.length, total: texts.length });
      // A turn of the loop, so that an abort that waits there is heard.
      if (vectors.length < texts.length) await new Promise((resolve) => setTimeout(resolve));
    }
    return vectors;
  }

  /** Lets go of the model. Further calls reject with `closed`. */
  close(): void {
    this.#isClosed = true;
    this.#backend.close();
  }
}

/** Cosine similarity of two vectors of one model, -1 to 1, quantised to 1e-4 as everywhere in foremind. Throws
 * `invalid-argument` for vectors of different models or heads, whose numbers have nothing in common. */
export function similarity(a: Embedding, b: Embedding): number {
  if (a.modelId !== b.modelId || a.headId !== b.headId || a.vector.length !== b.vector.length) {
    throw invalid(`vectors of ${a.modelId} (${a.headId}) and ${b.modelId} (${b.headId}) cannot be compared; encode the texts again`);
  }
  let [dot, aa, bb] = [0, 0, 0];
  a.vector.forEach((x, at) => {
    const y = b.vector[at] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  });
  return Math.round((dot / Math.sqrt(aa * bb)) * 1e4) / 1e4;
}

export async function encodeBatch(embedder: LoadedEmbedder | undefined, texts: string[]): Promise<Embedding[]> {
  if (!embedder?.encode) throw new ForemindError('internal', 'the embedder has stopped; open another one');
  const rows = await embedder.encode(texts, [HEAD]);
  return rows.flat().map(({ modelId, headId, vector, scale }) => ({ modelId, headId, vector: Int8Array.from(vector), scale }));
}
