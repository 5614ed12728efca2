use core::hash::BuildHasher;

use foremind_types::RecordId;
use foremind_types::order::sort_by_key;
use foremind_types::pile::Pile;
use foremind_types::small::SmallMap;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::analysis::{each_term, terms};
use crate::best::{Best, Sees};
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

/// Of a place without a document.
const NO_GROUP: u32 = u32::MAX;

/// An inverted index with BM25 ranking. Documents stand at places, small numbers of the caller's.
///
/// Documents belong to groups. A search sees some groups, and its statistics are theirs alone: neither scores
/// nor order tell anything of a document in a group that is not seen.
///
/// Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// Numbers of terms, by the hash of the term.
    numbers: HashTable<u32>,
    /// By number.
    terms: Pile<Term>,
    free_terms: Vec<u32>,
    /// By place.
    documents: Pile<Document>,
    groups: Vec<Totals>,
    /// Number of documents.
    count: u64,
}

#[derive(Debug, Default)]
struct Term {
    /// Empty when the number is free.
    text: Box<str>,
    postings: Postings,
}

/// In no order. Most terms are in one document only.
#[derive(Debug)]
enum Postings {
    One(Posting),
    More(Vec<Posting>),
}

impl Default for Postings {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

impl Postings {
    fn list(&self) -> &[Posting] {
        match self {
            Self::One(posting) => core::slice::from_ref(posting),
            Self::More(list) => list,
        }
    }

    fn push(&mut self, posting: Posting) {
        match self {
            Self::More(list) if list.is_empty() => *self = Self::One(posting),
            Self::One(first) => *self = Self::More(vec![*first, posting]),
            Self::More(list) => {
                // By a quarter and not to the double: postings are most of the index.
                if list.len() == list.capacity() {
                    list.reserve_exact(list.len() / 4 + 1);
                }
                list.push(posting);
            }
        }
    }

    fn remove(&mut self, place: u32) {
        match self {
            Self::One(one) if one.place() == place => *self = Self::default(),
            Self::One(_) => {}
            Self::More(list) => {
                if let Some(at) = list.iter().position(|one| one.place() == place) {
                    list.swap_remove(at);
                }
            }
        }
    }
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

#[derive(Clone, Copy, Debug)]
struct Document {
    /// Or [`NO_GROUP`].
    group: u32,
    length: u32,
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
    pub place: u32,
    /// Its record.
    pub id: RecordId,
    /// BM25 score, positive, quantised to 1e-4.
    pub score: f32,
    /// Share of the query's informative weight that the document's terms carry, 0 to 1, quantised to 1e-4.
    pub coverage: f32,
}

/// What the documents of an index score for one query.
#[derive(Debug)]
pub struct Lexical {
    /// By the document's place: score, and weight of the terms it has. Empty when nothing has any.
    sums: Vec<(f32, f32)>,
    /// Places with a score.
    touched: Vec<u32>,
    /// Weight of all terms.
    all_weight: f32,
    /// Documents in sight.
    in_sight: u64,
}

impl Lexical {
    /// How many documents stand in the groups that were seen.
    #[must_use]
    pub fn in_sight(&self) -> u64 {
        self.in_sight
    }

    /// The documents that `sees` finds: best first, ties by id, at most `limit`.
    #[must_use]
    pub fn best(&self, sees: Sees<'_>, limit: usize) -> Vec<LexicalHit> {
        let mut best = Best::new(limit);
        for place in &self.touched {
            let (about, weight) = self.sums.get(*place as usize).copied().unwrap_or_default();
            if best.may_keep(about) {
                let score = quantise(f64::from(about));
                best.offer(score, *place, self.coverage(weight), sees);
            }
        }
        let hits = best.kept.into_iter().map(|kept| LexicalHit {
            place: kept.place,
            id: kept.id,
            score: kept.score,
            coverage: kept.beside,
        });
        hits.collect()
    }

    /// Score and coverage of one document, as in [`LexicalHit`], if it shares a term with the query.
    #[must_use]
    pub fn of(&self, place: u32) -> Option<(f32, f32)> {
        let (score, weight) = *self.sums.get(place as usize)?;
        let coverage = self.coverage(weight);
        (coverage > 0.0).then(|| (quantise(f64::from(score)), coverage))
    }

