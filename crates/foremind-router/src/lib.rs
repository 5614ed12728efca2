//! Decides when a statement is written whether it modifies answers or informs them.

mod lexicon;
mod statements;
mod words;

use std::sync::Arc;

use foremind_guard::Guarded;
use foremind_types::{
    Ambient, Domain, Grade, Judgement, Reason, Route, Severity, Stage, Subject, Tier, Ttl,
};

use lexicon::{Class, FILES, Lexicon};
use words::Words;

/// The lexical stage: compiled lexicons. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Router {
    lexicon: Arc<Lexicon>,
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
    /// The attribute it states, in lower case ("home city").
    pub attribute: Option<String>,
    /// The value of the attribute, as it stands in the statement.
    pub value: Option<String>,
}

impl Default for Router {
    fn default() -> Self {
        Self::new()
    }
}

impl Router {
    /// Reads the embedded lexicons.
    #[must_use]
    pub fn new() -> Self {
        // The data files are part of the crate, and a test refuses any line that cannot be read.
        let (lexicon, _) = Lexicon::read(FILES);
        Self {
            lexicon: Arc::new(lexicon),
        }
    }

    /// Splits a turn into statements: slices of it, in order, never empty, at most
    /// [`foremind_types::limits::STATEMENTS_PER_TURN`].
    #[must_use]
    pub fn statements<'t>(&self, turn: &'t str) -> Vec<&'t str> {
        statements::split(turn)
    }

    /// Judges one statement. Pure: the same statement at the same time gives the same verdict.
    #[must_use]
    pub fn route(&self, text: &Guarded, _at: &Ambient) -> Routing {
        let text = text.as_str();
        let words = Words::of(text);
        let hits = self.lexicon.find(&words);
        let owner = hits.iter().any(|h| h.meaning.class == Class::Owner);
        let mut reasons = Vec::new();
        let mut domain = Domain::General;
        for hit in &hits {
            let (signal, weight) = match hit.meaning.class {
                Class::Medical => ("medical-word", 0.85),
                Class::Dietary => ("dietary-word", 0.85),
                Class::Medication => ("medication-name", 0.85),
                Class::Legal => ("legal-word", 0.8),
                Class::Obligation => ("obligation", 0.7),
                _ => continue,
            };
            if domain == Domain::General {
                domain = hit.meaning.domain;
            }
            reasons.push(Reason {
                signal: signal.to_owned(),
                matched: text[words.range(hit.from, hit.to)].to_owned(),
                weight,
            });
        }
        let profile = owner && !reasons.is_empty();
        let question = text.trim_end().ends_with('?');
        Routing {
            keep: if question && !profile {
                Keep::Nothing
            } else {
                Keep::Record
            },
            route: Route {
                grade: if profile {
                    Grade::Modifier
                } else {
                    Grade::Informer
                },
                tier: if profile { Tier::Profile } else { Tier::Store },
                priority: if profile { 1.0 } else { 0.0 },
                severity: Severity::Moderate,
                domain,
                affects: Vec::new(),
                ttl: Ttl::UntilChanged,
                score: if profile { 0.85 } else { 0.0 },
                reasons,
                stage: Stage::Lexical,
                judgement: if profile {
                    Judgement::Settled
                } else {
                    Judgement::Unrouted
                },
            },
            subject: Subject::Owner,
            attribute: None,
            value: None,
        }
    }

    /// Domains that a query asks about, strongest first; empty when no word tells.
    #[must_use]
    pub fn query_domains(&self, query: &str) -> Vec<Domain> {
        let words = Words::of(query);
        let mut domains: Vec<Domain> = Vec::new();
        for hit in self.lexicon.find(&words) {
            let domain = hit.meaning.domain;
            if domain != Domain::General && !domains.contains(&domain) {
                domains.push(domain);
            }
        }
        domains
    }
}

#[cfg(test)]
mod tests {
    use foremind_guard::{Guard, Verdict};

    use super::*;

    #[test]
    fn the_macaron_story() {
        let Ok(Verdict::Accept(text)) = Guard::new().statement("I'm allergic to tree nuts") else {
            panic!("refused");
        };
        let at = Ambient {
            now_ms: 0,
            utc_offset_min: 0,
            entropy: [0; 32],
        };
        let routing = Router::new().route(&text, &at);
        assert_eq!(routing.route.tier, Tier::Profile);
        assert_eq!(routing.route.domain, Domain::Allergy);
    }
}
