//! How a statement relates to an earlier one: whether it gives another value of the same attribute, corrects it, ends it,
//! stands beside it, or says it once more.
//!
//! What each statement says for such a comparison is read once ([`Facts`]); two of them give a [`Relation`]. A score of
//! whole numbers says how surely both speak of one matter and the later one replaces the earlier; guards that no score
//! overrules keep what is added, what is about somebody else, and what changes in part only. The weights lie in
//! `data/replaces.tsv` and were fitted on the part for development of `tests/data/supersession`.

mod features;
mod guards;
mod quantities;

use foremind_types::small::SmallSet;

use foremind_types::Ambient;
use foremind_types::data::File;
use foremind_types::order::sort_by;

use crate::data::{LineError, each_line, table_file};
use crate::lifetime::{self, MONTHS};
use crate::words::{Gap, Words};

pub use features::FEATURE_NAMES;
use features::*;
use guards::*;
use quantities::*;

/// The data files.
pub(crate) const CUES: File = table_file!("changes.tsv");
pub(crate) const MATTERS: File = table_file!("matters.tsv");

pub(crate) const WEIGHTS: File = table_file!("replaces.tsv");

/// Longest phrase of the files, in words.
const PHRASE_WORDS: usize = 6;
/// So many words at its beginning tell whom a statement is about.
const OPENING_WORDS: usize = 5;
/// Most words of a list before its "and".
const LIST_WORDS: usize = 12;
/// So many words of a statement are compared; what is beyond tells nothing more.
const WORDS: usize = 96;

/// Kinds of cue, in the order of [`CLASS_NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cue {
    Stop,
    Change,
    Correct,
    End,
    Return,
    Add,
    Same,
    Trouble,
    Solved,
    Name,
    Person,
    Now,
    Part,
    Future,
    Passing,
}

const CLASSES: &[(&str, Cue)] = &[
    ("stop", Cue::Stop),
    ("change", Cue::Change),
    ("correct", Cue::Correct),
    ("end", Cue::End),
    ("return", Cue::Return),
    ("add", Cue::Add),
    ("same", Cue::Same),
    ("trouble", Cue::Trouble),
    ("solved", Cue::Solved),
    ("name", Cue::Name),
    ("person", Cue::Person),
    ("now", Cue::Now),
    ("part", Cue::Part),
    ("future", Cue::Future),
    ("passing", Cue::Passing),
];

/// Phrases with what they mean.
#[derive(Clone, Debug)]
pub(crate) struct Phrases<T> {
    /// Folded phrase, meaning; sorted.
    found: Vec<(Box<str>, T)>,
    /// Phrases of unspaced scripts, as they stand folded without spaces.
    inside: Vec<(Box<str>, T)>,
}

impl<T: Copy + Ord> Phrases<T> {
    fn read(
        file: &'static str,
        text: &'static str,
        mut meaning: impl FnMut(&str) -> Option<T>,
        errors: &mut Vec<LineError>,
    ) -> Self {
        let mut phrases = Self {
            found: Vec::new(),
            inside: Vec::new(),
        };
        errors.extend(each_line(file, text, &mut |line| {
            let (meaning, list) = line
                .split_once('\t')
                .and_then(|(name, list)| Some((meaning(name)?, list)))
                .ok_or("expected a known name and phrases, separated by a tab")?;
            for phrase in list.split(',') {
                let (phrase, inside) = match phrase.trim().strip_prefix('~') {
                    Some(phrase) => (phrase, true),
                    None => (phrase, false),
                };
                let words = Words::of(phrase);
                let folded = words.phrase(0, words.len());
                if folded.is_empty() || words.len() > 2 * PHRASE_WORDS {
                    return Err("a phrase without words, or too long");
                }
                if inside {
                    let solid = folded.replace(' ', "");
                    phrases.inside.push((solid.into(), meaning));
                } else {
                    phrases.found.push((folded.into(), meaning));
                }
            }
            Ok(())
        }));
        sort_by(&mut phrases.found, Ord::cmp);
        phrases.found.dedup();
        phrases
    }

