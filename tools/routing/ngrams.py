"""Trains the n-gram head for the ten languages beside English, and writes it as the router reads it.

usage: ngrams.py OUT [--width 6] [--keep 60000] [--levels 24] [--share 1.0] [--folds 3]

Logistic regressions, one for each group of scripts, on the buckets of foremind_router::ngrams (the same hash, restated below), each weighed by its rarity
(tf-idf, the text's vector cut to length 1). It is trained on the training and the validation part; what there is to choose is
chosen by cross-validation over whole topics (--folds; 0 leaves it out), which the printed lines report. The table's
first column is the logit of the profile; the others are the best approximation of the remaining outputs (singular values).
Of the buckets the most telling are kept, in few steps: a bit for each bucket, then the rows of those.
"""

import argparse
import functools
import struct

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from labels import DOMAINS, SIZES, TTLS, targets
from rows import group, load_rows, load_split
from score import LATIN, area, recall_at, wanted_and_counted

BUCKETS = 1 << 18
GRAMS = range(1, 6)
WORD_SEED, PAIR_SEED, CHARS, MASK = 101, 102, 1024, 0xFFFFFFFF
QUESTIONS, QUOTES = set("?？؟¿"), set('"«»“”„「」『』‹›')
MARKS = ((0x80, 0xA9), (0xAB, 0xB4), (0xB6, 0xB9), (0xBB, 0xBF), (0x2000, 0x206F), (0x3000, 0x303F), (0xFF00, 0xFF0F),
         (0xFF1A, 0xFF20), (0x60C, 0x60C), (0x61B, 0x61B), (0x6D4, 0x6D4), (0x964, 0x965))
# What each block of outputs counts when the table is cut to its width.
SHARES = (1.0, 0.7, 1.0, 0.4)


def folded(text):
    """Words as code points, as in ngrams.rs."""
    words, word = [], []
    for c in text[:CHARS].lower():
        code = ord(c)
        mark = "?" if c in QUESTIONS else '"' if c in QUOTES else None
        kept = c.isalnum() if code < 128 else not any(a <= code <= b for a, b in MARKS)
        if mark is None and kept:
            word.append(0x30 if "0" <= c <= "9" else code)
            continue
        if word:
            words.append(word)
            word = []
        if mark:
            words.append([ord(mark)])
    return [*words, word] if word else words


def fnv(codes, seed):
    value = 2166136261 ^ seed
    for code in codes:
        value = ((value ^ code) * 16777619) & MASK
    return value


@functools.lru_cache(None)
def buckets(text):
    """The distinct buckets of a text, as in ngrams.rs."""
    words = folded(text)
    line = [32]
    for at, word in enumerate(words):
        line += [32] * (at > 0) + word
    line.append(32)
    found = {fnv(line[at : at + size], size) for size in GRAMS for at in range(len(line) - size + 1)}
    found |= {fnv(word, WORD_SEED) for word in words}
    found |= {fnv([*a, 32, *b], PAIR_SEED) for a, b in zip(words, words[1:])}
    values = np.array(sorted(found), np.uint64)
    return np.unique((values ^ (values >> np.uint64(15))) % np.uint64(BUCKETS)).astype(np.int64)


def vectors(rows):
    found = [buckets(row["text"]) for row in rows]
    values = np.concatenate([np.full(len(one), len(one) ** -0.5) for one in found])
    ends = np.cumsum([0, *map(len, found)])
    return csr_matrix((values, np.concatenate(found), ends), (len(rows), BUCKETS))


