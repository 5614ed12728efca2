use foremind_types::{Role, Scope};
use foremind_unicode::{Equivalence, compose, decompose};

/// Equal for statements that are one fact told twice.
pub(crate) type Identity = [u8; 16];

/// The identity of a statement: its scope, who told it, and its words. Case, white space, the way accents are
/// encoded and full stops at the end do not count; everything else does, so that a number, a name, a negation
/// or a question mark makes another statement.
pub(crate) fn identity(scope: &Scope, role: Role, text: &str) -> Identity {
    let mut hasher = blake3::Hasher::new();
    for name in [
        Some(&scope.user),
        scope.project.as_ref(),
        scope.thread.as_ref(),
        scope.agent.as_ref(),
    ] {
        // Names have no line break, so the parts cannot run into each other.
        hasher.update(name.map_or("", |name| name.as_str()).as_bytes());
        hasher.update(b"\n");
    }
    hasher.update(role.as_str().as_bytes());
    hasher.update(b"\n");
    hasher.update(folded(text).as_bytes());
    let mut identity = [0; 16];
    hasher.finalize_xof().fill(&mut identity);
    identity
}

fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        // Most texts; and composing costs twenty times as much as all the rest.
        if word.is_ascii() {
            folded.push_str(word);
            let from = folded.len() - word.len();
            folded[from..].make_ascii_lowercase();
        } else {
            let lower = word.chars().flat_map(char::to_lowercase);
            let mut chars = decompose(lower, Equivalence::Canonical);
            compose(&mut chars);
            folded.extend(chars);
        }
    }
    let end = folded.trim_end_matches(['.', '!', '。', '！']).len();
    if end > 0 {
        folded.truncate(end);
    }
    folded
}

#[cfg(test)]
mod tests {
    use foremind_types::Name;

    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let scope = Scope::user(Name::new("ada").unwrap());
        identity(&scope, Role::User, a) == identity(&scope, Role::User, b)
    }

    #[test]
    fn form_does_not_count() {
        assert!(same("I'm allergic to nuts.", " i'm  ALLERGIC\nto nuts"));
        assert!(same("Caf\u{e9}", "Cafe\u{301}!"));
    }

    #[test]
    fn content_counts() {
        for (a, b) in [
            ("I take 5 mg", "I take 50 mg"),
            ("I take 5 mg", "I take .5 mg"),
            ("I eat nuts", "I don't eat nuts"),
            ("My aunt is Ana", "My aunt is Ann"),
            ("I can eat nuts", "I can eat nuts?"),
            ("10\u{b2} km", "102 km"),
            ("año", "ano"),
            ("...", "..!?"),
        ] {
            assert!(!same(a, b), "{a} | {b}");
        }
    }

    #[test]
    fn scopes_and_tellers_count() {
        let ada = Scope::user(Name::new("ada").unwrap());
        let narrow = Scope {
            project: Some(Name::new("p").unwrap()),
            ..ada.clone()
        };
        let thread = Scope {
            thread: Some(Name::new("p").unwrap()),
            ..ada.clone()
        };
        let all = [
            identity(&ada, Role::User, "x"),
            identity(&ada, Role::Assistant, "x"),
            identity(&narrow, Role::User, "x"),
            identity(&thread, Role::User, "x"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }
}
