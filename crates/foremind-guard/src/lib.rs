//! What may be stored: the only maker of [`Guarded`], the text type that the engine accepts.
//!
//! A text is looked at in a folded view (`view`), in which neither zero-width characters nor look-alikes hide anything.
//! Kinds of secrets and personal data are lines of `data/kinds.tsv`; what is found is redacted or refused by a
//! [`Policy`]. Nothing here keeps, logs or repeats a text.

mod checks;
mod decode;
mod firsts;
mod instructions;
mod kinds;
mod needles;
mod policy;
mod scan;
mod view;

use core::fmt;
use std::borrow::Cow;

pub use instructions::{CONCEPTS, WEIGHTS, instruction_buckets, speaks_of_owner};
pub use kinds::{Class, KINDS};
pub use policy::{Action, Policy, PolicyError};
pub use scan::Finding;

use kinds::Kinds;
use view::{View, is_invisible, shown};

use foremind_types::limits::{STATEMENT_BYTES, TURN_BYTES};
use foremind_types::{Error, ErrorCode, Reason};

/// Text that passed the guard. Only [`Guard`] makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded(String);

impl Guarded {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, given away.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// What the guard says of a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// May be stored and rendered.
    Accept(Guarded),
    /// Shaped like an instruction to its reader: kept for review, never rendered.
    Quarantine {
        /// The text, redacted.
        text: Guarded,
        /// What gave it away: names of signals, no words of the text.
        reasons: Vec<Reason>,
        /// Beyond doubt. What is not may be a fact about its owner, and whoever can tell keeps that.
        sure: bool,
    },
}

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing but white space and invisible characters.
    Empty,
    /// Longer than the limit.
    TooLarge {
        /// Size of the text.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// It holds something that the policy blocks, or is nothing but key material.
    Blocked {
        /// The kind.
        kind: &'static str,
    },
    /// A control character that no text needs (NUL and the like).
    ControlCharacter {
        /// Its code point.
        code_point: u32,
        /// Its byte offset.
        at_byte: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the text is empty; pass at least one visible character"),
            Self::TooLarge { bytes, limit_bytes } => {
                write!(
                    f,
                    "the text has {bytes} bytes, the limit is {limit_bytes}; split it"
                )
            }
            Self::Blocked { kind } => write!(
                f,
                "the text holds a `{kind}`, which the policy does not let in; nothing of it was stored"
            ),
            Self::ControlCharacter {
                code_point,
                at_byte,
            } => write!(
                f,
                "the text has the control character U+{code_point:04X} at byte {at_byte}; remove it"
            ),
        }
    }
}

impl core::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Empty => ErrorCode::TextEmpty,
            Refusal::TooLarge { .. } => ErrorCode::TextTooLarge,
            Refusal::ControlCharacter { .. } | Refusal::Blocked { .. } => {
                ErrorCode::InvalidArgument
            }
        };
        Self::new(code, refusal.to_string())
    }
}

/// Checks text before anything else sees it.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    policy: Policy,
}

impl Guard {
    /// The guard with its default policy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The guard with a policy of the host's.
    #[must_use]
    pub fn with_policy(policy: Policy) -> Self {
        Self { policy }
    }

