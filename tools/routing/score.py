"""Figures of a head on validation and test rows."""

import numpy as np

from rows import is_talk


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def profile_logit(z):
    """log P(modifier or circumstance) - log P(informer or none)."""
    return np.logaddexp(z[:, 0], z[:, 1]) - np.logaddexp(z[:, 2], z[:, 3])


def by_row(rows, ids, values):
    """The strongest value among a row's statements."""
    best = {}
    for identifier, value in zip(ids, values):
        best[identifier] = max(value, best.get(identifier, -np.inf))
    return np.array([best[row["id"]] for row in rows])


def wanted_and_counted(rows):
    """Whether a row belongs to the profile, and whether no other label is fine for it."""
    wanted = np.array([row["label"] == "profile" for row in rows])
    also = [row.get("also_ok") or [] for row in rows]
    counted = np.array([not a if w else "profile" not in a for w, a in zip(wanted, also)])
    return wanted, counted


def kinds(row):
    return "talk" if is_talk(row) else row["lang"]


def area(wanted, values):
    """Area under the receiver's curve: how often a wanted row stands above another; ties count half."""
    order = np.sort(values[~wanted])
    below = np.searchsorted(order, values[wanted], "left")
    until = np.searchsorted(order, values[wanted], "right")
    return ((below + until) / 2).mean() / len(order)


def recall_at(values, wanted, share):
    """Recall at the threshold that lets `share` of the others through."""
    threshold = np.quantile(values[~wanted], 1 - share)
    return (values[wanted] > threshold).mean()


SHARES = (0.015, 0.02, 0.05, 0.08, 0.1)
LATIN = ("es", "fr", "de", "pt", "it")


def report(rows, ids, z, name, brief=False):
    """Prints one line a part and kind of row; returns the profile logits by row. Figures of a group of languages
    are at the threshold of each language by itself, averaged."""
    values = by_row(rows, ids, profile_logit(z))
    wanted, counted = wanted_and_counted(rows)
    for part in ("validation", "test"):
        means = {}
        for kind in sorted({kinds(row) for row in rows}):
            chosen = np.array([row["part"] == part and kinds(row) == kind for row in rows]) & counted
            v, w = values[chosen], wanted[chosen]
            if not w.any() or w.all():
                continue
            figures = [area(w, v), *(recall_at(v, w, share) for share in SHARES)]
            group = kind if kind in ("en", "talk") else "Latin" if kind in LATIN else "other"
            means.setdefault(group, []).append(figures)
            if not brief:
                show(name, part, f"{kind} {w.sum()}/{(~w).sum()}", figures)
        for group, figures in means.items():
            if brief or len(figures) > 1:
                show(name, part, group, np.mean(figures, 0))
    return values


def show(name, part, kind, figures):
    recalls = " ".join(f"{share}:{recall:.3f}" for share, recall in zip(SHARES, figures[1:]))
    print(f"{name} | {part} {kind} | AUROC {figures[0]:.3f} | recall at {recalls}", flush=True)
