/** A prompt of the service. */
export interface HostedPrompt {
  /** The text for the model; empty when there is nothing to show, or nothing came in time. */
  prompt: string;
  /** Why it is less than was asked for: `timeout`, `unreachable`, the code of a problem, or what the service says. */
  reason?: string;
  /** All else that the service tells: docs/openapi.json, `PromptAnswer`. */
  [field: string]: unknown;
}

export interface ClientOptions {
  /** Where the service is, such as `https://memories.example.com`. */
  url: string | URL;
  /** A grant for the user. */
  grant: string;
  /** When a prompt is given up, in milliseconds; absent: 800. */
  timeoutMs?: number;
  /** In place of the global one. */
  fetch?: typeof fetch;
}

/**
 * Asks a hosted service for prompts. A turn must not wait for its memory, so both verbs always resolve: past the time, or
 * when anything fails, with an empty prompt and a reason.
 */
export class Client {
  readonly #options: Required<ClientOptions>;

  constructor({ url, grant, timeoutMs = 800, fetch: own = globalThis.fetch.bind(globalThis) }: ClientOptions) {
    this.#options = { url, grant, timeoutMs, fetch: own };
  }

  /** The prompt for a question. */
  recall(query: string, options: { budgetTokens?: number; deadlineMs?: number; mode?: 'on' | 'off' | 'incognito' } = {}): Promise<HostedPrompt> {
    const body = JSON.stringify({ query, ...options });
    return this.#ask('/v1/recall', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  }

  /** The profile alone; `maxAgeMs`: it may come from a replica that is no older, and then has `generation` and `ageMs`. */
  profile(options: { budgetTokens?: number; maxAgeMs?: number } = {}): Promise<HostedPrompt> {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const query = given.map(([name, value]) => `${name}=${value}`).join('&');
    return this.#ask(query ? `/v1/profile?${query}` : '/v1/profile', {});
  }

  async #ask(target: string, init: RequestInit): Promise<HostedPrompt> {
    const { url, grant, timeoutMs, fetch } = this.#options;
    const giveUp = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<HostedPrompt>((resolve) => {
      timer = setTimeout(() => {
        resolve({ prompt: '', reason: 'timeout' });
        giveUp.abort();
      }, timeoutMs);
    });
    const asked = async (): Promise<HostedPrompt> => {
      const headers = { ...init.headers, authorization: `Bearer ${grant}` };
      const response = await fetch(new URL(target, url), { ...init, headers, signal: giveUp.signal });
      const answer: unknown = await response.json();
      if (!response.ok) return { prompt: '', reason: textOf(answer, 'code') ?? `status ${response.status}` };
      return textOf(answer, 'prompt') === undefined ? { prompt: '', reason: 'unreachable' } : (answer as HostedPrompt);
    };
    try {
      // Also a body that never ends is given up, and a `fetch` that does not hear the signal.
      return await Promise.race([late, asked().catch(() => ({ prompt: '', reason: 'unreachable' }))]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function textOf(answer: unknown, field: string): string | undefined {
  const value = typeof answer === 'object' && answer !== null ? (answer as { [field: string]: unknown })[field] : undefined;
  return typeof value === 'string' ? value : undefined;
}
