"""What a head learns from a row: grade, domain, ttl and subject, in this order, as sets of outputs that are right."""

import numpy as np

from rows import ROOT

GRADES = ("modifier", "circumstance", "informer", "none")
TTLS = ("permanent", "until-changed", "dated", "session")
SUBJECTS = ("self", "dependant", "other", "none")
# Words of the older rows for a domain of `foremind_types::Domain`.
OLDER = {
    "health": "condition", "injury": "condition", "intolerance": "allergy", "implant": "procedure", "senses": "disability",
    "accessibility": "disability", "substances": "condition", "education": "study", "housing": "home", "garden": "home",
    "work": "job", "project": "job", "pet": "pets", "farm": "pets", "tech": "devices", "device": "devices",
    "vehicle": "travel", "transport": "travel", "climate": "location", "faith": "religion", "media": "hobby",
    "taste": "food", "sport": "fitness", "shopping": "hobby", "privacy": "safety", "state": "session",
}


def domains():
    """The values of `Domain`, in the order of their declaration."""
    source = (ROOT / "crates/foremind-types/src/record.rs").read_text(encoding="utf-8")
    body = source[source.index("enum Domain {") : source.index("impl Domain")]
    return tuple(line.split('"')[1] for line in body.splitlines() if ' = "' in line)


DOMAINS = domains()
SIZES = (len(GRADES), len(DOMAINS), len(TTLS), len(SUBJECTS))
# What each output counts in the loss.
SHARES = (1.0, 0.2, 0.3, 0.2)
# Share of a row's own label where another one is fine, too.
OWN = 0.7


def targets(row):
    """Weights of right outputs: 1 for each that satisfies the row (an older row's `profile` is either grade), 0.3 for each
    that the row's other label allows; all 0 where the row tells nothing."""
    grade = np.zeros(len(GRADES), np.float32)
    sets = {"profile": (0, 1), "store": (2,), "none": (3,)}
    for label in row.get("also_ok") or []:
        grade[list(sets[label])] = 1 - OWN
    graded = row.get("grade")
    grade[[GRADES.index(graded)] if graded else list(sets[row["label"]])] = 1
    domain = np.zeros(len(DOMAINS), np.float32)
    named = OLDER.get(row.get("domain"), row.get("domain"))
    if named in DOMAINS and row["label"] != "none":
        domain[DOMAINS.index(named)] = 1
    ttl = np.zeros(len(TTLS), np.float32)
    if row.get("ttl") in TTLS and row["label"] != "none":
        ttl[TTLS.index(row["ttl"])] = 1
    subject = np.zeros(len(SUBJECTS), np.float32)
    if row.get("subject") in SUBJECTS:
        subject[SUBJECTS.index(row["subject"])] = 1
    return np.concatenate([grade, domain, ttl, subject])
