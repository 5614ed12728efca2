//! Several writers on one store: nothing is lost, and all come to the same state.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::BTreeSet;

use common::{Desk, Dice, HOST_KEY, ada, entries, forget, ids, ingest, name, remember, texts};
use foremind_engine::{Engine, ForgetTarget};
use foremind_memory::{
    DataKey, KeySource, Memory, OpenOptions, OpenReply, OpenStep, Opening, Reply, Request,
    Response, Step,
};
use foremind_testkit::{
    FakeWrapper, MemoryStore, NoEncoder, Running, SeededAmbient, Store, WordEncoder, Written,
    drive, open, open_with,
};
use foremind_types::{Entry, ErrorCode, Tier, WriterId};
use proptest::prelude::*;

struct Tab {
    memory: Memory,
    ambient: SeededAmbient,
    running: Option<Running>,
    todo: Vec<Request>,
}

/// Lets tabs take steps in the order of the dice until all are done; the number of operations that ended well.
fn interleave(tabs: &mut [Tab], store: &mut MemoryStore, dice: &mut Dice) -> usize {
    let mut done = 0;
    loop {
        let busy: Vec<usize> = (0..tabs.len())
            .filter(|at| tabs[*at].running.is_some() || !tabs[*at].todo.is_empty())
            .collect();
        if busy.is_empty() {
            return done;
        }
        let tab = &mut tabs[busy[dice.roll(busy.len())]];
        if tab.running.is_none() {
            tab.running = tab
                .todo
                .pop()
                .map(|request| Running::new(&tab.memory, request));
        }
        let running = tab.running.as_mut().unwrap();
        let ended = running.tick(&mut tab.memory, store, &mut WordEncoder, &mut tab.ambient);
        if let Some(result) = ended {
            result.unwrap();
            done += 1;
            tab.running = None;
        }
    }
}

fn tab(store: &mut MemoryStore, seed: u64) -> Tab {
    let mut ambient = SeededAmbient::new(seed);
    Tab {
        memory: open(HOST_KEY, store, &mut ambient).unwrap(),
        ambient,
        running: None,
        todo: Vec::new(),
    }
}

#[test]
fn interleaved_writers_lose_nothing_and_agree() {
    for seed in 0..4 {
        let mut store = MemoryStore::default();
        let mut tabs = vec![tab(&mut store, 100 + seed), tab(&mut store, 200 + seed)];
        let mut expected = BTreeSet::new();
        for (at, tab) in tabs.iter_mut().enumerate() {
            for number in 0..60 {
                let text = format!("tab {at} keeps statement {number}");
                tab.todo.push(remember(&text));
                expected.insert(text);
            }
        }
        let done = interleave(&mut tabs, &mut store, &mut Dice(seed));
        assert_eq!(done, 120);
        let (commits, conflicts) = store.commits_and_conflicts();
        assert!(conflicts > 0, "the schedule must make writers collide");
        assert!(commits >= 121);
        let mut digests = BTreeSet::new();
        for tab in &mut tabs {
            assert_eq!(
                texts(&mut tab.memory, &mut store, &mut tab.ambient),
                expected
            );
            digests.insert(tab.memory.state_digest());
        }
        let mut fresh = tab(&mut store, 300 + seed);
        assert_eq!(
            texts(&mut fresh.memory, &mut store, &mut fresh.ambient),
            expected
        );
        digests.insert(fresh.memory.state_digest());
        assert_eq!(digests.len(), 1);
    }
}

#[test]
fn operations_of_one_memory_may_be_under_way_together() {
    for exclusive in [false, true] {
        let mut store = MemoryStore::default();
        let mut ambient = SeededAmbient::new(1);
        let mut options = OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY)));
        options.exclusive = exclusive;
        let mut memory = open_with(options, FakeWrapper(0), &mut store, &mut ambient).unwrap();
        let mut running: Vec<_> = (0..20)
            .map(|number| Running::new(&memory, remember(&format!("statement {number}"))))
            .collect();
        let mut dice = Dice(3);
        while !running.is_empty() {
            let at = dice.roll(running.len());
            let ended = running[at].tick(&mut memory, &mut store, &mut NoEncoder, &mut ambient);
            if let Some(result) = ended {
                result.unwrap();
                running.swap_remove(at);
            }
        }
        let expected: BTreeSet<_> = (0..20)
            .map(|number| format!("statement {number}"))
            .collect();
        assert_eq!(texts(&mut memory, &mut store, &mut ambient), expected);
        let mut fresh = tab(&mut store, 9);
        assert_eq!(
            texts(&mut fresh.memory, &mut store, &mut fresh.ambient),
            expected
        );
        assert_eq!(fresh.memory.state_digest(), memory.state_digest());
    }
}

