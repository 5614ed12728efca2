//! Scenarios in which facts change: whether the current answer is rendered, whether an old one passes for current, and
//! whether something that still holds was retired. The README beside the rows says what each field means.

use std::collections::BTreeMap;

use foremind_engine::{Audience, Prompt};
use foremind_types::{Record, RecordId, Status};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::input::{self, Problem, Row};
use crate::memory::Memory;
use crate::rates::Rate;
use crate::stages::Stages;
use crate::tasks::Turn;

/// 2026-01-01 00:00 UTC: day 1.
const FIRST_DAY_MS: i64 = 1_767_225_600_000;
const DAY_MS: i64 = 86_400_000;
/// The time of day at which things are told and asked.
const NOON_MS: i64 = 43_200_000;
/// What stands on a line that is history, behind its text.
const HISTORY: [&str; 2] = ["; past)", "; may be outdated since "];

/// One scenario.
struct Scenario {
    id: String,
    category: String,
    part: String,
    events: Vec<Event>,
    question: String,
    as_of: Option<i64>,
    must_include: Vec<String>,
    stale: Vec<String>,
    wrong: Vec<String>,
    wrong_retired: bool,
    gone: Vec<String>,
}

struct Event {
    day: i64,
    text: String,
    forget: bool,
}

impl Scenario {
    fn of(row: &Row) -> Result<Self, Problem> {
        let texts = |name: &str| row.list(name).into_iter().map(str::to_owned).collect();
        Ok(Self {
            id: row.id("id")?,
            category: row.text("category")?.to_owned(),
            part: row.text("part")?.to_owned(),
            events: events(row)?,
            question: row.text("question")?.to_owned(),
            as_of: row.number("asOf").ok(),
            must_include: texts("must_include"),
            stale: texts("stale"),
            wrong: texts("wrong"),
            wrong_retired: row.optional("wrong_when") == Some("retired"),
            gone: texts("gone"),
        })
    }
}

fn events(row: &Row) -> Result<Vec<Event>, Problem> {
    let bad = || row.problem("an event needs `day` and `text` or `forget`");
    row.values("events")
        .iter()
        .map(|event| {
            let day = event["day"].as_i64().ok_or_else(bad)?;
            let (text, forget) = match (event["text"].as_str(), event["forget"].as_str()) {
                (Some(text), None) => (text, false),
                (None, Some(text)) => (text, true),
                _ => return Err(bad()),
            };
            Ok(Event {
                day,
                text: text.to_owned(),
                forget,
            })
        })
        .collect()
}

/// Counts of one kind of scenario.
#[derive(Default)]
struct Counts {
    current: Rate,
    stale: Rate,
    shown: Rate,
    retired: Rate,
    gone: Rate,
    scenarios: u32,
}

impl Counts {
    fn json(&self) -> Value {
        json!({
            "scenarios": self.scenarios,
            "current": self.current.share(),
            "stale_shown": self.stale.share(),
            "wrong_shown": self.shown.share(),
            "wrong_retired": self.retired.share(),
            "wrong_retired_count": self.retired.hits,
            "gone_shown": self.gone.share(),
            "ci95": {
                "current": self.current.ci95(),
                "stale_shown": self.stale.ci95(),
                "wrong_shown": self.shown.ci95(),
                "wrong_retired": self.retired.ci95(),
                "gone_shown": self.gone.ci95(),
            },
        })
    }
}

/// The figures of `eval supersession`, for each part and together.
///
/// # Errors
/// [`Problem::Input`], [`Problem::Internal`].
pub(crate) fn measure(arguments: &Arguments) -> Result<Value, Problem> {
    let rows = input::rows(&arguments.rows)?;
    let scenarios = rows
        .iter()
        .map(Scenario::of)
        .collect::<Result<Vec<_>, _>>()?;
    let stages = Stages::read(arguments)?;
    let mut all = Counts::default();
    let mut by_part: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut by_category: BTreeMap<&str, Counts> = BTreeMap::new();
    for scenario in &scenarios {
        if arguments
            .part
            .as_ref()
            .is_some_and(|part| *part != scenario.part)
        {
            continue;
        }
        let seen = Seen::of(arguments, scenario, &stages)?;
        for counts in [
            &mut all,
            by_part.entry(&scenario.part).or_default(),
            by_category.entry(&scenario.category).or_default(),
        ] {
            seen.add(scenario, counts);
        }
        if arguments.explain {
            seen.explain(scenario);
        }
    }
    let named = |counts: BTreeMap<&str, Counts>| -> Map<String, Value> {
        counts
            .into_iter()
            .map(|(name, counts)| (name.to_owned(), counts.json()))
            .collect()
    };
    let mut figures = all.json();
    figures["stage"] = json!(stages.name());
    figures["by_part"] = Value::Object(named(by_part));
    figures["by_category"] = Value::Object(named(by_category));
    Ok(figures)
}

/// What one scenario showed.
struct Seen {
    prompt: Prompt,
    /// Of each text of `must_include`, whether it stands in a line that is current.
    current: bool,
    stale: Vec<String>,
    shown: Vec<String>,
    retired: Vec<String>,
    gone: Vec<String>,
    records: Vec<Record>,
}

