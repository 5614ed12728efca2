//! What the lexical stage sees, for the training tools: reads rows (JSON lines with `id` and `text`) from standard input
//! and writes one JSON line a statement: `id`, `text`, `score`, `signals` (name and weight), `traps`, `domain`, `ttl`,
//! `profile`, `certain`, `keep`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{BufRead, stdin};
use std::process::ExitCode;

use foremind_guard::{Guard, Verdict};
use foremind_router::Router;
use foremind_types::{Ambient, Judgement, Tier, Ttl};
use serde_json::{Value, json};

/// 2026-11-29, noon.
const TOLD: Ambient = Ambient {
    now_ms: 1_795_946_400_000,
    utc_offset_min: 0,
    entropy: [0; 32],
};

fn main() -> ExitCode {
    let (router, guard) = (Router::new(), Guard::new());
    for (number, line) in stdin().lock().lines().enumerate() {
        let row: Option<Value> = line.ok().and_then(|line| serde_json::from_str(&line).ok());
        let Some((id, text)) = row
            .as_ref()
            .and_then(|row| Some((row["id"].as_str()?, row["text"].as_str()?)))
        else {
            eprintln!("standard input:{}: not a row with id and text", number + 1);
            return ExitCode::from(2);
        };
        let frame = router.frame(text);
        for statement in router.statements(text) {
            let Ok(Verdict::Accept(guarded)) = guard.statement(statement) else {
                continue;
            };
            let routing = router.route_in(&guarded, frame, &TOLD);
            let (traps, signals): (Vec<_>, Vec<_>) = routing
                .route
                .reasons
                .iter()
                .partition(|reason| reason.weight == 0.0);
            println!(
                "{}",
                json!({
                    "id": id,
                    "text": guarded.as_str(),
                    "score": routing.route.score,
                    "signals": signals.iter().map(|r| (&r.signal, r.weight)).collect::<Vec<_>>(),
                    "traps": traps.iter().map(|r| &r.signal).collect::<Vec<_>>(),
                    "domain": routing.route.domain,
                    "ttl": match routing.route.ttl {
                        Ttl::Permanent => "permanent",
                        Ttl::UntilChanged => "until-changed",
                        Ttl::Dated { .. } => "dated",
                        Ttl::Session { .. } => "session",
                    },
                    "profile": routing.route.tier == Tier::Profile,
                    "certain": routing.route.judgement == Judgement::Settled,
                    "keep": format!("{:?}", routing.keep),
                })
            );
        }
    }
    ExitCode::SUCCESS
}
