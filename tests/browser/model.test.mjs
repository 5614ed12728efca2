// The model in a browser: it crosses the network once, is checked each time, and its loading can be given up.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browsers, modelFile, openKit, withBrowser, withProfile, withServer } from './harness.mjs';

const path = `/model/${modelFile}`;
const downloads = (requests) => requests.filter((line) => line === `GET ${path}`).length;

/** Opens an embedder, encodes one text, closes it; the model's name. */
const embedOnce = (page) =>
  page.evaluate(async () => {
    const embedder = await kit.Embedder.open({ model: kit.model });
    const [vector] = await embedder.encode(['a kettle']);
    embedder.close();
    return vector.modelId;
  });

/** Lengths of the cached models that are marked as whole. */
const cached = (page) =>
  page.evaluate(async () => {
    const cache = await caches.open('foremind-models');
    const marks = (await cache.keys()).map(({ url }) => url).filter((url) => url.endsWith('&foremind-whole='));
    const responses = await Promise.all(marks.map((url) => cache.match(url.replace('&foremind-whole=', ''))));
    return Promise.all(responses.map(async (response) => (await response.arrayBuffer()).byteLength));
  });

for (const kind of browsers) {
  describe(kind.name, () => {
    test('the second opening fetches nothing, in another tab and after a restart too', async () => {
      await withServer(({ url, requests }) =>
        withProfile(async (userDataDir) => {
          const opened = (use) => withBrowser(kind, ({ browser }) => use(browser), { userDataDir });
          await opened(async (browser) => {
            const page = await openKit(browser, url);
            const modelId = await embedOnce(page);
            assert.match(modelId, /^all-minilm-l6-v2\//);
            assert.equal(await embedOnce(page), modelId);
            assert.equal(await embedOnce(await openKit(browser, url)), modelId);
            assert.equal(downloads(requests), 1);
            const { bytes } = await page.evaluate(() => ({ bytes: kit.model.bytes }));
            assert.deepEqual(await cached(page), [bytes]);
          });
          await opened(async (browser) => embedOnce(await openKit(browser, url)));
          assert.equal(downloads(requests), 1);
          // One binary, the one that the engine can run.
          const binaries = new Set(requests.filter((line) => /foremind_embed\w*\.wasm/.test(line)));
          assert.equal(binaries.size, 1, [...binaries].join());
          assert.ok(!requests.some((line) => line.includes('onnx')));
        }),
      );
    });

    test('a copy that was altered in the cache is noticed, thrown away and fetched again', async () => {
      await withServer(({ url, requests }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          await embedOnce(page);
          for (const at of [40, 9_000_000]) {
            await page.evaluate(async (position) => {
              const cache = await caches.open('foremind-models');
              const request = (await cache.keys()).find(({ url }) => !url.endsWith('&foremind-whole='));
              const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
              bytes[position] ^= 1;
              await cache.put(request, new Response(bytes));
            }, at);
            const before = downloads(requests);
            assert.match(await embedOnce(page), /^all-minilm-l6-v2\//);
            assert.equal(downloads(requests), before + 1, `byte ${at}`);
          }
          await embedOnce(page);
          assert.equal(downloads(requests), 3, 'the new copy is good');
        }),
      );
    });

    test('given up on the way: nothing is kept, and the next opening begins again', async () => {
      await withServer(({ url, requests }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          const outcome = await page.evaluate(() =>
            kit.outcome(() => {
              const stop = new AbortController();
              return kit.Embedder.open({ model: kit.model, signal: stop.signal, onProgress: ({ loaded, total }) => loaded > 0 && loaded < total && stop.abort() });
            }),
          );
          assert.equal(outcome.code, 'aborted');
          assert.deepEqual(await cached(page), []);
          const progress = await page.evaluate(async () => {
            const seen = [];
            const embedder = await kit.Embedder.open({ model: kit.model, onProgress: (detail) => seen.push(detail) });
            embedder.close();
            return seen;
          });
          assert.equal(downloads(requests), 2);
          assert.equal(progress.at(-1).loaded, progress.at(-1).total);
          assert.ok(progress.length > 2 && progress.every(({ phase, loaded }, at) => phase === 'model' && loaded >= (progress[at - 1]?.loaded ?? 0)));
          assert.equal((await cached(page)).length, 1);
        }),
      );
    });

    test('two tabs that start together download once', async () => {
      await withServer(({ url, requests }) =>
        withBrowser(kind, async ({ browser }) => {
          const tabs = [await openKit(browser, url), await openKit(browser, url)];
          const [one, other] = await Promise.all(tabs.map(embedOnce));
          assert.equal(one, other);
          assert.equal(downloads(requests), 1);
        }),
      );
    });
  });
}
