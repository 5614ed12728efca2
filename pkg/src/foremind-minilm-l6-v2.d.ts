/** The package of pkg-model/, an optional peer of this one. */
declare module 'foremind-minilm-l6-v2' {
  export const model: import('./types.js').PackagedModel;
}
