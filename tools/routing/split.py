"""Looks for rows that are near duplicates of rows of another part, and names them in tests/data/routing/left_out.txt.

usage: split.py [--check]     (--check: writes nothing, fails when the committed file is not what the rule gives)

Rows of one group (topic, twin group, session; else the row alone) stay together. Files whose names begin with talk-test are
test as a whole, and no group of theirs has the name of a group elsewhere. Any other group is in the test part when the
first eight bytes (little-endian) of the BLAKE3 hash of its name are 0 modulo 5, and in the validation part when it is not
and bytes 8 to 16 are 0 modulo 10. A row of a later part (test, validation, train) that is a near duplicate of a row of an
earlier one is left out of everything: the character 5-grams of their normalised texts have a Jaccard similarity of
at least 0.6. Joining such groups instead would tie half of the ordinary talk together by its "Any suggestions?". Since a
group's part depends on its name alone, a row whose errors were looked at in training never becomes a test row.
"""

import collections
import sys

from rows import LEFT_OUT, is_talk, load_rows, load_split, normalised, part_of, shingles

ORDER = ("test", "validation", "train")
NEAR = 0.6
# A shingle of more rows than this is no sign of a copy and not looked up; two texts that share 0.6 of their shingles
# share rare ones, at least a quarter of the shorter one's. To be raised when the test part grows: 30 missed ten of
# the 95 copies, 1,000 finds no more than 100 does.
COMMON = 100


def left_out(rows):
    """Ids of the rows that are near duplicates of a row of an earlier part."""
    texts = [normalised(row["text"]) for row in rows]
    ranks = [ORDER.index(part_of(row)) for row in rows]
    sets = [shingles(text) for text in texts]
    # Only rows that others can be copies of are looked up: those of the test and validation parts.
    postings, same = collections.defaultdict(list), {}
    for at, grams in enumerate(sets):
        if ranks[at] < ORDER.index("train"):
            for gram in grams:
                postings[gram].append(at)
            same[texts[at]] = min(ranks[at], same.get(texts[at], ranks[at]))
    copies = set()
    for at, grams in enumerate(sets):
        shared = collections.Counter()
        for gram in grams:
            found = postings.get(gram, ())
            if len(found) <= COMMON:
                shared.update(found)
        near = (
            other
            for other, both in shared.items()
            if ranks[other] < ranks[at] and 4 * both >= min(len(grams), len(sets[other]))
        )
        if same.get(texts[at], ranks[at]) < ranks[at] or any(alike(grams, sets[other]) for other in near):
            copies.add(rows[at]["id"])
    return copies


def alike(one, other):
    both = len(one & other)
    return both >= NEAR * (len(one) + len(other) - both)


def main():
    rows = load_rows()
    text = "".join(f"{identifier}\n" for identifier in sorted(left_out(rows)))
    if "--check" in sys.argv[1:]:
        if LEFT_OUT.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{LEFT_OUT} is not what the rule gives: run split.py")
    else:
        LEFT_OUT.write_text(text, encoding="utf-8")
    counts = collections.Counter()
    for row in load_split(rows):
        kind = "talk" if is_talk(row) else row["lang"]
        counts[kind, row["part"], row["label"]] += 1
    print("| rows | part | profile | store | none |\n|---|---|---|---|---|")
    for kind in sorted({kind for kind, _, _ in counts}):
        for part in (*ORDER, "out"):
            shown = " | ".join(str(counts[kind, part, label]) for label in ("profile", "store", "none"))
            print(f"| {kind} | {part} | {shown} |")


if __name__ == "__main__":
    main()
