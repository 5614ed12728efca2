//! Questions of LongMemEval: the sessions that hold their evidence stand among sessions of other questions, and only what the
//! owner said is told.

use std::collections::{BTreeMap, BTreeSet};

use foremind_engine::Exposure;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::arguments::Arguments;
use crate::dates;
use crate::input::{self, Problem};
use crate::memory::Memory;
use crate::ranking::ranked;
use crate::rates::Rate;
use crate::stages::Stages;

/// Sessions asked after their question are moved into the past by whole weeks, close to a year.
const YEAR_MS: i64 = 364 * 86_400_000;
const TURN_GAP_MS: i64 = 60_000;
const FIRST: usize = 5;
const FURTHER: usize = 10;

struct Question {
    id: String,
    kind: String,
    text: String,
    asked_ms: i64,
    /// Earliest first.
    evidence: Vec<String>,
    /// Whether what the owner said, which alone is told, holds the answer.
    answerable: bool,
}

struct Session {
    at_ms: i64,
    turns: Vec<String>,
}

#[derive(Default)]
struct Counts {
    first: Rate,
    all: Rate,
    current_first: Rate,
    questions: u32,
}

impl Counts {
    fn json(&self) -> Value {
        json!({
            "questions": self.questions,
            "session_recall_at_5": self.first.share(),
            "all_sessions_at_10": self.all.share(),
            "ci95": {
                "session_recall_at_5": self.first.ci95(),
                "all_sessions_at_10": self.all.ci95(),
            },
        })
    }
}

/// The figures of `eval longmemeval`.
///
/// # Errors
/// [`Problem::Input`]; [`Problem::Internal`] when the memory refuses a turn.
pub(crate) fn measure(arguments: &Arguments) -> Result<Value, Problem> {
    let (questions, sessions) = read(arguments)?;
    let stages = Stages::read(arguments)?;
    let mut all = Counts::default();
    let mut by_type: BTreeMap<&str, Counts> = BTreeMap::new();
    let (mut unrelated_empty, mut lost) = (Rate::default(), Rate::default());
    let mut tokens_max = 0;
    for (at, question) in questions.iter().enumerate() {
        if at % 20 == 0 {
            eprintln!("{at} of {} questions", questions.len());
            stages.save()?;
        }
        let haystack = haystack(question, &sessions, arguments.distractors);
        let mut memory = Memory::new(1, &stages)?;
        tell(&mut memory, question, &haystack, &sessions)?;
        memory.now_ms = question.asked_ms;
        let prompt = memory.recall(&question.text, arguments.budget_tokens, Exposure::Full)?;
        tokens_max = tokens_max.max(prompt.tokens);
        let mut found: Vec<&str> = Vec::new();
        for shown in ranked(&prompt) {
            if let Some(thread) = &shown.record.provenance.thread
                && !found.contains(&thread.as_str())
            {
                found.push(thread.as_str());
            }
        }
        let place = |session: &String| found.iter().position(|found| found == session);
        let within = |session: &String, most: usize| place(session).is_some_and(|at| at < most);
        let first = question.evidence.iter().any(|s| within(s, FIRST));
        let every = question.evidence.iter().all(|s| within(s, FURTHER));
        for counts in [&mut all, by_type.entry(&question.kind).or_default()] {
            counts.questions += 1;
            counts.first.add(first);
            counts.all.add(every);
        }
        if question.kind == "knowledge-update"
            && let Some((latest, earlier)) = question.evidence.split_last()
        {
            let current = place(latest)
                .is_some_and(|at| earlier.iter().all(|s| place(s).is_none_or(|e| at < e)));
            all.current_first.add(current);
            if arguments.explain && !current {
                explain("STALE", question, &prompt, &found);
            }
        }
        if question.answerable {
            lost.add(prompt.context.is_empty() && !first);
        }
        if arguments.explain && !first {
            explain("MISSED", question, &prompt, &found);
        }
        if let Some(other) = unrelated(question, &questions, &haystack) {
            let prompt = memory.recall(&other.text, arguments.budget_tokens, Exposure::Full)?;
            unrelated_empty.add(prompt.context.is_empty());
            if arguments.explain && !prompt.context.is_empty() {
                explain("UNRELATED", other, &prompt, &[]);
            }
        }
    }
    stages.save()?;
    let by_type: Map<String, Value> = by_type
        .into_iter()
        .map(|(kind, counts)| (kind.to_owned(), counts.json()))
        .collect();
    let mut figures = all.json();
    figures["stage"] = json!(stages.name());
    figures["distractors"] = json!(arguments.distractors);
    figures["budget_tokens"] = json!(arguments.budget_tokens);
    figures["tokens_max"] = json!(tokens_max);
    figures["by_type"] = Value::Object(by_type);
    for (name, rate) in [
        ("update_current_first", all.current_first),
        ("unrelated_empty", unrelated_empty),
        ("answerable_lost", lost),
    ] {
        figures[name] = rate.share();
        figures["ci95"][name] = rate.ci95();
    }
    Ok(figures)
}

