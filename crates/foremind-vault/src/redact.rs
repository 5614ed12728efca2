//! What an erasure takes out of entries that were stored before it.

use foremind_types::order::map_of;
use foremind_types::small::{SmallMap, SmallSet};

use foremind_types::{Change, Entry, Record, RecordId, Revision};

/// Erased records, and when.
pub(crate) type Erased = SmallMap<RecordId, i64>;

/// Records whose content or derived data `entry` holds.
pub(crate) fn held(entry: &Entry) -> SmallSet<RecordId> {
    let mut ids = SmallSet::new();
    for change in &entry.changes {
        match change {
            Change::Add(record) => {
                ids.insert(record.id);
                ids.extend(record.evidence.iter().map(|link| link.id));
                // A link is no content; the words of its reason are.
                let reasons = record.supersedes.iter().filter(|link| !link.why.is_empty());
                ids.extend(reasons.map(|link| link.id));
            }
            Change::Revise { id, .. } | Change::Embed { id, .. } => {
                ids.insert(*id);
            }
            _ => {}
        }
    }
    ids
}

/// The records that `entry` erases.
pub(crate) fn erased_by(entry: &Entry) -> Erased {
    let erasures = entry.changes.iter().filter_map(|change| match change {
        Change::Erase { id, at_ms } => Some((*id, *at_ms)),
        _ => None,
    });
    map_of(erasures)
}

/// Takes out of a record what it says of erased ones.
pub(crate) fn redact_record(record: &mut Record, erased: &Erased) {
    record
        .evidence
        .retain(|link| !erased.contains_key(&link.id));
    for link in &mut record.supersedes {
        if erased.contains_key(&link.id) {
            link.why.clear();
        }
    }
}

/// `entry` without anything of the erased records. Every change keeps its position, because positions
/// order revisions ([`foremind_types::Stamp`]): what an erasure takes out becomes that erasure.
pub(crate) fn redact(entry: &Entry, erased: &Erased) -> Entry {
    let mut entry = entry.clone();
    for change in &mut entry.changes {
        let gone = match change {
            Change::Add(record) => {
                redact_record(record, erased);
                Some(record.id)
            }
            Change::Embed { id, .. } => Some(*id),
            Change::Revise {
                id,
                revision:
                    Revision::Route(_)
                    | Revision::Status { .. }
                    | Revision::Confirmed { .. }
                    | Revision::Told { .. },
            } => Some(*id),
            _ => None,
        };
        if let Some((id, at_ms)) = gone.and_then(|id| Some((id, *erased.get(&id)?))) {
            *change = Change::Erase { id, at_ms };
        }
    }
    entry
}
