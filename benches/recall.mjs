// Time of one `recall` in wasm (V8, this process), the query's vector given, beside: Orama's hybrid search over the same texts and
// vectors, and a plain loop of cosines over one Float32Array. Texts are drawn by Zipf's law from a made-up vocabulary, vectors lie
// around centres, a question holds two words of one record and a vector near its own: `hit_at_10` is the share of questions that
// find that record. Rounds are paired, the sides one after the other in an order by chance. `vectors_recall_at_10` compares the ten
// nearest by the core's int8 rows with the exact ones. `bytes_beyond_text` is what the wasm memory grew by for each record, less its
// text. Arguments: sizes to measure, 1000 10000 100000 when left out. The last line is one JSON object.
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import * as glue from '../pkg/dist/foremind_core.js';
import { paired, round } from './figures.mjs';

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 10_000, 100_000];
const ROUNDS = 60;
const WARM = 10;
/** Orama keeps every vector as numbers of eight bytes: beyond this it is left out. */
const ORAMA_MOST = 10_000;
const DIMENSIONS = 384;
const scope = { user: 'ada' };
const dist = new URL('../pkg/dist/', import.meta.url);
const wasm = await WebAssembly.compile(await readFile(new URL('foremind_core_bg.wasm', dist)));
const data = await readFile(new URL('foremind_data.txt', dist), 'utf8');
async function measure(size) {
  const random = generator(size);
  const texts = makeTexts(size, random);
  const vectors = makeVectors(size, random);
  console.error(`recall: ${size} records`);
  const core = new Core();
  const before = core.bytes();
  for (let at = 0; at < size; at += 400) core.tell(texts.slice(at, at + 400));
  const byText = new Map(texts.map((text, at) => [text, vectors[at]]));
  while (core.run({ verb: 'backfill', max: 256 }, byText).remaining > 0);
  const bytes = Math.round((core.bytes() - before) / size - texts.reduce((sum, text) => sum + text.length, 0) / size);
  const flat = new Float32Array(size * DIMENSIONS);
  vectors.forEach((vector, at) => flat.set(vector, at * DIMENSIONS));
  const orama = size <= ORAMA_MOST ? await makeOrama(texts, vectors) : undefined;
  const rounds = [];
  let hits = 0;
  let peerHits = 0;
  let exact = 0;
  for (let at = 0; at < ROUNDS + WARM; at += 1) {
    const target = Math.floor(random() * size);
    const words = texts[target].replace('.', '').split(' ');
    const query = `${words[3]} ${words[words.length - 2]} ${at}?`;
    const vector = near(vectors[target], random);
    byText.set(query, vector);
    const sides = {
      own: () => core.run({ verb: 'recall', scope, query, budgetTokens: 1000 }, byText),
      loop: () => nearest(flat, vector),
      orama: () => orama?.(query, vector),
    };
    const times = {};
    const found = {};
    for (const side of Object.keys(sides).sort(() => random() - 0.5)) {
      const from = performance.now();
      found[side] = await sides[side]();
      times[side] = performance.now() - from;
    }
    if (at < WARM) continue;
    rounds.push(times);
    const shown = [...found.own.profile, ...found.own.joined, ...found.own.context].slice(0, 10);
    hits += shown.some(({ record }) => record.text === texts[target]);
    peerHits += found.orama?.includes(texts[target]) ?? 0;
    // A question without a word in common is answered by the vector alone.
    const alone = `qqxxzz ${at}`;
    byText.set(alone, vector);
    const answer = core.run({ verb: 'recall', scope, query: alone, budgetTokens: 2000, explain: true }, byText);
    const ranked = [...answer.profile, ...answer.joined, ...answer.context].filter((item) => item.explain)
      .sort((a, b) => a.explain.rank - b.explain.rank).slice(0, 10).map(({ record }) => record.text);
    exact += found.loop.filter((index) => ranked.includes(texts[index])).length / 10;
  }
  core.free();
  return {
    loop: paired(rounds.map((times) => [times.own, times.loop])),
    orama: orama && paired(rounds.map((times) => [times.own, times.orama])),
    hits: round(hits / ROUNDS),
    peerHits: orama ? round(peerHits / ROUNDS) : null,
    exact: round(exact / ROUNDS),
    bytes,
  };
}

/** A memory of the core on a store that is a map. */
class Core {
  #store = new Map();
  #memory;
  #exports;
  #calls = 0;

  constructor() {
    // A fresh instance, whose memory has not grown yet.
    glue.initSync({ module: wasm });
    glue.__wbg_reset_state();
    this.#exports = glue.initSync();
    glue.installData(data);
    const opening = new glue.CoreOpening({ wrap: 'host', key: new Uint8Array(32).fill(7), create: true });
    this.#drive((reply) => opening.step(reply, ...this.#ambient()));
    this.#memory = opening.take();
    opening.free();
  }

  bytes() {
    return this.#exports.memory.buffer.byteLength;
  }

  /** All as one text, which is longer than a record may be and so becomes one for each sentence; vectors come by backfill. */
  tell(texts) {
    const { records } = this.run({ verb: 'remember', scope, text: texts.join('\n') });
    if (records.length !== texts.length) throw new Error(`${texts.length} texts became ${records.length} records`);
  }

