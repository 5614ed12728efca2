import { browserModel, browserSource } from '../browser-model.js';
import { LoadedEmbedder, type EmbedGlue } from '../embedder.js';
import { ForemindError, aborted, closed, fromPlain } from '../errors.js';
import { loading } from '../glue.js';
import { encodeBatch, type EncoderBackend } from '../open-embedder.js';
import type { Embedding, EmbedderOptions } from '../types.js';
import { embedderOptionsOf } from '../validate.js';
import { notStarted } from './client.js';
import type { FromEncoder, ToEncoder } from './encoder-messages.js';

/** The part of `Worker` used here. */
export interface EncoderWorker {
  postMessage(message: ToEncoder): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromEncoder>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

export type SpawnEncoder = () => EncoderWorker;

/** An embedder in a worker of its own, or in this realm where there are no workers. */
export async function openEncoder(options: EmbedderOptions, glue: () => Promise<EmbedGlue>, spawn: SpawnEncoder): Promise<EncoderBackend> {
  const { model, signal = new AbortController().signal, onProgress = () => {} } = embedderOptionsOf(options);
  if (signal.aborted) throw aborted();
  const plain = browserModel(model);
  if (typeof Worker === 'undefined') {
    const source = browserSource(() => loading('embed', glue()), plain);
    if (!source) throw new ForemindError('invalid-argument', 'an embedder needs a model');
    const embedder = await LoadedEmbedder.load(source, onProgress, signal);
    return { modelId: embedder.modelId, encode: (texts) => encodeBatch(embedder, texts), close: () => embedder.close() };
  }
  let worker: EncoderWorker;
  try {
    worker = spawn();
  } catch {
    throw notStarted();
  }
  const opening = new Promise<string>((resolve, reject) => {
    const abort = () => reject(aborted());
    signal.addEventListener('abort', abort, { once: true });
    worker.onerror = () => reject(notStarted());
    worker.onmessage = ({ data: message }) => {
      if (message.type === 'progress') onProgress(message.progress);
      if (message.type === 'refused') reject(fromPlain(message.error));
      if (message.type === 'opened') resolve(message.modelId);
    };
    worker.postMessage({ type: 'open', model: plain });
  });
  try {
    return new EncoderClient(worker, await opening);
  } catch (error) {
    worker.terminate();
    throw error;
  }
}

interface PendingBatch {
  resolve: (vectors: Embedding[]) => void;
  reject: (error: ForemindError) => void;
}

class EncoderClient implements EncoderBackend {
  readonly modelId: string;
  readonly #worker: EncoderWorker;
  readonly #batches = new Map<number, PendingBatch>();
  #nextId = 0;
  #end: ForemindError | undefined;

  constructor(worker: EncoderWorker, modelId: string) {
    this.#worker = worker;
    this.modelId = modelId;
    worker.onmessage = ({ data: message }) => {
      if (message.type === 'vectors') this.#take(message.id)?.resolve(message.vectors);
      if (message.type === 'failure') this.#take(message.id)?.reject(fromPlain(message.error));
    };
    worker.onerror = (event) => {
      event.preventDefault?.();
      this.#finish(new ForemindError('internal', 'the worker of this embedder stopped; open another one'));
    };
  }

  encode(texts: string[]): Promise<Embedding[]> {
    return new Promise((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      const id = this.#nextId++;
      this.#batches.set(id, { resolve, reject });
      this.#worker.postMessage({ type: 'encode', id, texts });
    });
  }

  close(): void {
    this.#finish(closed());
  }

  #take(id: number): PendingBatch | undefined {
    const batch = this.#batches.get(id);
    this.#batches.delete(id);
    return batch;
  }

  #finish(end: ForemindError): void {
    this.#end ??= end;
    this.#worker.terminate();
    for (const batch of this.#batches.values()) batch.reject(this.#end);
    this.#batches.clear();
  }
}
