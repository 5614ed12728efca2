//! Measures the lexical stage on labelled statements and prints a table.
//!
//! `cargo run -p foremind-router --example seed_report [-- --errors train FILE]`. The rows are those of
//! `tests/data/routing/seed`. Rows are split by group (twin group, session, else the row itself):
//! the first eight bytes of the group's BLAKE3 hash modulo 5; 0 is the test part. With `FOREMIND_EVAL_DATA`
//! set, InMind's tasks and the background conversation are measured too.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use foremind_guard::{Guard, Verdict};
use foremind_router::{Keep, Router};
use foremind_types::{Ambient, Grade, Judgement, Tier};
use serde_json::Value;

const FILES: &[&str] = &["health", "life", "pairs", "talk", "languages"];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

/// What the statements of a text became, taken together.
#[derive(Default)]
struct Outcome {
    profile: bool,
    pending: bool,
    modifier: bool,
    record: bool,
    ttl: Option<&'static str>,
    reasons: String,
}

fn route(router: &Router, guard: &Guard, text: &str, turn: &str) -> Outcome {
    let at = Ambient {
        now_ms: 1_795_946_400_000,
        utc_offset_min: 0,
        entropy: [0; 32],
    };
    let mut out = Outcome::default();
    let frame = router.frame(turn);
    for statement in router.statements(text) {
        let Ok(Verdict::Accept(guarded)) = guard.statement(statement) else {
            continue;
        };
        let routing = router.route_in(&guarded, frame, &at);
        let shown = routing.route.tier == Tier::Profile;
        out.profile |= shown;
        out.record |= routing.keep != Keep::Nothing;
        out.pending |= routing.route.judgement == Judgement::Pending;
        out.modifier |= routing.route.grade == Grade::Modifier;
        if shown && out.ttl.is_none() {
            out.ttl = Some(match routing.route.ttl {
                foremind_types::Ttl::Permanent => "permanent",
                foremind_types::Ttl::UntilChanged => "until-changed",
                foremind_types::Ttl::Dated { .. } => "dated",
                foremind_types::Ttl::Session { .. } => "session",
            });
        }
        for reason in routing.route.reasons {
            out.reasons += &format!(" {}[{}]{}", reason.signal, reason.matched, reason.weight);
        }
    }
    out
}

#[derive(Default)]
struct Count {
    rows: u32,
    hit: u32,
}

impl Count {
    fn add(&mut self, hit: bool) {
        self.rows += 1;
        self.hit += u32::from(hit);
    }

