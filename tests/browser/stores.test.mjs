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

          await context.test('a memory in the second layout, without a tail, opens in the present one', async () => {
            const found = await page.evaluate(async () => {
              const row = (head) => ({ slot: 'head', bytes: head });
              const head = new Uint8Array(100).map((_, at) => at);
              const token = Array.from(head.subarray(0, 32), (byte) => byte.toString(16).padStart(2, '0')).join('');
              const request = indexedDB.open('foremind:second', 2);
              request.onupgradeneeded = () => {
                request.result.createObjectStore('values');
                request.result.createObjectStore('heads').createIndex('slot', 'slot', { unique: true });
              };
              const database = await kit.asked(request);
              const transaction = database.transaction(['heads', 'values'], 'readwrite');
              transaction.objectStore('heads').add(row(head), token);
              transaction.objectStore('values').put(new Uint8Array([7]), 'e'.repeat(32));
              await kit.asked(transaction.objectStore('values').put(new Uint8Array([1, 2, 3]), 'key'));
              database.close();
              const store = await kit.openStore('second');
              const names = (await store.list()).sort();
              const next = head.slice().fill(9, 0, 32);
              const batch = { expectedHead: head.slice(0, 32), puts: [['head', next], ['d'.repeat(32), new Uint8Array([8])]], deletes: ['e'.repeat(32)], strict: true };
              const written = [await store.commit(batch), await store.commit(batch)];
              const [after, gone, fresh] = await store.read(['head', 'e'.repeat(32), 'd'.repeat(32)]);
              await store.close();
              return { names: names.length, written, after: after[0], gone: gone === undefined, fresh: fresh[0] };
            });
            assert.deepEqual(found, { names: 3, written: [true, false], after: 9, gone: true, fresh: 8 });
          });

          await context.test("a head's row that was taken out is no head, and no commit goes on from it", async () => {
            const found = await page.evaluate(async () => {
              const store = await kit.openStore('headless');
              const head = (first) => new Uint8Array(32).fill(first);
              await store.commit({ puts: [['head', head(1)], ['key', new Uint8Array(3)]], deletes: [], strict: false });
              const [before] = await store.read(['head']);
              const request = indexedDB.open('foremind:headless');
              const other = await kit.asked(request);
              await kit.asked(other.transaction('heads', 'readwrite').objectStore('heads').clear());
              other.close();
              const [after, key] = await store.read(['head', 'key']);
              const names = await store.list();
              const written = await store.commit({ expectedHead: head(1), puts: [['head', head(2)]], deletes: [], strict: false });
              await store.close();
              return { before: before.length, after: after === undefined, key: key.length, names, written };
            });
            assert.deepEqual(found, { before: 32, after: true, key: 3, names: ['key'], written: false });
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