    /// Names of all kinds that a policy may name, sorted.
    #[must_use]
    pub fn kinds() -> Vec<&'static str> {
        Kinds::shared().names()
    }

    /// Checks the text of a whole turn, before it is split into statements, and redacts it: a secret that goes over a line
    /// break would not be seen in its parts.
    ///
    /// # Errors
    /// See [`Refusal`]; the limit is [`TURN_BYTES`].
    pub fn turn<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, Refusal> {
        self.cleaned(well_formed(text, TURN_BYTES)?)
    }

    /// Checks one statement.
    ///
    /// # Errors
    /// See [`Refusal`]; the limit is [`STATEMENT_BYTES`].
    pub fn statement(&self, text: &str) -> Result<Verdict, Refusal> {
        let text = shown(well_formed(text, STATEMENT_BYTES)?);
        let view = View::new(&text);
        let redacted = self.redacted(&view)?;
        let reasons = match (self.policy.accepts_instructions(), &redacted) {
            (true, _) => None,
            (false, None) => instructions::reasons(&view),
            (false, Some(redacted)) => instructions::reasons(&View::new(redacted)),
        };
        let text = Guarded(redacted.unwrap_or_else(|| text.into_owned()));
        Ok(match reasons {
            None => Verdict::Accept(text),
            Some((reasons, sure)) => Verdict::Quarantine {
                text,
                reasons,
                sure,
            },
        })
    }

    /// Checks one statement that the owner says is no instruction: redacted as ever.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn released(&self, text: &str) -> Result<Guarded, Refusal> {
        let text = well_formed(text, STATEMENT_BYTES)?;
        Ok(Guarded(self.cleaned(text)?.into_owned()))
    }

    /// Secrets and personal data in a text, those that the policy allows too; by place.
    #[must_use]
    pub fn findings(&self, text: &str) -> Vec<Finding> {
        scan::scan(&View::new(text), &self.policy)
    }

    /// Without what shows nothing, and without what the policy does not let in.
    fn cleaned<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, Refusal> {
        let text = shown(text);
        let redacted = self.redacted(&View::new(&text))?;
        Ok(redacted.map_or(text, Cow::Owned))
    }

    /// The text with markers, if it needs any.
    fn redacted(&self, view: &View<'_>) -> Result<Option<String>, Refusal> {
        let findings = scan::scan(view, &self.policy);
        let Some(worst) = findings.iter().max_by_key(|finding| finding.action) else {
            return Ok(None);
        };
        match worst.action {
            Action::Allow => Ok(None),
            Action::Block => Err(Refusal::Blocked { kind: worst.kind }),
            Action::Redact => {
                let redacted = scan::redacted(view.unfolded(), &findings);
                let key = findings.iter().find(|finding| finding.class == Class::Key);
                match key {
                    Some(key) if says_nothing(&redacted) => {
                        Err(Refusal::Blocked { kind: key.kind })
                    }
                    _ => Ok(Some(redacted)),
                }
            }
        }
    }
}

/// How a marker starts; the kind and `]` follow.
pub(crate) const MARKER: &str = "[REDACTED:";

/// Whether nothing is left beside markers.
fn says_nothing(redacted: &str) -> bool {
    let mut rest = redacted;
    while let Some((before, after)) = rest.split_once(MARKER) {
        if before.chars().any(char::is_alphanumeric) {
            return false;
        }
        rest = after.split_once(']').map_or("", |(_, rest)| rest);
    }
    !rest.chars().any(char::is_alphanumeric)
}

/// White space at both ends removed, size and control characters checked.
fn well_formed(text: &str, limit_bytes: usize) -> Result<&str, Refusal> {
    if text.len() > limit_bytes {
        return Err(Refusal::TooLarge {
            bytes: text.len(),
            limit_bytes,
        });
    }
    let unwanted = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if let Some((at_byte, c)) = text.char_indices().find(|(_, c)| unwanted(*c)) {
        return Err(Refusal::ControlCharacter {
            code_point: c.into(),
            at_byte,
        });
    }
    let trimmed = text.trim();
    if trimmed
        .chars()
        .all(|c| c.is_whitespace() || is_invisible(c))
    {
        return Err(Refusal::Empty);
    }
    Ok(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_and_trims_ordinary_text() {
        let Ok(Verdict::Accept(text)) = Guard::new().statement("  I'm allergic\tto nuts.\n") else {
            panic!("refused");
        };
        assert_eq!(text.as_str(), "I'm allergic\tto nuts.");
    }

    #[test]
    fn refuses_what_shows_nothing() {
        for text in ["", " \n\t", "\u{200b}", "\u{feff}\u{202e} "] {
            assert_eq!(
                Guard::new().statement(text),
                Err(Refusal::Empty),
                "{text:?}"
            );
        }
    }

    #[test]
    fn refuses_control_characters_by_place() {
        assert_eq!(
            Guard::new().statement("ab\0"),
            Err(Refusal::ControlCharacter {
                code_point: 0,
                at_byte: 2
            })
        );
    }

    #[test]
    fn limits_are_inclusive() {
        let guard = Guard::new();
        assert!(guard.statement(&"x".repeat(STATEMENT_BYTES)).is_ok());
        assert!(matches!(
            guard.statement(&"x".repeat(STATEMENT_BYTES + 1)),
            Err(Refusal::TooLarge { .. })
        ));
        assert!(guard.turn(&"x".repeat(TURN_BYTES)).is_ok());
        assert!(guard.turn(&"x".repeat(TURN_BYTES + 1)).is_err());
    }
}
