use foremind_types::small::SmallMap;
use std::collections::HashMap;

use std::sync::Arc;

use foldhash::fast::FixedState;
use foremind_types::RecordId;

use crate::analysis::{each_term, terms};
use crate::number::{ln, quantise};

/// Saturation of term frequency.
const K1: f64 = 1.2;
/// Influence of the document's length.
const B: f64 = 0.75;
/// Most different terms of one query.
const QUERY_TERMS: usize = 256;

/// An inverted index with BM25 ranking.
///
/// Documents belong to groups. A search sees some groups, and its statistics are theirs alone: neither scores
/// nor order tell anything of a document in a group that is not seen.
///
/// Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
#[derive(Debug, Default)]
pub struct Bm25 {
    terms: HashMap<Arc<str>, u32, FixedState>,
    postings: Vec<Postings>,
    free_terms: Vec<u32>,
    documents: Vec<Option<Document>>,
    free_documents: Vec<u32>,
    places: HashMap<RecordId, u32, FixedState>,
    groups: Vec<Totals>,
}

#[derive(Debug, Default)]
struct Postings {
    term: Arc<str>,
    /// Document and frequency, in no order.
    list: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Document {
    id: RecordId,
    group: u32,
    length: u32,
    terms: Box<[u32]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    documents: u32,
    length: u64,
}

/// A document that shares terms with a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalHit {
    /// The document.
    pub id: RecordId,
    /// BM25 score, positive, quantised to 1e-4.
    pub score: f32,
    /// Share of the query's informative weight that the document's terms carry, 0 to 1, quantised to 1e-4.
    pub coverage: f32,
}

impl Bm25 {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a document, or replaces it. Groups are small numbers, counted from 0.
    pub fn insert(&mut self, id: RecordId, group: u32, text: &str) {
        self.remove(id);
        let mut numbers: Vec<u32> = Vec::with_capacity(text.len() / 6 + 1);
        each_term(text, |term| numbers.push(self.intern(term)));
        let length = numbers.len() as u32;
        numbers.sort_unstable();
        let place = match self.free_documents.pop() {
            Some(place) => place,
            None => {
                self.documents.push(None);
                (self.documents.len() - 1) as u32
            }
        };
        for run in numbers.chunk_by(|a, b| a == b) {
            let list = &mut self.postings[run[0] as usize].list;
            list.push((place, run.len() as u32));
        }
        numbers.dedup();
        let terms = numbers.into_boxed_slice();
        self.documents[place as usize] = Some(Document {
            id,
            group,
            length,
            terms,
        });
        self.places.insert(id, place);
        if self.groups.len() <= group as usize {
            self.groups.resize(group as usize + 1, Totals::default());
        }
        let totals = &mut self.groups[group as usize];
        totals.documents += 1;
        totals.length += u64::from(length);
    }

    /// Whether there is a document of this id.
    #[must_use]
    pub fn contains(&self, id: RecordId) -> bool {
        self.places.contains_key(&id)
    }

    /// Removes a document with every term that only it had; tells whether it was there.
    pub fn remove(&mut self, id: RecordId) -> bool {
        let Some(place) = self.places.remove(&id) else {
            return false;
        };
        let Some(document) = self.documents[place as usize].take() else {
            return false;
        };
        self.free_documents.push(place);
        let totals = &mut self.groups[document.group as usize];
        totals.documents -= 1;
        totals.length -= u64::from(document.length);
        for number in document.terms {
            let postings = &mut self.postings[number as usize];
            if let Some(at) = postings.list.iter().position(|(d, _)| *d == place) {
                postings.list.swap_remove(at);
            }
            if postings.list.is_empty() {
                let emptied = core::mem::take(postings);
                self.terms.remove(&emptied.term);
                self.free_terms.push(number);
            }
        }
        true
    }

