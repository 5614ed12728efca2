// The macaron story through the built package, in node: an allergy is told once, other things follow, the memory is
// closed and opened again, and a question that does not name nuts is asked. Prints the profile and the prompt.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Memory } from '../pkg/dist/node.js';

const folder = await mkdtemp(join(tmpdir(), 'foremind-story-'));
const options = { name: 'ada', directory: folder, key: randomBytes(32) };
const ada = { user: 'ada' };
const turns = [
  "I'm allergic to tree nuts",
  'We moved to Lisbon last spring',
  'The kitchen got new marble worktops',
  'My sister plays the cello in an orchestra',
  'I watched a documentary about deep-sea vents yesterday',
];

try {
  let memory = await Memory.open(options);
  for (const [index, text] of turns.entries()) {
    await memory.ingest(ada, { thread: 'story', turn: String(index + 1), role: 'user', text });
  }
  await memory.close();

  memory = await Memory.open(options);
  await memory.ready;
  const { profile } = await memory.profile(ada);
  const { prompt, tokens, budgetTokens, dropped } = await memory.recall(ada, 'Any good macaron recipes?');
  console.log('PROFILE:');
  for (const { line } of profile) console.log(line);
  console.log('\nPROMPT:');
  console.log(prompt);
  console.log(`\n${tokens} of ${budgetTokens} tokens, ${dropped.length} dropped`);
  await memory.close();
} finally {
  await rm(folder, { recursive: true, force: true });
}
