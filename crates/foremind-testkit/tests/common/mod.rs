//! A person at a memory: verbs in one line each.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use std::collections::BTreeSet;

use foremind_engine::{ForgetTarget, IngestMode, TurnStatus};
use foremind_memory::{Memory, Request, Response};
use foremind_testkit::{Encoder, MemoryStore, NoEncoder, SeededAmbient, drive, open};
use foremind_types::{Entry, Error, Name, RecordId, Role, Scope};
use foremind_vault::{Key, KeySlot, Vault};

pub const HOST_KEY: [u8; 32] = [7; 32];

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn ada() -> Scope {
    Scope::user(name("ada"))
}

pub fn remember(text: &str) -> Request {
    Request::Remember {
        scope: ada(),
        text: text.to_owned(),
        role: Role::User,
        thread: None,
        turn: None,
        tier: None,
    }
}

pub fn ingest(turn: &str, text: &str) -> Request {
    Request::Ingest {
        scope: ada(),
        thread: name("t1"),
        turn: name(turn),
        role: Role::User,
        text: text.to_owned(),
        status: TurnStatus::Ok,
        mode: IngestMode::On,
        finding: false,
    }
}

pub fn forget(id: RecordId) -> Request {
    Request::Forget {
        scope: ada(),
        target: ForgetTarget::Id(id),
        preview: None,
    }
}

/// A memory with its store and its clock.
pub struct Desk {
    pub store: MemoryStore,
    pub memory: Memory,
    pub ambient: SeededAmbient,
}

impl Desk {
    pub fn new() -> Self {
        Self::on(MemoryStore::default(), 1)
    }

    pub fn on(mut store: MemoryStore, seed: u64) -> Self {
        let mut ambient = SeededAmbient::new(seed);
        let memory = open(HOST_KEY, &mut store, &mut ambient).unwrap();
        Self {
            store,
            memory,
            ambient,
        }
    }

    pub fn with(&mut self, request: Request, encoder: &mut dyn Encoder) -> Result<Response, Error> {
        drive(
            &mut self.memory,
            request,
            &mut self.store,
            encoder,
            &mut self.ambient,
        )
    }

    pub fn ask(&mut self, request: Request) -> Result<Response, Error> {
        self.with(request, &mut NoEncoder)
    }

    pub fn remember(&mut self, text: &str) -> RecordId {
        ids(&self.ask(remember(text)).unwrap())[0]
    }

    pub fn texts(&mut self) -> BTreeSet<String> {
        texts(&mut self.memory, &mut self.store, &mut self.ambient)
    }
}

/// The records that a write made.
pub fn ids(response: &Response) -> Vec<RecordId> {
    match response {
        Response::Remember { records } | Response::Ingest { records, .. } => {
            records.iter().map(|noted| noted.record.id).collect()
        }
        other => panic!("not a write: {other:?}"),
    }
}

/// All texts that can be listed, of any status.
pub fn texts(
    memory: &mut Memory,
    store: &mut MemoryStore,
    ambient: &mut SeededAmbient,
) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut after = None;
    loop {
        let request = Request::List {
            scope: ada(),
            tier: None,
            status: None,
            domain: None,
            limit: 1000,
            after,
        };
        let listed = drive(memory, request, store, &mut NoEncoder, ambient).unwrap();
        let Response::List(page) = listed else {
            panic!("not a listing: {listed:?}");
        };
        for record in page.records {
            assert!(texts.insert(record.text), "a record twice");
        }
        after = page.next;
        if after.is_none() {
            return texts;
        }
    }
}

/// The name of the stored profile.
pub fn profile_key(store: &MemoryStore) -> Option<Key> {
    let values = store.values();
    let slot = KeySlot::read(&values[&Key::slot()]).unwrap();
    let data_key = slot.unwrap_host(&HOST_KEY).unwrap();
    let vault = Vault::open(slot.memory_id(), &data_key, &values[&Key::head()]).unwrap();
    vault.profile_key()
}

/// Every entry in the store, decrypted.
pub fn entries(store: &MemoryStore) -> Vec<Entry> {
    let values = store.values();
    let slot = KeySlot::read(&values[&Key::slot()]).unwrap();
    let data_key = slot.unwrap_host(&HOST_KEY).unwrap();
    let vault = Vault::open(slot.memory_id(), &data_key, &values[&Key::head()]).unwrap();
    // The key, its spare, the head, and the profile if there is one.
    let mut named = 3 + usize::from(vault.profile_key().is_some());
    let mut entries = Vec::new();
    for run in vault.head().runs() {
        let stored: Vec<_> = vault
            .keys_of(run)
            .iter()
            .map(|key| values.get(key).cloned())
            .collect();
        named += stored.len();
        let read = vault.read_run(run, &stored).unwrap();
        entries.extend(read.into_iter().map(|one| one.entry));
    }
    assert_eq!(named, values.len(), "a value that no head names");
    entries
}

/// The peak of the process's memory, where the system tells it.
pub fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A small generator for schedules (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }
}
