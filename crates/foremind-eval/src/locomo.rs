//! Questions of LoCoMo about long conversations of two people: one turn is one record, and of the turns that hold the
//! evidence the share among the first ten is counted.

use std::collections::BTreeMap;

use foremind_engine::Exposure;
use foremind_types::RecordId;
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::dates;
use crate::input::{self, Problem};
use crate::memory::Memory;
use crate::ranking::ranked;
use crate::rates::wilson95;
use crate::stages::Stages;

const FIRST: usize = 10;
const TURN_GAP_MS: i64 = 60_000;

/// The mean of a share over questions.
#[derive(Default)]
struct Mean {
    shares: Vec<f64>,
}

impl Mean {
    fn value(&self) -> Value {
        if self.shares.is_empty() {
            return Value::Null;
        }
        let sum: f64 = self.shares.iter().sum();
        rounded(sum / self.shares.len() as f64)
    }

    /// Wilson's interval with the shares taken for hits, which is wider than that of the mean.
    fn ci95(&self) -> Value {
        let n = self.shares.len() as f64;
        if n == 0.0 {
            return Value::Null;
        }
        wilson95(self.shares.iter().sum::<f64>() / n, n)
    }
}

fn rounded(share: f64) -> Value {
    json!((share * 1e4).round() / 1e4)
}

/// The figures of `eval locomo`.
///
/// # Errors
/// [`Problem::Input`]; [`Problem::Internal`] when the memory refuses a turn.
pub(crate) fn measure(arguments: &Arguments) -> Result<Value, Problem> {
    let rows = input::list(&arguments.rows)?;
    let stages = Stages::read(arguments)?;
    let mut all = Mean::default();
    let mut by_category: BTreeMap<i64, Mean> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        eprintln!("{at} of {} conversations", rows.len());
        let place = format!("{}: conversation {}", arguments.rows.display(), at + 1);
        let mut memory = Memory::new(1, &stages)?;
        let told = tell(&mut memory, &row["conversation"], &place)?;
        stages.save()?;
        let questions = row["qa"].as_array();
        let questions = questions.ok_or_else(|| Problem::Input(format!("{place}: no `qa`")))?;
        for question in questions {
            let category = question["category"].as_i64().unwrap_or_default();
            let evidence = evidence(question);
            let wanted: Vec<&Vec<RecordId>> =
                evidence.iter().filter_map(|turn| told.get(turn)).collect();
            let Some(text) = question["question"].as_str() else {
                return Err(Problem::Input(format!("{place}: a question without text")));
            };
            if !(1..=4).contains(&category) || wanted.is_empty() {
                continue;
            }
            let prompt = memory.recall(text, arguments.budget_tokens, Exposure::Full)?;
            let first: Vec<RecordId> = ranked(&prompt)
                .into_iter()
                .take(FIRST)
                .map(|shown| shown.record.id)
                .collect();
            let hits = wanted
                .iter()
                .filter(|ids| ids.iter().any(|id| first.contains(id)))
                .count();
            let share = hits as f64 / wanted.len() as f64;
            all.shares.push(share);
            by_category.entry(category).or_default().shares.push(share);
            if arguments.explain && share < 1.0 {
                eprintln!(
                    "MISSED {category} {text} {evidence:?} {}",
                    question["answer"]
                );
                for id in wanted.iter().flat_map(|ids| ids.iter()) {
                    let dropped = prompt.dropped.iter().find(|dropped| dropped.id == *id);
                    let record = memory.get(*id)?;
                    let status = record.as_ref().map(|record| record.status);
                    let text = record.map(|record| record.text);
                    let at = ranked(&prompt)
                        .iter()
                        .position(|shown| shown.record.id == *id);
                    eprintln!(
                        "  {at:?} {status:?} {:?} {text:?}",
                        dropped.map(|d| d.reason)
                    );
                }
                for shown in ranked(&prompt).into_iter().take(FIRST) {
                    let turn = shown.record.provenance.turn.as_ref();
                    eprintln!(
                        "    {} {:?} {}",
                        turn.map_or("-", |turn| turn.as_str()),
                        shown.why,
                        shown.record.text
                    );
                }
            }
        }
    }
    stages.save()?;
    let categories: Map<String, Value> = by_category
        .iter()
        .map(|(category, mean)| {
            let figures = json!({
                "questions": mean.shares.len(),
                "evidence_recall_at_10": mean.value(),
                "ci95": { "evidence_recall_at_10": mean.ci95() },
            });
            (category.to_string(), figures)
        })
        .collect();
    Ok(json!({
        "stage": stages.name(),
        "budget_tokens": arguments.budget_tokens,
        "questions": all.shares.len(),
        "evidence_recall_at_10": all.value(),
        "by_category": categories,
        "ci95": { "evidence_recall_at_10": all.ci95() },
    }))
}

