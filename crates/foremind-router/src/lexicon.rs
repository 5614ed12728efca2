//! The lexicons: phrases with a class and a domain, looked up word by word.

use foremind_types::Domain;
use foremind_types::data::File;
use foremind_types::order::sort_by_key;

use crate::data::table_file;
use crate::table::Table;
use crate::words::Words;

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

/// The table.
pub(crate) const FILE: File = table_file!("lexicon.tsv");

/// All phrases.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    meanings: Vec<Option<Meaning>>,
    phrases: Table,
}

impl Lexicon {
    /// Over a table of `compile`; a meaning that it does not know counts for nothing.
    pub(crate) fn of(text: &'static str) -> Self {
        let (meanings, phrases) = text.split_once('\n').unwrap_or_default();
        let meaning = |text: &str| {
            let (class, domain) = text.split_once(' ')?;
            Some(Meaning {
                class: Class::parse(class)?,
                domain: Domain::parse(domain)?,
            })
        };
        Self {
            meanings: meanings.split(',').map(meaning).collect(),
            phrases: Table::of(phrases, 0),
        }
    }

    /// The meanings of a phrase, by class; from the line where it stands.
    fn meanings(&self, at: usize, phrase: &str) -> Vec<Meaning> {
        let numbers = self.phrases.same(at, phrase);
        let mut found: Vec<Meaning> = numbers
            .filter_map(|number| self.meanings.get(usize::from(number)).copied().flatten())
            .collect();
        sort_by_key(&mut found, |meaning| meaning.class);
        found
    }

    /// Whether a phrase is this word or begins with it.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.phrases.knows(word)
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
                let at = self.phrases.place(phrase);
                for stem in stems(phrase) {
                    let at = if stem.len() == phrase.len() {
                        at
                    } else {
                        self.phrases.place(stem)
                    };
                    let meanings = self.meanings(at, stem);
                    for meaning in &meanings {
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
                    if !meanings.is_empty() {
                        break;
                    }
                }
                // A longer phrase can only begin with this one and a space.
                if !self
                    .phrases
                    .is_begun(at, phrase, |rest| rest.starts_with(' '))
                {
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

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon {
        Lexicon::of(FILE.text())
    }

    #[test]
    fn every_meaning_is_one_that_the_router_knows() {
        let names: Vec<&str> = FILE.text().lines().next().unwrap().split(',').collect();
        let lexicon = lexicon();
        for (name, meaning) in names.iter().zip(&lexicon.meanings) {
            assert!(meaning.is_some(), "{name}");
        }
        assert!(lexicon.phrases.len() > 4000);
    }

    #[test]
    fn work_grows_with_the_text_and_no_faster() {
        let lexicon = lexicon();
        // Words that begin many long phrases, so that lookups go as deep as they can.
        let text =
            "if i ever take care of the long distance relationship i was given the all clear ";
        let lookups = |times: usize| lexicon.find(&Words::of(&text.repeat(times))).1;
        let (small, large) = (lookups(10), lookups(640));
        // A tenth more for phrases that run across the seams.
        assert!(large * 10 <= small * 64 * 11, "{small} {large}");
        assert!(small <= 10 * 17 * 6, "{small}");
    }
}
