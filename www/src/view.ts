// Draws. No call of foremind is made here.

import { ForemindError, type MemoryRecord, type Prompt, type Tier } from 'foremind';

import { count, gradeWords, plain, ttlWords, whyWords } from './words.js';

const sayExamples = [
  'I’m allergic to tree nuts.',
  'I repainted the hallway green last weekend.',
  'My grandmother, who lives with us, takes warfarin.',
  'Our kitchen worktops are marble.',
  'We watched a film about Lisbon.',
];
const askExamples = ['Any good macaron recipes?', 'How do I get rid of limescale?', 'What colour is the hallway?'];

/** What the page does when something is pressed. */
export interface Handlers<Actions> {
  say: (text: string) => Promise<void>;
  ask: (text: string) => Promise<void>;
  act: (act: (actions: Actions) => Promise<string>) => Promise<string>;
  budget: () => Promise<void>;
}

/** What can be done with records; each returns what to tell the person. */
export interface RecordActions {
  move: (record: MemoryRecord, tier: Tier) => Promise<string>;
  confirm: (record: MemoryRecord) => Promise<string>;
  forget: (record: MemoryRecord) => Promise<string>;
  forgetAll: () => Promise<string>;
}

const lackWords = { tokens: 'no tokens left', items: 'enough items', domain: 'enough of its domain' };

const $ = <Kind extends HTMLElement>(id: string) => document.getElementById(id) as Kind;
const textBox = $<HTMLTextAreaElement>('text');
const budgetBox = $<HTMLInputElement>('budget');

let handlers: Handlers<RecordActions>;

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: { [attribute: string]: string },
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children);
  return element;
}

/** Shows an error as a sentence with its code. */
export function problem(error: unknown) {
  const [code, message] =
    error instanceof ForemindError ? [error.code, error.message] : ['internal', 'Something failed in this page: reload it.'];
  const sentence = message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? '' : '.');
  const dismiss = make('button', { type: 'button', class: 'plain' }, 'Dismiss');
  dismiss.addEventListener('click', () => {
    $('problem').hidden = true;
    textBox.focus();
  });
  $('problem').replaceChildren(make('code', {}, code), sentence, ' ', dismiss);
  $('problem').hidden = false;
  $('problem').scrollIntoView({ block: 'nearest' });
  if (!(error instanceof ForemindError)) console.error(error);
}

let telling: ReturnType<typeof setTimeout>;

/** Tells what became of an action; screen readers read it out. */
function tell(outcome: string, readOutOnly = false) {
  $('outcome').classList.toggle('read-out', readOutOnly);
  $('outcome').textContent = outcome;
  clearTimeout(telling);
  telling = setTimeout(() => tell(''), 8000);
}

/** Runs what a button asked for; a failure is shown and leaves the page as it was. */
async function attempt(work: () => Promise<string | void>) {
  $('problem').hidden = true;
  try {
    const outcome = await work();
    if (outcome !== undefined) tell(outcome);
    return true;
  } catch (error) {
    tell('');
    problem(error);
    return false;
  }
}

export function state(words: { search?: string; durability?: string; requests?: string }) {
  if (words.search !== undefined) $('search-state').textContent = words.search;
  if (words.durability !== undefined) $('durability').textContent = words.durability;
  if (words.requests !== undefined) $('requests').textContent = words.requests;
}

export function loading(loaded: number, total: number) {
  const bar = $<HTMLProgressElement>('loading');
  bar.hidden = total > 0 && loaded >= total;
  if (total > 0) bar.value = loaded / total;
  if (!bar.hidden && total > 0) state({ search: `by words, meaning ${Math.floor((100 * loaded) / total)} %` });
}

export function talk(kind: 'said' | 'asked', text: string, became: string) {
  const line = make('li', { class: kind }, make('p', { class: 'words' }, text), make('p', { class: 'became' }, became));
  $('talk').append(line);
  $('talk').scrollTop = $('talk').scrollHeight;
  tell(became, true);
}

export const budget = () => budgetBox.valueAsNumber;

