//! The shipped weights against the f32 checkpoint that they are made from.
//!
//! Needs the folder of the fetched model in `FOREMIND_MODEL_DIR` (`target/model`); skips without. Compares
//! `FOREMIND_FIDELITY_TEXTS` texts (40; the figures that are claimed are of 500, in a release build).

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)] // helpers outside of a test function

#[path = "common/reference.rs"]
mod reference;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foremind_embed::pack::{self, Section};
use foremind_embed::weights::{Checkpoint, quantise};
use foremind_embed::{Embedder, TOKENS_MAX};

use reference::Reference;

/// A file of the safetensors format: header length, header as JSON, numbers.
struct Safetensors {
    bytes: Vec<u8>,
    header: serde_json::Value,
}

impl Safetensors {
    fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Self {
            bytes: bytes[8 + length..].to_vec(),
            header,
        }
    }
}

impl Checkpoint for Safetensors {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let tensor = &self.header[name];
        let offset = |at: usize| tensor["data_offsets"][at].as_u64().map(|at| at as usize);
        let bytes = self.bytes.get(offset(0)?..offset(1)?)?;
        (tensor["dtype"] == "F32").then(|| {
            let numbers = bytes.as_chunks::<4>().0.iter();
            numbers.map(|x| f32::from_le_bytes(*x)).collect()
        })
    }
}

/// `count` texts of 3 to 256 tokens, the short ones being the more frequent, from statements in many languages.
fn texts(count: usize, tokens: impl Fn(&str) -> usize) -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing");
    let mut statements = BTreeSet::new();
    for folder in std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|f| f.path().is_dir())
    {
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            let rows = std::fs::read_to_string(file.path()).unwrap();
            for row in rows
                .lines()
                .filter_map(|row| serde_json::from_str::<serde_json::Value>(row).ok())
            {
                statements.extend(row["text"].as_str().map(str::to_owned));
            }
        }
    }
    assert!(
        statements.len() > 1000,
        "found {} statements",
        statements.len()
    );
    let statements: Vec<String> = statements.into_iter().collect();
    // A stride prime to most lengths mixes what sorting has put together.
    let mut next = (0..).map(|at: usize| &statements[at * 7919 % statements.len()]);
    let wanted =
        |at: usize| (3.0 * (256.0_f64 / 3.0).powf(at as f64 / (count - 1) as f64)) as usize;
    (0..count)
        .map(|at| {
            let mut text = next.next().unwrap().clone();
            while tokens(&text) < wanted(at) {
                text = format!("{text} {}", next.next().unwrap());
            }
            while tokens(&text) > wanted(at) && text.contains(' ') {
                text.truncate(text.rfind(' ').unwrap_or_default());
            }
            text
        })
        .collect()
}

#[test]
fn vectors_stay_close_to_those_of_the_checkpoint() {
    let Some(folder) = std::env::var_os("FOREMIND_MODEL_DIR").map(PathBuf::from) else {
        eprintln!(
            "skipped: FOREMIND_MODEL_DIR names no folder with model.safetensors and vocab.txt"
        );
        return;
    };
    let count = std::env::var("FOREMIND_FIDELITY_TEXTS").map_or(40, |n| n.parse().unwrap());
    let checkpoint = Safetensors::open(&folder.join("model.safetensors"));
    let vocabulary = std::fs::read(folder.join("vocab.txt")).unwrap();
    let section = quantise(&checkpoint, &vocabulary).unwrap();
    let sections = [
        (Section::Vocabulary, &vocabulary[..]),
        (Section::Int8, &section[..]),
    ];
    let file = pack::write_sections("test", &sections);
    // What `cargo xtask model` packed, perhaps on another day, are the same bytes.
    let packed = std::fs::read(folder.join("minilm-l6-v2.fmpack")).unwrap();
    let packed = pack::Pack::read(packed).unwrap();
    assert!(packed.section(Section::Int8).unwrap() == section);
    let bytes = file.len();
    let embedder = Embedder::load(file).unwrap();
    let reference = Reference::new(&checkpoint);

    let mut cosines = Vec::new();
    for text in texts(count, |text| embedder.tokens(text).len()) {
        let tokens = embedder.tokens(&text);
        assert!((3..=TOKENS_MAX).contains(&tokens.len()));
        let exact = reference.unit_vector(&tokens);
        let found = embedder.encode_f32(&text).unwrap();
        let cosine: f64 = found
            .iter()
            .zip(&exact)
            .map(|(a, b)| f64::from(*a) * b)
            .sum();
        cosines.push((cosine, tokens.len()));
    }
    cosines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = cosines.iter().map(|(cosine, _)| cosine).sum::<f64>() / cosines.len() as f64;
    let (least, of) = cosines[0];
    println!(
        "{bytes} bytes; {count} texts: cosine min {least:.5} (of {of} tokens), mean {mean:.5}"
    );
    assert!(bytes <= 18_000_000);
    assert!(least >= 0.998, "least cosine {least}");
    assert!(mean >= 0.9994, "mean cosine {mean}");
}