    fn coverage(&self, weight: f32) -> f32 {
        quantise(f64::from(weight / self.all_weight))
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
        self.count as usize
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a document at a place that has none. Places and groups are small numbers, counted from 0.
    pub fn insert(&mut self, place: u32, group: u32, text: &str) {
        debug_assert!(!self.contains(place));
        let mut numbers: Vec<u32> = Vec::with_capacity(text.len() / 6 + 1);
        each_term(text, |term| numbers.push(self.intern(term)));
        let length = numbers.len() as u32;
        numbers.sort_unstable();
        for run in numbers.chunk_by(|a, b| a == b) {
            let posting = Posting::new(place, run.len() as u32);
            self.terms[run[0] as usize].postings.push(posting);
        }
        while self.documents.len() <= place as usize {
            self.documents.push(Document {
                group: NO_GROUP,
                length: 0,
            });
        }
        self.documents[place as usize] = Document { group, length };
        self.count += 1;
        if self.groups.len() <= group as usize {
            self.groups.resize(group as usize + 1, Totals::default());
        }
        let totals = &mut self.groups[group as usize];
        totals.documents += 1;
        totals.length += u64::from(length);
    }

    /// Whether there is a document at the place.
    #[must_use]
    pub fn contains(&self, place: u32) -> bool {
        self.document(place).is_some()
    }

    /// Removes the document at a place, which has this text, with every term that only it had; tells whether it was there. The
    /// text says which terms these are: a list of them for each document would take more than all postings.
    pub fn remove(&mut self, place: u32, text: &str) -> bool {
        let Some(document) = self.document(place) else {
            return false;
        };
        self.documents[place as usize].group = NO_GROUP;
        self.count -= 1;
        let totals = &mut self.groups[document.group as usize];
        totals.documents -= 1;
        totals.length -= u64::from(document.length);
        let mut numbers: Vec<u32> = Vec::new();
        each_term(text, |term| numbers.extend(self.number(term)));
        for number in numbers {
            let term = &mut self.terms[number as usize];
            term.postings.remove(place);
            if term.postings.list().is_empty() && !term.text.is_empty() {
                let emptied = core::mem::take(term);
                let hash = FxBuildHasher.hash_one(&*emptied.text);
                if let Ok(entry) = self.numbers.find_entry(hash, |other| *other == number) {
                    entry.remove();
                }
                self.free_terms.push(number);
            }
        }
        true
    }

    fn document(&self, place: u32) -> Option<Document> {
        let document = self.documents.get(place as usize).copied();
        document.filter(|document| document.group != NO_GROUP)
    }

    fn number(&self, term: &str) -> Option<u32> {
        let is_it = |number: &u32| *self.terms[*number as usize].text == *term;
        self.numbers
            .find(FxBuildHasher.hash_one(term), is_it)
            .copied()
    }

    fn postings(&self, term: &str) -> &[Posting] {
        let number = self.number(term);
        number.map_or(&[], |number| self.terms[number as usize].postings.list())
    }

    /// The documents in the groups that `in_group` accepts that share a term with the query and that `sees` finds: best
    /// first, ties by id, at most `limit`.
    #[must_use]
    pub fn search(
        &self,
        query: &str,
        in_group: impl Fn(u32) -> bool,
        sees: Sees<'_>,
        limit: usize,
    ) -> Vec<LexicalHit> {
        self.scores(query, in_group, &mut Work::unbounded())
            .best(sees, limit)
    }

    /// The places of the documents in the groups that `in_group` accepts that have the rarest term of a name, if they are at
    /// most `most`.
    #[must_use]
    pub fn holders(&self, name: &str, in_group: impl Fn(u32) -> bool, most: usize) -> Vec<u32> {
        let terms = terms(name);
        let lists = terms.iter().map(|term| self.postings(term));
        let Some(shortest) = lists.min_by_key(|list| list.len()) else {
            return Vec::new();
        };
        let places = shortest.iter().map(|one| one.place()).filter(|place| {
            self.document(*place)
                .is_some_and(|document| in_group(document.group))
        });
        let places: Vec<u32> = places.take(most + 1).collect();
        if places.len() > most {
            Vec::new()
        } else {
            places
        }
    }

    /// What every document in the groups that `in_group` accepts scores. The rarest terms come first, and those that `work` does not
    /// last for are left out.
    #[must_use]
    pub fn scores(&self, query: &str, in_group: impl Fn(u32) -> bool, work: &mut Work) -> Lexical {
        let mut lexical = Lexical {
            sums: Vec::new(),
            touched: Vec::new(),
            all_weight: 0.0,
            in_sight: 0,
        };
        let seen: Vec<bool> = (0..self.groups.len() as u32).map(in_group).collect();
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
        let everything = count == self.count;
        let in_sight = |place: u32| {
            let document = self.documents[place as usize];
            seen.get(document.group as usize)
                .is_some_and(|seen| *seen)
                .then_some(document)
        };

        let mut repeated: SmallMap<String, u32> = SmallMap::new();
        for term in terms(query) {
            if repeated.len() < QUERY_TERMS || repeated.contains_key(&term) {
                *repeated.entry(term).or_default() += 1;
            }
        }
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for (term, repeated) in repeated {
            let list = self.postings(&term);
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
        if let Some(number) = self.number(term) {
            return number;
        }
        let fresh = Term {
            text: term.into(),
            postings: Postings::default(),
        };
        let number = match self.free_terms.pop() {
            Some(number) => {
                self.terms[number as usize] = fresh;
                number
            }
            None => {
                self.terms.push(fresh);
                (self.terms.len() - 1) as u32
            }
        };
        let hash_of = |text: &str| FxBuildHasher.hash_one(text);
        let terms = &self.terms;
        self.numbers.insert_unique(hash_of(term), number, |other| {
            hash_of(&terms[*other as usize].text)
        });
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::BTreeMap;

    use super::*;

    fn id(place: u32) -> RecordId {
        RecordId::new(i64::from(place), [0; 10])
    }

    fn all(place: u32) -> Option<RecordId> {
        Some(id(place))
    }

    /// The formula, read off the paper, over plain lists.
    fn oracle(
        documents: &BTreeMap<u32, (u32, String)>,
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
            documents in proptest::collection::btree_map(0_u32..256, (0_u32..3, texts()), 0..20),
            removed in proptest::collection::vec(0_u32..256, 0..6),
            query in texts(),
            groups in proptest::sample::subsequence(vec![0_u32, 1, 2], 0..=3),
        ) {
            let mut index = Bm25::new();
            let mut documents = documents;
            for (n, (group, text)) in &documents {
                index.insert(*n, *group, "of other words first");
                prop_assert!(index.remove(*n, "of other words first"));
                index.insert(*n, *group, text);
            }
            for n in removed {
                let known = documents.remove(&n);
                let text = known.as_ref().map_or("", |(_, text)| text.as_str());
                prop_assert_eq!(index.remove(n, text), known.is_some());
            }
            prop_assert_eq!(index.len(), documents.len());
            let expected: BTreeMap<_, _> = oracle(&documents, &query, &groups).into_iter().collect();
            let hits = index.search(&query, |group| groups.contains(&group), &all, usize::MAX);
            prop_assert_eq!(hits.len(), expected.len());
            for hit in &hits {
                prop_assert!((f64::from(hit.score) - expected[&hit.id]).abs() < 2e-4, "{:?}", hit);
                prop_assert_eq!(index.scores(&query, |group| groups.contains(&group), &mut Work::unbounded()).of(hit.place), Some((hit.score, hit.coverage)));
                prop_assert!(hit.coverage > 0.0 && hit.coverage <= 1.0);
            }
            for pair in hits.windows(2) {
                prop_assert!((-pair[0].score, pair[0].id) < (-pair[1].score, pair[1].id));
            }
        }

        #[test]
        fn removal_leaves_nothing(documents in proptest::collection::btree_map(0_u32..256, texts(), 0..20)) {
            let mut index = Bm25::new();
            for (n, text) in &documents {
                index.insert(*n, 0, text);
            }
            for (n, text) in &documents {
                index.remove(*n, text);
            }
            prop_assert!(index.is_empty() && index.numbers.is_empty());
            prop_assert!(index.terms.iter().all(|term| term.text.is_empty() && term.postings.list().is_empty()));
            prop_assert!(index.documents.iter().all(|document| document.group == NO_GROUP));
            prop_assert!(index.groups.iter().all(|t| t.documents == 0 && t.length == 0));
        }

        #[test]
        fn unseen_groups_do_not_move_a_score(
            seen in proptest::collection::btree_map(0_u32..100, texts(), 1..10),
            unseen in proptest::collection::btree_map(100_u32..200, texts(), 0..10),
            query in texts(),
        ) {
            let mut alone = Bm25::new();
            let mut mixed = Bm25::new();
            for (n, text) in &unseen {
                mixed.insert(*n, 1, text);
            }
            for (n, text) in &seen {
                alone.insert(*n, 0, text);
                mixed.insert(*n, 0, text);
            }
            let search = |index: &Bm25| index.search(&query, |group| group == 0, &all, 100);
            prop_assert_eq!(search(&alone), search(&mixed));
        }
    }

    #[test]
    fn work_goes_to_the_rarest_terms_first() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(n, 0, if n == 7 { "walnut cake" } else { "plain cake" });
        }
        let mut work = Work::new(5);
        let found = index.scores("walnut cake", |_| true, &mut work);
        let hits = found.best(&all, 10);
        assert_eq!(hits.iter().map(|h| h.id).collect::<Vec<_>>(), [id(7)]);
        assert!(hits[0].coverage < 1.0 && work.is_short());
    }

    #[test]
    fn the_holders_of_a_name_are_few_or_none() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(
                n,
                n % 2,
                if n < 4 {
                    "Okafor called"
                } else {
                    "Baker called"
                },
            );
        }
        assert_eq!(index.holders("Okafor", |_| true, 4), [0, 1, 2, 3]);
        // What is out of sight does not count.
        assert_eq!(index.holders("Okafor", |group| group == 0, 2), [0, 2]);
        assert!(index.holders("Okafor", |_| true, 3).is_empty());
        assert!(index.holders("Nobody", |_| true, 3).is_empty());
        assert!(index.holders("", |_| true, 3).is_empty());
    }

    #[test]
    fn refused_documents_are_not_returned_and_the_limit_holds() {
        let mut index = Bm25::new();
        for n in 0..10 {
            index.insert(n, 0, "nut cake");
        }
        let hits = index.search(
            "cake",
            |_| true,
            &|place| all(place).filter(|_| place > 0),
            3,
        );
        assert_eq!(
            hits.iter().map(|h| h.id).collect::<Vec<_>>(),
            [id(1), id(2), id(3)]
        );
        assert_eq!(hits[0].coverage, 1.0);
    }
}
