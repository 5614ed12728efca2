//! What a store must not do to a memory, one test for each: it is told by a typed error or it changes nothing, and never a
//! panic, never an empty memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Desk, HOST_KEY, ada, forget, ingest, remember};
use foremind_memory::{
    DataKey, KeySource, Memory, OpenOptions, Passphrase, Reply, Report, Request, Response, Step,
    Survey, Task,
};
use foremind_testkit::{
    Capabilities, FakeWrapper, File, MemoryStore, NoEncoder, PrimitiveStore, SeededAmbient, Store,
    Written, drive, open, open_with, run, suite, survey,
};
use foremind_types::{Error, ErrorCode};
use foremind_vault::{HeadToken, Key};

fn small(seed: u64) -> Desk {
    let mut desk = Desk::on(MemoryStore::default(), seed);
    desk.remember("I'm allergic to tree nuts");
    desk.ask(ingest("1", "We have a cat. The kitchen is of marble."))
        .unwrap();
    desk
}

fn opened(store: &mut dyn Store) -> Result<Memory, Error> {
    open(HOST_KEY, store, &mut SeededAmbient::new(5))
}

/// Opens what must not open, and looks that nothing is written to it.
fn refused(mut store: MemoryStore) -> Error {
    let before = store.values().clone();
    let error = opened(&mut store).map(|_| ()).unwrap_err();
    assert_eq!(store.values(), &before);
    error
}

fn look(store: &mut dyn Store, repair: bool) -> Result<Report, Error> {
    let options = suite::suite_options(store.capabilities());
    let ambient = &mut SeededAmbient::new(77);
    survey(Survey::new(options, repair), FakeWrapper(0), store, ambient)
}

/// Values of the log that the head names and an opening needs, the profile left out.
fn log_keys(desk: &Desk) -> Vec<Key> {
    let profile = common::profile_key(&desk.store);
    let keys = desk.store.values().keys();
    keys.filter(|key| Key::is_of_log(key.as_str()) && Some(*key) != profile.as_ref())
        .cloned()
        .collect()
}

#[test]
fn values_of_another_memory_under_our_keys() {
    // The same host key opens both, which makes it no easier.
    let (ours, theirs) = (small(1), small(2));
    let their_log = log_keys(&theirs).remove(0);
    let mut keys = log_keys(&ours);
    keys.extend([Key::head(), Key::slot()]);
    for key in keys {
        let from = if Key::is_of_log(key.as_str()) {
            &their_log
        } else {
            &key
        };
        let mut store = ours.store.clone();
        let value = theirs.store.values()[from].clone();
        store.values_mut().insert(key.clone(), value);
        let error = refused(store.clone());
        assert_eq!(error.code, ErrorCode::Corrupt, "{key}: {}", error.message);
        // One that is open keeps what it knows, and writes nothing onto the other's head.
        if key == Key::head() {
            let mut open = small(1);
            open.store = store;
            let error = open.ask(remember("told to whom?")).unwrap_err();
            assert_eq!(error.code, ErrorCode::Corrupt);
        }
    }
    // All of them together are the other memory, which its id tells.
    let other = opened(&mut theirs.store.clone()).unwrap();
    assert_ne!(other.memory_id(), ours.memory.memory_id());
}

#[test]
fn older_generations_put_back() {
    let mut desk = small(1);
    let old = desk.store.values().clone();
    let then = desk.texts();
    for number in 0..3 {
        desk.remember(&format!("statement number {number}"));
    }
    let now = desk.memory.generation();
    let counting = |generation| {
        let mut options = OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY)));
        options.min_generation = generation;
        options
    };
    let open_counting = |store: &mut MemoryStore| {
        let ambient = &mut SeededAmbient::new(6);
        open_with(counting(now), FakeWrapper(0), store, ambient).map(|_| ())
    };
    assert_eq!(open_counting(&mut desk.store.clone()), Ok(()));
    // The whole of it: known by the host's counter, and by nothing else, as docs/FORMAT.md says.
    let mut whole = MemoryStore::with_values(old.clone());
    let error = open_counting(&mut whole).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageLost);
    assert_eq!(Desk::on(whole, 7).texts(), then);
    // The head alone, with all values there: the same.
    let mut head = desk.store.clone();
    head.values_mut()
        .insert(Key::head(), old[&Key::head()].clone());
    let error = open_counting(&mut head).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageLost);
    // Under an open memory: known to it.
    let newer = std::mem::replace(&mut desk.store, head);
    let error = desk.ask(remember("told since")).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageLost);
    desk.store = newer;
    // An old head whose values were folded away meanwhile.
    for number in 3..40 {
        desk.remember(&format!("statement number {number}"));
    }
    let mut folded = desk.store.clone();
    folded
        .values_mut()
        .insert(Key::head(), old[&Key::head()].clone());
    assert_eq!(refused(folded).code, ErrorCode::Corrupt);
}

