import { Core, type CoreGlue } from './core.js';
import type { EmbedGlue } from './embedder.js';
import { ForemindError, fromPlain, isPlainError } from './errors.js';

type CoreBindings = typeof import('./foremind_core.js');

/** Begins to load the core's module; what it returns makes the instance when its bindings are there. */
export type StartCore = () => (bindings: CoreBindings) => Promise<unknown>;

/** How an environment makes instances of the two modules. Each is made once for each realm, on first use. */
export class Modules {
  readonly #startCore: StartCore;
  readonly #initEmbed: () => Promise<EmbedGlue>;
  readonly #readData: () => Promise<string>;
  #core: Promise<Core> | undefined;
  #embed: Promise<EmbedGlue> | undefined;

  /** `readData` gives the router's data file, which stands beside the core. */
  constructor(startCore: StartCore, readData: () => Promise<string>, initEmbed: () => Promise<EmbedGlue>) {
    this.#startCore = startCore;
    this.#readData = readData;
    this.#initEmbed = initEmbed;
  }

  core(): Promise<Core> {
    this.#core ??= loading('core', this.#loadCore()).catch((error) => {
      this.#core = undefined;
      throw error;
    });
    return this.#core;
  }

  embed(): Promise<EmbedGlue> {
    this.#embed ??= loading('embed', this.#initEmbed()).catch((error) => {
      this.#embed = undefined;
      throw error;
    });
    return this.#embed;
  }

  async #loadCore(): Promise<Core> {
    // All at once: none of them needs another to be found.
    const init = this.#startCore();
    const reading = this.#readData();
    // Its failure is met below.
    reading.catch(() => {});
    const bindings = await import('./foremind_core.js');
    await init(bindings);
    return new Core(coreGlue(bindings, await reading));
  }
}

/** A core whose module is there, and its router's data. */
export function coreGlue(bindings: CoreBindings, data: string): CoreGlue {
  bindings.installData(data);
  return {
    open: (options) => new bindings.CoreOpening(options),
    survey: (options) => new bindings.CoreSurvey(options),
    renew: () => {
      bindings.__wbg_reset_state();
      bindings.installData(data);
    },
  };
}

/** What this package uses of an embed module's bindings. */
export function embedGlue(bindings: Pick<typeof import('./foremind_embed.js'), 'PackLoader' | '__wbg_reset_state'>): EmbedGlue {
  return {
    loader: (bytes) => new bindings.PackLoader(bytes),
    renew: () => bindings.__wbg_reset_state(),
  };
}

/** The same for the build that runs ONNX files. */
export function onnxGlue(bindings: typeof import('./foremind_onnx.js')): EmbedGlue {
  return { ...embedGlue(bindings), fromOnnx: (...parts) => bindings.WebEmbedder.fromOnnx(...parts) };
}

/** Says what a host has to mend when a module does not load. */
export async function loading<T>(what: string, module: Promise<T>): Promise<T> {
  try {
    return await module;
  } catch (error) {
    // The module is there, and has said what is wrong with its data.
    if (isPlainError(error)) throw fromPlain(error);
    const kind = error instanceof Error ? error.name : typeof error;
    throw new ForemindError(
      'unsupported',
      `the ${what} module could not be loaded (${kind}); WebAssembly must be allowed ('wasm-unsafe-eval' in a strict CSP) and the package's .wasm files and foremind_data.txt must be served beside its scripts`,
    );
  }
}
