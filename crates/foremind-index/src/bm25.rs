use foremind_types::small::SmallMap;
use std::collections::HashMap;

use std::sync::Arc;

use foremind_types::RecordId;
use foremind_types::order::sort_by_key;
use rustc_hash::FxBuildHasher;

use crate::analysis::{each_term, terms};
use crate::best::Best;
use crate::number::{ln, quantise};
use crate::work::Work;

/// Saturation of term frequency. Statements are short, so a repeated term says little and length less: 0.9 and 0.4, the values
/// that A. Trotman, X. Jia, M. Crane, "Towards an Efficient and Effective Search Engine", 2012, found over many collections.
const K1: f32 = 0.9;
/// Influence of the document's length.
const B: f32 = 0.4;
/// Most different terms of one query.
const QUERY_TERMS: usize = 256;

/// Number of documents in sight that have a term, times it is asked for, its postings.
type Wanted<'p> = (u32, u32, &'p [Posting]);

/// An inverted index with BM25 ranking.
///
/// Documents belong to groups. A search sees some groups, and its statistics are theirs alone: neither scores
/// nor order tell anything of a document in a group that is not seen.
///
/// Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
#[derive(Debug, Default)]
pub struct Bm25 {
    terms: HashMap<Arc<str>, u32, FxBuildHasher>,
    postings: Vec<Postings>,
    free_terms: Vec<u32>,
    documents: Vec<Option<Document>>,
    free_documents: Vec<u32>,
    places: HashMap<RecordId, u32, FxBuildHasher>,
    groups: Vec<Totals>,
}

#[derive(Debug, Default)]
struct Postings {
    term: Arc<str>,
    /// In no order.
    list: Vec<Posting>,
}

/// A document's place and how often it has the term, in one number: there are more postings than anything else.
#[derive(Clone, Copy, Debug)]
struct Posting(u32);

impl Posting {
    const FREQUENCY_BITS: u32 = 6;
    /// More is counted as so often: the score hardly grows any more.
    const FREQUENCY_MOST: u32 = (1 << Self::FREQUENCY_BITS) - 1;

    fn new(place: u32, frequency: u32) -> Self {
        Self(place << Self::FREQUENCY_BITS | frequency.min(Self::FREQUENCY_MOST))
    }

    fn place(self) -> u32 {
        self.0 >> Self::FREQUENCY_BITS
    }

    fn frequency(self) -> u32 {
        self.0 & Self::FREQUENCY_MOST
    }
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

/// What the documents of an index score for one query.
#[derive(Debug)]
pub struct Lexical<'i> {
    index: &'i Bm25,
    /// By the document's place: score, and weight of the terms it has. Empty when nothing has any.
    sums: Vec<(f32, f32)>,
    /// Places with a score.
    touched: Vec<u32>,
    /// Weight of all terms.
    all_weight: f32,
    /// Documents in sight.
    in_sight: u64,
}

