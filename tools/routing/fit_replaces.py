"""Fits the weights of `crates/foremind-router/data/replaces.tsv` to the part for development of the supersession scenarios.

    python3 fit_replaces.py --pairs PROGRAM --vectors vectors.jsonl [--explain]

PROGRAM is the router's example `pairs`; `vectors.jsonl` holds `[text, int8 vector]` a line. A pair counts as a replacement
when its earlier statement is stale by the scenario and the later one is the next that is stale or current. Weights are whole
numbers, so that every host adds up the same score. Seeds and order are fixed: the file can be made again.
"""

import argparse
import json
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests/data/supersession/scenarios.jsonl"
OUT = ROOT / "crates/foremind-router/data/replaces.tsv"


def has(text, marks):
    return any(mark.lower() in text.lower() for mark in marks)


def pairs_of(row):
    """(earlier, later, label): 1 replaces, 0 does not, None counts neither way."""
    told, pairs = [], []
    for event in row["events"]:
        if "forget" in event:
            told = [t for t in told if t["text"] != event["forget"]]
            continue
        told.append({"text": event["text"], "day": event["day"]})
        later = told[-1]
        for at, earlier in enumerate(told[:-1]):
            pairs.append((earlier, later, label(row, earlier["text"], later["text"], at, told)))
    return pairs


def label(row, earlier, later, at, told):
    category = row["category"]
    key = lambda text: has(text, row["must_include"]) or has(text, row["stale"])
    kept = has(earlier, row["wrong"]) and row.get("wrong_when") == "retired"
    if category == "return" and at == 0 and has(later, row["must_include"]):
        return None
    if category == "temporary" and key(later):
        return None
    # What is current before and after a plan, or not spoken of in the scenario, tells nothing.
    if category in ("planned", "erased-and-told-again") and not has(earlier, row["stale"]) and has(later, row["stale"] + row["must_include"]):
        return None
    if category in ("additive", "other-subject", "partial", "abstention", "temporary"):
        return 0
    if kept and category != "planned":
        return 0
    if category == "return" and at == 0 and has(later, row["stale"]):
        return 1
    if category == "planned" and kept:
        return None
    if not key(later) or (has(later, row["wrong"]) and row.get("wrong_when") == "retired"):
        return 0
    if not has(earlier, row["stale"]):
        # The first of a chain asked about in the past is current there.
        return None if key(earlier) else 0
    between = [t["text"] for t in told[at + 1 : -1] if key(t["text"])]
    return None if between else 1


def cosine(a, b):
    a, b = np.array(a, float), np.array(b, float)
    return int(1000 * a @ b / np.sqrt((a @ a) * (b @ b)))


def fit(examples, rounds=3000, decay=0.01, rate=0.05):
    """Logistic regression by Adam, whole batches."""
    xs = np.array([x for x, _, _ in examples])
    ys = np.array([y for _, y, _ in examples], float)
    importance = np.array([w for _, _, w in examples], float)
    importance /= importance.sum()
    weights = np.zeros(xs.shape[1])
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, rounds + 1):
        p = 1 / (1 + np.exp(-np.clip(xs @ weights, -30, 30)))
        gradient = xs.T @ ((p - ys) * importance) + decay / 10 * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-9)
    return weights


# Least scores of a replacement and of a doubt, chosen on the topics left out of each fit.
RETIRE, DOUBT = 3600, 1200
# What the comparison says where no guard holds.
FREE = ("about something else", "may contradict it", "another value of the same", "back to what was before", "it is over",
        "a correction of it", "what came of it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", required=True)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--explain", action="store_true")
    arguments = parser.parse_args()
    vectors = dict(json.loads(line) for line in open(arguments.vectors))
    rows = [json.loads(line) for line in open(ROWS)]
    rows = [row for row in rows if row["part"] == "dev"]
    pairs = []
    for row in rows:
        for earlier, later, is_replaced in pairs_of(row):
            if is_replaced is not None:
                pairs.append((row, earlier["text"], later["text"], is_replaced))
    lines = []
    for _, earlier, later, _ in pairs:
        lines.append(json.dumps([earlier, later, max(0, cosine(vectors[earlier], vectors[later]))]))
        lines.append(json.dumps([earlier, later, None]))
    told = subprocess.run([arguments.pairs], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    held = [why not in FREE for _, why in answers[0::2]]
    for at, pair in enumerate(pairs):
        if held[at] and pair[3]:
            print(f"held back: {answers[2 * at][1]}: {pair[0]['id']} {pair[1]} -> {pair[2]}")
    kept = [at for at in range(len(pairs)) if not held[at]]
    pairs = [pairs[at] for at in kept]
    features = [[[x / 1000 for x in answers[2 * at + k][0]] for at in kept] for k in (0, 1)]
    with_vector, without = features

    def examples(chosen):
        found = []
        for at in chosen:
            y = pairs[at][3]
            importance = 4 if y else 1
            found.append((with_vector[at], y, importance))
            found.append((without[at], y, importance))
        return found

    # Judged by topics that were left out of the fit.
    topics = sorted({pair[0]["topic"] for pair in pairs})
    scores = [0.0] * len(pairs)
    blind = [0.0] * len(pairs)
    for fold in range(5):
        held = set(topics[fold::5])
        chosen = [at for at, pair in enumerate(pairs) if pair[0]["topic"] not in held]
        weights = fit(examples(chosen))
        for at, pair in enumerate(pairs):
            if pair[0]["topic"] in held:
                scores[at] = sum(w * x for w, x in zip(weights, with_vector[at]))
                blind[at] = sum(w * x for w, x in zip(weights, without[at]))
    for name, values in (("vectors", scores), ("words", blind)):
        ranked = sorted(zip(values, pairs), key=lambda one: -one[0])
        positives = sum(pair[3] for pair in pairs)
        for wrong in (0, 1, 2, 3, 5, 8, 12, 20, 40):
            seen, right, floor = 0, 0, 0
            for value, pair in ranked:
                if pair[3]:
                    right += 1
                else:
                    seen += 1
                    if seen > wrong:
                        break
                floor = value
            print(f"{name}: {wrong} wrong: {right} of {positives} found, score {floor:.2f}")
    if arguments.explain:
        for value, (row, earlier, later, y) in sorted(zip(scores, pairs), key=lambda one: one[0]):
            if (y and value < 2.5) or (not y and value > -1.0):
                print(f"{value:6.2f} {y} {row['id']} {row['category']}: {earlier} -> {later}")
    weights = fit(examples(range(len(pairs))))
    names = subprocess.run([arguments.pairs, "--names"], capture_output=True, text=True, check=True).stdout.split()
    with open(OUT, "w") as out:
        out.write("# Weights of the features of a pair of statements, in thousandths; made by tools/routing/fit_replaces.py.\n")
        out.write(f"retire\t{RETIRE}\ndoubt\t{DOUBT}\n")
        for name, weight in zip(names, weights):
            out.write(f"{name}\t{round(weight * 1000)}\n")


main()
