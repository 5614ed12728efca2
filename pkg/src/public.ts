// What every entry exports beside `Memory`.
export { ERROR_CODES, ForemindError, type ErrorCode, type Fault } from './errors.js';
export type { OpenMemory } from './memory.js';
export { similarity, type OpenEmbedder } from './open-embedder.js';
export type * from './types.js';
