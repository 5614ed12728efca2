//! Trains the router's n-gram head on the committed rows: `cargo run -p foremind-eval --bin train_ngrams -- OUT [--share S]`.
//!
//! Rows of the training part only; what is printed of the validation part is for choosing, of the test part for reporting.
//! Seeded, one thread, f32 in a fixed order: the same rows give the same file. `--share` trains on that share of the
//! groups, for the learning curve.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foremind_router::{FEATURES, NgramHead, Table};
use foremind_types::Domain;
use serde_json::Value;

const BUCKETS: u32 = 1 << 15;
const WIDTH: usize = 8;
const EPOCHS: usize = 12;
const RATE: f32 = 0.5;
/// Share of a text's buckets that a step leaves out, so that no single one is relied on.
const LEFT_OUT: f32 = 0.3;
/// Shrinks a row of the table each time that it is used.
const DECAY: f32 = 2e-4;
const GRADES: [&str; 4] = ["modifier", "circumstance", "informer", "none"];
const TTLS: [&str; 4] = ["permanent", "until-changed", "dated", "session"];
const SUBJECTS: [&str; 4] = ["self", "dependant", "other", "none"];

/// Outputs that are chosen among each other, with their weight in the loss.
fn blocks() -> [(usize, usize, f32); 4] {
    let domains = Domain::ALL.len();
    [
        (0, 4, 1.0),
        (4, domains, 0.2),
        (4 + domains, 4, 0.3),
        (8 + domains, 4, 0.2),
    ]
}

struct Row {
    buckets: Vec<u32>,
    /// 1 for each right output, 0.3 for what the row's other label allows.
    wanted: [f32; FEATURES],
    weight: f32,
    kind: String,
    part: Part,
    profile: bool,
    /// Whether no other label is fine.
    counted: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Train,
    Validation,
    Test,
}

/// xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0 to 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let share = match &arguments[..] {
        [_] => Some(1.0),
        [_, flag, share] if flag == "--share" => share.parse().ok(),
        _ => None,
    };
    let Some(share) = share else {
        eprintln!("usage: train_ngrams OUT [--share 0.5]");
        return ExitCode::from(2);
    };
    match run(Path::new(&arguments[0]), share) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("train_ngrams: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(out: &Path, share: f32) -> Result<(), String> {
    let rows = rows(share)?;
    let train: Vec<&Row> = rows.iter().filter(|r| r.part == Part::Train).collect();
    eprintln!("{} rows, {} of them for training", rows.len(), train.len());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut table = Table {
        width: WIDTH,
        buckets: BUCKETS,
        cells: (0..BUCKETS as usize * WIDTH)
            .map(|_| (random.unit() - 0.5) * 0.2)
            .collect(),
        matrix: (0..WIDTH * FEATURES)
            .map(|_| (random.unit() - 0.5) * 2.0)
            .collect(),
        bias: vec![0.0; FEATURES],
    };
    let mut slopes = Slopes {
        cells: vec![1e-3; BUCKETS as usize],
        matrix: vec![1e-1; WIDTH * FEATURES],
        bias: vec![1e-1; FEATURES],
    };
    let mut order: Vec<usize> = (0..train.len()).collect();
    for epoch in 1..=EPOCHS {
        for at in (1..order.len()).rev() {
            order.swap(at, (random.next() % (at as u64 + 1)) as usize);
        }
        let rate = RATE * (1.0 - 0.9 * epoch as f32 / EPOCHS as f32);
        for at in &order {
            step(train[*at], &mut table, &mut slopes, rate, &mut random);
        }
        if epoch % 4 == 0 {
            report(&rows, &table, Part::Validation, &format!("epoch {epoch}"));
        }
    }
    let file = NgramHead::write(&table);
    fs::write(out, &file).map_err(|error| format!("{}: {error}", out.display()))?;
    report(&rows, &table, Part::Test, "end");
    thresholds(&rows, &table);
    Ok(())
}

/// Sums of squared slopes (J. Duchi et al., "Adaptive Subgradient Methods", 2011), one a bucket.
struct Slopes {
    cells: Vec<f32>,
    matrix: Vec<f32>,
    bias: Vec<f32>,
}

