//! A memory that is published to a store which is read late: what is read there is whole, says how old it is, and is never
//! written to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Desk, Dice, HOST_KEY, ada, forget, ingest, remember};
use foremind_memory::{
    DataKey, Freshness, KeySource, Memory, OpenOptions, PublishReply, PublishStep, Publisher,
    RETAIN_MS, Request, Task,
};
use foremind_testkit::{
    FakeWrapper, File, LaggingStore, MemoryStore, NoEncoder, SeededAmbient, Store, drive,
    open_with, publish, run, suite,
};
use foremind_types::{Error, ErrorCode, Tier};
use foremind_vault::Key;

const LAG_MS: i64 = LaggingStore::LAG_MS as i64;

/// The memory, its publisher, its replica, and the time that all of them agree on.
struct Place {
    desk: Desk,
    publisher: Publisher,
    replica: LaggingStore,
    now_ms: i64,
}

impl Place {
    fn new(replica: LaggingStore) -> Self {
        Self {
            desk: Desk::new(),
            publisher: Publisher::new(),
            replica,
            now_ms: 1_000_000,
        }
    }

    fn advance_ms(&mut self, ms: i64) {
        self.now_ms += ms;
        self.replica.advance_ms(ms as u64);
    }

    fn publish(&mut self) -> Result<foremind_memory::Published, Error> {
        publish(
            &mut self.publisher,
            &self.desk.memory,
            &mut self.desk.store,
            &mut self.replica,
            self.now_ms,
        )
    }

    fn open(&mut self, seed: u64) -> Result<Reader, Error> {
        let options = OpenOptions::replica(KeySource::Host(DataKey::new(HOST_KEY)));
        let mut ambient = SeededAmbient::new(seed);
        let memory = open_with(options, FakeWrapper(0), &mut self.replica, &mut ambient)?;
        Ok(Reader { memory, ambient })
    }

    /// What a reader says, and how fresh it says to be.
    fn read(&mut self, reader: &mut Reader) -> (BTreeSet<String>, Freshness) {
        let replica = &mut self.replica;
        let texts = suite::texts_of(&mut reader.memory, replica, &mut reader.ambient).unwrap();
        (texts, reader.memory.freshness(self.now_ms))
    }
}

struct Reader {
    memory: Memory,
    ambient: SeededAmbient,
}

#[test]
fn what_is_published_is_read_later_and_says_how_old_it_is() {
    let mut place = Place::new(LaggingStore::default());
    place.desk.remember("I'm allergic to tree nuts");
    let one = place.desk.texts();
    place.publish().unwrap();
    // Too early: nothing can be seen yet, and that is remembered for a while.
    let early = place.open(2).map(|_| ()).unwrap_err();
    assert_eq!(early.code, ErrorCode::StorageLost);
    place.advance_ms(2 * LAG_MS);
    let mut reader = place.open(3).unwrap();
    let generation = place.desk.memory.generation();
    let (texts, fresh) = place.read(&mut reader);
    assert_eq!(texts, one);
    assert_eq!(
        fresh,
        Freshness {
            generation,
            age_ms: Some(120_000),
            newer: None
        }
    );
    // What is told next takes its time; meanwhile the answer is the old one, and older by what has passed.
    place.desk.remember("My sister lives in Lisbon");
    place.publish().unwrap();
    place.advance_ms(59_999);
    let (texts, fresh) = place.read(&mut reader);
    assert_eq!(texts, one);
    assert_eq!(fresh.generation, generation);
    assert_eq!(fresh.age_ms, Some(179_999));
    place.advance_ms(LAG_MS);
    let (texts, fresh) = place.read(&mut reader);
    assert_eq!(texts.len(), 2);
    assert_eq!(fresh.generation, generation + 1);
    assert_eq!(fresh.age_ms, Some(119_999));
    // Nothing new: the stamp alone says that this is still the newest.
    let published = place.publish().unwrap();
    assert_eq!(published.values, 1);
    place.advance_ms(LAG_MS);
    assert_eq!(place.read(&mut reader).1.age_ms, Some(60_000));
    // A memory that reads its own store is as new as its last reading.
    let own = place.desk.memory.freshness(place.now_ms);
    assert_eq!(own.age_ms, Some(0));
}

#[test]
fn nothing_is_written_to_a_replica() {
    let mut place = Place::new(LaggingStore::default());
    let id = place.desk.remember("I'm allergic to tree nuts");
    place.publish().unwrap();
    place.advance_ms(2 * LAG_MS);
    let mut reader = place.open(3).unwrap();
    let before = place.replica.latest();
    let update = Request::Update {
        scope: ada(),
        id,
        tier: Tier::Profile,
    };
    let turn = ingest("1", "We have a cat.");
    for request in [remember("told to a replica"), turn, forget(id), update] {
        let Reader { memory, ambient } = &mut reader;
        let asked = drive(memory, request, &mut place.replica, &mut NoEncoder, ambient);
        let error = asked.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported, "{}", error.message);
    }
    let mut file = File::default();
    let export = Task::Export { passphrase: None };
    let rekey = Task::Rekey {
        key: KeySource::Host(DataKey::new([8; 32])),
    };
    let import = Task::Import {
        passphrase: None,
        restore: false,
    };
    for (task, works) in [(export, true), (rekey, false), (import, false)] {
        let Reader { memory, ambient } = &mut reader;
        let replica = &mut place.replica;
        let ran = run(memory, task, FakeWrapper(0), &mut file, replica, ambient);
        match ran {
            Ok(_) => assert!(works),
            Err(error) => assert_eq!((error.code, works), (ErrorCode::Unsupported, false)),
        }
    }
    assert!(!file.bytes.is_empty());
    assert_eq!(place.replica.latest(), before);
    assert_eq!(place.read(&mut reader).0.len(), 1);
}

