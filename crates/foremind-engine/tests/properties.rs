//! What holds for any input: the budget, convergence, scope, the frame.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

mod common;

use std::collections::BTreeSet;

use common::{Memory, NOON_MS, embedding, in_project, name, request, scope};
use foremind_engine::{Engine, Exposure, Prompt, Request, Response, estimate_tokens};
use foremind_types::{
    Change, Domain, Entry, Grade, Judgement, Layer, Provenance, Record, RecordId, Revision, Role,
    Route, Scope, Severity, Stage, Status, Subject, SupersedeKind, Supersedes, Tier, Times, Ttl,
    WriterId,
};
use proptest::prelude::*;
use serde_json::json;

fn id(n: u8) -> RecordId {
    RecordId::new(NOON_MS, [n; 10])
}

fn route() -> impl Strategy<Value = Route> {
    (
        proptest::sample::select(Grade::ALL),
        0_u32..=10_000,
        proptest::sample::select(Severity::ALL),
        proptest::sample::select(vec![
            Domain::Allergy,
            Domain::Hobby,
            Domain::Legal,
            Domain::General,
        ]),
        proptest::sample::select(Stage::ALL),
        proptest::sample::select(Judgement::ALL),
        prop_oneof![
            Just(Ttl::Permanent),
            (-2_i64..3).prop_map(|day| Ttl::Dated {
                until_ms: NOON_MS + day * common::DAY_MS
            }),
        ],
    )
        .prop_map(
            |(grade, priority, severity, domain, stage, judgement, ttl)| Route {
                grade,
                tier: if grade == Grade::Informer {
                    Tier::Store
                } else {
                    Tier::Profile
                },
                priority: priority as f32 / 1e4,
                severity,
                domain,
                affects: Vec::new(),
                ttl,
                score: 0.5,
                reasons: Vec::new(),
                stage,
                judgement,
            },
        )
}

/// Texts of many scripts, with what could break a frame.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(I|my|nut|macaron|Lisbon|7|visa|cake|dog)( (nut|macaron|Lisbon|12|visa|cake|dog|never)){0,12}",
        1 => "\\PC{1,60}",
        1 => "[花生过敏ナッツ땅콩แพ้ถั่ว🥜👩🏽‍⚕️ ]{1,40}",
        1 => "(</memory>|\n|\t|\"|`|- allergy: \"x\" \\(user, 2026-01-01\\)|Profile:|\u{202e}|\u{200b}|\u{2028}|<memory>){1,12}",
        1 => "([a-z]{3,12} ){60,120}",
    ]
}

fn told_in() -> impl Strategy<Value = Scope> {
    proptest::sample::select(vec![
        scope("ada"),
        scope("bob"),
        in_project("ada", "p"),
        in_project("ada", "q"),
        Scope {
            thread: Some(name("t")),
            ..scope("ada")
        },
        Scope {
            agent: Some(name("a")),
            ..in_project("ada", "p")
        },
    ])
}

fn record() -> impl Strategy<Value = Record> {
    (
        any::<u8>(),
        told_in(),
        text(),
        route(),
        proptest::sample::select(Status::ALL),
        -3_i64..3,
        proptest::option::of(0_u8..6),
    )
        .prop_map(|(n, scope, text, route, status, day, supersedes)| Record {
            id: id(n),
            scope,
            text,
            layer: Layer::Fact,
            route,
            subject: Subject::Owner,
            attribute: None,
            value: None,
            times: Times {
                told_ms: NOON_MS + day * common::DAY_MS,
                utc_offset_min: 60,
                valid_from_ms: None,
                valid_to_ms: None,
            },
            // Mostly current; erasure is no status that an addition can have.
            status: if status == Status::Erased {
                Status::Current
            } else {
                status
            },
            supersedes: supersedes
                .map(|n| Supersedes {
                    id: id(n),
                    kind: SupersedeKind::Changed,
                    why: String::new(),
                })
                .into_iter()
                .collect(),
            evidence: Vec::new(),
            provenance: Provenance {
                role: Role::User,
                thread: None,
                turn: None,
                statement: 0,
            },
            confirmed_ms: None,
            proof_count: 1,
        })
}

