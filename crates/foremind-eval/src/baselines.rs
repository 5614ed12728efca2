//! What simple rules make of the same conversation: the figures to stand beside ours.

use foremind_index::Bm25;
use foremind_router::Router;
use foremind_types::RecordId;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::rates::Rate;
use crate::tasks::{Task, Turn};

/// Results of a search that a model would see.
const TOP: usize = 5;
/// Lines of a memory file that is always loaded.
const LINES: usize = 200;
/// Words of a rule that anybody would write down first.
const KEYWORDS: &[&str] = &[
    "allerg",
    "diagnos",
    "diabet",
    "pregnan",
    "medic",
    "doctor",
    "surgery",
    "disab",
    "vegan",
    "vegetarian",
    "halal",
    "kosher",
    "religio",
    "visa",
    "lawyer",
    "court",
    "contract",
    "budget",
    "debt",
    "always",
    "never",
    "can't",
    "cannot",
    "prefer",
    "must",
];

/// A statement of the conversation; `target` when it is the task's fact.
struct Line {
    text: String,
    tokens: usize,
    target: bool,
}

/// Statements of the conversation with their lengths, made once.
pub(crate) struct Baselines<'t> {
    router: &'t Router,
    tokenizer: &'t CoreBPE,
    before: Vec<Line>,
    after: Vec<Line>,
    /// All of them for the search.
    index: Bm25,
    rates: [Rate; 4],
}

impl<'t> Baselines<'t> {
    /// Splits the turns; those of sessions up to `last_before` stand before the fact.
    pub(crate) fn new(
        router: &'t Router,
        tokenizer: &'t CoreBPE,
        turns: &[Turn],
        last_before: i64,
    ) -> Self {
        let mut made = Self {
            router,
            tokenizer,
            before: Vec::new(),
            after: Vec::new(),
            index: Bm25::new(),
            rates: [Rate::default(); 4],
        };
        let (before, after): (Vec<&Turn>, Vec<&Turn>) =
            turns.iter().partition(|turn| turn.session <= last_before);
        made.before = before
            .iter()
            .flat_map(|t| made.lines(&t.text, false))
            .collect();
        made.after = after
            .iter()
            .flat_map(|t| made.lines(&t.text, false))
            .collect();
        for (at, line) in made.before.iter().chain(&made.after).enumerate() {
            made.index.insert(id(at), 0, &line.text);
        }
        made
    }

    fn lines(&self, text: &str, target: bool) -> Vec<Line> {
        let statements = self.router.statements(text);
        statements
            .into_iter()
            .map(|text| Line {
                text: text.to_owned(),
                tokens: self.tokenizer.encode_ordinary(text).len(),
                target,
            })
            .collect()
    }

    /// Measures one task. A rule has found the fact when it shows any statement of it.
    pub(crate) fn add(&mut self, task: &Task, budget_tokens: u32) {
        let target = self.lines(&task.fact, true);
        let lines: Vec<&Line> = self
            .before
            .iter()
            .chain(&target)
            .chain(&self.after)
            .collect();
        let budget = budget_tokens as usize;
        let found = [
            searched(&mut self.index, &target, &task.query),
            filled(&lines, budget, |line| Some(line.tokens)),
            filled(&lines, budget, |line| {
                let lower = line.text.to_lowercase();
                KEYWORDS.iter().any(|w| lower.contains(w)).then_some(0)
            }),
            lines.iter().take(LINES).any(|line| line.target),
        ];
        for (rate, found) in self.rates.iter_mut().zip(found) {
            rate.add(found);
        }
    }

    pub(crate) fn json(&self) -> Value {
        let [bm25, shortest, keyword, lines] = self.rates;
        json!({
            "bm25_top5": bm25.share(),
            // Needs the embedder, which this runner does not link.
            "minilm_top5": Value::Null,
            "shortest": shortest.share(),
            "keyword": keyword.share(),
            "always_200_lines": lines.share(),
            "ci95": {
                "bm25_top5": bm25.ci95(),
                "shortest": shortest.ci95(),
                "keyword": keyword.ci95(),
                "always_200_lines": lines.ci95(),
            },
        })
    }
}

fn id(at: usize) -> RecordId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(at as u64).to_le_bytes());
    RecordId::from_bytes(bytes)
}

/// Whether BM25 finds a statement of the fact among the others by the question.
fn searched(index: &mut Bm25, target: &[Line], query: &str) -> bool {
    let first = index.len();
    let targets: Vec<RecordId> = (first..first + target.len()).map(id).collect();
    for (id, line) in targets.iter().zip(target) {
        index.insert(*id, 0, &line.text);
    }
    let found = index.search(query, |_| true, |_| true, TOP);
    for id in &targets {
        index.remove(*id);
    }
    found.iter().any(|hit| targets.contains(&hit.id))
}

/// Whether the fact is among the lines with the smallest rank, later ones first among equals, that fit the budget.
/// Lines without a rank are not shown.
fn filled(lines: &[&Line], budget: usize, rank: impl Fn(&Line) -> Option<usize>) -> bool {
    let mut ranked: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((rank(line)?, lines.len() - at)))
        .collect();
    ranked.sort_unstable();
    let mut used = 0;
    for (_, from_end) in ranked {
        let line = lines[lines.len() - from_end];
        // The line and its break.
        used += line.tokens + 1;
        if used > budget {
            return false;
        }
        if line.target {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, target: bool) -> Line {
        Line {
            text: text.to_owned(),
            tokens: text.split(' ').count(),
            target,
        }
    }

    #[test]
    fn lines_fill_the_budget_by_rank_and_then_latest_first() {
        let lines = [
            line("one two three", false),
            line("one", true),
            line("two", false),
        ];
        let lines: Vec<&Line> = lines.iter().collect();
        let by_length = |l: &Line| Some(l.tokens);
        assert!(!filled(&lines, 2, by_length), "the later line goes first");
        assert!(filled(&lines, 4, by_length));
        assert!(!filled(&lines, 9, |l| (!l.target).then_some(0)));
    }

    #[test]
    fn a_search_finds_what_shares_words_and_leaves_the_index_as_it_was() {
        let mut index = Bm25::new();
        for at in 0..9 {
            index.insert(id(at), 0, "the weather was fine again");
        }
        let target = [line("we keep two ferrets", true)];
        assert!(searched(&mut index, &target, "which ferrets do we keep"));
        assert!(!searched(&mut index, &target, "is lavender oil safe"));
        assert_eq!(index.len(), 9);
    }
}
