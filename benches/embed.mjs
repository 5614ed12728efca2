// `cargo xtask bench embed`: foremind's two binaries against onnxruntime-web and tract, in node and in Chromium, one thread
// on one core. Every ratio is of paired, interleaved rounds. The last line is one JSON object; `--chart FILE` draws it too.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { cpus, tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chart } from './embed-chart.mjs';
import { LENGTHS, LONG_TOKENS, READY_PROCESSES, ROUNDS, operations } from './embed-plan.mjs';
import { percentile } from './figures.mjs';
import { OPERATIONS } from './reference-kernel.mjs';

const run = promisify(execFile);
const puppeteer = createRequire(new URL('../tests/', import.meta.url))('puppeteer-core');
const root = fileURLToPath(new URL('..', import.meta.url));
const taskset = '/usr/bin/taskset';
const MEMORY_TEXTS = 1000;
/** onnxruntime's memory has its size long before that, and it takes its time. */
const PEER_MEMORY_TEXTS = 60;

const round = (value, digits = 3) => Number(value.toFixed(digits));
const median = (values) => percentile(values, 0.5);
const middle90 = (values) => [round(percentile(values, 0.05)), round(percentile(values, 0.95))];

/** Progress, with what is known: the whole takes minutes, and a stop on the way should not lose what was measured. */
const known = (what, value) => {
  console.error(`embed: ${what} ${JSON.stringify(value)}`);
  return value;
};
const hosts = { chromium: await inChromium(), node: await inNode() };
const memory = await inNodeProcess('memory', 'simd', MEMORY_TEXTS);
const peerMemory = await inNodeProcess('memory', 'ort', PEER_MEMORY_TEXTS);
console.error('embed: cosine to the f32 weights');
const cosines = await inNodeProcess('cosines');
// The arrays are those of Chromium, where both binaries run.
const { times, ready, share } = hosts.chromium;
const column = (at) => cosines.map((row) => row[at]);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const figures = {
  lengths: LENGTHS,
  ...times,
  ready_ms: ready.relaxed_ready_ms,
  ort_ready_ms: ready.ort_ready_ms,
  ready_ratio: ready.ratio_relaxed,
  memory_bytes: memory.after_bytes + memory.buffers_bytes,
  memory_loaded_bytes: memory.loaded_bytes,
  memory_growth_bytes: memory.after_bytes - memory.loaded_bytes,
  ort_memory_bytes: peerMemory.after_bytes + peerMemory.buffers_bytes,
  cosine_min: round(Math.min(...column(0)), 5),
  cosine_mean: round(mean(column(0)), 5),
  stored_cosine_min: round(Math.min(...column(1)), 5),
  stored_cosine_mean: round(mean(column(1)), 5),
  peak_share: share.share,
  rounds: ROUNDS,
  hosts,
  host: { chromium: hosts.chromium.version, node: process.version, processor: cpus()[0]?.model ?? 'unknown', cores_used: existsSync(taskset) ? 1 : null },
};
const at = process.argv.indexOf('--chart');
if (at > 0) await writeFile(process.argv[at + 1], chart(figures));
console.log(JSON.stringify(figures));
process.exit(0);

/** Medians by length, and ratios of the rounds to the contestant of onnxruntime's that is the faster one there. */
function summary(rounds) {
  const names = Object.keys(rounds[0]);
  const result = {};
  for (const name of names) result[`${name}_ms`] = rounds.map((times) => round(median(times[name])));
  const best = rounds.map((times) => (median(times.ort) <= median(times.ort_ours) ? times.ort : times.ort_ours));
  result.ort_best_ms = best.map((times) => round(median(times)));
  for (const name of names.filter((each) => !each.startsWith('ort'))) {
    const ratios = rounds.map((times, length) => times[name].map((ms, at) => ms / best[length][at]));
    result[`ratio_${name}`] = ratios.map((each) => round(median(each)));
    result[`ratio_${name}_90`] = ratios.map(middle90);
  }
  return result;
}

function shareOf(pairs) {
  const rate = (ms, count) => count / ms / 1e6;
  const rates = pairs.map(([own, kernel]) => [rate(own, operations(LONG_TOKENS)), rate(kernel, OPERATIONS)]);
  const shares = rates.map(([own, kernel]) => own / kernel);
  return {
    share: round(median(shares)),
    share_90: middle90(shares),
    forward_gops: round(median(rates.map(([own]) => own)), 1),
    reference_gops: round(median(rates.map(([, kernel]) => kernel)), 1),
  };
}

