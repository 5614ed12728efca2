//! What later facts do to earlier ones, seen through the verbs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

mod common;

use common::{DAY_MS, Memory, NOON_MS, in_project, request, scope};
use foremind_engine::{Chain, Noted, Outcome, Prompt, Request, Response};
use foremind_types::{
    Change, Record, RecordId, Revision, Role, Scope, Status, SupersedeKind, Supersedes,
};
use serde_json::json;

fn noted(memory: &mut Memory, scope: &Scope, text: &str) -> Noted {
    let remember = request(json!({"verb": "remember", "scope": scope, "text": text}));
    match memory.run(remember).unwrap() {
        Response::Remember { mut records } if records.len() == 1 => records.remove(0),
        other => panic!("{other:?}"),
    }
}

fn history(memory: &mut Memory, scope: &Scope, id: RecordId) -> Vec<Chain> {
    let history = request(json!({"verb": "history", "scope": scope, "id": id}));
    match memory.run(history).unwrap() {
        Response::History { records } => records,
        other => panic!("{other:?}"),
    }
}

fn as_of(memory: &mut Memory, scope: &Scope, query: &str, as_of_ms: i64) -> Prompt {
    let recall = Request::Recall {
        audience: foremind_engine::Audience::Device,
        scope: scope.clone(),
        query: query.to_owned(),
        budget_tokens: 512,
        exposure: foremind_engine::Exposure::Full,
        as_of_ms: Some(as_of_ms),
        deadline_ms: None,
        explain: false,
    };
    match memory.run(recall).unwrap() {
        Response::Recall(prompt) => prompt,
        other => panic!("{other:?}"),
    }
}

fn status(memory: &mut Memory, record: &Record) -> Status {
    memory.get(&scope("ada"), record.id).unwrap().status
}

#[test]
fn what_one_person_did_twice_retires_nothing() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    for [first, second] in [
        [
            "An old friend recommended the kettle near the harbour, note 6.",
            "An old friend sold the garden bench on the night train, note 14.",
        ],
        [
            "A colleague lost a sailing boat before the holidays, note 27.",
            "A colleague repaired a train ticket at the market, note 83.",
        ],
        [
            "The dentist sold the kettle during the conference, ticket 16.",
            "The dentist recommended the kettle during the conference, ticket 136.",
        ],
        [
            "My cousin paid 40 euros for the concert in Leipzig.",
            "My cousin paid 12 euros for lunch beside the old mill.",
        ],
    ] {
        let first = noted(&mut memory, &ada, first);
        memory.now_ms += DAY_MS;
        let second = noted(&mut memory, &ada, second);
        assert_eq!(second.outcome, Outcome::Added, "{:?}", second.record);
        assert_eq!(status(&mut memory, &first.record), Status::Current);
    }
}

#[test]
fn a_change_supersedes_and_the_line_is_kept() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let first = noted(&mut memory, &ada, "The order service runs on MySQL 5.7.");
    memory.now_ms += DAY_MS;
    let second = noted(
        &mut memory,
        &ada,
        "The order service was moved to Postgres 16, it runs on that now.",
    );
    assert_eq!(first.outcome, Outcome::Added);
    assert_eq!(second.outcome, Outcome::Superseded);
    let link = &second.record.supersedes[0];
    assert_eq!(
        (link.id, link.kind),
        (first.record.id, SupersedeKind::Changed)
    );
    assert!(!link.why.is_empty());
    let old = memory.get(&ada, first.record.id).unwrap();
    assert_eq!(old.status, Status::Superseded);
    assert_eq!(old.times.valid_to_ms, Some(memory.now_ms));

    let prompt = memory.recall(&ada, "What does the order service run on?", 512);
    assert!(
        prompt.prompt.contains("Postgres 16") && !prompt.prompt.contains("MySQL"),
        "{}",
        prompt.prompt
    );
    // The words of what was replaced lead to what replaced it.
    let prompt = memory.recall(&ada, "MySQL", 512);
    assert!(
        prompt.prompt.contains("Postgres 16") && !prompt.prompt.contains("MySQL"),
        "{}",
        prompt.prompt
    );
    // As of the first day, the first holds, and the second was not told.
    let asked_ms = NOON_MS + DAY_MS / 2;
    let prompt = as_of(
        &mut memory,
        &ada,
        "What does the order service run on?",
        asked_ms,
    );
    assert!(prompt.prompt.contains("MySQL") && !prompt.prompt.contains("Postgres"));

    let line = history(&mut memory, &ada, second.record.id);
    let ids: Vec<RecordId> = line.iter().map(|link| link.record.id).collect();
    assert_eq!(ids, [first.record.id, second.record.id]);
    assert_eq!(line[0].superseded_by, [second.record.id]);
}

