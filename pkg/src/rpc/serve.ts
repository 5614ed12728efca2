import type { Compiled } from '../browser-core.js';
import type { BrowserOptions, PartsOf } from '../browser-parts.js';
import type { CoreRequest } from '../core.js';
import { toPlain } from '../errors.js';
import { Session, once } from '../session.js';
import type { FromWorker, ToWorker } from './messages.js';

/** The part of `DedicatedWorkerGlobalScope` used here. */
interface Port {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

/** The worker's side of one memory. `partsWith` makes its parts from the core that the page hands over. */
export function serveMemory(partsWith: (core: Compiled) => PartsOf): void {
  let handOver!: (core: WebAssembly.Module | undefined) => void;
  const parts = partsWith(new Promise((resolve) => (handOver = resolve)));
  const port = globalThis as unknown as Port;
  const calls = new Map<number, AbortController>();
  let session: Promise<Session> | undefined;

  port.onmessage = ({ data: message }) => {
    switch (message.type) {
      case 'open':
        session = open(message.options, message.existing);
        return;
      case 'core':
        handOver(message.module);
        return;
      case 'once':
        void answer(message.options, message.request);
        return;
      case 'call':
        void call(message.id, message.request);
        return;
      case 'abort':
        calls.get(message.id)?.abort();
        return;
      case 'close':
        void close();
        return;
    }
  };

  /** What is made of the options keeps a copy of the key; the one that crossed is zeroed. */
  async function partsOf(options: BrowserOptions): ReturnType<PartsOf> {
    try {
      return await parts(options);
    } finally {
      if (options.key instanceof Uint8Array) options.key.fill(0);
    }
  }

  async function answer(options: BrowserOptions, request: CoreRequest): Promise<void> {
    try {
      port.postMessage({ type: 'answered', response: await once(await partsOf(options), request) });
    } catch (error) {
      port.postMessage({ type: 'refused', error: toPlain(error) });
    }
  }

  async function open(options: BrowserOptions, existing: boolean): Promise<Session> {
    try {
      const opened = await Session.open(await partsOf(options), existing);
      opened.onevent = (event) => port.postMessage({ type: 'event', event });
      port.postMessage({ type: 'opened', created: opened.created, durability: opened.durability });
      opened.ready.then(
        (readiness) => port.postMessage({ type: 'ready', readiness }),
        (error: unknown) => port.postMessage({ type: 'not-ready', error: toPlain(error) }),
      );
      return opened;
    } catch (error) {
      port.postMessage({ type: 'refused', error: toPlain(error) });
      // The page ends this worker; calls that crossed on the way are not answered twice.
      return new Promise(() => {});
    }
  }

  async function call(id: number, request: CoreRequest): Promise<void> {
    const controller = new AbortController();
    calls.set(id, controller);
    try {
      const opened = await session;
      if (!opened) return;
      port.postMessage({ type: 'answer', id, response: await opened.call(request, controller.signal) });
    } catch (error) {
      port.postMessage({ type: 'failure', id, error: toPlain(error) });
    } finally {
      calls.delete(id);
    }
  }

  async function close(): Promise<void> {
    await (await session)?.close();
    port.postMessage({ type: 'closed' });
  }
}
