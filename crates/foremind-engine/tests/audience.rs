//! What a model elsewhere is shown.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

mod common;

use common::{Memory, request, scope};
use foremind_engine::{Prompt, Response, restored};
use foremind_types::Scope;
use serde_json::json;

fn recall(memory: &mut Memory, scope: &Scope, query: &str, audience: Option<&str>) -> Prompt {
    let mut asked = json!({"verb": "recall", "scope": scope, "query": query, "budgetTokens": 4096});
    if let Some(audience) = audience {
        asked["audience"] = audience.into();
    }
    match memory.run(request(asked)).unwrap() {
        Response::Recall(prompt) => prompt,
        other => panic!("{other:?}"),
    }
}

/// The line of one record told alone, for each audience, with its prompt.
fn told(text: &str) -> (Prompt, Prompt) {
    let mut memory = Memory::new();
    let ada = scope("ada");
    let tell = json!({"verb": "remember", "scope": ada, "text": text, "tier": "profile"});
    memory.run(request(tell)).unwrap();
    let remote = recall(&mut memory, &ada, "what do you know?", None);
    let device = recall(&mut memory, &ada, "what do you know?", Some("device"));
    (remote, device)
}

#[test]
fn a_model_elsewhere_is_the_default_and_sees_constraints_and_placeholders() {
    let (remote, device) = told("I'm allergic to tree nuts");
    assert!(
        remote.prompt.contains("allergy: \"avoid: tree nuts\""),
        "{}",
        remote.prompt
    );
    assert!(device.prompt.contains("\"I'm allergic to tree nuts\""));
    assert!(device.pseudonyms.is_empty());
    let (remote, device) = told("My son Theo and my niece Saoirse share Theo's room");
    assert_eq!(remote.pseudonyms.len(), 2, "{}", remote.prompt);
    assert!(!remote.prompt.contains("Theo") && !remote.prompt.contains("Saoirse"));
    assert_eq!(
        remote
            .prompt
            .matches(&remote.pseudonyms[0].placeholder)
            .count(),
        2
    );
    assert_eq!(restored(&remote.prompt, &remote.pseudonyms), device.prompt);
    let answer = format!("Ask {}!", remote.pseudonyms[0].placeholder);
    assert_eq!(restored(&answer, &remote.pseudonyms), "Ask Theo!");
    assert_eq!(
        restored("[name-zzzzz] [", &remote.pseudonyms),
        "[name-zzzzz] ["
    );
}

#[test]
fn a_name_has_one_placeholder_in_a_memory_and_another_one_elsewhere() {
    let ada = scope("ada");
    let placeholders = |salt: u8| {
        let mut memory = Memory::new();
        memory.engine.salt([salt; 16]);
        for text in ["My son Theo is vegan", "My boss is called Theo"] {
            let tell = json!({"verb": "remember", "scope": ada, "text": text, "tier": "profile"});
            memory.run(request(tell)).unwrap();
        }
        let prompt = recall(&mut memory, &ada, "who?", None);
        assert_eq!(prompt.pseudonyms.len(), 1, "{}", prompt.prompt);
        prompt.pseudonyms[0].placeholder.clone()
    };
    assert_eq!(placeholders(1), placeholders(1));
    assert_ne!(placeholders(1), placeholders(2));
}

/// Two hundred facts with names, addresses and numbers (`tests/data/audience/facts.tsv`).
#[test]
fn no_identifier_is_shown_and_every_constraint_is() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/audience/facts.tsv"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), 200);
    let (mut raw, mut inexact, mut lost, mut constraints) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for row in &rows {
        let (remote, device) = told(row[0]);
        assert!(!remote.profile.is_empty(), "dropped: {}", row[0]);
        let shown = &remote.profile[0].line;
        let whole = &device.profile[0].line;
        for identifier in row[1].split('|').filter(|one| shown.contains(one)) {
            raw.push(format!("{identifier}: {shown}"));
        }
        let back = restored(shown, &remote.pseudonyms);
        // What the guard took out before it was stored is nothing to restore.
        let known = row[1].split('|').filter(|one| whole.contains(one));
        if back != *whole && !shown.contains("avoid: ")
            || known.into_iter().any(|one| !back.contains(one))
        {
            inexact.push(format!("{back} | {whole}"));
        }
        if !row[2].is_empty() {
            constraints += 1;
            // A constraint is kept as it was told, or as what to avoid.
            let ends = row[2].match_indices(' ').map(|(at, _)| &row[2][at + 1..]);
            let avoided = ends
                .into_iter()
                .any(|end| shown.contains(&format!("avoid: {end}")));
            if !shown.contains(row[2]) && !avoided {
                lost.push(format!("{}: {shown}", row[2]));
            }
        }
    }
    let kept = 1.0 - lost.len() as f64 / f64::from(constraints);
    println!(
        "raw identifiers shown {}, restore exact {:.3}, constraints kept {kept:.3} of {constraints}",
        raw.len(),
        1.0 - inexact.len() as f64 / rows.len() as f64,
    );
    let wrong = [raw, inexact].concat().join("\n");
    assert!(
        wrong.is_empty() && kept >= 0.97,
        "{wrong}\n{}",
        lost.join("\n")
    );
}