    fn of(&self, phrase: &str) -> impl Iterator<Item = T> {
        let from = self.found.partition_point(|(p, _)| **p < *phrase);
        self.found[from..]
            .iter()
            .take_while(move |(p, _)| **p == *phrase)
            .map(|(_, meaning)| *meaning)
    }
}

/// The tables of this module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    cues: Phrases<Cue>,
    matters: Phrases<u8>,
    weights: Weights,
}

impl<T> Default for Phrases<T> {
    fn default() -> Self {
        Self {
            found: Vec::new(),
            inside: Vec::new(),
        }
    }
}

/// One word that says what a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stem {
    stem: Box<str>,
    /// Written with a capital inside a sentence.
    name: bool,
    at: usize,
}

/// What a statement says, read for comparison with others.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    stems: Vec<Stem>,
    quantities: Vec<Quantity>,
    /// One bit for each [`Cue`].
    cues: u16,
    matters: SmallSet<u8>,
    persons: SmallSet<Box<str>>,
    opening_persons: SmallSet<Box<str>>,
    /// What a sentence that begins with an article or "my" is about: "the web shop is".
    subject: Vec<Box<str>>,
    /// Stems that belong to somebody: "Camille's desk", "le bureau de Camille".
    owned: Vec<(Box<str>, Box<str>)>,
    words: Vec<Box<str>>,
    /// The first word that is a subject is the owner's: "I", "we", "my desk".
    owner: bool,
    /// The owner occurs at all.
    involves_owner: bool,
    /// "My sister": of a person of the owner's.
    persons_owned: bool,
    /// Of each "and" the items that it joins, each as places in `stems`.
    joined: Vec<Vec<Vec<usize>>>,
    /// The word before each stem where both touch, for "web shop" and "coffee shop".
    before: Vec<Option<usize>>,
    /// The first word, where it may be a name that the statement is about.
    opening: Option<Box<str>>,
    starts_other: bool,
    negated: bool,
    /// Values that it lists.
    parts: u8,
    commas: u8,
    /// "Fact number 3", "platform 2": which of a kind it is about.
    numbered: Option<Box<str>>,
    /// Prepositions of place, time and manner before a word with content.
    places: u8,
    question: bool,
    /// It names a day from which it holds.
    planned: bool,
}

/// Words of the owner.
const OWNER: &[&str] = &[
    "i",
    "i'm",
    "i've",
    "i'd",
    "i'll",
    "we",
    "we're",
    "we've",
    "we'd",
    "we'll",
    "my",
    "our",
    "me",
    "us",
    "ich",
    "wir",
    "mein",
    "meine",
    "unser",
    "unsere",
    "mir",
    "uns",
    "mi",
    "mis",
    "yo",
    "nuestro",
    "nuestra",
    "nuestros",
    "je",
    "j'ai",
    "mon",
    "ma",
    "mes",
    "nous",
    "notre",
    "nos",
    "eu",
    "meu",
    "minha",
    "nosso",
    "nossa",
    "mio",
    "mia",
    "io",
    "noi",
    "nostro",
    "nostra",
    "मैं",
    "मेरी",
    "मेरा",
    "हम",
];
const PREPOSITIONS: &[&str] = &[
    "in", "at", "on", "with", "for", "from", "by", "near", "to", "through", "via", "über", "mit",
    "im", "am", "con", "en", "para", "avec", "dans", "chez", "com", "em", "nel", "alla",
];
/// Words whose number says which one it is, not how many.
const KINDS: &[&str] = &[
    "number", "no", "nr", "platform", "chapter", "step", "item", "room", "group", "part", "server",
    "team", "line", "gate", "floor", "plot", "project", "phase", "unit", "house", "flat", "class",
    "car", "bus",
];
/// Verbs that end the subject of a sentence.
const VERBS: &[&str] = &[
    "is", "are", "was", "were", "went", "got", "has", "have", "had", "may", "can", "will", "costs",
    "runs", "takes", "stays", "keeps", "goes", "starts", "covers",
];
/// Of these, the possessives.
const OWNERS: &[&str] = &[
    "my",
    "our",
    "mein",
    "meine",
    "unser",
    "unsere",
    "mi",
    "mis",
    "nuestro",
    "nuestra",
    "mon",
    "ma",
    "mes",
    "notre",
    "nos",
    "meu",
    "minha",
    "nosso",
    "nossa",
    "mio",
    "mia",
    "nostro",
    "nostra",
    "मेरी",
    "मेरा",
];
/// Of these, the ones that are no subject.
const OBLIQUE: &[&str] = &["me", "us", "mir", "uns"];
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "never",
    "without",
    "nobody",
    "none",
    "nothing",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
    "don't",
    "doesn't",
    "didn't",
    "hasn't",
    "haven't",
    "can't",
    "cannot",
    "won't",
    "nicht",
    "kein",
    "keine",
    "nie",
    "ohne",
    "nunca",
    "sin",
    "ne",
    "jamais",
    "sans",
    "nao",
    "sem",
    "non",
    "senza",
    "नहीं",
    "لا",
];

