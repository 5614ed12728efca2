// One fresh process of `open.mjs`: prints the milliseconds from before the import of the package (or, for the peer, from
// before the file is read) to the first answer.
import { readFile } from 'node:fs/promises';
import { query } from './statements.mjs';

const [what, directory, key] = process.argv.slice(2);
const scope = { user: 'ada' };
let found;
const start = performance.now();
if (what === 'foremind') {
  const { Memory } = await import('../pkg/dist/node.js');
  const memory = await Memory.open({ name: 'bench', directory, key: Buffer.from(key, 'hex'), model: false });
  const { context } = await memory.recall(scope, query);
  found = context.length;
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
const ms = performance.now() - start;
if (found === 0) throw new Error(`${what}: the query found nothing`);
console.log(ms);
process.exit(0);
