use serde::{Deserialize, Serialize};

use crate::Name;

/// Whose and where a record is. Mandatory on every verb, and a predicate inside the engine also for
/// access by id: nothing is ever read or changed through another user's scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The owner.
    pub user: Name,
    /// Narrows to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// Narrows to a thread (a conversation).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Name>,
    /// Narrows to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
}

impl Scope {
    /// The scope of a whole user.
    #[must_use]
    pub fn user(user: Name) -> Self {
        Self {
            user,
            project: None,
            thread: None,
            agent: None,
        }
    }

    /// Whether someone who asks from this scope sees what was told in `told`: same user, and every
    /// narrower id that `told` names is the asker's too. What was told to the user as a whole is seen
    /// in every project; what was told in a project is seen only there.
    #[must_use]
    pub fn sees(&self, told: &Self) -> bool {
        let within = |told: &Option<Name>, asked: &Option<Name>| told.is_none() || told == asked;
        self.user == told.user
            && within(&told.project, &self.project)
            && within(&told.thread, &self.thread)
            && within(&told.agent, &self.agent)
    }

    /// Whether `told` lies inside this scope: same user, and every narrower id that this scope names is
    /// `told`'s too. This is what administration (list, forget, export) of a scope reaches.
    #[must_use]
    pub fn contains(&self, told: &Self) -> bool {
        let within = |asked: &Option<Name>, told: &Option<Name>| asked.is_none() || told == asked;
        self.user == told.user
            && within(&self.project, &told.project)
            && within(&self.thread, &told.thread)
            && within(&self.agent, &told.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(user: &str, project: Option<&str>) -> Scope {
        Scope {
            project: project.map(|p| Name::new(p).unwrap()),
            ..Scope::user(Name::new(user).unwrap())
        }
    }

    #[test]
    fn users_are_never_mixed_even_by_prefix() {
        let (a, ab) = (scope("a", None), scope("ab", None));
        assert!(!a.sees(&ab) && !ab.sees(&a) && !a.contains(&ab) && !ab.contains(&a));
    }

    #[test]
    fn wide_facts_are_seen_in_narrow_scopes_and_not_the_reverse() {
        let (wide, narrow) = (scope("a", None), scope("a", Some("p")));
        assert!(narrow.sees(&wide) && !wide.sees(&narrow));
        assert!(wide.contains(&narrow) && !narrow.contains(&wide));
        assert!(!scope("a", Some("q")).sees(&narrow));
    }
}
