// What every store must do, by what it says that it can. Runs wherever a store runs (node, browsers, workerd), so it
// imports nothing. `context` gives stores: `open()` another instance on the same bytes, `empty()` an instance on bytes of
// its own, both ready to use; `forgets` says that a closed store's bytes are gone with its last instance.

const VALUE_BYTES = 1_044_480;
const TOKEN_BYTES = 32;

function fail(message) {
  throw new Error(message);
}

function same(found, expected, what) {
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  if (one !== other) fail(`${what}: expected ${other}, found ${one}`);
}

const name = (number) => number.toString(16).padStart(32, '0');
const text = (value) => (value === undefined ? undefined : new TextDecoder().decode(value));
const bytes = (words) => new TextEncoder().encode(words);

/** A head of a generation: a token of 32 bytes, then words. */
const token = (generation) => bytes(`token ${generation}`.padEnd(TOKEN_BYTES, '.'));
const head = (generation) => bytes(`${text(token(generation))} manifest ${generation}`);
const generationOf = (value) => Number(/manifest (\d+)$/.exec(text(value))[1]);

/** Bytes that do not compress and tell where they came from. */
function noise(length, seed) {
  const made = new Uint8Array(length);
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    made[at] = state >>> 24;
  }
  return made;
}

function sameBytes(found, expected, what) {
  if (found === undefined) fail(`${what}: absent`);
  if (!(found instanceof Uint8Array)) fail(`${what}: not a Uint8Array`);
  if (found.length !== expected.length) fail(`${what}: ${found.length} bytes instead of ${expected.length}`);
  for (let at = 0; at < expected.length; at += 1) if (found[at] !== expected[at]) fail(`${what}: another byte at ${at}`);
}

const first = (more = []) => ({ puts: [['head', head(1)], ['key', bytes('wrapped')], ...more], deletes: [], strict: true });
const next = (from, puts = [], deletes = []) => ({ expectedHead: token(from), puts: [['head', head(from + 1)], ...puts], deletes, strict: from % 2 === 0 });

async function created(store, more) {
  same(await store.commit(first(more)), true, 'the first commit');
}

/** Adds one to the head's generation, however often somebody else is faster. Returns how often that was. */
async function increment(store, puts = () => []) {
  for (let lost = 0; ; lost += 1) {
    const [current] = await store.read(['head']);
    const from = generationOf(current);
    if (await store.commit(next(from, puts(from + 1)))) return lost;
    if (lost > 10_000) fail('nobody gets on');
  }
}

async function rejects(work, what) {
  try {
    await work();
  } catch (error) {
    if (error.name !== 'ForemindError' || typeof error.code !== 'string') fail(`${what}: not typed: ${error}`);
    return error.code;
  }
  return fail(`${what}: accepted`);
}

