//! A store that fails at any operation, or whose bytes are altered, never costs an acknowledged write and
//! never looks like an empty memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::BTreeSet;

use common::{Desk, HOST_KEY, ada, entries, forget, ids, ingest, remember};
use foremind_engine::ForgetTarget;
use foremind_memory::{DataKey, KeySource, OpenOptions, Request};
use foremind_testkit::{
    Capabilities, FakeWrapper, Fault, FaultKind, MemoryStore, PrimitiveStore, SeededAmbient, Store,
    WordEncoder, drive, open, open_with, suite,
};
use foremind_types::{ErrorCode, RecordId};
use foremind_vault::Key;

const PRIMITIVE: [Capabilities; 3] = [
    Capabilities::SWAP,
    Capabilities::TICKET,
    Capabilities::SINGLE,
];

/// What a person did, and which texts must be there.
struct History {
    desk: Desk,
    acknowledged: BTreeSet<String>,
    known: Vec<(RecordId, String)>,
}

/// The outcome of an operation that failed: what may or may not have been written, all or nothing.
enum Doubt {
    Written(BTreeSet<String>),
    Erased(String),
}

impl History {
    fn new(store: MemoryStore) -> Self {
        Self {
            desk: Desk::on(store, 1),
            acknowledged: BTreeSet::new(),
            known: Vec::new(),
        }
    }

    fn operation(&mut self, number: usize) -> Result<(), Doubt> {
        if number % 9 == 8 {
            let (id, text) = self.known.remove(0);
            if self.desk.ask(forget(id)).is_err() {
                return Err(Doubt::Erased(text));
            }
            self.acknowledged.remove(&text);
            return Ok(());
        }
        let (request, texts) = if number % 5 == 4 {
            let told = [
                format!("I keep {number} bees."),
                format!("My garden has {number} plum trees."),
                format!("I sold {number} jars of honey."),
            ];
            let request = ingest(&format!("turn-{number}"), &told.join(" "));
            (request, None)
        } else {
            let text = format!("statement number {number}");
            (remember(&text), Some(BTreeSet::from([text])))
        };
        match self.desk.ask(request.clone()) {
            Ok(response) => {
                let records = match response {
                    foremind_memory::Response::Remember { records }
                    | foremind_memory::Response::Ingest { records, .. } => records,
                    other => panic!("not a write: {other:?}"),
                };
                for noted in records {
                    self.acknowledged.insert(noted.record.text.clone());
                    self.known.push((noted.record.id, noted.record.text));
                }
                Ok(())
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::StorageFailed);
                // What the turn would have become, told to another memory.
                let texts = texts.unwrap_or_else(|| {
                    let mut other = Desk::new();
                    other.ask(request).unwrap();
                    other.texts()
                });
                Err(Doubt::Written(texts))
            }
        }
    }

    /// What is stored holds everything acknowledged, and the doubtful operation as a whole or not at all.
    fn check(&mut self, found: &BTreeSet<String>, doubt: Option<&Doubt>) {
        match doubt {
            None => assert_eq!(found, &self.acknowledged),
            Some(Doubt::Written(texts)) => {
                let with = self.acknowledged.union(texts).cloned().collect();
                assert!(*found == self.acknowledged || *found == with, "{found:?}");
            }
            Some(Doubt::Erased(text)) => {
                let mut without = self.acknowledged.clone();
                without.remove(text);
                assert!(
                    *found == self.acknowledged || *found == without,
                    "{found:?}"
                );
            }
        }
    }
}

const OPERATIONS: usize = 48;

fn fail_everywhere(store: &MemoryStore, kinds: &[FaultKind], writes_only: bool) -> u32 {
    let mut probe = History::new(store.clone());
    probe.desk.store.fail(None);
    for number in 0..OPERATIONS {
        assert!(probe.operation(number).is_ok());
    }
    let operations = probe.desk.store.operations();
    let targets: Vec<u64> = if writes_only {
        probe.desk.store.write_operations().to_vec()
    } else {
        (0..operations).collect()
    };
    let mut failed = 0;
    for at_operation in targets {
        for &kind in kinds {
            let mut history = History::new(store.clone());
            history.desk.store.fail(Some(Fault { at_operation, kind }));
            let mut doubt = None;
            for number in 0..OPERATIONS {
                if let Err(one) = history.operation(number) {
                    doubt = Some(one);
                    break;
                }
            }
            let doubt = doubt.unwrap_or_else(|| panic!("nothing failed at {at_operation}"));
            failed += 1;
            history.desk.store.fail(None);
            // Reopened from what is stored.
            let mut fresh = Desk::on(history.desk.store.clone(), 77);
            let found = fresh.texts();
            history.check(&found, Some(&doubt));
            fresh.remember("told after the fall");
            assert!(fresh.texts().is_superset(&found));
            // The instance that saw the failure goes on as well.
            let found = history.desk.texts();
            history.check(&found, Some(&doubt));
            history.desk.remember("told after the failure");
            assert!(history.desk.texts().is_superset(&found));
        }
    }
    failed
}

