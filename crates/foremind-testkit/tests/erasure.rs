//! What is forgotten is gone from everywhere, and a receipt proves it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::BTreeMap;

use common::{Desk, HOST_KEY, ada, forget, ingest, name};
use foremind_engine::ForgetTarget;
use foremind_memory::{
    DataKey, KeySource, OpenOptions, ReceiptCheck, Report, Request, Response, Survey, Task,
};
use foremind_testkit::{
    Capabilities, FakeWrapper, File, MemoryStore, PrimitiveStore, SeededAmbient, Store, run, suite,
    survey,
};
use foremind_types::{Change, Digest, Entry, ErrorCode, Receipt, WriterId};
use foremind_vault::{Draws, Key, KeySlot, Plan, ProfileUpdate, Vault};

impl Desk {
    fn forget(&mut self, target: ForgetTarget, preview: Option<bool>) -> Response {
        let scope = ada();
        let request = Request::Forget {
            scope,
            target,
            preview,
        };
        self.ask(request).unwrap()
    }

    fn receipt(&mut self, target: ForgetTarget) -> Receipt {
        let Response::Forget {
            receipt: Some(receipt),
            ..
        } = self.forget(target, Some(false))
        else {
            panic!("no receipt");
        };
        *receipt
    }

    fn task(&mut self, task: Task, file: &mut File) -> Report {
        let (store, ambient) = (&mut self.store, &mut self.ambient);
        run(&mut self.memory, task, FakeWrapper(1), file, store, ambient).unwrap()
    }

    fn verify(&mut self, receipt: &Receipt) -> ReceiptCheck {
        let receipt = Some(Box::new(receipt.clone()));
        let Report::Verify(found) = self.task(Task::Verify { receipt }, &mut File::default())
        else {
            panic!("no verification");
        };
        found.receipt.unwrap()
    }

    fn has(&mut self, word: &str) -> bool {
        self.texts().iter().any(|text| text.contains(word))
    }

    fn import(&mut self, file: &[u8], restore: bool) {
        let mut file = File {
            bytes: file.to_vec(),
            ..File::default()
        };
        let passphrase = None;
        self.task(
            Task::Import {
                passphrase,
                restore,
            },
            &mut file,
        );
    }

    fn export(&mut self) -> Vec<u8> {
        let mut file = File::default();
        self.task(Task::Export { passphrase: None }, &mut file);
        file.bytes
    }
}

fn values_of(store: &MemoryStore) -> suite::Values {
    let values = store.values().iter();
    values
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect()
}

/// The log as it is stored, by somebody who has the key.
fn vault_of(store: &MemoryStore) -> Vault {
    let values = store.values();
    let slot = KeySlot::read(&values[&Key::slot()]).unwrap();
    let data_key = slot.unwrap_host(&HOST_KEY).unwrap();
    Vault::open(slot.memory_id(), &data_key, &values[&Key::head()]).unwrap()
}

/// Commits changes by hand, whatever they are.
fn commit_by_hand(store: &mut MemoryStore, changes: Vec<Change>) {
    let vault = vault_of(store);
    let entry = Entry {
        writer: WriterId(99),
        counter: 0,
        lamport: 1_000,
        at_ms: 0,
        changes,
    };
    let mut draws = Draws::new(&[5; 32], 5, 5);
    // It rewrites nothing: a build that skips compaction does this.
    let batch = vault
        .batch(
            &Plan::default(),
            Vec::new(),
            &[entry],
            ProfileUpdate::Keep,
            &mut draws,
        )
        .unwrap();
    store
        .write(batch.expected_head, &batch.puts, &batch.deletes, true)
        .unwrap();
}

const EACH: [Capabilities; 3] = [
    Capabilities::SWAP,
    Capabilities::TICKET,
    Capabilities::SINGLE,
];

#[test]
fn two_hundred_facts_leave_nothing_on_any_store() {
    suite::what_is_forgotten_is_gone(&mut MemoryStore::default(), 200);
    suite::what_is_forgotten_is_gone(&mut MemoryStore::without_atomic_batches(), 200);
    for capabilities in EACH {
        suite::what_is_forgotten_is_gone(&mut PrimitiveStore::new(capabilities), 200);
    }
}

