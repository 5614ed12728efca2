// The part of the platform's own module used here.
declare module 'cloudflare:workers' {
  export class DurableObject<Env = unknown> {
    protected ctx: {
      readonly storage: import('./stores/durable-object.js').DurableObjectStorageLike & { deleteAll(): Promise<void> };
      waitUntil(work: Promise<unknown>): void;
    };
    protected env: Env;
    constructor(ctx: unknown, env: Env);
  }
}

declare module '*.txt' {
  const text: string;
  export default text;
}

declare module '*.wasm' {
  const module: WebAssembly.Module;
  export default module;
}
