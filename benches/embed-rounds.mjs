// The loops of `bench embed` that run inside the host they measure, a page or node.

/** A block is at least this long, because a page's clock is coarse. */
const BLOCK_MS = 8;
const WARM_UP_MS = 400;

/**
 * Times every contestant at every length: paired rounds, in each of which all of them take their turn, the order moving on
 * by one. Gives milliseconds of one embedding: `[length][contestant][round]`.
 */
export async function timeRounds(contestants, texts, rounds, report) {
  const names = Object.keys(contestants);
  const all = [];
  for (const text of texts) {
    const calls = {};
    for (const name of names) {
      // Warm: the engine has compiled the hot functions with its best compiler.
      let done = 0;
      const start = performance.now();
      while (performance.now() - start < WARM_UP_MS || done < 3) {
        await contestants[name].embed(text);
        done += 1;
      }
      const one = await timed(contestants[name], text, 3);
      calls[name] = Math.max(1, Math.ceil(BLOCK_MS / one));
    }
    const times = Object.fromEntries(names.map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (let turn = 0; turn < names.length; turn += 1) {
        const name = names[(round + turn) % names.length];
        times[name].push(await timed(contestants[name], text, calls[name]));
      }
    }
    all.push(times);
    report(`${all.length} of ${texts.length} lengths`);
  }
  return all;
}

async function timed(contestant, text, calls) {
  const start = performance.now();
  for (let call = 0; call < calls; call += 1) await contestant.embed(text);
  return (performance.now() - start) / calls;
}

/** Paired rounds of the forward pass and of the reference kernel: `[[ours, reference], ...]` in milliseconds. */
export async function shareRounds(contestant, text, kernel, rounds) {
  const kernelCalls = 12;
  for (let warm = 0; warm < 60; warm += 1) kernel();
  for (let warm = 0; warm < 5; warm += 1) await contestant.embed(text);
  const pairs = [];
  for (let round = 0; round < rounds; round += 1) {
    const ours = await timed(contestant, text, 1);
    const start = performance.now();
    for (let call = 0; call < kernelCalls; call += 1) kernel();
    pairs.push([ours, (performance.now() - start) / kernelCalls]);
  }
  return pairs;
}

/** From bytes in memory to the first vector, and then the first long text: before the engine has optimised anything. */
export async function readyTimes(make, first, long) {
  const start = performance.now();
  const contestant = await make();
  await contestant.embed(first);
  const ready = performance.now();
  await contestant.embed(long);
  return { ready_ms: ready - start, first_run_ms: performance.now() - ready };
}