def fit_profile(rows):
    """Frequencies of the buckets, those that are used, the weighed vectors, and the logit of the profile on them. Each bucket
    belongs to the scripts, Latin or others, that have it more often, and is fitted on their rows; those of Latin script, where
    words are many, count by how differently they are spread over the two classes (Wang and Manning 2012, "Baselines and
    Bigrams"). There is no constant: what every text has serves as one."""
    seen = vectors(rows)
    has = (seen > 0).astype(np.float32)
    latin = np.isin([row["lang"] for row in rows], LATIN)
    often = {True: np.asarray(has[latin].sum(0)).ravel(), False: np.asarray(has[~latin].sum(0)).ravel()}
    frequency = often[True] + often[False]
    columns = np.flatnonzero(frequency >= 2)
    rarity = np.log((1 + len(rows)) / (1 + frequency[columns])) + 1
    seen = seen[:, columns].multiply(rarity).tocsr()
    sure = np.array([0.6 if row.get("also_ok") else 1.0 for row in rows])
    profile = np.array([row["label"] == "profile" for row in rows])
    first = np.zeros(len(columns))
    for script in (True, False):
        own = np.flatnonzero((often[True] >= often[False])[columns] == script)
        chosen = np.flatnonzero(latin == script)
        spread = np.ones(len(own))
        if script:
            share = [np.asarray(has[chosen[profile[chosen] == side]][:, columns[own]].sum(0)).ravel() + 1 for side in (True, False)]
            spread = np.abs(np.log(share[0] / share[0].sum() * share[1].sum() / share[1])) + 0.2
        model = LogisticRegression(C=1.0, max_iter=200, fit_intercept=False)
        model.fit(seen[chosen][:, own].multiply(spread).tocsr(), profile[chosen], sample_weight=sure[chosen])
        first[own] = model.coef_[0] * spread * rarity[own]
    return frequency, columns, rarity, seen, first


def fit(rows, given):
    """A table of `width` columns, the matrix behind it, the bias."""
    frequency, columns, rarity, seen, first = fit_profile(rows)

    wanted = np.array([targets(row) for row in rows]) == 1
    weights, bias, at = np.zeros((len(columns), sum(SIZES))), np.full(sum(SIZES), -12.0), 0
    for size in SIZES:
        block = wanted[:, at : at + size]
        has = block.sum(1) == 1
        model = LogisticRegression(C=1.0, max_iter=25).fit(seen[has], block.argmax(1)[has])
        for kind, coefficients, constant in zip(model.classes_, model.coef_, model.intercept_):
            weights[:, at + kind], bias[at + kind] = coefficients * rarity, constant
        at += size
    # The grades: modifier against circumstance, informer against none; between the two pairs the profile's logit decides.
    for a, b in ((0, 1), (2, 3)):
        half, middle = (weights[:, a] - weights[:, b]) / 2, (bias[a] - bias[b]) / 2
        weights[:, a], weights[:, b] = half, -half
        bias[a], bias[b] = middle, -middle

    often = np.sqrt(frequency[columns])[:, None]
    shares = np.repeat(SHARES, SIZES)
    shares[2:4] = 0.3
    left, values, right = np.linalg.svd(weights * shares * often, full_matrices=False)
    rest = given.width - 1
    table = np.column_stack([first, left[:, :rest] * values[:rest] / often])
    matrix = np.vstack([np.zeros(sum(SIZES)), right[:rest] / shares])
    matrix[0, :4] = 0.5, 0.5, -0.5, -0.5
    # Columns of like size, the first twice as fine.
    for column in range(given.width):
        size = np.sqrt((table[:, column] ** 2 * often[:, 0] ** 2).sum() / frequency.sum()) * (1 if column == 0 else 2)
        table[:, column] /= size
        matrix[column] *= size
    telling = np.abs(table[:, 0]) * often[:, 0] + 0.3 * np.sqrt((table[:, 1:] ** 2).sum(1)) * often[:, 0]
    table[np.argsort(telling)[: -given.keep]] = 0
    step = np.quantile(np.abs(table[:, 0][table[:, 0] != 0]), 0.999) / given.levels
    # The others in seven steps each way: half a byte.
    for column in range(1, given.width):
        size = np.quantile(np.abs(table[:, column][table[:, column] != 0]), 0.995) / 7 / step
        table[:, column] /= size
        matrix[column] *= size
    cells = np.zeros((BUCKETS, given.width), np.int8)
    most = np.array([127] + [7] * rest)
    cells[columns] = np.clip(np.round(table / step), -most, most)
    return cells, step, matrix, bias