#[test]
fn an_erasure_that_skips_compaction_is_found_out() {
    let mut desk = Desk::new();
    let told: Vec<_> = (0..40)
        .map(|number| desk.remember(&format!("I'm allergic to {}", suite::word_of(number))))
        .collect();
    let words: Vec<String> = (0..40).map(suite::word_of).collect();
    let erasing = |id: &_| Change::Erase { id: *id, at_ms: 1 };
    commit_by_hand(&mut desk.store, told.iter().map(erasing).collect());
    let left = suite::left_over(&values_of(&desk.store), &words);
    assert!(!left.is_empty(), "the check is blind");
    // Whoever opens the memory next goes on with it, and then nothing is left.
    let mut next = Desk::on(desk.store.clone(), 9);
    assert!(next.texts().is_empty());
    assert!(suite::left_over(&values_of(&next.store), &words).is_empty());
}

#[test]
fn each_selector_reaches_what_it_names_and_nothing_else() {
    let mut desk = Desk::new();
    desk.ask(ingest("1", "My brother Max has asthma. We have a cat."))
        .unwrap();
    for text in [
        "Max moved to Oslo",
        "I keep maximum distance from cats",
        "The code of the door is 4711",
        "The code of my bicycle lock is violet",
    ] {
        desk.remember(text);
    }
    let Response::Forget {
        erased: 0,
        preview,
        receipt: None,
        ..
    } = desk.forget(ForgetTarget::Query("code of the door".to_owned()), None)
    else {
        panic!("a query erases only when told to");
    };
    let texts: Vec<&str> = preview.iter().map(|record| record.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "The code of the door is 4711",
            "The code of my bicycle lock is violet"
        ]
    );
    assert!(desk.has("4711"));
    let bound = ForgetTarget::Query("the 4711".to_owned());
    assert_eq!(desk.receipt(bound).counts.records, 1);
    assert!(!desk.has("4711") && desk.has("violet"));
    let max = ForgetTarget::Subject("max".to_owned());
    let Response::Forget { preview, .. } = desk.forget(max.clone(), Some(true)) else {
        panic!("no preview");
    };
    assert_eq!(preview.len(), 2);
    let counts = desk.receipt(max).counts;
    assert_eq!((counts.records, counts.derived), (2, 0));
    assert!(!desk.has("asthma") && !desk.has("Oslo") && desk.has("maximum"));
    assert_eq!(
        desk.receipt(ForgetTarget::Thread(name("t1")))
            .counts
            .records,
        1
    );
    assert_eq!(desk.texts().len(), 2);
    let left = desk.receipt(ForgetTarget::Scope);
    assert_eq!(left.counts.records, 2);
    assert_eq!(left.root, Digest::default(), "nothing is left");
    // Nothing is there any more: nothing to prove.
    let Response::Forget {
        erased: 0,
        receipt: None,
        ..
    } = desk.forget(ForgetTarget::Scope, None)
    else {
        panic!("a receipt for nothing");
    };
    let scope = ada();
    let nameless = Request::Forget {
        scope,
        target: ForgetTarget::Subject("?!".to_owned()),
        preview: None,
    };
    assert!(desk.ask(nameless).is_err());
}

