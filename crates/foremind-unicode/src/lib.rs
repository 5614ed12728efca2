//! Unicode normalisation forms (UAX #15), whole texts at a time.
//!
//! Code and tables are small rather than fast beyond need: the tables are 29 KB that compress to 9, where those of the crate
//! `unicode-normalization`, from which they are made and against which each character is tested, are 112 KB that compress to 45. What a
//! text of ASCII would cost, callers spare it by not asking.

mod table;

use foremind_types::order::sort_by_key;

use crate::table::Table;

/// Hangul syllables and the letters that they are made of follow from a rule (Unicode 3.12).
mod hangul {
    const SYLLABLES: u32 = 0xac00;
    const LEADS: u32 = 0x1100;
    const VOWELS: u32 = 0x1161;
    /// One before the first, for a syllable without one.
    const TAILS: u32 = 0x11a7;
    const LEAD_COUNT: u32 = 19;
    const VOWEL_COUNT: u32 = 21;
    const TAIL_COUNT: u32 = 28;

    /// Where `c` is among `count` characters.
    fn place(c: char, start: u32, count: u32) -> Option<u32> {
        let at = u32::from(c).checked_sub(start)?;
        (at < count).then_some(at)
    }

    /// The letters of a syllable.
    pub(crate) fn letters(c: char) -> Option<impl Iterator<Item = char>> {
        let at = place(c, SYLLABLES, LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT)?;
        let tail = at % TAIL_COUNT;
        let letters = [
            LEADS + at / TAIL_COUNT / VOWEL_COUNT,
            VOWELS + at / TAIL_COUNT % VOWEL_COUNT,
            TAILS + tail,
        ];
        let count = if tail > 0 { 3 } else { 2 };
        Some(letters.into_iter().take(count).filter_map(char::from_u32))
    }

    /// Lead and vowel, or syllable and tail.
    pub(crate) fn composed(first: char, second: char) -> Option<char> {
        if let Some(vowel) = place(second, VOWELS, VOWEL_COUNT) {
            let lead = place(first, LEADS, LEAD_COUNT)?;
            return char::from_u32(SYLLABLES + (lead * VOWEL_COUNT + vowel) * TAIL_COUNT);
        }
        let tail = place(second, TAILS + 1, TAIL_COUNT - 1)?;
        let at = place(first, SYLLABLES, LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT)?;
        let bare = at % TAIL_COUNT == 0;
        char::from_u32(u32::from(first) + tail + 1).filter(|_| bare)
    }
}

/// How far characters are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// What is the same character: NFD.
    Canonical,
    /// Also what differs by its look only, ligatures or full width: NFKD.
    Compatible,
}

/// The text taken apart: NFD or NFKD.
#[must_use]
pub fn decompose(text: impl Iterator<Item = char>, equivalence: Equivalence) -> Vec<char> {
    let table = Table::get();
    let mut chars = Vec::new();
    // Combining characters at the end of `chars`, with their classes, until all of them are there and can be ordered.
    let mut marks: Vec<(u8, char)> = Vec::new();
    for c in text {
        take_apart(c, equivalence, table, &mut |c, class| {
            if class == 0 {
                settle(&mut marks, &mut chars);
                chars.push(c);
            } else {
                marks.push((class, c));
            }
        });
    }
    settle(&mut marks, &mut chars);
    chars
}

/// Canonical order: by class, those of one class as they came.
fn settle(marks: &mut Vec<(u8, char)>, chars: &mut Vec<char>) {
    if marks.len() > 1 {
        sort_by_key(marks, |(class, _)| *class);
    }
    chars.extend(marks.drain(..).map(|(_, c)| c));
}

/// The parts of `c` that do not decompose further, and their classes.
fn take_apart(c: char, equivalence: Equivalence, table: &Table, found: &mut dyn FnMut(char, u8)) {
    if let Some(letters) = hangul::letters(c) {
        letters.for_each(|letter| found(letter, 0));
        return;
    }
    let Some(entry) = table.entry(c) else {
        return found(c, 0);
    };
    let parts = table.parts(entry);
    let whole = entry.compatible && equivalence == Equivalence::Canonical;
    if parts.is_empty() || whole {
        let class = if whole { 0 } else { entry.class };
        return found(c, class);
    }
    for part in parts {
        take_apart(*part, equivalence, table, found);
    }
}

