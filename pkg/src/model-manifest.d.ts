/** Written next to the compiled files by `scripts/manifest.mjs` from the model that the build packed. */
export declare const MODEL: { bytes: number; sha256: string } | null;