#[test]
fn a_manifest_without_segments() {
    let desk = small(1);
    let keys = log_keys(&desk);
    let mut none = desk.store.clone();
    none.values_mut()
        .retain(|key, _| !Key::is_of_log(key.as_str()));
    let error = refused(none.clone());
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(keys.iter().any(|key| error.message.contains(key.as_str())));
    // Nothing is left to repair, and an empty memory is not what it becomes.
    let before = none.values().clone();
    let error = look(&mut none, true).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert_eq!(none.values(), &before);
    for key in keys {
        let mut store = desk.store.clone();
        store.values_mut().remove(&key);
        let error = refused(store.clone());
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains(key.as_str()), "{}", error.message);
        let Report::Repair { kept, lost, .. } = look(&mut store, true).unwrap() else {
            panic!("no repair");
        };
        assert_eq!((kept, lost), (1, 1));
        assert!(!Desk::on(store, 8).texts().is_empty());
    }
}

#[test]
fn segments_without_a_manifest() {
    let mut desk = small(1);
    let texts = desk.texts();
    let mut values = desk.store.values().clone();
    values.remove(&Key::head());
    let error = refused(MemoryStore::with_values(values.clone()));
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains("head"), "{}", error.message);
    // Nor where the making of a memory may have been cut before its head.
    for capabilities in [
        Capabilities::SWAP,
        Capabilities::TICKET,
        Capabilities::SINGLE,
    ] {
        let mut store = PrimitiveStore::new(capabilities);
        *store.values_mut() = values.clone();
        let error = opened(&mut store).map(|_| ()).unwrap_err();
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert_eq!(store.values(), &values);
    }
    let mut store = MemoryStore::with_values(values);
    let Report::Repair { kept, lost, .. } = look(&mut store, true).unwrap() else {
        panic!("no repair");
    };
    assert_eq!((kept, lost), (2, 0));
    assert_eq!(Desk::on(store, 8).texts(), texts);
}

#[test]
fn a_format_from_the_future() {
    let desk = small(1);
    let mut keys = log_keys(&desk);
    keys.extend([Key::head(), Key::slot()]);
    for key in keys {
        for format in [2_u16, 3, u16::MAX] {
            let mut store = desk.store.clone();
            let value = store.values_mut().get_mut(&key).unwrap();
            value[4..6].copy_from_slice(&format.to_le_bytes());
            // Whole, as far as a reader of today can tell.
            let mut hasher = blake3::Hasher::new();
            hasher.update(&value[..32]);
            hasher.update(&value[48..]);
            let sum = hasher.finalize();
            value[32..48].copy_from_slice(&sum.as_bytes()[..16]);
            let error = refused(store.clone());
            assert_eq!(error.code, ErrorCode::NewerFormat, "{key}");
            assert!(error.message.contains(&format.to_string()));
            let constant = !Key::is_of_log(key.as_str());
            let before = store.values().clone();
            let repaired = look(&mut store, true);
            if constant {
                assert_eq!(repaired.unwrap_err().code, ErrorCode::NewerFormat);
                assert_eq!(store.values(), &before);
            }
        }
    }
}

