//! The table of docs/EMBEDDER.md: bytes against cosine and retrieval for ways to round the weights.
//!
//!     schemes MODEL_FOLDER [LONGMEMEVAL_JSON QUESTIONS [all]]
//!
//! MODEL_FOLDER is `target/model`. The first row is the f32 checkpoint, the second the packed file as it is run, the others
//! are the checkpoint with rounded weights in f32 arithmetic, their bytes by the entropy of the integers. Retrieval: share of
//! a question's evidence sessions among the first five, by the nearest user turn, in a haystack of the evidence and of
//! 40 sessions of other questions of the sample; of the first two rows, with `all` of each.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr
)] // a measurement, run by hand

#[path = "../tests/common/reference.rs"]
mod reference;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use foremind_embed::Embedder;
use foremind_embed::weights::Checkpoint;
use reference::Reference;
use serde_json::Value;

struct Safetensors {
    header: Value,
    numbers: Vec<u8>,
}

impl Safetensors {
    fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let end = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        Self {
            header: serde_json::from_slice(&bytes[8..end]).unwrap(),
            numbers: bytes[end..].to_vec(),
        }
    }
}

impl Checkpoint for Safetensors {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let offset = |at: usize| Some(self.header[name]["data_offsets"][at].as_u64()? as usize);
        let bytes = self.numbers.get(offset(0)?..offset(1)?)?;
        let numbers = bytes.as_chunks::<4>().0.iter();
        Some(numbers.map(|x| f32::from_le_bytes(*x)).collect())
    }
}

/// Weights of `weight_bits` with a step for each `group` inputs (0: each output), words of `word_bits` with one each.
struct Scheme<'a> {
    checkpoint: &'a Safetensors,
    weight_bits: u32,
    group: usize,
    word_bits: u32,
}

/// Rounds each run of `group` numbers to `bits` with one step; the bytes of the integers by their entropy, and a byte a step.
fn round(values: &mut [f32], group: usize, bits: u32) -> f64 {
    let levels = ((1 << (bits - 1)) - 1) as f32;
    let mut counts = HashMap::new();
    for run in values.chunks_mut(group) {
        let largest = run.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        for x in run {
            let integer = (*x * levels / largest).round();
            *counts.entry(integer as i32).or_insert(0.0_f64) += 1.0;
            *x = integer * largest / levels;
        }
    }
    let all = values.len() as f64;
    let bits: f64 = counts
        .values()
        .map(|count| -count * (count / all).log2())
        .sum();
    bits / 8.0 + (values.len() / group) as f64
}

impl Scheme<'_> {
    fn rounded(&self, name: &str) -> Option<(Vec<f32>, f64)> {
        let mut values = self.checkpoint.tensor(name)?;
        let bytes = if name.ends_with("word_embeddings.weight") {
            round(&mut values, 384, self.word_bits)
        } else if name.ends_with("dense.weight")
            || name.contains(".self.") && name.ends_with("weight")
        {
            let inputs = self.checkpoint.header[name]["shape"][1].as_u64()? as usize;
            round(
                &mut values,
                if self.group == 0 { inputs } else { self.group },
                self.weight_bits,
            )
        } else if name.contains("position") {
            // 256 of them are packed, 11 bits each.
            256.0 * 384.0 * 11.0 / 8.0
        } else {
            2.0 * values.len() as f64
        };
        Some((values, bytes))
    }

    fn bytes(&self) -> f64 {
        let names = self.checkpoint.header.as_object().unwrap().keys();
        let used = names.filter(|name| !name.contains("pooler") && !name.contains("position_ids"));
        used.filter_map(|name| self.rounded(name))
            .map(|(_, bytes)| bytes)
            .sum()
    }
}

impl Checkpoint for Scheme<'_> {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        self.rounded(name).map(|(values, _)| values)
    }
}

/// Unit vectors of texts.
type Encode<'a> = dyn Fn(&str) -> Vec<f64> + 'a;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

struct Question {
    text: String,
    evidence: Vec<String>,
}

struct Retrieval {
    questions: Vec<Question>,
    /// User turns by session.
    sessions: BTreeMap<String, Vec<String>>,
}

impl Retrieval {
    fn read(path: &Path, most: usize) -> Self {
        let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut sessions = BTreeMap::new();
        // Every nth question, so that all types are in the sample.
        let stride = rows.len().div_ceil(most);
        let questions = rows.iter().step_by(stride).map(|row| {
            let ids = row["haystack_session_ids"].as_array().unwrap().iter();
            for (id, turns) in ids.zip(row["haystack_sessions"].as_array().unwrap()) {
                let turns = turns.as_array().unwrap().iter();
                let of_users = turns.filter(|turn| turn["role"] == "user");
                let texts = of_users.map(|turn| turn["content"].as_str().unwrap().to_owned());
                sessions.insert(id.as_str().unwrap().to_owned(), texts.collect());
            }
            let evidence = row["answer_session_ids"].as_array().unwrap().iter();
            Question {
                text: row["question"].as_str().unwrap().to_owned(),
                evidence: evidence.map(|id| id.as_str().unwrap().to_owned()).collect(),
            }
        });
        Self {
            questions: questions.collect(),
            sessions,
        }
    }

