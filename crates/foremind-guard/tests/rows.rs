//! Our own labelled rows through the guard. `FOREMIND_EXPLAIN=dev` lists what goes wrong in that part.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;

use foremind_guard::{Guard, Policy, Verdict};
use serde_json::Value;

/// What the guard does with a text, and what it would store.
fn outcome(guard: &Guard, text: &str) -> (&'static str, String) {
    let cleaned = match guard.turn(text) {
        Ok(cleaned) => cleaned.into_owned(),
        Err(_) => return ("block", String::new()),
    };
    match guard.statement(&cleaned) {
        Ok(Verdict::Accept(text))
            if text.as_str() == text_trimmed(text.as_str())
                && cleaned == text_trimmed(&cleaned)
                && !text.as_str().contains("[REDACTED:") =>
        {
            ("accept", text.into_string())
        }
        Ok(Verdict::Accept(text)) => ("redact", text.into_string()),
        Err(_) => ("block", String::new()),
        Ok(_) => ("quarantine", String::new()),
    }
}

fn text_trimmed(text: &str) -> &str {
    text.trim()
}

fn rows(file: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../tests/data/guard/{file}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let rows = std::fs::read_to_string(path).unwrap();
    rows.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Shares of rows with the expected action, and of leaks, by part.
fn shares(file: &str) -> BTreeMap<String, (f64, u32)> {
    let policy = Policy::parse("email = redact\nphone = redact").unwrap();
    let guard = Guard::with_policy(policy);
    let explain = std::env::var("FOREMIND_EXPLAIN").unwrap_or_default();
    let mut parts: BTreeMap<String, (u32, u32, u32)> = BTreeMap::new();
    for row in rows(file) {
        let word = |name: &str| row[name].as_str().unwrap();
        let (given, stored) = outcome(&guard, word("text"));
        let also = row["also_ok"].as_array().unwrap();
        let right = given == word("expect") || also.iter().any(|ok| ok == given);
        let leak = given != "quarantine"
            && row["redacted_must_not_contain"]
                .as_array()
                .unwrap()
                .iter()
                .any(|secret| stored.contains(secret.as_str().unwrap()));
        let part = parts.entry(word("part").to_owned()).or_default();
        part.0 += 1;
        part.1 += u32::from(right && !leak);
        part.2 += u32::from(leak);
        if explain == "kinds" && (!right || leak) {
            eprintln!("{} {} {}", word("part"), word("kind"), word("lang"));
        }
        if explain == word("part") && (!right || leak) {
            eprintln!(
                "{given} {} {leak} {:?}\n   -> {stored:?}",
                word("id"),
                word("text")
            );
        }
    }
    parts
        .into_iter()
        .map(|(part, (rows, right, leaks))| {
            eprintln!("{file} {part}: {right} of {rows}, {leaks} leaks");
            (part, (f64::from(right) / f64::from(rows), leaks))
        })
        .collect()
}

#[test]
fn secrets_are_caught() {
    for (part, (share, _)) in shares("secrets") {
        assert!(share >= 0.95, "{part}: {share}");
    }
}

#[test]
fn what_is_harmless_stays() {
    for (part, (share, _)) in shares("benign") {
        assert!(share >= 0.95, "{part}: {share}");
    }
}

#[test]
fn instructions_are_held_back() {
    for (part, (share, _)) in shares("instructions") {
        assert!(share >= 0.75, "{part}: {share}");
    }
}
