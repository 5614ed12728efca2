//! One suite for stores of every capability: what a memory promises holds on each, by the strategy that it allows.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::BTreeSet;

use common::{Dice, HOST_KEY, ada, forget, ids, ingest, remember};
use foremind_memory::{
    Capabilities, DataKey, KeySource, Memory, OpenOptions, Report, Request, Response, Strategy,
    Survey, Task,
};
use foremind_testkit::{
    Crash, FakeWrapper, File, LaggingStore, MemoryStore, NoEncoder, PrimitiveStore, SeededAmbient,
    Store, drive, open_with, run, survey,
};
use foremind_types::{Error, ErrorCode, RecordId};
use foremind_vault::Key;

fn options(store: &dyn Store) -> OpenOptions {
    let mut options = OpenOptions::new(KeySource::Host(DataKey::new(HOST_KEY)));
    let strategy = store.capabilities().strategy();
    options.journals = strategy.is_ok_and(Strategy::needs_journals);
    options
}

/// A person at a memory on some store.
struct Seat {
    memory: Memory,
    ambient: SeededAmbient,
}

impl Seat {
    fn try_at(store: &mut dyn Store, seed: u64) -> Result<Self, Error> {
        let mut ambient = SeededAmbient::new(seed);
        let memory = open_with(options(store), FakeWrapper(0), store, &mut ambient)?;
        Ok(Self { memory, ambient })
    }

    fn at(store: &mut dyn Store, seed: u64) -> Self {
        Self::try_at(store, seed).unwrap()
    }

    fn ask(&mut self, store: &mut dyn Store, request: Request) -> Result<Response, Error> {
        let memory = &mut self.memory;
        drive(memory, request, store, &mut NoEncoder, &mut self.ambient)
    }

    fn texts(&mut self, store: &mut dyn Store) -> Result<BTreeSet<String>, Error> {
        let list = Request::List {
            scope: ada(),
            tier: None,
            status: None,
            domain: None,
            limit: 1000,
            after: None,
        };
        match self.ask(store, list)? {
            Response::List(listing) => {
                let count = listing.records.len();
                let texts: BTreeSet<String> =
                    listing.records.into_iter().map(|one| one.text).collect();
                assert_eq!(texts.len(), count, "a record twice");
                Ok(texts)
            }
            other => panic!("{other:?}"),
        }
    }
}

const PRIMITIVE: [Capabilities; 3] = [
    Capabilities::SWAP,
    Capabilities::TICKET,
    Capabilities::SINGLE,
];

fn stores() -> Vec<Box<dyn Store>> {
    let mut stores: Vec<Box<dyn Store>> = vec![Box::new(MemoryStore::default())];
    for capabilities in PRIMITIVE {
        stores.push(Box::new(PrimitiveStore::new(capabilities)));
    }
    stores
}

#[test]
fn the_strategy_follows_from_the_capabilities() {
    let strategies = [
        (Capabilities::FULL, Some(Strategy::Batch)),
        (Capabilities::SWAP, Some(Strategy::Swap)),
        (Capabilities::TICKET, Some(Strategy::Ticket)),
        (Capabilities::SINGLE, Some(Strategy::Single)),
        (
            Capabilities {
                list: false,
                ..Capabilities::SINGLE
            },
            None,
        ),
        (LaggingStore::default().capabilities(), None),
    ];
    for (capabilities, strategy) in strategies {
        match capabilities.strategy() {
            Ok(found) => assert_eq!(Some(found), strategy),
            Err(error) => {
                assert_eq!(strategy, None);
                assert_eq!(error.code, ErrorCode::Unsupported);
            }
        }
    }
}

