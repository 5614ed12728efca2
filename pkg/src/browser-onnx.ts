import type { EmbedGlue } from './embedder.js';
import { onnxGlue } from './glue.js';

/** The embedder that also runs ONNX files. */
export async function onnxEmbed(): Promise<EmbedGlue> {
  const bindings = await import('./foremind_onnx.js');
  await bindings.default();
  return onnxGlue(bindings);
}
