// The one suite for stores on IndexedDB, and what is special there: layouts of before, and waking other tabs.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { casesFor } from '../stores/conformance.mjs';
import { browsers, openKit, withBrowser, withServer } from './harness.mjs';

const capabilities = { atomicBatch: true, cas: true, ticket: false, readAfterWrite: true, list: true };

for (const kind of browsers) {
  describe(kind.name, () => {
    test('IndexedDB does what a store must', async (context) => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          assert.deepEqual(await page.evaluate(async () => (await kit.openStore('told')).capabilities), capabilities);
          for (const { name } of casesFor(capabilities)) {
            await context.test(name, async () => {
              const outcome = await page.evaluate((wanted) => kit.runCase(wanted), name);
              assert.equal(outcome, 'passed', outcome);
            });
          }

          await context.test('a memory in the first layout opens in the present one', async () => {
            const found = await page.evaluate(async () => {
              const request = indexedDB.open('foremind:old', 1);
              request.onupgradeneeded = () => request.result.createObjectStore('values');
              const database = await kit.asked(request);
              const values = database.transaction('values', 'readwrite').objectStore('values');
              const head = new Uint8Array(100).map((_, at) => at);
              const long = new Uint8Array(300_000).map((_, at) => at % 251);
              values.put(head, 'head');
              values.put(long, 'f'.repeat(32));
              await kit.asked(values.put(new Uint8Array([1, 2, 3]), 'key'));
              database.close();
              const store = await kit.openStore('old');
              const [before, key, same] = await store.read(['head', 'key', 'f'.repeat(32)]);
              const names = (await store.list()).sort();
              const refused = await store.commit({ puts: [['head', head]], deletes: [], strict: false });
              const next = head.slice().fill(9, 0, 32);
              const written = await store.commit({ expectedHead: head.slice(0, 32), puts: [['head', next]], deletes: [], strict: true });
              const after = (await store.read(['head']))[0][0];
              await store.close();
              return { lengths: [before.length, key.length], same: same.every((byte, at) => byte === long[at]), names: names.length, refused, written, after };
            });
            assert.deepEqual(found, { lengths: [100, 3], same: true, names: 3, refused: false, written: true, after: 9 });
          });

          await context.test('a commit wakes the instances in other tabs, and nobody when it was refused', async () => {
            const other = await openKit(browser, url);
            for (const tab of [page, other]) {
              await tab.evaluate(async () => {
                globalThis.store = await kit.openStore('waking');
                globalThis.wakes = 0;
                globalThis.woken = new Promise((resolve) => {
                  store.onwake = () => resolve((wakes += 1));
                });
              });
            }
            const written = await page.evaluate(async () => {
              const batch = { puts: [['head', new Uint8Array(32)], ['key', new Uint8Array(3)]], deletes: [], strict: false };
              return [await store.commit(batch), await store.commit(batch)];
            });
            assert.deepEqual(written, [true, false]);
            await other.evaluate(() => woken);
            assert.equal(await other.evaluate(() => wakes), 1);
            assert.equal(await page.evaluate(() => wakes), 0, 'not itself');
          });
        }),
      );
    });
  });
}