#[test]
fn what_is_told_is_there_for_the_next_one() {
    for mut store in stores() {
        let store = store.as_mut();
        let mut seat = Seat::at(store, 1);
        let mut expected = BTreeSet::new();
        let mut first = None;
        for number in 0..80 {
            let text = format!("statement number {number}");
            let told = seat.ask(store, remember(&text)).unwrap();
            first = first.or(Some(ids(&told)[0]));
            expected.insert(text);
        }
        seat.ask(store, forget(first.unwrap())).unwrap();
        expected.remove("statement number 0");
        seat.ask(store, ingest("1", "I'm allergic to tree nuts."))
            .unwrap();
        expected.insert("I'm allergic to tree nuts.".to_owned());
        assert_eq!(seat.texts(store).unwrap(), expected);
        let mut next = Seat::at(store, 2);
        assert_eq!(next.texts(store).unwrap(), expected);
        assert_eq!(next.memory.state_digest(), seat.memory.state_digest());
        // Few values are left over, and none of them is of any harm.
        assert!(store.names().unwrap().len() < 60);
        let survey_of = Survey::new(options(store), false);
        let ambient = &mut SeededAmbient::new(9);
        let Report::Verify(found) = survey(survey_of, FakeWrapper(0), store, ambient).unwrap()
        else {
            panic!("no verification");
        };
        assert!(found.whole, "{found:?}");
    }
}

#[test]
fn tasks_work_on_every_store() {
    for mut store in stores() {
        let store = store.as_mut();
        let mut seat = Seat::at(store, 1);
        seat.ask(store, remember("I'm allergic to tree nuts"))
            .unwrap();
        let (mut file, ambient) = (File::default(), &mut SeededAmbient::new(9));
        let export = Task::Export { passphrase: None };
        run(
            &mut seat.memory,
            export,
            FakeWrapper(0),
            &mut file,
            store,
            ambient,
        )
        .unwrap();
        let rekey = Task::Rekey {
            key: KeySource::Host(DataKey::new([8; 32])),
        };
        run(
            &mut seat.memory,
            rekey,
            FakeWrapper(0),
            &mut File::default(),
            store,
            ambient,
        )
        .unwrap();
        let error = Seat::try_at(store, 2).map(|_| ()).unwrap_err();
        assert_eq!(error.code, ErrorCode::WrongKey);
        for mut other in stores() {
            let other = other.as_mut();
            let mut seat = Seat::at(other, 3);
            let import = Task::Import {
                passphrase: None,
                restore: false,
            };
            file.read = 0;
            run(
                &mut seat.memory,
                import,
                FakeWrapper(0),
                &mut file,
                other,
                ambient,
            )
            .unwrap();
            let texts = Seat::at(other, 4).texts(other).unwrap();
            assert_eq!(
                texts,
                BTreeSet::from(["I'm allergic to tree nuts".to_owned()])
            );
        }
    }
}

#[test]
fn two_that_take_turns_lose_nothing() {
    for mut store in stores() {
        let store = store.as_mut();
        let mut seats = [Seat::at(store, 1), Seat::at(store, 2)];
        for number in 0..70 {
            let text = format!("statement number {number}");
            let seat = &mut seats[number % 3 % 2];
            seat.ask(store, remember(&text)).unwrap();
        }
        let texts = seats.each_mut().map(|seat| seat.texts(store).unwrap());
        assert_eq!(texts[0].len(), 70);
        assert_eq!(texts[0], texts[1]);
        let mut late = Seat::at(store, 3);
        assert_eq!(late.texts(store).unwrap(), texts[0]);
        assert_eq!(late.memory.state_digest(), seats[0].memory.state_digest());
    }
}

/// A second writer comes in between the look at the head and the writing of it.
#[test]
fn a_lost_race_is_told_and_both_journals_are_merged() {
    for folded in [false, true] {
        let mut store = PrimitiveStore::new(Capabilities::SINGLE);
        let mut first = Seat::at(&mut store, 1);
        let told_before = if folded { 32 } else { 3 };
        for number in 0..told_before {
            let text = format!("statement number {number}");
            first.ask(&mut store, remember(&text)).unwrap();
        }
        let mut second = Seat::at(&mut store, 2);
        let mut theirs = store.clone();
        second
            .ask(&mut theirs, remember("told by the second"))
            .unwrap();
        store.meanwhile = Some(theirs.values().clone());
        first
            .ask(&mut store, remember("told by the first"))
            .unwrap();
        // The first goes on, the second learns that its head is gone.
        let error = second.texts(&mut store).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        let error = second
            .ask(&mut store, remember("told to nobody"))
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        let mut merged = Seat::at(&mut store, 3);
        let texts = merged.texts(&mut store).unwrap();
        assert_eq!(texts.len(), told_before + 2);
        for text in ["told by the first", "told by the second"] {
            assert!(texts.contains(text), "{text}");
        }
        assert_eq!(Seat::at(&mut store, 4).texts(&mut store).unwrap(), texts);
        // Nothing is merged twice.
        let generation = merged.memory.generation();
        assert_eq!(Seat::at(&mut store, 5).memory.generation(), generation);
    }
}

