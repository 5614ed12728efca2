//! What a memory promises on every store, by the strategy that the store allows: one suite, run on native stores and on
//! the component in its host.

#![allow(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each function is a test"
)]

use std::collections::{BTreeMap, BTreeSet};

use foremind_memory::{
    Capabilities, DataKey, KeySource, Memory, OpenOptions, Request, Response, Strategy,
};
use foremind_types::{Error, ErrorCode, Name, RecordId, Role, Scope};

use crate::{
    Crash, FakeWrapper, MemoryStore, NoEncoder, PrimitiveStore, SeededAmbient, Store, drive,
    open_with,
};

/// Values by name.
pub type Values = BTreeMap<String, Vec<u8>>;

/// A store on some host, and how a memory on it is used.
pub trait House {
    /// An open memory.
    type Seat;

    /// What the store can do.
    fn capabilities(&self) -> Capabilities;

    /// Opens the memory, or makes it; no two seeds give the same randomness.
    ///
    /// # Errors
    /// The opening's.
    fn open(&mut self, seed: u64) -> Result<Self::Seat, Error>;

    /// Tells it something; the records that hold it.
    ///
    /// # Errors
    /// The operation's.
    fn remember(&mut self, seat: &mut Self::Seat, text: &str) -> Result<Vec<RecordId>, Error>;

    /// Erases a record.
    ///
    /// # Errors
    /// The operation's.
    fn forget(&mut self, seat: &mut Self::Seat, id: RecordId) -> Result<(), Error>;

    /// All texts, once the seat has looked for what others wrote.
    ///
    /// # Errors
    /// The operation's.
    fn texts(&mut self, seat: &mut Self::Seat) -> Result<BTreeSet<String>, Error>;

    /// Everything stored.
    fn values(&self) -> Values;

    /// Replaces everything stored.
    fn put_back(&mut self, values: Values);
}

/// Every value of a memory but its key slots, decrypted by nothing but docs/FORMAT.md, by name. What does not open is left
/// out.
#[must_use]
pub fn decrypted(values: &Values) -> Values {
    use chacha20poly1305::aead::{Aead, Payload};
    use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
    let slot = foremind_vault::KeySlot::read(&values["key"]).unwrap();
    let data_key = slot.unwrap_host(&SUITE_KEY).unwrap();
    let seal = blake3::derive_key("foremind format 1 seal", data_key.as_bytes());
    let cipher = XChaCha20Poly1305::new((&seal).into());
    let open = |name: &String, value: &Vec<u8>| {
        let nonce: [u8; 24] = value.get(48..72)?.try_into().ok()?;
        let aad = [
            b"fm1value",
            slot.memory_id().0.as_slice(),
            &value[..32],
            name.as_bytes(),
        ]
        .concat();
        let payload = Payload {
            msg: &value[72..],
            aad: &aad,
        };
        Some((name.clone(), cipher.decrypt(&nonce.into(), payload).ok()?))
    };
    values
        .iter()
        .filter_map(|(name, value)| open(name, value))
        .collect()
}

/// What of an erasure is left: stored values that hold one of the words, and names that the head does not account for.
#[must_use]
pub fn left_over(values: &Values, words: &[String]) -> BTreeSet<String> {
    let slot = foremind_vault::KeySlot::read(&values["key"]).unwrap();
    let data_key = slot.unwrap_host(&SUITE_KEY).unwrap();
    let vault = foremind_vault::Vault::open(slot.memory_id(), &data_key, &values["head"]).unwrap();
    let named: BTreeSet<String> = vault.names().iter().map(ToString::to_string).collect();
    let mut left: BTreeSet<String> = values
        .keys()
        .filter(|name| !named.contains(*name))
        .cloned()
        .collect();
    let plain = decrypted(values);
    assert_eq!(plain.len() + 2, values.len(), "a value that does not open");
    for (name, value) in plain {
        let text = String::from_utf8_lossy(&value);
        if words.iter().any(|word| text.contains(word.as_str())) {
            left.insert(name);
        }
    }
    left
}

/// A word that stands in no other fact.
#[must_use]
pub fn word_of(number: usize) -> String {
    format!("zq{number:04}vx")
}

