// One fresh process of `open.mjs`: prints what it measured in milliseconds, as one JSON object.
import { readFile } from 'node:fs/promises';
import { percentile } from './figures.mjs';
import { query } from './statements.mjs';

const [what, directory, key] = process.argv.slice(2);
const scope = { user: 'ada' };
const options = { name: 'bench', directory, key: Buffer.from(key, 'hex'), model: false };
const times = {};
const start = performance.now();
const timed = async (name, work) => {
  const from = performance.now();
  const result = await work();
  times[name] = performance.now() - from;
  return result;
};
let found;
if (what === 'foremind') {
  const { Memory } = await import('../pkg/dist/node.js');
  const memory = await timed('open', () => Memory.open(options));
  found = (await timed('recall', () => memory.recall(scope, query))).context.length;
} else if (what === 'profile') {
  const { Memory } = await import('../pkg/dist/node.js');
  await timed('first', () => Memory.profile(options, scope));
  // With the module loaded and its code compiled, as in a process that serves: the median of many.
  const again = [];
  for (let at = 0; at < 40; at += 1) {
    found = (await timed('again', () => Memory.profile(options, scope))).profile.length;
    again.push(times.again);
  }
  times.again = percentile(again, 0.5);
} else {
  // The plainest thing that works: one JSON file, every text compared with the words of the query.
  const records = JSON.parse(await readFile(`${directory}/records.json`, 'utf8'));
  const words = query.toLowerCase().match(/\w{4,}/g);
  found = records
    .map((record) => ({ record, score: words.filter((word) => record.text.toLowerCase().includes(word)).length }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 10).length;
}
times.total = performance.now() - start;
if (found === 0) throw new Error(`${what}: nothing was found`);
console.log(JSON.stringify(times));
process.exit(0);