#[test]
fn a_publication_a_second_and_fewer_when_the_store_takes_no_more() {
    let mut place = Place::new(LaggingStore::default());
    place.desk.remember("I'm allergic to tree nuts");
    let first = place.publish().unwrap();
    // The entry, the profile, the key, the head, the stamp.
    assert_eq!(first.values, 5);
    place.desk.remember("My sister lives in Lisbon");
    assert_eq!(place.publisher.wait_ms(place.now_ms), 1_000);
    let early = place.publish().unwrap_err();
    assert_eq!(early.code, ErrorCode::LimitReached);
    place.advance_ms(999);
    assert_eq!(place.publisher.wait_ms(place.now_ms), 1);
    place.advance_ms(1);
    let second = place.publish().unwrap();
    // The entry, the head, the stamp: nothing else has changed.
    assert_eq!(second.values, 3);
    // Somebody else wrote `head` there just now: the store answers 429, and the publisher waits longer each time.
    place.desk.remember("We have a cat");
    let mut waits = Vec::new();
    for _ in 0..4 {
        place.advance_ms(place.publisher.wait_ms(place.now_ms) as i64);
        let head = place.replica.latest().remove(&Key::head());
        place.replica.publish(&Key::head(), head).unwrap();
        let refused = place.publish().unwrap_err();
        assert!(refused.message.starts_with("429"), "{}", refused.message);
        waits.push(place.publisher.wait_ms(place.now_ms));
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000]);
    place.advance_ms(8_000);
    // The entry was written at the first attempt, and is not written again.
    assert_eq!(place.publish().unwrap().values, 2);
    assert_eq!(place.publisher.wait_ms(place.now_ms), 1_000);
}

#[test]
fn a_head_that_is_seen_before_its_values_is_no_news() {
    let mut place = Place::new(LaggingStore::default());
    place.desk.remember("I'm allergic to tree nuts");
    place.publish().unwrap();
    place.advance_ms(2 * LAG_MS);
    let mut reader = place.open(3).unwrap();
    let (one, before) = place.read(&mut reader);
    place.desk.remember("My sister lives in Lisbon");
    let old: BTreeSet<Key> = place.replica.latest().into_keys().collect();
    place.publish().unwrap();
    // A reader elsewhere asked for the new value too early, and the place remembers that there was none.
    let new: Vec<Key> = place.replica.latest().into_keys().collect();
    let new: Vec<Key> = new.into_iter().filter(|key| !old.contains(key)).collect();
    assert_eq!(new.len(), 1);
    place.advance_ms(LAG_MS - 1);
    assert_eq!(place.replica.read(&new).unwrap(), [None]);
    place.advance_ms(1);
    let (texts, fresh) = place.read(&mut reader);
    assert_eq!(texts, one);
    assert_eq!(fresh.generation, before.generation);
    assert_eq!(fresh.newer, Some(before.generation + 1));
    // Who opens there now sees no whole memory, and is told to come again.
    let error = place.open(4).map(|_| ()).unwrap_err();
    assert_eq!(error.code, ErrorCode::StorageFailed);
    place.advance_ms(LAG_MS);
    let (texts, fresh) = place.read(&mut reader);
    assert_eq!(texts.len(), 2);
    assert_eq!(
        (fresh.generation, fresh.newer),
        (before.generation + 1, None)
    );
    assert_eq!(place.open(5).map(|_| ()), Ok(()));
}

#[test]
fn a_publisher_that_starts_again_publishes_what_is_named_and_removes_the_rest() {
    let mut place = Place::new(LaggingStore::default());
    for number in 0..40 {
        place.desk.remember(&format!("statement number {number}"));
        if number % 10 == 0 {
            place.publish().unwrap();
            place.advance_ms(1_000);
        }
    }
    let stray = place.replica.latest();
    place.publisher = Publisher::new();
    // By hand, since this replica can be listed.
    let step = |place: &mut Place, reply| {
        let memory = &place.desk.memory;
        place.publisher.step(memory, reply, place.now_ms)
    };
    assert_eq!(
        step(&mut place, PublishReply::Begin),
        PublishStep::NeedNames
    );
    let names = stray.keys().map(ToString::to_string).collect();
    let mut reply = PublishReply::Names(Some(names));
    loop {
        reply = match step(&mut place, reply) {
            PublishStep::NeedRead { keys } => {
                PublishReply::Values(place.desk.store.read(&keys).unwrap())
            }
            PublishStep::Write(puts) => {
                for (key, value) in puts {
                    place.replica.publish(&key, Some(value)).unwrap();
                }
                PublishReply::Done
            }
            PublishStep::End(end) => break end.map(|_| ()).unwrap(),
            other => panic!("{other:?}"),
        };
    }
    let strays = |place: &Place| {
        let own = place.desk.store.values();
        let latest = place.replica.latest().into_keys();
        latest
            .filter(|key| !own.contains_key(key) && *key != Key::stamp())
            .count()
    };
    assert!(strays(&place) > 0);
    place.advance_ms(RETAIN_MS - 1);
    place.publish().unwrap();
    assert!(strays(&place) > 0);
    place.advance_ms(1_000);
    place.publish().unwrap();
    assert_eq!(strays(&place), 0);
    place.advance_ms(2 * LAG_MS);
    let mut reader = place.open(3).unwrap();
    assert_eq!(place.read(&mut reader).0, place.desk.texts());
}

