//! The division of the labelled rows into training, validation and test part (`tools/routing/split.py`) on the
//! committed data: every group on one side, and no near copy of a test row anywhere else.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Near copies share at least so much of their words' pairs; the rule itself compares character 5-grams, so this is a
/// second opinion and not the same computation.
const NEAR: f64 = 0.8;

struct Row {
    id: String,
    lang: String,
    text: String,
    group: String,
    part: String,
    talk: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing")
}

fn parts() -> BTreeMap<String, String> {
    fs::read_to_string(folder().join("split.tsv"))
        .unwrap()
        .lines()
        .map(|line| {
            let (id, part) = line.split_once('\t').unwrap();
            (id.to_owned(), part.to_owned())
        })
        .collect()
}

fn rows() -> Vec<Row> {
    let parts = parts();
    let mut rows = Vec::new();
    for kind in ["seed", "written"] {
        for entry in fs::read_dir(folder().join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            for line in fs::read_to_string(&path).unwrap().lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                let id = field("id");
                let group = if !field("topic").is_empty() {
                    field("topic")
                } else if name == "pairs" {
                    id.rsplit_once('-').unwrap().0.to_owned()
                } else if !field("session").is_empty() {
                    field("session")
                } else {
                    id.clone()
                };
                rows.push(Row {
                    part: parts
                        .get(&id)
                        .cloned()
                        .unwrap_or_else(|| "train".to_owned()),
                    lang: field("lang"),
                    text: field("text"),
                    talk: name == "talk",
                    id,
                    group,
                });
            }
        }
    }
    rows
}

#[test]
fn every_row_has_one_id_and_the_split_names_rows_and_parts_that_exist() {
    let rows = rows();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), rows.len(), "ids are unique");
    for (id, part) in parts() {
        assert!(ids.contains(id.as_str()), "{id} is no row");
        assert!(
            ["test", "validation", "out"].contains(&part.as_str()),
            "{id}: {part}"
        );
    }
}

#[test]
fn a_group_stays_on_one_side() {
    let mut sides: BTreeMap<String, String> = BTreeMap::new();
    for row in rows().into_iter().filter(|row| row.part != "out") {
        let side = sides
            .entry(row.group.clone())
            .or_insert_with(|| row.part.clone());
        assert_eq!(*side, row.part, "{} of group {}", row.id, row.group);
    }
}

#[test]
fn the_part_of_a_group_follows_from_its_name() {
    for row in rows().into_iter().filter(|row| row.part != "out") {
        let hash = blake3::hash(row.group.as_bytes());
        let number = |from: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&hash.as_bytes()[from..from + 8]);
            u64::from_le_bytes(eight)
        };
        let part = if number(0) % 5 == 0 {
            "test"
        } else if number(8) % 10 == 0 {
            "validation"
        } else {
            "train"
        };
        assert_eq!(row.part, part, "{}", row.id);
    }
}

#[test]
fn a_fifth_of_each_language_and_of_the_talk_is_kept_for_testing() {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in rows() {
        let kind = if row.talk {
            "talk".to_owned()
        } else {
            row.lang
        };
        let count = counts.entry(kind).or_default();
        count.0 += usize::from(row.part == "test");
        count.1 += 1;
    }
    for (kind, (test, all)) in counts {
        let share = test as f64 / all as f64;
        assert!((0.14..0.28).contains(&share), "{kind}: {share}");
    }
}

#[test]
fn no_copy_of_a_test_row_is_outside_the_test_part() {
    let rows = rows();
    let words: Vec<BTreeSet<String>> = rows.iter().map(|row| pairs_of_words(&row.text)).collect();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        if row.part == "train" || row.part == "validation" {
            for pair in &words[at] {
                places.entry(pair).or_default().push(at);
            }
        }
    }
    for (at, row) in rows.iter().enumerate().filter(|(_, r)| r.part == "test") {
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for pair in &words[at] {
            for other in places.get(pair.as_str()).into_iter().flatten() {
                *shared.entry(*other).or_default() += 1;
            }
        }
        for (other, both) in shared {
            let all = words[at].len() + words[other].len() - both;
            assert!(
                (both as f64) < NEAR * all as f64,
                "{} and {} are near copies:\n{}\n{}",
                row.id,
                rows[other].id,
                row.text,
                rows[other].text
            );
        }
    }
}

/// Pairs of neighbouring words (of characters where words are not spaced), case folded; a single word is a pair alone.
fn pairs_of_words(text: &str) -> BTreeSet<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.to_lowercase().chars() {
        if ('\u{3040}'..='\u{9fff}').contains(&c) {
            words.extend((!word.is_empty()).then(|| core::mem::take(&mut word)));
            words.push(c.to_string());
        } else if c.is_alphanumeric() {
            word.push(c);
        } else if !word.is_empty() {
            words.push(core::mem::take(&mut word));
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    if words.len() == 1 {
        return words.into_iter().collect();
    }
    words.windows(2).map(|pair| pair.join(" ")).collect()
}
