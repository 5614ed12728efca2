"""Chooses how a head's outputs are read (a line of `data/heads.tsv`) on the validation part, and reports it on the test part.

usage: calibrate.py FEATURES OUTPUTS HEAD [--certain 0.3] [--doubt 0.01] [--sure 0.003]

FEATURES is the output of the router's example `features`, OUTPUTS that of foremind-embed's example `outputs` for the same
statements. The temperature minimises the log loss on rows written to be hard; the shift is the prior of ordinary talk, where
one statement in seventy belongs to the profile. The threshold is the lowest at which at most 1.5 % of ordinary talk and 7 % of the
hard rows of the validation part are shown falsely, with what the lexical stage shows and the head does not take back
(--doubt, --sure; what could endanger, which stays, is not told apart here). What waits for a judge in the store, visible while the
profile has room, begins where 5 % of ordinary talk would.
"""

import argparse
import functools
import json

import numpy as np

from rows import is_talk, load_rows, load_split
from score import by_row, profile_logit, wanted_and_counted

# Shares of false profile that the threshold keeps to on the validation part, below what is promised.
TALK, HARD = 0.015, 0.07
# Share of ordinary talk that is of the profile, or asked about: a doubtful line in spare room costs tokens alone.
ASKED = 0.05


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("features"), parser.add_argument("outputs"), parser.add_argument("head")
    parser.add_argument("--certain", type=float, default=0.3)
    parser.add_argument("--doubt", type=float, default=0.01)
    parser.add_argument("--sure", type=float, default=0.003)
    given = parser.parse_args()
    parts = ("validation", "test")
    rows = {row["id"]: row for row in load_split(load_rows()) if row["lang"] == "en" and row["part"] in parts}
    least, asked, outputs = [], [], []
    statements = [piece for piece in map(json.loads, open(given.features, encoding="utf-8")) if piece["id"] in rows]
    with open(given.outputs, encoding="utf-8") as lines:
        for piece, line in zip(statements, lines, strict=True):
            output = json.loads(line)
            assert output["id"] == piece["id"], "outputs are of other statements"
            # From which probability the statement is shown; without a number from the threshold.
            least.append((given.sure if piece["certain"] else given.doubt) if piece["profile"] else np.nan)
            asked.append(piece["id"]), outputs.append(output["features"])
    z = np.array(outputs, np.float32)
    known = [rows[identifier] for identifier in dict.fromkeys(asked)]
    least = np.array(least)
    wanted, counted = wanted_and_counted(known)
    talk = np.array([is_talk(row) for row in known])
    part = np.array([row["part"] for row in known])

    def loss(temperature):
        v = by_row(known, asked, profile_logit(z / temperature))
        chosen = (part == "validation") & counted & ~talk
        return np.logaddexp(0, np.where(wanted, -v, v))[chosen].mean()

    temperature = round(min(np.arange(0.5, 4.01, 0.1), key=loss), 1)
    # From as many profile rows as others to the share of ordinary talk.
    shift = round(float(np.log(1.4 / 98.6)), 1)
    probability = 1 / (1 + np.exp(-(profile_logit(z / temperature) + shift)))

    @functools.cache
    def shown(threshold):
        above = probability >= np.where(np.isnan(least), threshold, least)
        return by_row(known, asked, above)

    def false_share(threshold, kind, which):
        return shown(threshold)[(part == which) & counted & ~wanted & kind].mean()

    def recall(threshold, kind, which):
        chosen = (part == which) & counted & wanted & kind
        return shown(threshold)[chosen].mean(), chosen.sum()

    candidates = np.arange(0.005, 0.2, 0.0025)
    fits = [t for t in candidates if false_share(t, talk, "validation") <= TALK and false_share(t, ~talk, "validation") <= HARD]
    threshold = min(fits, default=1.0)
    fine = np.arange(0.001, threshold, 0.0005)
    asked_from = min([t for t in fine if false_share(t, talk, "validation") <= ASKED], default=threshold)
    print(f"{given.head}\t{temperature}\t{shift}\t{asked_from:.4f}\t{threshold:.4f}\t{given.certain}\t{given.doubt}\t{given.sure}")
    for which in ("validation", "test"):
        for name, kind in (("hard", ~talk), ("talk", talk)):
            share, count = recall(threshold, kind, which)
            print(f"{which} {name}: profile recall {share:.3f} of {count}, false profile {false_share(threshold, kind, which):.4f}")


if __name__ == "__main__":
    main()
