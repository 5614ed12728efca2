//! Kinds of fact and the questions whose answer they change: `consequences.tsv`.
//!
//! A kind is betrayed by its phrases. Which kinds a statement is of is decided when it is written and kept among its
//! reasons (`kind-marble`); what a kind affects is looked up when a question comes, so that the table may grow.

use foremind_types::order::sort_by_key;
use std::collections::BTreeMap;

use foremind_types::{Domain, Route, Severity};

use crate::lexicon::LineError;
use crate::phrases::{Phrases, Place};
use crate::questions::{CueSet, Cues};
use crate::words::Words;
use foremind_types::data::File;
use foremind_types::data_file;

/// The data file.
pub(crate) const FILE: File = data_file!("consequences.tsv");

/// Begins the names of reasons that say which kind of fact a statement is.
pub(crate) const REASON: &str = "kind-";

/// Most words between two phrases of which one follows the other ("i'm a > mechanic").
const NEAR_WORDS: usize = 3;

/// How much a phrase says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Force {
    /// Notes the kind, and is no signal.
    Noted,
    /// A signal where it is tied to the owner.
    Tied,
    /// A signal in a sentence of the owner's.
    Strong,
}

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

/// A phrase, or two that have to stand in one statement, as numbers of slots.
#[derive(Clone, Copy, Debug)]
struct Condition {
    kind: u16,
    first: u16,
    second: Option<u16>,
    /// The second begins soon after the first.
    near: bool,
    force: Force,
    /// Names the owner itself ("our dog").
    plain: bool,
}

/// A kind that a statement is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: u16,
    /// First word.
    pub(crate) from: usize,
    /// One past the last word.
    pub(crate) to: usize,
    pub(crate) force: Force,
    pub(crate) plain: bool,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    pub(crate) kinds: Vec<Kind>,
    /// Names of kinds with their numbers.
    by_name: BTreeMap<&'static str, u16>,
    /// Weight of each cue: the fewer kinds it bears on, the more it tells. 1 to 10.
    weights: Vec<u8>,
    phrases: Phrases,
    /// By their first slot.
    conditions: Vec<Condition>,
    slots: u16,
}

impl Kinds {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(
        file: &'static str,
        text: &'static str,
        cues: &Cues,
    ) -> (Self, Vec<LineError>) {
        let mut table = Self::default();
        let mut lists: Vec<(&'static str, u16)> = Vec::new();
        let mut errors = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if let Err(problem) = table.row(line, cues, &mut lists) {
                errors.push(LineError {
                    file,
                    line: at + 1,
                    problem,
                });
            }
        }
        table.phrases.sort();
        sort_by_key(&mut table.conditions, |condition| condition.first);
        let total = table.kinds.len().max(1);
        table.weights = (0..cues.cues.len() as u16)
            .map(|cue| {
                let mut one = CueSet::default();
                one.insert(cue);
                let bears = table.kinds.iter().filter(|k| k.affects.meets(&one)).count();
                // Halvings of the table that the cue makes, from 1.
                let halvings = (total / bears.max(1)).max(1).ilog2() + 1;
                halvings.min(10) as u8
            })
            .collect();
        (table, errors)
    }

    fn row(
        &mut self,
        line: &'static str,
        cues: &Cues,
        lists: &mut Vec<(&'static str, u16)>,
    ) -> Result<(), &'static str> {
        let fields: Vec<&'static str> = line.split('\t').map(str::trim).collect();
        if let ["list", name, phrases] = fields[..] {
            let slot = self.slot()?;
            for phrase in phrases.split(',').map(str::trim) {
                self.phrases.add(phrase, slot)?;
            }
            lists.push((name, slot));
            return Ok(());
        }
        let [name, domain, severity, triggers, affects, source] = fields[..] else {
            return Err("expected six fields, separated by tabs");
        };
        if name.is_empty() || self.by_name.contains_key(name) {
            return Err("a kind without a name, or named twice");
        }
        if source.is_empty() {
            return Err("a kind without a public source");
        }
        let domain = Domain::parse(domain).ok_or("unknown domain")?;
        let severity = Severity::parse(severity).ok_or("unknown severity")?;
        let mut set = CueSet::default();
        for cue in affects.split(',').map(str::trim) {
            set.insert(cues.named(cue).ok_or("unknown cue")?);
        }
        let kind = u16::try_from(self.kinds.len()).map_err(|_| "too many kinds")?;
        for trigger in triggers.split(',').map(str::trim) {
            let (force, trigger) = match trigger.as_bytes().first() {
                Some(b'~') => (Force::Noted, trigger[1..].trim_start()),
                Some(b'!') => (Force::Strong, trigger[1..].trim_start()),
                _ => (Force::Tied, trigger),
            };
            let near = trigger.contains(" > ");
            let mut parts = trigger
                .split(if near { " > " } else { " + " })
                .map(str::trim);
            let first = self.part(parts.next().unwrap_or_default(), lists)?;
            let second = parts.next().map(|p| self.part(p, lists)).transpose()?;
            if parts.next().is_some() {
                return Err("more than two phrases of one condition");
            }
            self.conditions.push(Condition {
                kind,
                first,
                second,
                near,
                force,
                plain: trigger.split(' ').any(names_owner),
            });
        }
        self.by_name.insert(name, kind);
        self.kinds.push(Kind {
            name,
            domain,
            severity,
            affects: set,
            source,
        });
        Ok(())
    }

