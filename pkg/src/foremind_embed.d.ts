// What this package uses of the generated bindings of the embed module; both of its binaries have the same.
import type { EmbedderObject, PackLoaderObject } from './embedder.js';

export default function init(input?: { module_or_path: URL }): Promise<unknown>;
export function initSync(input: { module: BufferSource | WebAssembly.Module }): unknown;
export function __wbg_reset_state(): void;
export const PackLoader: { new (bytes: number): PackLoaderObject };
