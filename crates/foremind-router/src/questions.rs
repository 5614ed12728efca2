//! What a question asks about: the cues of `questions.tsv`.

use foremind_types::small::SmallMap;

use foremind_types::Domain;

use crate::data::each_line;
use crate::lexicon::LineError;
use crate::phrases::Phrases;
use crate::words::Words;
use foremind_types::data::File;
use foremind_types::data_file;

/// The data file.
pub(crate) const FILE: File = data_file!("questions.tsv");

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
    by_name: SmallMap<&'static str, u16>,
    phrases: Phrases,
}

impl Cues {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(file: &'static str, text: &'static str) -> (Self, Vec<LineError>) {
        let mut cues = Self::default();
        let errors = each_line(file, text, &mut |line| cues.row(line));
        cues.phrases.sort();
        (cues, errors)
    }

    fn row(&mut self, line: &'static str) -> Result<(), &'static str> {
        let mut fields = line.split('\t').map(str::trim);
        let (Some(name), Some(domain), Some(phrases), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err("expected three fields, separated by tabs");
        };
        let domain = Domain::parse(domain).ok_or("unknown domain")?;
        if name.is_empty() || self.named(name).is_some() {
            return Err("a cue without a name, or named twice");
        }
        if self.cues.len() >= CUES {
            return Err("too many cues");
        }
        let id = self.cues.len() as u16;
        for phrase in phrases.split(',').map(str::trim) {
            self.phrases.add(phrase, id)?;
        }
        self.by_name.insert(name, id);
        self.cues.push(Cue { name, domain });
        Ok(())
    }

    /// The number of a cue.
    pub(crate) fn named(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }

    /// The cues of a question, and the word at which each first stands.
    pub(crate) fn of(&self, words: &Words) -> (CueSet, Vec<(u16, usize, usize)>) {
        let mut set = CueSet::default();
        let mut places: Vec<(u16, usize, usize)> = Vec::new();
        self.phrases.find(words, |place| {
            let one = CueSet::of(place.id);
            if !set.meets(&one) {
                set.insert(place.id);
                places.push((place.id, place.from, place.to));
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
        let (cues, errors) = Cues::read(FILE.name, FILE.text());
        assert!(errors.is_empty(), "{}", errors[0]);
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
    fn an_error_names_file_and_line() {
        let (_, errors) = Cues::read("q.tsv", "a\tfood\tx\na\tfood\ty\nb\tfod\tz");
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "q.tsv:2: a cue without a name, or named twice",
                "q.tsv:3: unknown domain"
            ]
        );
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