impl Facts {
    pub(crate) fn of(text: &str, tables: &Changes) -> Self {
        let words = Words::of(text);
        let count = words.len().min(WORDS);
        let mut facts = Self {
            quantities: quantities(text, &words, count),
            question: words.end.has(Gap::QUESTION),
            ..Self::default()
        };
        let mut stopped = vec![false; count];
        for from in 0..count {
            for to in (from + 1)..=(from + PHRASE_WORDS).min(count) {
                let phrase = words.phrase(from, to);
                for cue in tables.cues.of(phrase) {
                    match cue {
                        Cue::Stop => stopped[from..to].fill(true),
                        cue => facts.cues |= 1 << (cue as u16),
                    }
                    if cue == Cue::Person {
                        facts.add_person(stem(phrase), from);
                    }
                }
                // "My husband's firm" is the husband's.
                if let Some(bare) = phrase.strip_suffix("'s")
                    && tables.cues.of(bare).any(|cue| cue == Cue::Person)
                {
                    facts.add_person(stem(bare), from);
                }
                facts.matters.extend(tables.matters.of(phrase));
            }
        }
        let solid: String = (0..count).map(|at| words.folded(at)).collect();
        for (phrase, cue) in &tables.cues.inside {
            if solid.contains(&**phrase) {
                facts.cues |= 1 << (*cue as u16);
                if *cue == Cue::Person {
                    // Four characters of Han, Kana or Hangul.
                    let opens = solid.find(&**phrase).is_some_and(|at| at <= 12);
                    facts.add_person(phrase.clone(), if opens { 0 } else { WORDS });
                }
            }
        }
        for (phrase, matter) in &tables.matters.inside {
            if solid.contains(&**phrase) {
                facts.matters.insert(*matter);
            }
        }
        // Any day after the first tells that a day is named.
        let at = Ambient {
            now_ms: 0,
            utc_offset_min: 0,
            entropy: [0; 32],
        };
        facts.planned = lifetime::stated_start(&words, &at).is_some();
        facts.read_words(text, &words, &stopped);
        facts
    }

