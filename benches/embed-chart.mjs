// The chart of `bench embed`: time of one embedding against onnxruntime-web's fastest, by length. One file for light and
// dark surroundings.

const [WIDTH, HEIGHT] = [760, 360];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 20, 92, 64];
const SERIES = [
  ['relaxed', 'foremind, relaxed-simd'],
  ['simd', 'foremind, simd128'],
];
const STYLE = `
    text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #3b4048; }
    .title { font-size: 16px; font-weight: 600; fill: #16181d; }
    .quiet { fill: #6a707a; font-size: 12px; }
    .value { font-size: 11.5px; font-variant-numeric: tabular-nums; text-anchor: middle; }
    .grid { stroke: #d9dce1; }
    .peer { stroke: #b4541f; stroke-width: 1.5; stroke-dasharray: 5 4; }
    .simd { fill: #8fb8ad; }
    .relaxed { fill: #1f6f61; }
    .whisker { stroke: #16181d; stroke-opacity: 0.45; }
    @media (prefers-color-scheme: dark) {
      text { fill: #c9ced6; }
      .title { fill: #f2f4f7; }
      .quiet { fill: #959ca8; }
      .grid { stroke: #3a404a; }
      .peer { stroke: #f0955f; }
      .simd { fill: #4d7d73; }
      .relaxed { fill: #6fd0bd; }
      .whisker { stroke: #f2f4f7; }
    }`;

/** SVG text from the figures of `embed.mjs`. */
export function chart(figures) {
  const series = SERIES.filter(([name]) => figures[`ratio_${name}`]);
  const highest = Math.max(1.1, ...series.flatMap(([name]) => figures[`ratio_${name}_90`].map(([, high]) => high)));
  const step = highest > 1.5 ? 0.5 : 0.25;
  const top = Math.ceil(highest / step) * step;
  const y = (ratio) => HEIGHT - BOTTOM - (ratio / top) * (HEIGHT - TOP - BOTTOM);
  const group = (WIDTH - LEFT - RIGHT) / figures.lengths.length;
  const bar = Math.min(34, (group * 0.62) / series.length);
  const parts = [];
  for (let line = 0; line <= top + 1e-9; line += step) {
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${n(y(line))}" y2="${n(y(line))}"/>`);
    parts.push(`<text class="quiet" x="${LEFT - 8}" y="${n(y(line) + 4)}" text-anchor="end">${line.toFixed(2)}</text>`);
  }
  figures.lengths.forEach((length, at) => {
    const middle = LEFT + group * (at + 0.5);
    series.forEach(([name], index) => {
      const ratio = figures[`ratio_${name}`][at];
      const [low, high] = figures[`ratio_${name}_90`][at];
      const x = middle + (index - series.length / 2) * (bar + 4) + 2;
      const center = n(x + bar / 2);
      parts.push(`<rect class="${name}" x="${n(x)}" y="${n(y(ratio))}" width="${n(bar)}" height="${n(y(0) - y(ratio))}" rx="2"/>`);
      parts.push(`<line class="whisker" x1="${center}" x2="${center}" y1="${n(y(low))}" y2="${n(y(high))}"/>`);
      parts.push(`<text class="value" x="${center}" y="${n(y(Math.max(ratio, high)) - 5)}">${ratio.toFixed(2)}</text>`);
    });
    parts.push(`<text x="${n(middle)}" y="${HEIGHT - BOTTOM + 20}" text-anchor="middle">${length}</text>`);
  });
  parts.push(`<line class="peer" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${n(y(1))}" y2="${n(y(1))}"/>`);
  const keys = series.map(([name, title], index) => {
    const x = LEFT + index * 190;
    return `<rect class="${name}" x="${x}" y="58" width="12" height="12" rx="2"/><text x="${x + 18}" y="68.5">${title}</text>`;
  });
  const x = LEFT + series.length * 190;
  keys.push(`<line class="peer" x1="${x}" x2="${x + 24}" y1="64" y2="64"/><text x="${x + 30}" y="68.5">onnxruntime-web, its fastest model</text>`);
  const browser = figures.host.chromium.replace('/', ' ').replace(/^(\S+ \d+)\..*/, '$1');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="Time of one embedding against onnxruntime-web, by number of tokens">
  <style>${STYLE}
  </style>
  <text class="title" x="${LEFT}" y="24">Time of one embedding, against onnxruntime-web</text>
  <text class="quiet" x="${LEFT}" y="44">${browser}, one thread on one core; median of ${figures.rounds} paired rounds, lines: the middle 90 %</text>
  ${keys.join('\n  ')}
  ${parts.join('\n  ')}
  <text class="quiet" x="${n(LEFT + (WIDTH - LEFT - RIGHT) / 2)}" y="${HEIGHT - 18}" text-anchor="middle">tokens</text>
</svg>
`;
}

/** A coordinate. */
const n = (value) => Number(value.toFixed(1));
