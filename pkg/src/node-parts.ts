import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

import type { CoreRequest, CoreResponse } from './core.js';
import { LoadedEmbedder, type EmbedGlue } from './embedder.js';
import { ForemindError, aborted } from './errors.js';
import { Modules } from './glue.js';
import type { HeadFiles } from './heads.js';
import { HostKey, PassphraseKey, type Keys } from './keys.js';
import { nodeSource } from './node-embed.js';
import { encodeBatch, type EncoderBackend } from './open-embedder.js';
import { Session, once, together, type Backend, type SessionParts } from './session.js';
import { MemoryStore } from './stores/memory.js';
import { NodeFsStore } from './stores/node-fs.js';
import type { EmbedderOptions, KeySource, OpenOptions } from './types.js';
import { embedderOptionsOf, openOptionsOf, type CheckedOptions } from './validate.js';

/** What a variant of the package makes in node: its modules are made on first use, and shared by the whole process. */
export class NodeParts {
  readonly #modules: Modules;

  constructor(embed: () => Promise<EmbedGlue>) {
    this.#modules = new Modules(
      () => {
        const module = readFile(new URL('./foremind_core_bg.wasm', import.meta.url));
        // Its failure is met when the bindings use it.
        module.catch(() => {});
        return async (bindings) => bindings.initSync({ module: await module });
      },
      () => readFile(new URL('./foremind_data.txt', import.meta.url), 'utf8'),
      embed,
    );
  }

  async openMemory(options: OpenOptions): Promise<{ name: string; backend: Backend }> {
    const checked = openOptionsOf(options);
    if (checked.signal?.aborted) throw aborted();
    return { name: checked.name, backend: await Session.open(await this.#partsOf(checked), false, checked.signal) };
  }

  /** One answer from a memory that is not opened for it. */
  async ask(options: OpenOptions, request: CoreRequest): Promise<CoreResponse> {
    const checked = openOptionsOf(options);
    if (checked.signal?.aborted) throw aborted();
    return once(await this.#partsOf({ ...checked, model: false }), request, checked.signal);
  }

  async #partsOf({ name, key, model, storage, directory, policy }: CheckedOptions): Promise<SessionParts> {
    if (!key) {
      throw new ForemindError('key-missing', 'outside of a browser there is no device key; pass 32 secret random bytes or { passphrase } as `key`');
    }
    const keys = keysFor(key);
    const embedder = nodeSource(() => this.#modules.embed(), model);
    const opening = storage === 'memory' ? Promise.resolve(new MemoryStore()) : NodeFsStore.open(directory ?? defaultDirectory(), name);
    const { core, store } = await together(this.#modules.core(), opening);
    return { core, store, keys, keysFor, embedder, heads, policy };
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

const heads: HeadFiles = {
  adapter: (signal) => readFile(new URL('./foremind_route.fmadpt', import.meta.url), { signal }),
  ngrams: (signal) => readFile(new URL('./foremind_ngrams.bin', import.meta.url), { signal }),
};

function keysFor(key: KeySource): Keys {
  if (key === 'device') throw new ForemindError('unsupported', 'there is no device key outside of a browser; pass 32 bytes or { passphrase }');
  return key instanceof Uint8Array ? new HostKey(key) : new PassphraseKey(key.passphrase);
}

/** The user's data folder of the platform. */
function defaultDirectory(): string {
  const { env, platform } = process;
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local'), 'foremind');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'foremind');
  return join(env['XDG_DATA_HOME'] || join(homedir(), '.local', 'share'), 'foremind');
}
