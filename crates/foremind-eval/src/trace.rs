//! Facts told in the middle of a long conversation: are they in front of the model when their question comes?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use foremind_engine::{Exposure, Prompt};
use foremind_router::Router;
use foremind_types::{Entry, Grade, Judgement, Record, RecordId, Severity, Tier};
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::arguments::{Arguments, Suite};
use crate::baselines::Baselines;
use crate::input::{self, Problem};
use crate::memory::Memory;
use crate::rates::Rate;
use crate::stages::Stages;
use crate::tasks::{self, Holds, Task, Turn};

/// The session at whose end the fact is told, counted from 0.
const TARGET_SESSION: i64 = 8;
/// Modifiers of a pool.
const POOL: usize = 150;

/// What is counted over the tasks.
#[derive(Default)]
struct Counts {
    direct: Rate,
    target: Rate,
    with_context: Rate,
    minimal: Rate,
    over_warning: Rate,
    over_warning_severe: Rate,
    items_max: usize,
    tokens_max: usize,
}

/// The figures of `eval inmind` and `eval indirect`.
///
/// # Errors
/// [`Problem::Input`]; [`Problem::Internal`] when the memory refuses a turn.
pub(crate) fn measure(arguments: &Arguments) -> Result<Value, Problem> {
    let tasks = tasks::tasks(arguments.suite, &arguments.rows)?;
    let turns = match &arguments.background {
        Some(path) => tasks::background(path)?,
        None => Vec::new(),
    };
    let labels = match &arguments.background_labels {
        Some(path) => Some(tasks::labels(path)?),
        None => None,
    };
    let tokenizer =
        tiktoken_rs::o200k_base().map_err(|error| Problem::Internal(error.to_string()))?;

    let stages = Stages::read(arguments)?;
    let mut alone = Memory::new(1, &stages)?;
    let split = told(&mut alone, &turns)?;
    let mut counts = Counts::default();
    if arguments.pool {
        let memory = Memory::new(2, &stages)?;
        pool(
            arguments,
            &tasks,
            memory,
            &alone.entries,
            split,
            &tokenizer,
            &mut counts,
        )?;
    } else {
        for task in &tasks {
            let mut copy = Memory::new(2, &stages)?;
            copy.replay(&alone.entries[..split]);
            let records = tell(&mut copy, task)?;
            copy.replay(&alone.entries[split..]);
            ask(
                arguments,
                task,
                &mut copy,
                &records,
                &tokenizer,
                &mut counts,
            )?;
        }
    }

    let router = Router::new();
    let mut baselines = Baselines::new(&router, &stages, &tokenizer, &turns, TARGET_SESSION)?;
    for task in &tasks {
        baselines.add(task, arguments)?;
    }
    let behind = background(arguments, &mut alone, &turns, labels.as_ref())?;
    Ok(json!({
        "suite": if arguments.suite == Suite::InMind { "inmind" } else { "indirect" },
        "stage": stages.name(),
        "tasks": tasks.len(),
        "direct_recall": counts.direct.share(),
        "target_recall": counts.target.share(),
        "target_recall_with_context": counts.with_context.share(),
        "minimal_target_recall": counts.minimal.share(),
        // The engine has no placeholders yet.
        "remote_target_recall": Value::Null,
        "over_warning": counts.over_warning.share(),
        "over_warning_severe": counts.over_warning_severe.share(),
        "visible_items_max": counts.items_max,
        "visible_tokens_max": counts.tokens_max,
        "background_false_visible": behind.false_visible,
        "background_true_visible": behind.true_visible.share(),
        "background_false_profile": behind.false_profile.share(),
        "pending_share": behind.pending.share(),
        "baselines": baselines.json(),
        "similarity": baselines.similarity(),
        "ci95": {
            "direct_recall": counts.direct.ci95(),
            "target_recall": counts.target.ci95(),
            "target_recall_with_context": counts.with_context.ci95(),
            "minimal_target_recall": counts.minimal.ci95(),
            "over_warning": counts.over_warning.ci95(),
            "over_warning_severe": counts.over_warning_severe.ci95(),
            "background_true_visible": behind.true_visible.ci95(),
            "background_false_profile": behind.false_profile.ci95(),
            "pending_share": behind.pending.ci95(),
        },
    }))
}

