"""Chooses how a head's outputs are read (a line of `data/heads.tsv`) on the validation part, and reports it on the test part.

usage: calibrate.py FEATURES OUTPUTS HEAD [--miss 3.45]

FEATURES is the output of the router's example `features`, OUTPUTS that of foremind-embed's example `outputs` for the same
statements. The temperature minimises the log loss on rows written to be hard; the shift is the prior of ordinary talk, where
one statement in seventy belongs to the profile; the threshold follows from what a missed statement costs beside a
false one (--miss), and is raised until at most 1.2 % of ordinary talk and 7 % of the hard rows are shown falsely.
"""

import argparse
import collections
import json

import numpy as np

from rows import is_talk, load_rows, load_split
from score import by_row, profile_logit, wanted_and_counted

# Shares of false profile that the threshold keeps to on the validation part, below what is promised.
TALK, HARD = 0.012, 0.07


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("features"), parser.add_argument("outputs"), parser.add_argument("head")
    parser.add_argument("--miss", type=float, default=3.45)
    given = parser.parse_args()
    rows = {row["id"]: row for row in load_split(load_rows()) if row["lang"] == "en" and row["part"] in ("validation", "test")}
    lexical, asked, outputs = collections.defaultdict(bool), [], []
    statements = [piece for piece in map(json.loads, open(given.features, encoding="utf-8")) if piece["id"] in rows]
    with open(given.outputs, encoding="utf-8") as lines:
        for piece, line in zip(statements, lines, strict=True):
            output = json.loads(line)
            assert output["id"] == piece["id"], "outputs are of other statements"
            lexical[piece["id"]] |= piece["profile"]
            asked.append(piece["id"]), outputs.append(output["features"])
    z = np.array(outputs, np.float32)
    known = [rows[identifier] for identifier in dict.fromkeys(asked)]
    by_lexical = np.array([lexical[row["id"]] for row in known])
    wanted, counted = wanted_and_counted(known)
    talk = np.array([is_talk(row) for row in known])
    part = np.array([row["part"] for row in known])

    def loss(temperature):
        v = by_row(known, asked, profile_logit(z / temperature))
        chosen = (part == "validation") & counted & ~talk
        return np.logaddexp(0, np.where(wanted, -v, v))[chosen].mean()

    temperature = round(min(np.arange(0.5, 4.01, 0.1), key=loss), 1)
    values = by_row(known, asked, profile_logit(z / temperature))
    # From as many profile rows as others to the share of ordinary talk.
    shift = round(float(np.log(1.4 / 98.6)), 1)
    probability = 1 / (1 + np.exp(-(values + shift)))

    def false_share(threshold, kind, which):
        chosen = (part == which) & counted & ~wanted & kind
        return ((probability >= threshold) | by_lexical)[chosen].mean()

    def recall(threshold, kind, which):
        chosen = (part == which) & counted & wanted & kind
        return ((probability >= threshold) | by_lexical)[chosen].mean(), chosen.sum()

    threshold = 1 / (1 + given.miss)
    candidates = np.unique(probability[(part == "validation")])
    fits = [t for t in candidates if false_share(t, talk, "validation") <= TALK and false_share(t, ~talk, "validation") <= HARD]
    threshold = max(threshold * 0, min(fits)) if fits else 1.0
    print(f"{given.head}\t{temperature}\t{shift}\t{threshold:.4f}")
    for which in ("validation", "test"):
        for name, kind in (("hard", ~talk), ("talk", talk)):
            share, count = recall(threshold, kind, which)
            print(f"{which} {name}: profile recall {share:.3f} of {count}, false profile {false_share(threshold, kind, which):.4f}")
    for t in (threshold * f for f in (0.25, 0.5, 0.7, 1.5, 2, 3)):
        print(f"  at {t:.4f}:", *(f"{n} {recall(t, k, 'test')[0]:.3f}/{false_share(t, k, 'test'):.4f}" for n, k in (("hard", ~talk), ("talk", talk))))


if __name__ == "__main__":
    main()
