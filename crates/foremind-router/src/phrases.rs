//! Phrases that stand for numbers, found in a text in time that grows with the text: by binary search for whole phrases and
//! for the beginnings of words.

use foremind_types::order::sort_by;
use std::borrow::Cow;

use crate::words::Words;

/// Shortest beginning of a word that a data file may name, in bytes.
pub(crate) const STEM_BYTES: usize = 3;

#[derive(Debug)]
struct Entry {
    /// The first eight bytes as a number that sorts as they do: most comparisons end here.
    key: u64,
    phrase: Cow<'static, str>,
    id: u16,
}

/// Phrases, each with one number or more.
#[derive(Debug, Default)]
pub(crate) struct Phrases {
    /// Whole phrases, sorted.
    whole: Vec<Entry>,
    /// Beginnings of words, sorted.
    stems: Vec<Entry>,
}

/// Where a phrase stands in a text, as words `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u16,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

fn key(phrase: &str) -> u64 {
    let bytes = phrase.bytes().chain(core::iter::repeat(0));
    bytes
        .take(8)
        .fold(0, |key, byte| key << 8 | u64::from(byte))
}

fn place(entries: &[Entry], phrase: &str) -> usize {
    let key = key(phrase);
    entries.partition_point(|e| e.key < key || (e.key == key && *e.phrase < *phrase))
}

impl Phrases {
    /// Adds a phrase as a data file writes it; a `*` at the end of a single word makes it a beginning.
    pub(crate) fn add(&mut self, phrase: &'static str, id: u16) -> Result<(), &'static str> {
        let (text, stem) = match phrase.strip_suffix('*') {
            Some(rest) => (rest, true),
            None => (phrase, false),
        };
        let bytes = text.as_bytes();
        let plain =
            |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b' ' | b'\'');
        let odd = text.starts_with('\'')
            || text.ends_with('\'')
            || bytes.windows(2).any(|pair| matches!(pair, b"  " | b"' "));
        // Most phrases stand in the file as they are compared.
        let folded = if !text.is_empty() && bytes.iter().all(plain) && !odd {
            Cow::Borrowed(text)
        } else {
            let words = Words::of(text);
            if words.len() == 0 {
                return Err("empty phrase");
            }
            Cow::Owned(words.phrase(0, words.len()).to_owned())
        };
        if stem && (folded.contains(' ') || folded.len() < STEM_BYTES) {
            return Err("only a single word of three letters or more can be a beginning");
        }
        let entry = Entry {
            key: key(&folded),
            phrase: folded,
            id,
        };
        if stem {
            self.stems.push(entry);
        } else {
            self.whole.push(entry);
        }
        Ok(())
    }

    /// Makes the phrases findable; to be called once, after the last [`Self::add`].
    pub(crate) fn sort(&mut self) {
        for entries in [&mut self.whole, &mut self.stems] {
            sort_by(entries, |a, b| {
                let phrases = || a.phrase.cmp(&b.phrase);
                a.key.cmp(&b.key).then_with(phrases).then(a.id.cmp(&b.id))
            });
            entries.dedup_by(|a, b| a.phrase == b.phrase && a.id == b.id);
            entries.shrink_to_fit();
        }
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
            let at = place(&self.whole, phrase);
            for form in forms(phrase) {
                let at = if form.len() == phrase.len() {
                    at
                } else {
                    place(&self.whole, form)
                };
                let same = self.whole[at..].iter().take_while(|e| e.phrase == form);
                let mut any = false;
                for Entry { id, .. } in same {
                    any = true;
                    found(Place { id: *id, from, to });
                }
                if any {
                    break;
                }
            }
            // A longer phrase can only begin with this one and a space.
            let longer = self.whole[at..]
                .iter()
                .find(|e| e.phrase != phrase)
                .and_then(|e| e.phrase.strip_prefix(phrase))
                .is_some_and(|rest| rest.starts_with(' '));
            if !longer {
                break;
            }
        }
    }

    fn find_stems(&self, word: &str, from: usize, found: &mut impl FnMut(Place)) {
        let to = from + 1;
        // The longest beginning in the table decides where shorter ones can stand: all sort at or before the word.
        for end in STEM_BYTES..=word.len() {
            let Some(stem) = word.get(..end) else {
                continue;
            };
            let at = place(&self.stems, stem);
            let Some(next) = self.stems.get(at) else {
                break;
            };
            let same = self.stems[at..].iter().take_while(|e| e.phrase == stem);
            for Entry { id, .. } in same {
                found(Place { id: *id, from, to });
            }
            // No entry goes on from here, so none will.
            let on = self.stems[at..].iter().find(|e| e.phrase != stem);
            if !next.phrase.starts_with(stem) && !on.is_some_and(|e| e.phrase.starts_with(stem)) {
                break;
            }
        }
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

    fn found(phrases: &[(&'static str, u16)], text: &str) -> Vec<u16> {
        let mut table = Phrases::default();
        for (phrase, id) in phrases {
            table.add(phrase, *id).unwrap();
        }
        table.sort();
        let mut ids = Vec::new();
        table.find(&Words::of(text), |place| ids.push(place.id));
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

    #[test]
    fn a_bad_phrase_is_refused() {
        let mut table = Phrases::default();
        assert!(table.add("two words*", 0).is_err());
        assert!(table.add("ab*", 0).is_err());
        assert!(table.add("?", 0).is_err());
    }
}