/// Tells the whole background; how many entries stand before the place of the fact.
fn told(memory: &mut Memory<'_>, turns: &[Turn]) -> Result<usize, Problem> {
    let mut split = 0;
    for turn in turns {
        memory.session(turn.session);
        memory.ingest(turn)?;
        if turn.session <= TARGET_SESSION {
            split = memory.entries.len();
        }
    }
    Ok(split)
}

fn tell(memory: &mut Memory<'_>, task: &Task) -> Result<Vec<Record>, Problem> {
    let turn = Turn {
        id: format!("task-{}", task.id),
        session: TARGET_SESSION,
        text: task.fact.clone(),
    };
    Ok(memory.ingest(&turn)?)
}

/// One memory with the background, all facts, and modifiers of the routing rows' test part until there are [`POOL`].
fn pool(
    arguments: &Arguments,
    tasks: &[Task],
    mut memory: Memory<'_>,
    entries: &[Entry],
    split: usize,
    tokenizer: &CoreBPE,
    counts: &mut Counts,
) -> Result<(), Problem> {
    memory.replay(&entries[..split]);
    let mut facts = Vec::new();
    for task in tasks {
        facts.push(tell(&mut memory, task)?);
    }
    for (at, text) in further(POOL.saturating_sub(tasks.len()))?
        .into_iter()
        .enumerate()
    {
        memory.ingest(&Turn {
            id: format!("further-{at}"),
            session: TARGET_SESSION,
            text,
        })?;
    }
    memory.replay(&entries[split..]);
    for (task, records) in tasks.iter().zip(&facts) {
        ask(arguments, task, &mut memory, records, tokenizer, counts)?;
    }
    Ok(())
}