/// The LEB128 form that postcard gives a number.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn lengths_of_ten_gigabytes() {
    const LENGTH: u64 = 10_000_000_000;
    // In the head: the length of a list, and places that say to be so long, with the chunks that fit and others.
    let place = |chunks: u64, bytes: u64| {
        [
            varint(1),
            vec![7; 16],
            varint(0),
            varint(chunks),
            varint(bytes),
        ]
        .concat()
    };
    let manifest = |place: Vec<u8>| {
        let run = [varint(0), varint(1), varint(1), place].concat();
        [varint(1), varint(1), run, varint(0), varint(0)].concat()
    };
    let chunk = 1_044_392;
    assert!(foremind_vault::fuzz::manifest(&manifest(place(1, 100))));
    for (chunks, bytes) in [
        (1, LENGTH),
        (LENGTH.div_ceil(chunk), LENGTH),
        (u64::from(u32::MAX), u64::from(u32::MAX) * chunk),
        (0, u64::MAX),
    ] {
        let bytes = manifest(place(chunks, bytes));
        assert!(!foremind_vault::fuzz::manifest(&bytes), "{chunks} chunks");
    }
    assert!(!foremind_vault::fuzz::manifest(
        &[varint(1), varint(LENGTH)].concat()
    ));
    // In the log and in the profile: wherever a number stands, a length as long as that asks for no more than there is.
    let entries = common::entries(&small(1).store);
    let whole = foremind_vault::fuzz::seed(&entries).unwrap();
    assert!(foremind_vault::fuzz::entries(&whole).is_some());
    for at in 0..whole.len() {
        let long = [&whole[..at], &varint(LENGTH), &whole[at + 1..]].concat();
        let _ = foremind_vault::fuzz::entries(&long);
        let _ = foremind_vault::fuzz::profile(&long);
        let _ = foremind_vault::fuzz::manifest(&long);
    }
    // In a sealed file: a frame that says to have 4 GB, which is all that it can say.
    let mut desk = small(1);
    let mut file = File::default();
    let words = || Passphrase::new(b"open sesame".to_vec()).unwrap();
    let export = Task::Export {
        passphrase: Some(words()),
    };
    let (store, ambient) = (&mut desk.store, &mut desk.ambient);
    run(
        &mut desk.memory,
        export,
        FakeWrapper(0),
        &mut file,
        store,
        ambient,
    )
    .unwrap();
    file.bytes[37..41].copy_from_slice(&u32::MAX.to_le_bytes());
    let import = Task::Import {
        passphrase: Some(words()),
        restore: false,
    };
    let error = run(
        &mut desk.memory,
        import,
        FakeWrapper(0),
        &mut file,
        store,
        ambient,
    )
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    // What this took is nothing like what was claimed.
    if let Some(peak_kib) = common::peak_kib() {
        assert!(peak_kib < 512 * 1024, "{peak_kib} KiB");
    }
}

type Values = Vec<Option<Vec<u8>>>;

/// A store with manners of its own.
struct Odd<S> {
    inner: S,
    names: fn(Vec<String>) -> Vec<String>,
    values: fn(Values) -> Values,
    /// What it answers to `head` instead of what it has.
    stale_head: Option<Vec<u8>>,
}

impl<S: Store> Odd<S> {
    fn new(inner: S) -> Self {
        Self {
            inner,
            names: |names| names,
            values: |values| values,
            stale_head: None,
        }
    }
}

impl<S: Store> Store for Odd<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = self.inner.read(keys)?;
        for (key, value) in keys.iter().zip(&mut values) {
            if *key == Key::head() && self.stale_head.is_some() {
                value.clone_from(&self.stale_head);
            }
        }
        Ok((self.values)(values))
    }

    fn names(&mut self) -> Result<Vec<String>, Error> {
        self.inner.names().map(self.names)
    }

    fn write(
        &mut self,
        expected_head: Option<HeadToken>,
        puts: &[(Key, Vec<u8>)],
        deletes: &[Key],
        strict: bool,
    ) -> Result<Written, Error> {
        self.inner.write(expected_head, puts, deletes, strict)
    }

    fn replace(&mut self, puts: &[(Key, Vec<u8>)], deletes: &[Key]) -> Result<(), Error> {
        self.inner.replace(puts, deletes)
    }
}

