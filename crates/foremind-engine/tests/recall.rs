//! What a question brings back beside what looks like it, in which order, and what of it is told.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

mod common;

use common::{DAY_MS, Memory, NOON_MS, name, request, scope};
use foremind_engine::{Prompt, Request, Response};
use foremind_types::Scope;
use serde_json::json;

fn ask(memory: &mut Memory, scope: &Scope, query: &str, more: serde_json::Value) -> Prompt {
    let mut asked =
        json!({"verb": "recall", "scope": scope, "query": query, "budgetTokens": 2_000});
    for (field, value) in more.as_object().unwrap() {
        asked[field] = value.clone();
    }
    match memory.run(request(asked)).unwrap() {
        Response::Recall(prompt) => prompt,
        other => panic!("{other:?}"),
    }
}

/// All texts that are shown, as the search ranks them.
fn found(prompt: &Prompt) -> Vec<&str> {
    let mut all: Vec<_> = prompt
        .context
        .iter()
        .chain(&prompt.joined)
        .chain(&prompt.profile)
        .collect();
    all.sort_by_key(|shown| shown.explain.as_ref().map_or(u32::MAX, |e| e.rank));
    all.iter().map(|shown| shown.record.text.as_str()).collect()
}

fn say(memory: &mut Memory, scope: &Scope, thread: &str, turn: &str, text: &str) {
    let said = Request::Remember {
        scope: scope.clone(),
        text: text.to_owned(),
        role: foremind_types::Role::User,
        thread: Some(name(thread)),
        turn: Some(name(turn)),
        tier: None,
    };
    memory.run(said).unwrap();
}

#[test]
fn a_name_leads_from_one_fact_to_the_other() {
    for mut memory in [Memory::new(), Memory::lexical()] {
        let ada = scope("ada");
        memory.remember(&ada, "The parcel for my brother went with courier Veloxa.");
        memory.remember(&ada, "The depot of Veloxa closes at six on weekdays.");
        memory.remember(&ada, "The bakery on the corner sells rye bread.");
        let prompt = ask(
            &mut memory,
            &ada,
            "who has the parcel for my brother?",
            json!({"explain": true}),
        );
        let found = found(&prompt);
        assert!(
            found[0].contains("parcel") && found[1].contains("depot"),
            "{found:?}"
        );
        assert!(
            !found.iter().any(|text| text.contains("bakery")),
            "{found:?}"
        );
        let second = prompt
            .context
            .iter()
            .find(|shown| shown.record.text.contains("depot"))
            .unwrap();
        assert!(second.why.contains(&"name".to_owned()), "{:?}", second.why);
        assert!(second.explain.as_ref().unwrap().names > 0.0);
    }
}

#[test]
fn an_identifier_is_found_whole_before_what_shares_its_parts() {
    let mut memory = Memory::lexical();
    let ada = scope("ada");
    for text in [
        "Mail is queued on db-7.north.example",
        "db-8.north.example stores our invoices",
        "The maps come from db-7.south.example",
    ] {
        memory.remember(&ada, text);
    }
    let prompt = ask(
        &mut memory,
        &ada,
        "what happened to db-8.north.example?",
        json!({"explain": true}),
    );
    assert!(
        found(&prompt)[0].contains("db-8.north"),
        "{:?}",
        found(&prompt)
    );
}

#[test]
fn what_was_said_next_comes_with_what_was_asked_for() {
    let mut memory = Memory::new();
    let ada = scope("ada");
    say(
        &mut memory,
        &ada,
        "monday",
        "1",
        "We talked about the lake cottage painting",
    );
    memory.now_ms += 60_000;
    say(
        &mut memory,
        &ada,
        "monday",
        "2",
        "Two hundred euros seemed fair to everybody",
    );
    memory.now_ms += 60_000;
    say(
        &mut memory,
        &ada,
        "tuesday",
        "1",
        "Seventy crates arrived at noon",
    );
    let prompt = ask(
        &mut memory,
        &ada,
        "lake cottage painting",
        json!({"explain": true}),
    );
    let found = found(&prompt);
    assert!(found[0].contains("painting"), "{found:?}");
    assert!(found.iter().any(|text| text.contains("euros")), "{found:?}");
    assert!(
        !found.iter().any(|text| text.contains("crates")),
        "{found:?}"
    );
}

