//! What simple rules make of the same conversation: the figures to stand beside ours.

use std::ops::Range;

use foremind_embed::EMBEDDING_HEAD;
use foremind_index::{Bm25, Vectors, Work};
use foremind_router::Router;
use foremind_types::{Embedding, HeadId, RecordId};
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::arguments::Arguments;
use crate::input::Problem;
use crate::rates::Rate;
use crate::stages::Stages;
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
    stages: &'t Stages,
    tokenizer: &'t CoreBPE,
    before: Vec<Line>,
    after: Vec<Line>,
    /// All of them for the two searches; no vectors without an encoder.
    index: Bm25,
    vectors: Vectors,
    rates: [Rate; 4],
    by_words: Ranks,
    by_meaning: Ranks,
}

/// At which place a search by the question shows the fact, counted from 1: how alike the two look. A task whose fact is
/// among the first tests a search and no judgement.
#[derive(Default)]
struct Ranks(Vec<usize>);

impl Ranks {
    /// `null` when nothing was searched.
    fn json(&self) -> Value {
        let mut ranks = self.0.clone();
        ranks.sort_unstable();
        let at = |share: usize| ranks.get(ranks.len() * share / 10).copied();
        match at(5) {
            Some(median) => json!({"tenth": at(1), "median": median, "top5": self.top().share()}),
            None => Value::Null,
        }
    }

    /// How often it was among the first [`TOP`].
    fn top(&self) -> Rate {
        let mut rate = Rate::default();
        for rank in &self.0 {
            rate.add(*rank <= TOP);
        }
        rate
    }
}

