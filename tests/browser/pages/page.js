// Gives tests the package as it is shipped, without a bundler.
import * as foremind from '/package/browser.js';
import { model } from '/model/index.js';
import { IndexedDbStore } from '/package/stores/indexeddb.js';
import { cases } from '/stores/conformance.mjs';

/** Runs `work`; an error comes back as plain data, because errors lose their fields on the way to the test. */
async function outcome(work) {
  try {
    return { value: await work() };
  } catch (error) {
    return { code: error.code, fault: error.fault, message: error.message, typed: error instanceof foremind.ForemindError };
  }
}

/** The databases of memories on this origin, by the browser's own account. */
async function databases() {
  return (await indexedDB.databases()).map(({ name }) => name).filter((name) => name.startsWith('foremind:'));
}

const asked = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) {
      const bytes = bytesOf(part);
      if (bytes) return bytes;
    }
  }
  return undefined;
}

/** Flips one bit in the middle of every stored value that `choose(store, key, bytes)` names; returns how many. What lies beside a
 * head is of the store `tail`. */
async function alter(database, choose) {
  const db = await asked(indexedDB.open(database));
  let altered = 0;
  const stores = [...db.objectStoreNames];
  const transaction = db.transaction(stores, 'readwrite');
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  for (const name of stores) {
    const store = transaction.objectStore(name);
    const keys = await asked(store.getAllKeys());
    for (const key of keys) {
      const value = await asked(store.get(key));
      const within = [[name, key, bytesOf(value)], ...Object.entries(value.tail ?? {}).map(([beside, bytes]) => ['tail', beside, bytes])];
      const chosen = within.filter(([where, called, bytes]) => bytes?.length > 0 && choose(where, called, bytes));
      for (const [, , bytes] of chosen) bytes[bytes.length >> 1] ^= 1;
      if (chosen.length > 0) await asked(store.keyPath === null ? store.put(value, key) : store.put(value));
      altered += chosen.length;
    }
  }
  await done;
  db.close();
  return altered;
}

/** Deletes a database as another page of the origin could; resolves to how it went. */
function remove(database) {
  return new Promise((resolve) => {
    const request = indexedDB.deleteDatabase(database);
    request.onsuccess = () => resolve('deleted');
    request.onerror = () => resolve('failed');
    request.onblocked = () => resolve('blocked');
  });
}

/** The store itself, without a memory on it. */
const openStore = (name) => IndexedDbStore.open(name);

/** Runs one case of the suite for stores on a database of its own; 'passed', or what went wrong. */
async function runCase(wanted) {
  const name = `case-${crypto.randomUUID()}`;
  const opened = [];
  const open = async () => {
    opened.push(await openStore(name));
    return opened.at(-1);
  };
  try {
    await cases.find((one) => one.name === wanted).run({ empty: open, open, forgets: false });
    return 'passed';
  } catch (error) {
    return `${error.message}\n${error.stack}`;
  } finally {
    for (const store of opened) await store.close();
    await remove(`foremind:${name}`);
  }
}

/** A word of 20 letters that stands nowhere else, made of a seed; the test makes the same. */
async function secret(seed) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(seed)));
  return Array.from(digest.subarray(0, 20), (byte) => String.fromCharCode(97 + (byte % 26))).join('');
}

/** Stores a word as a page without foremind would. */
async function leavePlain(word) {
  const request = indexedDB.open('plain', 1);
  request.onupgradeneeded = () => request.result.createObjectStore('words');
  const database = await asked(request);
  await asked(database.transaction('words', 'readwrite', { durability: 'strict' }).objectStore('words').put(word, 'word'));
  database.close();
}

globalThis.kit = { ...foremind, model, outcome, databases, alter, remove, asked, openStore, runCase, secret, leavePlain };