#[test]
fn a_receipt_holds_until_an_erased_record_is_put_back() {
    let mut desk = Desk::new();
    desk.remember("My sister lives in Lisbon");
    let id = desk.remember("I'm allergic to tree nuts");
    let record = desk.memory_record(id);
    let before = desk.store.values().clone();
    let first = desk.receipt(ForgetTarget::Id(id));
    assert_eq!(first.counts.records, 1);
    assert_eq!(first.counts.profile, 1);
    assert!(first.counts.values > 0);
    let holds = ReceiptCheck {
        chain: true,
        found: 0,
        root: Some(true),
        holds: true,
    };
    assert_eq!(desk.verify(&first), holds);
    // Later writes move on, and the next receipt follows the first.
    let violet = desk.remember("The code of the door is violet");
    let moved = ReceiptCheck {
        root: None,
        ..holds
    };
    assert_eq!(desk.verify(&first), moved);
    let second = desk.receipt(ForgetTarget::Id(violet));
    assert_eq!(second.previous, first.mac);
    assert_eq!((desk.verify(&first), desk.verify(&second)), (moved, holds));
    // In another instance, by what is stored alone.
    let mut other = Desk::on(desk.store.clone(), 7);
    assert_eq!(other.verify(&second), holds);

    // By hand, a value as it was.
    let put = |desk: &mut Desk, key: &Key| {
        let values = desk.store.values_mut();
        values.insert(key.clone(), before[key].clone());
    };
    let gone: Vec<Key> = before
        .keys()
        .filter(|key| !desk.store.values().contains_key(key))
        .cloned()
        .collect();
    assert!(gone.len() >= 2, "the entry and the profile");
    for key in &gone {
        let mut tampered = Desk::on(desk.store.clone(), 8);
        put(&mut tampered, key);
        let found = tampered.verify(&second);
        assert!(!found.holds && found.chain && found.found == 1, "{found:?}");
    }
    // By hand, a commit that says it again under its old id.
    let mut tampered = Desk::on(desk.store.clone(), 8);
    commit_by_hand(&mut tampered.store, vec![Change::Add(Box::new(record))]);
    let found = tampered.verify(&second);
    assert!(!found.holds && found.found == 1, "{found:?}");
    // The whole store as it was before: the receipt is none of its.
    let mut old = Desk::on(MemoryStore::with_values(before.clone()), 8);
    let found = old.verify(&first);
    assert!(!found.chain && !found.holds);
    // Altered, or of another memory.
    let mut altered = second.clone();
    altered.counts.records += 1;
    assert!(!desk.verify(&altered).holds);
    let mut stranger = Desk::new();
    stranger.ambient = SeededAmbient::new(77);
    assert!(!stranger.verify(&second).holds);
}