/// English modifiers of the test part of the committed routing rows, by id.
fn further(count: usize) -> Result<Vec<String>, Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing");
    let unread =
        |path: &Path, error: std::io::Error| Problem::Input(format!("{}: {error}", path.display()));
    let written = folder.join("written");
    let mut files: Vec<PathBuf> = fs::read_dir(&written)
        .map_err(|error| unread(&written, error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    files.sort();
    let mut found = BTreeMap::new();
    for file in files {
        for row in input::rows(&file)? {
            let id = row.id("id")?;
            if row.optional("grade") == Some("modifier")
                && row.optional("lang") == Some("en")
                && row.optional("topic").is_some_and(is_test)
            {
                found.insert(id, row.text("text")?.to_owned());
            }
        }
    }
    Ok(found.into_values().take(count).collect())
}

/// Whether a group of routing rows is in the test part: see `tools/routing/split.py`.
fn is_test(group: &str) -> bool {
    let hash = blake3::hash(group.as_bytes());
    let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(first) % 5 == 0
}

/// Asks both questions of a task. `records` are those made from the turn of its fact.
fn ask(
    arguments: &Arguments,
    task: &Task,
    memory: &mut Memory<'_>,
    records: &[Record],
    tokenizer: &CoreBPE,
    counts: &mut Counts,
) -> Result<(), Problem> {
    let mut wanted: Vec<RecordId> = records
        .iter()
        .filter(|record| record.route.tier == Tier::Profile)
        .map(|record| record.id)
        .collect();
    if wanted.is_empty() {
        wanted.extend(records.first().map(|record| record.id));
    }
    let shown = |prompt: &Prompt, context: bool| {
        let ids: BTreeSet<RecordId> = prompt
            .profile
            .iter()
            .chain(&prompt.joined)
            .chain(prompt.context.iter().filter(|_| context))
            .map(|shown| shown.record.id)
            .collect();
        !wanted.is_empty() && wanted.iter().all(|id| ids.contains(id))
    };
    let budget = arguments.budget_tokens;
    let direct = memory.recall(&task.naive_query, budget, Exposure::Full)?;
    counts.direct.add(shown(&direct, true));
    let prompt = memory.recall(&task.query, budget, Exposure::Full)?;
    // Without the join, what was decided at the time of writing is what the profile alone shows.
    let seen = if arguments.no_join {
        memory.profile(budget)?
    } else {
        prompt.clone()
    };
    counts.target.add(shown(&seen, false));
    counts.with_context.add(shown(&prompt, true));
    let minimal = memory.recall(&task.query, budget, Exposure::Minimal)?;
    counts.minimal.add(shown(&minimal, false));
    if let Some(irrelevant) = &task.irrelevant {
        let prompt = memory.recall(irrelevant, budget, Exposure::Minimal)?;
        // Shown although nothing in it matters: one record is enough.
        let ids: BTreeSet<RecordId> = sections(&prompt).map(|shown| shown.record.id).collect();
        let warned = wanted.iter().any(|id| ids.contains(id));
        let severe = records.iter().any(|record| {
            record.route.grade == Grade::Modifier && record.route.severity == Severity::Severe
        });
        if severe {
            counts.over_warning_severe.add(warned);
        } else {
            counts.over_warning.add(warned);
            if arguments.explain && warned {
                eprintln!("WARNED {} {} || {irrelevant}", task.id, task.fact);
            }
        }
    }
    if arguments.explain && !shown(&minimal, false) && shown(&seen, false) {
        eprintln!("HIDDEN {} {} || {}", task.id, task.fact, task.query);
    }
    let lines: Vec<&str> = sections(&seen).map(|s| s.line.as_str()).collect();
    counts.items_max = counts.items_max.max(lines.len());
    let tokens = tokenizer.encode_ordinary(&lines.join("\n")).len();
    counts.tokens_max = counts.tokens_max.max(tokens);
    if arguments.explain && !shown(&seen, false) {
        let why = match records.iter().find(|r| r.route.tier == Tier::Profile) {
            None if records.is_empty() => "no record was made".to_owned(),
            None => "not in the profile".to_owned(),
            Some(record) => format!(
                "crowded out: {} {}",
                record.route.grade.as_str(),
                record.route.priority
            ),
        };
        let kinds: Vec<&str> = records
            .iter()
            .flat_map(|record| &record.route.reasons)
            .map(|reason| reason.signal.as_str())
            .filter(|signal| signal.starts_with("kind-"))
            .collect();
        eprintln!(
            "MISSED {} {} || {}\n    {why} {kinds:?} {:?}",
            task.id, task.fact, task.query, prompt.domains
        );
    }
    Ok(())
}

/// What is shown of the profile: the visible part and what the query brought.
fn sections(prompt: &Prompt) -> impl Iterator<Item = &foremind_engine::Shown> {
    prompt.profile.iter().chain(&prompt.joined)
}

/// What the background itself puts into the profile.
#[derive(Default)]
struct Behind {
    /// Visible records whose turn holds nothing to show; null without labels.
    false_visible: Value,
    /// Turns with a fact of which a record is visible.
    true_visible: Rate,
    /// Turns without one that have a record in the profile, visible or not.
    false_profile: Rate,
    pending: Rate,
}

fn background(
    arguments: &Arguments,
    memory: &mut Memory<'_>,
    turns: &[Turn],
    labels: Option<&BTreeMap<String, Holds>>,
) -> Result<Behind, Problem> {
    let visible = memory.profile(arguments.budget_tokens)?;
    if arguments.explain {
        for shown in &visible.profile {
            eprintln!("VISIBLE {}", shown.line);
        }
    }
    let seen: Vec<&str> = visible
        .profile
        .iter()
        .filter_map(|shown| {
            shown
                .record
                .provenance
                .turn
                .as_ref()
                .map(|turn| turn.as_str())
        })
        .collect();
    let (mut profile, mut pending) = (BTreeSet::new(), BTreeSet::new());
    for entry in &memory.entries {
        for change in &entry.changes {
            let foremind_types::Change::Add(record) = change else {
                continue;
            };
            let Some(turn) = &record.provenance.turn else {
                continue;
            };
            if record.route.tier == Tier::Profile {
                profile.insert(turn.as_str());
                if arguments.explain
                    && labels.is_some_and(|l| l.get(turn.as_str()) == Some(&Holds::Nothing))
                {
                    eprintln!("FALSE {} {}", turn.as_str(), record.text);
                }
            }
            if record.route.judgement == Judgement::Pending {
                pending.insert(turn.as_str());
            }
        }
    }
    let mut behind = Behind::default();
    for turn in turns {
        behind.pending.add(pending.contains(turn.id.as_str()));
    }
    let Some(labels) = labels else {
        return Ok(behind);
    };
    let holds = |turn: &str| labels.get(turn).copied();
    let wrong = seen
        .iter()
        .filter(|turn| holds(turn) == Some(Holds::Nothing));
    behind.false_visible = json!(wrong.count());
    for turn in turns {
        match holds(&turn.id) {
            Some(Holds::Fact) => behind.true_visible.add(seen.contains(&turn.id.as_str())),
            Some(Holds::Nothing) => behind.false_profile.add(profile.contains(turn.id.as_str())),
            Some(Holds::Doubtful) | None => {}
        }
    }
    Ok(behind)
}
