//! From a text to routed statements.

use foremind_guard::{Guard, Guarded, Refusal, Verdict};
use foremind_router::{Frame, Router, Routing};
use foremind_types::limits::STATEMENT_BYTES;
use foremind_types::{Ambient, Error, Judgement};

use crate::engine::invalid;

/// A statement that passed the guard, with its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) text: Guarded,
    pub(crate) routing: Routing,
}

/// The whole text as one statement; a longer one is split. Nothing of it is lost.
pub(crate) fn whole(
    guard: &Guard,
    router: &Router,
    text: &str,
    at: &Ambient,
) -> Result<Vec<Statement>, Error> {
    let text = guard.turn(text)?;
    let text = text.as_ref();
    if text.len() <= STATEMENT_BYTES {
        return routed(guard, router, &[text], None, at);
    }
    let mut pieces = router.statements(text);
    // The splitter stops at the most statements of a turn; what is beyond is kept in larger pieces.
    let end = pieces.last().map_or(0, |last| end_in(text, last));
    pieces.push(&text[end..]);
    routed(guard, router, &pieces, None, at)
}

/// Whether a text that was stored whole holds several statements: one of them does not retire another such text, since a
/// part of it is no reason to give up the rest.
pub(crate) fn is_note(router: &Router, text: &str) -> bool {
    router.statements(text).len() > 1
}

/// The statements of a turn.
pub(crate) fn of_turn(
    guard: &Guard,
    router: &Router,
    text: &str,
    at: &Ambient,
) -> Result<Vec<Statement>, Error> {
    let text = guard.turn(text)?;
    let text = text.as_ref();
    // A story or a translation asked for in one sentence of a turn frames the others.
    let frame = router.frame(text);
    routed(guard, router, &router.statements(text), Some(frame), at)
}

fn routed(
    guard: &Guard,
    router: &Router,
    pieces: &[&str],
    frame: Option<Frame>,
    at: &Ambient,
) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::new();
    for piece in pieces.iter().flat_map(|piece| bounded(piece)) {
        let text = match guard.statement(piece) {
            Ok(Verdict::Accept(text)) => text,
            // A piece without visible characters between others that have some.
            Err(Refusal::Empty) => continue,
            Err(refusal) => return Err(refusal.into()),
            Ok(_) => return Err(invalid("the guard refuses the text")),
        };
        let mut routing = match frame {
            Some(frame) => router.route_in(&text, frame, at),
            None => router.route(&text, at),
        };
        // What words leave open amid somebody else's words is nothing for a head, which sees the statement alone.
        if frame.is_some_and(|frame| frame.foreign_words)
            && routing.route.judgement == Judgement::Unrouted
        {
            routing.route.judgement = Judgement::Settled;
        }
        statements.push(Statement { text, routing });
    }
    Ok(statements)
}

/// Where `piece`, a slice of `text`, ends in it.
fn end_in(text: &str, piece: &str) -> usize {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let end = start + piece.len();
    if text.is_char_boundary(end) { end } else { 0 }
}

/// Cuts a piece into parts that a statement may be, at white space where there is some.
fn bounded(piece: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = piece;
    while rest.len() > STATEMENT_BYTES {
        let most = rest.floor_char_boundary(STATEMENT_BYTES);
        let cut = rest[..most]
            .rfind(char::is_whitespace)
            .filter(|at| *at > 0)
            .unwrap_or(most);
        let (part, after) = rest.split_at(cut);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pieces_are_cut_at_white_space_and_nothing_is_lost() {
        let words = "nuts and cakes ".repeat(2_000);
        let parts = bounded(&words);
        assert!(parts.iter().all(|p| p.len() <= STATEMENT_BYTES));
        assert_eq!(parts.concat(), words);
        assert!(parts[1..].iter().all(|p| p.starts_with(' ')));
        let solid = "花".repeat(STATEMENT_BYTES);
        let parts = bounded(&solid);
        assert!(parts.iter().all(|p| p.len() <= STATEMENT_BYTES));
        assert_eq!(parts.concat(), solid);
    }

    #[test]
    fn a_long_text_keeps_what_the_splitter_leaves() {
        let at = Ambient {
            now_ms: 0,
            utc_offset_min: 0,
            entropy: [0; 32],
        };
        let text = (0..3_000)
            .map(|n| format!("Fact number {n} is true. "))
            .collect::<String>();
        let statements = whole(&Guard::new(), &Router::new(), &text, &at).unwrap();
        let kept: Vec<&str> = statements.iter().map(|s| s.text.as_str()).collect();
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&kept.join(" ")), words(&text));
    }
}
