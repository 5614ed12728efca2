/** The head on the encoder that the core's router is calibrated for, in the adapter file. */
export const ROUTE_HEAD = 'route/1';

/** The files of the router's heads, which stand beside the modules and are loaded after the core. */
export interface HeadFiles {
  /** For the encoder: judges English. */
  adapter(signal: AbortSignal): Promise<Uint8Array>;
  /** For the core: judges ten other languages. */
  ngrams(signal: AbortSignal): Promise<Uint8Array>;
}
