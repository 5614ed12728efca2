"""Reads the labelled rows of tests/data/routing and the split between training, validation and test part."""

import json
import pathlib
import re
import unicodedata

from blake3 import blake3

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/routing"
LEFT_OUT = DATA / "left_out.txt"


def load_rows():
    """All rows, in the order of the files' names, each with its `file` ("seed/talk")."""
    rows = []
    for path in sorted([*DATA.glob("seed/*.jsonl"), *DATA.glob("written/*.jsonl")]):
        name = f"{path.parent.name}/{path.stem}"
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line)
                    row["id"], row["text"], row["label"], row["lang"]
                except (ValueError, KeyError) as problem:
                    raise SystemExit(f"{path}:{number}: bad row: {problem}") from None
                row["file"] = name
                rows.append(row)
    return rows


def part_of(row):
    """The part of a row's group: test for a file that is test as a whole, else by the BLAKE3 hash of the name: see split.py."""
    if is_test_file(row):
        return "test"
    digest = blake3(group(row).encode()).digest()
    if int.from_bytes(digest[:8], "little") % 5 == 0:
        return "test"
    return "validation" if int.from_bytes(digest[8:16], "little") % 10 == 0 else "train"


def load_split(rows):
    """Adds `part` to every row: `train`, `validation`, `test` or `out` (a near duplicate of a row of another part)."""
    left_out = set(LEFT_OUT.read_text(encoding="utf-8").split())
    for row in rows:
        row["part"] = "out" if row["id"] in left_out else part_of(row)
    return rows


def group(row):
    """The name of what must stay together: a topic, a twin group, a session; else the row alone."""
    if row.get("topic"):
        return row["topic"]
    if row["file"] == "seed/pairs":
        return row["id"].rsplit("-", 1)[0]
    return row.get("session") or row["id"]


def is_talk(row):
    """Whether a row is ordinary talk, rather than written to be hard."""
    return "/talk" in row["file"]


def is_test_file(row):
    """Whether a row's file was written for testing only: its name begins with talk-test."""
    return row["file"].split("/")[-1].startswith("talk-test")


def normalised(text):
    """Text without case, accents, marks and runs of white space: what near duplicates are compared by."""
    text = unicodedata.normalize("NFKD", text).casefold()
    text = "".join(c for c in text if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", text).split())


def shingles(text, size=5):
    """The set of character n-grams of a normalised text."""
    return {text[i : i + size] for i in range(max(1, len(text) - size + 1))}