fn explain(what: &str, question: &Question, prompt: &foremind_engine::Prompt, found: &[&str]) {
    eprintln!(
        "{what} {} {} {:?}",
        question.id, question.text, question.evidence
    );
    for shown in ranked(prompt).into_iter().take(6) {
        let thread = shown.record.provenance.thread.as_ref();
        eprintln!(
            "    {} {:?} {}",
            thread.map_or("-", |thread| thread.as_str()),
            shown.why,
            shown.record.text
        );
    }
    if !found.is_empty() {
        eprintln!("    {found:?}");
    }
}

fn read(arguments: &Arguments) -> Result<(Vec<Question>, BTreeMap<String, Session>), Problem> {
    let rows = input::list(&arguments.rows)?;
    let mut questions = Vec::new();
    let mut sessions = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let bad = |what: &str| {
            let place = arguments.rows.display();
            Problem::Input(format!("{place}: bad row {}: `{what}`", at + 1))
        };
        let text = |name: &str| row[name].as_str().ok_or_else(|| bad(name));
        let texts = |name: &str| -> Result<Vec<&str>, Problem> {
            let list = row[name].as_array().ok_or_else(|| bad(name))?;
            list.iter()
                .map(|value| value.as_str().ok_or_else(|| bad(name)))
                .collect()
        };
        let ids = texts("haystack_session_ids")?;
        let dates = texts("haystack_dates")?;
        let told = row["haystack_sessions"]
            .as_array()
            .filter(|told| told.len() == ids.len() && told.len() == dates.len())
            .ok_or_else(|| bad("haystack_sessions"))?;
        let turns = || told.iter().filter_map(Value::as_array).flatten();
        // Without marks every question counts.
        let marked = turns().any(|turn| turn["has_answer"].is_boolean());
        let holds = |turn: &Value| turn["has_answer"] == true && turn["role"] == "user";
        let answerable = !marked || turns().any(holds);
        for ((id, date), turns) in ids.iter().zip(&dates).zip(told) {
            let turns = turns.as_array().ok_or_else(|| bad("haystack_sessions"))?;
            let session = Session {
                at_ms: dates::parse(date).ok_or_else(|| bad("haystack_dates"))?,
                turns: turns
                    .iter()
                    .filter(|turn| turn["role"] == "user")
                    .filter_map(|turn| turn["content"].as_str())
                    .filter(|text| !text.trim().is_empty())
                    .map(str::to_owned)
                    .collect(),
            };
            sessions.insert((*id).to_owned(), session);
        }
        let mut evidence: Vec<String> = texts("answer_session_ids")?
            .into_iter()
            .map(str::to_owned)
            .collect();
        if evidence.iter().any(|id| !sessions.contains_key(id)) {
            return Err(bad("answer_session_ids"));
        }
        evidence.sort_by_key(|id| sessions.get(id).map(|session| session.at_ms));
        questions.push(Question {
            id: text("question_id")?.to_owned(),
            kind: text("question_type")?.to_owned(),
            text: text("question")?.to_owned(),
            asked_ms: dates::parse(text("question_date")?).ok_or_else(|| bad("question_date"))?,
            evidence,
            answerable,
        });
    }
    Ok((questions, sessions))
}

