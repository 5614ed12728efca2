//! Phrases that stand for numbers, found in a text in time that grows with the text: by binary search for whole phrases and
//! for the beginnings of words.

use crate::compile::STEM_BYTES;
use crate::table::Table;
use crate::words::Words;

/// Phrases, each with one number or more.
#[derive(Debug, Default)]
pub(crate) struct Phrases {
    whole: Table,
    /// Beginnings of words.
    stems: Table,
}

/// Where a phrase stands in a text, as words `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u16,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Phrases {
    /// Over a text of `compile`: the whole phrases, an empty line, the beginnings. Places are counted from `base`. What
    /// follows another empty line is given back.
    pub(crate) fn of(text: &'static str, base: u16) -> (Self, &'static str) {
        let (whole, rest) = part(text);
        let (stems, rest) = part(rest);
        let whole = Table::of(whole, base);
        let stems = Table::of(stems, base + whole.len() as u16);
        (Self { whole, stems }, rest)
    }

    /// Whether a phrase is this word or begins with it.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.whole.knows(word) || self.stems.knows(word)
    }

    /// Calls `found` for every phrase in the text, in order of place. Plurals and possessives of whole phrases count.
    pub(crate) fn find(&self, words: &Words, mut found: impl FnMut(Place)) {
        for from in 0..words.len() {
            self.find_whole(words, from, &mut found);
            self.find_stems(words.folded(from), from, &mut found);
        }
    }

    fn find_whole(&self, words: &Words, from: usize, found: &mut impl FnMut(Place)) {
        for to in from + 1..=words.len() {
            let phrase = words.phrase(from, to);
            let at = self.whole.place(phrase);
            for form in forms(phrase) {
                let at = if form.len() == phrase.len() {
                    at
                } else {
                    self.whole.place(form)
                };
                let mut any = false;
                for id in self.whole.same(at, form) {
                    any = true;
                    found(Place { id, from, to });
                }
                if any {
                    break;
                }
            }
            // A longer phrase can only begin with this one and a space.
            if !self
                .whole
                .is_begun(at, phrase, |rest| rest.starts_with(' '))
            {
                break;
            }
        }
    }

    fn find_stems(&self, word: &str, from: usize, found: &mut impl FnMut(Place)) {
        let to = from + 1;
        for end in STEM_BYTES..=word.len() {
            let Some(stem) = word.get(..end) else {
                continue;
            };
            let at = self.stems.place(stem);
            for id in self.stems.same(at, stem) {
                found(Place { id, from, to });
            }
            // No entry goes on from here, so none will.
            if !self.stems.is_begun(at, stem, |_| true) {
                break;
            }
        }
    }
}

/// The lines before the first empty one, and what follows it.
fn part(text: &'static str) -> (&'static str, &'static str) {
    if let Some(rest) = text.strip_prefix('\n') {
        return ("", rest);
    }
    match text.find("\n\n") {
        Some(end) => (&text[..=end], &text[end + 2..]),
        None => (text, ""),
    }
}

/// The phrase itself and without plural or possessive ending.
fn forms(phrase: &str) -> impl Iterator<Item = &str> {
    let with_s = phrase.ends_with('s').then_some(phrase);
    let possessive = with_s.and_then(|p| p.strip_suffix("'s"));
    let plural = with_s
        .and_then(|p| p.strip_suffix('s'))
        .filter(|rest| rest.len() > 2 && !rest.ends_with(['s', '\'', 'u', 'i']));
    let plural_es = with_s
        .and_then(|p| p.strip_suffix("es"))
        .filter(|rest| rest.len() > 3);
    [Some(phrase), possessive, plural, plural_es]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile;

    /// The rows whose phrases stand in a text, by the order of the cues that they are made.
    fn found(rows: &[(&str, u16)], text: &str) -> Vec<u16> {
        let line = |(phrase, number): &(&str, u16)| format!("cue{number}\tfood\t{phrase}\n");
        let lines: String = rows.iter().map(line).collect();
        let table = compile::cues(("t.tsv", &lines)).unwrap();
        let (_, table) = String::leak(table).split_once('\n').unwrap();
        let mut ids = Vec::new();
        let (phrases, cues) = Phrases::of(table, 0);
        let cues: Vec<char> = cues.chars().collect();
        phrases.find(&Words::of(text), |place| {
            let cue = compile::number(cues[usize::from(place.id)]);
            ids.push(rows[cue].1);
        });
        ids
    }

    #[test]
    fn whole_phrases_and_their_plurals() {
        let table = [("star fruit", 1), ("star", 2), ("grape", 3), ("大理石", 4)];
        assert_eq!(found(&table, "Star fruits, grapes"), [2, 1, 3]);
        assert_eq!(found(&table, "うちは大理石です"), [4]);
        assert_eq!(found(&table, "starfruit graper"), Vec::<u16>::new());
    }

    #[test]
    fn beginnings_of_words() {
        let table = [("swim*", 1), ("swimm*", 2), ("art*", 3), ("artisan*", 4)];
        assert_eq!(found(&table, "swimming"), [1, 2]);
        assert_eq!(found(&table, "an arty swim, a cart"), [3, 1]);
        assert_eq!(found(&table, "artisanal"), [3, 4]);
        assert_eq!(found(&table, "árt"), [3], "accents do not count");
    }
}
