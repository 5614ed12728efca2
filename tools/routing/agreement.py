"""Prints how far the second labels in tests/data/routing/second agree with the first.

usage: agreement.py [FILE...]     (names in tests/data/routing/second without the ending; else all)
"""

import collections
import json
import sys

from rows import DATA, is_test_file, load_rows


def kappa(first, second):
    """Share of equal labels, and Cohen's kappa: 1 for perfect agreement, 0 for that of chance."""
    rows = len(first)
    equal = sum(a == b for a, b in zip(first, second)) / rows
    counts = collections.Counter(first), collections.Counter(second)
    chance = sum(counts[0][label] * counts[1][label] for label in counts[0]) / rows**2
    return equal, (equal - chance) / (1 - chance)


def show(name, pairs):
    if not pairs:
        return
    first, second = ([row["label"] for row in side] for side in zip(*pairs))
    lenient = sum(b == a or b in (one.get("also_ok") or []) for (one, _), a, b in zip(pairs, first, second)) / len(pairs)
    profile = kappa([a == "profile" for a in first], [b == "profile" for b in second])
    graded = [(one["grade"], two["grade"]) for one, two in pairs if one.get("grade") and two.get("grade")]
    grade = kappa(*zip(*graded)) if graded else (float("nan"), float("nan"))
    cells = (*kappa(first, second), lenient, *profile, *grade)
    print(f"| {name} | {len(pairs)} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


def main():
    rows = {row["id"]: row for row in load_rows()}
    names = sys.argv[1:] or sorted(path.stem for path in DATA.glob("second/*.jsonl"))
    print("| rows | number | label | kappa | label, also_ok counted | profile or not | kappa | grade | kappa |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        lines = (DATA / f"second/{name}.jsonl").read_text(encoding="utf-8").splitlines()
        pairs = [(rows[label["id"]], label) for label in map(json.loads, lines) if label["id"] in rows]
        show(name, pairs)
        show("of them talk for testing", [pair for pair in pairs if is_test_file(pair[0])])
        others = [pair for pair in pairs if not is_test_file(pair[0])]
        show("of them English", [pair for pair in others if pair[0]["lang"] == "en"])
        show("of them other languages", [pair for pair in others if pair[0]["lang"] != "en"])


if __name__ == "__main__":
    main()
