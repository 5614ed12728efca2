// What a browser loads is one script for each realm instead of a chain of thirty: their addresses would only be known one after
// another, and each costs a request. The glue of the wasm modules stays beside the modules, and is loaded when they are.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const realms = ['browser', 'worker', 'encoder-worker', 'onnx', 'onnx-worker', 'onnx-encoder-worker'];
// All of them stand in `dist/` itself, since modules find the files beside them by `import.meta.url`.
await build({
  entryPoints: realms.map((name) => `${dist}${name}.js`),
  outdir: dist,
  allowOverwrite: true,
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  charset: 'utf8',
  external: ['core', 'embed', 'onnx'].map((name) => `./foremind_${name}.js`).concat('foremind-minilm-l6-v2'),
  logLevel: 'warning',
});
