"""Trains and compares the heads of the semantic stage on the English rows.

usage: train.py MODEL_FOLDER FEATURES CACHE [--layers 0|2|3|4|6] [--rank 8] [--epochs 4] [--share 1.0] [--seed 0]
                [--start FILE --files written/a,written/b --times 1 --replay 2000] [--teacher FILE] [--augment 0.3] [--hidden 64] [--save FILE]
                [--final]

A tenth of the tokens and of the pooled and hidden numbers is left out at random in each step, and what is kept is a running mean of
the parameters over some 300 steps: with both, a fourth epoch still helps where two were the most before.

With --start training goes on from a saved or unpacked head: with all rows, or with those of the named files, so many
times, and some older ones. With --teacher a saved or unpacked head says which statement of a longer row of the profile holds its fact: that one
is learned beside the whole, and those that it finds harmless are learned as such; of what it knows one half is left out. With --augment a share of the rows is learned once more
in another dress: with a remark before it, a question after it, in small letters without a stop, or in one sentence with a harmless row.
The validation part is reported after each epoch; the test part with --final alone.

MODEL_FOLDER holds model.safetensors and tokenizer.json (`cargo xtask model`), FEATURES is the output of the router's
example `features` for all rows, CACHE a folder for the hidden states below the trained layers. `--layers 0` trains a
head on the frozen last layer. Outputs of a head, in this order: grade (4), domain (33), ttl (4), subject (4).
"""

import argparse
import collections
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file, save_file

from minilm import LAYERS, MATRICES, WIDTH, Backbone, pad
from labels import SHARES, SIZES, targets
from rows import ROOT, load_rows, load_split
from score import profile_logit, report

BATCH = 32
# Share of tokens, and of numbers of the head, that a step leaves out; decay of the running mean of the parameters.
LEFT_OUT = 0.1
MEAN = 0.997


def start(layers, rank, seed, hidden=64):
    """Parameters: low-rank deltas on the upper `layers`, attention pooling, a small perceptron: what an adapter file can hold."""
    keys = iter(jax.random.split(jax.random.PRNGKey(seed), 64))
    normal = lambda shape, scale: jax.random.normal(next(keys), shape) * scale
    deltas = {}
    for number in range(LAYERS - layers, LAYERS):
        for name, (inputs, outputs) in MATRICES.items():
            full = f"encoder.layer.{number}.{name}"
            deltas[full] = (normal((inputs, rank), inputs**-0.5), jnp.zeros((rank, outputs)))
    return {
        "deltas": deltas,
        "query": normal((WIDTH,), 0.02),
        "hidden": normal((WIDTH, hidden), WIDTH**-0.5),
        "hidden_bias": jnp.zeros(hidden),
        "out": normal((hidden, sum(SIZES)), 0.05),
        "out_bias": jnp.zeros(sum(SIZES)),
    }


def outputs(backbone, layers, parameters, x, mask, key=None):
    """The logits; with a key as in training, some of what is seen left out."""

    def thinned(values, key):
        return values * jax.random.bernoulli(key, 1 - LEFT_OUT, values.shape) / (1 - LEFT_OUT)

    if key is not None:
        tokens, pooling, hiding = jax.random.split(key, 3)
        mask = mask * jax.random.bernoulli(tokens, 1 - LEFT_OUT, mask.shape).at[:, 0].set(True)
    for number in range(LAYERS - layers, LAYERS):
        x = backbone.layer(x, mask, number, parameters["deltas"])
    weights = jax.nn.softmax(x @ parameters["query"] + (1 - mask) * -1e9, 1)
    pooled = jnp.einsum("bs,bsd->bd", weights, x)
    pooled = pooled if key is None else thinned(pooled, pooling)
    hidden = jax.nn.gelu(pooled @ parameters["hidden"] + parameters["hidden_bias"], approximate=False)
    hidden = hidden if key is None else thinned(hidden, hiding)
    return hidden @ parameters["out"] + parameters["out_bias"]