#[test]
fn duplicate_keys() {
    let twice = |names: Vec<String>| {
        let again = names.clone().into_iter().rev();
        names.into_iter().chain(again).collect()
    };
    // Verify and repair count each value once.
    let desk = small(1);
    let mut plain = desk.store.clone();
    let mut store = Odd::new(desk.store.clone());
    store.names = twice;
    assert_eq!(look(&mut store, false), look(&mut plain, false));
    for damaged in [&mut plain, &mut store.inner] {
        damaged.values_mut().get_mut(&Key::head()).unwrap()[60] ^= 1;
    }
    assert_eq!(look(&mut store, true), look(&mut plain, true));
    assert_eq!(Desk::on(store.inner, 8).texts(), Desk::on(plain, 8).texts());
    // Who merges journals merges each once.
    let mut store = PrimitiveStore::new(Capabilities::SINGLE);
    suite::another_writer_is_not_seen(&mut store);
    let mut store = Odd::new(store);
    store.names = twice;
    let options = || suite::suite_options(Capabilities::SINGLE);
    let mut ambient = SeededAmbient::new(50);
    let mut memory = open_with(options(), FakeWrapper(0), &mut store, &mut ambient).unwrap();
    let texts = suite::texts_of(&mut memory, &mut store, &mut ambient).unwrap();
    assert_eq!(texts.len(), 34);
    // An entry twice under two names, by who has the key: told by its writer's numbers.
    let entries = common::entries(&desk.store);
    let doubled = [entries.clone(), entries].concat();
    let bytes = foremind_vault::fuzz::seed(&doubled).unwrap();
    let decoded = foremind_vault::fuzz::entries(&bytes).unwrap();
    let mut engine = foremind_engine::Engine::new();
    let mut once = foremind_engine::Engine::new();
    for (at, entry) in decoded.into_iter().enumerate() {
        if at < doubled.len() / 2 {
            once.apply(entry.clone());
        }
        engine.apply(entry);
    }
    assert_eq!(engine.state_digest(), once.state_digest());
}

#[test]
fn a_store_that_answers_unordered() {
    // Names in any order.
    let desk = small(1);
    let mut store = Odd::new(desk.store.clone());
    store.names = |mut names| {
        names.reverse();
        names.rotate_left(2);
        names
    };
    assert_eq!(
        look(&mut store, false),
        look(&mut desk.store.clone(), false)
    );
    // Values in another order than asked, or another number of them: never taken for the right ones.
    let manners: [fn(Values) -> Values; 4] = [
        |values| values.into_iter().rev().collect(),
        |mut values| {
            values.truncate(1);
            values
        },
        |_| Vec::new(),
        |values| values.iter().chain(&values).cloned().collect(),
    ];
    for (at, manner) in manners.into_iter().enumerate() {
        let mut store = Odd::new(desk.store.clone());
        store.values = manner;
        match opened(&mut store) {
            // More than was asked: the rest is not looked at.
            Ok(_) => assert_eq!(at, 3),
            Err(error) => {
                // A store that shows nothing and takes no new memory either.
                let expected = match at {
                    2 => ErrorCode::Conflict,
                    _ => ErrorCode::Corrupt,
                };
                assert_eq!(error.code, expected, "{at}: {}", error.message);
            }
        }
        assert_eq!(store.inner.values(), desk.store.values());
    }
}

/// Takes the steps of an operation by hand: its request for `head` is answered late.
#[test]
fn a_store_that_answers_slowly() {
    let mut desk = small(1);
    let list = || Request::List {
        scope: ada(),
        tier: None,
        status: None,
        domain: None,
        limit: 1000,
        after: None,
    };
    let mut slow = desk.memory.begin(list());
    let Step::NeedRead { keys } = desk
        .memory
        .step(&mut slow, Reply::Begin, &desk.ambient.tick())
    else {
        panic!("an operation looks at the head first");
    };
    let late = desk.store.read(&keys).unwrap();
    // Meanwhile this memory goes on, by far enough that what the answer names is folded away.
    for number in 0..40 {
        desk.remember(&format!("statement number {number}"));
    }
    let mut reply = Reply::Values(late);
    let listed = loop {
        reply = match desk.memory.step(&mut slow, reply, &desk.ambient.tick()) {
            Step::NeedRead { keys } => Reply::Values(desk.store.read(&keys).unwrap()),
            Step::Done(result) => break result.unwrap(),
            other => panic!("{other:?}"),
        };
    };
    let Response::List(listing) = listed else {
        panic!("{listed:?}");
    };
    assert!(listing.records.len() > 40);
    // A write whose answer comes when another writer is 40 commits on.
    let mut other = Desk::on(desk.store.clone(), 9);
    let mut writing = other.memory.begin(remember("told slowly"));
    let mut reply = Reply::Begin;
    let step = loop {
        match other
            .memory
            .step(&mut writing, reply, &other.ambient.tick())
        {
            Step::NeedRead { keys } => reply = Reply::Values(desk.store.read(&keys).unwrap()),
            Step::NeedEmbed { .. } => {
                reply = Reply::Embedded(Err(foremind_types::EncodeFailure::NotReady));
            }
            step => break step,
        }
    };
    let Step::Commit {
        expected_head,
        puts,
        deletes,
        strict,
    } = step
    else {
        panic!("{step:?}");
    };
    for number in 40..80 {
        desk.remember(&format!("statement number {number}"));
    }
    let written = desk.store.write(expected_head, &puts, &deletes, strict);
    assert_eq!(written, Ok(Written::Conflict));
    let mut reply = Reply::Conflict;
    loop {
        reply = match other
            .memory
            .step(&mut writing, reply, &other.ambient.tick())
        {
            Step::NeedRead { keys } => Reply::Values(desk.store.read(&keys).unwrap()),
            Step::NeedEmbed { .. } => Reply::Embedded(Err(foremind_types::EncodeFailure::NotReady)),
            Step::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => match desk.store.write(expected_head, &puts, &deletes, strict) {
                Ok(Written::Committed) => Reply::Committed,
                Ok(Written::Conflict) => Reply::Conflict,
                Err(error) => Reply::Failed(error),
            },
            Step::NeedNames => Reply::Names(None),
            Step::Done(result) => break result.map(|_| ()).unwrap(),
        };
    }
    let texts = desk.texts();
    assert!(texts.contains("told slowly") && texts.contains("statement number 79"));
}

