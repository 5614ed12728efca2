import { OpenMemory, type Ask } from './memory.js';
import { onnxEmbed } from './node-embed.js';
import { NodeParts } from './node-parts.js';
import { OpenEmbedder } from './open-embedder.js';
import type { EmbedderOptions, OpenOptions } from './types.js';

// The entry `foremind/onnx` in node.
export * from './public.js';

const parts = new NodeParts(onnxEmbed);

/** One open memory; see {@link OpenMemory}. */
export class Memory extends OpenMemory {
  /** @internal */
  static readonly ask: Ask = (options, request) => parts.ask(options, request);

  /** Opens a memory, and begins it when nothing is stored under its name (see `created`). Runs in this thread. */
  static async open(options: OpenOptions): Promise<Memory> {
    const { name, backend } = await parts.openMemory(options);
    return new Memory(name, backend);
  }
}

/** The embedder alone; see {@link OpenEmbedder}. */
export class Embedder extends OpenEmbedder {
  /** Loads the model. Runs in this thread, a batch at a time. Rejects with `unsupported`, `model-missing`,
   * `model-invalid`, `newer-format`, `aborted`. */
  static async open(options: EmbedderOptions = {}): Promise<Embedder> {
    return new Embedder(await parts.openEncoder(options));
  }
}