  run(request, vectors) {
    const op = this.#memory.begin(request);
    const end = this.#drive((reply) => this.#memory.step(op, reply, ...this.#ambient()), vectors);
    this.#memory.dropOp(op);
    return end.response;
  }

  free() {
    this.#memory.free();
  }

  #drive(next, vectors) {
    let reply = { kind: 'begin' };
    for (;;) {
      const step = next(reply);
      if (step.kind === 'done' || step.kind === 'opened') return step;
      if (step.kind === 'failed') throw new Error(JSON.stringify(step.error));
      reply = this.#answer(step, vectors);
    }
  }

  #answer(step, vectors) {
    switch (step.kind) {
      case 'read':
        return { kind: 'values', values: step.keys.map((key) => this.#store.get(key)) };
      case 'commit':
        for (const [key, value] of step.puts) this.#store.set(key, value.slice());
        for (const key of step.deletes) this.#store.delete(key);
        return { kind: 'committed' };
      case 'embed':
        if (!vectors) return { kind: 'not-embedded', failure: 'not-ready' };
        return { kind: 'embedded', embeddings: step.texts.map((text) => step.heads.map((headId) => embedding(vectors.get(text), headId))) };
      default:
        return { kind: 'continue' };
    }
  }

  #ambient() {
    this.#calls += 1;
    const entropy = new Uint8Array(32);
    new DataView(entropy.buffer).setUint32(0, this.#calls, true);
    return [1_790_000_000_000 + this.#calls, 0, entropy];
  }
}

function embedding(vector, headId) {
  const scale = vector.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127;
  return { modelId: 'bench', headId, vector: Int8Array.from(vector, (x) => Math.round(x / scale)), scale, features: [] };
}

function nearest(flat, query) {
  const best = [];
  for (let row = 0, from = 0; from < flat.length; row += 1, from += DIMENSIONS) {
    let sum = 0;
    for (let at = 0; at < DIMENSIONS; at += 1) sum += flat[from + at] * query[at];
    if (best.length < 10 || sum > best[9][0]) {
      best.push([sum, row]);
      best.sort((a, b) => b[0] - a[0]);
      best.length = Math.min(best.length, 10);
    }
  }
  return best.map(([, row]) => row);
}

async function makeOrama(texts, vectors) {
  const { create, insertMultiple, search } = await import('@orama/orama');
  const db = create({ schema: { text: 'string', embedding: `vector[${DIMENSIONS}]` } });
  await insertMultiple(db, texts.map((text, at) => ({ text, embedding: Array.from(vectors[at]) })));
  return async (term, vector) => {
    const found = await search(db, { mode: 'hybrid', term, vector: { value: Array.from(vector), property: 'embedding' }, similarity: 0.3, limit: 10 });
    return found.hits.map((hit) => hit.document.text);
  };
}

/** Mulberry32: the same numbers on every run. */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Sentences of nine words of a vocabulary of 30,000, the n-th of which is drawn with a weight of 1/n. */
function makeTexts(size, random) {
  const syllables = ['bo', 'ki', 'li', 'mo', 'nu', 'ra', 'sel', 'tor', 'vin', 'dak', 'pel', 'gos', 'fim', 'hul', 'zab', 'cor'];
  const word = (n) => {
    let out = '';
    for (let rest = n + 16; rest > 0; rest = Math.floor(rest / 16)) out += syllables[rest % 16];
    return out;
  };
  const draw = () => word(Math.floor(30_000 ** random()) - 1);
  return Array.from({ length: size }, (_, at) => {
    const words = Array.from({ length: 8 }, draw);
    return `Once ${words[0]} ${words.slice(1, 7).join(' ')} ${words[7]} ${word(40_000 + at)} came.`;
  });
}

function unit(vector) {
  const norm = Math.hypot(...vector);
  return vector.map((x) => x / norm);
}

function gauss(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Around one centre for each fifty records, as close as sentences of one topic. */
function makeVectors(size, random) {
  const noise = () => Float32Array.from({ length: DIMENSIONS }, () => gauss(random) / Math.sqrt(DIMENSIONS));
  const centres = Array.from({ length: Math.ceil(size / 50) }, noise);
  return Array.from({ length: size }, (_, at) => unit(noise().map((x, d) => 0.5 * x + centres[at % centres.length][d])));
}

function near(vector, random) {
  return unit(vector.map((x) => x + (0.5 * gauss(random)) / Math.sqrt(DIMENSIONS)));
}

const load = loadavg()[0];
const results = [];
for (const size of sizes) results.push(await measure(size));
const all = (figure) => results.map((result) => result[figure]);
console.log(JSON.stringify({
  sizes,
  p50_ms: results.map((result) => result.loop.p50_ms),
  p99_ms: results.map((result) => result.loop.p99_ms),
  peer_p50_ms: results.map((result) => result.orama?.peer_p50_ms ?? null),
  ratio: results.map((result) => result.orama?.ratio ?? null),
  ratio_90: results.map((result) => result.orama?.ratio_90 ?? null),
  peer: 'Orama, hybrid search',
  loop_p50_ms: results.map((result) => result.loop.peer_p50_ms),
  loop_ratio: results.map((result) => result.loop.ratio),
  hit_at_10: all('hits'),
  peer_hit_at_10: all('peerHits'),
  vectors_recall_at_10: all('exact'),
  bytes_beyond_text: all('bytes'),
  load_before: round(load),
}));
