import { open, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { modelMissing, type EmbedGlue, type EmbedderObject, type EmbedderSource, type Intakes, type OnProgress } from './embedder.js';
import { embedGlue, onnxGlue } from './glue.js';
import { fromOnnx, takeWhole, type ModelPin } from './intake.js';
import { packagedModel } from './model-package.js';
import { verifySha256 } from './sha256.js';
import { hasRelaxedSimd } from './simd.js';
import type { ModelSource } from './types.js';
import { invalid } from './validate.js';

const CHUNK_BYTES = 1 << 20;

/** The embedder for the shipped model: the binary that this engine can run. */
export async function shippedEmbed(): Promise<EmbedGlue> {
  const bindings = await import('./foremind_embed.js');
  const name = hasRelaxedSimd() ? './foremind_embed_relaxed_bg.wasm' : './foremind_embed_bg.wasm';
  bindings.initSync({ module: await readFile(new URL(name, import.meta.url)) });
  return embedGlue(bindings);
}

/** The embedder that also runs ONNX files. */
export async function onnxEmbed(): Promise<EmbedGlue> {
  const bindings = await import('./foremind_onnx.js');
  bindings.initSync({ module: await readFile(new URL('./foremind_onnx_bg.wasm', import.meta.url)) });
  return onnxGlue(bindings);
}

/** The embedder that the options ask for. Nothing is ever downloaded here. */
export function nodeSource(glue: () => Promise<EmbedGlue>, model: ModelSource | undefined): EmbedderSource | undefined {
  if (model === false) return undefined;
  if (model === undefined) {
    return {
      glue,
      model: async (...rest) => {
        const { url, bytes, hash } = await packagedModel();
        return readModel(pathOf(url), { bytes, hash }, ...rest);
      },
    };
  }
  if (model instanceof Uint8Array) return { glue, model: (intakes) => takeWhole(model, intakes) };
  if (typeof model === 'string' || model instanceof URL) {
    const path = pathOf(model);
    return { glue, model: (...rest) => readModel(path, {}, ...rest) };
  }
  if ('onnx' in model) {
    const [onnx, vocabulary] = [fileOf(model.onnx), fileOf(model.vocabulary)];
    return { glue, model: async (intakes) => fromOnnx(await intakes.glue, model.id, await vocabulary(), await onnx()) };
  }
  const path = pathOf(model.url);
  if ('hash' in model) return { glue, model: (...rest) => readModel(path, model, ...rest) };
  return {
    glue,
    model: async (intakes, onProgress) => {
      const pack = await readWhole(path);
      onProgress({ phase: 'model', loaded: pack.length, total: pack.length });
      await verifySha256(pack, model.sha256);
      return takeWhole(pack, intakes);
    },
  };
}

async function readModel(path: string, { bytes, hash }: ModelPin, intakes: Intakes, onProgress: OnProgress, signal: AbortSignal): Promise<EmbedderObject> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw modelMissing(error.code ?? 'it could not be opened');
  });
  try {
    const total = (await file.stat()).size;
    const intake = await intakes.open({ ...(bytes !== undefined && { bytes }), ...(hash !== undefined && { hash }) });
    const chunk = new Uint8Array(CHUNK_BYTES);
    let loaded = 0;
    try {
      for (;;) {
        const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, loaded).catch((error: NodeJS.ErrnoException) => {
          throw modelMissing(error.code ?? 'it could not be read');
        });
        if (bytesRead === 0) break;
        signal.throwIfAborted();
        intake.push(chunk.subarray(0, bytesRead));
        loaded += bytesRead;
        onProgress({ phase: 'model', loaded, total });
      }
      return intake.finish();
    } catch (error) {
      intake.drop();
      throw error;
    }
  } finally {
    await file.close();
  }
}

async function readWhole(path: string): Promise<Uint8Array> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw modelMissing(error.code ?? 'it could not be read');
  });
}

function fileOf(file: string | URL | Uint8Array): () => Promise<Uint8Array> {
  if (file instanceof Uint8Array) return async () => file;
  const path = pathOf(file);
  return () => readWhole(path);
}

function pathOf(place: string | URL): string {
  const text = String(place);
  if (text.startsWith('file:')) return fileURLToPath(text);
  if (/^[a-z][a-z0-9+.-]+:/i.test(text)) throw invalid('in node the model must be a path, a file: URL or bytes; download it first');
  return text;
}
