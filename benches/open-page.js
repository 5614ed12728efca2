// The page of `open.mjs`: all sides in a browser.
const scope = { user: 'ada' };
const entry = '/dist/browser.js';
const name = 'bench';

async function write(texts, profile) {
  const { Memory } = await import(entry);
  const memory = await Memory.open({ name, model: false });
  for (const text of profile) await memory.remember(scope, text, { tier: 'profile' });
  for (const text of texts) await memory.remember(scope, text);
  const records = [];
  for (let after; ;) {
    const page = await memory.list(scope, { limit: 1000, after });
    records.push(...page.records);
    after = page.next;
    if (after === undefined) break;
  }
  await memory.close();
  if (records.length !== texts.length + profile.length) throw new Error(`${records.length} records`);
  await new Promise((resolve, reject) => {
    const request = indexedDB.open('peer', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('values');
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const transaction = request.result.transaction('values', 'readwrite');
      transaction.objectStore('values').put(JSON.stringify(records), 'records');
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    };
  });
  const { PGlite } = await import('/pglite/index.js');
  const pglite = await PGlite.create('idb://bench');
  await pglite.exec('CREATE TABLE memories (id SERIAL PRIMARY KEY, text TEXT NOT NULL, told TIMESTAMPTZ NOT NULL DEFAULT now())');
  await pglite.exec("CREATE INDEX ON memories USING GIN (to_tsvector('english', text))");
  for (let at = 0; at < records.length; at += 500) {
    const some = records.slice(at, at + 500).map(({ text }) => text);
    await pglite.query(`INSERT INTO memories (text) VALUES ${some.map((_, n) => `($${n + 1})`).join(', ')}`, some);
  }
  await pglite.close();
}

async function timed(work, times, what) {
  const from = performance.now();
  const result = await work();
  times[what] = performance.now() - from;
  return result;
}

const expect = (count) => {
  if (!(count > 0)) throw new Error('nothing was found');
};

async function foremind(query) {
  const times = {};
  await timed(async () => {
    const { Memory } = await import(entry);
    const memory = await timed(() => Memory.open({ name, model: false }), times, 'open');
    const { context } = await timed(() => memory.recall(scope, query), times, 'recall');
    expect(context.length);
  }, times, 'total');
  return times;
}

async function profile() {
  const times = {};
  const { Memory } = await import(entry);
  await timed(() => Memory.profile({ name }, scope), times, 'first');
  const again = [];
  for (let at = 0; at < 40; at += 1) {
    const { profile } = await timed(() => Memory.profile({ name }, scope), times, 'again');
    expect(profile.length);
    again.push(times.again);
  }
  times.again = again.sort((a, b) => a - b)[again.length >> 1];
  return times;
}

async function json(query) {
  const start = performance.now();
  const stored = await new Promise((resolve, reject) => {
    const request = indexedDB.open('peer', 1);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const read = request.result.transaction('values').objectStore('values').get('records');
      read.onsuccess = () => resolve(read.result);
      read.onerror = () => reject(read.error);
    };
  });
  const words = query.toLowerCase().match(/\w{4,}/g);
  const found = JSON.parse(stored)
    .map((record) => ({ record, score: words.filter((word) => record.text.toLowerCase().includes(word)).length }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 10);
  const total = performance.now() - start;
  expect(found.length);
  return { total };
}

async function pglite(query) {
  const start = performance.now();
  const { PGlite } = await import('/pglite/index.js');
  const database = await PGlite.create('idb://bench');
  const words = query.toLowerCase().match(/\w{4,}/g).join(' | ');
  const { rows } = await database.query(
    "SELECT text FROM memories WHERE to_tsvector('english', text) @@ to_tsquery('english', $1)"
      + " ORDER BY ts_rank(to_tsvector('english', text), to_tsquery('english', $1)) DESC LIMIT 10",
    [words],
  );
  const total = performance.now() - start;
  expect(rows.length);
  await database.close();
  return { total };
}
