//! A memory whose making was cut between its two values is finished by whoever has the key, and a memory that
//! lost its head is never taken for one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use common::{Desk, HOST_KEY};
use foremind_memory::{DataKey, KeySource, OpenOptions, OpenReply, OpenStep, Opening};
use foremind_testkit::{
    FakeWrapper, Fault, FaultKind, MemoryStore, SeededAmbient, Store, Written, open, open_with,
    read_opening,
};
use foremind_types::ErrorCode;
use foremind_vault::{Key, KeySlot};

/// A store in which only `key` was written.
fn cut() -> MemoryStore {
    let mut store = MemoryStore::without_atomic_batches();
    store.fail(Some(Fault {
        at_operation: 1,
        kind: FaultKind::Cut { puts: 1 },
    }));
    open(HOST_KEY, &mut store, &mut SeededAmbient::new(1)).unwrap_err();
    store.fail(None);
    assert!(store.values().keys().eq([&Key::slot()]));
    store
}

fn host(key: [u8; 32]) -> OpenOptions {
    OpenOptions::new(KeySource::Host(DataKey::new(key)))
}

#[test]
fn whoever_has_the_key_finishes_it() {
    let store = cut();
    let slot = KeySlot::read(&store.values()[&Key::slot()]).unwrap();
    let mut desk = Desk::on(store, 2);
    assert_eq!(desk.memory.memory_id(), slot.memory_id());
    desk.remember("I'm allergic to tree nuts");
    let mut later = Desk::on(desk.store.clone(), 3);
    assert_eq!(later.memory.memory_id(), slot.memory_id());
    assert!(later.texts().contains("I'm allergic to tree nuts"));
}

#[test]
fn nobody_else_does() {
    let mut must_exist = host(HOST_KEY);
    must_exist.create = false;
    let mut seen_before = host(HOST_KEY);
    seen_before.min_generation = 1;
    for (options, code) in [
        (host([8; 32]), ErrorCode::WrongKey),
        (OpenOptions::new(KeySource::External), ErrorCode::KeyMissing),
        (must_exist, ErrorCode::StorageLost),
        (seen_before, ErrorCode::StorageLost),
    ] {
        let mut store = cut();
        let before = store.values().clone();
        let mut ambient = SeededAmbient::new(2);
        let error = open_with(options, FakeWrapper(1), &mut store, &mut ambient).unwrap_err();
        assert_eq!(error.code, code);
        assert_eq!(store.values(), &before);
    }
}

#[test]
fn a_platform_that_wraps_keys_finishes_it_too() {
    let mut store = MemoryStore::without_atomic_batches();
    store.fail(Some(Fault {
        at_operation: 1,
        kind: FaultKind::Cut { puts: 1 },
    }));
    let mut ambient = SeededAmbient::new(1);
    let external = || OpenOptions::new(KeySource::External);
    open_with(external(), FakeWrapper(1), &mut store, &mut ambient).unwrap_err();
    store.fail(None);
    let foreign = open_with(external(), FakeWrapper(2), &mut store, &mut ambient).unwrap_err();
    assert_eq!(foreign.code, ErrorCode::WrongKey);
    let made = open_with(external(), FakeWrapper(1), &mut store, &mut ambient).unwrap();
    let again = open_with(external(), FakeWrapper(1), &mut store, &mut ambient).unwrap();
    assert_eq!(made.memory_id(), again.memory_id());
}

#[test]
fn a_memory_that_lost_its_head_is_corrupt() {
    let mut desk = Desk::on(MemoryStore::without_atomic_batches(), 1);
    desk.remember("I'm allergic to tree nuts");
    let mut store = desk.store;
    store.values_mut().remove(&Key::head());
    let before = store.values().clone();
    let error = open(HOST_KEY, &mut store, &mut SeededAmbient::new(2)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert_eq!(store.values(), &before);
}

#[test]
fn where_batches_are_atomic_a_key_alone_is_corrupt() {
    let mut store = MemoryStore::with_values(cut().values().clone());
    let error = open(HOST_KEY, &mut store, &mut SeededAmbient::new(2)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
}

#[test]
fn two_that_finish_at_once_share_one_memory() {
    let mut store = cut();
    let mut ambients = [SeededAmbient::new(2), SeededAmbient::new(3)];
    let mut openings = [host(HOST_KEY), host(HOST_KEY)].map(Opening::new);
    let mut replies = [OpenReply::Begin, OpenReply::Begin].map(Some);
    let mut memories = [None, None];
    // In step, so that both have seen the key alone before either writes.
    while memories.iter().any(Option::is_none) {
        for at in 0..2 {
            let Some(reply) = replies[at].take() else {
                continue;
            };
            replies[at] = match openings[at].step(reply, &ambients[at].tick()) {
                OpenStep::NeedRead { keys } => Some(read_opening(&mut store, &keys)),
                OpenStep::Commit {
                    expected_head,
                    puts,
                    deletes,
                    strict,
                } => Some(match store.write(expected_head, &puts, &deletes, strict) {
                    Ok(Written::Committed) => OpenReply::Committed,
                    Ok(Written::Conflict) => OpenReply::Conflict,
                    Err(error) => OpenReply::Failed(error),
                }),
                OpenStep::Done(memory) => {
                    memories[at] = Some(memory.unwrap());
                    None
                }
                other => panic!("not asked with a key of the host: {other:?}"),
            };
        }
    }
    assert_eq!(store.commits_and_conflicts(), (1, 1));
    let [first, second] = memories.map(Option::unwrap);
    assert_eq!(first.memory_id(), second.memory_id());
    let mut first = Desk {
        store,
        memory: first,
        ambient: SeededAmbient::new(4),
    };
    first.remember("told by the first");
    let mut second = Desk {
        store: first.store,
        memory: second,
        ambient: SeededAmbient::new(5),
    };
    assert!(second.texts().contains("told by the first"));
}
