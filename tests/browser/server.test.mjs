// The server by itself: every answer is strict, and no path leads out of the folder.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { headers, serve } from '../../www/server.mjs';

let folder;
let server;

// fetch would tidy the path before it is sent.
function get(path, method = 'GET') {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'foremind-server-'));
  await mkdir(join(folder, 'root/assets'), { recursive: true });
  await mkdir(join(folder, 'root-beside'));
  await writeFile(join(folder, 'root/index.html'), '<!doctype html>');
  await writeFile(join(folder, 'root/assets/core-abc.wasm'), 'wasm');
  await writeFile(join(folder, 'root/assets/worker-abc.js'), 'js');
  await writeFile(join(folder, 'root/sw.js'), 'js');
  await writeFile(join(folder, 'secret.txt'), 'secret');
  await writeFile(join(folder, 'root-beside/secret.txt'), 'secret');
  await symlink(join(folder, 'secret.txt'), join(folder, 'root/link.txt'));
  server = await serve({ mounts: { '/': join(folder, 'root') } });
});

after(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

test('every answer carries the strict headers, errors and worker scripts too', async () => {
  const answers = await Promise.all([
    get('/'),
    get('/assets/worker-abc.js'),
    get('/sw.js'),
    get('/absent'),
    get('/%zz'),
    get('/', 'POST'),
    get('/', 'HEAD'),
  ]);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 404, 400, 405, 200]);
  for (const answer of answers) {
    for (const [name, value] of Object.entries(headers)) assert.equal(answer.headers[name.toLowerCase()], value);
  }
  assert.match(headers['Content-Security-Policy'], /^default-src 'none'; /);
  assert.doesNotMatch(headers['Content-Security-Policy'], /unsafe-inline|'unsafe-eval'|https?:|\*/);
});

test('no path leads out of the folder', async () => {
  const paths = [
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/..%2fsecret.txt',
    '/assets/../../secret.txt',
    '/../root-beside/secret.txt',
    '/link.txt',
    '//secret.txt',
    '/%00',
    '/assets',
    '/assets/',
    `/${folder}/secret.txt`,
  ];
  for (const path of paths) {
    const { status, body } = await get(path);
    assert.equal(status, 404, path);
    assert.doesNotMatch(body, /secret/, path);
  }
});

test('types and caching are those that the page needs', async () => {
  const wasm = await get('/assets/core-abc.wasm?query');
  assert.equal(wasm.headers['content-type'], 'application/wasm');
  assert.match(wasm.headers['cache-control'], /immutable/);
  assert.equal((await get('/')).headers['content-type'], 'text/html; charset=utf-8');
  assert.equal((await get('/')).headers['cache-control'], 'no-cache');
  assert.equal((await get('/assets/worker-abc.js')).headers['content-type'], 'text/javascript; charset=utf-8');
});
