import type { EmbedGlue, EmbedderSource, OnProgress } from './embedder.js';
import { fromOnnx, takeWhole } from './intake.js';
import { fetchBytes, fetchModel, type ModelLocation } from './model-fetch.js';
import { packagedModel } from './model-package.js';
import type { ModelSource } from './types.js';
import { invalid } from './validate.js';

/** A file, as it crosses to a worker. */
export type Bytes = Uint8Array | { url: string };

/** A model, as it crosses to a worker: plain and cloneable. */
export type BrowserModel =
  | { from: 'package' }
  | { from: 'none' }
  | { from: 'bytes'; pack: Uint8Array }
  | { from: 'url'; url: string; sha256?: string; bytes?: number; hash?: string }
  | { from: 'onnx'; id: string; onnx: Bytes; vocabulary: Bytes };

/** URLs become absolute here, relative to the page, as every other URL a page names; a worker has another base. */
export function browserModel(model: ModelSource | undefined): BrowserModel {
  if (model === undefined) return { from: 'package' };
  if (model === false) return { from: 'none' };
  if (model instanceof Uint8Array) return { from: 'bytes', pack: model };
  if (typeof model === 'string' || model instanceof URL) return { from: 'url', url: absolute(model) };
  if ('onnx' in model) return { from: 'onnx', id: model.id, onnx: bytesOf(model.onnx), vocabulary: bytesOf(model.vocabulary) };
  return { ...model, from: 'url', url: absolute(model.url) };
}

/** Where the embedder comes from in a browser; `glue` makes the module. */
export function browserSource(glue: () => Promise<EmbedGlue>, model: BrowserModel): EmbedderSource | undefined {
  switch (model.from) {
    case 'none':
      return undefined;
    case 'bytes':
      return { glue, model: (intakes) => takeWhole(model.pack, intakes) };
    case 'url': {
      const { url, sha256, bytes, hash } = model;
      const location: ModelLocation = { url: new URL(url) };
      if (sha256 !== undefined) location.sha256 = sha256;
      if (bytes !== undefined) location.bytes = bytes;
      if (hash !== undefined) location.hash = hash;
      return { glue, model: (...rest) => fetchModel(location, ...rest) };
    }
    case 'package':
      return {
        glue,
        model: async (...rest) => {
          const { url, bytes, hash } = await packagedModel();
          return fetchModel({ url: new URL(url, globalThis.location?.href), bytes, hash }, ...rest);
        },
      };
    case 'onnx':
      return {
        glue,
        model: async (intakes, onProgress, signal) => {
          const vocabulary = await fetched(model.vocabulary, () => {}, signal);
          const onnx = await fetched(model.onnx, onProgress, signal);
          return fromOnnx(await intakes.glue, model.id, vocabulary, onnx);
        },
      };
  }
}

function fetched(file: Bytes, onProgress: OnProgress, signal: AbortSignal): Promise<Uint8Array> {
  return file instanceof Uint8Array ? Promise.resolve(file) : fetchBytes(new URL(file.url), onProgress, signal);
}

function bytesOf(file: string | URL | Uint8Array): Bytes {
  return file instanceof Uint8Array ? file : { url: absolute(file) };
}

function absolute(url: string | URL): string {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    throw invalid('model is not a URL');
  }
}