fn step(row: &Row, table: &mut Table, slopes: &mut Slopes, rate: f32, random: &mut Random) {
    let kept: Vec<usize> = row
        .buckets
        .iter()
        .filter(|_| random.unit() >= LEFT_OUT)
        .map(|bucket| *bucket as usize)
        .collect();
    let scale = 1.0 / (kept.len().max(1) as f32).sqrt();
    let mut hidden = [0.0_f32; WIDTH];
    for bucket in &kept {
        let cells = &table.cells[bucket * WIDTH..(bucket + 1) * WIDTH];
        for (sum, x) in hidden.iter_mut().zip(cells) {
            *sum += x * scale;
        }
    }
    let mut logits: Vec<f32> = table.bias.clone();
    for (h, weights) in hidden.iter().zip(table.matrix.chunks_exact(FEATURES)) {
        for (logit, weight) in logits.iter_mut().zip(weights) {
            *logit += h * weight;
        }
    }
    let slope = slope(&logits, row);
    let mut back = [0.0_f32; WIDTH];
    for (k, h) in hidden.iter().enumerate() {
        for (at, g) in slope.iter().enumerate() {
            let cell = k * FEATURES + at;
            back[k] += g * table.matrix[cell];
            let own = g * h;
            slopes.matrix[cell] += own * own;
            table.matrix[cell] -= 0.2 * rate * own / slopes.matrix[cell].sqrt();
        }
    }
    for (at, g) in slope.iter().enumerate() {
        slopes.bias[at] += g * g;
        table.bias[at] -= 0.2 * rate * g / slopes.bias[at].sqrt();
    }
    let size = back.iter().map(|x| x * x).sum::<f32>() * scale * scale / WIDTH as f32;
    for bucket in &kept {
        slopes.cells[*bucket] += size;
        let factor = rate * scale / slopes.cells[*bucket].sqrt();
        let cells = &mut table.cells[bucket * WIDTH..(bucket + 1) * WIDTH];
        for (x, g) in cells.iter_mut().zip(back) {
            *x = *x * (1.0 - DECAY) - factor * g;
        }
    }
}

/// Of the marginal cross-entropy with respect to the logits: any right output satisfies the row.
fn slope(logits: &[f32], row: &Row) -> [f32; FEATURES] {
    let mut slope = [0.0; FEATURES];
    for (from, size, share) in blocks() {
        let wanted = &row.wanted[from..from + size];
        if wanted.iter().all(|w| *w < 1.0) {
            continue;
        }
        let largest = logits[from..from + size]
            .iter()
            .fold(f32::MIN, |most, x| most.max(*x));
        let mut p: Vec<f32> = logits[from..from + size]
            .iter()
            .map(|x| (x - largest).exp())
            .collect();
        let sum: f32 = p.iter().sum();
        p.iter_mut().for_each(|x| *x /= sum);
        let inside = |which: &dyn Fn(f32) -> bool| -> f32 {
            let chosen = p.iter().zip(wanted).filter(|(_, w)| which(**w));
            chosen.map(|(p, _)| *p).sum::<f32>().max(1e-9)
        };
        let (main, other) = (inside(&|w| w == 1.0), inside(&|w| w > 0.0 && w < 1.0));
        let doubtful = wanted.iter().any(|w| *w > 0.0 && *w < 1.0);
        let own = if doubtful { 0.7 } else { 1.0 };
        for (at, w) in wanted.iter().enumerate() {
            let q = if *w == 1.0 {
                own * p[at] / main
            } else if *w > 0.0 {
                (1.0 - own) * p[at] / other
            } else {
                0.0
            };
            slope[from + at] = row.weight * share * (p[at] - q);
        }
    }
    slope
}

/// log P(modifier or circumstance) - log P(informer or none).
fn profile_logit(row: &Row, table: &Table) -> f32 {
    let features = table.features(&row.buckets);
    let sum = |a: f32, b: f32| a.max(b) + (-(a - b).abs()).exp().ln_1p();
    sum(features[0], features[1]) - sum(features[2], features[3])
}

/// AUROC, and recall at stated shares of false profile, by kind of row.
fn report(rows: &[Row], table: &Table, part: Part, name: &str) {
    let shown = if part == Part::Test {
        "test"
    } else {
        "validation"
    };
    let mut kinds: BTreeMap<&str, (Vec<f32>, Vec<f32>)> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.part == part && r.counted) {
        let logit = profile_logit(row, table);
        let kind = kinds.entry(&row.kind).or_default();
        if row.profile {
            kind.0.push(logit);
        } else {
            kind.1.push(logit);
        }
    }
    for (kind, (wanted, mut others)) in kinds {
        if wanted.is_empty() || others.is_empty() {
            continue;
        }
        others.sort_by(|a, b| b.total_cmp(a));
        let area: usize = wanted
            .iter()
            .map(|w| others.iter().filter(|o| *o < w).count())
            .sum();
        let area = area as f64 / (wanted.len() * others.len()) as f64;
        let recalls: Vec<String> = [0.015, 0.02, 0.05, 0.08, 0.1]
            .iter()
            .map(|share| {
                let threshold = others[(share * others.len() as f64) as usize];
                let above = wanted.iter().filter(|w| **w > threshold).count();
                format!("{share}: {:.3}", above as f64 / wanted.len() as f64)
            })
            .collect();
        println!(
            "{name} | {shown} {kind} {}/{} | AUROC {area:.3} | recall at {}",
            wanted.len(),
            others.len(),
            recalls.join(" ")
        );
    }
}

