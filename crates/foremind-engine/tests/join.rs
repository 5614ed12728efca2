//! Facts that bear on a question although they do not look like it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a failing helper is a failing test; not every test uses every helper"
)]

mod common;

use common::{Memory, scope};
use foremind_engine::{Exposure, Prompt, Request, Response};

fn asked(memory: &mut Memory, query: &str, exposure: Exposure) -> Prompt {
    let request = Request::Recall {
        audience: foremind_engine::Audience::Device,
        scope: scope("ada"),
        query: query.to_owned(),
        budget_tokens: 512,
        exposure,
        as_of_ms: None,
        deadline_ms: None,
        explain: false,
    };
    match memory.run(request).unwrap() {
        Response::Recall(prompt) => prompt,
        other => panic!("{other:?}"),
    }
}

const MARBLE: &str = "We put marble worktops in the kitchen.";

#[test]
fn a_fact_is_joined_to_a_question_about_what_it_affects_and_says_why() {
    let mut memory = Memory::new();
    memory.remember(&scope("ada"), MARBLE);
    let prompt = asked(
        &mut memory,
        "Is vinegar good against limescale?",
        Exposure::Full,
    );
    let shown = prompt.profile.iter().chain(&prompt.joined);
    let why: Vec<&String> = shown.flat_map(|shown| &shown.why).collect();
    let tie =
        "affects: home (marble -> acids, \"vinegar\"; Natural Stone Institute: Care & Cleaning)";
    assert!(why.iter().any(|why| *why == tie), "{why:#?}");
    assert!(prompt.prompt.contains("marble worktops"));
}

#[test]
fn minimal_exposure_hides_what_does_not_matter_and_never_what_could_harm() {
    let mut memory = Memory::new();
    memory.remember(&scope("ada"), MARBLE);
    memory.remember(&scope("ada"), "I'm severely allergic to tree nuts.");
    let beside = asked(&mut memory, "Who painted the Mona Lisa?", Exposure::Minimal);
    assert!(!beside.prompt.contains("marble"), "{}", beside.prompt);
    assert!(beside.prompt.contains("tree nuts"), "{}", beside.prompt);
    let about = asked(
        &mut memory,
        "Is vinegar good against limescale?",
        Exposure::Minimal,
    );
    assert!(about.prompt.contains("marble"), "{}", about.prompt);
}

#[test]
fn an_uncertain_question_shows_the_profile() {
    let mut memory = Memory::new();
    memory.remember(&scope("ada"), "I don't eat pork.");
    let uncertain = asked(&mut memory, "Hm?", Exposure::Minimal);
    assert_eq!(uncertain.domains, []);
    assert!(uncertain.prompt.contains("pork"), "{}", uncertain.prompt);
    let elsewhere = asked(&mut memory, "Fix this regex, please.", Exposure::Minimal);
    assert!(!elsewhere.prompt.contains("pork"), "{}", elsewhere.prompt);
}

#[test]
fn the_whole_prompt_keeps_the_budget() {
    let mut memory = Memory::new();
    for fact in [
        MARBLE,
        "I don't eat pork.",
        "I'm allergic to shellfish.",
        "I take warfarin.",
        "We have two cats.",
        "I was diagnosed with gout.",
    ] {
        memory.remember(&scope("ada"), fact);
    }
    for budget_tokens in [1, 60, 100, 150, 250] {
        for exposure in [Exposure::Full, Exposure::Minimal] {
            let request = Request::Recall {
                audience: foremind_engine::Audience::Device,
                scope: scope("ada"),
                query: "A seafood recipe with beer and spinach?".to_owned(),
                budget_tokens,
                exposure,
                as_of_ms: None,
                deadline_ms: None,
                explain: false,
            };
            let Response::Recall(prompt) = memory.run(request).unwrap() else {
                panic!("not a recall");
            };
            assert!(prompt.tokens <= budget_tokens, "{budget_tokens}");
            assert_eq!(
                prompt.tokens,
                foremind_engine::estimate_tokens(&prompt.prompt)
            );
        }
    }
}
