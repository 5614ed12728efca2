// What `bench embed` measures.

/** Tokens of a text, `[CLS]` and `[SEP]` included. */
export const LENGTHS = [8, 16, 32, 64, 128, 256];
/** Paired rounds at each length. */
export const ROUNDS = 30;
/** Fresh processes for each figure of readiness. */
export const READY_PROCESSES = 9;
/** Tokens of the first text after loading, and of the text that the forward pass is rated at. */
export const FIRST_TOKENS = 16;
export const LONG_TOKENS = 128;

/** Multiplications and additions of a forward pass: six layers of four matrices, and attention. */
export function operations(tokens) {
  const [layers, hidden, inner] = [6, 384, 1536];
  const matrices = 2 * tokens * (4 * hidden * hidden + 2 * hidden * inner);
  const attention = 4 * tokens * tokens * hidden;
  return layers * (matrices + attention);
}
