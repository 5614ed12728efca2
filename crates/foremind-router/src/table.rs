//! A table of phrases that is looked up as it stands: see `compile`.

use crate::compile::number;

/// Lines of a phrase, a tab and a number, sorted. A line without a number has that of its place.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: &'static str,
    /// What places are counted from.
    base: u16,
    /// Where each line begins.
    starts: Vec<u32>,
}

impl Table {
    /// Over the lines of a text; it must be sorted and end with a line break, or be empty. Places are counted from `base`.
    pub(crate) fn of(text: &'static str, base: u16) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 12);
        let mut at = 0;
        while let Some(length) = text[at..].find('\n') {
            starts.push(at as u32);
            at += length + 1;
        }
        Self { text, base, starts }
    }

    /// The phrase of a line and its number; nothing beyond the table.
    pub(crate) fn get(&self, line: usize) -> Option<(&'static str, u16)> {
        let from = *self.starts.get(line)? as usize;
        let to = self
            .starts
            .get(line + 1)
            .map_or(self.text.len(), |next| *next as usize);
        let line_text = self.text.get(from..to - 1)?;
        Some(match line_text.split_once('\t') {
            Some((phrase, character)) => (phrase, number(character.chars().next()?) as u16),
            None => (line_text, self.base + line as u16),
        })
    }

    /// The first line whose phrase is not before `phrase`.
    pub(crate) fn place(&self, phrase: &str) -> usize {
        let phrase = phrase.as_bytes();
        // What follows a phrase in its line sorts before whatever a longer phrase goes on with.
        self.starts.partition_point(|start| {
            let line = &self.text.as_bytes()[*start as usize..];
            match line.get(..phrase.len()) {
                Some(head) => head < phrase,
                None => line < phrase,
            }
        })
    }

    /// The numbers of the lines from `at` on that have exactly this phrase.
    pub(crate) fn same<'p>(
        &self,
        at: usize,
        phrase: &'p str,
    ) -> impl Iterator<Item = u16> + use<'_, 'p> {
        (at..)
            .map_while(|line| self.get(line))
            .take_while(move |(found, _)| *found == phrase)
            .map(|(_, number)| number)
    }

    /// Whether a line from `at` on goes on from `phrase` with something that `goes_on` accepts.
    pub(crate) fn is_begun(&self, at: usize, phrase: &str, goes_on: impl Fn(&str) -> bool) -> bool {
        (at..)
            .map_while(|line| self.get(line))
            .find(|(found, _)| *found != phrase)
            .and_then(|(found, _)| found.strip_prefix(phrase))
            .is_some_and(goes_on)
    }

    /// Whether a phrase is this word or begins with it.
    pub(crate) fn knows(&self, word: &str) -> bool {
        let found = self.get(self.place(word));
        let rest = found.and_then(|(phrase, _)| phrase.strip_prefix(word));
        rest.is_some_and(|rest| !word.is_empty() && !rest.starts_with(char::is_alphanumeric))
    }

    /// How many lines there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_where_they_stand() {
        let table = Table::of(
            "creme\t4\nstar\t2\nstar\t3\nstar fruit\t2\nstarfruit\t1\n",
            0,
        );
        let numbers = |phrase: &str| table.same(table.place(phrase), phrase).collect::<Vec<_>>();
        assert_eq!(numbers("star"), [2, 3]);
        assert_eq!(numbers("starfruit"), [1]);
        assert_eq!(numbers("creme"), [4]);
        for absent in ["", "sta", "stars", "star fruits", "zzz", "cremes"] {
            assert_eq!(numbers(absent), [0_u16; 0], "{absent}");
        }
        let begun = |phrase: &str| {
            table.is_begun(table.place(phrase), phrase, |rest| rest.starts_with(' '))
        };
        assert!(begun("star") && !begun("creme") && !begun("starfruit"));
        assert!(table.knows("star") && table.knows("creme") && !table.knows("sta"));
        assert_eq!(Table::of("", 0).get(0), None);
        let places = Table::of("oil\noil\t2\nolive\n", 7);
        assert_eq!(
            places.same(places.place("oil"), "oil").collect::<Vec<_>>(),
            [7, 2]
        );
        assert_eq!(places.get(2), Some(("olive", 9)));
    }
}
