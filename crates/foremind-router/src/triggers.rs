//! What betrays that a statement is of a kind: the phrases of `consequences.tsv`. Read when something is written; a question
//! needs the kinds alone.

use std::sync::OnceLock;

use foremind_types::data::File;

use crate::compile::{NEAR, NOTED, PLAIN, STRONG, number};
use crate::data::table_file;
use crate::phrases::{Phrases, Place};
use crate::words::Words;

/// The table.
pub(crate) const FILE: File = table_file!("triggers.tsv");

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
    /// As they stand in the table; whoever only looks up a word needs none.
    written: &'static str,
    /// By their first slot.
    conditions: OnceLock<Vec<Condition>>,
}

impl Triggers {
    /// Over a table of `compile`.
    pub(crate) fn of_table(text: &'static str) -> Self {
        let (lists, phrases) = text.split_once('\n').unwrap_or_default();
        let lists = lists.chars().next().map_or(0, number);
        let (phrases, written) = Phrases::of(phrases, lists as u16);
        Self {
            phrases,
            written,
            conditions: OnceLock::new(),
        }
    }

    fn conditions(&self) -> &[Condition] {
        self.conditions.get_or_init(|| {
            let mut columns = self.written.lines().map(|line| line.chars().map(number));
            let mut column = || columns.next().into_iter().flatten();
            let (firsts, kinds, marks, seconds) = (column(), column(), column(), column());
            let mut first = 0;
            let rows = firsts.zip(kinds).zip(marks).zip(seconds);
            rows.map(|(((further, kind), marks), second)| {
                first += further;
                Condition {
                    kind: kind as u16,
                    first: first as u16,
                    second: second.checked_sub(1).map(|slot| slot as u16),
                    near: marks & NEAR != 0,
                    force: match marks & (NOTED | STRONG) {
                        NOTED => Force::Noted,
                        STRONG => Force::Strong,
                        _ => Force::Tied,
                    },
                    plain: marks & PLAIN != 0,
                }
            })
            .collect()
        })
    }

    /// Whether a phrase is this word or begins with it.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.phrases.knows(word)
    }

    /// The kinds of a statement, each once where it says most, in order of place.
    pub(crate) fn of(&self, words: &Words) -> Vec<Found> {
        let conditions = self.conditions();
        let mut places = Vec::new();
        self.phrases.find(words, |place| places.push(place));
        let mut found: Vec<Found> = Vec::new();
        for place in &places {
            let from = conditions.partition_point(|c| c.first < place.id);
            let of_slot = conditions[from..]
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