#[test]
fn a_correction_retracts() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let wrong = noted(
        &mut memory,
        &ada,
        "The conference in Lyon starts on 12 May.",
    );
    memory.now_ms += DAY_MS;
    let right = noted(
        &mut memory,
        &ada,
        "I got that wrong, the conference in Lyon starts on 14 May.",
    );
    assert_eq!(right.outcome, Outcome::Corrected);
    assert_eq!(status(&mut memory, &wrong.record), Status::Retracted);
    // It was never true, so it is not of the past either.
    let prompt = as_of(
        &mut memory,
        &ada,
        "When does the conference in Lyon start?",
        NOON_MS + 1,
    );
    assert!(!prompt.prompt.contains("12 May"), "{}", prompt.prompt);
}

#[test]
fn what_is_added_or_another_s_or_a_part_retires_nothing() {
    for (first, second) in [
        ("I speak Dutch.", "I also speak Greek."),
        (
            "I take metformin with dinner.",
            "The doctor added atorvastatin, I take it as well.",
        ),
        (
            "I live in Bristol near the docks.",
            "My sister has moved to Leeds, she lives there now.",
        ),
        (
            "The invoicing database is hosted in Frankfurt.",
            "The analytics database was moved to Stockholm.",
        ),
        (
            "Our on-call pair is Deepa and Anton.",
            "Anton is off the on-call rota now.",
        ),
        (
            "The deposit for our flat is 2,400 francs.",
            "The deposit for our flat is 2,400 euros.",
        ),
        (
            "I have Fridays off.",
            "At my husband's firm nobody has Fridays off from now on.",
        ),
        (
            "I am allergic to peanuts.",
            "I am allergic to shellfish now.",
        ),
    ] {
        let (mut memory, ada) = (Memory::new(), scope("ada"));
        let earlier = noted(&mut memory, &ada, first);
        memory.now_ms += DAY_MS;
        noted(&mut memory, &ada, second);
        let status = status(&mut memory, &earlier.record);
        assert_eq!(status, Status::Current, "{first} | {second}");
    }
}

#[test]
fn a_plan_is_current_on_its_day_and_can_be_dropped() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let old = noted(&mut memory, &ada, "Our internet plan costs 39 a month.");
    memory.now_ms += DAY_MS;
    let plan = noted(
        &mut memory,
        &ada,
        "From 1 January our internet plan costs 44 a month.",
    );
    assert_eq!(plan.outcome, Outcome::Planned);
    let from_ms = plan.record.times.valid_from_ms.unwrap();
    assert_eq!(status(&mut memory, &old.record), Status::Current);
    let prompt = memory.recall(&ada, "What does our internet plan cost?", 512);
    assert!(prompt.prompt.contains("39 a month") && prompt.prompt.contains("until 2026-12-31"));
    assert!(prompt.prompt.contains("from 2027-01-01"));
    memory.now_ms = from_ms;
    assert_eq!(status(&mut memory, &old.record), Status::Superseded);
    let prompt = memory.recall(&ada, "What does our internet plan cost?", 512);
    assert!(!prompt.prompt.contains("39 a month") && prompt.prompt.contains("44 a month"));
    // Forgotten before its day, it replaces nothing.
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let old = noted(&mut memory, &ada, "Our internet plan costs 39 a month.");
    let plan = noted(
        &mut memory,
        &ada,
        "From 1 January our internet plan costs 44 a month.",
    );
    memory.forget(&ada, json!({"id": plan.record.id})).unwrap();
    memory.now_ms = from_ms;
    assert_eq!(status(&mut memory, &old.record), Status::Current);
    // Forgotten afterwards, it brings nothing back.
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let old = noted(&mut memory, &ada, "Our internet plan costs 39 a month.");
    let plan = noted(
        &mut memory,
        &ada,
        "From 1 January our internet plan costs 44 a month.",
    );
    memory.now_ms = from_ms;
    memory.forget(&ada, json!({"id": plan.record.id})).unwrap();
    assert_eq!(status(&mut memory, &old.record), Status::Superseded);
}

