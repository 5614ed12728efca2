// The store for Durable Objects inside of workerd, with both kinds of storage that the platform has.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import { Miniflare } from 'miniflare';

import { casesFor } from '../stores/conformance.mjs';
import { DurableObjectStore } from '../../pkg/dist/stores/durable-object.js';

const { capabilities } = new DurableObjectStore({});
const module = async (path, source) => ({ type: 'ESModule', path, contents: await readFile(new URL(source, import.meta.url), 'utf8') });
let host;

before(async () => {
  host = new Miniflare({
    modules: [
      await module('worker.js', 'object.mjs'),
      await module('conformance.mjs', '../stores/conformance.mjs'),
      await module('durable-object.js', '../../pkg/dist/stores/durable-object.js'),
      await module('store.js', '../../pkg/dist/stores/store.js'),
      await module('../errors.js', '../../pkg/dist/errors.js'),
    ],
    modulesRoot: '/',
    compatibilityDate: '2026-04-01',
    durableObjects: { SQLITE: { className: 'SqliteKit', useSQLite: true }, KEY_VALUE: { className: 'KeyValueKit' } },
  });
});

after(() => host?.dispose());

for (const [path, parts] of [['sqlite', 1], ['key-value', 3]]) {
  describe(`${path} storage`, () => {
    test('values are divided as that kind of storage needs it', async () => {
      const answer = await (await host.dispatchFetch(`http://kit/${path}`)).json();
      assert.deepEqual(answer.capabilities, capabilities);
      assert.equal(answer.parts, parts);
    });
    for (const { name } of casesFor(capabilities)) {
      test(name, async () => {
        const { passed, message } = await (await host.dispatchFetch(`http://kit/${path}?case=${encodeURIComponent(name)}`)).json();
        assert.ok(passed, message);
      });
    }
  });
}
