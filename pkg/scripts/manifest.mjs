// Pins the packed model: its size and SHA-256 go into the package, so that a model file that was cut, altered
// or swapped on the way is refused. Without a packed model the pin is null and only the file's own section
// hashes are checked.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const dist = new URL('../dist/', import.meta.url);
let pin = null;
try {
  const model = readFileSync(new URL('minilm-l6-v2.fmpack', dist));
  pin = { bytes: model.length, sha256: createHash('sha256').update(model).digest('hex') };
} catch (error) {
  if (error.code !== 'ENOENT') throw error;
}
writeFileSync(new URL('model-manifest.js', dist), `export const MODEL = ${JSON.stringify(pin)};\n`);
