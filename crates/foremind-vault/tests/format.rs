//! The document and the code agree, and what was stored once opens for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]
#![allow(clippy::panic, reason = "a test that cannot go on")]

mod common;

use std::path::{Path, PathBuf};

use common::{Disk, HOST_KEY, MEMORY, create, draws, embedding, every_change, id, open, record};
use foremind_types::Change;
use foremind_vault::{
    DataKey, Heard, Key, KeySlot, Passphrase, PassphraseCost, ProfileUpdate, Vault, VaultError,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1.fmstore")
}

#[test]
fn the_document_describes_this_layout() {
    let layout = root().join("crates/foremind-vault/src/format/v1.rs");
    let hash = blake3::hash(&std::fs::read(layout).unwrap()).to_hex();
    let document = std::fs::read_to_string(root().join("docs/FORMAT.md")).unwrap();
    assert!(
        document.contains(&format!("v1.rs blake3 {hash}")),
        "format/v1.rs has the hash {hash}: if no release has written the format yet, bring docs/FORMAT.md up to date and write the hash there; otherwise take the change back and make a new format"
    );
}

#[test]
fn the_document_names_the_pinned_postcard() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let document = std::fs::read_to_string(root().join("docs/FORMAT.md")).unwrap();
    assert!(manifest.contains(r#"postcard = { version = "=1.2.0""#));
    assert!(document.contains("postcard **1.2.0** (pinned)"));
}

/// What the fixture holds: every form of change, 40 loose statements of which 33 are folded, an erasure.
fn story() -> Vec<Vec<Change>> {
    let mut commits = vec![every_change()];
    for number in 2..42 {
        let text = format!("statement number {number}");
        commits.push(vec![Change::Add(Box::new(record(number, &text)))]);
    }
    commits.push(vec![Change::Embed {
        id: id(41),
        embedding: embedding(),
    }]);
    commits.push(vec![Change::Erase {
        id: id(40),
        at_ms: 7,
    }]);
    commits
}

fn pack(disk: &Disk) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in disk {
        let name = key.as_str().as_bytes();
        bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend(name);
        bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
        bytes.extend(value);
    }
    bytes
}

/// The stored values, named as the fixture names them.
fn unpack(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk().unwrap();
        let (name, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        let (length, rest) = rest.split_first_chunk().unwrap();
        let (value, rest) = rest.split_at(usize::try_from(u32::from_le_bytes(*length)).unwrap());
        values.push((String::from_utf8(name.to_vec()).unwrap(), value.to_vec()));
        bytes = rest;
    }
    values
}

/// Opens what was unpacked by asking for values by name, as a store does.
fn disk_of(values: &[(String, Vec<u8>)]) -> Disk {
    let by_name = |key: &Key| {
        let found = values.iter().find(|(name, _)| name == key.as_str());
        found.map(|(_, value)| value.clone())
    };
    let mut disk = Disk::new();
    for key in [Key::slot(), Key::head()] {
        disk.insert(key.clone(), by_name(&key).unwrap());
    }
    // The other names are hashes that only the opened log can tell.
    loop {
        match open(&disk, HOST_KEY) {
            Err(VaultError::Missing { key }) => {
                let value = by_name(&key).unwrap();
                disk.insert(key, value);
            }
            Err(error) => panic!("{error}"),
            Ok(_) => return disk,
        }
    }
}

#[test]
fn the_memory_stored_by_format_1_opens() {
    if std::env::var_os("FOREMIND_BLESS").is_some() && !fixture().exists() {
        let mut log = create(MEMORY, [1; 32]);
        for changes in story() {
            log.commit(changes);
        }
        std::fs::write(fixture(), pack(&log.disk)).unwrap();
    }
    let values = unpack(&std::fs::read(fixture()).unwrap());
    let disk = disk_of(&values);
    assert_eq!(disk.len(), values.len(), "a value that nothing names");
    let (vault, entries) = open(&disk, HOST_KEY).unwrap();
    assert_eq!(vault.memory_id(), MEMORY);
    assert_eq!(vault.head().token().generation(), 43);
    let mut expected = story();
    // The erasure took the place of the record.
    expected[39] = expected[42].clone();
    let stored: Vec<_> = entries.into_iter().map(|one| one.entry.changes).collect();
    assert_eq!(stored, expected);
}

/// A memory with all that format 1 has beside the log.
fn full() -> Disk {
    let mut log = create(MEMORY, [1; 32]);
    let cost = PassphraseCost {
        memory_kib: 64,
        passes: 1,
        lanes: 1,
    };
    let words = Passphrase::new(b"open sesame".to_vec()).unwrap();
    let data_key = DataKey::new([1; 32]);
    let slot =
        KeySlot::write_passphrase(MEMORY, &data_key, &words, cost, 0, &mut draws(900)).unwrap();
    log.disk.insert(Key::slot(), slot.clone());
    log.disk.insert(Key::spare(), slot);
    log.commit_with(every_change(), ProfileUpdate::Write(vec![heard()]));
    log.disk
}

fn heard() -> Heard {
    Heard {
        record: record(1, "I'm allergic to tree nuts"),
        heard_ms: i64::MAX,
    }
}

#[test]
fn the_profile_the_spare_and_the_passphrase_of_format_1_open() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1-full.fmstore");
    if std::env::var_os("FOREMIND_BLESS").is_some() && !path.exists() {
        std::fs::write(&path, pack(&full())).unwrap();
    }
    let values = unpack(&std::fs::read(path).unwrap());
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(value("key"), value("spare"));
    let slot = KeySlot::read(&value("key").unwrap()).unwrap();
    let words = |text: &str| Passphrase::new(text.as_bytes().to_vec()).unwrap();
    assert_eq!(
        slot.unwrap_passphrase(&words("open barley")).unwrap_err(),
        VaultError::WrongKey
    );
    let data_key = slot.unwrap_passphrase(&words("open sesame")).unwrap();
    let vault = Vault::open(MEMORY, &data_key, &value("head").unwrap()).unwrap();
    let stored = value(vault.profile_key().unwrap().as_str());
    assert_eq!(vault.read_profile(stored).unwrap(), [heard()]);
    assert_eq!(vault.head().runs().len(), 1);
    let run = &vault.head().runs()[0];
    let chunks: Vec<_> = vault
        .keys_of(run)
        .iter()
        .map(|key| value(key.as_str()))
        .collect();
    let entries = vault.read_run(run, &chunks).unwrap();
    assert_eq!(entries[0].entry.changes, every_change());
    assert_eq!(values.len(), 5);
}

#[test]
fn a_slot_that_asks_for_gigabytes_is_corrupt() {
    let disk = full();
    let value = &disk[&Key::slot()];
    for (at, asks) in [(81, u32::MAX), (85, 17), (89, 5), (81, 300_000)] {
        let mut value = value.clone();
        value[at..at + 4].copy_from_slice(&asks.to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&value[..32]);
        hasher.update(&value[48..]);
        let sum = hasher.finalize();
        value[32..48].copy_from_slice(&sum.as_bytes()[..16]);
        let words = Passphrase::new(b"open sesame".to_vec()).unwrap();
        let error = KeySlot::read(&value)
            .unwrap()
            .unwrap_passphrase(&words)
            .unwrap_err();
        assert!(matches!(error, VaultError::Layout { .. }), "{error}");
    }
}
