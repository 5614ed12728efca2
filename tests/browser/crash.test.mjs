// What is killed or stopped while it writes: whole browsers, single tabs. Nothing acknowledged is lost, the others go on, and
// nothing that was told can be read in the profile folder.

import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { browsers, killBrowser, openKit, processOf, withBrowser, withProfile, withServer } from './harness.mjs';

const long = process.env.FOREMIND_LONG === '1';
const rounds = long ? 50 : 3;
/** More than of the kills: a system that stops a tab in mid-send is a matter of chance. */
const stops = long ? 50 : 5;
const interleaved = long ? 2000 : 200;
/** Longer than any write takes here. A tab that the system stops in the fraction of a millisecond in which it sends the requests
 * of a transaction holds the others up, in Chromium for 60 s, in Firefox until it goes on. */
const heldMs = 25_000;

/** Opens the memory in the page and gives it a writer whose acknowledgements come out through the console. */
async function openWriter(browser, url, name, writer) {
  const page = await openKit(browser, url);
  const acks = [];
  page.on('console', (message) => {
    if (message.text().startsWith('ack ')) acks.push(message.text().slice(4));
  });
  await page.evaluate(
    async (wanted, who) => {
      globalThis.me = { user: 'ada' };
      globalThis.memory = await kit.Memory.open({ name: wanted, model: false });
      /** Tells `count` notes; every tenth is one that changes answers, which waits for the disk. */
      globalThis.tell = async (round, count) => {
        for (let number = 0; number < count; number += 1) {
          const word = await kit.secret(`${who}-${round}-${number}`);
          const text = number % 10 === 9 ? `I am allergic to ${word}.` : `Note ${word} is on the shelf.`;
          await memory.remember(me, text);
          console.log(`ack ${text}`);
        }
      };
    },
    name,
    writer,
  );
  return Object.assign(page, { acks });
}

const listed = (page) =>
  page.evaluate(async () => {
    const all = [];
    for (let after; ; ) {
      const { records, next } = await memory.list(me, { limit: 1000, after });
      all.push(...records.map(({ text }) => text));
      after = next;
      if (after === undefined) return all.sort();
    }
  });

async function until(condition, what) {
  for (let waited = 0; !condition(); waited += 5) {
    assert.ok(waited < 120_000, what);
    await sleep(5);
  }
}

function assertAllOnce(there, acknowledged) {
  const counts = new Map();
  for (const text of there) counts.set(text, (counts.get(text) ?? 0) + 1);
  for (const text of acknowledged) assert.equal(counts.get(text), 1, `acknowledged, so there, once: ${text}`);
}

/** How many of the words stand in the files of a folder, as UTF-8 or as UTF-16. */
async function wordsInFiles(folder, words) {
  const found = new Set();
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  for (const file of files) {
    const bytes = await readFile(join(file.parentPath ?? file.path, file.name));
    for (const word of words) {
      if (bytes.includes(word) || bytes.includes(Buffer.from(word, 'utf16le'))) found.add(word);
    }
  }
  return found;
}

