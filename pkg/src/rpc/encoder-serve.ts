import { browserSource } from '../browser-model.js';
import { LoadedEmbedder, type EmbedGlue } from '../embedder.js';
import { ForemindError, toPlain } from '../errors.js';
import { loading } from '../glue.js';
import { encodeBatch } from '../open-embedder.js';
import type { FromEncoder, ToEncoder } from './encoder-messages.js';

/** The part of `DedicatedWorkerGlobalScope` used here. */
interface Port {
  postMessage(message: FromEncoder): void;
  onmessage: ((event: MessageEvent<ToEncoder>) => void) | null;
}

/** The worker's side of one embedder. It answers a batch at a time; what is long is cut into batches by the page, which
 * may also stop sending them. */
export function serveEncoder(glue: () => Promise<EmbedGlue>): void {
  const port = globalThis as unknown as Port;
  let embedder: LoadedEmbedder | undefined;

  port.onmessage = async ({ data: message }) => {
    if (message.type === 'open') {
      try {
        const source = browserSource(() => loading('embed', glue()), message.model);
        if (!source) throw new ForemindError('invalid-argument', 'an embedder needs a model');
        const progress = (detail: (FromEncoder & { type: 'progress' })['progress']) => port.postMessage({ type: 'progress', progress: detail });
        // Whoever gives up the opening ends this worker.
        embedder = await LoadedEmbedder.load(source, progress, new AbortController().signal);
        port.postMessage({ type: 'opened', modelId: embedder.modelId });
      } catch (error) {
        port.postMessage({ type: 'refused', error: toPlain(error) });
      }
      return;
    }
    const { id, texts } = message;
    try {
      port.postMessage({ type: 'vectors', id, vectors: await encodeBatch(embedder, texts) });
    } catch (error) {
      port.postMessage({ type: 'failure', id, error: toPlain(error) });
    }
  };
}