def loss(z, wanted, weight):
    """Marginal cross-entropy: any of a row's right outputs satisfies it; what its other label allows counts 0.3."""
    total, at = 0.0, 0
    for size, share in zip(SIZES, SHARES):
        logits, target = jax.nn.log_softmax(z[:, at : at + size]), wanted[:, at : at + size]
        at += size
        main, other = target == 1, (target > 0) & (target < 1)
        own = jnp.where(other.any(1), 0.7, 1.0)
        inside = [jax.nn.logsumexp(jnp.where(chosen, logits, -1e9), axis=-1) for chosen in (main, other)]
        value = own * inside[0] + (1 - own) * jnp.where(other.any(1), inside[1], 0.0)
        total += share * -(jnp.where(main.any(1), value, 0.0) * weight).sum() / weight.sum()
    return total


def batches(lengths, generator):
    """Positions in batches of like length; in random order when a generator is given."""
    jitter = generator.integers(0, 4, len(lengths)) if generator else np.zeros(len(lengths))
    order = np.argsort(np.asarray(lengths) + jitter, kind="stable")
    cut = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
    if generator:
        generator.shuffle(cut)
    return cut


def train(backbone, layers, parameters, epochs, states, wanted, weight, seed, rate, after=None):
    """The running mean of the parameters at the end; `after(epoch, mean)` is called after each epoch."""
    steps = (len(states) + BATCH - 1) // BATCH * epochs
    schedule = optax.warmup_cosine_decay_schedule(0, rate, max(1, steps // 10), steps, rate * 0.05)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.05))
    memory = optimiser.init(parameters)

    @jax.jit
    def step(parameters, mean, memory, x, mask, wanted, weight, key):
        objective = lambda p: loss(outputs(backbone, layers, p, x, mask, key), wanted, weight)
        value, gradient = jax.value_and_grad(objective)(parameters)
        updates, memory = optimiser.update(gradient, memory, parameters)
        parameters = optax.apply_updates(parameters, updates)
        mean = jax.tree.map(lambda old, new: MEAN * old + (1 - MEAN) * new, mean, parameters)
        return parameters, mean, memory, value

    generator, began = np.random.default_rng(seed), time.time()
    mean, key = parameters, jax.random.PRNGKey(seed + 100)
    for epoch in range(epochs):
        values = []
        for chosen in batches([len(s) for s in states], generator):
            x, mask = pad([states[at] for at in chosen], BATCH)
            y, w = np.zeros((BATCH, sum(SIZES)), np.float32), np.zeros(BATCH, np.float32)
            y[: len(chosen)], w[: len(chosen)] = wanted[chosen], weight[chosen]
            key, now = jax.random.split(key)
            parameters, mean, memory, value = step(parameters, mean, memory, x, mask, y, w, now)
            values.append(float(value))
        print(f"epoch {epoch} loss {np.mean(values):.3f} {time.time() - began:.0f} s", flush=True)
        if after:
            after(epoch, mean)
    return mean


def predict(backbone, layers, parameters, states):
    run = jax.jit(lambda p, x, mask: outputs(backbone, layers, p, x, mask))
    z = np.zeros((len(states), sum(SIZES)), np.float32)
    for chosen in batches([len(s) for s in states], None):
        x, mask = pad([states[at] for at in chosen], BATCH)
        z[chosen] = np.asarray(run(parameters, x, mask))[: len(chosen)]
    return z


def hidden_states(backbone, texts, below, cache):
    """Hidden states after `below` layers, kept in the cache by text."""
    path = pathlib.Path(cache) / f"after-{below}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {}
    if path.exists():
        stored = np.load(path, allow_pickle=False)
        ends, flat = np.cumsum(stored["lengths"]), stored["states"]
        known = {str(t): flat[end - n : end] for t, n, end in zip(stored["texts"], stored["lengths"], ends)}
    missing = sorted(set(texts) - set(known))
    if missing:
        print(f"{len(missing)} texts through {below} layers", flush=True)
        known.update(zip(missing, backbone.lower(missing, below)))
        kept = list(known)
        np.savez(path, texts=np.array(kept), lengths=np.array([len(known[t]) for t in kept]),
                 states=np.concatenate([known[t] for t in kept]))
    return [known[text] for text in texts]


# A teacher's logit from which it knows a row: of those one half is learned, counting twice.
EASY = 4.0
# Turns of talk that carry no fact; half of them stand before a row, half after it.
REMARKS = ("btw", "oh, and", "by the way,", "just so you know,", "anyway,", "one more thing:", "I should mention,", "fyi,", "also,",
           "as I said,", "well,", "ha, thanks.", "not that it matters, but", "ok so", "hi again,", "to be honest,", "for context,")
QUESTIONS = ("any ideas?", "what would you do?", "what do you suggest?", "can you help?", "so what's best?", "where do I start?",
             "how would you go about it?", "thoughts?", "what should I look at first?", "does that change anything?")


def dressed(text, harmless, generator):
    """A short text in another dress that leaves its grade as it is."""
    kind = generator.integers(0, 4)
    if kind == 0:
        first = text if text[:2] in ("I ", "I'") else text[0].lower() + text[1:]
        return f"{generator.choice(REMARKS)} {first}"
    if kind == 1:
        return f"{text.rstrip('.! ')} {generator.choice(['-', ',', ';', '.'])} {generator.choice(QUESTIONS)}".replace(" ,", ",")
    if kind == 2:
        return text.lower().rstrip(".! ")
    other = generator.choice(harmless).rstrip(".!? ")
    both = (text.rstrip(".! "), other) if generator.random() < 0.5 else (other, text.rstrip(".! "))
    return generator.choice([", and ", ", ", "; ", " and "]).join(both)


def examples(rows, statements, judged, augment, generator):
    """Training texts: whole rows; of rows of several statements each statement too, since that is what is asked: all of a
    harmless row, and of a row of the profile those that the teacher's logits `judged` tell apart; dressed rows."""
    texts, wanted, weight = [], [], []

    def learn(text, target, counts):
        known = judged.get(text, 0) * (1 if target[:2].any() else -1) > EASY
        if known and generator.random() < 0.5:
            return
        texts.append(text), wanted.append(target), weight.append(2 * counts if known else counts)

    short = [row["text"] for row in rows if row["label"] == "store" and not row.get("also_ok") and len(row["text"]) < 70
             and "?" not in row["text"]]
    for row in rows:
        target = targets(row)
        doubtful = 0.6 if row.get("also_ok") else 1.0
        learn(row["text"], target, doubtful)
        pieces = statements.get(row["id"], [])
        harmless = np.zeros_like(target)
        harmless[2:4] = 1
        if len(pieces) > 1 and row["label"] != "profile" and "profile" not in (row.get("also_ok") or []):
            for piece in pieces:
                learn(piece, harmless, 0.5)
        elif len(pieces) > 1 and row["label"] == "profile" and judged:
            values = [judged[piece] for piece in pieces]
            best = int(np.argmax(values))
            for at, piece in enumerate(pieces):
                if at == best and values[at] > 0:
                    learn(piece, target, doubtful)
                elif values[at] < min(-3, values[best] - 3):
                    learn(piece, harmless, 0.5)
        if len(row["text"]) < 140 and len(pieces) < 2 and row["label"] != "none" and generator.random() < augment:
            learn(dressed(row["text"], short, generator), target, 0.7 * doubtful)
    return texts, np.array(wanted), np.array(weight, np.float32)


# Names of the adapter format (docs/EMBEDDER.md) for the checkpoint's.
PARTS = {
    "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
    "attention.output.dense": "merge", "intermediate.dense": "expand", "output.dense": "contract",
}


def model_id():
    """The shipped model that the adapter belongs to, as xtask names it."""
    source = (ROOT / "xtask/src/model.rs").read_text(encoding="utf-8")
    return source[source.index("const MODEL_ID") :].split('"')[1]


def save(path, parameters):
    """Writes the tensors that foremind-embed's example `pack_adapter` makes an adapter file of."""
    tensors = {}
    for name, (down, up) in parameters["deltas"].items():
        _, _, number, part = name.split(".", 3)
        tensors[f"delta.{number}.{PARTS[part]}.a"] = down.T
        tensors[f"delta.{number}.{PARTS[part]}.b"] = up.T
    tensors["head.route/1.pool"] = parameters["query"]
    tensors["head.route/1.0.weight"], tensors["head.route/1.0.bias"] = parameters["hidden"].T, parameters["hidden_bias"]
    tensors["head.route/1.1.weight"], tensors["head.route/1.1.bias"] = parameters["out"].T, parameters["out_bias"]
    words = "adapted attention gelu none" if parameters["deltas"] else "attention gelu none"
    tensors = {name: np.ascontiguousarray(value, np.float32) for name, value in tensors.items()}
    save_file(tensors, path, {"model": model_id(), "head.route/1": words})


def restore(path, layers):
    """The parameters that `save` wrote."""
    tensors, names = load_file(path), {part: name for name, part in PARTS.items()}
    deltas = {}
    for number in range(LAYERS - layers, LAYERS):
        for part, name in names.items():
            both = (tensors[f"delta.{number}.{part}.{which}"].T for which in "ab")
            deltas[f"encoder.layer.{number}.{name}"] = tuple(map(jnp.asarray, both))
    head = {"query": "pool", "hidden": "0.weight", "hidden_bias": "0.bias", "out": "1.weight", "out_bias": "1.bias"}
    return {"deltas": deltas} | {name: jnp.asarray(tensors[f"head.route/1.{place}"].T) for name, place in head.items()}


def statements_of(path):
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            piece = json.loads(line)
            found[piece["id"]].append(piece["text"])
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("model"), parser.add_argument("features"), parser.add_argument("cache")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--save"), parser.add_argument("--start"), parser.add_argument("--teacher")
    parser.add_argument("--files", default=""), parser.add_argument("--replay", type=int, default=2000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--augment", type=float, default=0.0), parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--final", action="store_true")
    given = parser.parse_args()

    rows = [row for row in load_split(load_rows()) if row["lang"] == "en"]
    statements = statements_of(given.features)
    learning = [row for row in rows if row["part"] == "train"]
    np.random.default_rng(1).shuffle(learning)
    learning = learning[: round(given.share * len(learning))]
    if given.files:
        named = given.files.split(",")
        older = [row for row in learning if row["file"] not in named][: given.replay]
        learning = given.times * [row for row in learning if row["file"] in named] + older
    backbone = Backbone(given.model)
    below = LAYERS - given.layers
    judged = {}
    if given.teacher:
        pieces = sorted({text for row in learning for text in (row["text"], *statements.get(row["id"], []))})
        known = hidden_states(backbone, pieces, below, given.cache)
        judged = dict(zip(pieces, profile_logit(predict(backbone, given.layers, restore(given.teacher, given.layers), known))))
    texts, wanted, weight = examples(learning, statements, judged, given.augment, np.random.default_rng(given.seed + 7))
    parts = ("validation", "test") if given.final else ("validation",)
    measured = [row for row in rows if row["part"] in parts]
    asked = [(row, text) for row in measured for text in statements.get(row["id"]) or [row["text"]]]
    states = hidden_states(backbone, texts + [text for _, text in asked], below, given.cache)
    print(f"{len(learning)} rows, {len(texts)} texts, {len(asked)} statements measured", flush=True)

    def measure(epoch, parameters):
        if given.save:
            save(given.save, parameters)
        z = predict(backbone, given.layers, parameters, states[len(texts) :])
        report(measured, [row["id"] for row, _ in asked], z, f"layers {given.layers} epoch {epoch}")

    parameters = restore(given.start, given.layers) if given.start else start(given.layers, given.rank, given.seed, given.hidden)
    train(backbone, given.layers, parameters, given.epochs, states[: len(texts)], wanted, weight, given.seed, given.rate, measure)


if __name__ == "__main__":
    main()
