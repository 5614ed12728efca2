//! Decides when a statement is written whether it modifies answers or informs them.
//!
//! The parts of the lexical stage, in the order of a statement's way through them:
//! - `statements` splits a turn;
//! - `words`, `lexicon`, `reading`: the statement as words, phrases of the data files and sentences; `compile` makes the tables
//!   that `table` and `phrases` look them up in, when the crate is built;
//! - `signals`: what speaks for the profile, with weights;
//! - `traps`: what holds a signal back or makes it doubtful;
//! - `verdict` adds up; `consequences`, `kinds`, `lifetime` and `attributes` say what follows.
//!
//! `questions` reads a question, and `join` says which facts bear on it.
//!
//! What it leaves [`foremind_types::Judgement::Unrouted`] goes to the semantic stage ([`Router::judge_features`]): the
//! outputs of a trained head, made by the embedder or by [`NgramHead`], and what `semantic` concludes from them.

mod attributes;
mod changes;
#[allow(dead_code, reason = "the build script uses the rest")]
mod compile;
mod consequences;
mod data;
mod identifiers;
mod join;
mod kinds;
mod language;
mod lexicon;
mod lifetime;
mod ngrams;
mod phrases;
mod questions;
mod reading;
mod semantic;
mod signals;
mod spans;
mod statements;
mod table;
mod traps;
mod triggers;
mod verdict;
mod words;

use core::fmt;
use std::sync::{Arc, OnceLock};

use foremind_guard::Guarded;
use foremind_types::order::sort_by_key;
use foremind_types::{Ambient, Domain, HeadId, Judgement, Route, Severity, Stage, Subject};

pub use changes::{Compared, FEATURE_NAMES, Facts, MAY_REPLACE, Relation, SETTLES};
pub use data::{MissingFile, has_data, install_data};
pub use identifiers::{IdentifierKind, avoided, identifiers};
pub use join::{Bearing, Query};
pub use kinds::REASON as KIND_REASON;
pub use ngrams::{NGRAM_HEAD, NgramHead};

/// The head on the encoder that this router is calibrated for.
pub const ROUTE_HEAD: &str = "route/1";

pub use semantic::{FEATURES, HeadError};

use attributes::Attributes;
use changes::Changes;
use consequences::Consequences;
use kinds::Kinds;
use language::FunctionWords;
use lexicon::{Class, Lexicon};
use questions::Cues;
use reading::Reading;
use semantic::Heads;
use triggers::Triggers;
use words::Words;

/// Lexicons and calibrations. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Router {
    tables: &'static Tables,
    ngrams: Option<Arc<NgramHead>>,
    /// There is a head on the encoder.
    encoder_head: bool,
}

/// The data files, each read when it is first needed, once for the process: opening a memory needs none, and a question few.
#[derive(Default)]
struct Tables {
    lexicon: OnceLock<Lexicon>,
    consequences: OnceLock<Consequences>,
    attributes: OnceLock<Attributes>,
    changes: OnceLock<Changes>,
    heads: OnceLock<Heads>,
    cues: OnceLock<Cues>,
    kinds: OnceLock<Kinds>,
    triggers: OnceLock<Triggers>,
    function_words: OnceLock<FunctionWords>,
}

impl fmt::Debug for Tables {
    /// Without their content: nobody reads a thousand lines, and what they name is not what anybody told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

// The files are part of the crate, and a test refuses any line that cannot be read: errors are left out here.
impl Tables {
    fn shared() -> &'static Self {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(Self::default)
    }

    fn lexicon(&self) -> &Lexicon {
        self.lexicon
            .get_or_init(|| Lexicon::of(lexicon::FILE.text()))
    }

    fn consequences(&self) -> &Consequences {
        let file = consequences::FILE;
        self.consequences
            .get_or_init(|| Consequences::read(file.name, file.text()).0)
    }

    fn attributes(&self) -> &Attributes {
        let file = attributes::FILE;
        self.attributes
            .get_or_init(|| Attributes::read(file.name, file.text()).0)
    }

    fn changes(&self) -> &Changes {
        self.changes.get_or_init(|| Changes::read().0)
    }

    fn heads(&self) -> &Heads {
        let file = semantic::FILE;
        self.heads
            .get_or_init(|| Heads::read(file.name, file.text()).0)
    }

