//! What a commit rewrites: what an erasure has to leave, and what is folded. Bounded, so that no commit is much
//! longer than another.

use foremind_types::small::SmallMap;

use foremind_types::Entry;

use crate::redact::{self, Erased};

use super::receipt::is_receipt;
use super::{LOOSE_ENTRIES, REWRITE_BYTES, Run, SEGMENTS_PER_LEVEL, Vault};

/// What a commit has to read before it can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Positions of runs that are rewritten, ascending, each with the level it gets.
    pub(super) rewrite: SmallMap<usize, u8>,
    /// Positions of runs that only change their level.
    pub(super) promote: SmallMap<usize, u8>,
    /// What the entries of the commit erase.
    pub(super) erased: Erased,
    /// Whether something erased leaves the store with it.
    pub(super) erases: bool,
}

impl Plan {
    /// Whether something erased leaves the store with it.
    #[must_use]
    pub fn erases(&self) -> bool {
        self.erases
    }

    /// Whether the commit would change nothing but the order of what is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rewrite.is_empty() && self.promote.is_empty()
    }
}

impl Vault {
    /// What storing `entries` on the current head involves; none of them: what is left of earlier erasures.
    ///
    /// Runs that hold something of an erased record come first, oldest first, then a fold if one is due, together
    /// at most [`REWRITE_BYTES`] of plaintext, or a single run that is longer. [`Vault::is_swept`] says whether
    /// there is more to do.
    #[must_use]
    pub fn plan(&self, entries: &[Entry]) -> Plan {
        let mut plan = Plan::default();
        for entry in entries {
            for (id, at_ms) in redact::erased_by(entry) {
                plan.erased.insert(id, at_ms);
            }
            plan.erases |= entry.changes.iter().any(is_receipt);
        }
        let mut room = REWRITE_BYTES as u64;
        let mut left = false;
        if !plan.erased.is_empty() || self.suspect {
            for (at, run) in self.head.runs.iter().enumerate() {
                if !self.is_dirty(run, &plan.erased) {
                    continue;
                }
                if run.bytes() > room && !plan.rewrite.is_empty() {
                    left = true;
                    break;
                }
                room = room.saturating_sub(run.bytes());
                plan.rewrite.insert(at, run.level);
                plan.erases = true;
            }
        }
        if !left && let Some((first, level)) = fold(&self.head.runs) {
            for (at, run) in self.head.runs.iter().enumerate().skip(first) {
                if let Some(same) = plan.rewrite.get_mut(&at) {
                    *same = level;
                } else if run.is_full() {
                    plan.promote.insert(at, level);
                } else if run.bytes() <= room {
                    room -= run.bytes();
                    plan.rewrite.insert(at, level);
                } else {
                    // The rest is folded by the commits that follow.
                    break;
                }
            }
        }
        plan
    }

    /// The runs that [`Vault::batch`] needs, in the order in which it needs them.
    #[must_use]
    pub fn reads(&self, plan: &Plan) -> Vec<Run> {
        let runs = plan.rewrite.keys().filter_map(|at| self.head.runs.get(*at));
        runs.cloned().collect()
    }

    /// Whether nothing stored holds anything of an erased record. Otherwise an erasure was too large for one
    /// commit, or was cut: every commit goes on with it, and one without an entry does only that.
    #[must_use]
    pub fn is_swept(&mut self) -> bool {
        if self.suspect {
            let none = Erased::new();
            self.suspect = self.head.runs.iter().any(|run| self.is_dirty(run, &none));
        }
        !self.suspect
    }

    /// Whether a run holds something of records that are erased already, or now.
    fn is_dirty(&self, run: &Run, erased: &Erased) -> bool {
        let is_gone = |id| {
            erased.contains_key(id)
                || self
                    .erased_in
                    .get(id)
                    // What was written since then was written without it.
                    .is_some_and(|generation| run.place.generation < *generation)
        };
        let (Ok(from) | Err(from)) = self.held.find_index(run.sequences().start());
        (from..)
            .map_while(|at| self.held.get_indexed(at))
            .take_while(|(sequence, _)| *sequence <= run.sequences().end())
            .any(|(_, ids)| ids.iter().any(is_gone))
    }
}

/// From which run on a commit folds, and into which level; `None` when there is nothing to fold.
fn fold(runs: &[Run]) -> Option<(usize, u8)> {
    let trailing = |before: usize, level: u8, full_too: bool| {
        let tail = runs[..before].iter().rev();
        tail.take_while(|run| run.level == level && (full_too || !run.is_full()))
            .count()
    };
    let loose = trailing(runs.len(), 0, true);
    if loose < LOOSE_ENTRIES {
        return None;
    }
    let mut first = runs.len() - loose;
    let mut level = 1;
    loop {
        let segments = trailing(first, level, false);
        if segments < SEGMENTS_PER_LEVEL || level == u8::MAX {
            return Some((first, level));
        }
        first -= segments;
        level += 1;
    }
}
