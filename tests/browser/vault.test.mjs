// What is done with a whole memory in a browser: files out and in, another key, looking through what is stored, repairing it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browsers, openKit, withBrowser, withServer } from './harness.mjs';

const facts = ["I'm allergic to tree nuts.", 'The spare key hangs in the hallway.', 'My sister lives in Lisbon.', 'The kettle is repaired.'];
const passphrase = 'correct horse battery staple';

/** Puts what the tests below share into the page, and tells the facts to a memory with a device key. */
async function openTold(browser, url, name) {
  const page = await openKit(browser, url);
  await page.evaluate(
    async (wanted, told) => {
      globalThis.me = { user: 'ada' };
      globalThis.options = { name: wanted, model: false };
      globalThis.listed = async (one) => (await one.list(me, { limit: 100 })).records.map(({ id, text }) => `${id} ${text}`).sort();
      globalThis.memory = await kit.Memory.open(options);
      for (const text of told) await memory.remember(me, text);
    },
    name,
    facts,
  );
  return page;
}

const textOf = (line) => line.slice(line.indexOf(' ') + 1);

for (const kind of browsers) {
  describe(kind.name, () => {
    test('a file out, sealed or plain, and into another memory: the same records, once', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openTold(browser, url, 'from');
          const result = await page.evaluate(
            async (secret, told) => {
              const sealed = await memory.export({ passphrase: secret });
              const plain = await memory.export({ plain: true });
              const holds = (bytes, text) => new TextDecoder('latin1').decode(bytes).includes(text);
              const elsewhere = await kit.Memory.open({ name: 'to', model: false });
              const other = await kit.outcome(() => elsewhere.import(sealed, { passphrase: 'another' }));
              const empty = await listed(elsewhere);
              const taken = await elsewhere.import(new Blob([sealed]), { passphrase: secret });
              const again = await elsewhere.import(sealed, { passphrase: secret });
              const made = await kit.Memory.import({ name: 'made', model: false }, plain);
              const cut = await kit.outcome(() => elsewhere.import(plain.slice(0, plain.length >> 1)));
              const all = [await listed(memory), await listed(elsewhere), await listed(made)];
              for (const one of [memory, elsewhere, made]) await one.close();
              return {
                inSealed: told.filter((text) => holds(sealed, text)).length,
                inPlain: told.filter((text) => holds(plain, text)).length,
                other,
                empty,
                taken,
                again,
                cut,
                all,
              };
            },
            passphrase,
            facts,
          );
          assert.deepEqual([result.inSealed, result.inPlain], [0, facts.length]);
          assert.equal(result.other.code, 'wrong-key', JSON.stringify(result.other));
          assert.deepEqual(result.empty, [], 'nothing was taken from a file that did not open');
          assert.equal(result.taken.records, facts.length);
          assert.deepEqual([result.again.entries, result.again.known], [0, result.taken.entries], 'all of it is known');
          assert.equal(result.cut.typed, true, 'half a file is refused with a code');
          assert.notEqual(result.cut.code, 'internal');
          const [here, there, made] = result.all;
          assert.deepEqual(here.map(textOf).sort(), [...facts].sort());
          assert.deepEqual(there, here);
          assert.deepEqual(made, here);
        }),
      );
    });

    test('another key: the memory at hand and in another tab go on, afterwards only the new key opens', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openTold(browser, url, 'rekeyed');
          const other = await openKit(browser, url);
          await other.evaluate(async () => (globalThis.memory = await kit.Memory.open({ name: 'rekeyed', model: false })) && undefined);
          const here = await page.evaluate(async (secret) => {
            await memory.rekey({ passphrase: secret });
            await memory.remember(me, 'We moved to Porto.');
            return listed(memory);
          }, passphrase);
          assert.equal(here.length, facts.length + 1);
          const there = await other.evaluate(async () => {
            const me = { user: 'ada' };
            await memory.remember(me, 'The garden bench is painted.');
            const { length } = (await memory.list(me)).records;
            await memory.close();
            return length;
          });
          assert.equal(there, facts.length + 2);
          const reopened = await page.evaluate(async (secret) => {
            await memory.close();
            const refused = [];
            for (const key of ['device', { passphrase: 'another' }, new Uint8Array(32)]) {
              refused.push(await kit.outcome(() => kit.Memory.open({ ...options, key })));
            }
            const again = await kit.Memory.open({ ...options, key: { passphrase: secret } });
            const count = (await listed(again)).length;
            // And back: a key that cannot leave the browser profile.
            await again.rekey('device');
            await again.close();
            const device = await kit.Memory.open(options);
            const { prompt } = await device.profile(me);
            await device.close();
            return { refused, count, prompt, stale: await kit.outcome(() => kit.Memory.open({ ...options, key: { passphrase: secret } })) };
          }, passphrase);
          for (const one of [...reopened.refused, reopened.stale]) {
            assert.ok(one.code === 'wrong-key' || one.code === 'key-missing', JSON.stringify(one));
            assert.equal(one.typed, true);
          }
          assert.equal(reopened.count, facts.length + 2);
          assert.match(reopened.prompt, /tree nuts/);
        }),
      );
    });

    test('verify finds one altered bit, repair keeps all else; a lost head loses nothing', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openTold(browser, url, 'damaged');
          const told = await page.evaluate(async () => {
            const all = await listed(memory);
            const whole = [await memory.verify(), await kit.Memory.verify(options)];
            await memory.close();
            return { all, whole };
          });
          for (const one of told.whole) assert.deepEqual([one.whole, one.damaged, one.missing, one.lostEntries], [true, [], [], 0]);

          const headless = await page.evaluate(async () => {
            const altered = await kit.alter('foremind:damaged', (store) => store === 'heads');
            const refused = await kit.outcome(() => kit.Memory.open(options));
            const repaired = await kit.Memory.repair(options);
            const again = await kit.Memory.open(options);
            const all = await listed(again);
            const { whole } = await again.verify();
            await again.close();
            return { altered, refused, repaired, all, whole };
          });
          assert.equal(headless.altered, 1);
          assert.equal(headless.refused.code, 'corrupt', 'never opened empty');
          assert.deepEqual([headless.repaired.changed, headless.repaired.lost, headless.whole], [true, 0, true]);
          assert.deepEqual(headless.all, told.all);

          const bitten = await page.evaluate(async () => {
            // What a commit wrote is a value of its own, so that one entry is hit; the first commit after a repair makes the
            // stored profile anew.
            const memory = await kit.Memory.open(options);
            await memory.remember(me, 'The telescope is sold.');
            const intact = await listed(memory);
            const names = async () => {
              const found = [];
              await kit.alter('foremind:damaged', (_store, key) => void found.push(key));
              return found;
            };
            const before = await names();
            await memory.remember(me, 'The bookshelf is sold.');
            await memory.close();
            const fresh = (await names()).filter((key) => !before.includes(key) && /^[0-9a-f]{32}$/.test(key));
            const altered = await kit.alter('foremind:damaged', (_store, key) => fresh.includes(key));
            const found = await kit.Memory.verify(options);
            const refused = await kit.outcome(() => kit.Memory.open(options));
            const repaired = await kit.Memory.repair(options);
            const again = await kit.Memory.open(options);
            const all = await listed(again);
            const { whole } = await again.verify();
            await again.remember(me, 'It goes on.');
            const more = (await listed(again)).length;
            await again.close();
            return { intact, fresh, altered, found, refused, repaired, all, whole, more };
          });
          assert.equal(bitten.altered, 1, 'the entry of one commit');
          assert.equal(bitten.found.whole, false);
          assert.deepEqual(bitten.found.damaged.map(({ name }) => name), bitten.fresh);
          assert.equal(bitten.refused.code, 'corrupt');
          assert.deepEqual([bitten.repaired.changed, bitten.repaired.lost, bitten.whole], [true, 1, true]);
          assert.deepEqual(bitten.all, bitten.intact, 'all that was intact, and nothing else');
          assert.equal(bitten.more, facts.length + 2);
        }),
      );
    });
  });
}