#[test]
fn an_exception_ends_and_the_lasting_value_was_never_retired() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let lasting = noted(&mut memory, &ada, "I start work at eight.");
    memory.now_ms += DAY_MS;
    let exception = noted(
        &mut memory,
        &ada,
        "For the next two weeks I start work at six.",
    );
    assert_eq!(status(&mut memory, &lasting.record), Status::Current);
    memory.now_ms += 15 * DAY_MS;
    assert_eq!(status(&mut memory, &exception.record), Status::Expired);
    assert_eq!(status(&mut memory, &lasting.record), Status::Current);
    let prompt = memory.recall(&ada, "When do I start work?", 512);
    assert!(prompt.prompt.contains("at eight"));
    let mut over = prompt.prompt.lines().filter(|line| line.contains("at six"));
    assert!(
        over.all(|line| line.ends_with("; past)")),
        "{}",
        prompt.prompt
    );
}

#[test]
fn what_may_have_been_replaced_is_shown_as_outdated_since_then() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let earlier = noted(
        &mut memory,
        &ada,
        "My working day is nine to five, quite ordinary.",
    );
    memory.now_ms += 30 * DAY_MS;
    // Doubt is written down when it is told; here it is set.
    let mut later = noted(&mut memory, &ada, "The ferry to the island leaves at noon.").record;
    later.id = RecordId::new(memory.now_ms, [9; 10]);
    later.text = "These days my working day is noon until eight.".to_owned();
    later.supersedes = vec![Supersedes {
        id: earlier.record.id,
        kind: SupersedeKind::Conflict,
        why: "may take its place".to_owned(),
    }];
    memory.commit(vec![Change::Add(Box::new(later))]);
    let prompt = memory.recall(&ada, "When is my working day?", 512).prompt;
    let line = |part: &str| {
        let found = prompt.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("{prompt}")).to_owned()
    };
    assert!(line("nine to five").ends_with("(user, 2026-11-29; may be outdated since 2026-12-29)"));
    assert!(line("noon until eight").ends_with("(user, 2026-12-29; conflicting)"));
}

#[test]
fn a_trouble_that_was_settled_until_a_day_does_not_come_back() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let trouble = noted(
        &mut memory,
        &ada,
        "The certificate of the web shop has expired.",
    );
    memory.now_ms += DAY_MS;
    let settled = noted(
        &mut memory,
        &ada,
        "The certificate of the web shop is renewed, it is valid until next March.",
    );
    let links = &settled.record.supersedes;
    assert_eq!(links[0].kind, SupersedeKind::Changed, "{links:?}");
    assert_eq!(status(&mut memory, &trouble.record), Status::Superseded);
}

#[test]
fn a_turn_of_thousands_of_contradictions_and_equal_times_have_a_result() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let turn: String = (0..3_000)
        .map(|n| format!("The notice period on our flat is {n} weeks. "))
        .collect();
    let ingest = json!({
        "verb": "ingest", "scope": ada, "thread": "t", "turn": "1", "role": "user", "text": turn,
    });
    let Response::Ingest { records, .. } = memory.run(request(ingest)).unwrap() else {
        panic!("another verb");
    };
    assert!(records.len() > 200, "{}", records.len());
    // All were told at one time: what was said last is never among the replaced.
    let last = records.last().unwrap();
    assert_eq!(status(&mut memory, &last.record), Status::Current);
    let prompt = memory.recall(&ada, "What is the notice period on our flat?", 512);
    assert!(!prompt.prompt.is_empty() && prompt.tokens <= 512);
}

#[test]
fn nothing_reaches_over_scopes_or_roles() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let mine = noted(&mut memory, &ada, "The order service runs on MySQL 5.7.");
    let text = "The order service was moved to Postgres 16, it runs on that now.";
    for other in [scope("bob"), in_project("ada", "p")] {
        let told = noted(&mut memory, &other, text);
        assert!(told.record.supersedes.is_empty());
    }
    let remember = json!({"verb": "remember", "scope": ada, "text": text, "role": "assistant"});
    memory.run(request(remember)).unwrap();
    assert_eq!(status(&mut memory, &mine.record), Status::Current);
}

