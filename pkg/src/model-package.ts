import { ForemindError } from './errors.js';
import type { PackagedModel } from './types.js';

/** The npm package of the model that is used when none is named. */
export const MODEL_PACKAGE = 'foremind-minilm-l6-v2';

/** Where the model's own package says that its file is. Bundlers find the package, and the file in it, by this import. */
export async function packagedModel(): Promise<PackagedModel> {
  try {
    return (await import('foremind-minilm-l6-v2')).model;
  } catch {
    throw new ForemindError(
      'model-missing',
      `the package ${MODEL_PACKAGE} was not found: install it beside foremind, or, on a page without a bundler, import ` +
        '`model` from its index.js and pass it to Memory.open; the memory works by words alone until it is there',
    );
  }
}