    /// The documents in the groups that `sees` that share a term with the query and that `accepts`: best
    /// first, ties by id, at most `limit`.
    #[must_use]
    pub fn search(
        &self,
        query: &str,
        sees: impl Fn(u32) -> bool,
        accepts: impl Fn(RecordId) -> bool,
        limit: usize,
    ) -> Vec<LexicalHit> {
        let seen: Vec<bool> = (0..self.groups.len() as u32).map(sees).collect();
        let in_sight = |document: &Document| seen[document.group as usize];
        let (mut count, mut length) = (0_u64, 0_u64);
        for (totals, _) in self.groups.iter().zip(&seen).filter(|(_, seen)| **seen) {
            count += u64::from(totals.documents);
            length += totals.length;
        }
        if count == 0 {
            return Vec::new();
        }
        let average = (length as f64 / count as f64).max(1.0);

        let mut wanted: SmallMap<String, u32> = SmallMap::new();
        for term in terms(query) {
            if wanted.len() < QUERY_TERMS || wanted.contains_key(&term) {
                *wanted.entry(term).or_default() += 1;
            }
        }
        let mut scores: HashMap<u32, (f64, f64), FixedState> = HashMap::default();
        let mut all_weight = 0.0;
        // In the order of terms, so that sums are rounded alike everywhere.
        for (term, repeated) in wanted {
            let list: Vec<(u32, u32, &Document)> = self
                .terms
                .get(term.as_str())
                .map_or(&[][..], |number| &self.postings[*number as usize].list)
                .iter()
                .filter_map(|(place, frequency)| {
                    let document = self.documents[*place as usize].as_ref()?;
                    in_sight(document).then_some((*place, *frequency, document))
                })
                .collect();
            let having = list.len() as f64;
            let weight = ln(1.0 + (count as f64 - having + 0.5) / (having + 0.5));
            all_weight += weight;
            for (place, frequency, document) in list {
                let frequency = f64::from(frequency);
                let long = 1.0 - B + B * f64::from(document.length) / average;
                let sum = scores.entry(place).or_default();
                sum.0 +=
                    f64::from(repeated) * weight * frequency * (K1 + 1.0) / (frequency + K1 * long);
                sum.1 += weight;
            }
        }
        let mut hits: Vec<LexicalHit> = scores
            .into_iter()
            .filter_map(|(place, (score, weight))| {
                let document = self.documents[place as usize].as_ref()?;
                accepts(document.id).then(|| LexicalHit {
                    id: document.id,
                    score: quantise(score),
                    coverage: quantise(weight / all_weight),
                })
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(limit);
        hits
    }

    fn intern(&mut self, term: &str) -> u32 {
        if let Some(number) = self.terms.get(term) {
            return *number;
        }
        let term: Arc<str> = term.into();
        let postings = Postings {
            term: term.clone(),
            list: Vec::new(),
        };
        let number = match self.free_terms.pop() {
            Some(number) => {
                self.postings[number as usize] = postings;
                number
            }
            None => {
                self.postings.push(postings);
                (self.postings.len() - 1) as u32
            }
        };
        self.terms.insert(term, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::BTreeMap;

    use super::*;

    fn id(n: u8) -> RecordId {
        RecordId::new(0, [n; 10])
    }

    /// The formula, read off the paper, over plain lists.
    fn oracle(
        documents: &BTreeMap<u8, (u32, String)>,
        query: &str,
        groups: &[u32],
    ) -> Vec<(RecordId, f64)> {
        let seen: Vec<(RecordId, Vec<String>)> = documents
            .iter()
            .filter(|(_, (group, _))| groups.contains(group))
            .map(|(n, (_, text))| (id(*n), terms(text)))
            .collect();
        let n = seen.len() as f64;
        let average = seen.iter().map(|(_, d)| d.len()).sum::<usize>() as f64 / n;
        let mut scores: Vec<(RecordId, f64)> = Vec::new();
        for (id, document) in &seen {
            let mut score = 0.0;
            for term in terms(query) {
                let tf = document.iter().filter(|t| **t == term).count() as f64;
                let df = seen.iter().filter(|(_, d)| d.contains(&term)).count() as f64;
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                score += idf * tf * 2.2
                    / (tf + 1.2 * (0.25 + 0.75 * document.len() as f64 / average.max(1.0)));
            }
            if score > 0.0 {
                scores.push((*id, score));
            }
        }
        scores
    }

    fn texts() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof!["(nut|cake|dog|visa|Paris|7|花生|ナッツ)", "[a-d]{1,2}"],
            0..9,
        )
        .prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn agrees_with_the_formula(
            documents in proptest::collection::btree_map(any::<u8>(), (0_u32..3, texts()), 0..20),
            removed in proptest::collection::vec(any::<u8>(), 0..6),
            query in texts(),
            groups in proptest::sample::subsequence(vec![0_u32, 1, 2], 0..=3),
        ) {
            let mut index = Bm25::new();
            let mut documents = documents;
            for (n, (group, text)) in &documents {
                index.insert(id(*n), *group, "of other words first");
                index.insert(id(*n), *group, text);
            }
            for n in removed {
                prop_assert_eq!(index.remove(id(n)), documents.remove(&n).is_some());
            }
            prop_assert_eq!(index.len(), documents.len());
            let expected: BTreeMap<_, _> = oracle(&documents, &query, &groups).into_iter().collect();
            let hits = index.search(&query, |group| groups.contains(&group), |_| true, usize::MAX);
            prop_assert_eq!(hits.len(), expected.len());
            for hit in &hits {
                prop_assert!((f64::from(hit.score) - expected[&hit.id]).abs() < 1e-4, "{:?}", hit);
                prop_assert!(hit.coverage > 0.0 && hit.coverage <= 1.0);
            }
            for pair in hits.windows(2) {
                prop_assert!((-pair[0].score, pair[0].id) < (-pair[1].score, pair[1].id));
            }
        }

        #[test]
        fn removal_leaves_nothing(documents in proptest::collection::btree_map(any::<u8>(), texts(), 0..20)) {
            let mut index = Bm25::new();
            for (n, text) in &documents {
                index.insert(id(*n), 0, text);
            }
            for n in documents.keys() {
                index.remove(id(*n));
            }
            prop_assert!(index.is_empty() && index.terms.is_empty());
            prop_assert!(index.postings.iter().all(|p| p.term.is_empty() && p.list.is_empty()));
            prop_assert!(index.documents.iter().all(Option::is_none));
            prop_assert!(index.groups.iter().all(|t| t.documents == 0 && t.length == 0));
        }

        #[test]
        fn unseen_groups_do_not_move_a_score(
            seen in proptest::collection::btree_map(0_u8..100, texts(), 1..10),
            unseen in proptest::collection::btree_map(100_u8..200, texts(), 0..10),
            query in texts(),
        ) {
            let mut alone = Bm25::new();
            let mut mixed = Bm25::new();
            for (n, text) in &unseen {
                mixed.insert(id(*n), 1, text);
            }
            for (n, text) in &seen {
                alone.insert(id(*n), 0, text);
                mixed.insert(id(*n), 0, text);
            }
            let search = |index: &Bm25| index.search(&query, |group| group == 0, |_| true, 100);
            prop_assert_eq!(search(&alone), search(&mixed));
        }
    }

    #[test]
    fn refused_documents_are_not_returned_and_the_limit_holds() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(id(n), 0, "nut cake");
        }
        let hits = index.search("cake", |_| true, |found| found != id(0), 3);
        assert_eq!(
            hits.iter().map(|h| h.id).collect::<Vec<_>>(),
            [id(1), id(2), id(3)]
        );
        assert_eq!(hits[0].coverage, 1.0);
    }
}
