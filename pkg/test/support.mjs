import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Memory } from '../dist/node.js';

export const key = new Uint8Array(32).fill(7);
export const me = { user: 'ada' };

/** A test with a folder of its own. */
export function testIn(name, body) {
  test(name, async (context) => {
    const directory = await mkdtemp(join(tmpdir(), 'foremind-'));
    try {
      await body(directory, context);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
}

/** Opens without an embedder unless told otherwise. */
export function open(directory, options = {}) {
  return Memory.open({ name: 'ada', key, directory, model: false, ...options });
}

/** For `assert.rejects`: a ForemindError of this code whose message says something. */
export function failsWith(code, secret) {
  return (error) => {
    if (error.name !== 'ForemindError' || error.code !== code) throw new Error(`expected ${code}, got ${error.code ?? error.stack}`);
    if (!(error.message.length > 10)) throw new Error('the message says nothing');
    if (secret !== undefined && error.message.includes(secret)) throw new Error('the message carries user text');
    return true;
  };
}
