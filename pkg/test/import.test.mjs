import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { testIn } from './support.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const dist = join(here, 'dist');

/** Globals whose use at import time would break a server or a bundler's evaluation. */
const BROWSER_GLOBALS = [
  'window', 'document', 'self', 'location', 'navigator', 'indexedDB', 'caches', 'localStorage', 'Worker', 'BroadcastChannel', 'fetch', 'crypto', 'WebAssembly',
];

test('importing any entry touches no global, starts nothing and reads nothing', () => {
  for (const entry of ['browser.js', 'index.js', 'node.js', 'onnx.js', 'onnx-node.js']) {
    const program = `
      for (const name of ${JSON.stringify(BROWSER_GLOBALS)}) {
        Object.defineProperty(globalThis, name, { configurable: true, get() { throw new Error(name + ' was touched'); } });
      }
      const { Embedder, Memory, ForemindError, ERROR_CODES } = await import(${JSON.stringify(new URL(`../dist/${entry}`, import.meta.url).href)});
      if (typeof Memory.open !== 'function' || typeof Embedder.open !== 'function' || typeof ForemindError !== 'function' || ERROR_CODES.length < 20) process.exit(1);
      process.stdout.write(process.getActiveResourcesInfo().filter((kind) => !/^(Pipe|TTY|FS|Tick|Immediate|CloseReq)/.test(kind)).join());
    `;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
    assert.equal(run.status, 0, `${entry}: ${run.stderr}`);
    assert.equal(run.stdout, '', `${entry} left something running`);
  }
});

test('the browser entry says what is missing where there is no browser, instead of falling back', () => {
  const program = `
    const { Memory } = await import(${JSON.stringify(new URL('../dist/browser.js', import.meta.url).href)});
    await Memory.open({ name: 'ada', model: false }).then(
      () => process.exit(1),
      ({ code, fault }) => process.stdout.write(code + ' ' + fault),
    );
  `;
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }), 'unsupported host');
});

/** All scripts that are reached from `entries`; each import is relative, or the model's package. */
async function reached(...entries) {
  const seen = new Set();
  const queue = entries;
  while (queue.length > 0) {
    const file = queue.pop();
    if (seen.has(file)) continue;
    seen.add(file);
    const source = await readFile(join(dist, file), 'utf8');
    for (const [, specifier] of source.matchAll(/(?:from\s+|import\s*\(\s*)['"]([^'"]+)['"]/g)) {
      if (specifier === 'foremind-minilm-l6-v2') continue;
      assert.ok(specifier.startsWith('.'), `${file} imports ${specifier}`);
      queue.push(join(file, '..', specifier));
    }
  }
  return [...seen];
}

test('the browser entries reach no node module, and only the ONNX entry reaches the module that runs ONNX files', async () => {
  const plain = await reached('browser.js', 'worker.js', 'encoder-worker.js');
  assert.ok(plain.includes('foremind_core.js') && plain.includes('foremind_embed.js'));
  assert.ok(plain.length < 10, 'one script for each realm beside the glue');
  assert.deepEqual(plain.filter((file) => file.includes('onnx')), []);
  const onnx = await reached('onnx.js', 'onnx-worker.js', 'onnx-encoder-worker.js');
  assert.ok(onnx.includes('foremind_onnx.js') && !onnx.includes('foremind_embed.js'));
});

testIn('packed and installed: the files that it needs, node resolves it, the types hold', async (directory) => {
  const [{ filename, files }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', directory], { cwd: here, encoding: 'utf8' }));
  const packed = files.map(({ path }) => path);
  for (const wanted of ['package.json', 'dist/browser.js', 'dist/node.js', 'dist/index.d.ts', 'dist/worker.js', 'dist/onnx.js', 'dist/stores/durable-object.js', 'dist/foremind_core.js', 'dist/foremind_core_bg.wasm', 'dist/foremind_data.txt', 'dist/foremind_ngrams.bin', 'dist/foremind_route.fmadpt', 'dist/foremind_embed_bg.wasm', 'dist/foremind_embed_relaxed_bg.wasm', 'dist/foremind_onnx_bg.wasm', 'README.md', 'LICENSE-APACHE', 'LICENSE-MIT', 'NOTICE']) {
    assert.ok(packed.includes(wanted), wanted);
  }
  assert.deepEqual(packed.filter((path) => !/^(dist\/|package\.json$|README\.md$|LICENSE|NOTICE)/.test(path)), []);

  assert.deepEqual(packed.filter((path) => path.endsWith('.fmpack')), [], 'the model has a package of its own');

  const consumer = join(directory, 'consumer');
  await mkdir(consumer);
  await writeFile(join(consumer, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', join(directory, filename)], { cwd: consumer, stdio: 'pipe' });
  assert.deepEqual((await readdir(join(consumer, 'node_modules'))).filter((name) => !name.startsWith('.')), ['foremind'], 'no dependencies');

  await writeFile(
    join(consumer, 'story.mjs'),
    `import { Memory } from 'foremind';
     const memory = await Memory.open({ name: 'ada', key: new Uint8Array(32).fill(1), directory: 'data', model: false });
     await memory.remember({ user: 'ada' }, "I'm allergic to tree nuts");
     process.stdout.write((await memory.recall({ user: 'ada' }, 'Any good macaron recipes?')).prompt);
     await memory.close();`,
  );
  assert.match(execFileSync(process.execPath, ['story.mjs'], { cwd: consumer, encoding: 'utf8' }), /^<memory>[^]*tree nuts[^]*<\/memory>\n?$/);

  // Without the model's package the memory says so; with it, it is found by its name.
  const open = "const { Memory } = await import('foremind'); const memory = await Memory.open({ name: 'bea', key: new Uint8Array(32), directory: 'data' });";
  const asked = () => execFileSync(process.execPath, ['--input-type=module', '-e', `${open} console.log(await memory.ready.then(({ modelId }) => modelId, ({ code }) => code))`], { cwd: consumer, encoding: 'utf8' });
  assert.equal(asked(), 'model-missing\n');
  const [model] = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', directory], { cwd: join(here, '../pkg-model'), encoding: 'utf8' }));
  assert.deepEqual(model.files.map(({ path }) => path).sort(), ['LICENSE-APACHE', 'NOTICE', 'README.md', 'index.d.ts', 'index.js', 'minilm-l6-v2.fmpack', 'package.json', 'pin.js']);
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', join(directory, model.filename)], { cwd: consumer, stdio: 'pipe' });
  assert.match(asked(), /^all-minilm-l6-v2\/int8/);

  await writeFile(join(consumer, 'types.mts'), await readFile(new URL('./types.mts', import.meta.url), 'utf8'));
  for (const [module, moduleResolution] of [['NodeNext', 'NodeNext'], ['ESNext', 'Bundler']]) {
    const compilerOptions = { noEmit: true, strict: true, exactOptionalPropertyTypes: true, target: 'ES2022', lib: ['ES2022', 'DOM'], types: [], module, moduleResolution };
    await writeFile(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.mts'] }));
    const checked = spawnSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc')], { cwd: consumer, encoding: 'utf8' });
    assert.equal(checked.status, 0, `${moduleResolution}: ${checked.stdout}`);
  }
});
