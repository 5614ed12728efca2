"""all-MiniLM-L6-v2 in JAX: the layers below the deltas are computed once, those above are trained through."""

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, WIDTH, HEADS = 6, 384, 12
# Tokens of a statement that are looked at; lengths are padded to one of BUCKETS.
BUCKETS = (16, 24, 32, 48, 80, 128)
# The matrices of a layer: inputs and outputs of each.
MATRICES = {
    "attention.self.query": (WIDTH, WIDTH),
    "attention.self.key": (WIDTH, WIDTH),
    "attention.self.value": (WIDTH, WIDTH),
    "attention.output.dense": (WIDTH, WIDTH),
    "intermediate.dense": (WIDTH, 4 * WIDTH),
    "output.dense": (4 * WIDTH, WIDTH),
}


class Backbone:
    """The frozen checkpoint. `folder` holds model.safetensors and tokenizer.json."""

    def __init__(self, folder):
        weights = load_file(f"{folder}/model.safetensors")
        self.weights = {k: jnp.asarray(v) for k, v in weights.items() if v.dtype == np.float32}
        self.tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.tokenizer.enable_truncation(BUCKETS[-1])
        self.tokenizer.no_padding()

    def tokens(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    def _norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-12) * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def _linear(self, x, name, deltas):
        y = x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]
        if name in deltas:
            down, up = deltas[name]
            y = y + (x @ down) @ up
        return y

    def words(self, ids):
        e = "embeddings."
        x = self.weights[e + "word_embeddings.weight"][ids]
        x = x + self.weights[e + "position_embeddings.weight"][: ids.shape[1]]
        return self._norm(x + self.weights[e + "token_type_embeddings.weight"][0], e + "LayerNorm")

    def layer(self, x, mask, number, deltas):
        p = f"encoder.layer.{number}."
        batch, length, _ = x.shape
        bias = ((1 - mask) * -1e9)[:, None, None, :]

        def heads(name):
            y = self._linear(x, p + "attention.self." + name, deltas)
            return y.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS) + bias
        seen = (jax.nn.softmax(scores, -1) @ heads("value")).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        x = self._norm(x + self._linear(seen, p + "attention.output.dense", deltas), p + "attention.output.LayerNorm")
        inner = jax.nn.gelu(self._linear(x, p + "intermediate.dense", deltas), approximate=False)
        return self._norm(x + self._linear(inner, p + "output.dense", deltas), p + "output.LayerNorm")

    def lower(self, texts, layers, batch=64):
        """Hidden states after `layers` layers, one [tokens, 384] half-precision array a text."""
        ids = self.tokens(texts)
        out = [None] * len(ids)

        @jax.jit
        def run(ids, mask):
            x = self.words(ids)
            for number in range(layers):
                x = self.layer(x, mask, number, {})
            return x

        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            padded, mask = pad([ids[at] for at in chosen], batch)
            states = np.asarray(run(padded, mask), np.float16)
            for row, at in enumerate(chosen):
                out[at] = states[row, : len(ids[at])]
        return out


def bucket(length):
    return next(size for size in BUCKETS if size >= length)


def pad(rows, batch):
    """Token ids or hidden states of up to `batch` texts as one array, and its mask; missing texts are one token."""
    length = bucket(max(len(row) for row in rows))
    first = np.asarray(rows[0])
    shape = (batch, length, *first.shape[1:])
    padded = np.zeros(shape, np.int32 if first.ndim == 1 else np.float32)
    mask = np.zeros((batch, length), np.float32)
    mask[:, 0] = 1
    for at, row in enumerate(rows):
        padded[at, : len(row)] = row
        mask[at, : len(row)] = 1
    return padded, mask
