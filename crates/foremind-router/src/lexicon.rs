//! The lexicons: phrases with a class and a domain, read from the data files and looked up word by word.

use std::borrow::Cow;

use foremind_types::Domain;

use crate::data::each_line;
use crate::words::Words;
use foremind_types::data::File;
use foremind_types::data_file;

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+) => {
        /// What a phrase means to the router.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Class {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Class {
            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

classes! {
    /// Disease, allergy, procedure, pregnancy, disability: a fact of health.
    Medical = "medical",
    /// A way of eating or a religious rule, named as such ("vegan", "gluten free", "kosher").
    Dietary = "dietary",
    /// A medicine.
    Medication = "medication",
    /// Law, contracts, residence, licences, rules, money.
    Legal = "legal",
    /// Violence, control, hiding.
    Safety = "safety",
    /// Something must be or must not be.
    Obligation = "obligation",
    /// A lasting fact that changes some answers.
    Circumstance = "circumstance",
    /// How the owner wants to be answered.
    Instruction = "instruction",
    /// A phrase of another language that ties a fact to the teller by itself.
    Plain = "plain",
    /// Turns a verb or noun round.
    Negation = "negation",
    /// Verb of eating, drinking, using.
    Consume = "consume",
    /// Something eaten, drunk or used on the body.
    Food = "food",
    /// Something that one may be unable or forbidden to do.
    Ability = "ability",
    /// Something that one may have to do without.
    Restricted = "restricted",
    /// Somebody whose orders count: doctor, court, landlord.
    Authority = "authority",
    /// Verb of ordering.
    Directive = "directive",
    /// The owner as subject or possessor.
    Owner = "owner",
    /// A person in the owner's care.
    Dependant = "dependant",
    /// An animal.
    Pet = "pet",
    /// Shares the owner's household as a rule.
    Spouse = "spouse",
    /// Somebody else.
    Other = "other",
    /// A pronoun of the third person.
    Third = "third",
    /// The owner looks after somebody.
    Care = "care",
    /// Verb or preposition that ties a state to its subject.
    Bind = "bind",
    /// What follows is a topic, not a state of the subject.
    About = "about",
    /// Not said to be so.
    Hypothetical = "hypothetical",
    /// Was so and no longer is.
    Resolved = "resolved",
    /// Takes an earlier statement back.
    Retract = "retract",
    /// Story, role play.
    Fiction = "fiction",
    /// Somebody else's words, or words about words.
    Quote = "quote",
    /// A quotation that speaks about the owner.
    OwnQuote = "own-quote",
    /// Not meant.
    Sarcasm = "sarcasm",
    /// An event whose effects last.
    Lasting = "lasting",
    /// The danger is great.
    Severe = "severe",
    /// A fixed expression or homonym: nothing inside it counts.
    Idiom = "idiom",
    /// Asks for something.
    Request = "request",
    /// What the owner is going to do.
    Plan = "plan",
    /// Greeting, thanks, filler.
    Greeting = "greeting",
    /// Holds for hours.
    Now = "now",
    /// Tells of something that happened.
    Past = "past",
    /// Names a domain of questions.
    Topic = "topic",
}

impl Class {
    /// Whether a phrase of this class says nothing when it stands inside a fixed expression.
    pub(crate) fn yields_to_idiom(self) -> bool {
        self.is_signal()
            || matches!(
                self,
                Self::Negation | Self::Consume | Self::Food | Self::Ability | Self::Restricted
            )
    }

    /// Whether a phrase of this class is a signal by itself.
    pub(crate) fn is_signal(self) -> bool {
        matches!(
            self,
            Self::Medical
                | Self::Dietary
                | Self::Medication
                | Self::Legal
                | Self::Safety
                | Self::Obligation
                | Self::Circumstance
                | Self::Instruction
                | Self::Plain
        )
    }
}

/// One meaning of one phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) class: Class,
    pub(crate) domain: Domain,
}

