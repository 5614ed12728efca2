// The service worker of the demo, not of foremind: it keeps the page's own files so that the page opens without a
// network. It sees requests for files only; what is told to the memory never passes through it.

// The build puts the list of its files here, and a hash of it: one cache for each build.
const files = __FILES__;
const cacheName = `foremind-demo-${__BUILD__}`;

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  const removeOldBuilds = async () => {
    const old = (name) => name.startsWith('foremind-demo-') && name !== cacheName;
    await Promise.all((await caches.keys()).filter(old).map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(removeOldBuilds());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || new URL(request.url).origin !== self.location.origin) return;
  const kept = () => caches.match(request, { ignoreSearch: request.mode === 'navigate' });
  // The page itself from the network first, so that a new build shows; everything else carries a hash in its name.
  event.respondWith(
    request.mode === 'navigate'
      ? fetch(request).catch(async () => (await kept()) ?? Response.error())
      : kept().then((found) => found ?? fetch(request)),
  );
});
