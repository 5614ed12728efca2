//! Decides when a statement is written whether it modifies answers or informs them.
//!
//! This is the lexical stage. Its parts, in the order of a statement's way through them:
//! - `statements` splits a turn;
//! - `words`, `lexicon`, `reading`: the statement as words, phrases of the data files and sentences;
//! - `signals`: what speaks for the profile, with weights;
//! - `traps`: what holds a signal back or makes it doubtful;
//! - `verdict` adds up; `consequences`, `lifetime` and `attributes` say what follows.
//!
//! A later stage takes over what this one leaves [`foremind_types::Judgement::Unrouted`].

mod attributes;
mod consequences;
mod lexicon;
mod lifetime;
mod reading;
mod signals;
mod statements;
mod traps;
mod verdict;
mod words;

use std::sync::Arc;

use foremind_guard::Guarded;
use foremind_types::{Ambient, Domain, Route, Subject};

use attributes::Attributes;
use consequences::Consequences;
use lexicon::{Class, FILES, Lexicon};
use reading::Reading;

/// The lexical stage: compiled lexicons. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Router {
    tables: Arc<Tables>,
}

#[derive(Debug)]
struct Tables {
    lexicon: Lexicon,
    consequences: Consequences,
    attributes: Attributes,
}

/// What becomes of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// A record: it states a fact.
    Record,
    /// An episode: something that happened, no lasting fact.
    Episode,
    /// Nothing: a question, a greeting, a request that states no fact.
    Nothing,
}

/// The verdict on one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// Whether it makes a record.
    pub keep: Keep,
    /// Grade, tier, domain, time to live and reasons.
    pub route: Route,
    /// Whom it is about.
    pub subject: Subject,
    /// The single-valued attribute that it states ("home"), as in `data/attributes.tsv`.
    pub attribute: Option<String>,
    /// The value of the attribute, as it stands in the statement.
    pub value: Option<String>,
}

/// What a whole turn says about each statement in it: told once, asked for each statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The turn asks for a story, a role play, a translation or work on somebody else's words, so that
    /// "I" in it need not be the owner.
    pub foreign_words: bool,
}

impl Default for Router {
    fn default() -> Self {
        Self::new()
    }
}

impl Router {
    /// Reads the embedded data files.
    #[must_use]
    pub fn new() -> Self {
        // The data files are part of the crate, and a test refuses any line that cannot be read.
        let (lexicon, _) = Lexicon::read(FILES);
        let (consequences, _) = Consequences::read(consequences::FILE.0, consequences::FILE.1);
        let (attributes, _) = Attributes::read(attributes::FILE.0, attributes::FILE.1);
        Self {
            tables: Arc::new(Tables {
                lexicon,
                consequences,
                attributes,
            }),
        }
    }

    /// Splits a turn into statements: slices of it, in order, never empty, at most
    /// [`foremind_types::limits::STATEMENTS_PER_TURN`].
    #[must_use]
    pub fn statements<'t>(&self, turn: &'t str) -> Vec<&'t str> {
        statements::split(turn)
    }

    /// Reads what the turn as a whole says about its statements.
    #[must_use]
    pub fn frame(&self, turn: &str) -> Frame {
        let reading = Reading::of(turn, &self.tables.lexicon);
        Frame {
            foreign_words: verdict::foreign_words(&reading),
        }
    }

    /// Judges one statement that stands alone. Pure: the same statement at the same time gives the same
    /// verdict.
    #[must_use]
    pub fn route(&self, text: &Guarded, at: &Ambient) -> Routing {
        self.route_in(text, Frame::default(), at)
    }

    /// Judges one statement of a turn whose [`Frame`] is known.
    #[must_use]
    pub fn route_in(&self, text: &Guarded, frame: Frame, at: &Ambient) -> Routing {
        let reading = Reading::of(text.as_str(), &self.tables.lexicon);
        verdict::of(&reading, frame, at, &self.tables)
    }

    /// Domains that a query asks about, strongest first; empty when no word tells.
    #[must_use]
    pub fn query_domains(&self, query: &str) -> Vec<Domain> {
        let reading = Reading::of(query, &self.tables.lexicon);
        let mut counted: Vec<(Domain, u32)> = Vec::new();
        for hit in &reading.hits {
            let weight = match hit.meaning.class {
                Class::Topic | Class::Medication | Class::Medical | Class::Dietary => 2,
                Class::Legal | Class::Safety | Class::Pet | Class::Food => 2,
                Class::Dependant | Class::Spouse | Class::Ability | Class::Restricted => 1,
                _ => continue,
            };
            let domain = hit.meaning.domain;
            if domain == Domain::General {
                continue;
            }
            match counted.iter_mut().find(|(d, _)| *d == domain) {
                Some((_, count)) => *count += weight,
                None => counted.push((domain, weight)),
            }
        }
        // Stable: domains named equally often stay in the order of the query.
        counted.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        counted.into_iter().map(|(domain, _)| domain).collect()
    }
}
