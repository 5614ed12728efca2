//! What in a text tells who somebody is: names of people and small places, addresses, numbers, ways to reach somebody.
//!
//! By lists (`data/identifiers.tsv`) and by form: a capital letter inside a sentence on a word that no data file knows, digits in
//! a row, street words beside a name or a number. What changes answers stays: medicines, foods, languages, nations, large
//! cities, amounts with a unit, days.

use core::ops::Range;
use std::sync::OnceLock;

use foremind_types::data::File;
use foremind_types::order::sort_by;

use crate::Tables;
use crate::data::table_file;
use crate::table::Table;
use crate::words::{Gap, Words};

/// The lists.
pub(crate) const FILE: File = table_file!("identifiers.tsv");
/// Words of the data files with which none of their phrases begins.
pub(crate) const INNER_WORDS: File = table_file!("inner_words.tsv");

// Classes of the lists, each with its bit: the order of [`crate::compile::IDENTIFIER_CLASSES`].
const GIVEN: u16 = 1;
const FAMILY: u16 = 2;
const CUE: u16 = 4;
const RELATION: u16 = 8;
const AFTER_NAME: u16 = 16;
const VERB: u16 = 32;
const KEEP: u16 = 64;
const STREET_AFTER: u16 = 128;
const STREET_BEFORE: u16 = 256;
const UNIT: u16 = 512;
const CODE: u16 = 1024;
const PARTICLE: u16 = 2048;
const BIRTH: u16 = 4096;
const AVOID: u16 = 8192;

/// Ends of street names that are one word.
const STREET_ENDS: &[&str] = &[
    "strasse", "straat", "gasse", "allee", "platz", "weg", "gatan", "vagen", "ufer", "damm",
];
/// Words by which a text is German, where every noun has a capital.
const GERMAN: &[&str] = &[
    "ich", "mein", "meine", "meiner", "meinem", "meinen", "und", "der", "die", "das", "ist",
    "nicht", "wir", "unsere", "unser", "bei", "fur",
];
/// What ends a name in writing without spaces.
const ENDS: &str = "是有在的和了住说說喜对對会會患做也都今已于於，はがのをにでとも이가은는을를";

/// What kind a place in a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifierKind {
    /// Of a person, a pet, a firm, a small place.
    Name,
    /// Of a house.
    Address,
    /// Of a telephone, a document, an account, a door.
    Number,
    /// A mail address, a page, a handle.
    Contact,
}

impl IdentifierKind {
    /// The word that a placeholder begins with.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Address => "address",
            Self::Number => "number",
            Self::Contact => "contact",
        }
    }
}

/// What is looked up.
struct Lists {
    phrases: Table,
    inner_words: Table,
}

impl Lists {
    fn shared() -> &'static Self {
        static LISTS: OnceLock<Lists> = OnceLock::new();
        LISTS.get_or_init(|| Self {
            phrases: Table::of(FILE.text(), 0),
            inner_words: Table::of(INNER_WORDS.text(), 0),
        })
    }

    /// Whether a data file has the word: no name by its capital alone.
    fn knows(&self, word: &str) -> bool {
        let tables = Tables::shared();
        self.inner_words.knows(word)
            || tables.lexicon().knows(word)
            || tables.cues().knows(word)
            || tables.triggers().knows(word)
    }

    fn classes(&self, phrase: &str) -> u16 {
        let mut same = self.phrases.same(self.phrases.place(phrase), phrase);
        same.next().unwrap_or(0)
    }
}

/// What tells who somebody is, by place, without overlap.
#[must_use]
pub fn identifiers(text: &str) -> Vec<(Range<usize>, IdentifierKind)> {
    let mut found = contacts(text);
    let words = Words::of(text);
    let reader = Reader::new(text, &words);
    let marks = reader.marks();
    let mut at = 0;
    while at < marks.len() {
        let Some(kind) = marks[at] else {
            at += 1;
            continue;
        };
        let mut end = at + 1;
        // Names stand word by word, so that a first name is the same with and without the rest.
        while end < marks.len()
            && marks[end] == Some(kind)
            && (kind != IdentifierKind::Name || words.word(end).before.has(Gap::JOINED))
        {
            end += 1;
        }
        let mut range = words.range(at, end);
        if kind == IdentifierKind::Name {
            let name = &text[range.clone()];
            range.end = range.start + name.len() - (name.len() - without_owner(name).len());
        }
        if !found
            .iter()
            .any(|(other, _)| other.start < range.end && range.start < other.end)
        {
            found.push((range, kind));
        }
        at = end;
    }
    sort_by(&mut found, |a, b| a.0.start.cmp(&b.0.start));
    found
}

