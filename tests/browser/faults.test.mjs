// What goes wrong under a memory in a browser: each is an error with a code, and nothing told is lost.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { browsers, modelFile, openDemo, openKit, patience, say, text, texts, withBrowser, withProfile, withServer } from './harness.mjs';

const fact = "I'm allergic to tree nuts";

async function assertError(outcome, code, fault) {
  assert.equal(outcome.code, code, JSON.stringify(outcome));
  assert.equal(outcome.fault, fault);
  assert.equal(outcome.typed, true, 'a ForemindError');
  assert.ok(outcome.message.length > 20, 'a sentence');
  assert.doesNotMatch(outcome.message, /nuts/, 'no text that was told');
}

/** Leaves an open memory with one fact in the page as `memory`. */
const openWithFact = (page, name, model = false) =>
  page.evaluate(
    async (wanted, source, told) => {
      globalThis.me = { user: 'ada' };
      globalThis.memory = await kit.Memory.open({ name: wanted, model: source });
      await memory.remember(me, told);
    },
    name,
    model,
    fact,
  );

for (const kind of browsers) {
  describe(kind.name, () => {
    test('storage denied: the package says so, and the demo goes on in memory', async () => {
      await withServer(({ url }) =>
        withProfile(async (userDataDir) => {
          // Cookies and site data blocked for every site, as a person can choose it in the settings.
          if (kind.name === 'Chromium') {
            await mkdir(join(userDataDir, 'Default'), { recursive: true });
            await writeFile(
              join(userDataDir, 'Default/Preferences'),
              JSON.stringify({ profile: { default_content_setting_values: { cookies: 2 } } }),
            );
          }
          await withBrowser(
            kind,
            async ({ browser }) => {
              const page = await openKit(browser, url);
              await assertError(
                await page.evaluate(() => kit.outcome(() => kit.Memory.open({ name: 'denied', model: false }))),
                'storage-denied',
                'host',
              );
              const kept = await page.evaluate(async (told) => {
                const memory = await kit.Memory.open({ name: 'denied', model: false, storage: 'memory' });
                await memory.remember({ user: 'ada' }, told);
                const { prompt } = await memory.recall({ user: 'ada' }, 'Any good macaron recipes?');
                return { prompt, durability: memory.durability };
              }, fact);
              assert.match(kept.prompt, /tree nuts/);
              assert.equal(kept.durability, 'volatile');

              const demo = await openDemo(browser, url);
              assert.equal(await text(demo, '#problem code'), 'storage-denied');
              assert.match(await text(demo, '#durability'), /until this tab closes/);
              await say(demo, fact);
              assert.equal((await texts(demo, '#profile li')).length, 1);
            },
            { userDataDir, prefs: { 'network.cookie.cookieBehavior': 2 } },
          );
        }),
      );
    });

    test('no room left: the write is refused with its code, what was there stays, and room helps', async () => {
      await withServer(({ url }) =>
        withBrowser(
          kind,
          async ({ browser }) => {
            const page = await openKit(browser, url);
            // Before the first write: Chromium asks for the room that is left at most every 30 s.
            const origin = new URL(url).origin;
            const session = kind.name === 'Chromium' ? await page.createCDPSession() : undefined;
            await session?.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 300_000 });
            await openWithFact(page, 'full');
            const fill = () =>
              page.evaluate(() =>
                kit.outcome(async () => {
                  // Up to 30 MB in turns of 150 kB that do not compress; each is a commit of its own.
                  const words = () => Array.from({ length: 100 }, () => crypto.randomUUID()).join(' ');
                  for (let number = 0; number < 200; number += 1) {
                    const told = Array.from({ length: 40 }, (_, at) => `Note ${number}-${at} is on ${words()}.`).join('\n');
                    await memory.remember(me, told);
                  }
                }),
              );
            await assertError(await fill(), 'quota-exceeded', 'host');

            const there = await page.evaluate(() => memory.recall(me, 'Any good macaron recipes?'));
            assert.match(there.prompt, /tree nuts/);
            if (session) {
              await session.send('Storage.overrideQuotaForOrigin', { origin });
              const again = await page.evaluate(() => kit.outcome(() => memory.remember(me, 'We moved to Lisbon.')));
              assert.equal(again.value?.records.length, 1, JSON.stringify(again));
            }
            // Opened anew, the memory is whole.
            const reopened = await page.evaluate(async () => {
              const other = await kit.Memory.open({ name: 'full', model: false });
              return (await other.recall(me, 'Any good macaron recipes?')).prompt;
            });
            assert.match(reopened, /tree nuts/);
          },
          { prefs: { 'dom.quotaManager.temporaryStorage.fixedLimit': 4096 } },
        ),
      );
    });

    test('the database is deleted under an open memory: lost, said at once, and no empty memory in its place', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          await openWithFact(page, 'deleted');
          await page.evaluate(() => {
            globalThis.lost = new Promise((resolve) => memory.on('lost', resolve));
          });
          const other = await openKit(browser, url);
          const [database] = await other.evaluate(() => kit.databases());
          assert.equal(await other.evaluate((name) => kit.remove(name), database), 'deleted', 'the memory gives way');
          assert.match((await page.evaluate(() => lost)).message, /deleted/);
          for (const call of ['recall', 'remember']) {
            await assertError(await page.evaluate((verb) => kit.outcome(() => memory[verb](me, 'Anything at all?')), call), 'storage-lost', 'host');
          }
          assert.deepEqual(await other.evaluate(() => kit.databases()), [], 'nothing was made in its place');
          // Opening it again is a decision of the page, and begins a new memory.
          const fresh = await page.evaluate(async () => {
            const again = await kit.Memory.open({ name: 'deleted', model: false });
            return (await again.stats(me)).records;
          });
          assert.equal(fresh, 0);
        }),
      );
    });

    test('the demo says when its memory was deleted from another tab', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const demo = await openDemo(browser, url);
          await say(demo, fact);
          const other = await openKit(browser, url);
          for (const name of await other.evaluate(() => kit.databases())) await other.evaluate((database) => kit.remove(database), name);
          await demo.waitForSelector('#problem:not([hidden]) code', patience);
          assert.equal(await text(demo, '#problem code'), 'storage-lost');
        }),
      );
    });

    test('altered bytes: refused as corrupt, and left as they are', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          await openWithFact(page, 'altered');
          const [database] = (await page.evaluate(async () => {
            await memory.close();
            return kit.databases();
          })).filter((name) => name.includes('altered'));
          // Every stored value in turn, one bit: not one may pass, and not one may make an empty memory.
          const keys = await page.evaluate(async (name) => {
            const seen = [];
            await kit.alter(name, (store, key) => {
              seen.push(key);
              return false;
            });
            return seen;
          }, database);
          assert.ok(keys.length >= 3, `head, key and an entry: ${keys}`);
          let refused = 0;
          for (const key of keys) {
            const flip = () => page.evaluate((name, wanted) => kit.alter(name, (_store, candidate) => candidate === wanted), database, key);
            assert.equal(await flip(), 1, key);
            const outcome = await page.evaluate(() =>
              kit.outcome(async () => {
                const again = await kit.Memory.open({ name: 'altered', model: false });
                try {
                  return { texts: (await again.list(me)).records.map((record) => record.text), whole: (await again.verify()).whole };
                } finally {
                  await again.close();
                }
              }),
            );
            // An altered wrapped key cannot be told from another key's. What is kept twice, or can be made again, is not missed in
            // reading: then everything is there, and `verify` says what is not as it should be.
            if (outcome.value) assert.deepEqual(outcome.value, { texts: [fact], whole: false }, key);
            else assert.ok(outcome.code === 'corrupt' || (key === 'key' && outcome.code === 'wrong-key'), `${key}: ${JSON.stringify(outcome)}`);
            refused += outcome.value ? 0 : 1;
            assert.equal(await flip(), 1, 'nothing was removed');
            const whole = await page.evaluate(async () => {
              const again = await kit.Memory.open({ name: 'altered', model: false });
              const { records } = await again.list(me);
              await again.close();
              return records.map((record) => record.text);
            });
            assert.deepEqual(whole, [fact], `whole again once ${key} is put right`);
          }
          assert.ok(refused >= 3, `${refused} of ${keys.length} refused`);
        }),
      );
    });

    test('a model with another hash is refused, an absent one is missed; words go on working', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          const tryModel = (name, model) =>
            page.evaluate(
              async (wanted, source, told) => {
                const me = { user: 'ada' };
                const memory = await kit.Memory.open({ name: wanted, model: source });
                const ready = await kit.outcome(() => memory.ready);
                await memory.remember(me, told);
                const { prompt, lexicalOnly } = await memory.recall(me, 'Any good macaron recipes?');
                await memory.close();
                return { ready, prompt, lexicalOnly };
              },
              name,
              model,
              fact,
            );
          const there = new URL(`model/${modelFile}`, url).href;
          for (const [name, model, code] of [
            ['pinned', { url: there, sha256: '0'.repeat(64) }, 'model-invalid'],
            ['no-model-at-all', new URL('package/browser.js', url).href, 'model-invalid'],
            ['absent', new URL('package/absent.fmpack', url).href, 'model-missing'],
          ]) {
            const { ready, prompt, lexicalOnly } = await tryModel(name, model);
            await assertError(ready, code, 'host');
            assert.match(prompt, /tree nuts/, name);
            assert.equal(lexicalOnly, true, name);
          }
          const none = await tryModel('none', false);
          assert.equal(none.ready.value.modelId, null);
          assert.equal(none.lexicalOnly, true);
          assert.match(none.prompt, /tree nuts/);
        }),
      );
    });

    test('what cannot be used is refused with its code, and the demo shows it as a sentence', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const demo = await openDemo(browser, url);
          for (const [words, code] of [
            ['   ', 'text-empty'],
            [`I'm allergic to ${'tree nuts and '.repeat(80_000)}`, 'text-too-large'],
          ]) {
            await demo.$eval('#text', (box, value) => (box.value = value), words);
            await demo.click('#say');
            await demo.waitForFunction((wanted) => document.querySelector('#problem:not([hidden]) code')?.textContent === wanted, patience, code);
            assert.match(await text(demo, '#problem'), /\.\s*Dismiss$/, 'a sentence');
          }
          assert.equal((await texts(demo, '.records li')).length, 0, 'nothing of it was stored');
          await say(demo, fact);
          assert.equal(await demo.$eval('#problem', (problem) => problem.hidden), true, 'the error goes with the next success');
        }),
      );
    });
  });
}
