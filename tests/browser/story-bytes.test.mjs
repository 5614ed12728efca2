// The same bytes as the native engine, in the browser's engine: `cargo xtask test` puts the native prompts into target/tests.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { browsers, openKit, withBrowser, withServer } from './harness.mjs';

const native = new URL('../../target/tests/story.prompts', import.meta.url);
const skip = !existsSync(native) && 'no native prompts: run `cargo xtask test`';

for (const kind of browsers) {
  test(`${kind.name}: the story is rendered as the native engine renders it`, { skip }, async () => {
    const story = await readFile(new URL('../../examples/story.txt', import.meta.url), 'utf8');
    await withServer(({ url }) =>
      withBrowser(kind, async ({ browser }) => {
        const page = await openKit(browser, url);
        const printed = await page.evaluate(async (told) => {
          const [{ Core }, { coreGlue }, { Session }, { HostKey }, { MemoryStore }, { clock, tellCore }, bindings] = await Promise.all(
            ['/package/core.js', '/package/glue.js', '/package/session.js', '/package/keys.js', '/package/stores/memory.js', '/story/tell.mjs',
              '/package/foremind_core.js'].map((path) => import(path)),
          );
          bindings.initSync({ module: await (await fetch('/package/foremind_core_bg.wasm')).arrayBuffer() });
          const core = new Core(coreGlue(bindings, await (await fetch('/package/foremind_data.txt')).text()));
          return tellCore({ core, Session, HostKey, MemoryStore, story: told }, clock(Date));
        }, story);
        assert.equal(printed, await readFile(native, 'utf8'));
      }),
    );
  });
}
