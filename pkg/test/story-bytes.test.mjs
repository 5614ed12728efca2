// The same bytes as the native engine, in node: `cargo xtask test` puts its prompts into target/tests.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { clock, tellCore } from '../../tests/story/tell.mjs';
import { Core } from '../dist/core.js';
import { coreGlue } from '../dist/glue.js';
import { HostKey } from '../dist/keys.js';
import { Session } from '../dist/session.js';
import { MemoryStore } from '../dist/stores/memory.js';

const native = new URL('../../target/tests/story.prompts', import.meta.url);
const read = (path) => readFile(new URL(path, import.meta.url), 'utf8');

test('the story is rendered as the native engine renders it', { skip: !existsSync(native) && 'no native prompts: run `cargo xtask test`' }, async () => {
  const bindings = await import('../dist/foremind_core.js');
  bindings.initSync({ module: await readFile(new URL('../dist/foremind_core_bg.wasm', import.meta.url)) });
  const core = new Core(coreGlue(bindings, await read('../dist/foremind_data.txt')));
  const parts = { core, Session, HostKey, MemoryStore, story: await read('../../examples/story.txt') };
  const printed = await tellCore(parts, clock(Date));
  assert.match(printed, /tree nuts/);
  assert.equal(printed, await readFile(native, 'utf8'));
});
