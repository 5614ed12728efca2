//! Features of pairs of statements, for `tools/routing/fit_replaces.py`: reads JSON lines
//! `[earlier, later, closeness or null]`
//! from standard input and prints `[features, why]` for each.

#![allow(clippy::print_stdout, reason = "a command-line tool")]
#![allow(
    clippy::unwrap_used,
    reason = "a tool for developers: it stops at bad input"
)]

use foremind_router::{FEATURE_NAMES, Router};

fn main() {
    if std::env::args().any(|argument| argument == "--names") {
        println!("{}", FEATURE_NAMES.join("\n"));
        return;
    }
    let router = Router::new();
    for line in std::io::stdin().lines() {
        let (earlier, later, closeness): (String, String, Option<i32>) =
            serde_json::from_str(&line.unwrap()).unwrap();
        let (earlier, later) = (router.facts(&earlier), router.facts(&later));
        let held = router.compare(&earlier, &later, closeness);
        println!(
            "[{:?}, {:?}]",
            router.pair_features(&earlier, &later, closeness),
            held.why
        );
    }
}
