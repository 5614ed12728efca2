import { ForemindError, Memory, type MemoryRecord, type Tier } from 'foremind';

import { requestsSinceLoad } from './requests.js';
import { count, gradeWords, plain, ttlWords } from './words.js';
import * as view from './view.js';

// Everything that a page needs of foremind is in this file; the others draw and count.

const me = { user: 'me' };
const thread = `visit-${crypto.randomUUID()}`;
let turn = 0;
let prompts = 0;
let question: string | undefined;

const memory = await Memory.open({ name: 'demo' }).catch((error: unknown) => {
  view.problem(error);
  view.state({ search: 'not open', durability: 'nothing' });
  // Where the browser refuses to store, go on in memory; the page says that it lasts as long as the tab.
  if (error instanceof ForemindError && error.code === 'storage-denied') return Memory.open({ name: 'demo', storage: 'memory' });
  throw error;
});

/** To say something: the memory decides what becomes of it. */
async function say(text: string) {
  turn += 1;
  const { records } = await memory.ingest(me, { thread, turn: String(turn), role: 'user', text });
  await refresh();
  const became = records.map(({ record, outcome }) => (outcome === 'added' ? becameWords(record) : 'Known already.'));
  view.talk('said', text, became.join(' ') || 'Not kept: it states no fact about you.');
}

/** To ask something: the prompt is what a model would be given with the question. */
async function ask(text: string) {
  question = text;
  const recalled = await showPrompt();
  const { profile, context } = recalled;
  const became =
    recalled.prompt === ''
      ? 'Nothing in the memory bears on it.'
      : `In the prompt: ${profile.length} from the profile, ${context.length} found in the store.`;
  view.talk('asked', text, became);
}

async function showPrompt() {
  prompts += 1;
  const asked = prompts;
  const budgetTokens = view.budget();
  const recalled =
    question === undefined
      ? await memory.profile(me, { budgetTokens })
      : await memory.recall(me, question, { budgetTokens });
  const texts = recalled.dropped.slice(0, 5).map(async ({ id }) => (await memory.get(me, id)).text);
  const dropped = await Promise.all(texts);
  // An answer that was overtaken by a later question is not drawn.
  if (asked === prompts) view.prompt(recalled, dropped, question);
  return recalled;
}

async function refresh() {
  const [profile, store, stats] = await Promise.all([
    memory.list(me, { tier: 'profile', status: 'current' }),
    memory.list(me, { tier: 'store', status: 'current' }),
    memory.stats(me),
    showPrompt(),
  ]);
  view.records('profile', profile.records, stats.profile);
  view.records('store', store.records, stats.store);
}

const actions = {
  async move({ id }: MemoryRecord, tier: Tier) {
    await memory.update(me, id, { tier });
    return tier === 'profile' ? 'Moved to the profile: it is in every prompt now.' : 'Moved to the store: it is found when it fits.';
  },
  async confirm({ id }: MemoryRecord) {
    await memory.confirm(me, id);
    return 'Confirmed.';
  },
  async forget({ id }: MemoryRecord) {
    await memory.forget(me, { id });
    return 'Forgotten and erased.';
  },
  async forgetAll() {
    const { erased } = await memory.forget(me, 'scope');
    return `Forgotten and erased: ${count(erased, 'record', 'records')}.`;
  },
};

function becameWords({ route }: MemoryRecord) {
  const where = route.tier === 'profile' ? 'Profile' : 'Store';
  const doubt = route.judgement === 'pending' ? ' In doubt, so it is shown.' : '';
  return `${where}: ${plain(route.domain)}, ${gradeWords(route.grade)}, kept ${ttlWords(route.ttl)}.${doubt}`;
}

function showDurability() {
  view.state({
    durability: {
      persistent: 'on this device, until you clear it',
      'best-effort': 'on this device, if space lasts',
      volatile: 'until this tab closes',
    }[memory.durability],
  });
}

view.connect({
  say,
  ask,
  act: async (act: (chosen: typeof actions) => Promise<string>) => {
    const outcome = await act(actions);
    await refresh();
    return outcome;
  },
  budget: async () => {
    await showPrompt();
  },
});

memory.on('changed', ({ by }) => {
  if (by === 'other') refresh().catch(view.problem);
});
memory.on('durability', showDurability);
memory.on('lost', ({ message }) => view.problem(new ForemindError('storage-lost', message)));
memory.on('progress', ({ phase, loaded, total }) => {
  if (phase === 'model') view.loading(loaded, total);
  // What was written before the model came has been looked at again.
  else if (loaded === total) refresh().catch(view.problem);
});

showDurability();
view.state({ search: 'by words, meaning is loading' });
await refresh().catch(view.problem);
view.enable();

// Words are searched at once; meaning when the model has come. Without a model everything else goes on working.
const ready = memory.ready.then(
  () => view.state({ search: 'by words and meaning' }),
  (error: unknown) => {
    view.state({ search: 'by words only' });
    view.problem(error);
  },
);
const kept = navigator.serviceWorker
  ? navigator.serviceWorker
      .register('/sw.js', { updateViaCache: 'all' })
      .then(() => navigator.serviceWorker.ready)
      .catch(() => undefined)
  : undefined;

await Promise.all([ready, kept]);
view.loading(1, 1);
document.documentElement.dataset['loaded'] = 'true';
await requestsSinceLoad(memory, (requests) => view.state({ requests: String(requests) }));