impl Seen {
    fn of(arguments: &Arguments, scenario: &Scenario, stages: &Stages) -> Result<Self, Problem> {
        let mut memory = Memory::new(1, stages)?;
        // What is matched is the text as told, names and addresses included.
        memory.audience = Audience::Device;
        let mut told: Vec<(&Event, Vec<RecordId>)> = Vec::new();
        let mut last = 0;
        for (at, event) in scenario.events.iter().enumerate() {
            memory.now_ms = FIRST_DAY_MS + (event.day - 1) * DAY_MS + NOON_MS + at as i64;
            last = event.day;
            if event.forget {
                for (_, ids) in told.iter().filter(|(e, _)| e.text == event.text) {
                    for id in ids {
                        if memory.get(*id)?.is_some() {
                            memory.forget(*id)?;
                        }
                    }
                }
                continue;
            }
            let turn = Turn {
                id: format!("event-{at}"),
                session: event.day,
                text: event.text.clone(),
            };
            let ids = memory.ingest(&turn)?.into_iter().map(|record| record.id);
            told.push((event, ids.collect()));
        }
        // An `asOf` that is not past the last event's day is asked of the past.
        let past = scenario.as_of.filter(|day| *day < last);
        let asked = match scenario.as_of {
            Some(day) if past.is_none() => FIRST_DAY_MS + day * DAY_MS - 1,
            _ => FIRST_DAY_MS + last * DAY_MS + NOON_MS,
        };
        memory.now_ms = asked.max(memory.now_ms);
        let as_of_ms = past.map(|day| FIRST_DAY_MS + day * DAY_MS - 1);
        let prompt = memory.recall_as_of(
            &scenario.question,
            arguments.budget_tokens,
            foremind_engine::Exposure::Full,
            as_of_ms,
        )?;
        let lines: Vec<(bool, String)> = prompt
            .prompt
            .lines()
            .map(|line| (is_history(line), folded(line)))
            .collect();
        let anywhere = |text: &String| {
            let text = folded(text);
            lines.iter().any(|(_, line)| line.contains(&text))
        };
        let current = |text: &String| {
            let text = folded(text);
            lines
                .iter()
                .any(|(history, line)| !history && line.contains(&text))
        };
        let only = |texts: &[String], test: &dyn Fn(&String) -> bool| -> Vec<String> {
            texts.iter().filter(|text| test(text)).cloned().collect()
        };
        let mut records = Vec::new();
        let mut retired = Vec::new();
        for (event, ids) in &told {
            for id in ids {
                let Some(record) = memory.get(*id)? else {
                    continue;
                };
                let out = matches!(record.status, Status::Superseded | Status::Retracted);
                // A merged telling is the same fact, not a retired one.
                let is_wrong = scenario
                    .wrong
                    .iter()
                    .any(|wrong| folded(&event.text).contains(&folded(wrong)));
                if out && is_wrong && scenario.wrong_retired {
                    retired.push(event.text.clone());
                }
                records.push(record);
            }
        }
        Ok(Self {
            current: scenario.must_include.iter().all(current),
            stale: only(&scenario.stale, &current),
            shown: match scenario.wrong_retired {
                true => Vec::new(),
                false => only(&scenario.wrong, &current),
            },
            gone: only(&scenario.gone, &anywhere),
            retired,
            records,
            prompt,
        })
    }

    fn add(&self, scenario: &Scenario, counts: &mut Counts) {
        counts.scenarios += 1;
        if !scenario.must_include.is_empty() {
            counts.current.add(self.current);
        }
        if !scenario.stale.is_empty() {
            counts.stale.add(!self.stale.is_empty());
        }
        if !scenario.wrong.is_empty() {
            if scenario.wrong_retired {
                counts.retired.add(!self.retired.is_empty());
            } else {
                counts.shown.add(!self.shown.is_empty());
            }
        }
        if !scenario.gone.is_empty() {
            counts.gone.add(!self.gone.is_empty());
        }
    }

    fn explain(&self, scenario: &Scenario) {
        let faults = [
            (
                "NOT-CURRENT",
                (!self.current).then(|| scenario.must_include.join(" | ")),
            ),
            ("STALE", joined(&self.stale)),
            ("WRONG-SHOWN", joined(&self.shown)),
            ("WRONG-RETIRED", joined(&self.retired)),
            ("GONE-SHOWN", joined(&self.gone)),
        ];
        let found: Vec<String> = faults
            .into_iter()
            .filter_map(|(name, texts)| Some(format!("{name}: {}", texts?)))
            .collect();
        if found.is_empty() {
            return;
        }
        eprintln!("{} {} {}", scenario.id, scenario.category, found.join("; "));
        for event in &scenario.events {
            let mark = if event.forget { "forget " } else { "" };
            eprintln!("    day {}: {mark}{}", event.day, event.text);
        }
        for record in &self.records {
            eprintln!(
                "    [{}] {} {:?}",
                record.status.as_str(),
                record.text,
                record
                    .supersedes
                    .iter()
                    .map(|link| (&link.kind, &link.why))
                    .collect::<Vec<_>>()
            );
        }
        eprintln!("    ? {}\n{}", scenario.question, self.prompt.prompt);
    }
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(" | "))
}

fn is_history(line: &str) -> bool {
    let behind = line.rsplit_once("\" (").map_or("", |(_, behind)| behind);
    HISTORY.iter().any(|mark| behind.contains(mark))
}

/// Case and white space do not count; marks that the renderer replaces do not either.
fn folded(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.to_lowercase().replace('"', "”"))
        .collect();
    words.join(" ")
}