#[test]
fn an_exclusive_memory_reads_nothing_to_recall() {
    let mut store = MemoryStore::default();
    let mut ambient = SeededAmbient::new(1);
    let options = OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY))).exclusive();
    let mut memory = open_with(options, FakeWrapper(0), &mut store, &mut ambient).unwrap();
    store.fail(None);
    texts(&mut memory, &mut store, &mut ambient);
    assert_eq!(store.operations(), 0);
    // Unless it is told to look, or meets a conflict.
    let mut other = tab(&mut store, 2);
    let mut encoder = NoEncoder;
    drive(
        &mut other.memory,
        remember("told elsewhere"),
        &mut store,
        &mut encoder,
        &mut other.ambient,
    )
    .unwrap();
    drive(
        &mut memory,
        remember("told here"),
        &mut store,
        &mut encoder,
        &mut ambient,
    )
    .unwrap();
    assert_eq!(texts(&mut memory, &mut store, &mut ambient).len(), 2);
    drive(
        &mut other.memory,
        remember("told elsewhere again"),
        &mut store,
        &mut encoder,
        &mut other.ambient,
    )
    .unwrap();
    let refreshed = drive(
        &mut memory,
        Request::Refresh {},
        &mut store,
        &mut encoder,
        &mut ambient,
    );
    assert_eq!(refreshed, Ok(Response::Refresh {}));
    assert_eq!(texts(&mut memory, &mut store, &mut ambient).len(), 3);
}

#[test]
fn a_second_memory_sees_what_the_first_erased() {
    let mut desk = Desk::new();
    let id = desk.remember("I'm allergic to tree nuts");
    let mut second = tab(&mut desk.store, 2);
    assert_eq!(
        texts(&mut second.memory, &mut desk.store, &mut second.ambient).len(),
        1
    );
    desk.ask(forget(id)).unwrap();
    assert!(texts(&mut second.memory, &mut desk.store, &mut second.ambient).is_empty());
    assert_eq!(second.memory.state_digest(), desk.memory.state_digest());
    let fresh = tab(&mut desk.store, 3);
    assert_eq!(fresh.memory.state_digest(), desk.memory.state_digest());
}

#[test]
fn a_writer_that_always_loses_gives_up_and_changes_nothing() {
    let mut desk = Desk::new();
    desk.remember("told before");
    let digest = desk.memory.state_digest();
    let mut op = desk.memory.begin(remember("never stored"));
    let mut reply = Reply::Begin;
    let mut conflicts = 0;
    let error = loop {
        reply = match desk.memory.step(&mut op, reply, &desk.ambient.tick()) {
            Step::NeedRead { keys } => Reply::Values(desk.store.read(&keys).unwrap()),
            Step::NeedNames => Reply::Names(Some(desk.store.names().unwrap())),
            Step::NeedEmbed { texts, heads } => {
                use foremind_testkit::Encoder;
                Reply::Embedded(NoEncoder.encode(&texts, &heads))
            }
            Step::Commit { .. } => {
                conflicts += 1;
                assert!(conflicts < 1000, "no end of retries");
                Reply::Conflict
            }
            Step::Done(result) => break result.unwrap_err(),
        };
    };
    assert_eq!(error.code, ErrorCode::Conflict);
    assert_eq!(desk.memory.state_digest(), digest);
    assert_eq!(desk.texts().len(), 1);
}

