import type { Memory } from 'foremind';

/**
 * Counts what the page and the memory's worker fetch from now on. Both are needed: a page does not see the
 * requests of its workers.
 */
export async function requestsSinceLoad(memory: Memory, show: (requests: number) => void) {
  const before = await memory.requests();
  let page = 0;
  let worker = 0;
  new PerformanceObserver((list) => {
    page += list.getEntries().length;
    show(page + worker);
  }).observe({ type: 'resource' });
  const look = async () => {
    worker = (await memory.requests()) - before;
    show(page + worker);
  };
  await look();
  setInterval(() => look().catch(() => undefined), 2000);
}
