import type { StartCore } from './glue.js';
import type { WorkerLike } from './rpc/client.js';

/** A compiled module, or nothing where the worker has to load its own. */
export type Compiled = Promise<WebAssembly.Module | undefined>;

// Written so that bundlers find the file.
const load = () => fetch(new URL('./foremind_core_bg.wasm', import.meta.url));

/** Makes the core from a module that was compiled elsewhere, or else from its file. */
export function coreFrom(compiled: Compiled = Promise.resolve(undefined)): StartCore {
  return () => {
    const module = compiled.then((found) => found ?? load());
    // Its failure is met when the bindings use it.
    module.catch(() => {});
    return (bindings) => bindings.default({ module_or_path: module });
  };
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** Compiles the core while a worker starts, which takes as long, and hands it over; all workers of a page share it. */
export function withCore(worker: WorkerLike): WorkerLike {
  if (!compiled) {
    compiled = WebAssembly.compileStreaming(load());
    // The worker says what is wrong when it fails as well; the next one tries again.
    compiled.catch(() => (compiled = undefined));
  }
  compiled.then(
    (module) => worker.postMessage({ type: 'core', module }),
    () => worker.postMessage({ type: 'core' }),
  );
  return worker;
}
