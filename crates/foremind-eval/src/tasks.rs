//! The tasks, the background conversation and its labels.

use std::collections::BTreeMap;
use std::path::Path;

use crate::arguments::Suite;
use crate::input::{self, Problem};

/// A fact that the owner tells, and questions that it bears on.
pub(crate) struct Task {
    pub(crate) id: String,
    /// The turn that tells it.
    pub(crate) fact: String,
    /// Asks for the fact itself.
    pub(crate) naive_query: String,
    /// Does not name the fact, but its answer depends on it.
    pub(crate) query: String,
    /// Does not depend on the fact.
    pub(crate) irrelevant: Option<String>,
}

/// A user's turn of the background.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) id: String,
    /// Sessions count from 0.
    pub(crate) session: i64,
    pub(crate) text: String,
}

/// What a background turn holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing to show.
    Nothing,
    /// A modifier or circumstance.
    Fact,
    /// It may be read either way, and counts neither way.
    Doubtful,
}

/// Reads the tasks of InMind or of our own set. Fields that only a judge may see are not read.
///
/// # Errors
/// [`Problem::Input`].
pub(crate) fn tasks(suite: Suite, path: &Path) -> Result<Vec<Task>, Problem> {
    let (id, fact, query) = match suite {
        Suite::InMind => ("task_id", "user_message", "query"),
        _ => ("id", "fact", "indirect_query"),
    };
    input::rows(path)?
        .iter()
        .map(|row| {
            Ok(Task {
                id: row.id(id)?,
                fact: row.text(fact)?.to_owned(),
                naive_query: row.text("naive_query")?.to_owned(),
                query: row.text(query)?.to_owned(),
                irrelevant: row.optional("irrelevant_query").map(str::to_owned),
            })
        })
        .collect()
}

/// Reads the users' turns of a conversation of many sessions, in its order.
///
/// # Errors
/// [`Problem::Input`].
pub(crate) fn background(path: &Path) -> Result<Vec<Turn>, Problem> {
    let mut turns = Vec::new();
    for row in input::rows(path)? {
        if row.text("role")? == "user" {
            turns.push(Turn {
                id: row.id("id")?,
                session: row.number("session_index")?,
                text: row.text("content")?.to_owned(),
            });
        }
    }
    if !turns.is_sorted_by_key(|turn| turn.session) {
        return Err(Problem::Input(format!(
            "{}: sessions are not in order",
            path.display()
        )));
    }
    Ok(turns)
}

/// Reads the labels of the background's turns.
///
/// # Errors
/// [`Problem::Input`].
pub(crate) fn labels(path: &Path) -> Result<BTreeMap<String, Holds>, Problem> {
    input::rows(path)?
        .iter()
        .map(|row| {
            let holds = match row.text("grade")? {
                _ if row.flag("doubtful") => Holds::Doubtful,
                "no" => Holds::Nothing,
                "modifier" | "circumstance" => Holds::Fact,
                unknown => return Err(row.problem(&format!("unknown grade `{unknown}`"))),
            };
            Ok((row.id("id")?, holds))
        })
        .collect()
}