/// A phrase that stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) meaning: Meaning,
    /// First word.
    pub(crate) from: usize,
    /// One past the last word.
    pub(crate) to: usize,
}

/// A line of a data file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(crate) file: &'static str,
    /// From 1.
    pub(crate) line: usize,
    pub(crate) problem: &'static str,
}

impl core::fmt::Display for LineError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// The data files, in reading order.
pub(crate) const FILES: [File; 11] = [
    data_file!("medical.tsv"),
    data_file!("diet.tsv"),
    data_file!("medications.tsv"),
    data_file!("legal.tsv"),
    data_file!("circumstances.tsv"),
    data_file!("rules.tsv"),
    data_file!("people.tsv"),
    data_file!("cues.tsv"),
    data_file!("idioms.tsv"),
    data_file!("topics.tsv"),
    data_file!("languages.tsv"),
];

/// A folded phrase and one meaning of it.
#[derive(Debug)]
struct Entry {
    /// The first eight bytes as a number that sorts as they do: most comparisons end here.
    key: u64,
    phrase: Cow<'static, str>,
    meaning: Meaning,
}

impl Entry {
    fn new(phrase: Cow<'static, str>, meaning: Meaning) -> Self {
        Self {
            key: key(&phrase),
            phrase,
            meaning,
        }
    }
}

/// See [`Entry::key`]; short phrases are filled up with zero bytes, which sort first.
fn key(phrase: &str) -> u64 {
    let bytes = phrase.bytes().chain(core::iter::repeat(0));
    bytes
        .take(8)
        .fold(0, |key, byte| key << 8 | u64::from(byte))
}

/// All phrases, sorted, so that a text is looked up by binary search.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// Folded phrase and meaning; sorted by phrase, then class.
    entries: Vec<Entry>,
}

