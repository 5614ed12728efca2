// The page of `open.mjs`: both sides in a browser.
const scope = { user: 'ada' };
const entry = '/dist/browser.js';

async function write(texts) {
  const { Memory } = await import(entry);
  const memory = await Memory.open({ name: 'bench', model: false });
  for (const text of texts) await memory.remember(scope, text);
  const { records } = await memory.list(scope, { limit: 1000 });
  await memory.close();
  await new Promise((resolve, reject) => {
    const request = indexedDB.open('peer', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('values');
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const transaction = request.result.transaction('values', 'readwrite');
      transaction.objectStore('values').put(JSON.stringify(records), 'records');
      transaction.oncomplete = () => resolve();
      transaction.onerror = () => reject(transaction.error);
    };
  });
}

async function recall(query) {
  const start = performance.now();
  const { Memory } = await import(entry);
  const memory = await Memory.open({ name: 'bench', model: false });
  const { context } = await memory.recall(scope, query);
  const ms = performance.now() - start;
  if (context.length === 0) throw new Error('the query found nothing');
  return ms;
}

async function scan(query) {
  const start = performance.now();
  const json = await new Promise((resolve, reject) => {
    const request = indexedDB.open('peer', 1);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const read = request.result.transaction('values').objectStore('values').get('records');
      read.onsuccess = () => resolve(read.result);
      read.onerror = () => reject(read.error);
    };
  });
  const words = query.toLowerCase().match(/\w{4,}/g);
  const found = JSON.parse(json)
    .map((record) => ({ record, score: words.filter((word) => record.text.toLowerCase().includes(word)).length }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 10);
  const ms = performance.now() - start;
  if (found.length === 0) throw new Error('the query found nothing');
  return ms;
}