    fn read_words(&mut self, text: &str, words: &Words, stopped: &[bool]) {
        let count = stopped.len();
        let mut subject = false;
        for at in 0..count {
            let word = words.folded(at);
            self.words.push(word.into());
            let single = word.chars().next().is_some_and(is_single) && word.chars().count() == 1;
            if single {
                if at + 1 < count
                    && words.word(at + 1).before.has(Gap::JOINED)
                    && words.folded(at + 1).chars().next().is_some_and(is_single)
                {
                    let pair = words.phrase(at, at + 2).replace(' ', "");
                    // Hiragana alone is grammar.
                    if !pair.chars().all(|c| ('\u{3040}'..='\u{309f}').contains(&c)) {
                        self.add(pair.into(), false, at);
                    }
                }
                continue;
            }
            let bare = word.strip_suffix("'s").unwrap_or(word);
            // "My sister" is not the owner.
            let of_person = at + 1 < count
                && OWNERS.contains(&word)
                && (at + 2..=(at + 4).min(count)).any(|to| {
                    self.persons.contains(&stem(words.phrase(at + 1, to)))
                        || self
                            .persons
                            .contains(&stem(words.phrase(at + 1, to).trim_end_matches("'s")))
                });
            if of_person {
                subject = true;
                self.persons_owned = true;
            } else if OWNER.contains(&word) {
                self.involves_owner = true;
                if !subject && !OBLIQUE.contains(&word) {
                    self.owner = true;
                }
                subject = true;
            }
            self.negated |= NEGATIONS.contains(&word) || word.ends_with("n't");
            let comma = at > 0
                && text
                    .get(words.range(at - 1, at).end..)
                    .is_some_and(|rest| rest.starts_with(','));
            self.commas = self.commas.saturating_add(u8::from(
                comma && !OWNER.contains(&word) && !word.starts_with(|c: char| c.is_ascii_digit()),
            ));
            let places = PREPOSITIONS.contains(&word);
            self.places = self.places.saturating_add(u8::from(places));
            if word == "and" || word == "y" || word == "und" || word == "et" || word == "e" {
                self.parts = self.parts.saturating_add(1);
            }
            if stopped[at] {
                continue;
            }
            let capital = text[words.range(at, at + 1)]
                .chars()
                .next()
                .is_some_and(char::is_uppercase);
            let first = words.word(at).before.has(Gap::SENTENCE);
            if !subject && !first && !capital {
                subject = at > 2;
            }
            self.add(stem(bare), capital && !first, at);
        }
        self.read_joined(words, count);
        self.starts_other = starts_other(words);
        self.read_subject(words, count);
        let digits = |at: usize| words.folded(at).bytes().all(|b| b.is_ascii_digit());
        // "..., ticket 4411": an aside of a word and a number says which one.
        let aside = |at: &usize| {
            let ends = |at: usize| at >= words.len() || !words.word(at).before.is_empty();
            words.word(at - 1).before.has(Gap::CLAUSE)
                && words.word(*at).before.is_empty()
                && ends(at + 1)
                && digits(*at)
                && words.folded(at - 1).chars().count() > 2
                && words.folded(at - 1).chars().all(char::is_alphabetic)
        };
        let aside = (1..count).find(aside).map(|at| words.folded(at).into());
        self.numbered = (1..count.min(OPENING_WORDS)).find_map(|at| {
            let word = words.folded(at);
            let before = words.folded(at - 1);
            // "Shelf 3", "the gate 14": a number right behind the first noun says which one.
            let article = matches!(words.folded(0), "the" | "our" | "my");
            let opens = at == 1 + usize::from(article)
                && before.chars().count() > 2
                && before.chars().all(char::is_alphabetic)
                && !VERBS.contains(&before);
            let noun = opens || KINDS.contains(&before);
            let measured = UNITS
                .iter()
                .any(|(names, _, _)| names.contains(&words.folded(at + 1)));
            (digits(at) && noun && !measured).then(|| word.into())
        });
        self.numbered = self.numbered.take().or(aside);
        if let Some(first) = self.stems.first().filter(|first| first.at == 0) {
            self.opening = Some(first.stem.clone());
        }
    }

    fn read_subject(&mut self, words: &Words, count: usize) {
        let stem_at = |at: usize| self.stems.iter().find(|s| s.at == at);
        let mut subject = Vec::new();
        if matches!(words.folded(0), "the" | "our" | "my" | "a" | "an" | "this") {
            let verb = (1..count.min(6)).find(|at| VERBS.contains(&words.folded(*at)));
            for stem in (1..verb.unwrap_or(1)).filter_map(stem_at) {
                subject.push(stem.stem.clone());
            }
        }
        let mut owned = Vec::new();
        for stem in &self.stems {
            let of = matches!(words.folded(stem.at + 1), "de" | "of" | "von" | "di" | "da");
            if of && let Some(owner) = stem_at(stem.at + 2).filter(|owner| owner.name) {
                owned.push((stem.stem.clone(), owner.stem.clone()));
            }
            if stem.at > 0
                && words.folded(stem.at - 1).ends_with("'s")
                && let Some(owner) = stem_at(stem.at - 1)
            {
                owned.push((stem.stem.clone(), owner.stem.clone()));
            }
        }
        self.subject = subject;
        self.owned = owned;
    }

