import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { modelMissing, packagedPin, verifyModel, type EmbedderSource, type OnProgress } from './embedder.js';
import { Modules } from './glue.js';
import type { ModelSource } from './types.js';
import { invalid } from './validate.js';

let modules: Modules | undefined;

/** Made on first use, shared by all memories of the process. */
export function nodeModules(): Modules {
  modules ??= new Modules(
    async (core) => core.initSync({ module: await readFile(new URL('./foremind_core_bg.wasm', import.meta.url)) }),
    async (embed) => embed.initSync({ module: await readFile(new URL('./foremind_embed_bg.wasm', import.meta.url)) }),
  );
  return modules;
}

/** The user's data folder of the platform. */
export function defaultDirectory(): string {
  const { env, platform } = process;
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local'), 'foremind');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'foremind');
  return join(env['XDG_DATA_HOME'] || join(homedir(), '.local', 'share'), 'foremind');
}

/** The embedder that the options ask for. Nothing is ever downloaded here. */
export function nodeEmbedder(model: ModelSource | undefined): EmbedderSource | undefined {
  const glue = () => nodeModules().embed();
  if (model === false) return undefined;
  if (model === undefined) {
    const pin = packagedPin();
    return { glue, pack: (onProgress) => readModel(new URL('./minilm-l6-v2.fmpack', import.meta.url), pin?.sha256, onProgress) };
  }
  if (model instanceof Uint8Array) return { glue, pack: async () => model };
  const pinned = typeof model === 'object' && !(model instanceof URL) ? model : { url: model, sha256: undefined };
  const path = pathOf(pinned.url);
  return { glue, pack: (onProgress) => readModel(path, pinned.sha256, onProgress) };
}

function pathOf(place: string | URL): string {
  const text = String(place);
  if (text.startsWith('file:')) return fileURLToPath(text);
  if (/^[a-z][a-z0-9+.-]+:/i.test(text)) throw invalid('in node the model must be a path, a file: URL or bytes; download it first');
  return text;
}

async function readModel(place: string | URL, sha256: string | undefined, onProgress: OnProgress): Promise<Uint8Array> {
  let pack: Uint8Array;
  try {
    pack = await readFile(place);
  } catch (error) {
    throw modelMissing((error as NodeJS.ErrnoException).code ?? 'it could not be read');
  }
  onProgress({ phase: 'model', loaded: pack.length, total: pack.length });
  return verifyModel(pack, sha256);
}
