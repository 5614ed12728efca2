// What this package uses of the generated bindings of the embed module that runs ONNX files.
import type { EmbedderObject, PackLoaderObject } from './embedder.js';

export default function init(): Promise<unknown>;
export function initSync(input: { module: BufferSource | WebAssembly.Module }): unknown;
export function __wbg_reset_state(): void;
export const PackLoader: { new (bytes: number): PackLoaderObject };
export const WebEmbedder: { fromOnnx(id: string, vocabulary: Uint8Array, onnx: Uint8Array): EmbedderObject };