/** `needs` names capabilities; a case runs on stores that have them all. */
export const cases = [
  {
    name: 'an empty store answers undefined for each key, in order',
    needs: [],
    async run({ empty }) {
      const store = await empty();
      same((await store.read(['head', 'key', name(1), name(1)])).map((value) => value === undefined), [true, true, true, true], 'values');
    },
  },
  {
    name: 'values come back in the order asked, also when asked twice',
    needs: ['readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      await created(store, [[name(2), bytes('two')], [name(1), bytes('one')]]);
      same((await store.read([name(2), 'key', name(3), name(1), name(2), 'head'])).map(text),
        ['two', 'wrapped', undefined, 'one', 'two', text(head(1))], 'values');
    },
  },
  {
    name: 'a memory is made once: a second creation is refused and leaves no trace',
    needs: ['cas'],
    async run({ open, empty }) {
      const store = await empty();
      await created(store, [[name(1), bytes('one')]]);
      const other = await open();
      same(await other.commit({ puts: [['head', head(7)], ['key', bytes('other')], [name(1), bytes('other')], [name(7), bytes('x')]], deletes: [], strict: false }), false, 'the second creation');
      same((await store.read(['head', 'key', name(1), name(7)])).map(text), [text(head(1)), 'wrapped', 'one', undefined], 'values');
    },
  },
  {
    name: 'a commit on another head is refused and leaves no trace',
    needs: ['cas', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      same(await store.commit(next(1, [[name(1), bytes('x')]])), false, 'a commit where nothing is');
      await created(store, [[name(1), bytes('one')]]);
      same(await store.commit(next(1, [[name(2), bytes('two')]], [name(1)])), true, 'on head 1');
      for (const stale of [0, 1, 3]) {
        const batch = next(stale, [[name(9), bytes('x')], ['key', bytes('x')]], [name(2)]);
        same(await store.commit(batch), false, `on head ${stale}`);
      }
      same((await store.read(['head', 'key', name(1), name(2), name(9)])).map(text), [text(head(2)), 'wrapped', undefined, 'two', undefined], 'values');
    },
  },
  {
    name: 'the same head cannot be left twice, even for the same place',
    needs: ['cas', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      await created(store);
      same(await store.commit(next(1, [[name(1), bytes('one')]])), true, 'once');
      same(await store.commit(next(1, [[name(1), bytes('two')]])), false, 'twice');
      same(text((await store.read([name(1)]))[0]), 'one', 'value');
    },
  },
  {
    name: 'the key can be replaced, and deleting what is absent is nothing',
    needs: ['cas', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      await created(store);
      same(await store.commit(next(1, [['key', bytes('wrapped again')]], [name(5), name(6)])), true, 'commit');
      same((await store.read(['head', 'key'])).map(text), [text(head(2)), 'wrapped again'], 'values');
    },
  },
  {
    name: 'values of every size up to the limit come back byte by byte, longer and shorter ones replaced',
    needs: ['readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      await created(store);
      const sizes = [0, 1, 2, 127 * 1024 - 3, 127 * 1024 - 2, 127 * 1024 - 1, 127 * 1024, 131_071, 131_072, 262_144, 1_044_479, VALUE_BYTES];
      let generation = 1;
      for (const [at, size] of [...sizes, ...sizes.toReversed?.() ?? [...sizes].reverse()].entries()) {
        const value = noise(size, at);
        same(await store.commit(next(generation, [['spare', value], [name(2 + at), value]])), true, `${size} bytes`);
        generation += 1;
        const [one, other] = await store.read(['spare', name(2 + at)]);
        sameBytes(one, value, `${size} bytes, replaced`);
        sameBytes(other, value, `${size} bytes, new`);
      }
      for (const [at, size] of [...sizes, ...[...sizes].reverse()].entries()) sameBytes((await store.read([name(2 + at)]))[0], noise(size, at), `${size} bytes, later`);
      same(await store.commit(next(generation, [], ['spare', name(2), name(12)])), true, 'delete');
      same((await store.read(['spare', name(2), name(12)])).every((value) => value === undefined), true, 'deleted');
    },
  },
  {
    name: 'what many commits write is there for every instance, and goes when it is deleted',
    needs: ['atomicBatch', 'cas', 'readAfterWrite'],
    async run({ empty, open, forgets }) {
      const stores = [await empty(), await open()];
      await created(stores[0]);
      const small = (at) => noise(300 + at, at);
      const large = (at) => noise(at % 7 === 0 ? 70_000 : 20_000, 1000 + at);
      const commits = 45;
      for (let at = 1; at <= commits; at += 1) {
        const store = stores[at % 3 === 0 ? 1 : 0];
        // Each replaces a long value, and every fifteenth puts one in the place of all short ones.
        const folded = at % 15 === 0 ? Array.from({ length: 14 }, (_, back) => name(at - 14 + back)) : [];
        const puts = [[name(at), folded.length > 0 ? noise(30_000, at) : small(at)], [name(1000 + at), large(at)]];
        same(await store.commit(next(at, puts, at > 1 ? [name(999 + at), ...folded] : [])), true, `commit ${at}`);
      }
      const left = Array.from({ length: commits }, (_, at) => name(at + 1));
      const check = async (store) => {
        const values = await store.read([...left, name(1000 + commits), name(999 + commits)]);
        for (const [at, value] of values.slice(0, commits).entries()) {
          if ((at + 1) % 15 === 0) sameBytes(value, noise(30_000, at + 1), `a fold, ${at + 1}`);
          else same(value === undefined, true, `folded, ${at + 1}`);
        }
        sameBytes(values[commits], large(commits), 'the last long value');
        same(values[commits + 1] === undefined, true, 'the one before it is gone');
        if (store.list) same((await store.list()).length, 6, 'names');
      };
      for (const store of stores) await check(store);
      if (forgets) return;
      for (const store of stores) await store.close();
      await check(await open());
    },
  },
  {
    name: 'bytes are copied in and out: a view takes nothing else along, a later change changes nothing',
    needs: ['readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      const large = noise(4096, 3);
      const view = large.subarray(1000, 1010);
      const expected = view.slice();
      await created(store, [[name(1), view]]);
      large.fill(0);
      const [once] = await store.read([name(1)]);
      sameBytes(once, expected, 'read once');
      once.fill(1);
      sameBytes((await store.read([name(1)]))[0], expected, 'read twice');
    },
  },
  {
    name: 'a batch of 140 values and 140 deletions is one commit',
    needs: ['atomicBatch', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      const all = Array.from({ length: 140 }, (_, at) => name(1000 + at));
      await created(store, all.map((key) => [key, bytes(`old ${key}`)]));
      const fresh = Array.from({ length: 140 }, (_, at) => [name(5000 + at), bytes(`new ${at}`)]);
      same(await store.commit(next(7, fresh, all)), false, 'on a wrong head');
      same((await store.read(all)).every((value, at) => text(value) === `old ${all[at]}`), true, 'all old values');
      same(await store.commit(next(1, fresh, all)), true, 'on the right head');
      same((await store.read(all)).every((value) => value === undefined), true, 'all old ones deleted');
      same((await store.read(fresh.map(([key]) => key))).every((value, at) => text(value) === `new ${at}`), true, 'all new ones there');
    },
  },
  {
    name: 'eight writers in two instances: every increment counts, once',
    needs: ['cas', 'readAfterWrite'],
    async run({ empty, open }) {
      const stores = [await empty(), await open()];
      await created(stores[0]);
      await Promise.all(Array.from({ length: 8 }, async (_, writer) => {
        for (let turn = 0; turn < 4; turn += 1) await increment(stores[writer % 2], (generation) => [[name(generation), bytes(`by ${writer}`)]]);
      }));
      const [current, ...values] = await stores[1].read(['head', ...Array.from({ length: 32 }, (_, at) => name(at + 2))]);
      same(generationOf(current), 33, 'generation');
      const by = values.map(text);
      for (let writer = 0; writer < 8; writer += 1) same(by.filter((who) => who === `by ${writer}`).length, 4, `commits of writer ${writer}`);
    },
  },
  {
    name: 'two creators at once: one makes it, and what is there is of one of them',
    needs: ['cas'],
    async run({ empty, open }) {
      const stores = [await empty(), await open()];
      const made = await Promise.all(stores.map((store, at) =>
        store.commit({ puts: [['head', head(10 + at)], ['key', bytes(`key ${at}`)]], deletes: [], strict: true })));
      same(made.filter((won) => won).length, 1, 'creators');
      const winner = made.indexOf(true);
      same((await stores[0].read(['head', 'key'])).map(text), [text(head(10 + winner)), `key ${winner}`], 'values');
    },
  },
  {
    name: 'what one instance acknowledged, another reads at once',
    needs: ['readAfterWrite'],
    async run({ empty, open }) {
      const [one, other] = [await empty(), await open()];
      await created(one);
      for (let generation = 1; generation <= 10; generation += 1) {
        const [writer, reader] = generation % 2 === 0 ? [one, other] : [other, one];
        same(await writer.commit(next(generation, [[name(generation), bytes(`value ${generation}`)]])), true, 'commit');
        const [current, value] = await reader.read(['head', name(generation)]);
        same([generationOf(current), text(value)], [generation + 1, `value ${generation}`], 'read');
      }
    },
  },
  {
    name: 'a reader beside a writer never sees half of a batch',
    needs: ['atomicBatch', 'cas', 'readAfterWrite'],
    async run({ empty, open }) {
      const [writer, reader] = [await empty(), await open()];
      const turns = 20;
      const values = (generation) => [['key', bytes(`of ${generation}`)], ...Array.from({ length: 4 }, (_, at) => [name(10 * generation + at), bytes(`of ${generation}`)])];
      const all = Array.from({ length: turns + 1 }, (_, at) => values(at + 1).slice(1).map(([key]) => key)).flat();
      same(await writer.commit({ puts: [['head', head(1)], ...values(1)], deletes: [], strict: true }), true, 'the first commit');
      let done = false;
      const reading = (async () => {
        while (!done) {
          const [current, key, ...found] = await reader.read(['head', 'key', ...all]);
          const generation = generationOf(current);
          same(text(key), `of ${generation}`, 'the key beside its head');
          for (const [at, value] of found.entries()) same(value !== undefined, at < 4 * generation, `value ${at} beside head ${generation}`);
        }
      })();
      for (let turn = 0; turn < turns; turn += 1) await increment(writer, values);
      done = true;
      await reading;
    },
  },
  {
    name: 'all names can be listed, and no others',
    needs: ['list', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      same(await store.list(), [], 'an empty store');
      await created(store, [[name(1), noise(400_000, 1)], [name(2), bytes('two')]]);
      same((await store.list()).sort(), [name(1), name(2), 'head', 'key'], 'names');
      same(await store.commit(next(1, Array.from({ length: 40 }, (_, at) => [name(100 + at), bytes('x')]), [name(2)])), true, 'commit');
      same((await store.list()).length, 43, 'after a commit');
    },
  },
  {
    name: 'closed and opened again: everything is there',
    needs: ['readAfterWrite'],
    async run({ empty, open, forgets }) {
      if (forgets) return;
      const store = await empty();
      await created(store, [[name(1), noise(300_000, 5)]]);
      same(await store.commit({ ...next(1, [[name(2), bytes('two')]]), strict: false }), true, 'commit');
      await store.close();
      const again = await open();
      const [current, key, one, two] = await again.read(['head', 'key', name(1), name(2)]);
      same([text(current), text(key), text(two)], [text(head(2)), 'wrapped', 'two'], 'values');
      sameBytes(one, noise(300_000, 5), 'a long value');
    },
  },
  {
    name: 'a store that is closed refuses with a code',
    needs: [],
    async run({ empty, forgets }) {
      if (forgets) return;
      const store = await empty();
      await created(store);
      await store.close();
      const codes = [await rejects(() => store.read(['head']), 'read'), await rejects(() => store.commit(next(1)), 'commit')];
      same(codes, ['storage-lost', 'storage-lost'], 'codes');
    },
  },
  {
    name: 'room, where it is told, is in bytes and never negative',
    needs: [],
    async run({ empty }) {
      const store = await empty();
      const room = (await store.room?.()) ?? {};
      for (const [what, value] of Object.entries(room)) if (!Number.isFinite(value) || value < 0) fail(`${what} is ${value}`);
      same(Object.keys(room).every((what) => ['usedBytes', 'quotaBytes'].includes(what)), true, 'names');
    },
  },
  {
    name: 'a replacement asks for no head, and is one commit',
    needs: ['atomicBatch', 'readAfterWrite'],
    async run({ empty }) {
      const store = await empty();
      await created(store, [[name(1), bytes('one')]]);
      await store.replace([['head', head(9)], ['key', bytes('again')], [name(2), noise(200_000, 2)]], [name(1)]);
      same((await store.read(['head', 'key', name(1)])).map(text), [text(head(9)), 'again', undefined], 'values');
      sameBytes((await store.read([name(2)]))[0], noise(200_000, 2), 'a long value');
      same(await store.commit(next(1)), false, 'on the head before');
      same(await store.commit(next(9)), true, 'on the new head');
      await store.replace([], ['head', 'key', name(2)]);
      await created(store);
    },
  },
  {
    name: 'the numbers of a ticket counter are given once each',
    needs: ['ticket'],
    async run({ empty, open }) {
      const stores = [await empty(), await open()];
      const numbers = await Promise.all(Array.from({ length: 40 }, (_, at) => stores[at % 2].ticket()));
      same(new Set(numbers).size, 40, 'numbers');
    },
  },
];

/** The cases of a store with these capabilities. */
export const casesFor = (capabilities) => cases.filter(({ needs }) => needs.every((need) => capabilities[need]));