fn memory_of(records: &[Record], encoded: bool) -> Memory {
    let mut memory = Memory::new();
    let mut added = BTreeSet::new();
    for record in records {
        let mut changes = vec![Change::Add(Box::new(record.clone()))];
        // The first addition of an id counts, so the vector is of its text.
        if added.insert(record.id) && encoded {
            changes.push(Change::Embed {
                id: record.id,
                embedding: embedding(&record.text, "words"),
            });
        }
        memory.commit(changes);
    }
    memory
}

/// The frame of a prompt is intact, and holds the lines that the response names.
fn check_frame(prompt: &Prompt) {
    let lines: Vec<&str> = prompt.prompt.split('\n').collect();
    if prompt.profile.is_empty() && prompt.context.is_empty() {
        assert_eq!((prompt.prompt.as_str(), prompt.tokens), ("", 0));
        return;
    }
    let mut expected = vec!["<memory>".to_owned(), lines[1].to_owned()];
    for (heading, section) in [("Profile:", &prompt.profile), ("Context:", &prompt.context)] {
        if !section.is_empty() {
            expected.push(heading.to_owned());
            expected.extend(section.iter().map(|shown| shown.line.clone()));
        }
    }
    expected.push("</memory>".to_owned());
    assert_eq!(lines, expected);
    for line in prompt
        .profile
        .iter()
        .chain(&prompt.context)
        .map(|s| &s.line)
    {
        assert_eq!(line.matches('"').count(), 2, "{line}");
        assert!(line.starts_with("- ") && line.ends_with(')'), "{line}");
        assert!(!line.contains(['<', '>', '`']), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn recall_never_exceeds_its_budget_and_keeps_the_frame(
        records in proptest::collection::vec(record(), 0..40),
        query in text(),
        budget in prop_oneof![1_u32..200, 200_u32..2_000, Just(1_000_000)],
        encoded in any::<bool>(),
    ) {
        prop_assume!(!query.trim().is_empty());
        let mut memory = memory_of(&records, encoded);
        for asker in [scope("ada"), in_project("ada", "p")] {
            let recalled = memory.recall(&asker, &query, budget);
            prop_assert_eq!(estimate_tokens(&recalled.prompt), recalled.tokens);
            prop_assert!(recalled.tokens <= budget);
            check_frame(&recalled);
            prop_assert!(recalled.profile.len() <= 20 && recalled.context.len() <= 12);
            let profile_tokens: u32 = recalled.profile.iter().map(|shown| shown.tokens).sum();
            prop_assert!(u64::from(profile_tokens) * 100 <= u64::from(budget) * 60);
            // Every visible modifier is shown or reported, and nothing twice.
            let named: Vec<RecordId> = recalled.profile.iter().chain(&recalled.context).map(|s| s.record.id)
                .chain(recalled.dropped.iter().map(|d| d.id)).collect();
            let distinct: BTreeSet<RecordId> = named.iter().copied().collect();
            prop_assert_eq!(named.len(), distinct.len());
            for record in memory.list(&asker) {
                if record.route.grade == Grade::Modifier && record.status == Status::Current && asker.sees(&record.scope) {
                    prop_assert!(distinct.contains(&record.id));
                }
            }
            let profile = memory.profile(&asker, budget);
            prop_assert_eq!(&profile.profile, &recalled.profile);
            prop_assert!(estimate_tokens(&profile.prompt) <= budget);
            check_frame(&profile);
        }
    }

    #[test]
    fn scope_never_leaks(
        records in proptest::collection::vec(record(), 0..30),
        query in text(),
        asker in told_in(),
        encoded in any::<bool>(),
    ) {
        prop_assume!(!query.trim().is_empty());
        let mut memory = memory_of(&records, encoded);
        // What an asker gets does not depend on what it cannot see, not even the order of it.
        let mut added = BTreeSet::new();
        let seen: Vec<Record> = records
            .iter()
            // The first addition of an id counts.
            .filter(|record| added.insert(record.id))
            .filter(|record| asker.sees(&record.scope) || asker.contains(&record.scope))
            .cloned()
            .collect();
        let mut alone = memory_of(&seen, encoded);
        prop_assert_eq!(memory.recall(&asker, &query, 700), alone.recall(&asker, &query, 700));
        prop_assert_eq!(memory.list(&asker), alone.list(&asker));
        for verb in ["stats", "pending"] {
            let ask = || request(json!({"verb": verb, "scope": asker}));
            prop_assert_eq!(memory.run(ask()), alone.run(ask()));
        }
        let recalled = memory.recall(&asker, &query, 700);
        for shown in recalled.profile.iter().chain(&recalled.context) {
            prop_assert!(asker.sees(&shown.record.scope));
            prop_assert_eq!(shown.record.status, Status::Current);
        }
        for record in &records {
            let verbs = [json!({"verb": "get"}), json!({"verb": "history"})];
            for mut verb in verbs {
                verb["scope"] = json!(asker);
                verb["id"] = json!(record.id);
                let whole = memory.run(request(verb.clone()));
                prop_assert_eq!(whole, alone.run(request(verb)));
            }
        }
    }
}

/// A change of one of six records.
fn change() -> impl Strategy<Value = Change> {
    let which = || (0_u8..6).prop_map(id);
    let status = proptest::sample::select(vec![
        Status::Current,
        Status::Superseded,
        Status::Retracted,
        Status::Erased,
    ]);
    let revision = prop_oneof![
        (status, proptest::option::of(Just(NOON_MS + 1))).prop_map(|(status, valid_to_ms)| {
            Revision::Status {
                status,
                valid_to_ms,
            }
        }),
        route().prop_map(|route| Revision::Route(Box::new(route))),
        (0_i64..9).prop_map(|at_ms| Revision::Confirmed { at_ms }),
        (0_i64..9, 1_u32..9).prop_map(|(at_ms, proof_count)| Revision::Told { at_ms, proof_count }),
    ];
    prop_oneof![
        4 => (which(), record()).prop_map(|(id, record)| Change::Add(Box::new(Record { id, ..record }))),
        5 => (which(), revision).prop_map(|(id, revision)| Change::Revise { id, revision }),
        2 => (which(), text()).prop_map(|(id, text)| Change::Embed { id, embedding: embedding(&text, "words") }),
        1 => (which(), 0_i64..9).prop_map(|(id, at_ms)| Change::Erase { id, at_ms }),
        1 => (told_in(), "[ab]", which()).prop_map(|(scope, turn, id)| Change::Turn {
            scope,
            thread: name("t"),
            turn: name(&turn),
            records: vec![id],
        }),
    ]
}

/// Entries of two or three writers, and two orders of them.
fn histories() -> impl Strategy<Value = (Vec<Entry>, Vec<Entry>)> {
    proptest::collection::vec(
        (
            1_u64..4,
            0_u64..4,
            proptest::collection::vec(change(), 1..5),
        ),
        0..14,
    )
    .prop_map(|drafts| {
        let mut entries: Vec<Entry> = Vec::new();
        for (writer, ahead, changes) in drafts {
            let own = entries.iter().filter(|e| e.writer == WriterId(writer));
            let (counter, last) = (
                own.clone().count() as u64,
                own.map(|e| e.lamport).max().unwrap_or(0),
            );
            entries.push(Entry {
                writer: WriterId(writer),
                counter,
                lamport: last + 1 + ahead,
                at_ms: NOON_MS,
                changes,
            });
        }
        entries
    })
    .prop_flat_map(|entries| (Just(entries.clone()), Just(entries).prop_shuffle()))
}

/// Everything that can be seen of a state.
fn view(engine: Engine) -> Vec<Response> {
    let mut memory = Memory::lexical();
    memory.engine = engine;
    memory.embedder = Ok(());
    let mut seen = Vec::new();
    for asker in [scope("ada"), scope("bob"), in_project("ada", "p")] {
        let mut requests = vec![
            Request::Recall {
                audience: foremind_engine::Audience::Device,
                scope: asker.clone(),
                query: "macaron nut Lisbon 花生 dog".to_owned(),
                budget_tokens: 900,
                as_of_ms: None,
                exposure: Exposure::Full,
                deadline_ms: None,
                explain: false,
            },
            Request::Recall {
                audience: foremind_engine::Audience::Device,
                scope: asker.clone(),
                query: "visa cake 12".to_owned(),
                budget_tokens: 300,
                as_of_ms: None,
                exposure: Exposure::Minimal,
                deadline_ms: None,
                explain: false,
            },
        ];
        for verb in ["list", "stats", "pending"] {
            requests.push(request(json!({"verb": verb, "scope": asker})));
        }
        seen.extend(requests.into_iter().map(|r| memory.run(r).unwrap()));
        for n in 0..6 {
            let history = json!({"verb": "history", "scope": asker, "id": id(n)});
            seen.extend(memory.run(request(history)));
        }
    }
    seen
}

fn replay(entries: &[Entry]) -> Engine {
    let mut engine = Engine::new();
    entries.iter().for_each(|entry| engine.apply(entry.clone()));
    engine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_order_of_entries_does_not_show((entries, shuffled) in histories()) {
        let (one, other) = (replay(&entries), replay(&shuffled));
        prop_assert_eq!(one.state_digest(), other.state_digest());
        prop_assert_eq!(view(one), view(other));
    }

    #[test]
    fn applying_twice_is_applying_once((entries, shuffled) in histories()) {
        let once = replay(&entries);
        let mut twice = replay(&entries);
        shuffled.iter().for_each(|entry| twice.apply((*entry).clone()));
        prop_assert_eq!(once.state_digest(), twice.state_digest());
        prop_assert_eq!(view(once), view(twice));
    }

    #[test]
    fn erased_content_is_nowhere((entries, _) in histories()) {
        let mut engine = replay(&entries);
        let erase = Entry {
            writer: WriterId(9),
            counter: 0,
            lamport: 1,
            at_ms: NOON_MS,
            changes: (0..6).map(|n| Change::Erase { id: id(n), at_ms: -1 }).collect(),
        };
        engine.apply(erase.clone());
        let left = format!("{engine:?}");
        for word in ["macaron", "Lisbon", "cake", "花生"] {
            prop_assert!(!left.contains(word), "{word}");
        }
        // A vault may drop what was erased from old entries: the state is the same.
        let stripped: Vec<Entry> = entries
            .into_iter()
            .map(|entry| Entry {
                changes: entry
                    .changes
                    .into_iter()
                    .filter(|change| matches!(change, Change::Turn { .. } | Change::Erase { .. }))
                    .collect(),
                ..entry
            })
            .chain([erase])
            .collect();
        prop_assert_eq!(replay(&stripped).state_digest(), engine.state_digest());
    }

    /// What an engine did is what its entries say.
    #[test]
    fn replay_is_the_state(texts in proptest::collection::vec(text(), 1..12), forgotten in any::<usize>()) {
        let mut memory = Memory::new();
        let ada = scope("ada");
        for (turn, text) in texts.iter().enumerate() {
            let ingest = json!({
                "verb": "ingest", "scope": ada, "thread": "t", "turn": (turn % 8).to_string(), "role": "user", "text": text,
            });
            // Some texts are refused, which stores nothing.
            let before = memory.entries.len();
            if memory.run(request(ingest)).is_err() {
                prop_assert_eq!(memory.entries.len(), before);
            }
        }
        let records = memory.list(&ada);
        if let Some(record) = records.get(forgotten % records.len().max(1)) {
            memory.forget(&ada, json!({"id": record.id})).unwrap();
        }
        let replayed = replay(&memory.entries);
        prop_assert_eq!(replayed.state_digest(), memory.engine.state_digest());
        prop_assert_eq!(view(replayed), view(memory.engine));
    }
}