/// What each threshold does to the validation part; the figures behind `data/heads.tsv`.
fn thresholds(rows: &[Row], table: &Table) {
    println!(
        "| logit from | talk: recall, false | English: recall, false | others: recall, false |"
    );
    for step in 0..14 {
        let threshold = step as f32 * 0.5 - 1.0;
        let mut cells = String::new();
        for group in ["talk", "en", "others"] {
            let (mut hits, mut wanted, mut wrong, mut others) = (0, 0, 0, 0);
            for row in rows
                .iter()
                .filter(|r| r.part == Part::Validation && r.counted)
            {
                let own = if matches!(row.kind.as_str(), "talk" | "en") {
                    row.kind.as_str()
                } else {
                    "others"
                };
                if own != group {
                    continue;
                }
                let above = i32::from(profile_logit(row, table) >= threshold);
                if row.profile {
                    (hits, wanted) = (hits + above, wanted + 1);
                } else {
                    (wrong, others) = (wrong + above, others + 1);
                }
            }
            cells += &format!(" {hits}/{wanted}, {wrong}/{others} |");
        }
        println!("| {threshold:.1} |{cells}");
    }
}

fn rows(share: f32) -> Result<Vec<Row>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing");
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let left_out = read(&folder.join("left_out.txt"))?;
    let left_out: BTreeSet<&str> = left_out.lines().collect();
    let mut files: Vec<PathBuf> = Vec::new();
    for kind in ["seed", "written"] {
        let folder = folder.join(kind);
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        files.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let name = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        for (at, line) in read(&file)?.lines().enumerate() {
            let value: Value = serde_json::from_str(line)
                .map_err(|error| format!("{}:{}: {error}", file.display(), at + 1))?;
            if left_out.contains(value["id"].as_str().unwrap_or_default()) {
                continue;
            }
            let group = group(&name, &value);
            let digest = blake3::hash(group.as_bytes());
            let number = |from: usize| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&digest.as_bytes()[from..from + 8]);
                u64::from_le_bytes(eight)
            };
            let part = match (number(0) % 5, number(8) % 10) {
                _ if name.starts_with("talk-test") => Part::Test,
                (0, _) => Part::Test,
                (_, 0) => Part::Validation,
                _ => Part::Train,
            };
            if part == Part::Train && (number(16) % 1000) as f32 >= share * 1000.0 {
                continue;
            }
            rows.push(row(&name, &value, part));
        }
    }
    Ok(rows)
}

/// What must stay on one side: see `tools/routing/split.py`.
fn group(file: &str, value: &Value) -> String {
    let field = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
    let id = field("id").unwrap_or_default();
    let twins = id.rsplit_once('-').map(|(group, _)| group);
    field("topic")
        .or(twins.filter(|_| file == "pairs"))
        .or(field("session"))
        .unwrap_or(id)
        .to_owned()
}

fn row(file: &str, value: &Value, part: Part) -> Row {
    let field = |name: &str| value[name].as_str().unwrap_or_default();
    let also = value["also_ok"].as_array();
    let also: Vec<&str> = also
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let of_label = |label: &str| match label {
        "profile" => 0..2,
        "store" => 2..3,
        _ => 3..4,
    };
    let mut wanted = [0.0; FEATURES];
    for label in &also {
        wanted[of_label(label)].fill(0.3);
    }
    let label = field("label");
    match GRADES.iter().position(|grade| *grade == field("grade")) {
        Some(grade) => wanted[grade] = 1.0,
        None => wanted[of_label(label)].fill(1.0),
    }
    let [_, domains, ttls, subjects] = blocks();
    if label != "none" {
        let named = Domain::parse(field("domain"));
        if let Some(at) = named.and_then(|d| Domain::ALL.iter().position(|o| *o == d)) {
            wanted[domains.0 + at] = 1.0;
        }
        if let Some(at) = TTLS.iter().position(|ttl| *ttl == field("ttl")) {
            wanted[ttls.0 + at] = 1.0;
        }
    }
    if let Some(at) = SUBJECTS.iter().position(|s| *s == field("subject")) {
        wanted[subjects.0 + at] = 1.0;
    }
    let profile = label == "profile";
    Row {
        buckets: NgramHead::buckets(field("text"), BUCKETS),
        wanted,
        weight: if also.is_empty() { 1.0 } else { 0.6 },
        kind: if file.starts_with("talk") {
            "talk".to_owned()
        } else {
            field("lang").to_owned()
        },
        part,
        profile,
        counted: if profile {
            also.is_empty()
        } else {
            !also.contains(&"profile")
        },
    }
}