/// A store that says it reads what was written, and does not.
#[test]
fn a_store_with_stale_reads() {
    let desk = small(1);
    let mut store = Odd::new(desk.store.clone());
    let mut ambient = SeededAmbient::new(9);
    let mut memory = open(HOST_KEY, &mut store, &mut ambient).unwrap();
    let mut heads: Vec<Vec<u8>> = vec![store.inner.values()[&Key::head()].clone()];
    let mut tell = |store: &mut Odd<MemoryStore>, memory: &mut Memory, text: &str| {
        let encoder = &mut NoEncoder;
        drive(memory, remember(text), store, encoder, &mut ambient).map(|_| ())
    };
    for number in 0..3 {
        tell(&mut store, &mut memory, &format!("statement {number}")).unwrap();
        heads.push(store.inner.values()[&Key::head()].clone());
    }
    for stale in &heads[..3] {
        store.stale_head = Some(stale.clone());
        let error = tell(&mut store, &mut memory, "told late").unwrap_err();
        assert_eq!(error.code, ErrorCode::StorageLost);
    }
    // A second writer reads late as well, and its commit is refused by the comparison.
    store.stale_head = None;
    let mut second = open(HOST_KEY, &mut store, &mut SeededAmbient::new(10)).unwrap();
    let before = store.inner.values()[&Key::head()].clone();
    tell(&mut store, &mut memory, "told by the first").unwrap();
    store.stale_head = Some(before);
    let mut late = SeededAmbient::new(11);
    let told = drive(
        &mut second,
        remember("told by the second"),
        &mut store,
        &mut NoEncoder,
        &mut late,
    );
    assert_eq!(told.map(|_| ()).unwrap_err().code, ErrorCode::Conflict);
    store.stale_head = None;
    let told = drive(
        &mut second,
        remember("told by the second"),
        &mut store,
        &mut NoEncoder,
        &mut late,
    );
    told.unwrap();
    let texts = Desk::on(store.inner, 12).texts();
    for text in ["told by the first", "told by the second"] {
        assert!(texts.contains(text), "{text}");
    }
    let told: BTreeSet<&String> = texts.iter().filter(|text| text.contains("late")).collect();
    assert!(told.is_empty());
}

#[test]
fn an_erasure_is_not_undone_by_an_older_value() {
    let mut desk = small(1);
    let id = desk.remember("The code of the door is violet");
    let before: BTreeMap<Key, Vec<u8>> = desk.store.values().clone();
    desk.ask(forget(id)).unwrap();
    let texts = desk.texts();
    // The deleted values come back beside the new head: nobody reads them, and a repair does not either.
    for (key, value) in before {
        desk.store.values_mut().entry(key).or_insert(value);
    }
    assert_eq!(Desk::on(desk.store.clone(), 6).texts(), texts);
    desk.store.values_mut().get_mut(&Key::head()).unwrap()[60] ^= 1;
    look(&mut desk.store, true).unwrap();
    assert_eq!(Desk::on(desk.store, 7).texts(), texts);
}