for (const kind of browsers) {
  describe(kind.name, () => {
    test(`the browser is killed while it writes, ${rounds} times: every acknowledged write is there`, async () => {
      await withServer(({ url }) =>
        withProfile(async (userDataDir) => {
          const acknowledged = [];
          for (let round = 0; round <= rounds; round += 1) {
            await withBrowser(
              kind,
              async ({ browser }) => {
                const page = await openWriter(browser, url, 'killed', 'w');
                assertAllOnce(await listed(page), acknowledged);
                if (round === rounds) return;
                // Not awaited: it ends with the browser.
                page.evaluate((run) => tell(run, 10_000), round).catch(() => {});
                await until(() => page.acks.length >= 3 + ((round * 7) % 13), 'it writes');
                await killBrowser(browser);
                acknowledged.push(...page.acks);
              },
              { userDataDir },
            );
          }
          assert.ok(acknowledged.length > rounds * 3);
        }),
      );
    });

    test(`a tab is stopped while it writes, ${stops} times: the other goes on, and both see everything`, async (context) => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const stopped = await openWriter(browser, url, 'stopped', 's');
          const other = await openWriter(browser, url, 'stopped', 'o');
          const id = await processOf(kind, browser, stopped, [other]);
          let longestMs = 0;
          let held = 0;
          for (let round = 0; round < stops; round += 1) {
            const seen = stopped.acks.length;
            const writing = stopped.evaluate((run) => tell(run, 40), round);
            writing.catch(() => {});
            await until(() => stopped.acks.length >= seen + 2 + (round % 5), 'it writes');
            await sleep((round * 3) % 11);
            process.kill(id, 'SIGSTOP');
            let going;
            try {
              const start = performance.now();
              going = other.evaluate((run) => tell(run, 5), round).then(() => 'goes on');
              going.catch(() => {});
              if ((await Promise.race([going, sleep(heldMs, 'held up')])) === 'goes on') longestMs = Math.max(longestMs, performance.now() - start);
              else held += 1;
            } finally {
              process.kill(id, 'SIGCONT');
            }
            await writing;
            // Nobody is held up for good.
            await going;
          }
          context.diagnostic(`five writes beside a stopped tab took at most ${Math.round(longestMs)} ms; held up in ${held} of ${stops} rounds`);
          // A matter of chance, which a busy machine makes worse: 1 of 160 rounds in Chromium and 2 of 80 in Firefox under a load
          // of 17 on two cores. What a few rounds can tell is whether it is the rule.
          const bearable = long ? stops / (kind.name === 'Chromium' ? 25 : 10) : stops - 1;
          assert.ok(held <= bearable, `held up in ${held} rounds`);
          const there = await listed(other);
          assertAllOnce(there, [...stopped.acks, ...other.acks]);
          assert.equal(there.length, stops * 45);
          assert.deepEqual(await listed(stopped), there);
        }),
      );
    });

    test(`four tabs, ${interleaved} writes, one tab killed: all there, once, the same everywhere, and unreadable in the files`, async () => {
      await withServer(({ url }) =>
        withProfile(async (userDataDir) => {
          const words = await withBrowser(
            kind,
            async ({ browser }) => {
              const tabs = [];
              for (const writer of ['a', 'b', 'c', 'd']) tabs.push(await openWriter(browser, url, 'four', writer));
              const [victim, ...survivors] = tabs;
              const id = await processOf(kind, browser, victim, survivors);
              victim.evaluate((count) => tell(0, count), interleaved / 4).catch(() => {});
              const writing = survivors.map((tab) => tab.evaluate((count) => tell(0, count), interleaved / 4));
              writing.forEach((one) => one.catch(() => {}));
              await until(() => victim.acks.length >= interleaved / 8, 'it writes');
              process.kill(id, 'SIGKILL');
              await Promise.all(writing);
              const acknowledged = tabs.flatMap(({ acks }) => acks);
              const there = await listed(survivors[0]);
              assertAllOnce(there, acknowledged);
              // The one write that was under way when its tab ended may be there or not.
              assert.ok(there.length === acknowledged.length || there.length === acknowledged.length + 1, `${there.length} of ${acknowledged.length}`);
              assert.equal(new Set(there).size, there.length);
              for (const tab of survivors.slice(1)) assert.deepEqual(await listed(tab), there);
              const fresh = await openWriter(browser, url, 'four', 'e');
              assert.deepEqual(await listed(fresh), there, 'from the store alone');
              // So that the search below is known to find what is there.
              await fresh.evaluate(() => kit.secret('plain').then(kit.leavePlain));
              return there.map((text) => /[a-z]{20}/.exec(text)[0]);
            },
            { userDataDir },
          );
          assert.ok(words.length >= 150);
          const plain = await wordsInFiles(userDataDir, [await secret('plain')]);
          assert.equal(plain.size, 1, 'a word that was stored plainly is found');
          assert.deepEqual([...(await wordsInFiles(userDataDir, words))], []);
        }),
      );
    });
  });
}

/** As `kit.secret`. */
async function secret(seed) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(seed)));
  return Array.from(digest.subarray(0, 20), (byte) => String.fromCharCode(97 + (byte % 26))).join('');
}
