// What the guard costs a statement of about 200 characters, in wasm: `node benches/guard.mjs`.
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const STATEMENTS = 10_000;
const target = 'wasm32-unknown-unknown';
execFileSync(
  'cargo',
  ['build', '--release', '--quiet', '--package', 'foremind-guard', '--features', 'compiled-data', '--example', 'cost', '--target', target],
  { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
);
const folder = process.env.CARGO_TARGET_DIR ?? `${root}/target`;
const { instance } = await WebAssembly.instantiate(await readFile(`${folder}/${target}/release/examples/cost.wasm`), {});
const rounds = [];
for (let round = 0; round < 12; round += 1) {
  const began = performance.now();
  instance.exports.main(0, 0);
  rounds.push(((performance.now() - began) * 1_000) / STATEMENTS);
}
// The first two read the tables and compile.
const [p50] = rounds.slice(2).sort((a, b) => a - b).slice(4);
console.log(JSON.stringify({ statements: STATEMENTS, first_us: Math.round(rounds[0] * 10) / 10, p50_us: Math.round(p50 * 10) / 10 }));
