//! A statement as the rules see it: words, phrases of the lexicon and sentences.

use crate::lexicon::{Class, Hit, Lexicon};
use crate::words::{Gap, Words};

/// A sentence of the statement, as a range of words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sentence {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Ends in a question mark or begins like a question.
    pub(crate) question: bool,
}

/// A text with everything that the rules look at.
#[derive(Debug)]
pub(crate) struct Reading<'t> {
    pub(crate) text: &'t str,
    pub(crate) words: Words,
    /// Phrases outside fixed expressions, by place.
    pub(crate) hits: Vec<Hit>,
    /// Signal words inside fixed expressions.
    pub(crate) idiomatic: Vec<Hit>,
    pub(crate) sentences: Vec<Sentence>,
}

/// Words that begin a question when they begin a sentence.
const QUESTION_WORDS: &[&str] = &[
    "how", "what", "what's", "which", "where", "who", "whose", "why", "is", "are", "do", "does",
    "did", "can", "could", "should", "would", "will", "am", "was", "were", "has",
];

impl<'t> Reading<'t> {
    /// Reads a text; linear in its length.
    pub(crate) fn of(text: &'t str, lexicon: &Lexicon) -> Self {
        let words = Words::of(text);
        let (all, _) = lexicon.find(&words);
        let mut covered = vec![false; words.len()];
        for hit in all.iter().filter(|h| h.meaning.class == Class::Idiom) {
            covered[hit.from..hit.to].fill(true);
        }
        let inside = |hit: &Hit| {
            hit.meaning.class.yields_to_idiom() && covered[hit.from..hit.to].iter().all(|c| *c)
        };
        let (idiomatic, hits): (Vec<_>, Vec<_>) = all.into_iter().partition(inside);
        let sentences = sentences(&words);
        Self {
            text,
            hits,
            idiomatic,
            sentences,
            words,
        }
    }

    /// Hits that begin in the words `from..to`.
    pub(crate) fn within(&self, from: usize, to: usize) -> &[Hit] {
        let first = self.hits.partition_point(|h| h.from < from);
        let last = self.hits.partition_point(|h| h.from < to);
        self.hits.get(first..last).unwrap_or_default()
    }

    /// The first hit of the class that begins in the words `from..to`.
    pub(crate) fn first(&self, class: Class, from: usize, to: usize) -> Option<&Hit> {
        self.within(from, to)
            .iter()
            .find(|h| h.meaning.class == class)
    }

    /// Whether a hit of the class begins in the words `from..to`.
    pub(crate) fn has(&self, class: Class, from: usize, to: usize) -> bool {
        self.first(class, from, to).is_some()
    }

    /// Whether the word begins or continues a phrase of the class.
    pub(crate) fn is(&self, class: Class, word: usize) -> bool {
        self.has(class, word, word + 1)
    }

    /// The sentence of a word.
    pub(crate) fn sentence(&self, word: usize) -> Sentence {
        let at = self.sentences.partition_point(|s| s.to <= word);
        self.sentences.get(at).copied().unwrap_or(Sentence {
            from: 0,
            to: self.words.len(),
            question: false,
        })
    }

    /// First word of the clause of a word, at most `reach` words back.
    pub(crate) fn clause_start(&self, word: usize, reach: usize) -> usize {
        let floor = self.sentence(word).from.max(word.saturating_sub(reach));
        (floor + 1..=word)
            .rev()
            .find(|&w| w < self.words.len() && self.words.word(w).before.has(Gap::CLAUSE))
            .unwrap_or(floor)
    }

    /// One past the last word of the clause of a word, at most `reach` words on.
    pub(crate) fn clause_end(&self, word: usize, reach: usize) -> usize {
        let ceiling = self.sentence(word).to.min(word + reach + 1);
        (word + 1..ceiling)
            .find(|&w| self.words.word(w).before.has(Gap::CLAUSE))
            .unwrap_or(ceiling)
    }

    /// The words as they stand in the text.
    pub(crate) fn shown(&self, from: usize, to: usize) -> &'t str {
        self.text
            .get(self.words.range(from, to))
            .unwrap_or_default()
    }
}

fn sentences(words: &Words) -> Vec<Sentence> {
    let mut out = Vec::new();
    let mut from = 0;
    for at in 1..=words.len() {
        let before = if at < words.len() {
            words.word(at).before
        } else {
            words.end
        };
        if at == words.len() || before.has(Gap::SENTENCE) {
            let asks = QUESTION_WORDS.contains(&words.folded(from));
            out.push(Sentence {
                from,
                to: at,
                question: before.has(Gap::QUESTION) || asks,
            });
            from = at;
        }
    }
    out
}
