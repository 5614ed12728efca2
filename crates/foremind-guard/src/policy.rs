//! What to do with each kind: the table's defaults, changed by the host.

use core::fmt;
use foremind_types::small::SmallMap;

use foremind_types::{Error, ErrorCode};

use crate::kinds::Kinds;

/// What happens to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It stays.
    Allow,
    /// A marker with the kind takes its place.
    Redact,
    /// The whole text is refused.
    Block,
}

impl Action {
    /// From the word in policies and data files.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "allow" => Self::Allow,
            "redact" => Self::Redact,
            "block" => Self::Block,
            _ => return None,
        })
    }
}

/// Where actions differ from the defaults. Default: credentials, keys, cards, accounts and national numbers are redacted,
/// mail addresses and telephone numbers stay, instructions are quarantined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    actions: SmallMap<&'static str, Action>,
    accepts_instructions: bool,
}

/// A line of a policy that cannot be used. It carries nothing but the line's number and, where it is no secret, the name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not `kind = action`.
    Form {
        /// From 1.
        line: usize,
    },
    /// No kind of that name.
    UnknownKind {
        /// From 1.
        line: usize,
        /// The name, shortened.
        name: String,
    },
    /// Neither `redact` nor `block` nor `allow`.
    UnknownAction {
        /// From 1.
        line: usize,
        /// The kind.
        name: String,
    },
    /// The kind stands on an earlier line too.
    Twice {
        /// From 1.
        line: usize,
        /// The kind.
        name: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { line } => write!(
                f,
                "guard policy, line {line}: write `kind = redact`, `kind = block` or `kind = allow`"
            ),
            Self::UnknownKind { line, name } => {
                write!(f, "guard policy, line {line}: there is no kind `{name}`")
            }
            Self::UnknownAction { line, name } => write!(
                f,
                "guard policy, line {line}: `{name}` can be redact, block or allow (instructions: quarantine or allow)"
            ),
            Self::Twice { line, name } => {
                write!(
                    f,
                    "guard policy, line {line}: `{name}` is set on an earlier line too"
                )
            }
        }
    }
}

impl core::error::Error for PolicyError {}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Self {
        Self::new(ErrorCode::InvalidArgument, error.to_string())
    }
}

/// The name under which instruction-shaped text stands in a policy.
const INSTRUCTIONS: &str = "instructions";
/// The longest name that an error repeats.
const NAME_CHARS: usize = 40;

impl Policy {
    /// Reads `kind = action` lines; `#` starts a comment. `*` stands for all kinds and `instructions` for
    /// instruction-shaped text (`quarantine` or `allow`); a later line about one kind goes before `*`.
    ///
    /// # Errors
    /// [`PolicyError`], which names the line and the kind.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let names = Kinds::shared().names();
        let mut policy = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let mut all = None;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let (name, action) = content
                .split_once('=')
                .map(|(name, action)| (name.trim(), action.trim()))
                .filter(|(name, action)| !name.is_empty() && !action.is_empty())
                .ok_or(PolicyError::Form { line })?;
            let shown: String = name.chars().take(NAME_CHARS).collect();
            let kind = names.binary_search(&name).ok().map(|at| names[at]);
            if kind.is_none() && name != "*" && name != INSTRUCTIONS {
                return Err(PolicyError::UnknownKind { line, name: shown });
            }
            if seen.iter().any(|earlier| earlier == name) {
                return Err(PolicyError::Twice { line, name: shown });
            }
            seen.push(name.to_owned());
            if name == INSTRUCTIONS {
                policy.accepts_instructions = match action {
                    "quarantine" => false,
                    "allow" => true,
                    _ => return Err(PolicyError::UnknownAction { line, name: shown }),
                };
                continue;
            }
            let Some(action) = Action::parse(action) else {
                return Err(PolicyError::UnknownAction { line, name: shown });
            };
            match kind {
                Some(kind) => {
                    policy.actions.insert(kind, action);
                }
                None => all = Some(action),
            }
        }
        if let Some(action) = all {
            for name in names {
                policy.actions.entry(name).or_insert(action);
            }
        }
        Ok(policy)
    }

    /// What happens to a kind whose default is `default`.
    pub(crate) fn action(&self, kind: &str, default: Action) -> Action {
        self.actions.get(kind).copied().unwrap_or(default)
    }

    /// Whether instruction-shaped text is taken like any other.
    #[must_use]
    pub fn accepts_instructions(&self) -> bool {
        self.accepts_instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_change_single_kinds_and_a_star_the_rest() {
        let policy = Policy::parse(
            "# mail stays\nemail = redact\n\n* = allow # all else\nprivate_key=block\n",
        )
        .unwrap();
        assert_eq!(policy.action("email", Action::Allow), Action::Redact);
        assert_eq!(policy.action("private_key", Action::Redact), Action::Block);
        assert_eq!(policy.action("github_token", Action::Redact), Action::Allow);
        assert_eq!(Policy::parse("").unwrap(), Policy::default());
        assert_eq!(
            Policy::default().action("email", Action::Allow),
            Action::Allow
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, message) in [
            ("email = redact\nphone", "guard policy, line 2: write"),
            (
                "\nsomething = redact",
                "line 2: there is no kind `something`",
            ),
            ("email = hide", "line 1: `email` can be"),
            ("email = redact\nemail = allow", "line 2: `email` is set"),
            ("instructions = redact", "line 1: `instructions` can be"),
            ("= redact", "line 1: write"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }
}
