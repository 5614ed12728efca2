//! What a reader elsewhere is shown: constraints as what to avoid, and facts with a placeholder for whatever tells who
//! somebody is. The placeholders are put back on the device ([`restored`]).

use core::fmt::{self, Debug, Formatter};
use core::ops::Range;
use std::borrow::Cow;
use std::sync::OnceLock;

use foremind_router::{IdentifierKind, avoided, identifiers};
use foremind_types::{Grade, Record};
use serde::{Deserialize, Serialize};

use crate::render::escape;
use crate::request::Audience;
use crate::state::State;

/// Digits of a placeholder: without letters that look like others.
const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// How many.
const PLACEHOLDER_DIGITS: usize = 5;

/// A placeholder of a prompt and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pseudonym {
    /// As it stands in the prompt: `[name-k3f7d]`.
    pub placeholder: String,
    /// What the device knows.
    pub text: String,
}

/// An answer with what its placeholders stand for.
#[must_use]
pub fn restored(answer: &str, pseudonyms: &[Pseudonym]) -> String {
    let mut out = String::with_capacity(answer.len());
    let mut rest = answer;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at);
        out += before;
        let known = pseudonyms
            .iter()
            .find(|one| after.starts_with(&one.placeholder));
        let (shown, taken) = known.map_or(("[", 1), |one| (&one.text, one.placeholder.len()));
        out += shown;
        rest = &after[taken..];
    }
    out + rest
}

/// What a text gives away.
#[derive(Clone, Debug)]
pub(crate) struct Gives {
    /// Where the thing begins that its owner says must be avoided.
    avoided: Option<usize>,
    /// In order, without overlap.
    identifiers: Vec<(Range<usize>, IdentifierKind)>,
}

impl Gives {
    fn of(text: &str) -> Self {
        Self {
            avoided: avoided(text),
            identifiers: identifiers(text),
        }
    }
}

/// The same, found when it is first asked for: most records are never shown.
#[derive(Clone, Default)]
pub(crate) struct Given(OnceLock<Box<Gives>>);

impl Given {
    /// Of a text that stays the same.
    pub(crate) fn of(&self, text: &str) -> &Gives {
        self.0.get_or_init(|| Box::new(Gives::of(text)))
    }
}

/// A function of the text beside it, so states that differ in it alone are the same.
impl Debug for Given {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}

/// How records are written for an audience.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Veil<'s> {
    audience: Audience,
    state: &'s State,
}

impl<'s> Veil<'s> {
    pub(crate) fn new(state: &'s State, audience: Audience) -> Self {
        Self { audience, state }
    }

    /// The same without a veil.
    pub(crate) fn bare(self) -> Self {
        Self {
            audience: Audience::Device,
            ..self
        }
    }

    /// The text of a record as it stands between the quotes.
    pub(crate) fn text(&self, record: &Record) -> String {
        if self.audience == Audience::Device {
            return escape(&record.text);
        }
        let gives = self.gives(record);
        let from = gives
            .avoided
            .filter(|_| record.route.grade == Grade::Modifier);
        let mut out = String::new();
        if from.is_some() {
            out += "avoid: ";
        }
        let from = from.unwrap_or(0);
        let mut at = from;
        let found = gives.identifiers.iter();
        for (range, kind) in found.filter(|(range, _)| range.start >= from) {
            out += &record.text[at..range.start];
            out += &self.placeholder(kind.as_str(), &record.text[range.clone()]);
            at = range.end;
        }
        out += &record.text[at..];
        escape(&out)
    }

    /// What the placeholders of records stand for, each once.
    pub(crate) fn pseudonyms<'r>(
        &self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Vec<Pseudonym> {
        let mut all: Vec<Pseudonym> = Vec::new();
        if self.audience == Audience::Device {
            return all;
        }
        for record in records {
            for (range, kind) in &self.gives(record).identifiers {
                let text = &record.text[range.clone()];
                let placeholder = self.placeholder(kind.as_str(), text);
                if !all.iter().any(|one| one.placeholder == placeholder) {
                    let text = escape(text);
                    all.push(Pseudonym { placeholder, text });
                }
            }
        }
        all
    }

    fn gives(&self, record: &Record) -> Cow<'s, Gives> {
        match self.state.gives(record.id) {
            Some(gives) => Cow::Borrowed(gives),
            None => Cow::Owned(Gives::of(&record.text)),
        }
    }

    /// The same for the same text in one memory, and another one in another memory: nobody can tell a name by trying.
    fn placeholder(&self, kind: &str, text: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.state.salt);
        hasher.update(text.as_bytes());
        let mut bytes = [0; PLACEHOLDER_DIGITS];
        hasher.finalize_xof().fill(&mut bytes);
        let digits = bytes.map(|byte| char::from(DIGITS[usize::from(byte) % DIGITS.len()]));
        let mut out = String::from("[") + kind + "-";
        out.extend(digits);
        out + "]"
    }
}
