//! What a prompt found, as one ranking: the search does not know which of its records stand in the profile already.

use foremind_engine::{Prompt, Shown};

/// The records of the prompt that the search found, best first; then what stands there without it.
pub(crate) fn ranked(prompt: &Prompt) -> Vec<&Shown> {
    let mut all: Vec<&Shown> = prompt
        .context
        .iter()
        .chain(&prompt.joined)
        .chain(&prompt.profile)
        .collect();
    all.sort_by_key(|shown| shown.explain.as_ref().map_or(u32::MAX, |found| found.rank));
    all
}
