// What this package uses of the generated bindings of the service module.
export function initSync(input: { module: BufferSource | WebAssembly.Module }): unknown;
export function __wbg_reset_state(): void;
export class CoreService {
  static tooSlow(): unknown;
  constructor(config: string);
  begin(request: { method: string; target: string; headers: [string, string][]; body: Uint8Array }): number;
  step(call: number, reply: unknown, nowMs: number, entropy: Uint8Array): unknown;
  drop(call: number): void;
}
