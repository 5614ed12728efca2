// Order statistics of measured times.

/** The value below which the share `p` of `values` lies, by linear interpolation. */
export function percentile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * p;
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** Rounded to a hundredth. */
export const round = (value) => Math.round(value * 100) / 100;

/** p50 and p99 of both sides of paired rounds, and the median ratio with the middle 90 % of the rounds' ratios. */
export function paired(rounds) {
  const ours = rounds.map(([own]) => own);
  const peers = rounds.map(([, peer]) => peer);
  const ratios = rounds.map(([own, peer]) => own / peer);
  return {
    rounds: rounds.length,
    p50_ms: round(percentile(ours, 0.5)),
    p99_ms: round(percentile(ours, 0.99)),
    peer_p50_ms: round(percentile(peers, 0.5)),
    ratio: round(percentile(ratios, 0.5)),
    ratio_90: [round(percentile(ratios, 0.05)), round(percentile(ratios, 0.95))],
  };
}
