//! What a question asks about: the cues of `questions.tsv`.

use foremind_types::Domain;
use foremind_types::data::File;

use crate::compile::number;
use crate::data::table_file;
use crate::phrases::Phrases;
use crate::words::Words;

/// The table.
pub(crate) const FILE: File = table_file!("questions.tsv");

/// Most cues of the data file.
const CUES: usize = 512;
const LIMBS: usize = CUES / 64;

/// A set of cues, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CueSet([u64; LIMBS]);

impl CueSet {
    pub(crate) fn insert(&mut self, cue: u16) {
        if let Some(limb) = self.0.get_mut(usize::from(cue / 64)) {
            *limb |= 1 << (cue % 64);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|limb| *limb == 0)
    }

    /// Its cues in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let limbs = self.0;
        (0..CUES as u16).filter(move |cue| limbs[usize::from(cue / 64)] & (1 << (cue % 64)) != 0)
    }

    /// The cues of both, in order.
    pub(crate) fn both(&self, other: &Self) -> impl Iterator<Item = u16> + use<> {
        let mut both = *self;
        for (limb, other) in both.0.iter_mut().zip(&other.0) {
            *limb &= other;
        }
        both.iter()
    }

    /// Whether the sets have a cue in common; cheap.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// One cue.
#[derive(Debug)]
pub(crate) struct Cue {
    pub(crate) name: &'static str,
    pub(crate) domain: Domain,
}

/// The lexicon of questions.
#[derive(Debug, Default)]
pub(crate) struct Cues {
    pub(crate) cues: Vec<Cue>,
    phrases: Phrases,
    /// The cue of each phrase, by its place.
    of_phrases: Vec<u16>,
}

impl Cues {
    /// Over a table of `compile`.
    pub(crate) fn of_table(text: &'static str) -> Self {
        let (cues, phrases) = text.split_once('\n').unwrap_or_default();
        let cue = |entry: &'static str| {
            let (name, domain) = entry.split_once(' ').unwrap_or((entry, ""));
            Cue {
                name,
                domain: Domain::parse(domain).unwrap_or(Domain::General),
            }
        };
        let (phrases, of_phrases) = Phrases::of(phrases, 0);
        let of_phrases = of_phrases.trim_end().chars();
        Self {
            cues: cues.split(',').map(cue).collect(),
            phrases,
            of_phrases: of_phrases.map(|cue| number(cue) as u16).collect(),
        }
    }

    /// Whether a phrase is this word or begins with it.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.phrases.knows(word)
    }

    /// The cues of a question, and the word at which each first stands.
    pub(crate) fn of(&self, words: &Words) -> (CueSet, Vec<(u16, usize, usize)>) {
        let mut set = CueSet::default();
        let mut places: Vec<(u16, usize, usize)> = Vec::new();
        self.phrases.find(words, |place| {
            let Some(cue) = self.of_phrases.get(usize::from(place.id)) else {
                return;
            };
            if !set.meets(&CueSet::of(*cue)) {
                set.insert(*cue);
                places.push((*cue, place.from, place.to));
            }
        });
        (set, places)
    }
}

impl CueSet {
    fn of(cue: u16) -> Self {
        let mut set = Self::default();
        set.insert(cue);
        set
    }
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        let cues = Cues::of_table(FILE.text());
        let (_, places) = cues.of(&Words::of(text));
        places
            .into_iter()
            .map(|(cue, ..)| cues.cues[usize::from(cue)].name)
            .collect()
    }

    #[test]
    fn a_dish_is_what_it_is_made_of() {
        let macarons = names("Any good macaron recipes?");
        for cue in ["tree-nuts", "egg", "cooking"] {
            assert!(macarons.contains(&cue), "{macarons:?}");
        }
        assert!(!macarons.contains(&"fish"), "{macarons:?}");
        assert!(names("マカロンの作り方は？").contains(&"tree-nuts"));
    }

    #[test]
    fn an_activity_is_what_it_demands() {
        assert!(names("Can I clean the counter with vinegar?").contains(&"acids"));
        assert!(names("Where can I learn to scuba dive?").contains(&"diving"));
        assert!(names("🎉").is_empty());
    }

    #[test]
    fn every_domain_is_one_that_the_router_knows() {
        let names = FILE.text().lines().next().unwrap().split(',');
        let cues: Vec<&str> = names.collect();
        assert!((300..=CUES).contains(&cues.len()), "{}", cues.len());
        for cue in cues {
            let (_, domain) = cue.split_once(' ').unwrap();
            assert!(Domain::parse(domain).is_some(), "{cue}");
        }
    }

    #[test]
    fn sets_meet_where_they_have_a_cue_in_common() {
        let (mut a, mut b) = (CueSet::default(), CueSet::default());
        assert!(a.is_empty() && !a.meets(&b));
        for cue in [0, 63, 64, 511] {
            a.insert(cue);
        }
        b.insert(64);
        b.insert(2);
        assert!(a.meets(&b));
        assert_eq!(a.both(&b).collect::<Vec<_>>(), [64]);
        // Beyond the table there is nothing.
        b.insert(600);
        assert_eq!(a.both(&b).count(), 1);
    }
}