/// Puts together what [`decompose`] took apart: NFC of a text in NFD or NFKD, or of what is left of one when characters are taken out.
pub fn compose(chars: &mut Vec<char>) {
    let table = Table::get();
    let mut kept = 0;
    // Where the last character is that others combine with, and the class of the one after it that was kept.
    let mut starter: Option<usize> = None;
    let mut between: Option<u8> = None;
    for at in 0..chars.len() {
        let c = chars[at];
        let entry = table.entry(c);
        let class = entry.map_or(0, |entry| entry.class);
        if let Some(starter) = starter
            && between.is_none_or(|between| between < class)
        {
            let first = chars[starter];
            let composed = match entry {
                Some(_) => table.composed(first, c),
                None => hangul::composed(first, c),
            };
            if let Some(composed) = composed {
                chars[starter] = composed;
                continue;
            }
        }
        if class == 0 {
            (starter, between) = (Some(kept), None);
        } else {
            between = Some(class);
        }
        chars[kept] = c;
        kept += 1;
    }
    chars.truncate(kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn ours(text: &str, equivalence: Equivalence) -> (String, String) {
        let mut chars = decompose(text.chars(), equivalence);
        let apart = chars.iter().collect();
        compose(&mut chars);
        (apart, chars.into_iter().collect())
    }

    fn is_as_theirs(text: &str) -> bool {
        ours(text, Equivalence::Canonical) == (text.nfd().collect(), text.nfc().collect())
            && ours(text, Equivalence::Compatible) == (text.nfkd().collect(), text.nfkc().collect())
    }

    #[test]
    fn every_character_is_as_in_unicode() {
        for c in '\0'..=char::MAX {
            assert!(is_as_theirs(c.encode_utf8(&mut [0; 4])), "{c:?}");
        }
    }

    #[test]
    fn examples_of_the_standard() {
        let canonical = |text| ours(text, Equivalence::Canonical);
        // UAX #15, figures 3 to 5.
        assert_eq!(canonical("\u{212b}"), ("A\u{30a}".into(), "\u{c5}".into()));
        assert_eq!(
            canonical("\u{1e0b}\u{323}"),
            ("d\u{323}\u{307}".into(), "\u{1e0d}\u{307}".into())
        );
        assert_eq!(
            canonical("\u{fb01}"),
            ("\u{fb01}".into(), "\u{fb01}".into())
        );
        let compatible = ours("\u{fb01}2\u{2075}", Equivalence::Compatible);
        assert_eq!(compatible, ("fi25".into(), "fi25".into()));
        // What is blocked does not combine; nor does an excluded pair.
        assert_eq!(
            canonical("a\u{315}\u{315}\u{300}").1,
            "\u{e0}\u{315}\u{315}"
        );
        assert_eq!(canonical("\u{958}").1, "\u{915}\u{93c}");
        assert_eq!(canonical("\u{1100}\u{1161}\u{11a8}").1, "각");
        assert_eq!(canonical("").1, "");
    }

    /// Characters that decompose, combine, or stand beside those.
    fn lively() -> impl Strategy<Value = char> {
        prop_oneof![
            prop::char::range('\u{1100}', '\u{11ff}'),
            prop::char::range('\u{ac00}', '\u{ac40}'),
            prop::char::range('\u{300}', '\u{36f}'),
            prop::char::range('\u{5b0}', '\u{6ff}'),
            prop::char::range('\u{900}', '\u{dff}'),
            prop::char::range('\u{1e00}', '\u{1fff}'),
            prop::char::range('A', '\u{24f}'),
            prop::char::range('\u{3040}', '\u{30ff}'),
            prop::char::range('\u{11080}', '\u{115ff}'),
            any::<char>(),
        ]
    }

    proptest! {
        #[test]
        fn texts_are_as_in_unicode(chars in prop::collection::vec(lively(), 0..12)) {
            let text: String = chars.into_iter().collect();
            prop_assert!(is_as_theirs(&text), "{text:?}");
        }
    }
}
