"""Divides the labelled rows into training, validation and test part.

usage: split.py [--check]     (--check: writes nothing, fails when the committed split is not what the rule gives)

Rows of one group (topic, twin group, session; else the row alone) stay together. A group is in the test part when the
first eight bytes (little-endian) of the BLAKE3 hash of its name are 0 modulo 5, and in the validation part when it is not
and bytes 8 to 16 are 0 modulo 10. A row of a later part (test, validation, train) that is a near duplicate of a row of an
earlier one is left out of everything: the character 5-grams of their normalised texts have a Jaccard similarity of
at least 0.6. Joining such groups instead would tie half of the ordinary talk together by its "Any suggestions?". Since a
group's part depends on its name alone, a row whose errors were looked at in training never becomes a test row.
"""

import collections
import sys

from blake3 import blake3

from rows import SPLIT, group, load_rows, normalised, shingles

NEAR = 0.6
# A shingle of more rows than this is no sign of a copy and not looked up; two texts that share 0.6 of their shingles
# share rare ones.
COMMON = 30


def near_duplicates(texts):
    """Pairs of positions whose texts are near duplicates."""
    sets = [shingles(text) for text in texts]
    postings = collections.defaultdict(list)
    for at, grams in enumerate(sets):
        for gram in grams:
            postings[gram].append(at)
    for at, grams in enumerate(sets):
        shared = collections.Counter()
        for gram in grams:
            if len(postings[gram]) <= COMMON:
                shared.update(other for other in postings[gram] if other < at)
        for other in shared:
            both = len(grams & sets[other])
            if both >= NEAR * (len(grams) + len(sets[other]) - both):
                yield other, at
    same = collections.defaultdict(list)
    for at, text in enumerate(texts):
        yield from ((other, at) for other in same[text])
        same[text].append(at)


def hash_number(name, from_byte):
    return int.from_bytes(blake3(name.encode()).digest()[from_byte : from_byte + 8], "little")


def part_of(name):
    if hash_number(name, 0) % 5 == 0:
        return "test"
    return "validation" if hash_number(name, 8) % 10 == 0 else "train"


def divide(rows):
    """The part of each row, by id; training rows are left out."""
    parts = [part_of(group(row)) for row in rows]
    order = ["test", "validation", "train"]
    copies = set()
    for pair in near_duplicates([normalised(row["text"]) for row in rows]):
        ranks = [order.index(parts[at]) for at in pair]
        if ranks[0] != ranks[1]:
            copies.add(pair[ranks[1] > ranks[0]])
    for at in copies:
        parts[at] = "out"
    return {row["id"]: part for row, part in zip(rows, parts) if part != "train"}


def main():
    rows = load_rows()
    parts = divide(rows)
    text = "".join(f"{identifier}\t{part}\n" for identifier, part in sorted(parts.items()))
    if "--check" in sys.argv[1:]:
        if SPLIT.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{SPLIT} is not what the rule gives: run split.py")
    else:
        SPLIT.write_text(text, encoding="utf-8")
    counts = collections.Counter()
    for row in rows:
        part = parts.get(row["id"], "train")
        kind = "talk" if row["file"] == "seed/talk" else row["lang"]
        counts[kind, part, row["label"]] += 1
    print("| rows | part | profile | store | none |\n|---|---|---|---|---|")
    for kind in sorted({kind for kind, _, _ in counts}):
        for part in ("train", "validation", "test", "out"):
            shown = " | ".join(str(counts[kind, part, label]) for label in ("profile", "store", "none"))
            print(f"| {kind} | {part} | {shown} |")


if __name__ == "__main__":
    main()