/** Shows a prompt, and the texts of the first records that found no room in it. */
export function prompt(recalled: Prompt, dropped: string[], question: string | undefined) {
  $('tokens').textContent = `${recalled.tokens} of ${count(recalled.budgetTokens, 'token', 'tokens')}`;
  $('budget-shown').textContent = String(recalled.budgetTokens);
  $('prompt-note').textContent =
    question === undefined
      ? 'No question yet: this much stands in every prompt.'
      : `For “${question}”${recalled.lexicalOnly ? ', searched by words only' : ''}.`;
  const fromProfile = new Set(recalled.profile.map(({ line }) => line.trim()));
  const lines = recalled.prompt.split('\n').map((line, at) => {
    const fact = line.startsWith('- ');
    const kind = fact ? (fromProfile.has(line.trim()) ? 'fact profile' : 'fact') : 'frame';
    return make('span', { class: kind }, at === 0 ? line : `\n${line}`);
  });
  $('prompt').replaceChildren(...(recalled.prompt === '' ? ['The prompt is empty: no tokens are spent.'] : lines));
  const more = recalled.dropped.length - dropped.length;
  $('dropped').replaceChildren(
    ...recalled.dropped.slice(0, dropped.length).map(({ reason, tokens }, at) =>
      make('li', {}, `Left out, ${lackWords[reason]}: ${dropped[at]} (${count(tokens, 'token', 'tokens')})`),
    ),
    ...(more > 0 ? [make('li', {}, `and ${more} more`)] : []),
  );
}

export function records(tier: Tier, shown: MemoryRecord[], total: number) {
  const list = $(tier);
  const focused = document.activeElement instanceof HTMLElement && list.contains(document.activeElement) ? document.activeElement : undefined;
  $(`${tier}-count`).textContent = count(total, 'record', 'records');
  list.replaceChildren(...shown.map(recordItem));
  // A list drawn anew must not throw a keyboard user back to the top of the page.
  if (focused !== undefined) {
    const again = list.querySelector<HTMLElement>(`[data-record="${focused.dataset['record']}"][data-action="${focused.dataset['action']}"]`);
    (again ?? $(`${tier}-title`)).focus();
  }
}

function recordItem(record: MemoryRecord) {
  const { route } = record;
  const other: Tier = route.tier === 'profile' ? 'store' : 'profile';
  const button = (action: string, words: string, work: (actions: RecordActions) => Promise<string>) => {
    const made = make(
      'button',
      { type: 'button', 'data-record': record.id, 'data-action': action, 'aria-label': `${words}: ${record.text}` },
      words,
    );
    made.addEventListener('click', () => attempt(() => handlers.act(work)));
    return made;
  };
  const tags = make(
    'p',
    { class: 'tags' },
    make('span', { class: 'grade' }, gradeWords(route.grade)),
    make('span', {}, plain(route.domain)),
    make('span', {}, ttlWords(route.ttl)),
  );
  if (route.judgement === 'pending') tags.append(make('span', { class: 'mark' }, 'in doubt, so shown'));
  if (record.confirmedMs !== undefined) tags.append(make('span', {}, 'confirmed by you'));
  const offered = [
    button('move', `Move to ${other}`, (actions) => actions.move(record, other)),
    button('forget', 'Forget', (actions) => actions.forget(record)),
  ];
  if (route.judgement === 'pending') offered.unshift(button('confirm', 'That is right', (actions) => actions.confirm(record)));
  return make(
    'li',
    { class: route.grade },
    make('p', { class: 'text' }, record.text),
    tags,
    make('p', { class: 'why' }, whyWords(record)),
    make('div', { class: 'actions' }, ...offered),
  );
}

async function submit(kind: 'say' | 'ask', text: string) {
  if (await attempt(() => handlers[kind](text))) textBox.value = '';
}

function examples(id: string, kind: 'say' | 'ask', sentences: string[]) {
  const items = sentences.map((sentence) => {
    const button = make('button', { type: 'button' }, sentence);
    button.addEventListener('click', () => submit(kind, sentence));
    return make('li', {}, button);
  });
  $(id).replaceChildren(...items);
}

export function connect(given: Handlers<RecordActions>) {
  handlers = given;
  $('form').addEventListener('submit', (event) => {
    event.preventDefault();
    submit('say', textBox.value);
  });
  $('ask').addEventListener('click', () => submit('ask', textBox.value));
  textBox.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit(event.ctrlKey || event.metaKey ? 'ask' : 'say', textBox.value);
  });
  budgetBox.addEventListener('input', () => attempt(handlers.budget));
  const sure = $<HTMLDialogElement>('sure');
  $('forget-all').addEventListener('click', () => sure.showModal());
  sure.addEventListener('close', () => {
    if (sure.returnValue === 'yes') attempt(() => handlers.act((actions) => actions.forgetAll()));
    sure.returnValue = '';
  });
  examples('say-examples', 'say', sayExamples);
  examples('ask-examples', 'ask', askExamples);
}

/** The page waits for the memory; from here on it can be used. */
export function enable() {
  for (const element of document.querySelectorAll<HTMLButtonElement>('[disabled]')) element.disabled = false;
}