/// Facts that hold such a word each, told and forgotten one by one, leave nothing, whatever lay about in the store.
pub fn what_is_forgotten_is_gone<H: House>(house: &mut H, facts: usize) {
    let mut seat = house.open(1).unwrap();
    house
        .remember(&mut seat, "My sister lives in Lisbon")
        .unwrap();
    let mut ids = Vec::new();
    let mut lying_about = Values::new();
    for number in 0..facts {
        let text = match number % 2 {
            0 => format!("I'm allergic to {}", word_of(number)),
            _ => format!("The painter {} was born in Porto", word_of(number)),
        };
        ids.extend(house.remember(&mut seat, &text).unwrap());
        if number % 10 == 0 {
            lying_about.extend(house.values());
        }
    }
    // What cut commits left.
    let mut values = house.values();
    for (name, value) in lying_about {
        values.entry(name).or_insert(value);
    }
    house.put_back(values);
    let words: Vec<String> = (0..facts).map(word_of).collect();
    let (first, last) = ids.split_at(ids.len() - 1);
    for id in first {
        house.forget(&mut seat, *id).unwrap();
    }
    assert!(!left_over(&house.values(), &words).is_empty());
    house.forget(&mut seat, last[0]).unwrap();
    assert_eq!(left_over(&house.values(), &words), BTreeSet::new());
    let mut next = house.open(2).unwrap();
    let texts = house.texts(&mut next).unwrap();
    assert_eq!(
        texts,
        BTreeSet::from(["My sister lives in Lisbon".to_owned()])
    );
}

/// A store whose writes can be cut and raced.
pub trait Perilous: House {
    /// An empty one of the same kind.
    #[must_use]
    fn another(&self) -> Self;

    /// Plans that a write, counted from now, fails and all that follows; `after`: once it is done. `None` ends it.
    fn crash(&mut self, at: Option<(u64, bool)>);

    /// Writes since the last [`Perilous::crash`].
    fn writes(&self) -> u64;

    /// Plans that the next commit finds these values added by somebody else.
    fn race(&mut self, when: Race, others: Values);
}

/// When somebody else writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// After an operation has looked for what others wrote and before its commit looks at the head.
    Seen,
    /// After its commit has looked at the head and before it has written anything.
    Unseen,
}

fn open<H: House>(house: &mut H, seed: u64) -> H::Seat {
    house.open(seed).unwrap()
}

/// What was told is there for who opens the memory next; what was forgotten is not.
pub fn told_is_there_for_the_next_one<H: House>(house: &mut H) {
    let mut seat = open(house, 1);
    let mut expected = BTreeSet::new();
    let mut first = None;
    for number in 0..80 {
        let text = format!("statement number {number}");
        let ids = house.remember(&mut seat, &text).unwrap();
        first = first.or(ids.first().copied());
        expected.insert(text);
    }
    house.forget(&mut seat, first.unwrap()).unwrap();
    expected.remove("statement number 0");
    house
        .remember(&mut seat, "I'm allergic to tree nuts")
        .unwrap();
    expected.insert("I'm allergic to tree nuts".to_owned());
    assert_eq!(house.texts(&mut seat).unwrap(), expected);
    let mut next = open(house, 2);
    assert_eq!(house.texts(&mut next).unwrap(), expected);
    // Few values are left over: 33 loose entries at most, segments, and what the last commits replaced.
    let names = house.values().len();
    assert!(names < 60, "{names} values");
}

/// Two that have it open and take turns lose nothing, on any store.
pub fn two_that_take_turns_lose_nothing<H: House>(house: &mut H) {
    let mut seats = [open(house, 1), open(house, 2)];
    for number in 0..70 {
        let text = format!("statement number {number}");
        let seat = &mut seats[number % 3 % 2];
        house.remember(seat, &text).unwrap();
    }
    let texts = seats.each_mut().map(|seat| house.texts(seat).unwrap());
    assert_eq!(texts[0].len(), 70);
    assert_eq!(texts[0], texts[1]);
    let mut late = open(house, 3);
    assert_eq!(house.texts(&mut late).unwrap(), texts[0]);
}

/// What a second writer told on a copy of the store, its seat at that copy, and the copy.
fn told_elsewhere<H: Perilous>(house: &H, seed: u64, text: &str) -> (H, H::Seat) {
    let mut copy = house.another();
    copy.put_back(house.values());
    let mut seat = open(&mut copy, seed);
    copy.remember(&mut seat, text).unwrap();
    (copy, seat)
}

/// A writer that comes first and can be seen: where the store compares or counts, both write; where one writer is promised,
/// the second is refused before it has written anything, and may try again.
pub fn another_writer_is_seen<H: Perilous>(house: &mut H) {
    let mut first = open(house, 1);
    house.remember(&mut first, "told before").unwrap();
    let (other, _) = told_elsewhere(house, 2, "told by the second");
    house.race(Race::Seen, other.values());
    let told = house.remember(&mut first, "told by the first");
    if house.capabilities().strategy() == Ok(Strategy::Single) {
        assert_eq!(told.unwrap_err().code, ErrorCode::Conflict);
        assert!(
            house.values() == other.values(),
            "who is refused writes nothing"
        );
        house.remember(&mut first, "told by the first").unwrap();
    } else {
        told.unwrap();
    }
    let expected = ["told before", "told by the first", "told by the second"];
    let expected = BTreeSet::from(expected.map(str::to_owned));
    assert_eq!(house.texts(&mut first).unwrap(), expected);
    let mut next = open(house, 3);
    assert_eq!(house.texts(&mut next).unwrap(), expected);
}

