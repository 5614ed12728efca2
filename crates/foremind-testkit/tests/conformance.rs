//! One suite for stores of every capability: what a memory promises holds on each, by the strategy that it allows.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::BTreeSet;

use common::{Dice, HOST_KEY, forget, ingest, remember};
use foremind_memory::{
    Capabilities, DataKey, KeySource, Memory, OpenOptions, Report, Request, Response, Strategy,
    Survey, Task,
};
use foremind_testkit::{
    Crash, FakeWrapper, File, LaggingStore, MemoryStore, NoEncoder, PrimitiveStore, SeededAmbient,
    Store, drive, open_with, run, suite, survey,
};
use foremind_types::{Error, ErrorCode, RecordId};

fn options(store: &dyn Store) -> OpenOptions {
    assert_eq!(HOST_KEY, suite::SUITE_KEY);
    suite::suite_options(store.capabilities())
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
        suite::texts_of(&mut self.memory, store, &mut self.ambient)
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
    suite::told_is_there_for_the_next_one(&mut MemoryStore::default());
    for capabilities in PRIMITIVE {
        suite::told_is_there_for_the_next_one(&mut PrimitiveStore::new(capabilities));
    }
}

#[test]
fn two_that_take_turns_lose_nothing() {
    suite::two_that_take_turns_lose_nothing(&mut MemoryStore::default());
    for capabilities in PRIMITIVE {
        suite::two_that_take_turns_lose_nothing(&mut PrimitiveStore::new(capabilities));
    }
}

#[test]
fn another_writer_that_can_be_seen_is_waited_for_or_refused() {
    for capabilities in PRIMITIVE {
        suite::another_writer_is_seen(&mut PrimitiveStore::new(capabilities));
    }
}

#[test]
fn a_lost_race_is_told_and_both_journals_are_merged() {
    for capabilities in PRIMITIVE {
        suite::another_writer_is_not_seen(&mut PrimitiveStore::new(capabilities));
    }
}

#[test]
fn no_cut_of_the_making_or_of_a_short_history_loses_or_halves_a_write() {
    for capabilities in PRIMITIVE {
        suite::no_cut_loses_or_halves_a_write(&mut PrimitiveStore::new(capabilities), 10);
    }
}

#[test]
fn what_a_history_leaves_on_any_store_is_whole() {
    for mut store in stores() {
        let store = store.as_mut();
        let mut seat = Seat::at(store, 1);
        for number in 0..40 {
            let text = format!("statement number {number}");
            seat.ask(store, remember(&text)).unwrap();
        }
        seat.ask(store, ingest("1", "I'm allergic to tree nuts."))
            .unwrap();
        let next = Seat::at(store, 2);
        assert_eq!(next.memory.state_digest(), seat.memory.state_digest());
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
