//! Splits a turn into statements.

use foremind_types::limits::STATEMENTS_PER_TURN;
use unicode_segmentation::UnicodeSegmentation;

/// Byte ranges of the statements of a turn: trimmed, never empty, in order, without overlap, at most
/// [`STATEMENTS_PER_TURN`].
pub(crate) fn split(turn: &str) -> Vec<&str> {
    turn.lines()
        .flat_map(UnicodeSegmentation::unicode_sentences)
        .map(str::trim)
        .filter(|s| s.chars().any(char::is_alphanumeric))
        .take(STATEMENTS_PER_TURN)
        .collect()
}
