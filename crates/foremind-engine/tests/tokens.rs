//! What the token estimate is worth, measured against o200k_base on the statements of the routing evaluation
//! in 11 languages.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use foremind_engine::estimate_tokens;
use serde_json::Value;

#[derive(Default)]
struct Tally {
    texts: usize,
    below: usize,
    ratios: f64,
    estimated: usize,
    counted: usize,
}

fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing/seed");
    let mut statements = Vec::new();
    for name in ["health", "languages", "life", "pairs", "talk"] {
        let path = folder.join(format!("{name}.jsonl"));
        let rows = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let field = |name: &str| row[name].as_str().unwrap().to_owned();
            statements.push((field("lang"), field("text")));
        }
    }
    statements
}

#[test]
fn the_estimate_bounds_o200k_base() {
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    let mut by_language: BTreeMap<String, Tally> = BTreeMap::new();
    for (language, text) in statements() {
        let counted = tokenizer.encode_ordinary(&text).len();
        let estimated = estimate_tokens(&text) as usize;
        let tally = by_language.entry(language).or_default();
        tally.texts += 1;
        tally.below += usize::from(estimated < counted);
        tally.ratios += estimated as f64 / counted as f64;
        tally.estimated += estimated;
        tally.counted += counted;
    }
    let mean = |tally: &Tally| tally.ratios / tally.texts as f64;
    for (language, tally) in &by_language {
        println!(
            "{language}: {} texts, {} below, mean ratio {:.3}, total ratio {:.3}",
            tally.texts,
            tally.below,
            mean(tally),
            tally.estimated as f64 / tally.counted as f64
        );
    }
    assert_eq!(by_language.len(), 11);
    let texts: usize = by_language.values().map(|tally| tally.texts).sum();
    let below: usize = by_language.values().map(|tally| tally.below).sum();
    assert!(below * 1_000 <= texts, "{below} of {texts} below");
    assert!(mean(&by_language["en"]) <= 1.25);
}
