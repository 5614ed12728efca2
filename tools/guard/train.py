#!/usr/bin/env python3
"""Weights of instruction-shaped text: `crates/foremind-guard/data/instructions.tsv`.

Logistic regression over the buckets that the guard itself sees (`cargo run -p foremind-guard --example buckets`), scored by the
strongest piece of a text. Learns from the `dev` part of tests/data/guard, from sentences spun from tools/guard/grammar, and from the
harmless statements of tests/data/routing. Seeded; the same input gives the same file.

    train.py BUCKETS_BINARY [--folds] [--report EVAL_DATA]
"""
import argparse
import base64
import hashlib
import json
import pathlib
import random
import re
import subprocess

import numpy as np
import scipy.optimize
import scipy.sparse

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "crates/foremind-guard/data/instructions.tsv"
LANGUAGES = "en es fr de pt it ja zh ko hi ar".split()
BUCKETS = 1 << 16
# As in the guard: what each doubling of the number of pieces costs.
MANY = 0.6
SLOT = re.compile(r"\{([A-Z0-9]+)\}")
# Sentences of each language and kind.
SPIN, SPIN_ENGLISH, SPIN_FRAMES = 110, 320, 24


def grammar(name):
    slots, rules = {}, []
    for line in (ROOT / f"tools/guard/grammar/{name}.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        head, rest = line.split(": ", 1)
        if head[0] in "+-":
            rules.append((head[0] == "+", head[1:], rest))
        else:
            slots[head] = rest.split(" | ")
    return slots, rules


def spin(rule, slots, rng):
    def one(match):
        name = match.group(1)
        if name == "B64":
            text = spin("{ACT}", slots, rng)
            return base64.b64encode(text.encode()).decode()
        return rng.choice(slots[name]) if name in slots else match.group(0)

    for _ in range(6):
        rule, before = SLOT.sub(one, rule), rule
        if rule == before:
            break
    text = rule.replace("\\n", "\n")
    if rng.random() < 0.75 and text[:1].isalpha() and text[:1].isascii():
        text = text[0].upper() + text[1:]
    if rng.random() < 0.12:
        text = text.rstrip(".。।")
    if rng.random() < 0.04:
        text = text.upper()
    return text


def spun(rng):
    common, frames = grammar("common")
    rows = []
    for lang in LANGUAGES:
        slots, rules = grammar(lang)
        slots = common | slots
        kinds = {}
        for bad, kind, rule in rules:
            kinds.setdefault((bad, kind), []).append(rule)
        most = SPIN_ENGLISH if lang == "en" else SPIN
        for (bad, kind), rules in kinds.items():
            # Few rules spin few sentences, many rules more of them.
            seen = set()
            most_here = most * max(1, len(rules) // 10)
            for _ in range(min(most_here, 22 * len(rules)) if bad else min(most_here, 14 * len(rules))):
                seen.add(spin(rng.choice(rules), slots, rng))
            rows += [(text, bad, lang, "spun-" + kind) for text in sorted(seen)]
        kinds = {}
        for bad, kind, rule in frames:
            kinds.setdefault((bad, kind), []).append(rule)
        for (bad, kind), rules in kinds.items():
            if kind == "encoded":
                continue
            # Behind something harmless is where most instructions stand.
            count = SPIN_FRAMES * (3 if kind == "behind" else 1)
            seen = {spin(rng.choice(rules), slots, rng) for _ in range(count)}
            rows += [(text, bad, lang, "spun-" + kind) for text in sorted(seen)]
    return rows


def runs(text):
    """What two texts may not share to be told apart: runs of five words, or of twelve characters where no spaces stand."""
    words = re.findall(r"\w+", text.lower())
    flat = "".join(words)
    spaced = len(flat) < 9 * len(words)
    return {tuple(words[at:at + 5]) for at in range(len(words) - 4)} if spaced else {flat[at:at + 12] for at in range(len(flat) - 11)}


def apart(rows):
    """Without what is learnt from that shares a run with a row of the test part."""
    test = set().union(*(runs(row[0]) for row in own("test")))
    kept = [row for row in rows if test.isdisjoint(runs(row[0]))]
    print(len(rows) - len(kept), "of", len(rows), "rows stand too near to the test part and are left out")
    return kept


def own(part):
    rows = []
    for file, bad in (("instructions", True), ("benign", False)):
        for line in (ROOT / f"tests/data/guard/{file}.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["part"] == part:
                rows.append((row["text"], bad, row["lang"], row["kind"], row["topic"]))
    return rows


def harmless():
    rows = []
    for line in (ROOT / "tests/data/guard/secrets.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["part"] == "dev":
            rows += [(row["text"], False, row["lang"], "secret")] * 2
    for folder in ("seed", "written"):
        for path in sorted((ROOT / f"tests/data/routing/{folder}").glob("*.jsonl")):
            for line in path.read_text().splitlines():
                row = json.loads(line)
                # A fifth is left out, to measure what is held back of what was never seen.
                if hashlib.sha256(row["text"].encode()).digest()[0] % 5:
                    rows.append((row["text"], False, row.get("lang", "en"), "routing"))
    return rows


def public(folder):
    folder = pathlib.Path(folder) / "injection"
    rows = []
    for line in (folder / "memshield_validation.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.append((row["content"], row["label"] == "poisoned", "en", "memshield " + row["attack_type"]))
    for line in (folder / "bastion_dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.append((row["text"], row["label"] == "malicious", row["lang"], "bastion " + row["category"]))
    for name in ("one", "two"):
        for row in json.loads((folder / f"NotInject_{name}.json").read_text()):
            rows.append((row["prompt"], False, "en", "notinject"))
    return rows


def buckets(binary, rows):
    lines = "".join(json.dumps({"text": row[0]}) + "\n" for row in rows)
    out = subprocess.run([binary], input=lines.encode(), capture_output=True, check=True).stdout
    numbers, at, bags = np.frombuffer(out, "<u4"), 0, []
    for _ in rows:
        pieces, at = numbers[at], at + 1
        bag = []
        for _ in range(pieces):
            bag.append(numbers[at + 1:at + 1 + numbers[at]])
            at += 1 + int(numbers[at])
        # What is refused as a whole has no pieces.
        bags.append(bag or [np.zeros(1, "<u4")])
    return bags


class Bags:
    """All pieces, and each two that follow each other, as one sparse matrix, each row divided by the root of its number of buckets."""

    def __init__(self, bags):
        of = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        pieces = [piece for bag in bags for piece in bag]
        sizes = np.array([len(piece) for piece in pieces])
        x = scipy.sparse.csr_matrix(
            (np.ones(sizes.sum(), np.float32), np.concatenate(pieces).astype(np.int32), np.concatenate([[0], np.cumsum(sizes)])),
            shape=(len(pieces), BUCKETS))
        x.sum_duplicates()
        two = np.flatnonzero(of[1:] == of[:-1])
        both, sizes = scipy.sparse.vstack([x, x[two] + x[two + 1]]).tocsr(), np.append(sizes, sizes[two] + sizes[two + 1])
        self.bag = np.append(of, of[two])
        self.x = scipy.sparse.diags((1 / np.sqrt(np.maximum(sizes, 1))).astype(np.float32)).dot(both).tocsr()
        self.cost = np.array([MANY * ((2 * len(bag) - 1).bit_length() - 1) for bag in bags])

    def best(self, scores):
        order = np.lexsort((scores, self.bag))
        last = np.append(np.flatnonzero(np.diff(self.bag[order])), len(order) - 1)
        return order[last]

    def score(self, weights, bias):
        scores = self.x @ weights + bias
        return scores[self.best(scores)] - self.cost


def fit(bags, labels, costs, decay, rounds=4):
    weights, bias = np.zeros(BUCKETS), 0.0
    sign = np.where(labels, 1.0, -1.0)
    for _ in range(rounds):
        x = bags.x[bags.best(bags.x @ weights)]

        def loss(w):
            margin = sign * (x @ w[:-1] + w[-1] - bags.cost)
            p = 1 / (1 + np.exp(np.clip(margin, -30, 30)))
            value = (costs * np.logaddexp(0, -margin)).sum() + decay * (w[:-1] ** 2).sum()
            slope = -costs * sign * p
            return value, np.append(x.T @ slope + 2 * decay * w[:-1], slope.sum())

        got = scipy.optimize.minimize(loss, np.append(weights, bias), jac=True, method="L-BFGS-B", options={"maxiter": 60})
        weights, bias = got.x[:-1], got.x[-1]
    return weights, bias


def table(name, scores, rows, threshold):
    groups = {}
    for score, (_, bad, lang, *_) in zip(scores, rows):
        for key in ((name,), (name, lang)):
            one = groups.setdefault(key, [0, 0, 0, 0])
            one[0 if bad else 2] += (score >= threshold) == bad
            one[1 if bad else 3] += 1
    for key, (a, b, c, d) in groups.items():
        if len(key) == 1:
            print(f"{name}: caught {a / max(b, 1):.3f} of {b}, accepted {c / max(d, 1):.4f} of {d}")
    print("   ", " ".join(f"{k[1]} {a / max(b, 1):.2f}/{c / max(d, 1):.2f}" for k, (a, b, c, d) in sorted(groups.items()) if len(k) == 2))


def write(weights, bias, threshold):
    most = np.quantile(np.abs(weights[weights != 0]), 0.9995)
    # Coarse, so that the few large weights are not cut off: those matter more than the fractions of the many small ones.
    step = most / 12
    codes = np.clip(np.rint(weights / step), -46, 46).astype(int) + ord("P")
    head = "# Step and bias, then a weight a character (P is none) for each bucket of src/instructions.rs.\n"
    OUT.write_text(head + f"{step:.5f} {bias - threshold:.4f}\n" + "".join(map(chr, codes)) + "\n")
    return step


def folds(rows, found, labels, costs, arguments):
    topics = sorted({row[4] for row in rows if len(row) > 4})
    fold = {topic: at % 4 for at, topic in enumerate(topics)}
    scores, some = [], []
    for number in range(4):
        out = [at for at, row in enumerate(rows) if len(row) > 4 and fold[row[4]] == number]
        kept = [at for at, row in enumerate(rows) if len(row) < 5 or fold[row[4]] != number]
        weights, bias = fit(Bags([found[at] for at in kept]), labels[kept], costs[kept], arguments.decay)
        scores += list(Bags([found[at] for at in out]).score(weights, bias))
        some += [rows[at] for at in out]
    for threshold in (-0.5, 0, 0.5, 1, 1.5):
        print(threshold)
        table("folds", scores, some, threshold)
    for score, row in sorted(zip(scores, some)):
        if (score >= arguments.threshold) != row[1]:
            print(f"{score:.1f}", "MISS" if row[1] else "FALSE", row[2], row[3], row[0][:150].replace("\n", " "))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--report")
    parser.add_argument("--decay", type=float, default=0.05)
    parser.add_argument("--threshold", type=float, default=0.35)
    parser.add_argument("--folds", action="store_true", help="leave topics of the part for development out in turn, and show what is missed")
    arguments = parser.parse_args()
    rng = random.Random(7)
    dev = own("dev")
    # Kinds that are read by other means teach the words nothing.
    dev = [row for row in dev if not row[1] or not any(k in row[3] for k in ("encoded", "obfuscated", "hidden"))]
    rows = apart(spun(rng) + dev + harmless())
    # Most of what is told is harmless, and of English there are the fewest harmless lines for the many to be caught.
    cost = lambda row: 3.0 if row[3].startswith(("inj", "ben")) else 2.0 if row[2] == "en" and not row[1] else 1.0
    costs = np.array([cost(row) for row in rows])
    labels = np.array([row[1] for row in rows])
    print(len(rows), "rows,", labels.sum(), "to be caught")
    found = buckets(arguments.binary, rows)
    if arguments.folds:
        folds(rows, found, labels, costs, arguments)
        return
    bags = Bags(found)
    weights, bias = fit(bags, labels, costs, arguments.decay)
    write(weights, bias, arguments.threshold)
    table("learnt", bags.score(weights, bias), rows, arguments.threshold)
    if arguments.report:
        test = Bags(buckets(arguments.binary, own("test"))).score(weights, bias)
        some = public(arguments.report)
        scores = Bags(buckets(arguments.binary, some)).score(weights, bias)
        for threshold in (-0.6, -0.3, 0.0, 0.3, 0.6):
            print("threshold", threshold)
            table("test", test, own("test"), threshold)
            for name in ("memshield", "bastion", "notinject"):
                chosen = [(s, r) for s, r in zip(scores, some) if r[3].startswith(name)]
                table(name, [s for s, _ in chosen], [r for _, r in chosen], threshold)


if __name__ == "__main__":
    main()
