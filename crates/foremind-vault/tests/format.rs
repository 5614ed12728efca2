//! The document and the code agree, and what was stored once opens for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]
#![allow(clippy::panic, reason = "a test that cannot go on")]

mod common;

use std::path::{Path, PathBuf};

use common::{Disk, HOST_KEY, MEMORY, create, embedding, every_change, id, open, record};
use foremind_types::Change;
use foremind_vault::{Key, VaultError};

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
