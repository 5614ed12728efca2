//! Kinds of fact and the questions whose answer they change: `consequences.tsv`.
//!
//! A kind is betrayed by its phrases. Which kinds a statement is of is decided when it is written and kept among its
//! reasons (`kind-marble`); what a kind affects is looked up when a question comes, so that the table may grow.

use core::hash::BuildHasher;

use foremind_types::data::File;
use foremind_types::{Domain, Route, Severity};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::compile::number;
use crate::data::table_file;
use crate::questions::CueSet;

/// The table.
pub(crate) const FILE: File = table_file!("fact_kinds.tsv");

/// Begins the names of reasons that say which kind of fact a statement is.
pub const REASON: &str = "kind-";

/// A kind of fact.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) domain: Domain,
    pub(crate) severity: Severity,
    pub(crate) affects: CueSet,
    /// Who states it in public.
    pub(crate) source: &'static str,
}

/// The kinds, without what betrays them: all that a question needs.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// By name.
    pub(crate) kinds: Vec<Kind>,
    /// Their places, by the hash of the name: a question looks up the kinds of each fact.
    places: HashTable<u16>,
    /// Weight of each cue: the fewer kinds it bears on, the more it tells. 1 to 10.
    weights: Vec<u8>,
}

impl Kinds {
    /// Over a table of `compile`; a line that is none of its own counts for nothing.
    pub(crate) fn of(text: &'static str) -> Self {
        let (weights, kinds) = text.split_once('\n').unwrap_or_default();
        let kinds: Vec<Kind> = kinds.lines().filter_map(kind).collect();
        let mut places = HashTable::with_capacity(kinds.len());
        for (place, kind) in (0_u16..).zip(&kinds) {
            places.insert_unique(hash(kind.name), place, |other| {
                hash(kinds[usize::from(*other)].name)
            });
        }
        Self {
            places,
            kinds,
            weights: weights.chars().map(|weight| number(weight) as u8).collect(),
        }
    }

    fn by_name(&self, name: &str) -> Option<&Kind> {
        let kind = |place: &u16| &self.kinds[usize::from(*place)];
        let place = self
            .places
            .find(hash(name), |place| kind(place).name == name);
        place.map(kind)
    }

    /// The kinds that a route's reasons name.
    pub(crate) fn named<'k>(&'k self, route: &'k Route) -> impl Iterator<Item = &'k Kind> + 'k {
        route.reasons.iter().filter_map(|reason| {
            let name = reason.signal.strip_prefix(REASON)?;
            self.by_name(name)
        })
    }

    /// How much a cue tells, 1 to 10.
    pub(crate) fn weight(&self, cue: u16) -> u8 {
        self.weights.get(usize::from(cue)).copied().unwrap_or(1)
    }
}

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}

fn kind(line: &'static str) -> Option<Kind> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (name, domain, severity) = (next()?, Domain::parse(next()?)?, Severity::parse(next()?)?);
    let mut affects = CueSet::default();
    for cue in next()?.chars() {
        affects.insert(number(cue) as u16);
    }
    Some(Kind {
        name,
        domain,
        severity,
        affects,
        source: next()?,
    })
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;
    use crate::questions::{self, Cues};
    use crate::triggers::{self, Triggers};
    use crate::words::Words;

    fn table() -> (Kinds, Cues) {
        let kinds = Kinds::of(FILE.text());
        assert_eq!(
            kinds.kinds.len() + 1,
            FILE.text().lines().count(),
            "a line that is not read"
        );
        (kinds, Cues::of_table(questions::FILE.text()))
    }

    fn names(text: &str) -> Vec<&'static str> {
        let (kinds, _) = table();
        Triggers::of_table(triggers::FILE.text())
            .of(&Words::of(text))
            .iter()
            .map(|found| kinds.kinds[usize::from(found.kind)].name)
            .collect()
    }

    #[test]
    fn the_table_has_a_few_hundred_kinds_each_with_its_source_and_its_questions() {
        let (kinds, cues) = table();
        assert!(kinds.kinds.len() >= 300, "{}", kinds.kinds.len());
        assert!(cues.cues.len() >= 300, "{}", cues.cues.len());
        for kind in &kinds.kinds {
            assert!(
                kind.source.len() >= 3 && !kind.affects.is_empty(),
                "{}",
                kind.name
            );
        }
        for domain in Domain::ALL {
            let covered = kinds.kinds.iter().any(|kind| kind.domain == *domain);
            assert!(covered || *domain == Domain::General, "{domain:?}");
        }
    }

    #[test]
    fn a_statement_is_of_the_kinds_whose_words_it_has() {
        assert_eq!(names("We put marble in the kitchen."), ["marble"]);
        assert!(names("Our supplier from Osaka is visiting.").contains(&"culture-japan"));
        // A country alone is no acquaintance of the owner's.
        assert!(!names("The museum in Osaka is closed.").contains(&"culture-japan"));
        assert!(names("The weather is fine.").is_empty());
    }

    #[test]
    fn a_cue_that_bears_on_few_kinds_weighs_more() {
        let (kinds, cues) = table();
        let named = |name: &str| cues.cues.iter().position(|cue| cue.name == name);
        let weight = |name: &str| kinds.weight(named(name).unwrap() as u16);
        assert!(weight("acids") > weight("cooking"));
        assert!(weight("grapefruit") > weight("exertion"));
    }
}
