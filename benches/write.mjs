// Time of one `remember` in Chromium on IndexedDB, from the page's call to the acknowledgement, the embedder not loaded,
// beside: all records as one JSON value in IndexedDB, as a page would keep them by itself (the peer); PGlite on IndexedDB; and one
// bare put of 1 KiB at the same durability, left to commit by itself or told to. `beyond_engine` is `remember` less the same call on
// a memory that is not stored. Rounds are paired, the sides of a round in an order by chance with a pause before each: what PGlite
// or a large JSON value leave to be done after their answer once made whoever came next look several times slower. The strict
// rounds write what changes answers, so that their commits also hold the stored profile, which grows with them. Arguments: sizes
// to measure, 100 1000 10000 when left out. The last line is one JSON object.
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { paired, percentile, round } from './figures.mjs';
import { statements } from './statements.mjs';

const puppeteer = createRequire(new URL('../tests/', import.meta.url))('puppeteer-core');
const root = fileURLToPath(new URL('..', import.meta.url));
const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [100, 1000, 10_000];
const rounds = 60;
const warm = 10;
const folder = await mkdtemp(join(tmpdir(), 'foremind-write-'));
const server = await serve();
const results = [];
const load = loadavg()[0];
try {
  for (const size of sizes) results.push(await measure(size));
} finally {
  server.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
const all = (figure) => results.map((result) => result.relaxed.json[figure]);
console.log(JSON.stringify({
  sizes,
  p50_ms: all('p50_ms'),
  p99_ms: all('p99_ms'),
  peer_p50_ms: all('peer_p50_ms'),
  ratio: all('ratio'),
  peer: 'all records as one JSON value in IndexedDB',
  relaxed: results.map((result) => result.relaxed),
  strict: results.map((result) => result.strict),
  load_before: round(load),
}));

/** Both durabilities at one size. */
async function measure(size) {
  const browser = await puppeteer.launch({
    executablePath: process.env.FOREMIND_CHROMIUM ?? '/usr/bin/chromium',
    userDataDir: join(folder, `chromium-${size}`),
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    protocolTimeout: 3_600_000,
  });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/page`);
    console.error(`write: ${size} records on every side`);
    const texts = statements(size + 2 * (rounds + warm));
    await page.evaluate((count, some) => prepare(count, some, true), size, texts.slice(0, size));
    const result = {};
    for (const [durability, offset] of [['relaxed', size], ['strict', size + rounds + warm]]) {
      const measured = [];
      for (let at = 0; at < rounds + warm; at += 1) {
        const times = await page.evaluate((text, strict) => round(text, strict), texts[offset + at], durability === 'strict');
        if (at >= warm) measured.push(times);
      }
      result[durability] = figures(measured);
    }
    await page.evaluate(() => end());
    return result;
  } finally {
    await browser.close();
  }
}

function figures(measured) {
  const against = (peer) => paired(measured.map((times) => [times.stored, times[peer]]));
  const p50 = (side) => percentile(measured.map((times) => times[side]), 0.5);
  const beyond = measured.map((times) => Math.max(0, times.stored - times.volatile));
  const bare = paired(measured.map((times, at) => [beyond[at], times.bare]));
  const told = paired(measured.map((times, at) => [beyond[at], times.bare_commit]));
  return {
    json: against('json'),
    pglite: against('pglite'),
    bare_put: {
      beyond_engine_p50_ms: round(p50('stored') - p50('volatile')),
      p50_ms: round(p50('bare')),
      engine_p50_ms: round(p50('volatile')),
      ratio_of_medians: round((p50('stored') - p50('volatile')) / p50('bare')),
      ratio: bare.ratio,
      ratio_90: bare.ratio_90,
      with_commit: { p50_ms: told.peer_p50_ms, ratio: told.ratio, ratio_90: told.ratio_90 },
    },
  };
}

/** Serves the built package, PGlite and the measuring page on a free port. */
function serve() {
  const types = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };
  const folders = { '/dist/': 'pkg/dist/', '/bench/': 'benches/', '/pglite/': 'benches/node_modules/@electric-sql/pglite/dist/' };
  const created = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    try {
      if (pathname === '/page') {
        response.setHeader('Content-Type', 'text/html');
        response.end('<!doctype html><title>write</title><script src="/bench/write-page.js"></script>');
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
  return new Promise((resolve) => created.listen(0, '127.0.0.1', () => resolve(created)));
}