#[test]
fn no_failure_of_an_atomic_store_loses_or_halves_a_write() {
    let kinds = [FaultKind::Before, FaultKind::After];
    assert!(fail_everywhere(&MemoryStore::default(), &kinds, false) > 190);
}

#[test]
fn no_cut_of_a_batch_loses_or_halves_a_write() {
    let kinds = [
        FaultKind::Cut { puts: 1 },
        FaultKind::CutDeletes { deletes: 0 },
        FaultKind::CutDeletes { deletes: 2 },
    ];
    assert!(fail_everywhere(&MemoryStore::without_atomic_batches(), &kinds, true) >= 3 * 48);
}

#[test]
fn deletions_that_were_cut_off_are_made_up_for() {
    let mut desk = Desk::on(MemoryStore::without_atomic_batches(), 1);
    let id = desk.remember("I'm allergic to tree nuts");
    let before = desk.store.values().len();
    desk.store.fail(Some(Fault {
        at_operation: 2,
        kind: FaultKind::CutDeletes { deletes: 0 },
    }));
    desk.ask(forget(id)).unwrap_err();
    desk.store.fail(None);
    // The rewritten entry and the erasure came, the old entry and the old profile are still there.
    assert_eq!(desk.store.values().len(), before + 2);
    desk.remember("told later");
    let stored = format!("{:?}", entries(&desk.store));
    assert!(!stored.contains("tree nuts"));
}

fn small() -> Desk {
    let mut desk = Desk::new();
    desk.remember("I'm allergic to tree nuts");
    desk.ask(ingest("1", "We have a cat. The kitchen is of marble."))
        .unwrap();
    desk
}

#[test]
fn altered_bytes_are_a_typed_error_and_never_an_empty_memory() {
    let mut desk = small();
    let texts = desk.texts();
    let attempt = |store: MemoryStore| {
        let mut store = store;
        let before = store.values().clone();
        let mut ambient = SeededAmbient::new(5);
        let error = open(HOST_KEY, &mut store, &mut ambient)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            store.values(),
            &before,
            "a memory that does not open is not written to"
        );
        error
    };
    // What an opening does not need, it does not look at: a survey does.
    let spared = [Some(Key::spare()), common::profile_key(&desk.store)];
    let needed = |key: &&Key| !spared.contains(&Some((*key).clone()));
    assert!(spared.iter().all(Option::is_some));
    for (key, value) in desk.store.values().iter().filter(|(key, _)| needed(key)) {
        for at in 0..value.len() {
            let bits = if at < 72 { 0..8 } else { at % 8..at % 8 + 1 };
            for bit in bits {
                let mut store = desk.store.clone();
                store.values_mut().get_mut(key).unwrap()[at] ^= 1 << bit;
                // The seal covers all of a value of the log but its checksum, which is looked at by `verify` alone.
                if Key::is_of_log(key.as_str()) && (32..48).contains(&at) {
                    assert_eq!(
                        Desk::on(store, 5).texts(),
                        texts,
                        "{key} byte {at} bit {bit}"
                    );
                    continue;
                }
                let error = attempt(store);
                assert_eq!(error.code, ErrorCode::Corrupt, "{key} byte {at} bit {bit}");
                assert!(error.message.contains(key.as_str()), "{}", error.message);
            }
        }
        for length in 0..value.len() {
            let mut store = desk.store.clone();
            store.values_mut().get_mut(key).unwrap().truncate(length);
            assert_eq!(
                attempt(store).code,
                ErrorCode::Corrupt,
                "{key} cut to {length}"
            );
        }
        let mut store = desk.store.clone();
        store.values_mut().remove(key);
        let error = attempt(store);
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains(key.as_str()), "{}", error.message);
    }
}

