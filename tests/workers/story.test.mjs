// The same bytes as the native engine, in workerd, through the service's own tools: `cargo xtask test` puts the native prompts into
// target/tests.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { Miniflare } from 'miniflare';

import { START_MS, tell } from '../story/tell.mjs';
import { KEY, deployment } from './deployment.mjs';

const native = new URL('../../target/tests/story.prompts', import.meta.url);
const read = (path) => readFile(new URL(path, import.meta.url), 'utf8');

/** The template's Worker, but that each request says what time it is. */
const INDEX = `
import { state } from './clock.js';
import { DirectoryObject, MemoryObject, worker } from 'foremind/workers';
export { DirectoryObject, MemoryObject };
export default {
  fetch(request, env, ctx) {
    state.at = Number(request.headers.get('x-now-ms'));
    return worker.fetch(request, env, ctx);
  },
};
`;
const CLOCK = `
import { clock } from './tell.js';
const { Clock, state } = clock(Date);
globalThis.Date = Clock;
export { state };
`;

test('the story is rendered as the native engine renders it', { skip: !existsSync(native) && 'no native prompts: run `cargo xtask test`' }, async () => {
  const options = await deployment(INDEX);
  options.modules.push({ type: 'ESModule', path: 'clock.js', contents: CLOCK }, { type: 'ESModule', path: 'tell.js', contents: await read('../story/tell.mjs') });
  const host = new Miniflare(options);
  try {
    let nowMs = START_MS;
    const ask = async (path, authorization, body) => {
      const headers = { authorization, 'content-type': 'application/json', 'x-now-ms': `${nowMs}` };
      const response = await host.dispatchFetch(`http://service${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      assert.ok(response.ok, `${response.status}`);
      return response.json();
    };
    const { grant } = await ask('/v1/grants', KEY, { tenant: 'a', user: 'ada', verbs: ['remember', 'recall'] });
    const call = async (name, args) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      const { result } = await ask('/mcp', `Bearer ${grant}`, message);
      assert.equal(result.isError, false, JSON.stringify(result));
      return result.content[0].text;
    };
    const printed = await tell(await read('../../examples/story.txt'), {
      remember: (text) => call('remember', { text }),
      recall: (query) => call('recall', { query }),
      tick: () => (nowMs += 1000),
    });
    assert.equal(printed, await readFile(native, 'utf8'));
  } finally {
    await host.dispose();
  }
});