/// Where the thing begins that the owner says must be avoided, if a text is nothing but such a saying.
#[must_use]
pub fn avoided(text: &str) -> Option<usize> {
    let words = Words::of(text);
    let lists = Lists::shared();
    let length = (2..=6)
        .rev()
        .find(|length| lists.classes(words.phrase(0, *length)) & AVOID != 0)?;
    let more = (1..words.len()).any(|at| words.word(at).before.has(Gap::SENTENCE));
    (length < words.len() && !more).then(|| words.range(length, length + 1).start)
}

/// "Max's" without what makes it an owner.
fn without_owner(name: &str) -> &str {
    let short = name.trim_end_matches(['s', 'S']);
    match short.strip_suffix(['\'', '’']) {
        Some(owner) if !owner.is_empty() => owner,
        _ => name.trim_end_matches(['\'', '’']),
    }
}

/// Runs without white space around an at sign or behind the beginning of a page's address.
fn contacts(text: &str) -> Vec<(Range<usize>, IdentifierKind)> {
    let mut found = Vec::new();
    let mut from = 0;
    for run in text.split(|c: char| c.is_whitespace() || "，。、「」()<>\"“”".contains(c))
    {
        let start = from + text[from..].find(run).unwrap_or(0);
        from = start + run.len();
        let page = ["http://", "https://", "www."]
            .iter()
            .any(|way| has_in_any_case(run, way));
        let bare = run.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        if (page || bare.contains('@')) && bare.len() > 2 {
            found.push((start..start + bare.len(), IdentifierKind::Contact));
        }
    }
    found
}

/// Whether `text` has `part`, which is ASCII, in capitals or not.
fn has_in_any_case(text: &str, part: &str) -> bool {
    let mut places = text.as_bytes().windows(part.len());
    places.any(|place| place.eq_ignore_ascii_case(part.as_bytes()))
}

