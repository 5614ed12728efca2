import { ForemindError } from './errors.js';

/** Refuses bytes that do not have the hash they are pinned to. */
export async function verifySha256(bytes: Uint8Array, sha256: string): Promise<void> {
  if (!globalThis.crypto?.subtle) {
    throw new ForemindError('unsupported', 'the model cannot be verified outside of a secure context; serve the page over https');
  }
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  if (found !== sha256) {
    throw new ForemindError('model-invalid', `the model file is another one: SHA-256 ${sha256.slice(0, 16)}.. expected, ${found.slice(0, 16)}.. found`);
  }
}