def packed(cells):
    """A bit for each bucket that has a row, and the rows: the first column a byte, then two columns a byte."""
    known = cells.any(1)
    rows = cells[known]
    halves = (rows[:, 1:] & 15).astype(np.uint8)
    halves = np.pad(halves, ((0, 0), (0, halves.shape[1] % 2)))
    rows = np.column_stack([rows[:, 0].astype(np.uint8), halves[:, ::2] | halves[:, 1::2] << 4])
    return np.packbits(known, bitorder="little").tobytes() + rows.tobytes()


def outputs(rows, head):
    cells, step, matrix, bias = head
    return vectors(rows) @ (cells.astype(np.float32) * step) @ matrix + bias


def profile_logit(z):
    return np.logaddexp(z[:, 0], z[:, 1]) - np.logaddexp(z[:, 2], z[:, 3])


def report(name, rows, values, z=None):
    """AUROC and recall at 0.1 false by language, the other outputs, and both shares at thresholds of the logit."""
    wanted, counted = wanted_and_counted(rows)
    languages = np.array([row["lang"] for row in rows])
    for language in sorted(set(languages)):
        chosen = (languages == language) & counted
        v, w = values[chosen], wanted[chosen]
        print(f"{name} | {language} {w.sum()}/{(~w).sum()} | AUROC {area(w, v):.3f} | recall at 0.1: {recall_at(v, w, 0.1):.3f}")
    if z is not None:
        at = 4 + len(DOMAINS)
        ttls = z[:, at : at + 4].argmax(1)
        right = [TTLS[o] == row.get("ttl") for row, o in zip(rows, ttls) if row["label"] == "profile"]
        print(f"{name} | time to live right, of the profile: {np.mean(right):.3f}")
    for group_of, chosen in (("Latin", np.isin(languages, LATIN)), ("others", ~np.isin(languages, LATIN))):
        shown = []
        for threshold in np.arange(-1.0, 1.01, 0.25):
            above = values >= threshold
            recall, false = above[chosen & counted & wanted].mean(), above[chosen & counted & ~wanted].mean()
            shown.append(f"{threshold:.2f}: {recall:.3f}/{false:.3f}")
        print(f"{name} | {group_of} | logit from, recall/false | {' '.join(shown)}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out")
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--keep", type=int, default=60_000)
    parser.add_argument("--levels", type=int, default=24)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--folds", type=int, default=3)
    given = parser.parse_args()
    rows = [row for row in load_split(load_rows()) if row["lang"] != "en"]
    learning = [row for row in rows if row["part"] in ("train", "validation")]
    names = sorted({group(row) for row in learning})
    np.random.default_rng(1).shuffle(names)
    kept = set(names[: round(given.share * len(names))])
    learning = [row for row in learning if group(row) in kept]
    print(f"{len(learning)} rows", flush=True)
    if given.folds:
        values = np.zeros(len(learning))
        groups = [group(row) for row in learning]
        for some, others in GroupKFold(given.folds).split(learning, groups=groups):
            _, columns, _, _, first = fit_profile([learning[at] for at in some])
            values[others] = vectors([learning[at] for at in others])[:, columns] @ first
        report("cross-validation", learning, values)
    head = fit(learning, given)
    cells, step, matrix, bias = head
    with open(given.out, "wb") as file:
        file.write(b"fmngrm\r\n" + struct.pack("<HHIf", 2, given.width, BUCKETS, step))
        file.write(packed(cells) + matrix.astype("<f4").tobytes() + bias.astype("<f4").tobytes())
    test = [row for row in rows if row["part"] == "test"]
    z = outputs(test, head)
    report("test", test, profile_logit(z), z)


if __name__ == "__main__":
    main()
