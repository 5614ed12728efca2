// The macaron story on the built page, in real browsers: told once, there after a reload, a restart and without
// a network, under a strict policy, with no request after the page has loaded.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { headers } from '../../www/server.mjs';
import { ask, browsers, loaded, openDemo, openKit, patience, quiet, say, text, texts, watchNetwork, withBrowser, withProfile, withServer } from './harness.mjs';

const allergy = "I'm allergic to tree nuts";
const smallTalk = ['We repainted the hallway in green last weekend.', 'I watched a long film about Lisbon yesterday.'];
const question = 'Any good macaron recipes?';

async function assertAllergyInPrompt(page) {
  const prompt = await text(page, '#prompt');
  assert.match(prompt, /^<memory>\n/);
  assert.match(prompt, /\nProfile:\n(- .*\n)*- .*avoid: tree nuts.*\n/);
  assert.doesNotMatch(prompt, /hallway|Lisbon/, 'what does not bear on macarons stays out');
}

for (const kind of browsers) {
  describe(kind.name, () => {
    test('the story: told, talked over, reloaded, asked', async () => {
      await withServer(({ url, violations }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          assert.match(await text(page, '#prompt'), /empty/);

          await say(page, allergy);
          const [told] = await texts(page, '#profile li');
          assert.match(told, /allergic to tree nuts/);
          assert.match(told, /changes answers/);
          assert.match(told, /allergy/);
          assert.match(told, /for good/);
          assert.match(told, /Because of .*“allergic/);
          for (const sentence of smallTalk) await say(page, sentence);
          assert.equal((await texts(page, '#profile li')).length, 1, 'small talk is no profile');
          assert.equal((await texts(page, '#store li')).length, smallTalk.length);

          await page.reload();
          await loaded(page);
          assert.equal((await texts(page, '#talk li')).length, 0, 'the conversation is gone');
          assert.match((await texts(page, '#profile li'))[0], /allergic to tree nuts/);

          await ask(page, question);
          await assertAllergyInPrompt(page);
          const [used, budget] = (await text(page, '#tokens')).match(/\d+/g).map(Number);
          assert.ok(used > 0 && used <= budget, `${used} of ${budget}`);

          // What the question does name comes from the store.
          await ask(page, 'What colour is the hallway?');
          assert.match(await text(page, '#prompt'), /Context:\n- .*hallway in green/);

          assert.deepEqual(page.errors, []);
          assert.deepEqual(violations, []);
        }),
      );
    });

    test('correct the tier, and forget: it leaves the prompt and the browser', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          await say(page, allergy);
          await page.click('#profile [data-action="move"]');
          await page.waitForFunction(() => document.querySelectorAll('#store li').length === 1, patience);
          assert.equal((await texts(page, '#profile li')).length, 0);
          assert.match(await text(page, '#store li'), /Because you decided so/);
          await page.click('#store [data-action="move"]');
          await page.waitForFunction(() => document.querySelectorAll('#profile li').length === 1, patience);

          await page.click('#profile [data-action="forget"]');
          await page.waitForFunction(() => document.querySelectorAll('.records li').length === 0, patience);
          await ask(page, question);
          assert.doesNotMatch(await text(page, '#prompt'), /nuts/);
          await page.reload();
          await loaded(page);
          assert.equal((await texts(page, '.records li')).length, 0);
        }),
      );
    });

    test('a smaller budget drops what does not fit and says so', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          await say(page, allergy);
          await ask(page, question);
          await page.$eval('#budget', (range) => {
            range.value = range.min;
            range.dispatchEvent(new Event('input', { bubbles: true }));
          });
          await page.waitForFunction(() => document.querySelector('#budget-shown').textContent === '32', patience);
          await page.waitForFunction(() => document.querySelectorAll('#dropped li').length === 1, patience);
          assert.match(await text(page, '#dropped li'), /Left out, .*allergic to tree nuts/);
          const [used, budget] = (await text(page, '#tokens')).match(/\d+/g).map(Number);
          assert.ok(used <= 32 && budget === 32);
        }),
      );
    });

    test('the browser is restarted: the memory is still there', async () => {
      await withServer((server) =>
        withProfile(async (userDataDir) => {
          await withBrowser(
            kind,
            async ({ browser }) => {
              const page = await openDemo(browser, server.url);
              await say(page, allergy);
            },
            { userDataDir },
          );
          await withBrowser(
            kind,
            async ({ browser }) => {
              const page = await openDemo(browser, server.url);
              assert.equal((await texts(page, '#profile li')).length, 1);
              await ask(page, question);
              await assertAllergyInPrompt(page);
            },
            { userDataDir },
          );
        }),
      );
    });

    test('the network goes away after load: all goes on, through a reload and a restart', async () => {
      await withServer((server) =>
        withProfile(async (userDataDir) => {
          await withBrowser(
            kind,
            async ({ browser }) => {
              const page = await openDemo(browser, server.url);
              await server.close(); // nobody listens any more: every request would fail
              await say(page, allergy);
              await ask(page, question);
              await assertAllergyInPrompt(page);
              await page.reload();
              await loaded(page);
              assert.match(await text(page, '#search-state'), /words and meaning/, 'the model is kept too');
              await ask(page, question);
              await assertAllergyInPrompt(page);
            },
            { userDataDir },
          );
          await withBrowser(
            kind,
            async ({ browser }) => {
              const page = await openDemo(browser, server.url);
              await ask(page, question);
              await assertAllergyInPrompt(page);
              assert.match(await text(page, '#search-state'), /words and meaning/);
            },
            { userDataDir },
          );
        }),
      );
    });

    test('no request after load, neither from the page nor from its workers', async () => {
      await withServer(({ url, requests }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          const network = await watchNetwork(page);
          await quiet(); // what the browser itself still does for the load, such as looking for the icon
          const before = requests.length;
          assert.ok(before > 0, 'the log of the server works');
          assert.ok(network.workers() > 0, 'the memory has a worker of its own');
          network.seen.length = 0;

          await say(page, allergy);
          for (const sentence of smallTalk) await say(page, sentence);
          await ask(page, question);
          await assertAllergyInPrompt(page);
          await page.click('#store [data-action="forget"]');
          await page.waitForFunction(() => document.querySelectorAll('#store li').length === 1, patience);
          await quiet();

          assert.deepEqual(requests.slice(before), [], 'what reached the server');
          assert.deepEqual(network.seen, [], 'what the browser saw');
          assert.equal(await text(page, '#requests'), '0', 'what the page itself counts');

          // The observers would have noticed: a request from the page, and one from a worker.
          await page.evaluate(() => fetch('/icon.svg?page').then((response) => response.text()));
          await page.evaluate(async () => {
            const worker = new Worker('/kit/probe.js');
            await new Promise((resolve) => {
              worker.onmessage = resolve;
              worker.postMessage({ elsewhere: '/kit/probe.js?worker' });
            });
            worker.terminate();
          });
          const reached = requests.slice(before).join(' ');
          assert.match(reached, /icon\.svg\?page/);
          assert.match(reached, /probe\.js\?worker/);
          assert.ok(network.seen.some((line) => line.includes('icon.svg?page')));
          await page.waitForFunction(() => Number(document.querySelector('#requests').textContent) > 0, patience);
        }),
      );
    });

    test('the policy is strict on the page and on worker scripts, and nothing violates it', async () => {
      await withServer(async (server) => {
        await withServer(({ url: elsewhere }) =>
          withBrowser(kind, async ({ browser }) => {
            const page = await browser.newPage();
            const scripts = new Map();
            page.on('response', (response) => scripts.set(new URL(response.url()).pathname, response.headers()));
            await page.goto(server.url, { timeout: patience.timeout });
            await loaded(page);
            await say(page, allergy);
            await ask(page, question);
            assert.deepEqual(server.violations, []);

            // Each file that the load asked for, fetched again from outside: the policy is on every one.
            const paths = new Set(server.requests.map((line) => line.split(' ')[1]));
            const workers = [...paths].filter((path) => /worker.*\.js$|sw\.js$/.test(path));
            assert.ok(workers.length >= 2, `worker scripts among ${[...paths].join(' ')}`);
            assert.ok([...paths].some((path) => path.endsWith('.wasm')));
            for (const path of paths) {
              const answer = await fetch(new URL(path, server.url));
              await answer.arrayBuffer();
              assert.ok(answer.headers.get('content-security-policy').startsWith(headers['Content-Security-Policy']), path);
              assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', path);
            }
            assert.ok(scripts.get('/')['content-security-policy'].startsWith("default-src 'none'"));

            // The policy bites in workers, and a violation there reaches the log that was empty above.
            const tried = await page.evaluate(async (address) => {
              const worker = new Worker('/kit/probe.js');
              const { data } = await new Promise((resolve) => {
                worker.onmessage = resolve;
                worker.postMessage({ elsewhere: address });
              });
              worker.terminate();
              return data;
            }, elsewhere);
            assert.deepEqual(tried, { evaluated: 'EvalError', fetched: 'TypeError' });
            for (let look = 0; server.violations.length === 0 && look < 50; look += 1) await quiet();
            assert.match(server.violations.join(' '), /script-src|connect-src/);
          }),
        );
      });
    });

    test('the page is an application of the package, not of its bundler: the package runs unbundled', async () => {
      await withServer(({ url, violations }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openKit(browser, url);
          const recalled = await page.evaluate(async (told, asked) => {
            const memory = await kit.Memory.open({ name: 'unbundled', model: kit.model });
            const { modelId } = await memory.ready;
            await memory.remember({ user: 'ada' }, told);
            const { prompt, lexicalOnly } = await memory.recall({ user: 'ada' }, asked);
            await memory.close();
            return { prompt, lexicalOnly, modelId };
          }, allergy, question);
          assert.match(recalled.prompt, /avoid: tree nuts/);
          assert.equal(recalled.lexicalOnly, false);
          assert.equal(typeof recalled.modelId, 'string');
          assert.deepEqual(violations, []);
        }),
      );
    });
  });
}