#[test]
fn another_scope_s_conversation_stays_there() {
    let mut memory = Memory::new();
    let (ada, bob) = (scope("ada"), scope("bob"));
    say(
        &mut memory,
        &ada,
        "monday",
        "1",
        "We talked about the lake cottage painting",
    );
    say(
        &mut memory,
        &bob,
        "monday",
        "2",
        "Two hundred euros seemed fair to everybody",
    );
    let prompt = ask(&mut memory, &ada, "lake cottage painting", json!({}));
    assert_eq!(found(&prompt).len(), 1);
}

#[test]
fn a_named_time_brings_what_was_told_then() {
    let mut memory = Memory::lexical();
    let ada = scope("ada");
    for (days, text) in [
        (60, "The plumber repaired the boiler"),
        (9, "The plumber looked at the sink"),
        (1, "The carpenter measured the stairs"),
    ] {
        memory.now_ms = NOON_MS - days * DAY_MS;
        memory.remember(&ada, text);
    }
    memory.now_ms = NOON_MS;
    // Two months before the end of November.
    let prompt = ask(
        &mut memory,
        &ada,
        "What did the plumber do in September?",
        json!({"explain": true}),
    );
    assert!(found(&prompt)[0].contains("boiler"), "{:?}", found(&prompt));
    let prompt = ask(
        &mut memory,
        &ada,
        "What happened yesterday?",
        json!({"explain": true}),
    );
    assert_eq!(found(&prompt), ["The carpenter measured the stairs"]);
    let mut shown = prompt
        .context
        .iter()
        .chain(&prompt.joined)
        .chain(&prompt.profile);
    assert!(shown.next().unwrap().explain.as_ref().unwrap().time > 0.0);
    // Nothing was told then.
    let prompt = ask(&mut memory, &ada, "What happened last year?", json!({}));
    assert!(prompt.context.is_empty());
}

#[test]
fn of_equals_the_later_stands_first() {
    let mut memory = Memory::lexical();
    let ada = scope("ada");
    for (days, text) in [
        (300, "Fennel grew in bed one"),
        (2, "Fennel grew in bed two"),
    ] {
        memory.now_ms = NOON_MS - days * DAY_MS;
        memory.remember(&ada, text);
    }
    memory.now_ms = NOON_MS;
    let prompt = ask(&mut memory, &ada, "fennel", json!({"explain": true}));
    assert!(found(&prompt)[0].ends_with("two"), "{:?}", found(&prompt));
}

#[test]
fn of_statements_that_say_nearly_the_same_the_later_stands_first() {
    let mut memory = Memory::new();
    let ada = scope("ada");
    for number in 0..12 {
        memory.remember(
            &ada,
            &format!("By the way, lamp {number} lights corridor {number}"),
        );
    }
    // The earlier one has more of the question's words.
    for (days, text) in [
        (
            30,
            "By the way, I have watched twenty videos of the Python programming series",
        ),
        (
            3,
            "By the way, I watched thirty videos of the Python series",
        ),
    ] {
        memory.now_ms = NOON_MS - days * DAY_MS;
        memory.remember(&ada, text);
    }
    memory.now_ms = NOON_MS;
    let prompt = ask(
        &mut memory,
        &ada,
        "How many videos of the Python programming series have I watched?",
        json!({"explain": true}),
    );
    let found = found(&prompt);
    assert!(found[0].contains("thirty"), "{found:?}");
    assert!(found[1].contains("twenty"), "{found:?}");
}

#[test]
fn among_hundreds_a_question_that_nothing_answers_gets_nothing() {
    let mut memory = Memory::new();
    let ada = scope("ada");
    let things = ["kettle", "ladder", "mirror", "carpet", "window", "drawer"];
    let places = ["attic", "cellar", "garage", "kitchen", "hallway", "balcony"];
    let deeds = ["painted", "cleaned", "measured", "repaired"];
    for deed in deeds {
        for (at, thing) in things.iter().enumerate() {
            for place in places {
                let text = format!(
                    "By the way, somebody {deed} the {thing} number {at} beside the {place}"
                );
                memory.remember(&ada, &text);
            }
        }
    }
    // One word in common with many.
    let strange = "Which orchestra rehearsed Mahler symphonies beside Salzburg cathedral?";
    assert!(
        ask(&mut memory, &ada, strange, json!({}))
            .context
            .is_empty()
    );
    let known = "Who repaired the ladder beside the cellar?";
    let prompt = ask(&mut memory, &ada, known, json!({"explain": true}));
    assert_eq!(
        found(&prompt)[0],
        "By the way, somebody repaired the ladder number 1 beside the cellar"
    );
}

