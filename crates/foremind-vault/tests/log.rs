//! What is written comes back, folded or not, and whatever is altered is noticed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

mod common;

use common::{Disk, HOST_KEY, Log, MEMORY, create, every_change, id, open, record};
use foremind_types::{
    Change, Domain, Grade, Judgement, Layer, MemoryId, Role, Severity, Stage, Status, Subject,
    SupersedeKind, Tier, Ttl,
};
use foremind_vault::{
    DataKey, HeadToken, Key, KeySlot, LOOSE_ENTRIES, SEGMENTS_PER_LEVEL, Salvage, VaultError,
};

fn texts(disk: &Disk) -> Vec<String> {
    let (_, entries) = open(disk, HOST_KEY).unwrap();
    let added = entries.iter().flat_map(|one| &one.entry.changes);
    added
        .filter_map(|change| match change {
            Change::Add(record) => Some(record.text.clone()),
            _ => None,
        })
        .collect()
}

fn add(number: u8, text: &str) -> Vec<Change> {
    vec![Change::Add(Box::new(record(number, text)))]
}

fn small() -> Log {
    let mut log = create(MEMORY, [1; 32]);
    log.commit(every_change());
    log.commit(add(2, "Our kitchen has marble worktops"));
    log.commit(add(3, "My sister lives in Lisbon"));
    log
}

#[test]
fn every_form_of_change_comes_back() {
    let mut log = create(MEMORY, [1; 32]);
    log.commit(every_change());
    let (_, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].sequence, 1);
    assert_eq!(entries[0].entry.changes, every_change());
}

#[test]
fn every_word_of_the_vocabulary_comes_back() {
    let mut records = Vec::new();
    let mut each = |change: &mut dyn FnMut(&mut foremind_types::Record)| {
        let mut one = record(1, "a statement");
        change(&mut one);
        records.push(one);
    };
    Grade::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.grade = w));
    Tier::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.tier = w));
    Severity::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.severity = w));
    Stage::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.stage = w));
    Judgement::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.judgement = w));
    Layer::ALL.iter().for_each(|&w| each(&mut |r| r.layer = w));
    Status::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.status = w));
    Subject::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.subject = w));
    Role::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.provenance.role = w));
    Domain::ALL
        .iter()
        .for_each(|&w| each(&mut |r| r.route.domain = w));
    each(&mut |r| r.route.affects = Domain::ALL.to_vec());
    for kind in [
        SupersedeKind::Changed,
        SupersedeKind::Corrected,
        SupersedeKind::Merged,
    ] {
        each(&mut |r| r.supersedes[0].kind = kind);
    }
    for ttl in [
        Ttl::Permanent,
        Ttl::UntilChanged,
        Ttl::Dated { until_ms: 1 },
        Ttl::Session { until_ms: -1 },
    ] {
        each(&mut |r| r.route.ttl = ttl);
    }
    let changes: Vec<_> = records
        .into_iter()
        .map(|one| Change::Add(Box::new(one)))
        .collect();
    let mut log = create(MEMORY, [1; 32]);
    log.commit(changes.clone());
    let (_, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert_eq!(entries[0].entry.changes, changes);
}

#[test]
fn folding_keeps_every_entry_and_bounds_the_values() {
    let mut log = create(MEMORY, [1; 32]);
    let mut expected = Vec::new();
    let mut most = 0;
    for number in 0..600_u32 {
        let text = format!("statement number {number}");
        log.commit(add((number % 250) as u8, &text));
        expected.push(text);
        most = most.max(log.disk.len());
        if number % 50 == 49 {
            assert_eq!(texts(&log.disk), expected);
        }
    }
    assert_eq!(texts(&log.disk), expected);
    // Key, head, loose entries up to the fold, and segments of two levels.
    let bound = 2 + LOOSE_ENTRIES + 1 + 2 * (SEGMENTS_PER_LEVEL + 1);
    assert!(most <= bound, "{most} values, bound {bound}");
    assert!(log.disk.len() < 60);
}