struct Reader<'t> {
    text: &'t str,
    words: &'t Words,
    lists: &'static Lists,
    classes: Vec<u16>,
    german: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, words: &'t Words) -> Self {
        let lists = Lists::shared();
        let classes = (0..words.len())
            .map(|at| lists.classes(without_owner(words.folded(at))))
            .collect();
        let german = (0..words.len()).any(|at| GERMAN.contains(&words.folded(at)));
        Self {
            text,
            words,
            lists,
            classes,
            german,
        }
    }

    fn is(&self, at: usize, class: u16) -> bool {
        self.classes.get(at).is_some_and(|bits| bits & class != 0)
    }

    fn raw(&self, at: usize) -> &'t str {
        &self.text[self.words.range(at, at + 1)]
    }

    fn is_upper(&self, at: usize) -> bool {
        self.raw(at).chars().next().is_some_and(char::is_uppercase) && self.raw(at) != "I"
    }

    /// Written in letters that know no capitals.
    fn is_caseless(&self, at: usize) -> bool {
        let first = self.raw(at).chars().next();
        first.is_some_and(|c| c.is_alphabetic() && !c.is_uppercase() && !c.is_lowercase())
    }

    /// One character of a script without spaces.
    fn is_single(&self, at: usize) -> bool {
        self.is_caseless(at) && self.words.folded(at).chars().count() == 1
    }

    fn digits(&self, at: usize) -> usize {
        self.raw(at).chars().filter(|c| c.is_numeric()).count()
    }

    fn before(&self, at: usize) -> Gap {
        if at < self.words.len() {
            self.words.word(at).before
        } else {
            Gap::SENTENCE
        }
    }

    /// What stands between a word and the one before it.
    fn between(&self, at: usize) -> &'t str {
        let (from, to) = (
            self.words.range(at - 1, at).end,
            self.words.range(at, at + 1).start,
        );
        self.text.get(from..to).unwrap_or_default()
    }

    fn is_known(&self, at: usize) -> bool {
        let word = without_owner(self.words.folded(at));
        let one = |word: &str| self.lists.knows(word);
        let singular = word.strip_suffix('s').unwrap_or(word);
        one(word) || one(singular) || one(singular.strip_suffix('e').unwrap_or(singular))
    }

    /// Whether a phrase of a class ends right before a word.
    fn follows(&self, at: usize, class: u16) -> bool {
        let joined = at > 0 && (self.before(at).has(Gap::JOINED) || self.is_single(at - 1));
        (1..=if joined { 5 } else { 3 }).any(|length| {
            let Some(from) = at.checked_sub(length) else {
                return false;
            };
            let phrase = self.words.phrase(from, at);
            let bits = if joined && length > 1 {
                self.lists.classes(&phrase.replace(' ', ""))
            } else {
                self.lists.classes(phrase)
            };
            bits & class != 0
        })
    }

    fn marks(&self) -> Vec<Option<IdentifierKind>> {
        let mut marks = vec![None; self.words.len()];
        self.addresses(&mut marks);
        self.numbers(&mut marks);
        self.names(&mut marks);
        marks
    }

    fn set(marks: &mut [Option<IdentifierKind>], range: Range<usize>, kind: IdentifierKind) {
        for mark in &mut marks[range] {
            *mark = mark.or(Some(kind));
        }
    }

    fn addresses(&self, marks: &mut [Option<IdentifierKind>]) {
        let part = |at: usize| self.is_upper(at) || self.digits(at) > 0;
        for at in 0..self.words.len() {
            let (mut from, mut to) = (at, at + 1);
            let word = self.words.folded(at);
            let compound = STREET_ENDS
                .iter()
                .any(|end| word.strip_suffix(end).is_some_and(|name| name.len() > 2));
            if self.is(at, STREET_AFTER) || compound && self.is_upper(at) {
                while from > 0 && at - from < 5 && part(from - 1) && self.before(from).is_empty() {
                    from -= 1;
                }
            }
            let behind = self.is(at, STREET_BEFORE) && (word != "via" || self.is_upper(at));
            if compound && self.is_upper(at) || behind {
                while to < self.words.len()
                    && to - at < 7
                    && !self.before(to).has(Gap::SENTENCE)
                    && (self.digits(to) > 0
                        || self.before(to).is_empty()
                            && behind
                            && (self.is_upper(to) || self.is(to, PARTICLE)))
                {
                    to += 1;
                    if self.digits(to - 1) > 0 {
                        break;
                    }
                }
                while behind
                    && from > 0
                    && self.digits(from - 1) > 0
                    && self.between(from).len() < 3
                {
                    from -= 1;
                }
            }
            let named = (from..to).any(|one| one != at && part(one));
            if !named {
                continue;
            }
            // Town, postal code and country behind it.
            let end = to;
            while to < self.words.len()
                && to - end < 6
                && !self.before(to).has(Gap::SENTENCE)
                && (self.digits(to) > 0
                    || self.is_upper(to)
                        && (to > end
                            || self.digits(to - 1) > 3
                            || self.before(to).has(Gap::CLAUSE)))
            {
                to += 1;
            }
            Self::set(marks, from..to, IdentifierKind::Address);
        }
        // Without spaces: up to the word for a house number.
        for at in 1..self.words.len() {
            let word = self.words.folded(at);
            let house = matches!(word, "号" | "號" | "番" | "目" | "호" | "番地");
            let street =
                matches!(word, "로" | "길") && at + 1 < self.words.len() && self.digits(at + 1) > 0;
            let joined = self.before(at).has(Gap::JOINED);
            if !joined
                || !(street || house && (at.saturating_sub(2)..at).any(|one| self.digits(one) > 0))
            {
                continue;
            }
            let mut from = at;
            while from > 0
                && self.before(from).has(Gap::JOINED)
                && !"在住是址はに家于於我".contains(self.words.folded(from - 1))
            {
                from -= 1;
            }
            if street {
                // The city and the district, each a word of its own.
                while from > 1
                    && matches!(
                        self.words.folded(from - 1),
                        "시" | "구" | "동" | "도" | "군"
                    )
                {
                    from -= 1;
                    while from > 0 && self.before(from).has(Gap::JOINED) {
                        from -= 1;
                    }
                }
            }
            let mut to = at + 1;
            while to < self.words.len()
                && (self.digits(to) > 0
                    || matches!(
                        self.words.folded(to),
                        "号" | "號" | "室" | "楼" | "地" | "호" | "동" | "층"
                    ))
            {
                to += 1;
            }
            Self::set(marks, from..to, IdentifierKind::Address);
        }
    }

    fn numbers(&self, marks: &mut [Option<IdentifierKind>]) {
        let mut at = 0;
        while at < self.words.len() {
            if self.digits(at) == 0 || marks[at].is_some() {
                at += 1;
                continue;
            }
            let start = at;
            let mut parts = vec![self.digits(at)];
            at += 1;
            while at < self.words.len() && self.digits(at) > 0 && marks[at].is_none() {
                let gap = self.between(at);
                if gap != "," && (gap.len() > 2 || !gap.chars().all(|c| " -./()".contains(c))) {
                    break;
                }
                parts.push(self.digits(at));
                at += 1;
            }
            let run = self.words.range(start, at);
            let digits: usize = parts.iter().sum();
            let near = |class: u16| {
                (start.saturating_sub(7)..start)
                    .rev()
                    .take_while(|one| !self.before(one + 1).has(Gap::SENTENCE))
                    .any(|one| self.is(one, class))
                    || self.follows(start, class)
            };
            let mixed = (start..at).any(|one| self.raw(one).len() > self.digits(one));
            let of_day = |one: usize| self.raw(one).parse::<u8>().is_ok_and(|day| day <= 31);
            let date = match parts[..] {
                [4, 1 | 2, 1 | 2] => of_day(start + 1) && of_day(start + 2),
                [1 | 2, 1 | 2, 2 | 4] => of_day(start) && of_day(start + 1),
                _ => false,
            } && !mixed;
            let money = self.text[..run.start].ends_with(['$', '€', '£', '¥', '₹', '~'])
                || self.text[run.end..]
                    .trim_start()
                    .starts_with(['$', '€', '£', '¥', '₽', '%', '元', '円', '원']);
            let year = parts[..] == [4] && ("1900".."2100").contains(&&self.text[run.clone()]);
            let unit = year
                && !self.follows(start, CODE)
                && !self.follows(start - usize::from(start > 0), CODE)
                || money
                || self.is(at, UNIT) && !self.before(at).has(Gap::SENTENCE);
            let hides = match near(CODE) {
                _ if date => near(BIRTH),
                _ if unit => false,
                true => digits >= 3 || mixed && digits > 0,
                false => {
                    digits >= 6 || digits >= 5 && !mixed || mixed && digits >= 3 && run.len() >= 5
                }
            };
            if !hides {
                continue;
            }
            let mut from = start;
            let mut to = at;
            // Letters of a plate or a document.
            let letters = |one: usize| {
                self.raw(one).len() <= 4 && self.raw(one).chars().all(char::is_uppercase)
            };
            while near(CODE) && from > 0 && letters(from - 1) && self.between(from).len() < 2 {
                from -= 1;
            }
            while near(CODE)
                && to < self.words.len()
                && letters(to)
                && self.between(to).len() < 2
                && self.raw(to) != "I"
            {
                to += 1;
            }
            Self::set(marks, from..to, IdentifierKind::Number);
        }
    }

    fn names(&self, marks: &mut [Option<IdentifierKind>]) {
        for at in 0..self.words.len() {
            if marks[at].is_some() {
                continue;
            }
            if self.is_caseless(at) {
                if let Some(range) = self.caseless_name(at) {
                    Self::set(marks, range, IdentifierKind::Name);
                }
                continue;
            }
            if self.is_name(at, marks) {
                marks[at] = Some(IdentifierKind::Name);
            }
        }
    }

    fn is_name(&self, at: usize, marks: &[Option<IdentifierKind>]) -> bool {
        if self.digits(at) > 0 {
            return false;
        }
        let before = self.before(at);
        // The full stop of "Dr." ends no sentence.
        let titled = at > 0
            && self.is(at - 1, CUE)
            && self.raw(at - 1).len() <= 4
            && self.between(at) == ". ";
        let begins = before.has(Gap::SENTENCE) && !titled;
        let keep = self.is(
            at,
            KEEP | UNIT | VERB | PARTICLE | RELATION | CUE | STREET_AFTER,
        );
        let given = self.is(at, GIVEN);
        let known = || self.is_known(at);
        let cued = !begins && self.follows(at, CUE);
        let related = !begins && self.follows(at, RELATION);
        let after_name = at > 0
            && before.is_empty()
            && (marks[at - 1] == Some(IdentifierKind::Name)
                || at > 1
                    && self.is(at - 1, PARTICLE)
                    && marks[at - 2] == Some(IdentifierKind::Name));
        if !self.is_upper(at) {
            return given && (related || cued) && !keep
                || cued && before.is_empty() && !known() && !keep && self.raw(at).len() > 2;
        }
        if given && (cued || related || after_name) {
            return true;
        }
        if keep {
            return false;
        }
        if cued || related {
            // A firm, a pet or a person, whatever else the word means.
            return !known() || !begins;
        }
        if given {
            return !(begins && known()) || self.is(at + 1, VERB);
        }
        let raw = self.raw(at);
        let acronym = raw.chars().count() <= 5 && raw.chars().all(|c| c.is_uppercase());
        if known() || (acronym && !after_name) {
            return false;
        }
        if after_name {
            return true;
        }
        let owns = without_owner(raw) != raw;
        let next_upper = at + 1 < self.words.len()
            && self.before(at + 1).is_empty()
            && self.is_upper(at + 1)
            && !self.is(at + 1, KEEP)
            && !self.is_known(at + 1);
        if begins {
            return owns || next_upper && !self.german || self.is(at + 1, VERB);
        }
        !self.german
    }

    /// A name in letters without capitals: listed, behind a cue, or before a word that follows names.
    fn caseless_name(&self, at: usize) -> Option<Range<usize>> {
        let folded = self.words.folded(at);
        let spaced = folded.chars().count() > 1;
        let cued = self.follows(at, CUE) || self.follows(at, RELATION);
        if spaced {
            let named = self.is(at, GIVEN)
                || cued
                    && self.follows(at, CUE)
                    && !self.is_known(at)
                    && !self.is(at, VERB | PARTICLE);
            return named.then_some(at..at + 1);
        }
        // One character a word.
        let run = |from: usize, most: usize| {
            let mut to = from;
            while to < self.words.len()
                && to - from < most
                && self.words.folded(to).chars().count() == 1
                && self.is_caseless(to)
                && (to == from || self.before(to).has(Gap::JOINED))
                && !ENDS.contains(self.words.folded(to))
            {
                to += 1;
            }
            to
        };
        let followed = |to: usize| {
            (1..=2).any(|length| {
                let phrase = self.words.phrase(to, to + length).replace(' ', "");
                self.lists.classes(&phrase) & AFTER_NAME != 0
            })
        };
        for most in 2..=5 {
            let to = run(at, most);
            if to - at == most
                && followed(to)
                && (at == 0
                    || !self.before(at).has(Gap::JOINED)
                    || ENDS.contains(self.words.folded(at - 1))
                    || cued
                    || self.is(at, FAMILY))
            {
                return Some(at..to);
            }
        }
        let long = self
            .lists
            .classes(&self.words.phrase(at, at + 2).replace(' ', ""))
            & FAMILY
            != 0;
        if cued {
            let to = run(at, if long { 4 } else { 3 });
            return (to - at >= 2).then_some(at..to);
        }
        None
    }
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;
    use crate::compile::IDENTIFIER_CLASSES;

    #[test]
    fn the_bits_are_those_of_the_table() {
        let bits = [
            GIVEN,
            FAMILY,
            CUE,
            RELATION,
            AFTER_NAME,
            VERB,
            KEEP,
            STREET_AFTER,
            STREET_BEFORE,
            UNIT,
            CODE,
            PARTICLE,
            BIRTH,
            AVOID,
        ];
        assert_eq!(bits.len(), IDENTIFIER_CLASSES.len());
        for (at, bit) in bits.into_iter().enumerate() {
            assert_eq!(bit, 1 << at, "{}", IDENTIFIER_CLASSES[at]);
        }
        let lists = Lists::shared();
        assert_eq!(lists.classes("anna") & GIVEN, GIVEN);
        assert_eq!(lists.classes("zzyzx"), 0);
    }

    #[test]
    fn words_of_the_data_files_are_known_wherever_they_stand_in_a_phrase() {
        let lists = Lists::shared();
        // Alone, first, inside, of a question and of a kind of fact.
        for word in ["metformin", "gluten", "free", "marzipan", "fair", "marble"] {
            assert!(lists.knows(word), "{word}");
        }
        for name in ["okafor", "zzyzx", "", "glute"] {
            assert!(!lists.knows(name), "{name}");
        }
    }
}