/// The first `count` of `ids` by the hash of the question's id before theirs.
fn hashed<'i>(
    question: &Question,
    ids: impl Iterator<Item = &'i String>,
    count: usize,
) -> Vec<&'i String> {
    let mut ids: Vec<([u8; 32], &String)> = ids
        .map(|id| {
            let hash = Sha256::new()
                .chain_update(&question.id)
                .chain_update(id)
                .finalize();
            (hash.into(), id)
        })
        .collect();
    ids.sort();
    ids.into_iter().take(count).map(|(_, id)| id).collect()
}

fn haystack<'s>(
    question: &Question,
    sessions: &'s BTreeMap<String, Session>,
    distractors: usize,
) -> BTreeSet<&'s str> {
    let own = |id: &&String| question.evidence.contains(id);
    let others = sessions.keys().filter(|id| !own(id));
    hashed(question, others, distractors)
        .into_iter()
        .chain(sessions.keys().filter(own))
        .map(String::as_str)
        .collect()
}

/// Tells the sessions in the order of their times, all before the question.
fn tell(
    memory: &mut Memory<'_>,
    question: &Question,
    haystack: &BTreeSet<&str>,
    sessions: &BTreeMap<String, Session>,
) -> Result<(), Problem> {
    let mut told: Vec<(i64, &str, &Session)> = haystack
        .iter()
        .filter_map(|id| {
            let session = sessions.get(*id)?;
            let late_ms = (session.at_ms - question.asked_ms).max(-1);
            let years = (late_ms + YEAR_MS).div_euclid(YEAR_MS);
            Some((session.at_ms - years * YEAR_MS, *id, session))
        })
        .collect();
    told.sort_by_key(|(at_ms, id, _)| (*at_ms, *id));
    for (at_ms, id, session) in told {
        memory.now_ms = at_ms;
        for (at, text) in session.turns.iter().enumerate() {
            memory.now_ms += TURN_GAP_MS;
            memory.ingest_in(id, &format!("{id}-{at}"), text)?;
        }
    }
    Ok(())
}

/// A question of another haystack, none of whose evidence is told here.
fn unrelated<'q>(
    question: &Question,
    questions: &'q [Question],
    haystack: &BTreeSet<&str>,
) -> Option<&'q Question> {
    let strange = |other: &&Question| {
        other.id != question.id && !other.evidence.iter().any(|s| haystack.contains(s.as_str()))
    };
    let ids = questions.iter().filter(strange).map(|other| &other.id);
    let id = hashed(question, ids, 1).pop()?;
    questions.iter().find(|other| other.id == *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(asked_ms: i64, evidence: &[&str]) -> Question {
        Question {
            id: "q".to_owned(),
            kind: String::new(),
            text: String::new(),
            asked_ms,
            evidence: evidence.iter().map(|id| (*id).to_owned()).collect(),
            answerable: true,
        }
    }

    fn sessions(count: usize) -> BTreeMap<String, Session> {
        (0..count)
            .map(|at| {
                let session = Session {
                    at_ms: at as i64,
                    turns: vec![format!("I moved to town number {at}.")],
                };
                (format!("s{at}"), session)
            })
            .collect()
    }

    #[test]
    fn a_haystack_holds_the_evidence_and_so_many_others() {
        let sessions = sessions(60);
        let asked = question(0, &["s3", "s9"]);
        let found = haystack(&asked, &sessions, 40);
        assert_eq!(found.len(), 42);
        assert!(found.contains("s3") && found.contains("s9"));
        assert_eq!(found, haystack(&asked, &sessions, 40));
    }

    #[test]
    fn nothing_is_told_after_the_question() {
        let stages = Stages::words();
        let mut memory = Memory::new(1, &stages).unwrap();
        let mut sessions = sessions(3);
        let day_ms = 86_400_000;
        for (at, session) in sessions.values_mut().enumerate() {
            session.at_ms = (at as i64 * 500) * day_ms;
        }
        let asked = question(400 * day_ms, &["s0"]);
        let all = sessions.keys().map(String::as_str).collect();
        tell(&mut memory, &asked, &all, &sessions).unwrap();
        let told: Vec<i64> = memory.entries.iter().map(|e| e.at_ms / day_ms).collect();
        // 500 and 1,000 days go back by one and by two years.
        assert_eq!(told, [0, 136, 272]);
    }
}
