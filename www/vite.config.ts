import { createHash } from 'node:crypto';

import { defineConfig, type Plugin } from 'vite';

/**
 * Writes `sw.js`: the service worker of this page with the list of the files that the build made, so that a reload
 * works without a network. The list is what a hand-written service worker could not know, since names carry hashes.
 */
function offline(): Plugin {
  return {
    name: 'offline',
    apply: 'build',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const worker = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'sw');
      if (worker?.type !== 'chunk') throw new Error('The service worker is not among the built files.');
      // The page is kept as `/`; the model is left out because the package keeps it in a cache of its own.
      const kept = (name: string) => name !== worker.fileName && name !== 'index.html' && !/\.(map|fmpack)$/.test(name);
      const files = Object.keys(bundle).filter(kept).map((name) => `/${name}`);
      const list = JSON.stringify(['/', '/icon.svg', ...files]);
      const build = createHash('sha256').update(list).digest('hex').slice(0, 16);
      worker.code = worker.code.replace('__FILES__', () => list).replace('__BUILD__', () => JSON.stringify(build));
    },
  };
}

export default defineConfig({
  base: '/',
  plugins: [offline()],
  worker: { format: 'es' },
  // The package finds its worker, wasm and model next to itself; a pre-bundled copy would look elsewhere.
  optimizeDeps: { exclude: ['foremind', 'foremind-minilm-l6-v2'] },
  build: {
    target: 'es2022',
    // Nothing inline: the page runs under a policy that allows neither inline scripts nor data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: { index: 'index.html', sw: 'src/sw.js' },
      output: { entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js') },
    },
  },
});