    /// What "and" joins: the words on both of its sides, up to three before and five after.
    fn read_joined(&mut self, words: &Words, count: usize) {
        let place_of = |at: usize| self.stems.iter().position(|s| s.at == at);
        let mut joined = Vec::new();
        for at in 1..count {
            if !matches!(words.folded(at), "and" | "y" | "und" | "et" | "e")
                || OWNER.contains(&words.folded(at + 1))
            {
                continue;
            }
            // Back over items between commas; of the first only the words that touch.
            let mut items: Vec<Vec<usize>> = vec![Vec::new()];
            for w in (at.saturating_sub(LIST_WORDS)..at).rev() {
                let place = place_of(w);
                let comma = words.word(w).before.has(Gap::CLAUSE);
                let more = (at.saturating_sub(LIST_WORDS)..=w)
                    .any(|w| words.word(w).before.has(Gap::CLAUSE));
                if let (Some(item), Some(place)) = (items.last_mut(), place) {
                    item.push(place);
                } else if !more && items.last().is_some_and(|item| !item.is_empty()) {
                    break;
                }
                if comma {
                    items.push(Vec::new());
                }
            }
            let clause = |w: usize| words.word(w).before.has(Gap::SENTENCE);
            let end = (at + 1..(at + 8).min(count))
                .find(|w| clause(*w))
                .unwrap_or((at + 8).min(count));
            let right = (at + 1..end).filter_map(place_of).collect();
            items.push(right);
            items.retain(|item| !item.is_empty());
            joined.push(items);
        }
        let before = self
            .stems
            .iter()
            .map(|stem| {
                let at = stem.at.checked_sub(1)?;
                let touches = words.word(stem.at).before.is_empty();
                place_of(at).filter(|_| touches)
            })
            .collect();
        self.joined = joined;
        self.before = before;
    }

    fn add_person(&mut self, person: Box<str>, at: usize) {
        if at < OPENING_WORDS {
            self.opening_persons.insert(person.clone());
        }
        self.persons.insert(person);
    }

    fn add(&mut self, stem: Box<str>, name: bool, at: usize) {
        match self.stems.iter_mut().find(|known| known.stem == stem) {
            Some(known) => known.name |= name,
            None => self.stems.push(Stem { stem, name, at }),
        }
    }

    /// The owner has a part in it other than being told.
    fn involves_owner_beyond_telling(&self) -> bool {
        self.owner
    }

    /// Says that `earlier` is over or was never so, or gives another amount of it and says that it changed.
    pub(crate) fn overrules(&self, earlier: &Self) -> bool {
        let denies = [Cue::End, Cue::Correct, Cue::Solved]
            .iter()
            .any(|cue| self.has(*cue));
        let changes = self.planned || self.has(Cue::Change) || self.has(Cue::Now);
        let shares = self
            .stems
            .iter()
            .any(|s| earlier.stems.iter().any(|e| e.stem == s.stem));
        denies
            || self.negated != earlier.negated
            || (changes && shares && amounts(earlier, self) == Amounts::Differ)
    }

    fn has(&self, cue: Cue) -> bool {
        self.cues & (1 << (cue as u16)) != 0
    }
}

/// "Marek told me", "Rafa had", "Her boss": somebody who is not the owner is what it is about.
fn starts_other(words: &Words) -> bool {
    let (first, second) = (words.folded(0), words.folded(1));
    matches!(
        first,
        "her" | "his" | "their" | "ihr" | "ihre" | "sein" | "seine"
    ) || (matches!(
        second,
        "had" | "has" | "have" | "told" | "says" | "said" | "from" | "isn't" | "doesn't"
    ) && !matches!(
        first,
        "i" | "we"
            | "it"
            | "they"
            | "he"
            | "she"
            | "that"
            | "this"
            | "there"
            | "the"
            | "who"
            | "everyone"
            | "letter"
    ))
}

