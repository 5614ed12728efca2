// What this package uses of the generated bindings of the core module.
import type { CoreMemory, CoreOptions, CoreOpening as Opening, CoreSurvey as Survey, CoreWrap } from './core.js';

export default function init(input?: { module_or_path: Promise<Response | WebAssembly.Module> }): Promise<unknown>;
export function initSync(input: { module: BufferSource | WebAssembly.Module }): unknown;
export function __wbg_reset_state(): void;
export function installData(bundle: string): void;
/** Every error of the core, mapped as any error is on its way out. */
export function errors(): { code: string; message: string; fault: string }[];
export const CoreOpening: { new (options: CoreOptions): Opening };
export const CoreSurvey: { new (options: CoreWrap & { repair: boolean }): Survey };
export type { CoreMemory };
