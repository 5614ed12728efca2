// Several tabs on one memory, and tabs that die while they write.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browsers, killRenderers, openDemo, openKit, patience, say, texts, withBrowser, withProfile, withServer } from './harness.mjs';

/** Opens the memory `name` in the page and leaves it there as `memory`. The model is no part of these tests. */
const openMemory = (page, name) =>
  page.evaluate(async (wanted) => {
    globalThis.memory = await kit.Memory.open({ name: wanted, model: false });
    globalThis.me = { user: 'ada' };
  }, name);

const listed = (page) =>
  page.evaluate(async () => {
    const all = [];
    let after;
    do {
      const { records, next } = await memory.list(me, { limit: 1000, after });
      all.push(...records.map(({ text }) => text));
      after = next;
    } while (after !== undefined);
    return all.sort();
  });

for (const kind of browsers) {
  describe(kind.name, () => {
    test('two tabs write in turns and at once: nothing is lost, both see everything', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const tabs = [await openKit(browser, url), await openKit(browser, url)];
          // At once, on a memory that does not exist yet: one of them makes it, both use it.
          await Promise.all(tabs.map((tab) => openMemory(tab, 'shared')));
          const each = 25;
          const written = await Promise.all(
            tabs.map((tab, at) =>
              tab.evaluate(
                async (writer, count) => {
                  const told = [];
                  for (let number = 0; number < count; number += 1) {
                    const text = `Note ${number} of writer ${writer} is about subject ${writer * 1000 + number}.`;
                    await memory.remember(me, text);
                    told.push(text);
                  }
                  return told;
                },
                at,
                each,
              ),
            ),
          );
          const expected = written.flat().sort();
          assert.equal(new Set(expected).size, 2 * each);
          for (const tab of tabs) assert.deepEqual(await listed(tab), expected);

          // A third one that opens afterwards reads the same from the store alone.
          const third = await openKit(browser, url);
          await openMemory(third, 'shared');
          assert.deepEqual(await listed(third), expected);

          // What one tab forgets is gone in the other at once.
          const [first] = await tabs[0].evaluate(async () => (await memory.list(me, { limit: 1 })).records);
          await tabs[0].evaluate((id) => memory.forget(me, { id }), first.id);
          const code = await tabs[1].evaluate((id) => kit.outcome(() => memory.get(me, id)), first.id);
          assert.ok(code.code === 'unknown-id' || code.value?.status === 'erased', JSON.stringify(code));
          assert.deepEqual(await listed(tabs[1]), expected.filter((text) => text !== first.text));
        }),
      );
    });

    test('the demo in two tabs: what is said in one shows in the other by itself', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const [one, other] = [await openDemo(browser, url), await openDemo(browser, url)];
          await one.bringToFront();
          await say(one, "I'm allergic to tree nuts");
          await other.waitForFunction(() => document.querySelectorAll('#profile li').length === 1, patience);
          assert.match((await texts(other, '#profile li'))[0], /allergic to tree nuts/);
          await other.bringToFront();
          await other.click('#profile [data-action="forget"]');
          await one.waitForFunction(() => document.querySelectorAll('#profile li').length === 0, patience);
        }),
      );
    });

    test('the process of a tab is killed while it writes: every acknowledged write is there', async () => {
      await withServer(({ url }) =>
        withProfile(async (userDataDir) => {
          for (const round of [0, 1, 2]) {
            const acknowledged = await withBrowser(
              kind,
              async ({ browser }) => {
                const page = await openKit(browser, url);
                const acks = [];
                page.on('console', (message) => {
                  if (message.text().startsWith('ack ')) acks.push(message.text().slice(4));
                });
                await openMemory(page, 'killed');
                // Not awaited: it ends with the process.
                page
                  .evaluate(async (run) => {
                    for (let number = 0; ; number += 1) {
                      const text = `Round ${run} told note number ${number} about subject ${run * 10000 + number}.`;
                      await memory.remember(me, text);
                      console.log(`ack ${text}`);
                    }
                  }, round)
                  .catch(() => {});
                const enough = 12 + 9 * round;
                while (acks.length < enough) await new Promise((resolve) => setTimeout(resolve, 5));
                const killed = await killRenderers(kind, browser);
                assert.ok(killed > 0, 'a process was killed');
                return [...acks];
              },
              { userDataDir },
            );
            await withBrowser(
              kind,
              async ({ browser }) => {
                const page = await openKit(browser, url);
                await openMemory(page, 'killed');
                const there = await listed(page);
                for (const text of acknowledged) assert.ok(there.includes(text), `lost: ${text}`);
                // And it can be written to.
                await page.evaluate(() => memory.remember(me, `One more note, about subject ${Date.now()}.`));
                assert.equal((await listed(page)).length, there.length + 1);
              },
              { userDataDir },
            );
          }
        }),
      );
    });
  });
}