    fn cues(&self) -> &Cues {
        self.cues
            .get_or_init(|| Cues::of_table(questions::FILE.text()))
    }

    fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::of(kinds::FILE.text()))
    }

    fn triggers(&self) -> &Triggers {
        self.triggers
            .get_or_init(|| Triggers::of_table(triggers::FILE.text()))
    }

    fn function_words(&self) -> &FunctionWords {
        let file = language::FILE;
        self.function_words
            .get_or_init(|| FunctionWords::read(file.name, file.text()).0)
    }
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
    /// From when it holds, when that is to come: "from 15 March". Unix milliseconds.
    pub valid_from_ms: Option<i64>,
}

/// What a whole turn says about each statement in it: told once, asked for each statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The turn asks for a story, a role play, a translation or work on somebody else's words, so that
    /// "I" in it need not be the owner.
    pub foreign_words: bool,
    /// The turn is longer than what somebody tells: most of it is pasted.
    pub long: bool,
}

impl Default for Router {
    fn default() -> Self {
        Self::new()
    }
}

/// Most characters of a statement that the n-gram head is asked about, and of a turn; what is longer is pasted, rather than
/// told.
const NGRAM_CHARS: usize = 300;
const TOLD_CHARS: usize = 1_500;

fn is_longer(text: &str, chars: usize) -> bool {
    text.chars().nth(chars).is_some()
}

