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
/// Formulas such as "that's really helpful" teach nothing when they stand on both sides.
const PAIRS_LEAST: usize = 5;

struct Row {
    id: String,
    lang: String,
    text: String,
    group: String,
    part: &'static str,
    talk: bool,
    /// Of a file that is test as a whole.
    test_file: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing")
}

/// Ids of rows that are near duplicates of rows of another part.
fn left_out() -> BTreeSet<String> {
    let file = fs::read_to_string(folder().join("left_out.txt")).unwrap();
    file.lines().map(str::to_owned).collect()
}

/// The part of a group in a file that is not test as a whole: it depends on its name alone.
fn part_of(group: &str) -> &'static str {
    let hash = blake3::hash(group.as_bytes());
    let number = |from: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&hash.as_bytes()[from..from + 8]);
        u64::from_le_bytes(eight)
    };
    match (number(0) % 5, number(8) % 10) {
        (0, _) => "test",
        (_, 0) => "validation",
        _ => "train",
    }
}

fn rows() -> Vec<Row> {
    let left_out = left_out();
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
                    part: if left_out.contains(&id) {
                        "out"
                    } else if name.starts_with("talk-test") {
                        "test"
                    } else {
                        part_of(&group)
                    },
                    lang: field("lang"),
                    text: field("text"),
                    talk: name.starts_with("talk"),
                    test_file: name.starts_with("talk-test"),
                    id,
                    group,
                });
            }
        }
    }
    rows
}

#[test]
fn every_row_has_one_id_and_the_left_out_ones_exist() {
    let rows = rows();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), rows.len(), "ids are unique");
    for id in left_out() {
        assert!(ids.contains(id.as_str()), "{id} is no row");
    }
}

#[test]
fn twins_and_topics_have_names_that_put_them_on_one_side() {
    // Twins are found by their ids here, without the rule's own grouping.
    let mut sides: BTreeMap<(String, String), &str> = BTreeMap::new();
    for row in rows().into_iter().filter(|row| row.part != "out") {
        let twins = row.id.rsplit_once('-').filter(|_| row.id.starts_with("C-"));
        let name = twins.map_or(row.group.clone(), |(group, _)| group.to_owned());
        let side = sides.entry((row.lang, name)).or_insert(row.part);
        assert_eq!(*side, row.part, "{} of group {}", row.id, row.group);
    }
}

#[test]
fn a_fifth_of_each_language_and_of_the_talk_is_kept_for_testing() {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in rows().into_iter().filter(|row| !row.test_file) {
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
        if words[at].len() < PAIRS_LEAST {
            continue;
        }
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
                "run tools/routing/split.py: {} and {} are near copies:\n{}\n{}",
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
