// What judging costs when something is written, in wasm (V8), as time of this process's processor. `lexical_us`: what one more statement adds to an
// `ingest` of which nothing is kept, so the guard and the splitter are counted as well as the lexical stage. `semantic_share`: what the
// router's head adds to the embedding of the same statement, as a share of that pass; the two sides of a round follow each
// other in an order by chance. By length in tokens, each the median of 30 rounds with the middle 90 % of the rounds. The last line is one JSON object.
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import * as bindings from '../pkg/dist/foremind_core.js';
import { Core } from '../pkg/dist/core.js';
import { coreGlue } from '../pkg/dist/glue.js';
import { ROUTE_HEAD } from '../pkg/dist/heads.js';
import { HostKey } from '../pkg/dist/keys.js';
import { Session } from '../pkg/dist/session.js';
import { MemoryStore } from '../pkg/dist/stores/memory.js';
import { foremind } from './embed-contestants.mjs';
import { percentile, round } from './figures.mjs';

const ROUNDS = 30;
const WARM = 5;
const FEW = 10;
const MANY = 60;
const scope = { user: 'ada' };
// Requests and questions: nothing of them is kept.
const asked = [
  'What would you cook for six people on a Tuesday?',
  'Could you make the second paragraph a little shorter, please?',
  'Which of the two trains is the earlier one, and does it stop in Ghent?',
  'Is it dangerous to mix bleach and vinegar in a small bathroom?',
  'How long does a visa for a month in Vietnam usually take?',
  'Write a limerick about a doctor who was afraid of apples.',
];
// One token a word, with [CLS] and [SEP].
const words = 'our house has old walls and a very cold kitchen with one small window over the long stone sink by the back door'.split(' ');
const lengths = [8, 16, 24];

const dist = new URL('../pkg/dist/', import.meta.url);
const file = async (name) => new Uint8Array(await readFile(new URL(name, dist)));
bindings.initSync({ module: await file('foremind_core_bg.wasm') });
const core = new Core(coreGlue(bindings, new TextDecoder().decode(await file('foremind_data.txt'))));
const load = loadavg()[0];
const lexical = await perStatement();
const shares = await ofAPass();
console.log(JSON.stringify({ lexical_us: middle(lexical), lengths, semantic_share: shares.map(middle), load_before: round(load) }));

/** Microseconds that one more statement takes, by rounds. */
async function perStatement() {
  const session = await Session.open({ core, store: new MemoryStore(), keys: new HostKey(new Uint8Array(32).fill(7)) });
  const text = (count) => Array.from({ length: count }, (_, at) => asked[at % asked.length]).join(' ');
  let turns = 0;
  const time = async (count) => {
    turns += 1;
    const request = { verb: 'ingest', scope, thread: 'bench', turn: `t${turns}`, role: 'user', text: text(count) };
    const began = spent();
    const { records } = await session.call(request);
    const took = spent() - began;
    if (records.length > 0) throw new Error(`${records.length} of the questions were kept`);
    return took;
  };
  const rounds = [];
  for (let at = 0; at < ROUNDS + WARM; at += 1) {
    const few = await time(FEW);
    const many = await time(MANY);
    if (at >= WARM) rounds.push((many - few) / (MANY - FEW));
  }
  return rounds;
}

/** For each length the head's share of a pass, by rounds. */
async function ofAPass() {
  const pack = new Uint8Array(await readFile(new URL('../pkg-model/minilm-l6-v2.fmpack', import.meta.url)));
  const embedder = await foremind(await import('../pkg/dist/foremind_embed.js'), await file('foremind_embed_bg.wasm'), pack);
  embedder.loadAdapter(await file('foremind_route.fmadpt'));
  return lengths.map((length) => {
    const text = words.slice(0, length - 2).join(' ');
    if (embedder.tokens(text).length !== length) throw new Error(`not ${length} tokens: ${text}`);
    const sides = { plain: ['embedding/1'], both: ['embedding/1', ROUTE_HEAD] };
    const rounds = [];
    for (let at = 0; at < ROUNDS + WARM; at += 1) {
      const took = {};
      for (const side of Math.random() < 0.5 ? ['plain', 'both'] : ['both', 'plain']) {
        const began = spent();
        for (let time = 0; time < 5; time += 1) embedder.heads(text, sides[side]);
        took[side] = spent() - began;
      }
      if (at >= WARM) rounds.push(took.both / took.plain - 1);
    }
    return rounds;
  });
}

/** Microseconds that this process has computed for. */
function spent() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** The median with the middle 90 %. */
function middle(values) {
  return { p50: round(percentile(values, 0.5)), middle_90: [round(percentile(values, 0.05)), round(percentile(values, 0.95))] };
}
