//! Kinds of fact and the questions whose answer they change: `consequences.tsv`.
//!
//! A kind is betrayed by its phrases. Which kinds a statement is of is decided when it is written and kept among its
//! reasons (`kind-marble`); what a kind affects is looked up when a question comes, so that the table may grow.

use foremind_types::small::SmallMap;

use foremind_types::{Domain, Route, Severity};

use crate::data::each_line;
use crate::lexicon::LineError;
use crate::questions::{CueSet, Cues};
use foremind_types::data::File;
use foremind_types::data_file;

/// The data file.
pub(crate) const FILE: File = data_file!("consequences.tsv");

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
    pub(crate) kinds: Vec<Kind>,
    /// Names of kinds with their numbers.
    by_name: SmallMap<&'static str, u16>,
    /// Weight of each cue: the fewer kinds it bears on, the more it tells. 1 to 10.
    weights: Vec<u8>,
}

impl Kinds {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(
        file: &'static str,
        text: &'static str,
        cues: &Cues,
    ) -> (Self, Vec<LineError>) {
        let mut table = Self::default();
        let errors = each_line(file, text, &mut |line| table.row(line, cues));
        let mut bears = vec![0; cues.cues.len()];
        for cue in table.kinds.iter().flat_map(|kind| kind.affects.iter()) {
            if let Some(count) = bears.get_mut(usize::from(cue)) {
                *count += 1;
            }
        }
        let total = table.kinds.len().max(1);
        let weight = |bears: usize| {
            // Halvings of the table that the cue makes, from 1.
            let halvings = (total / bears.max(1)).max(1).ilog2() + 1;
            halvings.min(10) as u8
        };
        table.weights = bears.into_iter().map(weight).collect();
        (table, errors)
    }

    fn row(&mut self, line: &'static str, cues: &Cues) -> Result<(), &'static str> {
        let Some([name, domain, severity, _, affects, source]) = fields(line)? else {
            return Ok(());
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
        for cue in affects.split(',') {
            set.insert(cues.named(cue.trim()).ok_or("unknown cue")?);
        }
        let kind = u16::try_from(self.kinds.len()).map_err(|_| "too many kinds")?;
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

    /// The number of a kind.
    pub(crate) fn number(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }

    /// The kinds that a route's reasons name.
    pub(crate) fn named<'k>(&'k self, route: &'k Route) -> impl Iterator<Item = &'k Kind> + 'k {
        route.reasons.iter().filter_map(|reason| {
            let name = reason.signal.strip_prefix(REASON)?;
            self.kinds.get(usize::from(self.number(name)?))
        })
    }

    /// How much a cue tells, 1 to 10.
    pub(crate) fn weight(&self, cue: u16) -> u8 {
        self.weights.get(usize::from(cue)).copied().unwrap_or(1)
    }
}

/// The six fields of a kind; nothing for a line that is a list of phrases.
pub(crate) fn fields(line: &'static str) -> Result<Option<[&'static str; 6]>, &'static str> {
    if line.starts_with(LIST) {
        return Ok(None);
    }
    let mut fields = line.split('\t').map(str::trim);
    let mut row = [""; 6];
    for field in &mut row {
        *field = fields.next().ok_or(SIX)?;
    }
    match fields.next() {
        Some(_) => Err(SIX),
        None => Ok(Some(row)),
    }
}

/// Begins a line that names a list of phrases.
pub(crate) const LIST: &str = "list\t";
const SIX: &str = "expected six fields, separated by tabs";

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;
    use crate::questions;
    use crate::triggers::Triggers;
    use crate::words::Words;

    fn cues() -> Cues {
        Cues::read(questions::FILE.name, questions::FILE.text()).0
    }

    fn read(
        name: &'static str,
        text: &'static str,
        cues: &Cues,
    ) -> (Kinds, Triggers, Vec<LineError>) {
        let (kinds, mut errors) = Kinds::read(name, text, cues);
        let (triggers, of_triggers) = Triggers::read(name, text, &kinds);
        errors.extend(of_triggers);
        foremind_types::order::sort_by_key(&mut errors, |error| error.line);
        (kinds, triggers, errors)
    }

    fn table() -> (Kinds, Cues) {
        let cues = cues();
        let (kinds, _, errors) = read(FILE.name, FILE.text(), &cues);
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{shown:#?}");
        (kinds, cues)
    }

    fn names(text: &str) -> Vec<&'static str> {
        let (kinds, triggers, _) = read(FILE.name, FILE.text(), &cues());
        triggers
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
        let (table, _, errors) = read("t.tsv", text, &cues);
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
        // What cannot betray a kind does not make it unknown to those that are of it already.
        assert_eq!(table.kinds.len(), 2);
    }
}