impl<'t> Baselines<'t> {
    /// Splits the turns; those of sessions up to `last_before` stand before the fact.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the encoder fails.
    pub(crate) fn new(
        router: &'t Router,
        stages: &'t Stages,
        tokenizer: &'t CoreBPE,
        turns: &[Turn],
        last_before: i64,
    ) -> Result<Self, Problem> {
        let mut made = Self {
            router,
            stages,
            tokenizer,
            before: Vec::new(),
            after: Vec::new(),
            index: Bm25::new(),
            vectors: Vectors::new(),
            rates: [Rate::default(); 4],
            by_words: Ranks::default(),
            by_meaning: Ranks::default(),
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
        let lines = made.before.iter().chain(&made.after);
        let texts: Vec<String> = lines.map(|line| line.text.clone()).collect();
        for (at, text) in texts.iter().enumerate() {
            made.index.insert(at as u32, 0, text);
        }
        if stages.encodes() {
            for (at, vector) in made.encode(&texts)?.iter().enumerate() {
                insert(&mut made.vectors, at as u32, vector)?;
            }
        }
        Ok(made)
    }

    fn encode(&self, texts: &[String]) -> Result<Vec<Embedding>, Problem> {
        let head = HeadId(EMBEDDING_HEAD.to_owned());
        let rows = self.stages.encode(texts, &[head]);
        let rows = rows.map_err(|failure| Problem::Internal(format!("encoder: {failure:?}")))?;
        Ok(rows.into_iter().flatten().collect())
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
    ///
    /// # Errors
    /// [`Problem::Internal`] when the encoder fails.
    pub(crate) fn add(&mut self, task: &Task, arguments: &Arguments) -> Result<(), Problem> {
        let target = self.lines(&task.fact, true);
        let by_words = searched(&mut self.index, &target, &task.query);
        let by_meaning = self.near(&target, &task.query)?;
        self.by_words.0.push(by_words);
        self.by_meaning.0.extend(by_meaning);
        if arguments.explain && by_words.min(by_meaning.unwrap_or(by_words)) <= TOP {
            let meaning = by_meaning.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            eprintln!(
                "NEAR {} words {by_words} meaning {meaning} {} || {}",
                task.id, task.fact, task.query
            );
        }
        let lines: Vec<&Line> = self
            .before
            .iter()
            .chain(&target)
            .chain(&self.after)
            .collect();
        let budget = arguments.budget_tokens as usize;
        let found = [
            by_words <= TOP,
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
        Ok(())
    }

    /// At which place the embedding of the question finds a statement of the fact; none without an encoder.
    fn near(&mut self, target: &[Line], query: &str) -> Result<Option<usize>, Problem> {
        if !self.stages.encodes() {
            return Ok(None);
        }
        let mut texts = vec![query.to_owned()];
        texts.extend(target.iter().map(|line| line.text.clone()));
        let rows = self.encode(&texts)?;
        let Some((asked, told)) = rows.split_first() else {
            return Ok(None);
        };
        let first = (self.before.len() + self.after.len()) as u32;
        let targets = first..first + told.len() as u32;
        for (place, vector) in targets.clone().zip(told) {
            insert(&mut self.vectors, place, vector)?;
        }
        let most = self.vectors.len();
        let found = self
            .vectors
            .nearest(asked, -1.0, &id, most, &mut Work::unbounded());
        for place in targets.clone() {
            self.vectors.remove(place);
        }
        Ok(Some(rank(
            found.iter().map(|hit| hit.place),
            &targets,
            most,
        )))
    }

    /// How alike the questions and the facts look, by words and by meaning: the check of a file of tasks.
    pub(crate) fn similarity(&self) -> Value {
        json!({
            "distractors": self.before.len() + self.after.len(),
            "bm25_rank": self.by_words.json(),
            "minilm_rank": self.by_meaning.json(),
        })
    }

    pub(crate) fn json(&self) -> Value {
        let [bm25, shortest, keyword, lines] = self.rates;
        let minilm = self.by_meaning.top();
        json!({
            "bm25_top5": bm25.share(),
            "minilm_top5": minilm.share(),
            "shortest": shortest.share(),
            "keyword": keyword.share(),
            "always_200_lines": lines.share(),
            "ci95": {
                "bm25_top5": bm25.ci95(),
                "minilm_top5": minilm.ci95(),
                "shortest": shortest.ci95(),
                "keyword": keyword.ci95(),
                "always_200_lines": lines.ci95(),
            },
        })
    }
}

fn id(place: u32) -> Option<RecordId> {
    Some(RecordId::new(i64::from(place), [0; 10]))
}

fn insert(vectors: &mut Vectors, place: u32, vector: &Embedding) -> Result<(), Problem> {
    let inserted = vectors.insert(place, vector);
    inserted.map_err(|error| Problem::Internal(error.to_string()))
}

/// The place of the first of `targets` among what was found, counted from 1; that of the last of `most` when none was.
fn rank(mut found: impl Iterator<Item = u32>, targets: &Range<u32>, most: usize) -> usize {
    found
        .position(|place| targets.contains(&place))
        .map_or(most, |at| at + 1)
}

/// At which place BM25 finds a statement of the fact among the others by the question.
fn searched(index: &mut Bm25, target: &[Line], query: &str) -> usize {
    let first = index.len() as u32;
    let targets = first..first + target.len() as u32;
    for (place, line) in targets.clone().zip(target) {
        index.insert(place, 0, &line.text);
    }
    let most = index.len();
    let found = index.search(query, |_| true, &id, most);
    for (place, line) in targets.clone().zip(target) {
        index.remove(place, &line.text);
    }
    rank(found.iter().map(|hit| hit.place), &targets, most)
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
            index.insert(at, 0, "the weather was fine again");
        }
        let target = [line("we keep two ferrets", true)];
        assert_eq!(searched(&mut index, &target, "which ferrets do we keep"), 1);
        // Nothing shares a word: behind all ten.
        assert_eq!(searched(&mut index, &target, "is lavender oil safe"), 10);
        assert_eq!(index.len(), 9);
    }

    #[test]
    fn ranks_are_told_by_their_tenth_median_and_share_of_the_first() {
        let ranks = Ranks(vec![40, 3, 9, 100, 7]);
        assert_eq!(ranks.json(), json!({"tenth": 3, "median": 9, "top5": 0.2}));
        assert_eq!(Ranks::default().json(), Value::Null);
    }
}
