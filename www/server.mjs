// A static server for the built page, without dependencies. It exists to send the strict headers that the page
// is meant to run under: copy the header list into the configuration of whatever serves your own page.
//
//   node server.mjs [--port 5180] [--host 127.0.0.1] [--root dist]

import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, extname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

/** Sent with every response, because workers do not inherit the policy of the page that starts them. */
export const headers = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'", // compiling WebAssembly, and no other kind of eval
    "worker-src 'self'",
    "connect-src 'self'", // the wasm modules and the model; nothing else is ever fetched
    "style-src 'self'",
    "font-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
};

const types = {
  '.css': 'text/css; charset=utf-8',
  '.fmpack': 'application/octet-stream',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm', // what WebAssembly.compileStreaming insists on
  '.woff2': 'font/woff2',
};

function caching(path) {
  // Vite names these by their content, so a changed file has another address.
  if (path.startsWith('/assets/')) return 'public, max-age=31536000, immutable';
  // Within the hour the browser's own look for a newer service worker is answered by its cache.
  if (path === '/sw.js') return 'max-age=3600';
  return 'no-cache';
}

/** The file that a request path names, or nothing when it names none inside the folder. */
async function locate(mounts, path) {
  if (path.includes('\0')) return undefined;
  const prefix = Object.keys(mounts)
    .filter((candidate) => path.startsWith(candidate))
    .sort((a, b) => b.length - a.length)[0];
  if (prefix === undefined) return undefined;
  const rest = path.slice(prefix.length);
  try {
    const root = await realpath(mounts[prefix]);
    // Resolved first, compared afterwards: neither `..` nor a symbolic link leads out of the folder.
    const file = await realpath(join(root, rest.endsWith('/') || rest === '' ? `${rest}index.html` : rest));
    if (!file.startsWith(root + sep)) return undefined;
    const found = await stat(file);
    return found.isFile() ? { file, bytes: found.size } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Starts the server. `mounts` maps path prefixes that end in `/` to folders; `onRequest` hears every request;
 * `reportUri` is where browsers report what the policy stopped. Port 0 takes a free one. Resolves to `{ url, close }`
 * once it listens.
 */
export async function serve({
  mounts = { '/': join(here, 'dist') },
  port = 0,
  host = '127.0.0.1',
  onRequest,
  reportUri,
} = {}) {
  const policy = headers['Content-Security-Policy'];
  const always = reportUri === undefined ? headers : { ...headers, 'Content-Security-Policy': `${policy}; report-uri ${reportUri}` };
  const server = createServer(async (request, response) => {
    onRequest?.(request);
    const plain = (status, text, more = {}) => {
      response.writeHead(status, { ...always, 'Content-Type': types['.txt'], 'Cache-Control': 'no-store', ...more });
      response.end(request.method === 'HEAD' ? undefined : `${text}\n`);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      plain(405, 'Only GET and HEAD are served.', { Allow: 'GET, HEAD' });
      return;
    }
    let path;
    try {
      path = decodeURIComponent(request.url.split(/[?#]/, 1)[0]);
    } catch {
      plain(400, 'The address is not valid percent-encoding.');
      return;
    }
    const found = await locate(mounts, path);
    if (found === undefined) {
      plain(404, 'There is nothing at this address.');
      return;
    }
    response.writeHead(200, {
      ...always,
      'Content-Type': types[extname(found.file)] ?? 'application/octet-stream',
      'Content-Length': found.bytes,
      'Cache-Control': caching(path),
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    createReadStream(found.file)
      .on('error', () => response.destroy())
      .pipe(response);
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const shown = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shown}:${server.address().port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

function option(name, otherwise) {
  const at = process.argv.indexOf(name);
  if (at < 0) return otherwise;
  const value = process.argv[at + 1];
  if (value === undefined || value.startsWith('--')) {
    console.error(`${name} needs a value.`);
    process.exit(2);
  }
  return value;
}

if (process.argv[1] && import.meta.url === pathToFileURL(await realpath(process.argv[1])).href) {
  const port = Number(option('--port', '5180'));
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    console.error('--port takes a number from 0 to 65535.');
    process.exit(2);
  }
  const root = option('--root', join(here, 'dist'));
  try {
    await stat(join(root, 'index.html'));
  } catch {
    console.error(`There is no index.html in ${root}: build the page first (cargo xtask build).`);
    process.exit(2);
  }
  try {
    const { url } = await serve({ mounts: { '/': root }, port, host: option('--host', '127.0.0.1') });
    console.log(url);
  } catch (error) {
    console.error(error.code === 'EADDRINUSE' ? `Port ${port} is taken: choose another with --port.` : error.message);
    process.exit(1);
  }
}
