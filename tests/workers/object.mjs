// Runs inside of workerd: a Durable Object that runs the store suite on its own storage.
import { DurableObject } from 'cloudflare:workers';

import { casesFor } from './conformance.mjs';
import { DurableObjectStore } from './durable-object.js';

class Kit extends DurableObject {
  /** Into how many stored parts 300,000 bytes are divided. */
  async parts() {
    const store = new DurableObjectStore(this.ctx.storage, 'parts');
    await store.commit({ puts: [['head', new Uint8Array(32)], ['key', new Uint8Array(300_000)]], deletes: [], strict: true });
    return [...(await this.ctx.storage.list({ prefix: 'foremind:parts:key' })).keys()].length;
  }

  async fetch(request) {
    const wanted = new URL(request.url).searchParams;
    const open = async () => new DurableObjectStore(this.ctx.storage);
    const { capabilities } = await open();
    const cases = casesFor(capabilities);
    const name = wanted.get('case');
    if (name === null) return Response.json({ capabilities, cases: cases.map((one) => one.name), parts: await this.parts() });
    try {
      await cases.find((one) => one.name === name).run({ empty: open, open, forgets: false });
      return Response.json({ passed: true });
    } catch (error) {
      return Response.json({ passed: false, message: `${error?.stack ?? error}` });
    }
  }
}

export class SqliteKit extends Kit {}
export class KeyValueKit extends Kit {}

/** `/sqlite?case=...` or `/key-value?case=...`; every case has an object of its own. */
export default {
  fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const objects = pathname === '/sqlite' ? env.SQLITE : env.KEY_VALUE;
    return objects.get(objects.idFromName(searchParams.get('case') ?? 'none')).fetch(request);
  },
};
