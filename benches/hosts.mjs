// The service in workerd: the profile of a memory whose object is not there yet, a recall in one that is, and how much memory eight of
// them take with the embedder. Times are those of a request over the loopback; beside them stands that of `/healthz`, which does nothing,
// and what is left without it. Rounds are interleaved. The last line is one JSON object.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { Desk, deployment } from '../tests/workers/deployment.mjs';
import { percentile, round } from './figures.mjs';
import { constraints, query, statements } from './statements.mjs';

const require = createRequire(new URL('../tests/', import.meta.url));
const { Miniflare, Response } = require('miniflare');
const OBJECTS = 8;
const RECORDS = 1000;
/** So that each object is cold as often as there are rounds. */
const STARTS = 4;
/** Recalls of a process that count as its first, and as many as are left out after them: the engine compiles what runs often. */
const ROUNDS = 30;
const folder = await mkdtemp(join(tmpdir(), 'foremind-hosts-'));
const model = await readFile(new URL('../target/model/minilm-l6-v2.fmpack', import.meta.url));
const load = loadavg()[0];

/** The template's Worker, and how large its modules' memories are. */
const INDEX = `
import { DirectoryObject, MemoryObject, worker } from 'foremind/workers';
import * as core from './foremind_core.js';
import coreModule from './foremind_core_bg.wasm';
import * as embed from './foremind_embed.js';
import embedModule from './foremind_embed_relaxed_bg.wasm';
import * as service from './foremind_service.js';
import serviceModule from './foremind_service_bg.wasm';
export { DirectoryObject, MemoryObject };
const bytes = (bindings, module) => bindings.initSync({ module }).memory.buffer.byteLength;
export default {
  fetch(request, env, ctx) {
    if (new URL(request.url).pathname !== '/bytes') return worker.fetch(request, env, ctx);
    return Response.json({ core: bytes(core, coreModule), embed: bytes(embed, embedModule), service: bytes(service, serviceModule) });
  },
};
`;

async function start(withModel) {
  const host = new Miniflare({
    ...(await deployment(INDEX)),
    durableObjectsPersist: folder,
    ...(withModel && { serviceBindings: { ASSETS: () => new Response(model) } }),
  });
  const desk = new Desk(host);
  const timed = async (line, token, body) => {
    const from = performance.now();
    const { status, answer } = await desk.ask(line, token, body);
    const ms = performance.now() - from;
    if (status !== 200) throw new Error(`${line}: ${status} ${JSON.stringify(answer)}`);
    return { ms, answer };
  };
  return { host, desk, timed };
}

const summary = (times, empty) => ({
  p50_ms: round(percentile(times, 0.5)),
  p99_ms: round(percentile(times, 0.99)),
  healthz_p50_ms: round(percentile(empty, 0.5)),
  beyond_healthz_p50_ms: round(percentile(times, 0.5) - percentile(empty, 0.5)),
});

async function fill() {
  const { host, desk } = await start(false);
  try {
    const told = [...constraints, ...statements(RECORDS - constraints.length)];
    await desk.tell('bench', 'warm', '1', told[0]);
    for (let object = 0; object < OBJECTS; object += 1) {
      for (let turn = 0; turn * 20 < told.length; turn += 1) {
        await desk.tell('bench', `u${object}`, `${turn}`, told.slice(turn * 20, turn * 20 + 20).join('. '));
      }
    }
  } finally {
    await host.dispose();
  }
}

async function times() {
  const cold = { times: [], empty: [] };
  const first = { times: [], empty: [] };
  const warm = { times: [], empty: [] };
  let records;
  for (let round = 0; round < STARTS; round += 1) {
    const { host, desk, timed } = await start(false);
    try {
      const grant = (user) => desk.grant({ tenant: 'bench', user, verbs: ['recall', 'profile', 'read'] });
      // The modules are compiled and the Worker runs; the objects are not there.
      await timed('POST /v1/recall', await grant('warm'), { query });
      const grants = [];
      for (let object = 0; object < OBJECTS; object += 1) grants.push(await grant(`u${object}`));
      for (const token of grants) {
        cold.empty.push((await timed('GET /healthz')).ms);
        const { ms, answer } = await timed('GET /v1/profile', token);
        if (!answer.prompt.includes('tree nuts')) throw new Error('the profile is not there');
        cold.times.push(ms);
      }
      // The bucket of one grant does not last for all.
      const asking = [grants[0], await grant('u0'), await grant('u0')];
      for (let again = 0; again < 3 * ROUNDS; again += 1) {
        const of = again < ROUNDS ? first : again < 2 * ROUNDS ? {} : warm;
        const empty = (await timed('GET /healthz')).ms;
        const { ms, answer } = await timed('POST /v1/recall', asking[again % 3], { query, deadlineMs: 5000 });
        if (answer.reason !== undefined || answer.context.length === 0) throw new Error(`no context: ${answer.reason}`);
        of.empty?.push(empty);
        of.times?.push(ms);
      }
      const { answer } = await timed('GET /v1/records?limit=1000', grants[0]);
      records = answer.records.length;
    } finally {
      await host.dispose();
    }
  }
  return { records, cold_profile: summary(cold.times, cold.empty), first_recalls: summary(first.times, first.empty), warm_recall: summary(warm.times, warm.empty) };
}

async function memory() {
  const { host, desk, timed } = await start(true);
  try {
    for (let object = 0; object < OBJECTS; object += 1) {
      const token = await desk.grant({ tenant: 'bench', user: `u${object}` });
      await timed('POST /v1/recall', token, { query, deadlineMs: 5000 });
    }
    // A write waits for the embedder, and encodes what it tells.
    await desk.tell('bench', 'u0', 'last', 'My bicycle is a green Brompton.');
    const { answer } = await timed('GET /bytes');
    return { objects: OBJECTS, ...answer, bytes: Object.values(answer).reduce((sum, one) => sum + one, 0) };
  } finally {
    await host.dispose();
  }
}

try {
  await fill();
  const measured = await times();
  console.log(JSON.stringify({ ...measured, memory: await memory(), load_before: round(load) }));
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
