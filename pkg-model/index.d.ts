/** Where the model file is, its length, and the BLAKE3 hash of its header: what `model` of foremind's options takes. */
export declare const model: { url: URL; bytes: number; hash: string };
