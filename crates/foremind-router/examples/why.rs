//! Shows the verdict on each statement of a turn: `cargo run -p foremind-router --example why -- TEXT`.

#![allow(clippy::print_stdout)]

use foremind_guard::{Guard, Verdict};
use foremind_router::Router;
use foremind_types::Ambient;

fn main() -> Result<(), foremind_guard::Refusal> {
    let at = Ambient {
        now_ms: 1_795_946_400_000,
        utc_offset_min: 0,
        entropy: [0; 32],
    };
    let turn = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let (guard, router) = (Guard::new(), Router::new());
    let turn = guard.turn(&turn)?;
    let frame = router.frame(&turn);
    for statement in router.statements(&turn) {
        if let Verdict::Accept(text) = guard.statement(statement)? {
            println!("{statement}\n{:#?}", router.route_in(&text, frame, &at));
        }
    }
    Ok(())
}