/// A writer that comes in between the look at the head and the writing of it: where the store compares, the other plans
/// again. Elsewhere the head is replaced, which its writer is told at its next read, and an opening merges both.
pub fn another_writer_is_not_seen<H: Perilous>(house: &mut H) {
    for told_before in [3, 32] {
        *house = house.another();
        let mut first = open(house, 1);
        for number in 0..told_before {
            let text = format!("statement number {number}");
            house.remember(&mut first, &text).unwrap();
        }
        let (mut other, mut second) = told_elsewhere(house, 2, "told by the second");
        house.race(Race::Unseen, other.values());
        house.remember(&mut first, "told by the first").unwrap();
        other.put_back(house.values());
        let strategy = house.capabilities().strategy().unwrap();
        if strategy.needs_journals() {
            let error = other.texts(&mut second).unwrap_err();
            assert_eq!(error.code, ErrorCode::Conflict);
            let error = other.remember(&mut second, "told to nobody").unwrap_err();
            assert_eq!(error.code, ErrorCode::Conflict);
        } else {
            assert_eq!(other.texts(&mut second).unwrap().len(), told_before + 2);
        }
        let mut merged = open(house, 3);
        let texts = house.texts(&mut merged).unwrap();
        assert_eq!(texts.len(), told_before + 2);
        for text in ["told by the first", "told by the second"] {
            assert!(texts.contains(text), "{text}");
        }
        // Nothing is merged twice.
        let head = house.values().remove("head");
        let mut next = open(house, 4);
        assert_eq!(house.texts(&mut next).unwrap(), texts);
        assert!(house.values().remove("head") == head);
    }
}

/// A host that goes at any write of a history, before or after it, leaves each operation written as a whole or not at all.
pub fn no_cut_loses_or_halves_a_write<H: Perilous>(house: &mut H, operations: usize) {
    // The making of the memory.
    let mut making = house.another();
    making.crash(None);
    open(&mut making, 1);
    let mut cuts = 0;
    for write in 0..making.writes() {
        for after in [false, true] {
            let mut cut = house.another();
            cut.crash(Some((write, after)));
            let _ = cut.open(1);
            cut.crash(None);
            let mut fresh = open(&mut cut, 2);
            assert_eq!(cut.texts(&mut fresh).unwrap(), BTreeSet::new());
            cuts += 1;
        }
    }
    let mut seat = open(house, 1);
    let mut known: Vec<(RecordId, String)> = Vec::new();
    let mut texts = BTreeSet::new();
    for number in 0..operations {
        let before = house.values();
        let old = texts.clone();
        house.crash(None);
        let erased = (number % 5 == 4).then(|| known.remove(0));
        let text = match number % 3 {
            0 => format!("I'm allergic to nut number {number}"),
            _ => format!("statement number {number}"),
        };
        let tell = |house: &mut H, seat: &mut H::Seat| match &erased {
            Some((id, _)) => house.forget(seat, *id).map(|()| Vec::new()),
            None => house.remember(seat, &text),
        };
        let ids = tell(house, &mut seat).unwrap();
        known.extend(ids.into_iter().map(|id| (id, text.clone())));
        match &erased {
            Some((_, gone)) => texts.remove(gone),
            None => texts.insert(text.clone()),
        };
        for write in 0..house.writes() {
            for after in [false, true] {
                let mut cut = house.another();
                cut.put_back(before.clone());
                let mut late = open(&mut cut, 1_000 + cuts);
                cut.crash(Some((write, after)));
                let acknowledged = tell(&mut cut, &mut late).is_ok();
                cut.crash(None);
                let mut fresh = open(&mut cut, 500_000 + cuts);
                let found = cut.texts(&mut fresh).unwrap();
                let at = format!("operation {number}, write {write}, after: {after}");
                assert!(found == texts || (found == old && !acknowledged), "{at}");
                cuts += 1;
            }
        }
    }
    assert!(cuts > 0);
}

/// The memory's key in this suite.
pub const SUITE_KEY: [u8; 32] = [7; 32];

/// The owner in this suite.
#[must_use]
pub fn suite_scope() -> Scope {
    Scope::user(Name::new("ada").unwrap())
}

