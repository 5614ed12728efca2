//! The suite for every store, on the component of each world in a host that offers that store.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use std::collections::BTreeSet;

use foremind_component_tests::{
    Buckets, Called, Fault, ForgetTarget, Instance, OpenOptions, Scope, World, code,
};
use foremind_testkit::suite::{self, House, Perilous, Race, SUITE_KEY, Values};
use foremind_testkit::{Capabilities, PrimitiveStore, SeededAmbient};
use foremind_types::{Error, ErrorCode, RecordId};
use wasmtime::component::ResourceAny;

const BUCKET: &str = "ada";

/// A machine with one bucket, on which instances of one component run.
struct Machine {
    world: World,
    buckets: Buckets,
}

/// A memory in an instance of its own.
struct Seat {
    instance: Instance,
    memory: ResourceAny,
}

fn scope() -> Scope {
    Scope {
        user: "ada".to_owned(),
        project: None,
        thread: None,
        agent: None,
    }
}

/// The component's error as one of the core.
fn told<T>(called: Called<T>) -> Result<T, Error> {
    called
        .unwrap()
        .map_err(|error| Error::new(code(&error), format!("{error:?}")))
}

impl Machine {
    fn of(world: World) -> Self {
        Self {
            world,
            buckets: Buckets::default(),
        }
    }
}

impl House for Machine {
    type Seat = Seat;

    fn capabilities(&self) -> Capabilities {
        match self.world {
            World::Draft2 | World::Model | World::Service => Capabilities::SWAP,
            World::Draft => Capabilities::TICKET,
            World::Spin | World::ServiceSpin => Capabilities::SINGLE,
        }
    }

    fn open(&mut self, seed: u64) -> Result<Seat, Error> {
        let mut instance = Instance::of(self.world, &self.buckets, seed).unwrap();
        let options = OpenOptions {
            key: SUITE_KEY.to_vec(),
            model: None,
            utc_offset_min: 0,
            policy: None,
        };
        let memory = told(instance.open(BUCKET, &options))?;
        Ok(Seat { instance, memory })
    }

    fn remember(&mut self, seat: &mut Seat, text: &str) -> Result<Vec<RecordId>, Error> {
        let ids = told(seat.instance.remember(seat.memory, &scope(), text))?;
        Ok(ids.iter().map(|id| id.parse().unwrap()).collect())
    }

    fn forget(&mut self, seat: &mut Seat, id: RecordId) -> Result<(), Error> {
        let target = ForgetTarget::Id(id.to_string());
        told(seat.instance.forget(seat.memory, &scope(), &target)).map(|_| ())
    }

    /// The component shows its profile; all texts are read from the bucket by the native core, which must agree.
    fn texts(&mut self, seat: &mut Seat) -> Result<BTreeSet<String>, Error> {
        let shown = told(seat.instance.profile(seat.memory, &scope(), Some(100_000)))?;
        let mut store = PrimitiveStore::new(self.capabilities());
        store.put_back(self.values());
        let native = House::open(&mut store, 9_999_999)?;
        let mut ambient = SeededAmbient::new(1);
        let mut memory = native.memory;
        let texts = suite::texts_of(&mut memory, &mut store, &mut ambient)?;
        let allergies: Vec<&String> = texts
            .iter()
            .filter(|one| one.contains("allergic"))
            .collect();
        let shows = |text: &str| shown.text.contains(text);
        // Up to so many the profile holds.
        if allergies.len() <= 20 {
            assert!(allergies.iter().all(|text| shows(text)), "{}", shown.text);
        }
        assert_eq!(shows("allergic"), !allergies.is_empty());
        Ok(texts)
    }

    fn values(&self) -> Values {
        self.buckets.values(BUCKET)
    }

    fn put_back(&mut self, values: Values) {
        self.buckets.tamper(BUCKET, |stored| *stored = values);
    }
}

impl Perilous for Machine {
    fn another(&self) -> Self {
        Self::of(self.world)
    }

    fn crash(&mut self, at: Option<(u64, bool)>) {
        let fault = |(write, after)| {
            if after {
                Fault::After(write)
            } else {
                Fault::Before(write)
            }
        };
        self.buckets.fail(at.map(fault));
    }

    fn writes(&self) -> u64 {
        self.buckets.writes()
    }

    fn race(&mut self, when: Race, others: Values) {
        self.buckets.race(when, BUCKET, others);
    }
}

#[test]
fn what_is_told_is_there_for_the_next_one() {
    for world in World::ALL {
        suite::told_is_there_for_the_next_one(&mut Machine::of(world));
    }
}

#[test]
fn two_that_take_turns_lose_nothing() {
    for world in World::ALL {
        suite::two_that_take_turns_lose_nothing(&mut Machine::of(world));
    }
}

#[test]
fn another_writer_that_can_be_seen_is_waited_for_or_refused() {
    for world in World::ALL {
        suite::another_writer_is_seen(&mut Machine::of(world));
    }
}

#[test]
fn a_lost_race_is_told_and_both_journals_are_merged() {
    for world in World::ALL {
        suite::another_writer_is_not_seen(&mut Machine::of(world));
    }
}

#[test]
fn no_cut_loses_or_halves_a_write() {
    let long = std::env::var_os("FOREMIND_LONG").is_some();
    let operations = if long { 50 } else { 6 };
    for world in World::ALL {
        suite::no_cut_loses_or_halves_a_write(&mut Machine::of(world), operations);
    }
}

#[test]
fn each_store_says_when_it_is_denied_or_unknown_and_when_it_fails() {
    for world in World::ALL {
        let buckets = Buckets::default();
        let open = |bucket: &str| {
            let mut instance = Instance::of(world, &buckets, 1).unwrap();
            let options = OpenOptions {
                key: SUITE_KEY.to_vec(),
                model: None,
                utc_offset_min: 0,
                policy: None,
            };
            told(instance.open(bucket, &options)).map(|_| ())
        };
        for bucket in ["denied", ""] {
            assert_eq!(open(bucket).unwrap_err().code, ErrorCode::StorageDenied);
        }
        buckets.fail(Some(Fault::Before(0)));
        assert_eq!(open(BUCKET).unwrap_err().code, ErrorCode::StorageFailed);
        buckets.fail(None);
        assert_eq!(open(BUCKET), Ok(()));
    }
}

#[test]
fn numbers_that_were_counted_are_taken_away_again() {
    let mut machine = Machine::of(World::Draft);
    let mut seat = machine.open(1).unwrap();
    for number in 0..5 {
        let text = format!("statement number {number}");
        machine.remember(&mut seat, &text).unwrap();
    }
    assert_eq!(machine.buckets.counted(BUCKET), Vec::<String>::new());
    // One whose commit was cut stays until somebody writes that generation.
    machine.crash(Some((1, false)));
    machine.remember(&mut seat, "never told").unwrap_err();
    machine.crash(None);
    assert_eq!(machine.buckets.counted(BUCKET), ["ticket-6"]);
    let mut next = machine.open(2).unwrap();
    machine.remember(&mut next, "told after").unwrap();
    assert_eq!(machine.buckets.counted(BUCKET), Vec::<String>::new());
}
