// The story of examples/story.txt, told to the package's core on any JavaScript host, with the clock of examples/README.md. What comes out must
// be what the native engine prints.

/** When it begins; each line takes a second. */
export const START_MS = 1795910400000;

/** A clock in place of the host's own: `at` is what it shows. */
export function clock(RealDate) {
  const state = { at: START_MS };
  class Clock extends RealDate {
    constructor(...given) {
      if (given.length === 0) super(state.at);
      else super(...given);
    }
    static now() {
      return state.at;
    }
    getTimezoneOffset() {
      return 0;
    }
  }
  return { Clock, state };
}

/** `remember` and `recall` are the host's own; `tick` lets a second pass. */
export async function tell(story, { remember, recall, tick }) {
  let printed = '';
  for (const line of story.split('\n')) {
    await tick();
    const text = line.slice(line.indexOf(' ') + 1);
    if (line.startsWith('tell ')) await remember(text);
    if (line.startsWith('ask ')) printed += `PROMPT: ${text}\n${await recall(text)}\n`;
  }
  return printed;
}

/** The same on the package's parts, which every JavaScript host has: a core, a session, a store in memory. */
export async function tellCore({ core, Session, HostKey, MemoryStore, story }, { Clock, state }) {
  const RealDate = globalThis.Date;
  globalThis.Date = Clock;
  try {
    const scope = { user: 'ada' };
    const session = await Session.open({ core, store: new MemoryStore(), keys: new HostKey(new Uint8Array(32).fill(7)) });
    return await tell(story, {
      remember: (text) => session.call({ verb: 'remember', scope, text }),
      recall: async (query) => (await session.call({ verb: 'recall', scope, query, budgetTokens: 512, audience: 'device' })).prompt,
      tick: () => (state.at += 1000),
    });
  } finally {
    globalThis.Date = RealDate;
  }
}
