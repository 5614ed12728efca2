//! Single-valued attributes that a statement sets: "I live in Porto" sets `home`.

use crate::data::{LineError, each_line, table_file};
use crate::words::{Gap, Words};
use foremind_types::data::File;
use foremind_types::order::sort_by;

/// The data file.
pub(crate) const FILE: File = table_file!("attributes.tsv");

/// Longest value, in words.
const VALUE_WORDS: usize = 8;

/// Words that end a value.
const STOPS: &[&str] = &[
    "and", "but", "because", "since", "so", "which", "where", "who", "with", "for", "now", "when",
    "while", "although", "though", "if", "as", "until", "these",
];

/// Phrases that introduce the value of an attribute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    /// Folded phrase, attribute; sorted by phrase.
    phrases: Vec<(Box<str>, Box<str>)>,
}

impl Attributes {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(file: &'static str, text: &'static str) -> (Self, Vec<LineError>) {
        let mut phrases = Vec::new();
        let errors = each_line(file, text, &mut |line| {
            let (attribute, list) = line
                .split_once('\t')
                .ok_or("expected two fields, separated by a tab")?;
            for phrase in list.split(',') {
                let words = Words::of(phrase);
                if words.len() == 0 {
                    return Err("empty phrase");
                }
                phrases.push((words.phrase(0, words.len()).into(), attribute.trim().into()));
            }
            Ok(())
        });
        sort_by(&mut phrases, Ord::cmp);
        (Self { phrases }, errors)
    }

    /// Attribute and value (as it stands in the text) that the first sentence part sets, if any.
    pub(crate) fn find(&self, text: &str, words: &Words) -> Option<(String, String)> {
        for from in 0..words.len() {
            if words.word(from).quoted {
                continue;
            }
            for to in (from + 1..=(from + 6).min(words.len())).rev() {
                let phrase = words.phrase(from, to);
                let Ok(at) = self.phrases.binary_search_by(|(p, _)| (**p).cmp(phrase)) else {
                    continue;
                };
                let end = (to..(to + VALUE_WORDS).min(words.len()))
                    .find(|&w| {
                        let before = words.word(w).before;
                        before.has(Gap::CLAUSE)
                            || before.has(Gap::SENTENCE)
                            || STOPS.contains(&words.folded(w))
                    })
                    .unwrap_or((to + VALUE_WORDS).min(words.len()));
                let value = text.get(words.range(to, end)).unwrap_or_default().trim();
                if value.is_empty() {
                    return None;
                }
                let (_, attribute) = &self.phrases[at];
                return Some((attribute.to_string(), value.to_owned()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &str)>) {
        let (table, errors) = Attributes::read(FILE.name, FILE.text());
        assert!(errors.is_empty(), "{}", errors[0]);
        let found = table.find(text, &Words::of(text));
        let found = found.as_ref().map(|(a, v)| (a.as_str(), v.as_str()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn attributes_have_the_value_up_to_the_next_clause() {
        check(
            "I live in São Paulo and love it",
            Some(("home", "São Paulo")),
        );
        check("We moved to Leeds, finally.", Some(("home", "Leeds")));
        check("My name is Ada Okafor.", Some(("name", "Ada Okafor")));
        check("I like trains", None);
        check("I live in", None);
    }
}