    fn recall_at_5(&self, encode: &Encode<'_>) -> f64 {
        let usable = |text: &&String| !text.trim().is_empty();
        let vectors: BTreeMap<&String, Vec<Vec<f64>>> = self
            .sessions
            .iter()
            .map(|(id, turns)| {
                (
                    id,
                    turns
                        .iter()
                        .filter(usable)
                        .map(|turn| encode(turn))
                        .collect(),
                )
            })
            .collect();
        let recall = |question: &Question| {
            let query = encode(&question.text);
            let mut others: Vec<&String> = self
                .sessions
                .keys()
                .filter(|id| !question.evidence.contains(id))
                .collect();
            others.sort_by_key(|id| {
                blake3::hash(format!("{}{id}", question.text).as_bytes()).to_hex()
            });
            others.truncate(40);
            let mut ranked: Vec<(f64, &String)> = question
                .evidence
                .iter()
                .chain(others)
                .map(|id| {
                    (
                        vectors[id]
                            .iter()
                            .map(|turn| dot(turn, &query))
                            .fold(-1.0, f64::max),
                        id,
                    )
                })
                .collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
            let found = ranked
                .iter()
                .take(5)
                .filter(|(_, id)| question.evidence.contains(id));
            found.count() as f64 / question.evidence.len().min(5) as f64
        };
        self.questions.iter().map(recall).sum::<f64>() / self.questions.len() as f64
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(&arguments[0]);
    let checkpoint = Safetensors::open(&folder.join("model.safetensors"));
    let pack = std::fs::read(folder.join("minilm-l6-v2.fmpack")).unwrap();
    let vocabulary = std::fs::metadata(folder.join("vocab.txt")).unwrap().len() as f64;
    let pack_bytes = pack.len() as f64;
    let embedder = Embedder::load(pack).unwrap();
    let retrieval = arguments.get(1).map(|path| {
        let most = arguments.get(2).map_or(60, |most| most.parse().unwrap());
        Retrieval::read(Path::new(path), most)
    });
    if let Some(retrieval) = &retrieval {
        eprintln!(
            "{} questions, {} sessions",
            retrieval.questions.len(),
            retrieval.sessions.len()
        );
    }
    let all = arguments.get(3).is_some_and(|word| word == "all");
    let texts = texts();
    let exact = Reference::new(&checkpoint);
    let plain = |text: &str| exact.unit_vector(&embedder.tokens(text));
    let expected: Vec<Vec<f64>> = texts.iter().map(|text| plain(text)).collect();
    let row = |name: &str, bytes: f64, retrieval: Option<&Retrieval>, encode: &Encode<'_>| {
        let cosines: Vec<f64> = texts
            .iter()
            .zip(&expected)
            .map(|(text, expected)| dot(&encode(text), expected))
            .collect();
        let least = cosines.iter().copied().fold(1.0, f64::min);
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        let recall = retrieval.map_or("-".to_owned(), |retrieval| {
            format!("{:.4}", retrieval.recall_at_5(encode))
        });
        println!(
            "| {name} | {:.2} | {least:.5} | {mean:.5} | {recall} |",
            bytes / 1e6
        );
    };
    let sample = retrieval.as_ref();
    row("f32", 4.0 * 22_565_376.0 + vocabulary, sample, &plain);
    row("as shipped", pack_bytes, sample, &|text| {
        embedder
            .encode_f32(text)
            .unwrap()
            .iter()
            .map(|x| f64::from(*x))
            .collect()
    });
    for (weight_bits, group, word_bits) in [
        (8, 0, 8),
        (8, 64, 8),
        (8, 128, 6),
        (7, 64, 6),
        (6, 64, 6),
        (8, 0, 4),
    ] {
        let scheme = Scheme {
            checkpoint: &checkpoint,
            weight_bits,
            group,
            word_bits,
        };
        let rounded = Reference::new(&scheme);
        let step = if group == 0 {
            "an output".to_owned()
        } else {
            format!("{group} inputs")
        };
        row(
            &format!("{weight_bits} bits, a step for {step}; words {word_bits} bits"),
            scheme.bytes() + vocabulary,
            sample.filter(|_| all),
            &|text| rounded.unit_vector(&embedder.tokens(text)),
        );
    }
}

/// 30 texts of the routing set, every nth.
fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing");
    let mut texts = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let rows = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let rows = rows
                .lines()
                .filter_map(|row| serde_json::from_str::<Value>(row).ok());
            texts.extend(rows.filter_map(|row| row["text"].as_str().map(str::to_owned)));
        }
    }
    texts.sort();
    texts.dedup();
    let stride = texts.len() / 30;
    texts.into_iter().step_by(stride).take(30).collect()
}
