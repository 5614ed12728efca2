//! The table of kinds: read once, checked by tests, patterns compiled when they are first needed.

use foremind_types::data::File;
use foremind_types::data_file;
use foremind_types::order::sort_by;
use std::sync::{LazyLock, OnceLock};

use regex_lite::Regex;

use crate::checks::Checks;
use crate::firsts::Firsts;
use crate::needles::Needles;
use crate::policy::Action;
use crate::view::folded;

/// The data file.
pub const KINDS: File = data_file!("kinds.tsv");

/// What sort of thing a kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// Private keys, wallet keys and phrases.
    Key,
    /// A vendor's token.
    Token,
    /// Passwords, PINs, credentials in addresses and headers.
    Credential,
    /// Seeds of one-time codes and recovery codes.
    Totp,
    /// Told by the words beside it and by its entropy.
    Generic,
    /// Payment cards.
    Card,
    /// Bank accounts.
    Bank,
    /// Numbers that a state gave.
    Id,
    /// Telephone numbers and mail addresses.
    Contact,
}

impl Class {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "key" => Self::Key,
            "token" => Self::Token,
            "credential" => Self::Credential,
            "totp" => Self::Totp,
            "generic" => Self::Generic,
            "card" => Self::Card,
            "bank" => Self::Bank,
            "id" => Self::Id,
            "contact" => Self::Contact,
            _ => return None,
        })
    }
}

/// Where a pattern is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// From the start of a needle.
    At,
    /// At the starts of words behind a needle.
    Near,
    /// At the start of any word that fulfils the checks' demands.
    Free,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) kind: &'static str,
    pub(crate) class: Class,
    pub(crate) action: Action,
    pub(crate) place: Place,
    pub(crate) checks: Checks,
    pub(crate) firsts: Firsts,
    source: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Shape {
    /// Where the pattern ends when it matches from the start of `text`.
    pub(crate) fn matched(&self, text: &str) -> Option<usize> {
        match self.firsts.has(*text.as_bytes().first()?) {
            true => self.unfiltered(text),
            false => None,
        }
    }

    /// The same without a look at the first byte.
    pub(crate) fn unfiltered(&self, text: &str) -> Option<usize> {
        let regex = self
            .compiled
            .get_or_init(|| Regex::new(&format!("^(?:{})", self.source)).ok());
        Some(regex.as_ref()?.find(text)?.end())
    }
}

/// What a needle announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announces {
    /// A shape, by number.
    Shape(u16),
    /// That what follows is no secret.
    Harmless,
}

/// All kinds.
#[derive(Debug)]
pub(crate) struct Kinds {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) needles: Needles<Announces>,
    /// Needles of tokens that are sought with their pieces put together.
    pub(crate) joined: Needles<u16>,
    /// Shapes that stand anywhere.
    pub(crate) free: Vec<u16>,
    /// Least length of the word where one of those starts that ask for no digits.
    pub(crate) free_len: usize,
    /// Words that tell of a password and are none.
    pub(crate) ordinary: Vec<&'static str>,
}

impl Kinds {
    /// The table of the data file.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Kinds> = LazyLock::new(|| Kinds::parse(KINDS.text()).0);
        &SHARED
    }

    /// Reads the table; lines that cannot be read are returned by number.
    pub(crate) fn parse(table: &'static str) -> (Self, Vec<usize>) {
        let mut shapes: Vec<Shape> = Vec::new();
        let mut needles = Vec::new();
        let mut free = Vec::new();
        let mut ordinary = Vec::new();
        let mut wrong = Vec::new();
        for (number, line) in (1..).zip(table.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&'static str> = line.split('\t').collect();
            let &[kind, class, action, place, words, source, checks] = fields.as_slice() else {
                wrong.push(number);
                continue;
            };
            if class == "ordinary" {
                ordinary.extend(words.split('|'));
                continue;
            }
            let at = shapes.len() as u16;
            let announces = if class == "harmless" {
                Announces::Harmless
            } else {
                let place = match place {
                    "at" => Some(Place::At),
                    "near" => Some(Place::Near),
                    "free" => Some(Place::Free),
                    _ => None,
                };
                let (Some(class), Some(action), Some(place), Some(checks)) = (
                    Class::parse(class),
                    Action::parse(action),
                    place,
                    Checks::parse(checks),
                ) else {
                    wrong.push(number);
                    continue;
                };
                if place == Place::Free {
                    free.push(at);
                }
                shapes.push(Shape {
                    kind,
                    class,
                    action,
                    place,
                    checks,
                    firsts: Firsts::of(source),
                    source,
                    compiled: OnceLock::new(),
                });
                Announces::Shape(at)
            };
            if words != "-" {
                needles.extend(words.split('|').map(|word| (folded(word), announces)));
            }
        }
        let joined = needles.iter().filter_map(|(needle, announces)| {
            let Announces::Shape(number) = *announces else {
                return None;
            };
            let shape = &shapes[usize::from(number)];
            (shape.place == Place::At && shape.checks.join).then(|| (needle.clone(), number))
        });
        let joined = Needles::new(joined);
        let plain = free.iter().map(|number| &shapes[usize::from(*number)]);
        let plain = plain.filter(|shape| {
            shape.checks.digits == 0 && shape.checks.has.is_none() && shape.kind != "seed_phrase"
        });
        let free_len = plain
            .map(|shape| shape.checks.len)
            .min()
            .unwrap_or_default();
        let kinds = Self {
            shapes,
            needles: Needles::new(needles),
            joined,
            free,
            free_len,
            ordinary,
        };
        (kinds, wrong)
    }

    /// Names of all kinds, each once, sorted.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.shapes.iter().map(|shape| shape.kind).collect();
        sort_by(&mut names, Ord::cmp);
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_pattern_compiles() {
        let (kinds, wrong) = Kinds::parse(KINDS.text());
        assert_eq!(wrong, [0; 0]);
        assert!(kinds.names().len() >= 60);
        for shape in &kinds.shapes {
            assert!(Regex::new(shape.source).is_ok(), "{}", shape.kind);
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let (_, wrong) = Kinds::parse("# comment\nthing\ttoken\tredact\tat\n");
        assert_eq!(wrong, [2]);
    }
}
