import { Core, type CoreGlue } from './core.js';
import type { EmbedGlue } from './embedder.js';
import { ForemindError } from './errors.js';

type CoreBindings = typeof import('./foremind_core.js');
type EmbedBindings = typeof import('./foremind_embed.js');

/** How an environment makes instances of the two modules. Each is made once for each realm, on first use. */
export class Modules {
  readonly #initCore: (bindings: CoreBindings) => Promise<unknown>;
  readonly #initEmbed: (bindings: EmbedBindings) => Promise<unknown>;
  #core: Promise<Core> | undefined;
  #embed: Promise<EmbedGlue> | undefined;

  constructor(initCore: (bindings: CoreBindings) => Promise<unknown>, initEmbed: (bindings: EmbedBindings) => Promise<unknown>) {
    this.#initCore = initCore;
    this.#initEmbed = initEmbed;
  }

  core(): Promise<Core> {
    this.#core ??= this.#loadCore().catch((error) => {
      this.#core = undefined;
      throw error;
    });
    return this.#core;
  }

  embed(): Promise<EmbedGlue> {
    this.#embed ??= this.#loadEmbed().catch((error) => {
      this.#embed = undefined;
      throw error;
    });
    return this.#embed;
  }

  async #loadCore(): Promise<Core> {
    try {
      const bindings = await import('./foremind_core.js');
      await this.#initCore(bindings);
      const glue: CoreGlue = {
        open: (options) => new bindings.CoreOpening(options),
        renew: () => bindings.__wbg_reset_state(),
      };
      return new Core(glue);
    } catch (error) {
      throw notLoaded('core', error);
    }
  }

  async #loadEmbed(): Promise<EmbedGlue> {
    try {
      const bindings = await import('./foremind_embed.js');
      await this.#initEmbed(bindings);
      return {
        load: (pack) => new bindings.WebEmbedder(pack),
        renew: () => bindings.__wbg_reset_state(),
      };
    } catch (error) {
      throw notLoaded('embed', error);
    }
  }
}

function notLoaded(what: string, error: unknown): ForemindError {
  const kind = error instanceof Error ? error.name : typeof error;
  return new ForemindError(
    'unsupported',
    `the ${what} module could not be loaded (${kind}); WebAssembly must be allowed ('wasm-unsafe-eval' in a strict CSP) and the package's .wasm files must be served beside its scripts`,
  );
}
