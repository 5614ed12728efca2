// Time to open an existing memory, the embedder not loaded, and of the profile of one that is not opened: in node on the file store,
// in a fresh process each time, and in Chromium on IndexedDB, on a fresh page of a browser that was started anew and has come to rest.
// `p50_ms` and what stands beside it is from before the import of the package to the first lexical recall; `ready_p50_ms` from the
// call of `Memory.open` to it; `one_core` with the process held to one core, on which the engine's compiler stands in the way. The peer there is the plainest thing that works,
// all records as one JSON value that is loaded, parsed and scanned; in Chromium PGlite with an index of words stands beside it.
// `open` is `Memory.open` alone; `profile_first` is the first `Memory.profile` of a process, which loads the module, and
// `profile_again` the median of the 40 after it. Rounds are interleaved. Arguments: sizes to measure, 1000 10000 when left out. The last line
// is one JSON object.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { paired, percentile, round as rounded } from './figures.mjs';
import { constraints, query, statements } from './statements.mjs';
import { Memory } from '../pkg/dist/node.js';

const run = promisify(execFile);
const puppeteer = createRequire(new URL('../tests/', import.meta.url))('puppeteer-core');
const root = fileURLToPath(new URL('..', import.meta.url));
const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 10_000];
const hosts = (process.env.FOREMIND_BENCH_HOSTS ?? 'node,chromium').split(',');
const SETTLE_MS = 2_000;
const rounds = Number(process.env.FOREMIND_BENCH_ROUNDS ?? 30);
const folder = await mkdtemp(join(tmpdir(), 'foremind-open-'));
const load = loadavg()[0];
const results = { node: [], chromium: [] };
try {
  for (const size of sizes) {
    if (hosts.includes('node')) results.node.push({ size, ...(await inNode(size)) });
    if (hosts.includes('chromium')) results.chromium.push({ size, ...(await inChromium(size)) });
  }
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
const all = (figure) => (results.node.length > 0 ? results.node : results.chromium).map((result) => result[figure]);
console.log(JSON.stringify({
  sizes,
  p50_ms: all('p50_ms'),
  p99_ms: all('p99_ms'),
  peer_p50_ms: all('peer_p50_ms'),
  ratio: all('ratio'),
  ready_p50_ms: all('ready').map(({ p50_ms }) => p50_ms),
  open_p50_ms: all('open').map(({ p50_ms }) => p50_ms),
  profile_p50_ms: all('profile_again').map(({ p50_ms }) => p50_ms),
  load_before: rounded(load),
  hosts: results,
}));

function figures(measured) {
  const times = (of) => ({ p50_ms: rounded(percentile(of, 0.5)), p99_ms: rounded(percentile(of, 0.99)) });
  return {
    ...paired(measured.map(({ foremind, json }) => [foremind.total, json.total])),
    ready: times(measured.map(({ foremind }) => foremind.open + foremind.recall)),
    ...(measured[0].one ? { one_core: times(measured.map(({ one }) => one.total)) } : {}),
    open: times(measured.map(({ foremind }) => foremind.open)),
    recall: times(measured.map(({ foremind }) => foremind.recall)),
    profile_first: times(measured.map(({ profile }) => profile.first)),
    profile_again: times(measured.map(({ profile }) => profile.again)),
    ...(measured[0].pglite ? { pglite: paired(measured.map(({ foremind, pglite }) => [foremind.total, pglite.total])) } : {}),
  };
}

async function inNode(size) {
  const key = randomBytes(32);
  const directory = join(folder, `node-${size}`);
  await mkdir(directory);
  console.error(`open: writing ${size} records with the file store`);
  const memory = await Memory.open({ name: 'bench', directory, key, model: false });
  const scope = { user: 'ada' };
  for (const text of constraints) await memory.remember(scope, text, { tier: 'profile' });
  for (const text of statements(size - constraints.length)) await memory.remember(scope, text);
  const records = [];
  for (let after; ;) {
    const page = await memory.list(scope, { limit: 1000, after });
    records.push(...page.records);
    after = page.next;
    if (after === undefined) break;
  }
  await memory.close();
  if (records.length !== size) throw new Error(`${records.length} records instead of ${size}`);
  await writeFile(join(directory, 'records.json'), JSON.stringify(records));

  // One core, where the system can pin a process.
  const pin = existsSync('/usr/bin/taskset') ? ['/usr/bin/taskset', '-c', '0'] : undefined;
  const child = join(root, 'benches/open-node.mjs');
  const time = async (what, before = []) => {
    const [program, ...rest] = [...before, process.execPath, child, what, directory, key.toString('hex')];
    return JSON.parse((await run(program, rest)).stdout);
  };
  const measured = [];
  for (let round = 0; round <= rounds; round += 1) {
    const times = { foremind: await time('foremind'), json: await time('peer'), profile: await time('profile') };
    if (pin) times.one = await time('foremind', pin);
    if (round > 0) measured.push(times); // the first fills the system's file cache
  }
  return figures(measured);
}

async function inChromium(size) {
  const server = await serve();
  const origin = `http://127.0.0.1:${server.address().port}`;
  const withPage = async (work) => {
    const browser = await puppeteer.launch({
      executablePath: process.env.FOREMIND_CHROMIUM ?? '/usr/bin/chromium',
      userDataDir: join(folder, `chromium-${size}`),
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
      protocolTimeout: 3_600_000,
    });
    try {
      const page = await browser.newPage();
      // A browser that has just started is busy with itself for a while.
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      await page.goto(`${origin}/page`);
      return await work(page);
    } finally {
      await browser.close();
    }
  };
  try {
    console.error(`open: writing ${size} records with IndexedDB`);
    await withPage((page) => page.evaluate((...what) => write(...what), statements(size - constraints.length), constraints));
    // A fresh browser for each side, so that none finds another's caches warm.
    const time = (what) => withPage((page) => page.evaluate(`${what}(${JSON.stringify(query)})`));
    const measured = [];
    for (let round = 0; round <= rounds; round += 1) {
      const times = {};
      for (const side of ['foremind', 'json', 'profile', 'pglite']) times[side] = await time(side);
      if (round > 0) measured.push(times);
    }
    return figures(measured);
  } finally {
    server.close();
  }
}

/** Serves the built package, PGlite and the measuring page on a free port. */
function serve() {
  const types = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };
  const folders = { '/dist/': 'pkg/dist/', '/bench/': 'benches/', '/pglite/': 'benches/node_modules/@electric-sql/pglite/dist/' };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    try {
      if (pathname === '/page') {
        response.setHeader('Content-Type', 'text/html');
        response.end('<!doctype html><title>open</title><script src="/bench/open-page.js"></script>');
        return;
      }
      const [mount, place] = Object.entries(folders).find(([prefix]) => pathname.startsWith(prefix));
      const body = await readFile(join(root, place, normalize(pathname.slice(mount.length))));
      response.setHeader('Content-Type', types[extname(pathname)] ?? 'application/octet-stream');
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
