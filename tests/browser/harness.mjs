// Starts browsers and the page's own server for the tests, and watches what goes over the network.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import puppeteer from 'puppeteer-core';

import { serve } from '../../www/server.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const firstThatExists = (paths) => paths.find((path) => path && existsSync(path));

/** Generous, because these machines are slow and shared; no test asserts a time. Pages are looked at by a timer, since
 * a tab in the background draws no frames. */
export const patience = { timeout: 120_000, polling: 200 };

export const builtPage = process.env.FOREMIND_PAGE ?? join(root, 'www/dist');
export const builtPackage = join(root, 'pkg/dist');
export const builtModel = join(root, 'pkg-model');
export const modelFile = 'minilm-l6-v2.fmpack';

const chromium = {
  name: 'Chromium',
  path: firstThatExists([process.env.FOREMIND_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']),
  launch: (path, userDataDir) => ({
    browser: 'chrome',
    executablePath: path,
    userDataDir,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  }),
};

const firefox = {
  name: 'Firefox',
  path: firstThatExists([process.env.FOREMIND_FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox']),
  launch: (path, userDataDir, prefs) => ({
    browser: 'firefox',
    protocol: 'webDriverBiDi',
    executablePath: path,
    userDataDir,
    headless: true,
    extraPrefsFirefox: prefs,
  }),
};

const wanted = process.env.FOREMIND_BROWSERS?.toLowerCase().split(',');

/** The browsers to test in; a browser that is not installed fails loudly, unless it was not asked for. */
export const browsers = [chromium, firefox].filter(({ name }) => wanted === undefined || wanted.includes(name.toLowerCase()));

/**
 * Runs `use({ browser, userDataDir })` in a fresh profile, or in the one given, and closes everything after.
 * `prefs` are Firefox's only.
 */
export async function withBrowser(kind, use, { userDataDir, prefs = {} } = {}) {
  assert.ok(kind.path, `${kind.name} is not installed; set FOREMIND_${kind.name.toUpperCase()} to its path`);
  const profile = userDataDir ?? (await mkdtemp(join(tmpdir(), 'foremind-browser-')));
  const browser = await puppeteer.launch({ ...kind.launch(kind.path, profile, prefs), protocolTimeout: patience.timeout, timeout: patience.timeout });
  try {
    return await use({ browser, userDataDir: profile });
  } finally {
    await browser.close();
    if (userDataDir === undefined) await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** A profile folder for several launches, removed after `use`. */
export async function withProfile(use) {
  const profile = await mkdtemp(join(tmpdir(), 'foremind-profile-'));
  try {
    return await use(profile);
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/**
 * Serves the built page at `/`, the built package at `/package/`, the model's at `/model/`, the test page at `/kit/`, the suite
 * for stores at `/stores/` and the story at `/story/`. `requests` holds every request since the start, `violations` every report of the
 * content security policy.
 */
export async function withServer(use, { port = 0 } = {}) {
  const requests = [];
  const violations = [];
  const server = await serve({
    mounts: { '/': builtPage, '/package/': builtPackage, '/model/': builtModel, '/kit/': join(root, 'tests/browser/pages'), '/stores/': join(root, 'tests/stores'), '/story/': join(root, 'tests/story') },
    port,
    reportUri: '/violations',
    onRequest(request) {
      if (request.url !== '/violations') {
        requests.push(`${request.method} ${request.url}`);
        return;
      }
      let body = '';
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => violations.push(body));
    },
  });
  let open = true;
  const close = async () => {
    if (open) await server.close();
    open = false;
  };
  try {
    return await use({ url: server.url, port: Number(new URL(server.url).port), requests, violations, close });
  } finally {
    await close();
  }
}

/** Opens the demo and waits until everything is there: the memory, the model, and the files for offline use. */
export async function openDemo(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience.timeout);
  page.setDefaultNavigationTimeout(patience.timeout);
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(url);
  await loaded(page);
  return Object.assign(page, { errors });
}

export const loaded = (page) => page.waitForSelector('html[data-loaded]', patience);

/** Opens the page that holds the package and nothing else. */
export async function openKit(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience.timeout);
  await page.goto(`${url}kit/index.html`);
  await page.waitForFunction(() => globalThis.kit !== undefined, patience);
  return page;
}

export const text = (page, selector) => page.$eval(selector, (element) => element.textContent.trim());
export const texts = (page, selector) => page.$$eval(selector, (elements) => elements.map((element) => element.textContent.trim()));

/** Types into the conversation and presses a button; waits until the conversation shows it. */
export async function converse(page, button, sentence) {
  const before = (await page.$$('#talk li')).length;
  await page.focus('#text');
  await page.$eval('#text', (box) => (box.value = ''));
  await page.type('#text', sentence);
  await page.click(`#${button}`);
  await page.waitForFunction((count) => document.querySelectorAll('#talk li').length > count, patience, before);
}

export const say = (page, sentence) => converse(page, 'say', sentence);
export const ask = (page, sentence) => converse(page, 'ask', sentence);

/**
 * Listens to the network events of the browser itself, in the page and in each of its workers. Chromium's
 * workers are sessions of their own; Firefox reports through the events of the page.
 */
export async function watchNetwork(page) {
  const seen = [];
  page.on('request', (request) => seen.push(`page ${request.url()}`));
  const watchWorker = async (worker) => {
    let session;
    try {
      session = worker.client;
    } catch {
      return; // BiDi has no session for each worker
    }
    session.on('Network.requestWillBeSent', ({ request }) => seen.push(`worker ${request.url}`));
    await session.send('Network.enable');
  };
  page.on('workercreated', watchWorker);
  await Promise.all(page.workers().map(watchWorker));
  return { seen, workers: () => page.workers().length };
}

/** Long enough for a background fetch that was put off to show itself; the tests that wait for nothing need it. */
export const quiet = () => sleep(2500);

/**
 * Kills the processes that run pages, without a word to them, as a crash or the system does. Only processes of the
 * given browser are touched. Returns how many.
 */
export async function killRenderers(kind, browser) {
  const ids = await renderers(kind, browser);
  for (const id of ids) process.kill(id, 'SIGKILL');
  return ids.length;
}

/** The ids of the processes that run pages. */
async function renderers(kind, browser) {
  if (kind !== chromium) return contentProcesses(browser.process().pid);
  const session = await browser.target().createCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
}

/**
 * The id of the process that runs `page` and none of `others`, found by stopping one process after the other and seeing which
 * page falls silent.
 */
export async function processOf(kind, browser, page, others) {
  const answers = (tab) => tab.evaluate(() => true).catch(() => false);
  for (const id of await renderers(kind, browser)) {
    process.kill(id, 'SIGSTOP');
    try {
      const silent = Symbol();
      const answer = answers(page);
      const rest = await Promise.race([Promise.all(others.map(answers)), sleep(10_000, silent)]);
      if (rest !== silent && (await Promise.race([answer, sleep(1_500, silent)])) === silent) return id;
    } finally {
      process.kill(id, 'SIGCONT');
    }
  }
  throw new Error('no process runs this page alone');
}

/** Kills a whole browser, all of its processes, as a power cut does to them. */
export async function killBrowser(browser) {
  const child = browser.process();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  for (const id of below(child.pid)) {
    try {
      process.kill(id, 'SIGKILL');
    } catch {
      // It ended with one that was killed before.
    }
  }
  await ended;
  // The driver puts the profile's settings back when it hears of the end; a start meanwhile would miss them.
  await sleep(1_000);
}

/** The ids of Firefox's content processes: those below its own whose arguments, however they are stored, end in `tab`. */
function contentProcesses(parent) {
  const processes = running();
  return below(parent, processes).filter((id) => / -contentproc .* tab$/.test(processes.get(id)?.args ?? ''));
}

/** A process and all that descend from it. Firefox forks its children from a process of their own. */
function below(parent, processes = running()) {
  const descends = (id) => id === parent || (processes.has(id) && descends(processes.get(id).above));
  return [...processes.keys()].filter(descends);
}

function running() {
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  const rows = listing.matchAll(/^ *(\d+) +(\d+) +(.*?) *$/gm);
  return new Map(Array.from(rows, ([, id, above, args]) => [Number(id), { above: Number(above), args }]));
}