/// Tells all sessions, each turn as one record with its speaker; the records by turn.
fn tell(
    memory: &mut Memory<'_>,
    conversation: &Value,
    place: &str,
) -> Result<BTreeMap<String, Vec<RecordId>>, Problem> {
    let mut told = BTreeMap::new();
    for session in 1.. {
        let bad = |what: &str| Problem::Input(format!("{place}, session {session}: {what}"));
        let name = format!("session_{session}");
        let Some(turns) = conversation[&name].as_array() else {
            // Some conversations have dates of sessions that were never held.
            break;
        };
        let date = conversation[format!("{name}_date_time")].as_str();
        memory.now_ms = date.and_then(dates::parse).ok_or_else(|| bad("no date"))?;
        for turn in turns {
            let field = |name: &str| turn[name].as_str();
            let (Some(speaker), Some(text), Some(id)) =
                (field("speaker"), field("text"), field("dia_id"))
            else {
                return Err(bad("a turn without speaker, text or id"));
            };
            let shared = field("blip_caption")
                .map_or(String::new(), |caption| format!(" (shares {caption})"));
            memory.now_ms += TURN_GAP_MS;
            let records = memory.remember(
                &format!("session-{session}"),
                &id.replace(':', "-"),
                &format!("{speaker}: {text}{shared}"),
            )?;
            told.insert(id.to_owned(), records);
        }
    }
    if told.is_empty() {
        return Err(Problem::Input(format!("{place}: no `session_1`")));
    }
    Ok(told)
}

/// The turns that a question's answer rests on: `D1:3`, several in one text here and there.
fn evidence(question: &Value) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let texts = question["evidence"].as_array().into_iter().flatten();
    for text in texts.filter_map(Value::as_str) {
        for id in text.split(|c: char| c == ';' || c == ',' || c.is_whitespace()) {
            if !id.is_empty() && !found.iter().any(|found| found == id) {
                found.push(id.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_it_is_written() {
        let question = json!({ "evidence": ["D8:6; D9:17", "D1:3", "D1:3"] });
        assert_eq!(evidence(&question), ["D8:6", "D9:17", "D1:3"]);
        assert!(evidence(&json!({})).is_empty());
    }

    #[test]
    fn a_conversation_is_told_turn_by_turn() {
        let stages = Stages::words();
        let mut memory = Memory::new(1, &stages).unwrap();
        let conversation = json!({
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                { "speaker": "Ana", "dia_id": "D1:1", "text": "I sold my boat." },
                { "speaker": "Ben", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red kite" },
            ],
        });
        let told = tell(&mut memory, &conversation, "here").unwrap();
        assert_eq!(told.len(), 2);
        let prompt = memory
            .recall("Who has a kite?", 400, Exposure::Full)
            .unwrap();
        let first = ranked(&prompt)[0].record.id;
        assert_eq!(told["D1:2"], [first]);
        assert!(tell(&mut memory, &json!({}), "here").is_err());
    }
}
