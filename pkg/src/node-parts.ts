import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

import { LoadedEmbedder, type EmbedGlue } from './embedder.js';
import { ForemindError, aborted } from './errors.js';
import { Modules } from './glue.js';
import { HostKey } from './keys.js';
import { nodeSource } from './node-embed.js';
import { encodeBatch, type EncoderBackend } from './open-embedder.js';
import { Session, type Backend } from './session.js';
import { MemoryStore } from './stores/memory.js';
import { NodeFsStore } from './stores/node-fs.js';
import type { EmbedderOptions, OpenOptions } from './types.js';
import { embedderOptionsOf, openOptionsOf } from './validate.js';

/** What a variant of the package makes in node: its modules are made on first use, and shared by the whole process. */
export class NodeParts {
  readonly #modules: Modules;

  constructor(embed: () => Promise<EmbedGlue>) {
    this.#modules = new Modules(
      async (core) => core.initSync({ module: await readFile(new URL('./foremind_core_bg.wasm', import.meta.url)) }),
      embed,
    );
  }

  async openMemory(options: OpenOptions): Promise<{ name: string; backend: Backend }> {
    const { name, key, model, storage, directory, signal } = openOptionsOf(options);
    if (signal?.aborted) throw aborted();
    if (!key) {
      throw new ForemindError('key-missing', 'outside of a browser there is no device key; pass 32 secret random bytes as `key`');
    }
    const embedder = nodeSource(() => this.#modules.embed(), model);
    const core = await this.#modules.core();
    const store = storage === 'memory' ? new MemoryStore() : await NodeFsStore.open(directory ?? defaultDirectory(), name);
    return { name, backend: await Session.open({ core, store, keys: new HostKey(key), embedder }, false, signal) };
  }

  async openEncoder(options: EmbedderOptions): Promise<EncoderBackend> {
    const { model, signal = new AbortController().signal, onProgress = () => {} } = embedderOptionsOf(options);
    if (signal.aborted) throw aborted();
    const source = nodeSource(() => this.#modules.embed(), model);
    if (!source) throw new ForemindError('invalid-argument', 'an embedder needs a model');
    const embedder = await LoadedEmbedder.load(source, onProgress, signal).catch((error: unknown) => {
      throw signal.aborted ? aborted() : error;
    });
    return { modelId: embedder.modelId, encode: (texts) => encodeBatch(embedder, texts), close: () => embedder.close() };
  }
}

/** The user's data folder of the platform. */
function defaultDirectory(): string {
  const { env, platform } = process;
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local'), 'foremind');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'foremind');
  return join(env['XDG_DATA_HOME'] || join(homedir(), '.local', 'share'), 'foremind');
}