/** Each contestant in a fresh process, taking turns. */
async function readiness(contestants, measure) {
  const measured = Object.fromEntries(contestants.map((name) => [name, []]));
  for (let process = 0; process < READY_PROCESSES; process += 1) {
    for (const name of contestants) measured[name].push(await measure(name));
  }
  const result = { processes: READY_PROCESSES };
  for (const name of contestants) {
    result[`${name}_ready_ms`] = round(median(measured[name].map(({ ready_ms: ms }) => ms)), 1);
    result[`${name}_first_run_ms`] = round(median(measured[name].map(({ first_run_ms: ms }) => ms)), 1);
    if (name !== 'ort') {
      const ratios = measured[name].map(({ ready_ms: ms }, index) => ms / measured.ort[index].ready_ms);
      result[`ratio_${name}`] = round(median(ratios));
      result[`ratio_${name}_90`] = middle90(ratios);
    }
  }
  return known('ready', result);
}

async function inNode() {
  const relaxed = (await run(process.execPath, ['-e', `import('${root}pkg/dist/simd.js').then(({ hasRelaxedSimd }) => console.log(hasRelaxedSimd()))`])).stdout.trim() === 'true';
  console.error('embed: node, ready');
  const ready = await readiness(['simd', ...(relaxed ? ['relaxed'] : []), 'ort', 'tract'], (name) => inNodeProcess('ready', name));
  const times = known('node, times', summary(await inNodeProcess('times')));
  return { version: process.version, times, ready, share: known('node, share', shareOf(await inNodeProcess('share'))) };
}

async function inNodeProcess(...work) {
  const pin = existsSync(taskset) ? [taskset, '-c', '0', process.execPath] : [process.execPath];
  const [program, ...rest] = [...pin, '--expose-gc', join(root, 'benches/embed-host.mjs'), ...work.map(String)];
  const child = run(program, rest, { maxBuffer: 1 << 26 });
  child.child.stderr.pipe(process.stderr);
  return JSON.parse((await child).stdout);
}

async function inChromium() {
  const server = await serve();
  const origin = `http://127.0.0.1:${server.address().port}`;
  const folder = await mkdtemp(join(tmpdir(), 'foremind-embed-'));
  const inFreshBrowser = async (work) => {
    const browser = await puppeteer.launch({
      executablePath: process.env.FOREMIND_CHROMIUM,
      userDataDir: join(folder, 'chromium'),
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
      protocolTimeout: 3_600_000,
    });
    try {
      const page = await browser.newPage();
      page.on('console', (message) => console.error(`embed: Chromium, ${message.text()}`));
      await page.goto(`${origin}/page`);
      await page.waitForFunction(() => globalThis.works !== undefined);
      pinDescendants(browser.process().pid);
      return [await page.evaluate(work), await browser.version()];
    } finally {
      await browser.close();
    }
  };
  try {
    console.error('embed: Chromium, ready');
    const ready = await readiness(['simd', 'relaxed', 'ort'], async (name) => (await inFreshBrowser(`works.ready('${name}')`))[0]);
    const [rounds, version] = await inFreshBrowser('works.times()');
    const times = known('Chromium, times', summary(rounds));
    const [pairs] = await inFreshBrowser('works.share()');
    return { version, times, ready, share: known('Chromium, share', shareOf(pairs)) };
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** One core for the browser and all its processes, where the system can do that. */
function pinDescendants(parent) {
  if (!existsSync(taskset)) return;
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  const above = new Map(rows.map((row) => row.trim().split(/\s+/).map(Number)));
  const descends = (id) => id === parent || (above.has(id) && descends(above.get(id)));
  for (const id of [...above.keys()].filter(descends)) {
    try {
      execFileSync(taskset, ['-a', '-c', '-p', '0', String(id)], { stdio: 'ignore' });
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Serves the package, the model, onnxruntime and the page on a free port. */
function serve() {
  const types = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };
  const folders = {
    '/dist/': 'pkg/dist/',
    '/model/': 'pkg-model/',
    '/files/': 'target/model/',
    '/ort/': 'tests/node_modules/onnxruntime-web/dist/',
    '/bench/': 'benches/',
    '/sentences.mjs': 'tests/embed/sentences.mjs',
  };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    try {
      if (pathname === '/page') {
        response.setHeader('Content-Type', 'text/html');
        response.end('<!doctype html><title>embed</title><link rel="icon" href="data:,"><script type="module" src="/bench/embed-page.mjs"></script>');
        return;
      }
      const [prefix, folder] = Object.entries(folders).find(([each]) => pathname.startsWith(each));
      const body = await readFile(join(root, folder, pathname.slice(prefix.length)));
      response.setHeader('Content-Type', types[extname(pathname)] ?? 'application/octet-stream');
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
