import { shippedEmbed } from './browser-embed.js';
import { withCore } from './browser-core.js';
import { askInBrowser, openInBrowser } from './browser-open.js';
import { partsWith } from './browser-parts.js';
import { OpenMemory, type Ask } from './memory.js';
import { OpenEmbedder } from './open-embedder.js';
import type { Spawn } from './rpc/client.js';
import { openEncoder, type SpawnEncoder } from './rpc/encoder-client.js';
import type { EmbedderOptions, OpenOptions } from './types.js';

export * from './public.js';

const parts = partsWith(shippedEmbed);
// Written so that bundlers find the workers' scripts.
const spawn: Spawn = () => withCore(new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }));
const spawnEncoder: SpawnEncoder = () => new Worker(new URL('./encoder-worker.js', import.meta.url), { type: 'module' });

/** One open memory; see {@link OpenMemory}. */
export class Memory extends OpenMemory {
  /** @internal */
  static readonly ask: Ask = (options, request) => askInBrowser(options, request, parts, spawn);

  /**
   * Opens a memory, and begins it when nothing is stored under its name (see `created`). Everything runs in a
   * worker of its own where there are workers. Rejects with `unsupported`, `storage-denied`, `storage-lost`,
   * `wrong-key`, `key-missing`, `corrupt`, `newer-format`.
   */
  static async open(options: OpenOptions): Promise<Memory> {
    const { name, backend } = await openInBrowser(options, parts, spawn);
    return new Memory(name, backend);
  }
}

/** The embedder alone; see {@link OpenEmbedder}. */
export class Embedder extends OpenEmbedder {
  /** Loads the model in a worker of its own. Rejects with `unsupported`, `model-missing`, `model-invalid`,
   * `newer-format`, `aborted`. */
  static async open(options: EmbedderOptions = {}): Promise<Embedder> {
    return new Embedder(await openEncoder(options, shippedEmbed, spawnEncoder));
  }
}