    fn shown(&self) -> String {
        if self.rows == 0 {
            return "-".to_owned();
        }
        format!(
            "{:.3} ({}/{})",
            f64::from(self.hit) / f64::from(self.rows),
            self.hit,
            self.rows
        )
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let errors = arguments.iter().any(|a| a == "--errors");
    if errors && arguments.iter().any(|a| a == "test") {
        return Err("errors are shown for the train part only".to_owned());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing/seed");
    let router = Router::new();
    let guard = Guard::new();
    println!(
        "| file | part | profile recall | false profile | false on `none` | pending among profile | ttl right |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut traps: BTreeMap<String, Count> = BTreeMap::new();
    let mut lifetimes: BTreeMap<String, u32> = BTreeMap::new();
    for file in FILES {
        let rows = rows(&root.join(format!("{file}.jsonl")))?;
        for part in ["train", "test"] {
            let (mut recall, mut wrong, mut none) =
                (Count::default(), Count::default(), Count::default());
            let (mut pending, mut ttl) = (Count::default(), Count::default());
            for row in rows.iter().filter(|r| is_test(file, r) == (part == "test")) {
                let text = field(row, "text");
                let outcome = route(&router, &guard, text, text);
                let label = field(row, "label");
                let also: Vec<&str> = row["also_ok"]
                    .as_array()
                    .map(|a| a.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                let wanted = label == "profile";
                if wanted && also.is_empty() {
                    recall.add(outcome.profile);
                }
                let unwanted = !wanted && !also.contains(&"profile");
                if unwanted {
                    wrong.add(outcome.profile);
                    if label == "none" {
                        none.add(outcome.profile);
                    }
                }
                if outcome.profile {
                    pending.add(outcome.pending);
                    if let (true, Some(stated)) = (wanted, row["ttl"].as_str()) {
                        ttl.add(outcome.ttl == Some(stated));
                        if part == "train" {
                            let pair = format!("{stated} -> {}", outcome.ttl.unwrap_or_default());
                            *lifetimes.entry(pair).or_default() += 1;
                        }
                    }
                }
                if part == "train"
                    && let Some(trap) = row["trap"].as_str()
                {
                    traps
                        .entry(trap.to_owned())
                        .or_default()
                        .add(outcome.profile == wanted);
                }
                let listed = arguments.iter().any(|a| a == file);
                if errors
                    && listed
                    && part == "train"
                    && outcome.profile != wanted
                    && (wanted && also.is_empty() || unwanted)
                {
                    let mark = if wanted { "MISSED" } else { "FALSE" };
                    eprintln!(
                        "{mark} {} [{}] {text}\n      {}",
                        field(row, "id"),
                        field(row, "trap"),
                        outcome.reasons
                    );
                }
            }
            println!(
                "| {file} | {part} | {} | {} | {} | {} | {} |",
                recall.shown(),
                wrong.shown(),
                none.shown(),
                pending.shown(),
                ttl.shown()
            );
        }
    }
    println!("\n| trap (train) | right |\n|---|---|");
    for (trap, count) in &traps {
        println!("| {trap} | {} |", count.shown());
    }
    println!("\n| time to live (train): labelled -> ours | rows |\n|---|---|");
    for (pair, rows) in &lifetimes {
        println!("| {pair} | {rows} |");
    }
    match std::env::var_os("FOREMIND_EVAL_DATA") {
        Some(folder) => elsewhere(&router, &guard, Path::new(&folder)),
        None => {
            println!("\nFOREMIND_EVAL_DATA is not set: InMind and the background are skipped");
            Ok(())
        }
    }
}

/// InMind's tasks and the background conversation: figures only, never rows.
fn elsewhere(router: &Router, guard: &Guard, folder: &Path) -> Result<(), String> {
    let mut tasks = Count::default();
    for row in rows(&folder.join("inmind/dev.jsonl"))? {
        let text = field(&row, "user_message");
        tasks.add(route(router, guard, text, text).profile);
    }
    println!("\nInMind facts that reach the profile: {}", tasks.shown());
    let grades: BTreeMap<String, Value> = rows(&folder.join("inmind/background_labels.jsonl"))?
        .into_iter()
        .map(|row| (field(&row, "id").to_owned(), row))
        .collect();
    let (mut wrong, mut right, mut pending) =
        (Count::default(), Count::default(), Count::default());
    for row in rows(&folder.join("inmind/background.jsonl"))? {
        let Some(label) = grades.get(field(&row, "id")) else {
            continue;
        };
        let text = field(&row, "content");
        let outcome = route(router, guard, text, text);
        pending.add(outcome.pending);
        if label["doubtful"].as_bool() == Some(true) {
            continue;
        }
        if field(label, "grade") == "no" {
            wrong.add(outcome.profile);
        } else {
            right.add(outcome.profile);
        }
    }
    println!(
        "background turns labelled `no` that reach the profile: {}",
        wrong.shown()
    );
    println!(
        "background turns with a fact that reach the profile: {}",
        right.shown()
    );
    println!(
        "background turns with a pending judgement: {}",
        pending.shown()
    );
    Ok(())
}

fn rows(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), at + 1))
        })
        .collect()
}

fn field<'r>(row: &'r Value, name: &str) -> &'r str {
    row[name].as_str().unwrap_or_default()
}

/// Whether a row belongs to the test part: by group, so that twins and sessions stay together.
fn is_test(file: &str, row: &Value) -> bool {
    let id = field(row, "id");
    let group = match file {
        "talk" => field(row, "session"),
        "pairs" => id.rsplit_once('-').map_or(id, |(group, _)| group),
        _ => id,
    };
    let hash = blake3::hash(group.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first) % 5 == 0
}
