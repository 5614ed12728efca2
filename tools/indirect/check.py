"""Checks tests/data/indirect/rows.jsonl and not-irrelevant.tsv.

usage: check.py [--list]     (--list: prints doubtful pairs as well: naive queries that share no word with their fact)

Fails when a row has a missing or unknown field, an id or text occurs twice, a topic has more than three rows or rows in
both parts, a fact and its indirect query share a content word (a word of at least three letters that is no function
word, cut to a stem; two neighbouring characters other than hiragana where no spaces are written), a domain is too rare,
or the pairs name unknown rows.
"""

import collections
import json
import pathlib
import re
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/indirect"
RECORD = ROOT / "crates/foremind-types/src/record.rs"
FIELDS = [
    "id", "lang", "domain", "fact", "naive_query", "indirect_query", "bridge", "source_name", "irrelevant_query",
    "topic", "part",
]
LANGS = {"en", "es", "fr", "de", "pt", "it", "ja", "zh", "ko", "hi", "ar"}
TEXTS = ["fact", "naive_query", "indirect_query", "bridge", "irrelevant_query"]
# Domains of the router's requirements; each has at least this many rows.
CORE = set(
    "allergy medication condition procedure pregnancy disability diet religion culture immigration legal policy finance "
    "job licence home location pets dependant devices safety goal instruction session".split()
)
CORE_ROWS = 10
# Function words; those of under three letters are left out anyway.
FUNCTION_WORDS = set(
    """the and for with without from into onto over under after before since until about off out our ours mine your
    yours you his her him she they them their its who whom whose what which when where why how that this these those
    there here are was were been being has have had having does did doing done will would can could may might must shall
    should not nor but yet than then too very just only also all any some every each both few more most much many other
    another such own same while because though ever never always still once again get gets got getting give gives gave
    go goes going went make makes made making take takes took taking put puts let lets keep keeps kept one two three
    good best better nice right well fine like way thing things something anything nothing back down away around per
    between during against near next last first new now today yes please want wants need needs use uses used using
    come comes came set sets say says said tell told find found see saw seen look looks know knows think
    un una uno las los del con por para que qué como cómo más sin sobre este esta estos desde hasta pero mis sus les
    des aux est sont une dans sur pour par avec sans mon mes ses nos ton tes quel quelle quels quelles comment
    der die das den dem des ein eine einen einem einer ist sind war und oder mit von für auf aus bei nach seit zum zur
    ich mir mich mein meine meinem meinen wir uns unser unsere was wie wann wer nicht noch nur auch
    uma dos das nos nas com são meu minha nosso nossa onde quando sempre há
    gli che chi cosa come della delle dei degli nel nella sono mio mia suo sua più per
    من في على عن إلى مع هذا هذه التي الذي هل كيف متى أين كان كنت لدي عندي
    है हैं था थी थे में से को का की के पर और या मैं मेरा मेरी मेरे हम हमारे हमारी क्या कौन कब कहाँ कैसे यह वह हो गया गई""".split()
)


def plain(text):
    """Case-folded text without accents on Latin letters."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in folded if not "\u0300" <= c <= "\u036f"))


FUNCTION_PLAIN = {plain(word) for word in FUNCTION_WORDS}


def stem(word):
    """A rough stem, long enough to keep unlike words apart."""
    for end in ("ings", "ing", "edly", "ies", "ied", "ers", "er", "ed", "es", "ly", "s", "e", "y"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    if len(word) > 4 and word[-1] == word[-2]:
        word = word[:-1]
    return word


def content(text, lang):
    """The content words of a text, as stems."""
    text = plain(text)
    if lang in ("ja", "zh"):
        pairs = zip(text, text[1:])
        return {a + b for a, b in pairs if all(c.isalnum() and not "\u3041" <= c <= "\u309f" for c in (a, b))}
    words = re.findall(r"[^\W_]+(?:[\u093c-\u094d\u0900-\u0903][^\W_]*)*", text)
    if lang == "ko":
        return {word[:2] for word in words if len(word) >= 2}
    return {stem(word) for word in words if len(word) >= 3 and word not in FUNCTION_PLAIN}


def domains():
    """The values of the enum Domain."""
    body = RECORD.read_text().split("    Domain {", 1)[1].split("\n    }", 1)[0]
    return set(re.findall(r'= "([a-z-]+)"', body))


def check():
    """Problems found, doubtful rows, and all rows."""
    problems, doubtful, rows = [], [], []
    ids, texts, parts = set(), {}, collections.defaultdict(set)
    topics, count = collections.Counter(), collections.Counter()
    known = domains()
    for number, line in enumerate((DATA / "rows.jsonl").read_text().splitlines(), 1):
        row = json.loads(line)
        name = row.get("id", f"line {number}")
        if list(row) != FIELDS or not all(isinstance(v, str) and v.strip() == v != "" for v in row.values()):
            problems.append(f"{name}: fields")
            continue
        rows.append(row)
        if name in ids or name != f"IN-{number:03}":
            problems.append(f"{name}: id")
        ids.add(name)
        if row["domain"] not in known or row["lang"] not in LANGS or row["part"] not in ("dev", "test"):
            problems.append(f"{name}: value of domain, lang or part")
        count[row["domain"]] += 1
        topics[row["topic"]] += 1
        parts[row["topic"]].add(row["part"])
        for field in TEXTS:
            if field == "fact" and topics[row["topic"]] > 1:
                continue
            other = texts.setdefault(plain(row[field]), name)
            if other != name:
                problems.append(f"{name}: {field} is that of {other}")
        fact = content(row["fact"], row["lang"])
        shared = fact & content(row["indirect_query"], row["lang"])
        if shared:
            problems.append(f"{name}: fact and indirect query share {sorted(shared)}")
        if not fact & content(row["naive_query"], row["lang"]):
            doubtful.append(f"{name}: naive query shares no word: {row['fact']} / {row['naive_query']}")
    problems += [f"topic {t}: {n} rows" for t, n in topics.items() if n > 3]
    problems += [f"topic {t}: in both parts" for t, p in parts.items() if len(p) > 1]
    problems += [f"domain {d}: {count[d]} rows" for d in sorted(CORE) if count[d] < CORE_ROWS]
    pairs = DATA / "not-irrelevant.tsv"
    for number, line in enumerate(pairs.read_text().splitlines() if pairs.exists() else [], 1):
        cells = line.split("\t")
        if len(cells) != 2 or not set(cells) <= ids:
            problems.append(f"not-irrelevant.tsv:{number}: {line}")
    return problems, doubtful, rows


def main():
    problems, doubtful, rows = check()
    for line in problems + (doubtful if "--list" in sys.argv else []):
        print(line)
    count = collections.Counter((r["domain"], r["part"]) for r in rows)
    for domain in sorted({d for d, _ in count}):
        print(f"{domain:14} dev {count[domain, 'dev']:3} test {count[domain, 'test']:3}")
    langs = collections.Counter(r["lang"] for r in rows)
    print(len(rows), "rows,", sum(r["part"] == "test" for r in rows), "test;", dict(langs))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