#[test]
fn with_tickets_only_one_writes_a_generation() {
    let mut store = PrimitiveStore::new(Capabilities::TICKET);
    let mut first = Seat::at(&mut store, 1);
    first.ask(&mut store, remember("told before")).unwrap();
    let mut second = Seat::at(&mut store, 2);
    // The first takes its ticket and is cut; its claim is given up after some attempts, and nothing is lost.
    store.crash(Some((1, Crash::Before)));
    first.ask(&mut store, remember("never told")).unwrap_err();
    store.crash(None);
    second
        .ask(&mut store, remember("told by the second"))
        .unwrap();
    first
        .ask(&mut store, remember("told by the first"))
        .unwrap();
    let texts = Seat::at(&mut store, 3).texts(&mut store).unwrap();
    assert_eq!(texts.len(), 3, "{texts:?}");
}

/// What an operation does to the texts that are there.
type Effect = Box<dyn Fn(&mut BTreeSet<String>)>;

/// One operation of a history, and what it leaves of the texts.
fn operation(number: usize, known: &mut Vec<(RecordId, String)>) -> (Request, Effect) {
    if number % 9 == 8 {
        let (id, text) = known.remove(0);
        return (
            forget(id),
            Box::new(move |texts: &mut BTreeSet<String>| {
                texts.remove(&text);
            }),
        );
    }
    let text = match number % 3 {
        0 => format!("I'm allergic to nut number {number}"),
        _ => format!("statement number {number}"),
    };
    let request = remember(&text);
    (
        request,
        Box::new(move |texts: &mut BTreeSet<String>| {
            texts.insert(text.clone());
        }),
    )
}

/// Everything that a cut can leave of one write of `values` values: all prefixes, all omissions of one, and 32
/// seeded subsets, each once.
fn cuts(values: usize, dice: &mut Dice) -> BTreeSet<u64> {
    let all = if values >= 64 {
        u64::MAX
    } else {
        (1 << values) - 1
    };
    let mut masks: BTreeSet<u64> = (0..values)
        .map(|prefix| all & ((1 << prefix) - 1))
        .collect();
    masks.extend((0..values).map(|omitted| all & !(1 << omitted)));
    for _ in 0..32 {
        let random = (dice.roll(1 << 31) as u64) << 33 ^ (dice.roll(1 << 31) as u64) << 2;
        masks.insert(random.rotate_left(7) & all);
    }
    masks.insert(all);
    masks
}

/// The most values that one write of an operation has.
fn group_size(before: &PrimitiveStore, after: &PrimitiveStore) -> usize {
    let (before, after) = (before.values(), after.values());
    let written = after
        .iter()
        .filter(|(key, value)| before.get(key) != Some(value));
    let deleted = before.keys().filter(|key| !after.contains_key(key));
    written.count().max(deleted.count())
}

#[test]
fn no_crash_loses_or_halves_a_write() {
    let long = std::env::var_os("FOREMIND_LONG").is_some();
    let operations = if long { 500 } else { 40 };
    let mut images = 0;
    for capabilities in PRIMITIVE {
        // The full history where it is checked most; in short for the others.
        let operations = match capabilities {
            Capabilities::SWAP => operations,
            _ => operations.min(100),
        };
        let mut dice = Dice(11);
        let mut store = PrimitiveStore::new(capabilities);
        let mut seat = Seat::at(&mut store, 1);
        let mut known = Vec::new();
        let mut texts = BTreeSet::new();
        for number in 0..operations {
            let (request, change) = operation(number, &mut known);
            let before = store.clone();
            store.crash(None);
            let response = seat.ask(&mut store, request.clone()).unwrap();
            let writes = store.writes();
            if let Response::Remember { records } = &response {
                known.extend(
                    records
                        .iter()
                        .map(|noted| (noted.record.id, noted.record.text.clone())),
                );
            }
            let size = group_size(&before, &store);
            let old = texts.clone();
            change(&mut texts);
            for write in 0..writes {
                let mut kinds = vec![Crash::Before, Crash::After];
                kinds.extend(cuts(size.min(63), &mut dice).into_iter().map(Crash::Some));
                // The head and the claim are one value each.
                if size > 1 || write == 0 {
                    kinds.truncate(if long { usize::MAX } else { 12 });
                } else {
                    kinds.truncate(2);
                }
                for kind in kinds {
                    let mut cut = before.clone();
                    let seed = 1000 + images;
                    let mut late = Seat::at(&mut cut, seed);
                    cut.crash(Some((write, kind)));
                    // A reopening may have merged nothing and written nothing, so that the writes are the same ones.
                    let _ = late.ask(&mut cut, request.clone());
                    cut.crash(None);
                    let found = Seat::at(&mut cut, seed + 500_000).texts(&mut cut).unwrap();
                    assert!(
                        found == old || found == texts,
                        "{capabilities:?}, operation {number}, write {write}, {kind:?}"
                    );
                    images += 1;
                }
            }
        }
    }
    println!("{images} cuts");
}

