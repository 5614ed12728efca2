//! Hostile bytes against what decodes, replays and imports: no panic, no memory beyond the size of what came in. Seeded
//! loops, short in the ordinary run and ten minutes each with `FOREMIND_LONG`. What once failed is kept in
//! `fuzz-crashers/` and tried first.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on, and says how far a long run came"
)]

mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Desk, Dice, entries, forget, ingest, peak_kib, remember};
use foremind_engine::Engine;
use foremind_memory::Task;
use foremind_testkit::{FakeWrapper, File, WordEncoder, run};
use foremind_types::Entry;

const SHORT_ROUNDS: u64 = 4_000;
/// More than any body may take beyond what the process has at the start.
const MEMORY_KIB: u64 = 192 * 1024;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.with(remember("I'm allergic to tree nuts"), &mut WordEncoder)
        .unwrap();
    desk.ask(ingest("1", "We have a cat. The kitchen is of marble."))
        .unwrap();
    let id = desk.remember("The code of the door is violet");
    desk.ask(forget(id)).unwrap();
    desk
}

fn crashers(body: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz-crashers")
        .join(body);
    let Ok(found) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    found.map(|entry| entry.unwrap().path()).collect()
}

/// Alters a few places, cuts, repeats or joins.
fn mutated(seed: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.roll(4) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = dice.roll(bytes.len());
        match dice.roll(7) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.roll(5)],
            2 => bytes.truncate(at),
            // Long lengths in the form of a varint.
            3 => {
                let end = (at + 9).min(bytes.len());
                bytes[at..end].fill(0xff);
                bytes[end - 1] = 0x7f;
            }
            4 => {
                let piece = bytes[at..(at + 40).min(bytes.len())].to_vec();
                let to = dice.roll(bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => {
                bytes.drain(at..(at + 1 + dice.roll(30)).min(bytes.len()));
            }
            _ => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
        }
    }
    bytes
}

fn fuzz(name: &str, seeds: &[Vec<u8>], mut body: impl FnMut(&[u8])) {
    for path in crashers(name) {
        body(&std::fs::read(path).unwrap());
    }
    let long = std::env::var_os("FOREMIND_LONG").is_some();
    let until = Instant::now() + Duration::from_secs(600);
    let before = peak_kib();
    let mut dice = Dice(2026);
    let mut rounds = 0;
    while if long {
        Instant::now() < until
    } else {
        rounds < SHORT_ROUNDS
    } {
        let seed = &seeds[dice.roll(seeds.len())];
        let input = mutated(seed, &mut dice);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&input)));
        if let Err(panic) = caught {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("fuzz-crashers")
                .join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join(format!("{}", blake3::hash(&input).to_hex()));
            std::fs::write(&file, &input).unwrap();
            eprintln!("kept as {}", file.display());
            std::panic::resume_unwind(panic);
        }
        rounds += 1;
    }
    if let (Some(before), Some(after)) = (before, peak_kib()) {
        // The system's count of the peak is not exact.
        let grown = after.saturating_sub(before);
        assert!(grown < MEMORY_KIB, "{grown} KiB");
    }
    println!("{name}: {rounds} rounds");
}

fn stored() -> Vec<Entry> {
    entries(&desk().store)
}

#[test]
fn decoding() {
    let all = stored();
    let mut seeds = vec![foremind_vault::fuzz::seed(&all).unwrap()];
    for entry in &all {
        seeds.push(foremind_vault::fuzz::seed(std::slice::from_ref(entry)).unwrap());
    }
    // A manifest of two runs and some garbage, by hand: counts, then places.
    let place = [vec![1], vec![7; 16], vec![0, 1, 100]].concat();
    let run = |from: u8| [vec![0, from, from], place.clone()].concat();
    seeds.push([vec![2, 2], run(1), run(2), vec![0, 1], place.clone()].concat());
    assert!(foremind_vault::fuzz::manifest(seeds.last().unwrap()));
    seeds.extend(desk().store.values().values().cloned());
    fuzz("decode", &seeds, |bytes| {
        let _ = foremind_vault::fuzz::entries(bytes);
        let _ = foremind_vault::fuzz::profile(bytes);
        let _ = foremind_vault::fuzz::manifest(bytes);
        assert!(!foremind_vault::fuzz::head(bytes));
        let _ = foremind_vault::KeySlot::read(bytes);
    });
}

#[test]
fn replaying() {
    let all = stored();
    let seeds = [foremind_vault::fuzz::seed(&all).unwrap()];
    let mut decoded = 0;
    fuzz("replay", &seeds, |bytes| {
        let Some(entries) = foremind_vault::fuzz::entries(bytes) else {
            return;
        };
        decoded += 1;
        let (mut forwards, mut backwards) = (Engine::new(), Engine::new());
        for entry in &entries {
            forwards.apply(entry.clone());
        }
        for entry in entries.iter().rev() {
            backwards.apply(entry.clone());
        }
        let _ = forwards.profile_after(&entries);
        let _ = forwards.profile_records();
        // Two entries of one name are one entry; which of them is not for the fold to say.
        let names: std::collections::BTreeSet<_> = entries
            .iter()
            .map(|one| (one.writer, one.counter))
            .collect();
        if names.len() == entries.len() {
            assert_eq!(forwards.state_digest(), backwards.state_digest());
        }
    });
    assert!(decoded > 100, "{decoded}");
}

#[test]
fn importing() {
    let mut desk = desk();
    let mut file = File::default();
    let export = Task::Export { passphrase: None };
    run(
        &mut desk.memory,
        export,
        FakeWrapper(0),
        &mut file,
        &mut desk.store,
        &mut desk.ambient,
    )
    .unwrap();
    assert!(foremind_memory::fuzz::import(&file.bytes, 100) > 3);
    let mut piece = 1;
    fuzz("import", &[file.bytes], |bytes| {
        piece = piece % 700 + 13;
        let _ = foremind_memory::fuzz::import(bytes, piece);
    });
}