#[test]
fn keys_that_do_not_fit_are_told_apart_from_damage() {
    let host = |byte| KeySource::Host(DataKey::new([byte; 32]));
    let code = |key: KeySource, wrapper: u8, store: &MemoryStore| {
        let mut store = store.clone();
        let options = OpenOptions::new(key);
        let ambient = &mut SeededAmbient::new(9);
        open_with(options, FakeWrapper(wrapper), &mut store, ambient)
            .map(|_| ())
            .map_err(|error| error.code)
    };
    let hosted = small().store;
    assert_eq!(code(host(7), 0, &hosted), Ok(()));
    assert_eq!(code(host(8), 0, &hosted), Err(ErrorCode::WrongKey));
    assert_eq!(
        code(KeySource::External, 1, &hosted),
        Err(ErrorCode::KeyMissing)
    );
    let mut external = MemoryStore::default();
    let options = OpenOptions::new(KeySource::External);
    open_with(
        options,
        FakeWrapper(1),
        &mut external,
        &mut SeededAmbient::new(1),
    )
    .unwrap();
    assert_eq!(code(KeySource::External, 1, &external), Ok(()));
    assert_eq!(
        code(KeySource::External, 2, &external),
        Err(ErrorCode::WrongKey)
    );
    assert_eq!(code(host(7), 0, &external), Err(ErrorCode::WrongKey));
}

#[test]
fn a_store_that_goes_away_or_back_is_noticed_in_use() {
    let mut desk = small();
    let old = desk.store.clone();
    let mut expected = desk.texts();
    desk.remember("told since");
    expected.insert("told since".to_owned());
    let new = std::mem::replace(&mut desk.store, old);
    let error = desk.ask(Request::Stats { scope: ada() }).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageLost);
    desk.store = MemoryStore::default();
    let error = desk.ask(remember("told to nobody")).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageLost);
    assert!(desk.store.values().is_empty());
    desk.store = new;
    assert_eq!(desk.texts(), expected);
}

#[test]
fn an_older_store_is_refused_where_the_host_counts() {
    let desk = small();
    let generation = desk.memory.generation();
    let mut options = OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY)));
    options.min_generation = generation;
    let ambient = &mut SeededAmbient::new(9);
    let wrapper = FakeWrapper(0);
    assert!(open_with(options.clone(), wrapper, &mut desk.store.clone(), ambient).is_ok());
    options.min_generation = generation + 1;
    for mut store in [desk.store, MemoryStore::default()] {
        let error = open_with(options.clone(), wrapper, &mut store, ambient);
        assert_eq!(error.map(|_| ()).unwrap_err().code, ErrorCode::StorageLost);
    }
}

#[test]
fn three_hundred_commits_keep_everything_in_few_values() {
    let mut desk = Desk::new();
    let mut expected = BTreeSet::new();
    let mut most = 0;
    for number in 0..300 {
        let text = format!("statement number {number}");
        desk.with(remember(&text), &mut WordEncoder).unwrap();
        expected.insert(text);
        most = most.max(desk.store.values().len());
    }
    assert!(most <= 4 + 33 + 9 + 2, "{most} values");
    assert_eq!(desk.texts(), expected);
    let mut fresh = Desk::on(desk.store.clone(), 2);
    assert_eq!(fresh.texts(), expected);
    assert_eq!(fresh.memory.state_digest(), desk.memory.state_digest());
}

/// Vectors, routes, manifest, key and profile counted; the vector alone has 384 bytes.
#[test]
fn a_record_takes_at_most_600_bytes_beyond_its_text() {
    let mut stores: Vec<Box<dyn Store>> = vec![Box::new(MemoryStore::default())];
    for capabilities in PRIMITIVE {
        stores.push(Box::new(PrimitiveStore::new(capabilities)));
    }
    for mut store in stores {
        let store = store.as_mut();
        let mut ambient = SeededAmbient::new(1);
        let options = suite::suite_options(store.capabilities());
        let mut memory = open_with(options, FakeWrapper(0), store, &mut ambient).unwrap();
        let (mut told, mut records) = (0, 0);
        for number in 0..300 {
            let text = format!("Shelf {number} of the pantry holds {} jars", number * 7);
            told += text.len();
            let encoder = &mut WordEncoder;
            let noted = drive(&mut memory, remember(&text), store, encoder, &mut ambient);
            records += ids(&noted.unwrap()).len();
            // At any time, and not only after a lucky fold.
            if number >= 40 && number % 20 == 7 {
                let stored = stored_bytes(store);
                let each = (stored - told) / records;
                assert!(each <= 600, "{:?}: {each} bytes", store.capabilities());
            }
        }
        assert_eq!(records, 300);
        let each = (stored_bytes(store) - told) / records;
        println!("{:?}: {each} bytes", store.capabilities());
    }
}