/// How the suite opens a memory on a store of these capabilities.
#[must_use]
pub fn suite_options(capabilities: Capabilities) -> OpenOptions {
    let mut options = OpenOptions::new(KeySource::Host(DataKey::new(SUITE_KEY)));
    options.journals = capabilities.strategy().is_ok_and(Strategy::needs_journals);
    options.atomic_batches = capabilities.atomic_batch;
    options
}

/// All texts of the suite's owner.
///
/// # Errors
/// The operation's.
pub fn texts_of(
    memory: &mut Memory,
    store: &mut dyn Store,
    ambient: &mut SeededAmbient,
) -> Result<BTreeSet<String>, Error> {
    let list = Request::List {
        scope: suite_scope(),
        tier: None,
        status: None,
        domain: None,
        limit: 1000,
        after: None,
    };
    match drive(memory, list, store, &mut NoEncoder, ambient)? {
        Response::List(listing) => {
            let count = listing.records.len();
            let texts: BTreeSet<String> = listing.records.into_iter().map(|one| one.text).collect();
            assert_eq!(texts.len(), count, "a record twice");
            Ok(texts)
        }
        other => panic!("{other:?}"),
    }
}

/// A person at a memory that is driven natively.
#[derive(Debug)]
pub struct NativeSeat {
    /// The memory.
    pub memory: Memory,
    /// Its clock and randomness.
    pub ambient: SeededAmbient,
}

impl NativeSeat {
    fn open(store: &mut dyn Store, seed: u64) -> Result<Self, Error> {
        let mut ambient = SeededAmbient::new(seed);
        let options = suite_options(store.capabilities());
        let memory = open_with(options, FakeWrapper(0), store, &mut ambient)?;
        Ok(Self { memory, ambient })
    }

    fn ask(&mut self, store: &mut dyn Store, request: Request) -> Result<Response, Error> {
        let memory = &mut self.memory;
        drive(memory, request, store, &mut NoEncoder, &mut self.ambient)
    }

    fn remember(&mut self, store: &mut dyn Store, text: &str) -> Result<Vec<RecordId>, Error> {
        let request = Request::Remember {
            scope: suite_scope(),
            text: text.to_owned(),
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        match self.ask(store, request)? {
            Response::Remember { records } => Ok(records.iter().map(|one| one.record.id).collect()),
            other => panic!("{other:?}"),
        }
    }

    fn forget(&mut self, store: &mut dyn Store, id: RecordId) -> Result<(), Error> {
        let scope = suite_scope();
        let target = foremind_engine::ForgetTarget::Id(id);
        let request = Request::Forget {
            scope,
            target,
            preview: None,
        };
        self.ask(store, request).map(|_| ())
    }

    fn texts(&mut self, store: &mut dyn Store) -> Result<BTreeSet<String>, Error> {
        texts_of(&mut self.memory, store, &mut self.ambient)
    }
}

macro_rules! native_house {
    ($store:ty) => {
        impl House for $store {
            type Seat = NativeSeat;

            fn capabilities(&self) -> Capabilities {
                Store::capabilities(self)
            }

            fn open(&mut self, seed: u64) -> Result<NativeSeat, Error> {
                NativeSeat::open(self, seed)
            }

            fn remember(
                &mut self,
                seat: &mut NativeSeat,
                text: &str,
            ) -> Result<Vec<RecordId>, Error> {
                seat.remember(self, text)
            }

            fn forget(&mut self, seat: &mut NativeSeat, id: RecordId) -> Result<(), Error> {
                seat.forget(self, id)
            }

            fn texts(&mut self, seat: &mut NativeSeat) -> Result<BTreeSet<String>, Error> {
                seat.texts(self)
            }

            fn values(&self) -> Values {
                let values = self.values().iter();
                values
                    .map(|(key, value)| (key.to_string(), value.clone()))
                    .collect()
            }

            fn put_back(&mut self, values: Values) {
                *self.values_mut() = crate::primitive::keyed(values);
            }
        }
    };
}

native_house!(MemoryStore);
native_house!(PrimitiveStore);

impl Perilous for PrimitiveStore {
    fn another(&self) -> Self {
        Self::new(Store::capabilities(self))
    }

    fn crash(&mut self, at: Option<(u64, bool)>) {
        let kind = |after| if after { Crash::After } else { Crash::Before };
        self.crash(at.map(|(write, after)| (write, kind(after))));
    }

    fn writes(&self) -> u64 {
        self.writes()
    }

    fn race(&mut self, when: Race, others: Values) {
        self.meanwhile = Some((when, crate::primitive::keyed(others)));
    }
}
