//! The index of words, with a group for each scope.

use foremind_index::Bm25;
use foremind_types::Scope;
use foremind_types::small::{SmallMap, SmallSet};

use crate::slots::At;

/// Made when it is first asked for: a memory that only opens, or only takes in, need not read every text.
#[derive(Debug, Default)]
pub(crate) struct WordIndex {
    words: Bm25,
    groups: SmallMap<Scope, u32>,
}

impl WordIndex {
    pub(crate) fn of<'r>(records: impl Iterator<Item = At<'r>>) -> Self {
        let mut index = Self::default();
        for record in records {
            index.insert(record);
        }
        index
    }

    pub(crate) fn insert(&mut self, At { place, record }: At<'_>) {
        let group = match self.groups.get(&record.scope) {
            Some(known) => *known,
            None => {
                let fresh = self.groups.len() as u32;
                self.groups.insert(record.scope.clone(), fresh);
                fresh
            }
        };
        self.words.insert(place, group, &record.text);
    }

    pub(crate) fn remove(&mut self, place: u32, text: &str) {
        self.words.remove(place, text);
    }

    pub(crate) fn words(&self) -> &Bm25 {
        &self.words
    }

    /// The groups whose scope `sees` accepts.
    pub(crate) fn groups(&self, sees: impl Fn(&Scope) -> bool) -> SmallSet<u32> {
        self.groups
            .iter()
            .filter(|(scope, _)| sees(scope))
            .map(|(_, group)| *group)
            .collect()
    }
}