#[test]
fn of_two_creators_one_wins_and_both_use_its_memory() {
    let mut store = MemoryStore::default();
    let options = || OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY)));
    let mut openings = [Opening::new(options()), Opening::new(options())];
    let mut ambients = [SeededAmbient::new(1), SeededAmbient::new(2)];
    let mut replies = [Some(OpenReply::Begin), Some(OpenReply::Begin)];
    let mut memories: Vec<Memory> = Vec::new();
    let mut conflicts = 0;
    // In turns, so that both have found an empty store before either writes.
    while replies.iter().any(Option::is_some) {
        for at in 0..2 {
            let Some(reply) = replies[at].take() else {
                continue;
            };
            replies[at] = match openings[at].step(reply, &ambients[at].tick()) {
                OpenStep::NeedRead { keys } => Some(OpenReply::Values(store.read(&keys).unwrap())),
                OpenStep::Commit {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                } => match store.write(expected_head, &puts, &deletes, strict).unwrap() {
                    Written::Committed => Some(OpenReply::Committed),
                    Written::Conflict => {
                        conflicts += 1;
                        Some(OpenReply::Conflict)
                    }
                },
                OpenStep::Done(result) => {
                    memories.push(result.unwrap());
                    None
                }
                other => panic!("not asked for with a host key: {other:?}"),
            };
        }
    }
    assert_eq!(conflicts, 1);
    assert_eq!(memories.len(), 2);
    assert_eq!(memories[0].memory_id(), memories[1].memory_id());
}

/// Entries that two writers made, with every verb that writes.
fn two_writers() -> (Vec<Entry>, Vec<Entry>) {
    let mut store = MemoryStore::default();
    let mut tabs = [tab(&mut store, 11), tab(&mut store, 12)];
    let mut known = Vec::new();
    for number in 0..12_usize {
        let tab = &mut tabs[number % 2];
        let mut run = |request: Request| {
            let encoder = &mut WordEncoder;
            drive(
                &mut tab.memory,
                request,
                &mut store,
                encoder,
                &mut tab.ambient,
            )
            .unwrap()
        };
        known.extend(ids(&run(remember(&format!(
            "I'm allergic to food {number}"
        )))));
        run(ingest(
            &format!("turn-{number}"),
            "I moved to Lisbon. We have two cats.",
        ));
        // Each writer revises what the other one told.
        let id = known[number.saturating_sub(1)];
        match number % 4 {
            0 => run(Request::Update {
                scope: ada(),
                id,
                tier: if number == 4 {
                    Tier::Store
                } else {
                    Tier::Profile
                },
            }),
            1 => run(Request::Confirm { scope: ada(), id }),
            2 => run(remember("I'm allergic to food 1")),
            _ => run(Request::Backfill {
                max: None,
                model: None,
            }),
        };
        if number == 7 {
            run(forget(known[3]));
        }
    }
    let thread = ForgetTarget::Thread(name("t1"));
    drive(
        &mut tabs[0].memory,
        Request::Forget {
            scope: ada(),
            target: thread,
            preview: None,
        },
        &mut store,
        &mut WordEncoder,
        &mut tabs[0].ambient,
    )
    .unwrap();
    let writers: BTreeSet<WriterId> = entries(&store).iter().map(|one| one.writer).collect();
    let first = *writers.first().unwrap();
    assert_eq!(writers.len(), 2);
    entries(&store)
        .into_iter()
        .partition(|one| one.writer == first)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_two_writers_gives_the_same_state(picks in prop::collection::vec(any::<bool>(), 128)) {
        thread_local! {
            static WRITERS: (Vec<Entry>, Vec<Entry>) = two_writers();
        }
        WRITERS.with(|(ones, others)| {
            let mut in_order = Engine::new();
            for entry in ones.iter().chain(others) {
                in_order.apply(entry.clone());
            }
            let mut mixed = Engine::new();
            let (mut ones, mut others) = (ones.iter().peekable(), others.iter().peekable());
            for pick in picks.iter().cycle() {
                let next = if *pick || others.peek().is_none() { ones.next() } else { others.next() };
                match next.or_else(|| others.next()) {
                    Some(entry) => {
                        mixed.apply(entry.clone());
                        // Applying an entry again changes nothing.
                        if *pick {
                            mixed.apply(entry.clone());
                        }
                    }
                    None => break,
                }
            }
            prop_assert!(ones.next().is_none() && others.next().is_none());
            prop_assert_eq!(mixed.state_digest(), in_order.state_digest());
            Ok(())
        })?;
    }
}
