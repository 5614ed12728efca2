//! What betrays that a statement is of a kind: the phrases of `consequences.tsv`. Read when something is written; a question
//! needs the kinds alone.

use foremind_types::order::sort_by_key;

use crate::data::each_line;
use crate::kinds::{Kinds, LIST, fields};
use crate::lexicon::LineError;
use crate::phrases::{Phrases, Place};
use crate::words::Words;

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

/// What betrays each kind.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    phrases: Phrases,
    /// By their first slot.
    conditions: Vec<Condition>,
    slots: u16,
}

/// Names of lists of phrases with their slots.
type Lists = Vec<(&'static str, u16)>;

impl Triggers {
    /// Reads the triggers of all `kinds`; lines that cannot be read are left out and returned.
    pub(crate) fn read(
        file: &'static str,
        text: &'static str,
        kinds: &Kinds,
    ) -> (Self, Vec<LineError>) {
        let mut table = Self::default();
        let mut lists = Lists::new();
        let errors = each_line(file, text, &mut |line| table.row(line, kinds, &mut lists));
        table.phrases.sort();
        sort_by_key(&mut table.conditions, |condition| condition.first);
        (table, errors)
    }

    fn row(
        &mut self,
        line: &'static str,
        kinds: &Kinds,
        lists: &mut Lists,
    ) -> Result<(), &'static str> {
        if let Some(list) = line.strip_prefix(LIST) {
            let (name, phrases) = list.split_once('\t').ok_or("a list without phrases")?;
            let slot = self.slot()?;
            for phrase in phrases.split(',') {
                self.phrases.add(phrase.trim(), slot)?;
            }
            lists.push((name.trim(), slot));
            return Ok(());
        }
        // A line that made no kind was returned when the kinds were read.
        let Ok(Some([name, _, _, triggers, _, _])) = fields(line) else {
            return Ok(());
        };
        let Some(kind) = kinds.number(name) else {
            return Ok(());
        };
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
}

fn names_owner(word: &str) -> bool {
    matches!(
        word,
        "i" | "i'm" | "i've" | "my" | "our" | "we" | "we've" | "we're" | "me" | "us" | "am"
    )
}