impl Lexicon {
    /// Reads data files; lines that cannot be read are left out and returned.
    pub(crate) fn read(
        files: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> (Self, Vec<LineError>) {
        let mut entries = Vec::with_capacity(8192);
        let mut errors = Vec::new();
        for (file, text) in files {
            errors.extend(each_line(file, text, &mut |line| {
                read_line(line, &mut entries)
            }));
        }
        entries.sort_unstable_by(|a, b| {
            let phrases = || a.phrase.cmp(&b.phrase);
            let order = a.key.cmp(&b.key).then_with(phrases);
            order.then_with(|| a.meaning.class.cmp(&b.meaning.class))
        });
        entries.dedup_by(|a, b| a.phrase == b.phrase && a.meaning.class == b.meaning.class);
        (Self { entries }, errors)
    }

    /// Where the phrase stands or would stand.
    fn place(&self, phrase: &str) -> usize {
        let key = key(phrase);
        self.entries
            .partition_point(|e| e.key < key || (e.key == key && *e.phrase < *phrase))
    }

    /// Every phrase of the lexicon in the text: for each place and class the longest, in order of place.
    /// With it comes the number of phrases looked up, the measure of the work.
    pub(crate) fn find(&self, words: &Words) -> (Vec<Hit>, usize) {
        let mut hits: Vec<Hit> = Vec::new();
        let mut lookups = 0;
        for from in 0..words.len() {
            let first = hits.len();
            let mut to = from + 1;
            while to <= words.len() {
                let phrase = words.phrase(from, to);
                lookups += 1;
                let at = self.place(phrase);
                for stem in stems(phrase) {
                    let at = if stem.len() == phrase.len() {
                        at
                    } else {
                        self.place(stem)
                    };
                    let same = self.entries[at..].iter().take_while(|e| e.phrase == stem);
                    let mut any = false;
                    for Entry { meaning, .. } in same {
                        any = true;
                        let hit = Hit {
                            meaning: *meaning,
                            from,
                            to,
                        };
                        match hits[first..]
                            .iter_mut()
                            .find(|h| h.meaning.class == meaning.class)
                        {
                            Some(shorter) => *shorter = hit,
                            None => hits.push(hit),
                        }
                    }
                    if any {
                        break;
                    }
                }
                // A longer phrase can only begin with this one and a space.
                let longer = self.entries[at..]
                    .iter()
                    .find(|e| e.phrase != phrase)
                    .is_some_and(|e| {
                        e.phrase
                            .strip_prefix(phrase)
                            .is_some_and(|rest| rest.starts_with(' '))
                    });
                if !longer {
                    break;
                }
                to += 1;
            }
        }
        (hits, lookups)
    }
}

/// The phrase itself and without plural or possessive ending.
fn stems(phrase: &str) -> impl Iterator<Item = &str> {
    // Neither ending without an `s`; the common case is cheap.
    let phrase_s = phrase.ends_with('s').then_some(phrase);
    let possessive = phrase_s.and_then(|p| p.strip_suffix("'s"));
    let plural = phrase
        .strip_suffix('s')
        .filter(|rest| rest.len() > 3 && !rest.ends_with(['s', '\'', 'u', 'i']));
    let plural_es = phrase.strip_suffix("es").filter(|rest| rest.len() > 3);
    [Some(phrase), possessive, plural, plural_es]
        .into_iter()
        .flatten()
}

/// A line is `class <tab> domain <tab> phrase, phrase, ...`.
fn read_line(line: &'static str, entries: &mut Vec<Entry>) -> Result<(), &'static str> {
    let mut fields = line.split('\t');
    let (Some(class), Some(domain), Some(phrases), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err("expected three fields, separated by tabs");
    };
    let class = Class::parse(class).ok_or("unknown class")?;
    let domain = Domain::parse(domain).ok_or("unknown domain")?;
    for phrase in phrases.split(',').map(str::trim) {
        // Most phrases stand in the file as they are compared.
        let plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b' ' | b'\'');
        let bytes = phrase.as_bytes();
        let odd = phrase.starts_with('\'')
            || phrase.ends_with('\'')
            || bytes.windows(2).any(|pair| matches!(pair, b"  " | b"' "));
        if !phrase.is_empty() && phrase.bytes().all(plain) && !odd {
            entries.push(Entry::new(Cow::Borrowed(phrase), Meaning { class, domain }));
            continue;
        }
        let words = Words::of(phrase);
        if words.len() == 0 {
            return Err("empty phrase");
        }
        let folded = words.phrase(0, words.len());
        entries.push(Entry::new(
            Cow::Owned(folded.to_owned()),
            Meaning { class, domain },
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_files_can_be_read() {
        let (_, errors) = Lexicon::read(FILES.map(|file| (file.name, file.text())));
        let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{shown:#?}");
    }

    #[test]
    fn work_grows_with_the_text_and_no_faster() {
        let (lexicon, _) = Lexicon::read(FILES.map(|file| (file.name, file.text())));
        // Words that begin many long phrases, so that lookups go as deep as they can.
        let text =
            "if i ever take care of the long distance relationship i was given the all clear ";
        let lookups = |times: usize| lexicon.find(&Words::of(&text.repeat(times))).1;
        let (small, large) = (lookups(10), lookups(640));
        // A tenth more for phrases that run across the seams.
        assert!(large * 10 <= small * 64 * 11, "{small} {large}");
        assert!(small <= 10 * 17 * 6, "{small}");
    }

    #[test]
    fn phrases_are_kept_as_texts_are_folded() {
        let (lexicon, _) = Lexicon::read(FILES.map(|file| (file.name, file.text())));
        for Entry { phrase, .. } in &lexicon.entries {
            let words = Words::of(phrase);
            assert_eq!(words.phrase(0, words.len()), &**phrase);
        }
        assert!(lexicon.entries.len() > 4000);
    }

    #[test]
    fn an_error_names_file_and_line() {
        let (_, errors) = Lexicon::read([(
            "x.tsv",
            "# fine\nmedical\tallergy\tasthma\nmedcal\tallergy\tx\n",
        )]);
        assert_eq!(errors[0].to_string(), "x.tsv:3: unknown class");
        assert_eq!(errors.len(), 1);
    }
}
