//! From a text to routed statements.

use foremind_guard::{Guard, Guarded, Refusal, Verdict, speaks_of_owner};
use foremind_router::{Frame, Keep, Router, Routing};
use foremind_types::limits::STATEMENT_BYTES;
use foremind_types::{
    Ambient, Error, Grade, Judgement, Reason, Route, Severity, Status, Subject, Tier,
};

use crate::engine::invalid;

/// A statement that passed the guard, with its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) text: Guarded,
    pub(crate) routing: Routing,
    /// `Quarantined` where it is kept for review only.
    pub(crate) status: Status,
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
    let route = |text: &Guarded| match frame {
        Some(frame) => router.route_in(text, frame, at),
        None => router.route(text, at),
    };
    let mut statements = Vec::new();
    for piece in pieces.iter().flat_map(|piece| bounded(piece)) {
        let (text, reasons, sure) = match guard.statement(piece) {
            Ok(Verdict::Accept(text)) => {
                let routing = route(&text);
                statements.push(current(text, routing, frame));
                continue;
            }
            Ok(Verdict::Quarantine {
                text,
                reasons,
                sure,
            }) => (text, reasons, sure),
            // A piece without visible characters between others that have some.
            Err(Refusal::Empty) => continue,
            Err(refusal) => return Err(refusal.into()),
            Ok(_) => return Err(invalid("the guard refuses the text")),
        };
        // A text of several statements: what tells of the owner stays, the rest is held back as one.
        let parts = router.statements(text.as_str());
        if parts.len() < 2 {
            let routing = route(&text);
            statements.push(match !sure && tells_of_owner(&routing) {
                true => doubted(text, routing, reasons, frame),
                false => held_back(text, routing, reasons),
            });
            continue;
        }
        let mut rest = String::new();
        // Where a part is beyond doubt an instruction by itself, the others are judged by what they say; where only all of it together is one,
        // no part is trusted but what tells of the owner. What words leave open may yet turn out to change answers, where somebody speaks of themselves.
        let judged: Vec<_> = parts.iter().map(|part| guard.statement(part)).collect();
        let apart = judged
            .iter()
            .any(|one| matches!(one, Ok(Verdict::Quarantine { sure: true, .. })));
        for (part, one) in parts.into_iter().zip(judged) {
            match one {
                Ok(Verdict::Accept(text)) => {
                    let routing = route(&text);
                    let open = apart
                        && routing.route.judgement != Judgement::Settled
                        && speaks_of_owner(text.as_str());
                    if open || tells_of_owner(&routing) {
                        statements.push(current(text, routing, frame));
                        continue;
                    }
                }
                Ok(Verdict::Quarantine {
                    text,
                    reasons,
                    sure: false,
                }) => {
                    let routing = route(&text);
                    if tells_of_owner(&routing) {
                        statements.push(doubted(text, routing, reasons, frame));
                        continue;
                    }
                }
                _ => {}
            }
            if !rest.is_empty() {
                rest.push(' ');
            }
            rest.push_str(part);
        }
        if let Ok(rest) = guard.released(&rest) {
            let routing = route(&rest);
            statements.push(held_back(rest, routing, reasons));
        }
    }
    Ok(statements)
}

/// Whether words show a fact of the owner's that changes answers: only what is an instruction beyond doubt outweighs it.
pub(crate) fn tells_of_owner(routing: &Routing) -> bool {
    let route = &routing.route;
    route.tier == Tier::Profile
        && route.judgement == Judgement::Settled
        && routing.subject != Subject::Other
}

fn current(text: Guarded, mut routing: Routing, frame: Option<Frame>) -> Statement {
    // What words leave open amid somebody else's words is nothing for a head, which sees the statement alone.
    if frame.is_some_and(|frame| frame.foreign_words)
        && routing.route.judgement == Judgement::Unrouted
    {
        routing.route.judgement = Judgement::Settled;
    }
    Statement {
        text,
        routing,
        status: Status::Current,
    }
}

/// Kept, with the guard's reasons beside the router's, until somebody has looked.
fn doubted(
    text: Guarded,
    mut routing: Routing,
    reasons: Vec<Reason>,
    frame: Option<Frame>,
) -> Statement {
    routing.route.reasons.extend(reasons);
    routing.route.judgement = Judgement::Pending;
    current(text, routing, frame)
}

fn held_back(text: Guarded, mut routing: Routing, reasons: Vec<Reason>) -> Statement {
    routing.keep = Keep::Record;
    routing.attribute = None;
    routing.value = None;
    routing.route = held_back_route(&routing.route, reasons);
    Statement {
        text,
        routing,
        status: Status::Quarantined,
    }
}

/// The verdict on what is shown to nobody: out of the profile, with the guard's reasons.
pub(crate) fn held_back_route(route: &Route, reasons: Vec<Reason>) -> Route {
    Route {
        grade: Grade::Informer,
        tier: Tier::Store,
        priority: 0.0,
        severity: Severity::Mild,
        affects: Vec::new(),
        judgement: Judgement::Settled,
        reasons,
        ..route.clone()
    }
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