/// Han, Kana, Hangul: as in `words`.
fn is_single(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Cuts endings so that forms of one word mostly meet. Weak on purpose: two words that are made one could retire a fact.
fn stem(word: &str) -> Box<str> {
    let mut stem = word;
    // What has a digit has no endings: "w1x22" is not "w1x2".
    let numbered = word.bytes().any(|byte| byte.is_ascii_digit());
    if word.is_ascii() && word.len() > 4 && !numbered {
        for ending in [
            "ingly", "ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "er", "ly",
        ] {
            if let Some(cut) = word.strip_suffix(ending)
                && cut.len() >= 3
            {
                stem = cut;
                break;
            }
        }
        stem = stem.trim_end_matches(['e', 'i', 'y']);
        let bytes = stem.as_bytes();
        if let [.., a, b] = bytes
            && a == b
            && stem.len() > 4
        {
            stem = &stem[..stem.len() - 1];
        }
    }
    if stem.len() < 2 {
        word.into()
    } else {
        stem.into()
    }
}

/// Weights of the features, in thousandths.
#[derive(Clone, Debug, Default)]
struct Weights {
    of: Vec<i32>,
    retire: i64,
    doubt: i64,
}

/// How a statement relates to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are about different things, or both hold.
    Apart,
    /// The same fact in other words.
    Same,
    /// Another value of the same attribute.
    Replaces,
    /// The earlier one was never right.
    Corrects,
    /// The earlier one is over, and nothing takes its place.
    Ends,
    /// They may contradict each other; both are kept and marked.
    Conflicts,
    /// A part of the earlier one, or something of its kind: both hold, and belong together.
    Beside,
}

/// Why two statements conflict, where the later one says that something changed: it may have taken the earlier one's place.
pub const MAY_REPLACE: &str = "may take its place";

/// Why a statement replaces an earlier one that told of a trouble.
pub const SETTLES: &str = "what came of it";

/// A relation and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The relation.
    pub relation: Relation,
    /// A phrase for the history.
    pub why: &'static str,
    /// How sure, in thousandths; comparable between pairs.
    pub score: i64,
}

impl Changes {
    pub(crate) fn compare(
        &self,
        earlier: &Facts,
        later: &Facts,
        closeness: Option<i32>,
    ) -> Compared {
        let found = |relation, why, score| Compared {
            relation,
            why,
            score,
        };
        if self.is_same(earlier, later) {
            return found(Relation::Same, "the same in other words", 0);
        }
        let features = features(earlier, later, closeness);
        let score = self.weights.score(&features);
        if let Some(why) = held(earlier, later, closeness) {
            let beside = matches!(why, BESIDE | PART | TO_COME) && score >= self.weights.doubt;
            let relation = if beside {
                Relation::Beside
            } else {
                Relation::Apart
            };
            return found(relation, why, score);
        }
        // Without a word that says so, only a likeness beyond doubt replaces: "I ran 5 km", "I ran 8 km".
        let said = later.planned
            || ends_all(earlier, later)
            || (features[DIFFER] > 0 && features[SHARED] >= 2000)
            || [Cue::Change, Cue::Now, Cue::Return, Cue::Name]
                .iter()
                .any(|cue| later.has(*cue));
        let least = self
            .weights
            .retire
            .saturating_add(if said { 0 } else { UNSAID });
        if score >= least && !is_thin(earlier, later, closeness) {
            let (relation, why) = if later.has(Cue::Correct) {
                (Relation::Corrects, "a correction of it")
            } else if earlier.has(Cue::Trouble) && later.has(Cue::Solved) {
                (Relation::Replaces, SETTLES)
            } else if later.has(Cue::Return) {
                (Relation::Replaces, "back to what was before")
            } else if later.has(Cue::End)
                && !later.has(Cue::Change)
                && !later.has(Cue::Now)
                && later.quantities.is_empty()
            {
                (Relation::Ends, "it is over")
            } else {
                (Relation::Replaces, "another value of the same")
            };
            return found(relation, why, score);
        }
        if score >= self.weights.doubt {
            let why = if said {
                MAY_REPLACE
            } else {
                "may contradict it"
            };
            return found(Relation::Conflicts, why, score);
        }
        found(Relation::Apart, "about something else", score)
    }