impl Desk {
    fn memory_record(&mut self, id: foremind_types::RecordId) -> foremind_types::Record {
        match self.ask(Request::Get { scope: ada(), id }).unwrap() {
            Response::Get { record } => record,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn told_again_it_stays_but_a_file_of_elsewhere_does_not_bring_it_back() {
    const NUTS: &str = "I'm allergic to tree nuts";
    let mut elsewhere = Desk::on(MemoryStore::default(), 3);
    elsewhere.remember(NUTS);
    elsewhere.remember("I play the cello");
    let file = elsewhere.export();

    let mut desk = Desk::new();
    let id = desk.remember(NUTS);
    desk.ask(forget(id)).unwrap();
    let violet = desk.remember("The code of the door is violet");
    let receipt = desk.receipt(ForgetTarget::Id(violet));
    desk.import(&file, false);
    assert!(!desk.has("nuts") && desk.has("cello"));
    assert!(desk.verify(&receipt).holds);
    // An import that asks for it, into the memory as it was before.
    let mut asked = Desk::on(desk.store.clone(), 5);
    asked.import(&file, true);
    assert!(asked.has("nuts"));
    assert!(asked.verify(&receipt).holds, "it was told again, not kept");
    // And the owner may tell it again at any time.
    desk.remember(NUTS);
    assert!(desk.has("nuts"));
    assert!(desk.verify(&receipt).holds);
    let mut fresh = Desk::on(desk.store.clone(), 6);
    assert!(fresh.has("nuts"));
}

#[test]
fn an_erasure_that_is_cut_anywhere_is_done_by_the_next_one() {
    let mut desk = Desk::on(MemoryStore::without_atomic_batches(), 1);
    let nuts = desk.remember("I'm allergic to tree nuts");
    let violet = desk.remember("The code of the door is violet");
    let words = ["tree nuts".to_owned(), "violet".to_owned()];
    let start = desk.store.clone();
    let mut cuts = BTreeMap::new();
    for at_operation in 0.. {
        let mut cut = Desk::on(start.clone(), 40 + at_operation);
        let kind = foremind_testkit::FaultKind::Cut { puts: 1 };
        cut.store
            .fail(Some(foremind_testkit::Fault { at_operation, kind }));
        let done = cut.ask(forget(nuts)).is_ok();
        *cuts.entry(done).or_insert(0) += 1;
        cut.store.fail(None);
        let mut next = Desk::on(cut.store.clone(), 80 + at_operation);
        if next.has("nuts") {
            next.ask(forget(nuts)).unwrap();
        }
        let receipt = next.receipt(ForgetTarget::Id(violet));
        assert!(next.verify(&receipt).holds);
        let left = suite::left_over(&values_of(&next.store), &words);
        assert!(left.is_empty(), "cut at {at_operation}: {left:?}");
        if done && at_operation > 12 {
            break;
        }
    }
    assert!(cuts[&false] > 3, "{cuts:?}");
}

/// What the receipt of a memory's end is worth to whoever has the key.
fn end_checked(
    store: &mut MemoryStore,
    key: KeySource,
    receipt: &Receipt,
) -> Result<ReceiptCheck, ErrorCode> {
    let mut ambient = SeededAmbient::new(9);
    let check = Survey::of_receipt(OpenOptions::new(key), Box::new(receipt.clone()));
    match survey(check, FakeWrapper(1), store, &mut ambient) {
        Ok(Report::Verify(found)) => Ok(found.receipt.unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.code),
    }
}

#[test]
fn a_memory_that_is_destroyed_leaves_nothing_and_a_receipt_under_the_host_s_key() {
    let host = || KeySource::Host(DataKey::new(HOST_KEY));
    for key in [host, || KeySource::External] {
        let mut desk = Desk::new();
        desk.remember("I'm allergic to tree nuts");
        let first = desk.receipt(ForgetTarget::Scope);
        desk.remember("My bike is blue");
        desk.remember("I take warfarin every evening");
        let copy = desk.store.values().clone();
        let Report::Destroy { receipt } =
            desk.task(Task::Destroy { key: key() }, &mut File::default())
        else {
            panic!("no receipt");
        };
        assert!(desk.store.values().is_empty());
        assert_eq!(receipt.counts.records, 2);
        assert_eq!(receipt.counts.values as usize, copy.len());
        assert_eq!(
            (receipt.previous, receipt.root),
            (first.mac, Digest::default())
        );
        let store = &mut desk.store;
        let holds = end_checked(store, key(), &receipt).unwrap();
        assert!(holds.holds && holds.chain && holds.found == 0);
        // Altered, under another key, or not the receipt of an end.
        let mut altered = (*receipt).clone();
        altered.counts.records += 1;
        assert!(!end_checked(store, key(), &altered).unwrap().holds);
        let other = KeySource::Host(DataKey::new([1; 32]));
        assert!(end_checked(store, other, &receipt).is_err());
        let other = end_checked(store, key(), &first);
        assert!(other.is_ok_and(|check| !check.holds));
        // Anything that is put back speaks against it.
        for (name, value) in copy {
            let mut store = MemoryStore::with_values([(name, value)].into());
            assert!(!end_checked(&mut store, key(), &receipt).unwrap().holds);
        }
    }
}

#[test]
fn a_destruction_that_is_cut_leaves_nothing_that_can_be_read() {
    use foremind_testkit::{Fault, FaultKind};
    let host = || KeySource::Host(DataKey::new(HOST_KEY));
    for at_operation in 0..4 {
        for kind in [FaultKind::Before, FaultKind::After] {
            let mut desk = Desk::new();
            desk.remember("I'm allergic to tree nuts");
            desk.store.fail(Some(Fault { at_operation, kind }));
            let (store, ambient) = (&mut desk.store, &mut desk.ambient);
            let task = Task::Destroy { key: host() };
            let ended = run(
                &mut desk.memory,
                task,
                FakeWrapper(1),
                &mut File::default(),
                store,
                ambient,
            );
            desk.store.fail(None);
            let values = desk.store.values();
            let locked = !values.contains_key(&Key::slot()) && !values.contains_key(&Key::spare());
            let whole = values.contains_key(&Key::slot()) && values.contains_key(&Key::head());
            assert!(locked || whole && ended.is_err(), "{at_operation}");
        }
    }
}
