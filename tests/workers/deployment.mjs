// The Worker as the template deploys it, and short ways to ask it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const DIST = new URL('../../pkg/dist/', import.meta.url);
/** Base64url of 32 bytes that are all `byte`. */
export const secret = (byte) => Buffer.alloc(32, byte).toString('base64url');
export const config = {
  master: secret(1),
  serviceKeys: [{ kid: 's1', secret: secret(11) }],
  grantKeys: [{ alg: 'HS256', kid: 'h1', secret: secret(21) }, { alg: 'EdDSA', kid: 'e1', seed: secret(31) }],
  signingKid: 'e1',
};
export const KEY = `Bearer key.s1.${secret(11)}`;
export const NUTS = 'I am allergic to tree nuts.';

/** The modules that the entry reaches, as a bundler would find them; `index` stands in for the template's own. */
export async function modules(index) {
  const template = index ?? (await readFile(new URL('../../templates/workers/src/index.js', import.meta.url), 'utf8'));
  const found = [{ type: 'ESModule', path: 'index.js', contents: template.replace('foremind/workers', './workers.js') }];
  const seen = new Set();
  const queue = ['workers.js'];
  for (let path; (path = queue.pop()); ) {
    if (seen.has(path)) continue;
    seen.add(path);
    if (path.endsWith('.wasm')) {
      found.push({ type: 'CompiledWasm', path, contents: await readFile(new URL(path, DIST)) });
      continue;
    }
    const contents = await readFile(new URL(path, DIST), 'utf8');
    if (path.endsWith('.txt')) {
      found.push({ type: 'Text', path, contents });
      continue;
    }
    found.push({ type: 'ESModule', path, contents });
    for (const [, name] of contents.matchAll(/(?:from|import)\s*\(?['"](\.[^'"]+)['"]/g)) {
      queue.push(new URL(name, new URL(path, 'file:///')).pathname.slice(1));
    }
  }
  return found;
}

/** What Miniflare is told of every deployment. */
export const deployment = async (index) => ({
  modules: await modules(index),
  modulesRoot: '/',
  compatibilityDate: '2026-04-01',
  bindings: { FOREMIND_CONFIG: JSON.stringify(config) },
  durableObjects: { MEMORIES: { className: 'MemoryObject', useSQLite: true }, DIRECTORY: { className: 'DirectoryObject', useSQLite: true } },
});

/** Asks a deployment. */
export class Desk {
  constructor(host) {
    this.host = host;
  }

  async ask(line, authorization, body) {
    const [method, target] = line.split(' ');
    const response = await this.host.dispatchFetch(`http://service${target}`, {
      method,
      headers: { ...(authorization && { authorization }), ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') && !response.headers.get('content-type').includes('ndjson');
    return { status: response.status, headers: response.headers, text, answer: isJson ? JSON.parse(text) : undefined };
  }

  async grant(body) {
    const { status, answer } = await this.ask('POST /v1/grants', KEY, body);
    assert.equal(status, 201, JSON.stringify(answer));
    return `Bearer ${answer.grant}`;
  }

  async tell(tenant, user, turn, text) {
    const { status, answer } = await this.ask('POST /v1/turns', KEY, { tenant, user, thread: 't', turn, text });
    assert.equal(status, 200, JSON.stringify(answer));
    return answer;
  }
}