    /// Equal but for function words. A number, a unit, a name or a negation that differs makes another fact.
    fn is_same(&self, earlier: &Facts, later: &Facts) -> bool {
        let stems = |facts: &Facts| -> Vec<Box<str>> {
            facts.stems.iter().map(|s| s.stem.clone()).collect()
        };
        // "Marie" and "Mari" have one stem.
        let names = |facts: &Facts| -> Vec<Box<str>> {
            let names = facts.stems.iter().filter(|stem| stem.name);
            names
                .filter_map(|name| facts.words.get(name.at).cloned())
                .collect()
        };
        earlier.stems.len() >= 2
            && earlier.negated == later.negated
            && earlier.question == later.question
            && earlier.owner == later.owner
            && earlier.persons == later.persons
            && earlier.quantities == later.quantities
            && earlier.cues == later.cues
            && earlier.matters == later.matters
            && stems(earlier) == stems(later)
            && names(earlier) == names(later)
    }

    pub(crate) fn read() -> (Self, Vec<LineError>) {
        let mut errors = Vec::new();
        let cue = |name: &str| CLASSES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
        let cues = Phrases::read(CUES.name, CUES.text(), cue, &mut errors);
        let mut names: Vec<String> = Vec::new();
        let matter = |name: &str| {
            let at = names
                .iter()
                .position(|known| known == name)
                .unwrap_or_else(|| {
                    names.push(name.to_owned());
                    names.len() - 1
                });
            u8::try_from(at).ok()
        };
        let matters = Phrases::read(MATTERS.name, MATTERS.text(), matter, &mut errors);
        let weights = Weights::read(WEIGHTS.name, WEIGHTS.text(), &mut errors);
        (
            Self {
                cues,
                matters,
                weights,
            },
            errors,
        )
    }

    pub(crate) fn features(
        &self,
        earlier: &Facts,
        later: &Facts,
        closeness: Option<i32>,
    ) -> Vec<i32> {
        features(earlier, later, closeness)
    }
}

/// Least score of a replacement and of a doubt, in thousandths.
const RETIRE: &str = "retire";
const DOUBT: &str = "doubt";

impl Weights {
    fn read(file: &'static str, text: &'static str, errors: &mut Vec<LineError>) -> Self {
        let mut weights = Self {
            of: vec![0; FEATURE_NAMES.len()],
            // Nothing is retired by a file that says nothing.
            retire: i64::MAX,
            doubt: i64::MAX,
        };
        errors.extend(each_line(file, text, &mut |line| {
            let parsed = line
                .split_once('\t')
                .and_then(|(name, number)| Some((name, number.trim().parse::<i32>().ok()?)));
            let place = parsed.and_then(|(name, weight)| {
                match name {
                    RETIRE => weights.retire = i64::from(weight),
                    DOUBT => weights.doubt = i64::from(weight),
                    name => {
                        let at = FEATURE_NAMES.iter().position(|n| *n == name)?;
                        *weights.of.get_mut(at)? = weight;
                    }
                }
                Some(())
            });
            place.ok_or("expected the name of a feature and a whole number, separated by a tab")
        }));
        weights
    }

    /// The sum of weighted features, in thousandths.
    fn score(&self, features: &[i32]) -> i64 {
        let sum: i64 = features
            .iter()
            .zip(&self.of)
            .map(|(feature, weight)| i64::from(*feature) * i64::from(*weight))
            .sum();
        sum / 1000
    }
}
