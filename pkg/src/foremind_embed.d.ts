// What this package uses of the generated bindings of the embed module.
import type { EmbedderObject } from './embedder.js';

export default function init(): Promise<unknown>;
export function initSync(input: { module: BufferSource | WebAssembly.Module }): unknown;
export function __wbg_reset_state(): void;
export const WebEmbedder: { new (pack: Uint8Array): EmbedderObject };
