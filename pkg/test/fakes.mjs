// Stand-ins for hosts that are not there in node.

/**
 * The storage of a Durable Object as its documentation describes it: structured clones in and out, at most 128 keys a
 * call, 2 MiB a value with SQLite and 128 KiB without, transactions one after the other and undone when they throw.
 */
export function fakeDurableObject({ sql } = {}) {
  let values = new Map();
  let last = Promise.resolve();
  const largest = sql ? 2 * 1024 * 1024 : 128 * 1024;
  const few = (keys) => {
    if (keys.length > 128) throw new RangeError('Maximum number of keys is 128');
  };
  const on = (map) => ({
    async get(keys) {
      few(keys);
      await tick();
      return new Map(keys.filter((key) => map.has(key)).map((key) => [key, structuredClone(map.get(key))]));
    },
    async put(entries) {
      few(Object.keys(entries));
      const copies = Object.entries(entries).map(([key, value]) => [key, structuredClone(value)]);
      for (const [key, value] of copies) {
        // A view is stored with the buffer behind it.
        if (value.buffer.byteLength + 64 > largest) throw new RangeError(`Values cannot be larger than ${largest} bytes`);
        if (key.length > 2048) throw new RangeError('Keys cannot be larger than 2048 bytes');
      }
      await tick();
      for (const [key, value] of copies) map.set(key, value);
    },
    async delete(keys) {
      few(keys);
      await tick();
      return keys.filter((key) => map.delete(key)).length;
    },
  });
  return {
    ...(sql ? { sql } : {}),
    get: (keys) => on(values).get(keys),
    put: (entries) => on(values).put(entries),
    delete: (keys) => on(values).delete(keys),
    async list({ prefix, limit, startAfter = '' }) {
      const names = [...values.keys()].filter((key) => key.startsWith(prefix) && key > startAfter).sort().slice(0, limit);
      return new Map(names.map((key) => [key, structuredClone(values.get(key))]));
    },
    transaction(work) {
      const turn = last.then(async () => {
        const copy = new Map(values);
        const result = await work(on(copy));
        values = copy;
        return result;
      });
      last = turn.catch(() => {});
      return turn;
    },
    async sync() {},
    /** What is stored, for tests that look at it. */
    stored: () => values,
  };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));
