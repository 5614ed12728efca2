// The page of `write.mjs`: one write each, the ways that a page has.
const scope = { user: 'ada' };

const finished = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });

async function database(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore('values');
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Sides with `size` records in each. `pglite`: whether it takes part. */
async function prepare(size, texts, pglite) {
  const { Memory } = await import('/dist/browser.js');
  const stored = await Memory.open({ name: `bench-${size}`, model: false });
  const volatile = await Memory.open({ name: `bench-${size}`, model: false, storage: 'memory' });
  for (const text of texts) await Promise.all([stored.remember(scope, text), volatile.remember(scope, text)]);
  const listed = [];
  for (let after; ;) {
    const { records, next } = await stored.list(scope, { limit: 1000, after });
    listed.push(...records);
    after = next;
    if (after === undefined) break;
  }
  if (listed.length !== size) throw new Error(`${listed.length} records instead of ${size}`);
  const peer = await database(`peer-${size}`);
  const bare = await database(`bare-${size}`);
  globalThis.sides = { stored, volatile, peer, bare, listed };
  if (pglite) {
    const { PGlite } = await import('/pglite/index.js');
    sides.pglite = await PGlite.create(`idb://bench-${size}`);
    await sides.pglite.exec('CREATE TABLE memories (id SERIAL PRIMARY KEY, text TEXT NOT NULL, told TIMESTAMPTZ NOT NULL DEFAULT now())');
    for (let at = 0; at < texts.length; at += 500) {
      const some = texts.slice(at, at + 500);
      await sides.pglite.query(`INSERT INTO memories (text) VALUES ${some.map((_, n) => `($${n + 1})`).join(', ')}`, some);
    }
  }
}

const clock = async (work) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

/** What one commit of a record puts into the store, in the order of bytes: an entry and the head. */
const batchBytes = 1024;
/** Between two sides, so that what a store goes on doing after it has answered is not counted to whoever comes next. */
const pauseMs = 20;

/** One put into a store of its own. `commit`: as a page that knows of it ends a transaction, instead of leaving that to the browser. */
function put(durability, commit) {
  const bytes = crypto.getRandomValues(new Uint8Array(batchBytes));
  return () => {
    const transaction = sides.bare.transaction('values', 'readwrite', { durability });
    transaction.objectStore('values').put(bytes, crypto.randomUUID());
    if (commit) transaction.commit();
    return finished(transaction);
  };
}

/** One write on every side, in an order by chance, in milliseconds. `strict`: what must have reached the disk. */
async function round(text, strict) {
  const options = strict ? { tier: 'profile' } : {};
  const durability = strict ? 'strict' : 'relaxed';
  const work = {
    stored: () => sides.stored.remember(scope, text, options),
    volatile: () => sides.volatile.remember(scope, text, options),
    bare: put(durability, false),
    bare_commit: put(durability, true),
    json: () => {
      sides.listed.push({ ...sides.listed[0], text });
      const transaction = sides.peer.transaction('values', 'readwrite', { durability });
      transaction.objectStore('values').put(JSON.stringify(sides.listed), 'records');
      return finished(transaction);
    },
    ...(sides.pglite ? { pglite: () => sides.pglite.query('INSERT INTO memories (text) VALUES ($1)', [text]) } : {}),
  };
  const times = {};
  for (const side of shuffled(Object.keys(work))) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    times[side] = await clock(work[side]);
  }
  return times;
}

function shuffled(all) {
  return all
    .map((one) => [Math.random(), one])
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one);
}

async function end() {
  await sides.stored.close();
  await sides.volatile.close();
  await sides.pglite?.close();
  sides.peer.close();
  sides.bare.close();
}
