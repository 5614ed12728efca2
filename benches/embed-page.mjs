// The page's side of `embed.mjs`: the same contestants in a browser.
import { MODELS, MODULES, foremind, onnxruntime, tract, wordIds } from './embed-contestants.mjs';
import { FIRST_TOKENS, LENGTHS, LONG_TOKENS, ROUNDS } from './embed-plan.mjs';
import { readyTimes, shareRounds, timeRounds } from './embed-rounds.mjs';
import { referenceKernel } from './reference-kernel.mjs';
import { hasRelaxedSimd } from '/dist/simd.js';
import { plain } from '/sentences.mjs';

const texts = [...new Set([...LENGTHS, FIRST_TOKENS, LONG_TOKENS])].map((length) => plain(length - 2));
const bytes = async (path) => {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

async function prepared(contestant) {
  if (contestant in MODULES) {
    const [script, module] = MODULES[contestant];
    const [bindings, wasm] = [await import(`/dist/${script}`), await bytes(`/dist/${module}`)];
    if (contestant === 'tract') {
      const [vocabulary, onnx] = [await bytes('/files/vocab.txt'), await bytes('/files/model.onnx')];
      return () => tract(bindings, wasm, vocabulary, onnx);
    }
    const pack = await bytes('/model/minilm-l6-v2.fmpack');
    return () => foremind(bindings, wasm, pack);
  }
  const tokensOf = wordIds(await (await fetch('/files/vocab.txt')).text(), texts);
  const [wasm, onnx] = [await bytes('/ort/ort-wasm-simd-threaded.wasm'), await bytes(`/files/${MODELS[contestant]}`)];
  const ort = await import('/ort/ort.wasm.min.mjs');
  ort.env.wasm.wasmPaths = '/ort/';
  return () => onnxruntime(ort, wasm, onnx, tokensOf);
}

globalThis.works = {
  async times() {
    const contestants = {};
    for (const name of ['simd', ...(hasRelaxedSimd() ? ['relaxed'] : []), 'ort', 'ort_ours', 'tract']) {
      contestants[name] = await (await prepared(name))();
    }
    return timeRounds(contestants, LENGTHS.map((length) => plain(length - 2)), ROUNDS, (line) => console.log(line));
  },
  async share() {
    return shareRounds(await (await prepared('simd'))(), plain(LONG_TOKENS - 2), await referenceKernel(), ROUNDS);
  },
  async ready(contestant) {
    return readyTimes(await prepared(contestant), plain(FIRST_TOKENS - 2), plain(LONG_TOKENS - 2));
  },
};