    fn slot(&mut self) -> Result<u16, &'static str> {
        let slot = self.slots;
        self.slots = slot.checked_add(1).ok_or("too many phrases")?;
        Ok(slot)
    }

    /// The slot of one phrase, or of a list.
    fn part(
        &mut self,
        phrase: &'static str,
        lists: &[(&'static str, u16)],
    ) -> Result<u16, &'static str> {
        if let Some(name) = phrase.strip_prefix('[').and_then(|p| p.strip_suffix(']')) {
            let list = lists.iter().find(|list| list.0 == name);
            return list.map(|list| list.1).ok_or("unknown list");
        }
        let slot = self.slot()?;
        self.phrases.add(phrase, slot)?;
        Ok(slot)
    }

    /// The kinds of a statement, each once where it says most, in order of place.
    pub(crate) fn of(&self, words: &Words) -> Vec<Found> {
        let mut places = Vec::new();
        self.phrases.find(words, |place| places.push(place));
        let mut found: Vec<Found> = Vec::new();
        for place in &places {
            let from = self.conditions.partition_point(|c| c.first < place.id);
            let of_slot = self.conditions[from..]
                .iter()
                .take_while(|c| c.first == place.id);
            for condition in of_slot {
                let (mut start, mut end) = (place.from, place.to);
                if let Some(second) = condition.second {
                    let stands = |other: &&Place| {
                        let after = other.from >= place.to;
                        let apart = if condition.near {
                            after && other.from <= place.to + NEAR_WORDS
                        } else {
                            after || other.to <= place.from
                        };
                        other.id == second && apart
                    };
                    let other = places.iter().find(stands);
                    let Some(other) = other else { continue };
                    (start, end) = (start.min(other.from), end.max(other.to));
                }
                let this = Found {
                    kind: condition.kind,
                    from: start,
                    to: end,
                    force: condition.force,
                    plain: condition.plain,
                };
                match found.iter_mut().find(|f| f.kind == this.kind) {
                    Some(known) if known.force >= this.force => {}
                    Some(known) => *known = this,
                    None => found.push(this),
                }
            }
        }
        found
    }

    /// The kinds that a route's reasons name.
    pub(crate) fn named<'k>(&'k self, route: &'k Route) -> impl Iterator<Item = &'k Kind> + 'k {
        route.reasons.iter().filter_map(|reason| {
            let name = reason.signal.strip_prefix(REASON)?;
            self.kinds.get(usize::from(*self.by_name.get(name)?))
        })
    }

    /// How much a cue tells, 1 to 10.
    pub(crate) fn weight(&self, cue: u16) -> u8 {
        self.weights.get(usize::from(cue)).copied().unwrap_or(1)
    }
}

fn names_owner(word: &str) -> bool {
    matches!(
        word,
        "i" | "i'm" | "i've" | "my" | "our" | "we" | "we've" | "we're" | "me" | "us" | "am"
    )
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;
    use crate::questions;

    fn cues() -> Cues {
        Cues::read(questions::FILE.name, questions::FILE.text()).0
    }

    fn table() -> (Kinds, Cues) {
        let cues = cues();
        let (kinds, errors) = Kinds::read(FILE.name, FILE.text(), &cues);
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{shown:#?}");
        (kinds, cues)
    }

    fn names(text: &str) -> Vec<&'static str> {
        let (kinds, _) = table();
        kinds
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
        let weight = |name: &str| kinds.weight(cues.named(name).unwrap());
        assert!(weight("acids") > weight("cooking"));
        assert!(weight("grapefruit") > weight("travel"));
    }

    #[test]
    fn an_error_names_file_and_line() {
        let cues = cues();
        let text = "#\nlist\tkin\tmy boss\n\
            a\thome\tmild\tx\tacids\tEPA\n\
            a\thome\tmild\tx\tacids\tEPA\n\
            b\thome\tmild\tx\tacid\tEPA\n\
            c\thome\tmild\t[kim] + x\tacids\tEPA\n\
            d\thome\tmild\tx\tacids\t\n\
            e\thome\tmild\tx";
        let (table, errors) = Kinds::read("t.tsv", text, &cues);
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "t.tsv:4: a kind without a name, or named twice",
                "t.tsv:5: unknown cue",
                "t.tsv:6: unknown list",
                "t.tsv:7: a kind without a public source",
                "t.tsv:8: expected six fields, separated by tabs",
            ]
        );
        assert_eq!(table.kinds.len(), 1);
    }
}