impl Router {
    /// A router that reads its data files when it first needs them.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tables: Tables::shared(),
            ngrams: None,
            encoder_head: false,
        }
    }

    /// Gives what the lexical stage leaves unrouted in other languages than English to an n-gram head at once, without an
    /// embedder. In English it would show 6 % of ordinary talk for its recall of 0.6.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] when `data/heads.tsv` has no line for it.
    pub fn with_ngrams(self, head: NgramHead) -> Result<Self, HeadError> {
        let id = HeadId(NGRAM_HEAD.to_owned());
        if !self.tables.heads().knows(&id) {
            return Err(HeadError::UnknownHead { found: id });
        }
        Ok(Self {
            ngrams: Some(Arc::new(head)),
            ..self
        })
    }

    /// Says which head on the encoder judges English statements that words leave open or in doubt; `None`: words alone do.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] when `data/heads.tsv` has no line for it.
    pub fn with_encoder_head(self, head: Option<&HeadId>) -> Result<Self, HeadError> {
        if let Some(unknown) = head.filter(|head| !self.tables.heads().knows(head)) {
            return Err(HeadError::UnknownHead {
                found: unknown.clone(),
            });
        }
        Ok(Self {
            encoder_head: head.is_some(),
            ..self
        })
    }

    /// Whether a head on the encoder has a say on this verdict: it is that of the words, what could endanger is not what they
    /// are sure of, and the statement is English, which is what those heads were trained on.
    #[must_use]
    pub fn asks_encoder(&self, text: &str, routing: &Routing) -> bool {
        let route = &routing.route;
        let stays = route.judgement == Judgement::Settled && route.severity == Severity::Severe;
        self.encoder_head
            && !stays
            && route.stage == Stage::Lexical
            && self.tables.function_words().is_english(text)
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
        let reading = Reading::of(turn, self.tables.lexicon());
        Frame {
            foreign_words: verdict::foreign_words(&reading),
            long: is_longer(turn, TOLD_CHARS),
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
        let reading = Reading::of(text.as_str(), self.tables.lexicon());
        let lexical = verdict::of(&reading, frame, at, self.tables);
        let Some(ngrams) = self
            .ngrams
            .as_ref()
            .filter(|_| !frame.foreign_words && !frame.long)
        else {
            return lexical;
        };
        if is_longer(text.as_str(), NGRAM_CHARS)
            || self.tables.function_words().is_english(text.as_str())
        {
            return lexical;
        }
        let features = ngrams.features(text.as_str());
        let id = HeadId(NGRAM_HEAD.to_owned());
        // Neither a foreign head nor broken numbers can come from a head that was taken in.
        self.judge_features(lexical.clone(), &id, &features, at)
            .unwrap_or(lexical)
    }

    /// The semantic stage: judges what the lexical stage says of a statement by the outputs of a trained head. Another stage's
    /// routing comes back as it is. Pure, and the same bits on every host.
    ///
    /// # Errors
    /// [`HeadError::UnknownHead`] for a head without a line in `data/heads.tsv`, [`HeadError::BadFeatures`] unless there are
    /// [`FEATURES`] finite numbers.
    pub fn judge_features(
        &self,
        lexical: Routing,
        head: &HeadId,
        features: &[f32],
        at: &Ambient,
    ) -> Result<Routing, HeadError> {
        let (heads, consequences) = (self.tables.heads(), self.tables.consequences());
        semantic::judge(lexical, head, features, at, heads, consequences)
    }

    /// Reads what a statement says, for comparison with others.
    #[must_use]
    pub fn facts(&self, text: &str) -> Facts {
        Facts::of(text, self.tables.changes())
    }

    /// How `later` relates to `earlier`. `closeness` is the cosine of the two statements in thousandths, where both have a
    /// vector; it never decides alone. Pure.
    #[must_use]
    pub fn compare(&self, earlier: &Facts, later: &Facts, closeness: Option<i32>) -> Compared {
        self.tables.changes().compare(earlier, later, closeness)
    }

    /// Whether `later` says that `earlier` is over or was never so, or that its amount changed: what may retire a fact that
    /// endangers.
    #[must_use]
    pub fn overrules(&self, earlier: &Facts, later: &Facts) -> bool {
        later.overrules(earlier)
    }

    /// What the weights of `data/replaces.tsv` are fitted to, in thousandths; named by [`FEATURE_NAMES`]. `closeness` is the
    /// cosine of the two statements in thousandths, where both have a vector.
    #[must_use]
    pub fn pair_features(
        &self,
        earlier: &Facts,
        later: &Facts,
        closeness: Option<i32>,
    ) -> Vec<i32> {
        self.tables.changes().features(earlier, later, closeness)
    }

    /// What a query asks about.
    #[must_use]
    pub fn query(&self, query: &str) -> Query {
        let reading = Reading::of(query, self.tables.lexicon());
        let mut counted: Vec<(Domain, u32)> = Vec::new();
        let mut count = |domain: Domain, weight: u32| {
            if domain == Domain::General {
                return;
            }
            match counted.iter_mut().find(|(d, _)| *d == domain) {
                Some((_, count)) => *count += weight,
                None => counted.push((domain, weight)),
            }
        };
        for hit in &reading.hits {
            let weight = match hit.meaning.class {
                Class::Topic | Class::Medication | Class::Medical | Class::Dietary => 2,
                Class::Legal | Class::Safety | Class::Pet | Class::Food => 2,
                Class::Dependant | Class::Spouse | Class::Ability | Class::Restricted => 1,
                _ => continue,
            };
            count(hit.meaning.domain, weight);
        }
        let (cues, places) = self.tables.cues().of(&reading.words);
        let mut words = Vec::with_capacity(places.len());
        for (cue, from, to) in places {
            if let Some(entry) = self.tables.cues().cues.get(usize::from(cue)) {
                count(entry.domain, 1);
            }
            words.push((cue, reading.shown(from, to).to_owned()));
        }
        // Stable: domains named equally often stay in the order of the query.
        sort_by_key(&mut counted, |(_, count)| core::cmp::Reverse(*count));
        let domains = counted.into_iter().map(|(domain, _)| domain).collect();
        Query::new(domains, cues, words)
    }

    /// Domains that a query asks about, strongest first; empty when no word tells.
    #[must_use]
    pub fn query_domains(&self, query: &str) -> Vec<Domain> {
        self.query(query).domains
    }

    /// The time of the past that a query names, from and until, Unix milliseconds: "last March", "two weeks ago".
    #[must_use]
    pub fn span(&self, query: &str, at: &Ambient) -> Option<(i64, i64)> {
        spans::span(&Words::of(query), at)
    }

    /// How closely a fact with this route bears on a query, if it does.
    #[must_use]
    pub fn bearing(&self, query: &Query, route: &Route) -> Option<Bearing> {
        join::bearing(self.tables, query, route)
    }

    /// What ties a fact with this route to a query, for a person to read, closest first: domain, kind of fact, what of it
    /// the query names, and who states it in public.
    #[must_use]
    pub fn ties(&self, query: &Query, route: &Route) -> Vec<String> {
        join::why(self.tables, query, route)
    }
}