#[test]
fn equal_times_have_one_order() {
    let texts = [
        "Fennel grew in the herb bed",
        "Nadia painted the bed frame green",
        "The tulips in their bed froze",
    ];
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]].map(|order| {
        let mut memory = Memory::new();
        let ada = scope("ada");
        for at in order {
            memory.remember(&ada, texts[at]);
        }
        let all = ask(&mut memory, &ada, "which bed?", json!({})).prompt;
        assert_eq!(all, ask(&mut memory, &ada, "which bed?", json!({})).prompt);
        texts.iter().filter(|text| all.contains(**text)).count()
    });
    assert!(orders[0] >= 2 && orders == [orders[0]; 3], "{orders:?}");
}

#[test]
fn forms_of_a_word_find_each_other() {
    for (told, asked) in [
        ("Wir haben drei Wohnungen besichtigt", "welche Wohnung?"),
        ("J'ai acheté deux chevaux et des maisons", "la maison"),
        ("昨日は京都の抹茶を買いました", "抹茶はどこ"),
        ("เมื่อวานซื้อมะม่วงที่ตลาด", "มะม่วง"),
        (
            "The cyclists were training near the canal",
            "who trains at canals?",
        ),
    ] {
        let mut memory = Memory::lexical();
        let ada = scope("ada");
        memory.remember(&ada, told);
        memory.remember(&ada, "Nothing else was noted on that evening");
        let prompt = ask(&mut memory, &ada, asked, json!({"explain": true}));
        assert_eq!(found(&prompt)[0], told, "{asked}");
    }
}

#[test]
fn a_search_that_runs_out_of_work_says_so() {
    let mut memory = Memory::new();
    let ada = scope("ada");
    for n in 0..40 {
        memory.remember(
            &ada,
            &format!("Crate {n} of apricots stands in shed {}", n % 7),
        );
    }
    let all = ask(
        &mut memory,
        &ada,
        "apricots in shed 3",
        json!({"deadlineMs": 1_000}),
    );
    assert!(!all.partial && !all.context.is_empty());
    // No work at all: no context, and no error.
    let none = ask(
        &mut memory,
        &ada,
        "apricots in shed 3",
        json!({"deadlineMs": 0}),
    );
    assert!(none.partial && none.context.is_empty());
    assert!(serde_json::to_value(&all).unwrap().get("partial").is_none());
}

#[test]
fn only_who_asks_is_told_how_items_were_found() {
    let mut memory = Memory::new();
    let ada = scope("ada");
    memory.remember(&ada, "I am allergic to tree nuts");
    memory.remember(&ada, "My sister sold the sailing boat in Porto");
    let silent = ask(&mut memory, &ada, "sailing boat", json!({}));
    assert!(silent.context.iter().all(|shown| shown.explain.is_none()));
    let told = ask(
        &mut memory,
        &ada,
        "sailing boat with tree nuts",
        json!({"explain": true}),
    );
    let explain = told.context[0].explain.as_ref().unwrap();
    assert!(explain.words > 0.0 && explain.meaning.is_some() && explain.score > 0.0);
    // What stands in the profile has its place in the ranking too.
    assert!(told.profile[0].explain.is_some());
    let mut ranks: Vec<u32> = told
        .context
        .iter()
        .chain(&told.profile)
        .map(|s| s.explain.as_ref().unwrap().rank)
        .collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [1, 2]);
}

#[test]
fn queries_without_content_are_bounded_and_empty() {
    let mut memory = Memory::lexical();
    let ada = scope("ada");
    memory.remember(&ada, "My sister sold the sailing boat in Porto");
    for query in [
        "what is it that I have?",
        "and or of the",
        "?!",
        "𐎀𐎁𐎂 𐎃𐎄",
        "ᚠᚢᚦᚨᚱᚲ",
        &"zzqx ".repeat(20_000),
        &"9".repeat(100_000),
    ] {
        let prompt = ask(&mut memory, &ada, query, json!({}));
        assert!(
            prompt.context.is_empty(),
            "{}",
            &query[..query.len().min(20)]
        );
    }
}
