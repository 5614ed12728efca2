import { bytes, hash } from './pin.js';

/** Where the model file is, and what it must be. Written so that bundlers find the file. */
export const model = { url: new URL('./minilm-l6-v2.fmpack', import.meta.url), bytes, hash };