#[test]
fn a_writer_that_was_folded_under_reads_only_what_it_lacks() {
    let mut log = create(MEMORY, [1; 32]);
    for number in 0..30 {
        log.commit(add(number, "told early"));
    }
    let (mut reader, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert_eq!(entries.len(), 30);
    for number in 30..40 {
        log.commit(add(number, "told late"));
    }
    let head = reader.read_head(&log.disk[&Key::head()], 30).unwrap();
    let mut fresh = Vec::new();
    for run in reader.missing(&head) {
        for sequenced in common::read_run(&reader, &log.disk, &run).unwrap() {
            if reader.absorb(&sequenced).unwrap() {
                fresh.push(sequenced.sequence);
            }
        }
    }
    reader.install(head);
    assert_eq!(fresh, (31..=40).collect::<Vec<u64>>());
    assert_eq!(reader.head().token(), log.vault.head().token());
}

#[test]
fn an_entry_larger_than_a_value_is_split() {
    let mut log = create(MEMORY, [1; 32]);
    let text = "0123456789abcdef".repeat(8 * 1024 / 16);
    let changes: Vec<_> = (0..400)
        .map(|_| Change::Add(Box::new(record(1, &text))))
        .collect();
    let batch = log.commit(changes.clone());
    assert!(batch.puts.len() > 4, "3.2 MB need four values and a head");
    let (_, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert_eq!(entries[0].entry.changes, changes);
    for number in 0..40 {
        log.commit(add(number, "short"));
    }
    let (_, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert_eq!(entries.len(), 41);
    assert_eq!(entries[0].entry.changes, changes);
}

#[test]
fn flipped_bits_are_noticed_in_every_byte() {
    let log = small();
    let mut tried = 0_u32;
    for (key, value) in &log.disk {
        for at in 0..value.len() {
            // All bits of the header, one of each byte behind it.
            let bits = if at < 72 { 0..8 } else { at % 8..at % 8 + 1 };
            for bit in bits {
                let mut disk = log.disk.clone();
                disk.get_mut(key).unwrap()[at] ^= 1 << bit;
                // What is sealed opens without its checksum, which only a check of everything reads.
                let sealed = !matches!(key.as_str(), "head" | "key" | "spare");
                if sealed && (32..48).contains(&at) {
                    let (_, entries) = open(&disk, HOST_KEY).unwrap();
                    assert_eq!(entries, open(&log.disk, HOST_KEY).unwrap().1);
                    let salvage = Salvage::new(MEMORY, &DataKey::new([1; 32]));
                    let noticed = salvage.check(key, &disk[key]);
                    assert_eq!(noticed, Err(VaultError::Checksum { key: key.clone() }));
                    tried += 1;
                    continue;
                }
                let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
                let noticed = match &error {
                    VaultError::NotForemind { key: named } => named == key && at < 4,
                    VaultError::Checksum { key: named } => named == key && at >= 4,
                    _ => false,
                };
                assert!(noticed, "{key} byte {at} bit {bit}: {error}");
                tried += 1;
            }
        }
    }
    assert!(tried > 3_000);
}

#[test]
fn every_truncation_is_noticed() {
    let log = small();
    for (key, value) in &log.disk {
        for length in 0..value.len() {
            let mut disk = log.disk.clone();
            disk.get_mut(key).unwrap().truncate(length);
            let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
            assert_eq!(
                error.code(),
                foremind_types::ErrorCode::Corrupt,
                "{key} cut to {length}"
            );
        }
    }
}

#[test]
fn a_missing_value_is_named() {
    let log = small();
    for key in log.disk.keys() {
        let mut disk = log.disk.clone();
        disk.remove(key);
        let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
        assert_eq!(error, VaultError::Missing { key: key.clone() });
    }
}

#[test]
fn values_under_each_others_names_are_noticed() {
    let log = small();
    let keys: Vec<_> = log.disk.keys().cloned().collect();
    for one in &keys {
        for other in keys.iter().filter(|other| *other != one) {
            let mut disk = log.disk.clone();
            disk.insert(one.clone(), log.disk[other].clone());
            let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
            let noticed = matches!(
                &error,
                VaultError::Seal { key } | VaultError::Header { key, .. } if key == one
            );
            assert!(noticed, "{other} under {one}: {error}");
        }
    }
}

#[test]
fn values_of_another_memory_are_noticed() {
    let log = small();
    let mut other = create(MemoryId(*b"another-memory!!"), [2; 32]);
    other.commit(every_change());
    for key in [Key::head(), Key::slot()] {
        let mut disk = log.disk.clone();
        disk.insert(key.clone(), other.disk[&key].clone());
        let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
        assert_eq!(error, VaultError::Seal { key: Key::head() });
    }
    let foreign = other.disk.iter().find(|(key, _)| key.as_str().len() == 32);
    let (_, foreign) = foreign.unwrap();
    for key in log.disk.keys().filter(|key| key.as_str().len() == 32) {
        let mut disk = log.disk.clone();
        disk.insert(key.clone(), foreign.clone());
        let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
        assert_eq!(error, VaultError::Seal { key: key.clone() });
    }
}

#[test]
fn a_wrong_key_is_not_taken_for_damage() {
    let log = small();
    let error = open(&log.disk, [8; 32]).map(|_| ()).unwrap_err();
    assert_eq!(error, VaultError::WrongKey);
}

#[test]
fn a_newer_format_is_left_alone() {
    let log = small();
    for key in log.disk.keys() {
        let mut disk = log.disk.clone();
        let value = disk.get_mut(key).unwrap();
        value[4..6].copy_from_slice(&2_u16.to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&value[..32]).update(&value[48..]);
        let sum = hasher.finalize();
        value[32..48].copy_from_slice(&sum.as_bytes()[..16]);
        let error = open(&disk, HOST_KEY).map(|_| ()).unwrap_err();
        assert_eq!(
            error,
            VaultError::NewerFormat {
                key: key.clone(),
                format: 2
            }
        );
    }
}

#[test]
fn a_store_that_goes_back_is_noticed_by_who_saw_more() {
    let mut log = small();
    let old = log.disk[&Key::head()].clone();
    let seen = log.vault.head().token().generation();
    log.commit(add(4, "told since"));
    assert!(log.vault.read_head(&old, seen).is_ok(), "a slow answer");
    let error = log.vault.read_head(&old, seen + 1).unwrap_err();
    assert_eq!(
        error,
        VaultError::Replaced {
            seen: seen + 1,
            found: seen
        }
    );
}

#[test]
fn an_erasure_leaves_nothing_in_any_stored_value() {
    let mut log = create(MEMORY, [1; 32]);
    log.commit(every_change());
    for number in 2..120 {
        let mut told = record(number, &format!("statement number {number}"));
        told.evidence[0].id = id(1);
        told.evidence[0].quote = "allergic to tree nuts".to_owned();
        told.supersedes[0].id = id(1);
        told.supersedes[0].why = "tree nuts were named".to_owned();
        told.attribute = None;
        told.value = None;
        told.route.reasons.clear();
        log.commit(vec![Change::Add(Box::new(told))]);
    }
    let before = open(&log.disk, HOST_KEY).unwrap().1;
    let old: Disk = log.disk.clone();
    log.commit(vec![Change::Erase {
        id: id(1),
        at_ms: 77,
    }]);
    let (_, after) = open(&log.disk, HOST_KEY).unwrap();
    let printed = format!("{after:?}");
    for gone in ["tree nuts", "allergic", "embedding/1", "dietary-word"] {
        assert!(format!("{before:?}").contains(gone));
        assert!(!printed.contains(gone), "{gone} is still stored");
    }
    // Nothing else is lost, and every change keeps its place.
    assert_eq!(after.len(), before.len() + 1);
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(one.sequence, other.sequence);
        assert_eq!(one.entry.changes.len(), other.entry.changes.len());
    }
    assert!(printed.contains("statement number 119"));
    // The values that held it are gone, not only unlinked.
    let kept = old.keys().filter(|key| log.disk.contains_key(*key)).count();
    assert!(kept < old.len());
    assert!(log.disk.iter().all(|(key, value)| {
        *key == Key::head() || old.get(key).is_none_or(|same| same == value)
    }));
}

#[test]
fn an_entry_that_still_holds_an_erased_record_is_stored_without_it() {
    let mut log = small();
    log.commit(vec![Change::Erase {
        id: id(2),
        at_ms: 5,
    }]);
    log.commit(add(2, "Our kitchen has marble worktops"));
    let (_, entries) = open(&log.disk, HOST_KEY).unwrap();
    assert!(!format!("{entries:?}").contains("marble"));
}

#[test]
fn known_strings_are_in_no_stored_byte() {
    let mut log = create(MEMORY, [1; 32]);
    let known: Vec<String> = (0..200)
        .map(|n| format!("known string {n:03} of ada"))
        .collect();
    for (number, text) in known.iter().enumerate() {
        log.commit(add((number % 250) as u8, text));
    }
    let names = ["ada", "kitchen", "dietary-word", "tree nuts", "turn-1"];
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    };
    for text in known.iter().map(String::as_str).chain(names) {
        let forms = [
            text.as_bytes().to_vec(),
            utf16(text, u16::to_le_bytes),
            // The other order, without asking the platform for it.
            utf16(text, |unit| unit.swap_bytes().to_le_bytes()),
        ];
        for form in forms.iter().filter(|form| form.len() > 4) {
            for (key, value) in &log.disk {
                let found = value.windows(form.len()).any(|window| window == form);
                assert!(!found, "{text} in {key}");
            }
        }
    }
}

#[test]
fn head_tokens_are_the_start_of_the_head() {
    let log = small();
    let head = &log.disk[&Key::head()];
    let token = HeadToken::of(head).unwrap();
    assert_eq!(token, log.vault.head().token());
    assert_eq!(token.generation(), 3);
    assert_eq!(token.0, head[..32]);
    assert_eq!(HeadToken::of(&head[..31]), None);
}

#[test]
fn an_external_blob_comes_back_and_its_key_is_checked() {
    let data_key = foremind_vault::DataKey::new([9; 32]);
    let write =
        |blob: &[u8]| KeySlot::write_external(MEMORY, &data_key, blob, 0, &mut common::draws(1));
    let slot = KeySlot::read(&write(b"opaque").unwrap()).unwrap();
    assert_eq!(slot.blob(), b"opaque");
    assert_eq!(slot.memory_id(), MEMORY);
    assert_eq!(slot.accept(&data_key), Ok(()));
    let other = foremind_vault::DataKey::new([10; 32]);
    assert_eq!(slot.accept(&other), Err(VaultError::WrongKey));
    assert!(slot.unwrap_host(&HOST_KEY).is_err());
    assert!(write(&[]).is_err());
    assert!(write(&[0; 4097]).is_err());
}