impl Lexical<'_> {
    /// How many documents stand in the groups that were seen.
    #[must_use]
    pub fn in_sight(&self) -> u64 {
        self.in_sight
    }

    /// The documents that `accepts`: best first, ties by id, at most `limit`.
    #[must_use]
    pub fn best(&self, accepts: &dyn Fn(RecordId) -> bool, limit: usize) -> Vec<LexicalHit> {
        let mut best = Best::new(limit);
        for place in &self.touched {
            let about = self.sums.get(*place as usize).map_or(0.0, |sum| sum.0);
            if best.may_keep(about)
                && let Some(hit) = self.at(*place)
            {
                best.offer(hit.score, hit.id, hit.coverage, accepts);
            }
        }
        let hit = |(score, id, coverage)| LexicalHit {
            id,
            score,
            coverage,
        };
        best.kept.into_iter().map(hit).collect()
    }

    /// What one document scores, if it shares a term with the query.
    #[must_use]
    pub fn of(&self, id: RecordId) -> Option<LexicalHit> {
        self.at(*self.index.places.get(&id)?)
            .filter(|hit| hit.coverage > 0.0)
    }

    fn at(&self, place: u32) -> Option<LexicalHit> {
        let (score, weight) = *self.sums.get(place as usize)?;
        Some(LexicalHit {
            id: self.index.documents[place as usize].as_ref()?.id,
            score: quantise(f64::from(score)),
            coverage: quantise(f64::from(weight / self.all_weight)),
        })
    }
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
            list.push(Posting::new(place, run.len() as u32));
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
            if let Some(at) = postings.list.iter().position(|one| one.place() == place) {
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
        self.scores(query, sees, &mut Work::unbounded())
            .best(&accepts, limit)
    }

    /// The documents in the groups that `sees` that have the rarest term of a name, if they are at most `most`.
    #[must_use]
    pub fn holders(&self, name: &str, sees: impl Fn(u32) -> bool, most: usize) -> Vec<RecordId> {
        let lists = terms(name).into_iter().map(|term| {
            let known = self.terms.get(term.as_str());
            known.map_or(&[][..], |number| &self.postings[*number as usize].list)
        });
        let Some(shortest) = lists.min_by_key(|list| list.len()) else {
            return Vec::new();
        };
        let documents = shortest
            .iter()
            .filter_map(|one| self.documents[one.place() as usize].as_ref());
        let seen = documents.filter(|document| sees(document.group));
        let ids: Vec<RecordId> = seen.take(most + 1).map(|document| document.id).collect();
        if ids.len() > most { Vec::new() } else { ids }
    }

    /// What every document in the groups that `sees` scores. The rarest terms come first, and those that `work` does not
    /// last for are left out.
    #[must_use]
    pub fn scores(&self, query: &str, sees: impl Fn(u32) -> bool, work: &mut Work) -> Lexical<'_> {
        let mut lexical = Lexical {
            index: self,
            sums: Vec::new(),
            touched: Vec::new(),
            all_weight: 0.0,
            in_sight: 0,
        };
        let seen: Vec<bool> = (0..self.groups.len() as u32).map(sees).collect();
        let (mut count, mut length) = (0_u64, 0_u64);
        for (totals, _) in self.groups.iter().zip(&seen).filter(|(_, seen)| **seen) {
            count += u64::from(totals.documents);
            length += totals.length;
        }
        lexical.in_sight = count;
        if count == 0 {
            return lexical;
        }
        let average = (length as f64 / count as f64).max(1.0);
        let everything = count == self.places.len() as u64;
        let in_sight = |place: u32| {
            let document = self.documents[place as usize].as_ref();
            document.filter(|document| seen[document.group as usize])
        };

        let mut repeated: SmallMap<String, u32> = SmallMap::new();
        for term in terms(query) {
            if repeated.len() < QUERY_TERMS || repeated.contains_key(&term) {
                *repeated.entry(term).or_default() += 1;
            }
        }
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for (term, repeated) in repeated {
            let known = self.terms.get(term.as_str());
            let list = known.map_or(&[][..], |number| &self.postings[*number as usize].list);
            let having = match everything {
                true => list.len(),
                false => list
                    .iter()
                    .filter(|one| in_sight(one.place()).is_some())
                    .count(),
            };
            wanted.push((having as u32, repeated, list));
        }
        // Rarest first; the sort is stable and the map gave the terms in order, so that sums are rounded alike everywhere.
        sort_by_key(&mut wanted, |(having, ..)| *having);
        let no_work_left = |list: &[Posting], work: &mut Work| !work.take(list.len() as u64);
        for (having, repeated, list) in wanted {
            let having = f64::from(having);
            let weight = ln(1.0 + (count as f64 - having + 0.5) / (having + 0.5)) as f32;
            lexical.all_weight += weight;
            if no_work_left(list, work) || list.is_empty() {
                continue;
            }
            if lexical.sums.is_empty() {
                lexical.sums = vec![(0.0, 0.0); self.documents.len()];
            }
            let most = repeated as f32 * weight * (K1 + 1.0);
            let per_length = K1 * B / average as f32;
            for posting in list {
                let place = posting.place();
                let Some(document) = in_sight(place) else {
                    continue;
                };
                let frequency = posting.frequency() as f32;
                let long = K1 * (1.0 - B) + per_length * document.length as f32;
                let sum = &mut lexical.sums[place as usize];
                if sum.1 == 0.0 {
                    lexical.touched.push(place);
                }
                sum.0 += most * frequency / (frequency + long);
                sum.1 += weight;
            }
        }
        lexical
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
                score += idf * tf * 1.9
                    / (tf + 0.9 * (0.6 + 0.4 * document.len() as f64 / average.max(1.0)));
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
                prop_assert!((f64::from(hit.score) - expected[&hit.id]).abs() < 2e-4, "{:?}", hit);
                prop_assert_eq!(index.scores(&query, |group| groups.contains(&group), &mut Work::unbounded()).of(hit.id), Some(*hit));
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
    fn work_goes_to_the_rarest_terms_first() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(id(n), 0, if n == 7 { "walnut cake" } else { "plain cake" });
        }
        let mut work = Work::new(5);
        let found = index.scores("walnut cake", |_| true, &mut work);
        let hits = found.best(&|_| true, 10);
        assert_eq!(hits.iter().map(|h| h.id).collect::<Vec<_>>(), [id(7)]);
        assert!(hits[0].coverage < 1.0 && work.is_short());
    }

    #[test]
    fn the_holders_of_a_name_are_few_or_none() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(
                id(n),
                u32::from(n % 2),
                if n < 4 {
                    "Okafor called"
                } else {
                    "Baker called"
                },
            );
        }
        assert_eq!(
            index.holders("Okafor", |_| true, 4),
            [id(0), id(1), id(2), id(3)]
        );
        // What is out of sight does not count.
        assert_eq!(
            index.holders("Okafor", |group| group == 0, 2),
            [id(0), id(2)]
        );
        assert!(index.holders("Okafor", |_| true, 3).is_empty());
        assert!(index.holders("Nobody", |_| true, 3).is_empty());
        assert!(index.holders("", |_| true, 3).is_empty());
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