#[test]
fn a_clock_that_runs_backwards_ends_nothing_before_it_was_told() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let first = noted(&mut memory, &ada, "The order service runs on MySQL 5.7.");
    memory.now_ms -= 100 * DAY_MS;
    noted(
        &mut memory,
        &ada,
        "The order service was moved to Postgres 16, it runs on that now.",
    );
    let old = memory.get(&ada, first.record.id).unwrap();
    assert_eq!(old.status, Status::Superseded);
    assert_eq!(old.times.valid_to_ms, Some(first.record.times.told_ms));
}

#[test]
fn circles_of_replacement_end() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let mut records: Vec<Record> = (0..3)
        .map(|n| noted(&mut memory, &ada, &format!("Fact {n} is about violins.")).record)
        .collect();
    let ids: Vec<RecordId> = records.iter().map(|record| record.id).collect();
    // As an import may bring them: each replaces the next, the last the first, and each itself.
    let mut changes = Vec::new();
    for (at, record) in records.iter_mut().enumerate() {
        record.id = RecordId::new(NOON_MS, [at as u8 + 1; 10]);
        record.provenance.role = Role::User;
    }
    let fresh: Vec<RecordId> = records.iter().map(|record| record.id).collect();
    for (at, mut record) in records.into_iter().enumerate() {
        record.supersedes = [fresh[(at + 1) % 3], fresh[at]]
            .map(|id| Supersedes {
                id,
                kind: SupersedeKind::Changed,
                why: String::new(),
            })
            .to_vec();
        record.status = Status::Superseded;
        changes.push(Change::Add(Box::new(record)));
    }
    memory.commit(changes);
    let line = history(&mut memory, &ada, fresh[0]);
    assert_eq!(line.len(), 3);
    // What is replaced by a circle leads nowhere.
    for id in ids {
        memory.forget(&ada, json!({"id": id})).unwrap();
    }
    let prompt = memory.recall(&ada, "violins", 512);
    assert_eq!(prompt.prompt, "");
}

#[test]
fn forgetting_the_last_of_a_line_brings_nothing_back() {
    let (mut memory, ada) = (Memory::lexical(), scope("ada"));
    let mut last = None;
    for text in [
        "My salary is 50,000 before tax.",
        "My salary is 55,000 before tax now.",
        "My salary is 60,000 before tax now.",
    ] {
        memory.now_ms += DAY_MS;
        last = Some(noted(&mut memory, &ada, text).record.id);
    }
    memory.forget(&ada, json!({"id": last.unwrap()})).unwrap();
    let prompt = memory.recall(&ada, "What is my salary before tax?", 512);
    assert_eq!(prompt.prompt, "");
}

#[test]
fn statuses_that_other_writers_set_do_not_depend_on_order() {
    // Two writers replace the same record at once; each adds its own and ends the first.
    let (mut one, ada) = (Memory::lexical(), scope("ada"));
    let first = noted(&mut one, &ada, "My salary is 50,000 before tax.");
    let mut other = Memory::lexical();
    other.now_ms = one.now_ms;
    let revise = |at_ms: i64| Change::Revise {
        id: first.record.id,
        revision: Revision::Status {
            status: Status::Superseded,
            valid_to_ms: Some(at_ms),
        },
    };
    let shared = one.entries[0].clone();
    let entry = |writer: u64, at_ms: i64| foremind_types::Entry {
        writer: foremind_types::WriterId(writer),
        counter: 0,
        lamport: 2,
        at_ms,
        changes: vec![revise(at_ms)],
    };
    let (a, b) = (entry(7, NOON_MS + 1), entry(8, NOON_MS + 2));
    for apply in [&shared, &a, &b] {
        other.engine.apply(apply.clone());
    }
    one.engine.apply(b);
    one.engine.apply(a);
    assert_eq!(one.engine.state_digest(), other.engine.state_digest());
}

#[test]
fn what_has_a_digit_and_what_is_a_name_is_merged_with_nothing_else() {
    for (one, other) in [
        ("w1x2", "w1x22"),
        ("AB3e", "AB3"),
        ("R2D2s", "R2D2"),
        ("Jenni", "Jennie"),
        ("Hanna", "Hannas"),
    ] {
        let mut memory = Memory::new();
        let ada = scope("ada");
        for name in [one, other] {
            memory.remember(
                &ada,
                &format!("Locker {name} of the depot holds blue paint"),
            );
        }
        let listed = memory.run(request(json!({"verb": "list", "scope": ada})));
        let texts = format!("{listed:?}").matches("Locker").count();
        assert_eq!(texts, 2, "{one} {other}");
    }
}