fn stored_bytes(store: &mut dyn Store) -> usize {
    let names = store.names().unwrap();
    let keys: Vec<Key> = names.iter().filter_map(|name| Key::parse(name)).collect();
    assert_eq!(keys.len(), names.len());
    let values = store.read(&keys).unwrap();
    values.iter().flatten().map(Vec::len).sum()
}

#[test]
fn erased_text_is_in_no_stored_value() {
    let mut desk = Desk::new();
    let secret = "I'm allergic to tree nuts";
    let id = ids(&desk.with(remember(secret), &mut WordEncoder).unwrap())[0];
    desk.ask(ingest("1", "My pin is Vermilion. We have a cat."))
        .unwrap();
    for number in 0..70 {
        desk.remember(&format!("statement number {number}"));
    }
    assert!(format!("{:?}", entries(&desk.store)).contains("tree nuts"));
    assert!(format!("{:?}", entries(&desk.store)).contains("Vermilion"));
    desk.ask(forget(id)).unwrap();
    let thread = ForgetTarget::Thread(common::name("t1"));
    desk.ask(Request::Forget {
        scope: ada(),
        target: thread,
        preview: None,
    })
    .unwrap();
    let stored = format!("{:?}", entries(&desk.store));
    for gone in ["tree nuts", "allergic", "Vermilion", "cat."] {
        assert!(!stored.contains(gone), "{gone}");
    }
    assert!(stored.contains("statement number 69"));
    let mut fresh = Desk::on(desk.store.clone(), 2);
    assert_eq!(fresh.texts().len(), 70);
    assert_eq!(fresh.memory.state_digest(), desk.memory.state_digest());
}

/// The same history on every kind of store, and on a folder with a file for each value.
#[test]
fn known_strings_are_in_no_stored_byte() {
    let folder = std::env::temp_dir().join(format!("foremind-known-{}", std::process::id()));
    let mut stores: Vec<Box<dyn Store>> = vec![Box::new(MemoryStore::default())];
    for capabilities in PRIMITIVE {
        stores.push(Box::new(PrimitiveStore::new(capabilities)));
    }
    for mut store in stores {
        let store = store.as_mut();
        let mut ambient = SeededAmbient::new(1);
        let options = suite::suite_options(store.capabilities());
        let mut memory = open_with(options, FakeWrapper(0), store, &mut ambient).unwrap();
        let known: Vec<String> = (0..200).map(|n| format!("known string {n:03}")).collect();
        let mut ask = |store: &mut dyn Store, request| {
            drive(&mut memory, request, store, &mut WordEncoder, &mut ambient).unwrap()
        };
        for text in &known {
            ask(store, remember(text));
        }
        ask(store, ingest("turn-of-ada", "I'm allergic to hazelnut."));
        let more = [
            "turn-of-ada",
            "hazelnut",
            "known string",
            "words-1",
            "embedding/1",
        ];
        // As files, so that their names are searched as well as their bytes.
        std::fs::create_dir_all(&folder).unwrap();
        for name in store.names().unwrap() {
            let key = Key::parse(&name).unwrap();
            let value = store.read(&[key]).unwrap().remove(0).unwrap();
            std::fs::write(folder.join(name), value).unwrap();
        }
        let mut raw = Vec::new();
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            raw.extend(path.file_name().unwrap().as_encoded_bytes());
            raw.extend(std::fs::read(&path).unwrap());
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(raw.len() > 100_000 && raw.windows(4).any(|window| window == b"FMEM"));
        for text in known.iter().map(String::as_str).chain(more) {
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let holds = |form: &[u8]| raw.windows(form.len()).any(|window| window == form);
            assert!(!holds(text.as_bytes()) && !holds(&wide), "{text}");
        }
    }
}