#[test]
fn a_replica_that_lags_is_read_and_never_written_to() {
    let mut primary = MemoryStore::default();
    let mut seat = Seat::at(&mut primary, 1);
    let mut replica = LaggingStore::default();
    let mut published = std::collections::BTreeMap::new();
    let mut publish = |replica: &mut LaggingStore, primary: &MemoryStore| {
        // Values first, the head last; what the head no longer names stays for those who read late.
        let values = primary.values().clone();
        let mut changed: Vec<_> = values
            .iter()
            .filter(|(key, value)| published.get(*key) != Some(*value))
            .collect();
        changed.sort_by_key(|(key, _)| **key == Key::head());
        for (key, value) in changed {
            replica.publish(key, Some(value.clone())).unwrap();
        }
        published = values;
    };
    seat.ask(&mut primary, remember("I'm allergic to tree nuts"))
        .unwrap();
    publish(&mut replica, &primary);
    // Too early: nothing can be seen yet, and that is remembered for a while.
    let mut options = options(&primary);
    options.create = false;
    options.stale_reads = true;
    let open = |replica: &mut LaggingStore, seed| {
        let ambient = &mut SeededAmbient::new(seed);
        open_with(options.clone(), FakeWrapper(0), replica, ambient)
    };
    assert_eq!(
        open(&mut replica, 2).map(|_| ()).unwrap_err().code,
        ErrorCode::StorageLost
    );
    replica.advance_ms(2 * LaggingStore::LAG_MS);
    let mut reader = Seat {
        memory: open(&mut replica, 3).unwrap(),
        ambient: SeededAmbient::new(4),
    };
    let one = BTreeSet::from(["I'm allergic to tree nuts".to_owned()]);
    assert_eq!(reader.texts(&mut replica).unwrap(), one);
    let generation = reader.memory.generation();
    seat.ask(&mut primary, remember("My sister lives in Lisbon"))
        .unwrap();
    publish(&mut replica, &primary);
    let refused = replica.publish(&Key::head(), None).unwrap_err();
    assert!(refused.message.starts_with("429"));
    assert_eq!(reader.texts(&mut replica).unwrap(), one);
    assert_eq!(reader.memory.generation(), generation);
    replica.advance_ms(2 * LaggingStore::LAG_MS);
    assert_eq!(reader.texts(&mut replica).unwrap().len(), 2);
    assert_eq!(reader.memory.generation(), generation + 1);
    // An edge that is further behind answers: no news, and no loss.
    let mut behind = LaggingStore::default();
    let first = one_commit_earlier(&primary);
    for (key, value) in first.values() {
        behind.publish(key, Some(value.clone())).unwrap();
    }
    behind.advance_ms(2 * LaggingStore::LAG_MS);
    assert_eq!(reader.texts(&mut behind).unwrap().len(), 2);
    let error = reader
        .ask(&mut replica, remember("told to a replica"))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Unsupported);
}

/// The same memory as it was before its last commit.
fn one_commit_earlier(now: &MemoryStore) -> MemoryStore {
    let mut store = MemoryStore::default();
    let mut seat = Seat::at(&mut store, 1);
    seat.ask(&mut store, remember("I'm allergic to tree nuts"))
        .unwrap();
    assert_eq!(store.values()[&Key::slot()], now.values()[&Key::slot()]);
    store
}