/// A day at a memory whose replica answers each read from another place: at any time each reader says exactly what the
/// memory said at the generation that the reader names, and that generation was the newest within the age that it names.
#[test]
fn whatever_is_seen_was_true_within_its_age() {
    let mut place = Place::new(LaggingStore::scattered());
    let mut dice = Dice(7);
    // What was true from when on, by generation.
    let mut history: BTreeMap<u64, (i64, BTreeSet<String>)> = BTreeMap::new();
    history.insert(
        place.desk.memory.generation(),
        (place.now_ms, BTreeSet::new()),
    );
    let mut known = Vec::new();
    let mut readers: Vec<Reader> = Vec::new();
    let (mut answers, mut late, mut unknown) = (0, 0, 0);
    for number in 0..400 {
        place.advance_ms(500 + dice.roll(20_000) as i64);
        match dice.roll(10) {
            0..4 => {
                let text = match dice.roll(3) {
                    0 => format!("I'm allergic to nut number {number}"),
                    _ => format!("statement number {number}"),
                };
                known.push(place.desk.remember(&text));
                let texts = place.desk.texts();
                history.insert(place.desk.memory.generation(), (place.now_ms, texts));
            }
            4 if !known.is_empty() => {
                let id = known.swap_remove(dice.roll(known.len()));
                place.desk.ask(forget(id)).unwrap();
                let texts = place.desk.texts();
                history.insert(place.desk.memory.generation(), (place.now_ms, texts));
            }
            4..7 => {
                let waits = place.publisher.wait_ms(place.now_ms) > 0;
                assert_eq!(place.publish().is_err(), waits);
            }
            _ => {
                if readers.len() < 3 {
                    // Not to be seen as a whole yet, or opened.
                    match place.open(1_000 + number) {
                        Ok(reader) => readers.push(reader),
                        Err(error) => assert!(
                            [ErrorCode::StorageLost, ErrorCode::StorageFailed]
                                .contains(&error.code)
                        ),
                    }
                    continue;
                }
                let at = dice.roll(readers.len());
                let (texts, fresh) = place.read(&mut readers[at]);
                let (_, then) = &history[&fresh.generation];
                assert_eq!(&texts, then, "generation {}", fresh.generation);
                answers += 1;
                let Some(age_ms) = fresh.age_ms else {
                    unknown += 1;
                    continue;
                };
                let since_ms = place.now_ms - i64::try_from(age_ms).unwrap();
                // The next state came later than that.
                let next = history.range(fresh.generation + 1..).next();
                assert!(
                    next.is_none_or(|(_, (at_ms, _))| *at_ms >= since_ms),
                    "{fresh:?}"
                );
                late += u32::from(next.is_some());
            }
        }
    }
    assert!(answers > 80 && late > 30, "{answers} answers, {late} late");
    assert!(
        unknown * 4 < answers,
        "{unknown} of {answers} of unknown age"
    );
    // In the end all of them come to the newest state.
    place.advance_ms(1_000);
    place.publish().unwrap();
    let texts = place.desk.texts();
    for mut reader in readers {
        // A missing value may be remembered once more.
        for _ in 0..4 {
            place.advance_ms(2 * LAG_MS);
            place.read(&mut reader);
        }
        assert_eq!(place.read(&mut reader).0, texts);
    }
}

#[test]
fn what_is_erased_leaves_the_replica_in_time() {
    let mut place = Place::new(LaggingStore::default());
    let id = place.desk.remember("The code of the door is violet");
    place.desk.remember("My sister lives in Lisbon");
    place.publish().unwrap();
    let before: BTreeMap<Key, Vec<u8>> = place.replica.latest();
    place.desk.ask(forget(id)).unwrap();
    place.advance_ms(1_000);
    place.publish().unwrap();
    place.advance_ms(RETAIN_MS);
    place.publish().unwrap();
    let own: &MemoryStore = &place.desk.store;
    let after = place.replica.latest();
    for key in before.keys().filter(|key| Key::is_of_log(key.as_str())) {
        assert_eq!(
            after.contains_key(key),
            own.values().contains_key(key),
            "{key}"
        );
    }
    assert!(before.keys().any(|key| !after.contains_key(key)));
}
