//! A disk, a writer on it, and entries that use every form of change.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::collections::BTreeMap;

use foremind_types::{
    Change, Domain, Embedding, Entry, Evidence, Grade, HeadId, Judgement, Layer, MemoryId, ModelId,
    Name, Provenance, Reason, Record, RecordId, Revision, Role, Route, Scope, Severity, Stage,
    Status, Subject, SupersedeKind, Supersedes, Tier, Times, Ttl, WriterId,
};
use foremind_vault::{
    Batch, DataKey, Draws, Key, KeySlot, ProfileUpdate, Sequenced, Vault, VaultError,
};

pub type Disk = BTreeMap<Key, Vec<u8>>;

pub const HOST_KEY: [u8; 32] = [7; 32];
pub const MEMORY: MemoryId = MemoryId(*b"memory-of-tests!");

pub struct Log {
    pub vault: Vault,
    pub disk: Disk,
    writer: WriterId,
    commits: u64,
}

pub fn draws(step: u64) -> Draws {
    Draws::new(&[3; 32], 1, step)
}

pub fn create(memory_id: MemoryId, data_key: [u8; 32]) -> Log {
    let data_key = DataKey::new(data_key);
    let mut draws = draws(u64::from(memory_id.0[0]) << 32);
    let slot = KeySlot::write_host(memory_id, &data_key, &HOST_KEY, 0, &mut draws).unwrap();
    let (vault, batch) = Vault::create(memory_id, &data_key, &mut draws).unwrap();
    let mut log = Log {
        vault,
        disk: Disk::from([(Key::slot(), slot)]),
        writer: WriterId(1),
        commits: 0,
    };
    log.write(&batch);
    log
}

impl Log {
    pub fn write(&mut self, batch: &Batch) {
        let head = self
            .disk
            .get(&Key::head())
            .map(|head| foremind_vault::HeadToken::of(head).unwrap());
        assert_eq!(head, batch.expected_head);
        for key in &batch.deletes {
            self.disk.remove(key);
        }
        for (key, value) in &batch.puts {
            assert!(value.len() <= foremind_types::limits::VALUE_BYTES);
            let old = self.disk.insert(key.clone(), value.clone());
            assert!(
                old.is_none() || *key == Key::head(),
                "{key} was written twice"
            );
        }
    }

    pub fn commit(&mut self, changes: Vec<Change>) -> Batch {
        self.commit_with(changes, ProfileUpdate::Keep)
    }

    pub fn commit_with(&mut self, changes: Vec<Change>, profile: ProfileUpdate) -> Batch {
        let (counter, lamport) = self.vault.next_stamp(self.writer);
        let entry = Entry {
            writer: self.writer,
            counter,
            lamport,
            at_ms: 1_000 + i64::try_from(self.commits).unwrap(),
            changes,
        };
        let entries = [entry];
        let plan = self.vault.plan(&entries);
        let read = self
            .vault
            .reads(&plan)
            .iter()
            .map(|run| read_run(&self.vault, &self.disk, run).unwrap())
            .collect();
        self.commits += 1;
        let batch = self
            .vault
            .batch(&plan, read, &entries, profile, &mut draws(self.commits))
            .unwrap();
        self.write(&batch);
        assert!(self.vault.absorb(&batch.entries[0]).unwrap());
        self.vault.install(batch.head.clone());
        batch
    }
}

pub fn read_run(
    vault: &Vault,
    disk: &Disk,
    run: &foremind_vault::Run,
) -> Result<Vec<Sequenced>, VaultError> {
    let values: Vec<_> = vault
        .keys_of(run)
        .iter()
        .map(|key| disk.get(key).cloned())
        .collect();
    vault.read_run(run, &values)
}

/// Everything in the log, verified.
pub fn open(disk: &Disk, host_key: [u8; 32]) -> Result<(Vault, Vec<Sequenced>), VaultError> {
    let missing = |key| VaultError::Missing { key };
    let slot = disk.get(&Key::slot()).ok_or(missing(Key::slot()))?;
    let head = disk.get(&Key::head()).ok_or(missing(Key::head()))?;
    let slot = KeySlot::read(slot)?;
    let data_key = slot.unwrap_host(&host_key)?;
    let mut vault = Vault::open(slot.memory_id(), &data_key, head)?;
    let mut entries = Vec::new();
    for run in vault.missing(&vault.head().clone()) {
        for sequenced in read_run(&vault, disk, &run)? {
            assert!(vault.absorb(&sequenced)?);
            entries.push(sequenced);
        }
    }
    Ok((vault, entries))
}

pub fn id(number: u8) -> RecordId {
    RecordId::from_bytes([number; 16])
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn route() -> Route {
    Route {
        grade: Grade::Modifier,
        tier: Tier::Profile,
        priority: 0.75,
        severity: Severity::Severe,
        domain: Domain::Allergy,
        affects: vec![Domain::Food, Domain::Travel],
        ttl: Ttl::Dated { until_ms: -5 },
        score: 0.85,
        reasons: vec![Reason {
            signal: "dietary-word".to_owned(),
            matched: "allergic".to_owned(),
            weight: 0.85,
        }],
        stage: Stage::Lexical,
        judgement: Judgement::Pending,
    }
}

pub fn record(number: u8, text: &str) -> Record {
    Record {
        id: id(number),
        scope: Scope {
            user: name("ada"),
            project: Some(name("kitchen")),
            thread: Some(name("t1")),
            agent: Some(name("cook")),
        },
        text: text.to_owned(),
        layer: Layer::Fact,
        route: route(),
        subject: Subject::Owner,
        attribute: Some("allergy".to_owned()),
        value: Some("tree nuts".to_owned()),
        times: Times {
            told_ms: 1_795_910_400_000,
            utc_offset_min: -90,
            valid_from_ms: Some(1),
            valid_to_ms: Some(i64::MIN),
        },
        status: Status::Current,
        supersedes: vec![Supersedes {
            id: id(200),
            kind: SupersedeKind::Corrected,
            why: "the owner said so".to_owned(),
        }],
        evidence: vec![Evidence {
            id: id(201),
            quote: "exact words".to_owned(),
        }],
        provenance: Provenance {
            role: Role::User,
            thread: Some(name("t1")),
            turn: Some(name("turn-1")),
            statement: 3,
        },
        confirmed_ms: Some(i64::MAX),
        proof_count: 2,
    }
}

pub fn embedding() -> Embedding {
    Embedding {
        model_id: ModelId("model".to_owned()),
        head_id: HeadId("embedding/1".to_owned()),
        vector: (-128..=127)
            .chain(0..=127)
            .map(|one: i16| one as i8)
            .collect(),
        scale: 0.0078125,
        features: vec![-1.5, 0.0],
    }
}

/// One of each form.
pub fn every_change() -> Vec<Change> {
    let revise = |revision| Change::Revise {
        id: id(1),
        revision,
    };
    vec![
        Change::Add(Box::new(record(1, "I'm allergic to tree nuts"))),
        revise(Revision::Status {
            status: Status::Superseded,
            valid_to_ms: Some(12),
        }),
        revise(Revision::Route(Box::new(route()))),
        revise(Revision::Confirmed { at_ms: 13 }),
        revise(Revision::Told {
            at_ms: 14,
            proof_count: u32::MAX,
        }),
        Change::Embed {
            id: id(1),
            embedding: embedding(),
        },
        Change::Turn {
            scope: Scope::user(name("ada")),
            thread: name("t1"),
            turn: name("turn-1"),
            records: vec![id(1), id(2)],
        },
        Change::Erase {
            id: id(99),
            at_ms: 15,
        },
    ]
}
