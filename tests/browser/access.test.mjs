// The page for everybody: axe-core, the keyboard alone, a narrow screen, reduced motion.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';

import { ask, browsers, openDemo, patience, say, text, texts, withBrowser, withServer } from './harness.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const desktop = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };

const sentences = [
  "I'm allergic to tree nuts",
  'My grandmother, who lives with us, takes warfarin.',
  'Our kitchen worktops are marble.',
  'We repainted the hallway in green last weekend.',
];

async function fill(page) {
  for (const sentence of sentences) await say(page, sentence);
  await ask(page, 'Any good macaron recipes?');
}

async function violationsOf(page) {
  // Evaluated by the debugger, so the policy of the page stays as it is.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }),
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Presses Tab until what has the focus matches, as a person without a mouse would. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${selector}`);
}

for (const kind of browsers) {
  describe(kind.name, () => {
    test('axe-core finds nothing and nothing scrolls sideways: empty, full, with an error, in both sizes', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          const check = async (when) => {
            for (const [size, viewport] of Object.entries({ desktop, phone })) {
              await page.setViewport(viewport);
              assert.equal(await sideways(page), 0, `${when}, ${size}`);
              assert.deepEqual(await violationsOf(page), [], `${when}, ${size}`);
            }
          };
          await check('empty');
          await page.setViewport(desktop);
          await fill(page);
          await check('full');
          await page.click('.intro summary');
          await page.$eval('#text', (box) => (box.value = '   '));
          await page.click('#say');
          await page.waitForSelector('#problem:not([hidden])', patience);
          await check('with an error');
        }),
      );
    });

    test('the dark scheme has the same contrast', async () => {
      await withServer(({ url }) =>
        withBrowser(
          kind,
          async ({ browser }) => {
            const page = await openDemo(browser, url);
            if (kind.name === 'Chromium') await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
            assert.equal(await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches), true);
            await fill(page);
            for (const viewport of [desktop, phone]) {
              await page.setViewport(viewport);
              assert.deepEqual(await violationsOf(page), []);
            }
          },
          { prefs: { 'ui.systemUsesDarkTheme': 1 } },
        ),
      );
    });

    test('the story by keyboard alone', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          const until = (condition, ...more) => page.waitForFunction(condition, patience, ...more);

          await page.keyboard.press('Tab');
          assert.equal(await page.evaluate(() => document.activeElement.className), 'skip', 'the way past the header comes first');
          await page.keyboard.press('Enter');
          await tabTo(page, '#text');
          await page.keyboard.type(sentences[0]);
          await page.keyboard.press('Enter');
          await until(() => document.querySelectorAll('#profile li').length === 1);
          assert.equal(await page.evaluate(() => document.activeElement.id), 'text', 'one goes on typing');
          assert.match(await text(page, '[role="status"]'), /Profile: allergy/);

          await page.keyboard.type('Any good macaron recipes?');
          await page.keyboard.down('Control');
          await page.keyboard.press('Enter');
          await page.keyboard.up('Control');
          await until(() => document.querySelectorAll('#talk .asked').length === 1);
          assert.match(await text(page, '#prompt'), /avoid: tree nuts/);

          await tabTo(page, '#budget');
          await page.keyboard.press('ArrowLeft');
          await until(() => document.querySelector('#budget-shown').textContent === '496');

          await tabTo(page, '#profile [data-action="move"]');
          const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
          assert.notEqual(outline, 'none', 'the focus is visible');
          await page.keyboard.press('Enter');
          await until(() => document.querySelectorAll('#store li').length === 1);
          assert.equal(await page.evaluate(() => document.activeElement.id), 'profile-title', 'the focus stays near');

          await tabTo(page, '#store [data-action="forget"]');
          await page.keyboard.press(' ');
          await until(() => document.querySelectorAll('.records li').length === 0);
          assert.match(await text(page, '[role="status"]'), /Forgotten/);

          await tabTo(page, '#forget-all');
          await page.keyboard.press('Enter');
          await page.waitForSelector('dialog[open]', patience);
          await page.keyboard.press('Escape');
          await page.waitForSelector('dialog:not([open])', patience);
          assert.equal(await page.evaluate(() => document.activeElement.id), 'forget-all', 'the dialog gives the focus back');
        }),
      );
    });

    test('everything that can be pressed has a name that says what it acts on', async () => {
      await withServer(({ url }) =>
        withBrowser(kind, async ({ browser }) => {
          const page = await openDemo(browser, url);
          await fill(page);
          const labels = await page.$$eval('.records button', (buttons) => buttons.map((button) => button.getAttribute('aria-label')));
          assert.ok(labels.length >= 8);
          assert.equal(new Set(labels).size, labels.length, 'no two buttons sound alike');
          for (const label of labels) assert.ok(sentences.some((sentence) => label.includes(sentence.replace(/\.$/, ''))), label);
          assert.ok((await texts(page, '#profile li')).length >= 2);
        }),
      );
    });

    test('reduced motion is honoured', async () => {
      await withServer(({ url }) =>
        withBrowser(
          kind,
          async ({ browser }) => {
            const page = await openDemo(browser, url);
            if (kind.name === 'Chromium') await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
            assert.equal(await page.evaluate(() => matchMedia('(prefers-reduced-motion: reduce)').matches), true);
            const moving = await page.evaluate(
              () =>
                [...document.querySelectorAll('*')].filter((element) => {
                  const { transitionDuration, transitionProperty, animationName } = getComputedStyle(element);
                  return (transitionProperty !== 'none' && transitionDuration !== '0s') || animationName !== 'none';
                }).length,
            );
            assert.equal(moving, 0);
          },
          { prefs: { 'ui.prefersReducedMotion': 1 } },
        ),
      );
    });
  });
}
