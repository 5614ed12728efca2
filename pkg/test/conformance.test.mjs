// The one suite for stores, on those that node can hold.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { casesFor } from '../../tests/stores/conformance.mjs';
import { DurableObjectStore } from '../dist/stores/durable-object.js';
import { MemoryStore } from '../dist/stores/memory.js';
import { NodeFsStore } from '../dist/stores/node-fs.js';
import { fakeDurableObject } from './fakes.mjs';

/** Ways to get stores; each case has its own bytes. */
const kinds = {
  memory: () => {
    const values = new Map();
    return { open: async () => new MemoryStore(values), forgets: true, end: async () => {} };
  },
  'node-fs': async () => {
    const folder = await mkdtemp(join(tmpdir(), 'foremind-stores-'));
    return { open: () => NodeFsStore.open(folder, 'ada'), end: () => rm(folder, { recursive: true, force: true }) };
  },
  // The platform's storage by its documentation; `tests/workers` runs the same cases inside of workerd.
  'durable-object, backed by SQLite': () => durableObject({ sql: { databaseSize: 4096 } }),
  'durable-object, backed by keys and values': () => durableObject({}),
};

function durableObject(options) {
  const storage = fakeDurableObject(options);
  return { open: async () => new DurableObjectStore(storage), end: async () => {} };
}

for (const [kind, begin] of Object.entries(kinds)) {
  describe(kind, async () => {
    const { open } = await begin();
    const { capabilities } = await open();
    for (const { name, run } of casesFor(capabilities)) {
      test(name, async () => {
        const { open: another, forgets = false, end } = await begin();
        try {
          await run({ empty: another, open: another, forgets });
        } finally {
          await end();
        }
      });
    }
  });
}
