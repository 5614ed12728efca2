import type { EmbedGlue } from './embedder.js';
import { embedGlue } from './glue.js';
import { hasRelaxedSimd } from './simd.js';

/** The embedder for the shipped model: the binary that this engine can run. */
export async function shippedEmbed(): Promise<EmbedGlue> {
  const bindings = await import('./foremind_embed.js');
  // Written so that bundlers find the file; the other one is found in the bindings.
  await (hasRelaxedSimd() ? bindings.default({ module_or_path: new URL('./foremind_embed_relaxed_bg.wasm', import.meta.url) }) : bindings.default());
  return embedGlue(bindings);
}
