// Time from a fresh process to the first lexical recall on an existing memory, the embedder not loaded: in node on the file
// store, and in Chromium on IndexedDB with the browser started anew for each round. The peer is the plainest thing that works:
// one JSON value loaded, parsed and scanned. Rounds are paired and interleaved. The last line is one JSON object.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { paired } from './figures.mjs';
import { query, statements } from './statements.mjs';
import { Memory } from '../pkg/dist/node.js';

const run = promisify(execFile);
const puppeteer = createRequire(new URL('../tests/', import.meta.url))('puppeteer-core');
const root = fileURLToPath(new URL('..', import.meta.url));
const size = 1000;
const rounds = 30;
const folder = await mkdtemp(join(tmpdir(), 'foremind-open-'));
try {
  const node = await inNode();
  const chromium = await inChromium();
  console.log(JSON.stringify({
    sizes: [size],
    p50_ms: [node.p50_ms],
    p99_ms: [node.p99_ms],
    peer_p50_ms: [node.peer_p50_ms],
    ratio: [node.ratio],
    hosts: { node, chromium },
  }));
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

async function inNode() {
  const key = randomBytes(32);
  console.error(`open: writing ${size} records with the file store`);
  const memory = await Memory.open({ name: 'bench', directory: folder, key, model: false });
  for (const text of statements(size)) await memory.remember({ user: 'ada' }, text);
  const records = [];
  for (let after; ;) {
    const page = await memory.list({ user: 'ada' }, { limit: 1000, after });
    records.push(...page.records);
    after = page.next;
    if (after === undefined) break;
  }
  await memory.close();
  if (records.length !== size) throw new Error(`${records.length} records instead of ${size}`);
  await writeFile(join(folder, 'records.json'), JSON.stringify(records));

  // One core, where the system can pin a process.
  const pin = existsSync('/usr/bin/taskset') ? ['/usr/bin/taskset', '-c', '0', process.execPath] : [process.execPath];
  const child = join(root, 'benches/open-node.mjs');
  const time = async (what) => {
    const [program, ...rest] = [...pin, child, what, folder, key.toString('hex')];
    return Number((await run(program, rest)).stdout);
  };
  const times = [];
  for (let round = 0; round <= rounds; round += 1) {
    const pair = [await time('foremind'), await time('peer')];
    if (round > 0) times.push(pair); // the first fills the system's file cache
  }
  return paired(times);
}

async function inChromium() {
  const server = await serve();
  const origin = `http://127.0.0.1:${server.address().port}`;
  const withPage = async (work) => {
    const browser = await puppeteer.launch({
      executablePath: process.env.FOREMIND_CHROMIUM,
      userDataDir: join(folder, 'chromium'),
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
      protocolTimeout: 600_000,
    });
    try {
      const page = await browser.newPage();
      await page.goto(`${origin}/page`);
      return await work(page);
    } finally {
      await browser.close();
    }
  };
  try {
    console.error(`open: writing ${size} records with IndexedDB`);
    await withPage((page) => page.evaluate(`write(${JSON.stringify(statements(size))})`));
    const times = [];
    for (let round = 0; round <= rounds; round += 1) {
      // A fresh browser for each side, so that neither finds the other's caches warm.
      const own = await withPage((page) => page.evaluate(`recall(${JSON.stringify(query)})`));
      const peer = await withPage((page) => page.evaluate(`scan(${JSON.stringify(query)})`));
      if (round > 0) times.push([own, peer]);
    }
    return paired(times);
  } finally {
    server.close();
  }
}

/** Serves the built package and the measuring page on a free port. */
function serve() {
  const types = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    try {
      if (pathname === '/page') {
        response.setHeader('Content-Type', 'text/html');
        response.end('<!doctype html><title>open</title><script src="/bench/open-page.js"></script>');
        return;
      }
      const file = pathname.startsWith('/dist/') ? `pkg${pathname}` : pathname.replace(/^\/bench\//, 'benches/');
      const body = await readFile(join(root, normalize(file)));
      response.setHeader('Content-Type', types[extname(file)] ?? 'application/octet-stream');
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
