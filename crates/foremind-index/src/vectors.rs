use core::fmt;

use foremind_types::pile::Pile;
use foremind_types::{Embedding, HeadId, ModelId, RecordId, VECTOR_DIMENSIONS};

use crate::best::{Best, Kept, Sees};
use crate::number::quantise;
use crate::work::Work;

/// Products formed at a time: as many as a 128-bit register holds.
const LANES: usize = 16;

/// Of a place without a vector.
const NO_ROW: u32 = u32::MAX;

type Row = [i8; VECTOR_DIMENSIONS];

/// Vectors by place: int8 rows with a scale, scanned whole. Each (model, head) has a table of its own; vectors
/// of different tables never meet.
#[derive(Debug, Default)]
pub struct Vectors {
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    model: ModelId,
    head: HeadId,
    rows: Pile<Row>,
    scales: Pile<f32>,
    /// Whose row it is.
    places: Pile<u32>,
    /// Which row a place has, or [`NO_ROW`].
    row_of: Pile<u32>,
}

/// A record near a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorHit {
    /// Its place.
    pub place: u32,
    /// The record.
    pub id: RecordId,
    /// Cosine, -1 to 1, quantised to 1e-4.
    pub score: f32,
}

impl From<Kept> for VectorHit {
    fn from(kept: Kept) -> Self {
        Self {
            place: kept.place,
            id: kept.id,
            score: kept.score,
        }
    }
}

/// Why an embedding cannot be stored or searched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorError {
    /// Not [`VECTOR_DIMENSIONS`] numbers: the embedder's fault.
    Dimensions {
        /// How many it has.
        found: usize,
    },
    /// A scale that is not positive and finite: the embedder's fault.
    Scale,
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimensions { found } => write!(
                f,
                "the embedding has {found} dimensions, expected {VECTOR_DIMENSIONS}"
            ),
            Self::Scale => f.write_str("the scale of the embedding is not positive and finite"),
        }
    }
}

impl core::error::Error for VectorError {}

/// The vector as f32.
///
/// # Errors
/// See [`VectorError`].
pub fn dequantise(embedding: &Embedding) -> Result<Vec<f32>, VectorError> {
    check(embedding)?;
    Ok(embedding
        .vector
        .iter()
        .map(|x| f32::from(*x) * embedding.scale)
        .collect())
}

impl Vectors {
    /// No vectors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of vectors of all tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.rows.len()).sum()
    }

    /// Whether there is no vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The places whose vectors are of other models than `model`, or of other heads than `head` alone.
    pub fn outside<'v>(
        &'v self,
        model: &'v ModelId,
        head: &'v HeadId,
    ) -> impl Iterator<Item = u32> + 'v {
        let own = |table: &&Table| table.model == *model && table.head == *head;
        let inside = self.tables.iter().find(own);
        let others = self.tables.iter().filter(move |table| !own(table));
        others
            .flat_map(|table| table.places.iter())
            .copied()
            .filter(move |place| inside.is_none_or(|table| table.row(*place).is_none()))
    }

    /// Adds the vector of a place to the table of its model and head, or replaces it there. Places are small numbers.
    ///
    /// # Errors
    /// See [`VectorError`]; nothing is changed.
    pub fn insert(&mut self, place: u32, embedding: &Embedding) -> Result<(), VectorError> {
        let row = *check(embedding)?;
        let known = self
            .tables
            .iter()
            .position(|t| t.model == embedding.model_id && t.head == embedding.head_id);
        let at = known.unwrap_or_else(|| {
            self.tables.push(Table {
                model: embedding.model_id.clone(),
                head: embedding.head_id.clone(),
                rows: Pile::default(),
                scales: Pile::default(),
                places: Pile::default(),
                row_of: Pile::default(),
            });
            self.tables.len() - 1
        });
        let table = &mut self.tables[at];
        if let Some(known) = table.row(place) {
            table.rows[known] = row;
            table.scales[known] = embedding.scale;
            return Ok(());
        }
        while table.row_of.len() <= place as usize {
            table.row_of.push(NO_ROW);
        }
        table.row_of[place as usize] = table.rows.len() as u32;
        table.rows.push(row);
        table.scales.push(embedding.scale);
        table.places.push(place);
        Ok(())
    }

    /// Whether any table has a vector of the place.
    #[must_use]
    pub fn contains(&self, place: u32) -> bool {
        self.tables.iter().any(|table| table.row(place).is_some())
    }

    /// Removes a place's vectors from every table; tells whether there was one. The row's bytes are
    /// overwritten.
    pub fn remove(&mut self, place: u32) -> bool {
        let mut removed = false;
        for table in &mut self.tables {
            removed |= table.remove(place);
        }
        self.tables.retain(|table| !table.rows.is_empty());
        removed
    }

    /// The records of the query's model and head that are at least `floor` near it and that `sees` finds: nearest first, ties
    /// by id, at most `limit`. Rows that `work` does not last for are not looked at: the earliest told.
    #[must_use]
    pub fn nearest(
        &self,
        query: &Embedding,
        floor: f32,
        sees: Sees<'_>,
        limit: usize,
        work: &mut Work,
    ) -> Vec<VectorHit> {
        let Some((table, wanted)) = self.table(query) else {
            return Vec::new();
        };
        let mut best = Best::new(limit);
        let mut at = table.rows.len();
        // Latest first, since the latest is asked for most.
        for row in table.rows.iter().rev() {
            if !work.take(Work::ROW) {
                break;
            }
            at -= 1;
            let scale = table.scales[at];
            let sum = dot(wanted, row);
            if !best.may_keep(sum as f32 * query.scale * scale) {
                continue;
            }
            let score = of_sum(sum, query.scale, scale);
            if score >= floor {
                best.offer(score, table.places[at], 0.0, sees);
            }
        }
        best.kept.into_iter().map(VectorHit::from).collect()
    }

    /// The records of the table of `model` and `head` whose product with `query`, [`VECTOR_DIMENSIONS`] numbers that need not
    /// be a unit vector, is at least `floor` and that `sees` finds: largest first, ties by id, at most `limit`.
    #[must_use]
    pub fn search(
        &self,
        model: &ModelId,
        head: &HeadId,
        query: &[f32],
        floor: f32,
        sees: Sees<'_>,
        limit: usize,
    ) -> Vec<VectorHit> {
        let same = |table: &&Table| table.model == *model && table.head == *head;
        let table = self.tables.iter().find(same);
        let Some(table) = table.filter(|_| query.len() == VECTOR_DIMENSIONS) else {
            return Vec::new();
        };
        let mut best = Best::new(limit);
        let beside = table.scales.iter().zip(table.places.iter());
        for (row, (scale, place)) in table.rows.iter().zip(beside) {
            let score = quantise(f64::from(dot_wide(query, row) * scale));
            if score >= floor {
                best.offer(score, *place, 0.0, sees);
            }
        }
        best.kept.into_iter().map(VectorHit::from).collect()
    }

    /// How near one record is to the query.
    #[must_use]
    pub fn of(&self, query: &Embedding, place: u32) -> Option<f32> {
        let (table, wanted) = self.table(query)?;
        let row = table.row(place)?;
        let sum = dot(wanted, &table.rows[row]);
        Some(of_sum(sum, query.scale, table.scales[row]))
    }

    /// The cosine of two records, where one table has both.
    #[must_use]
    pub fn between(&self, one: u32, other: u32) -> Option<f32> {
        self.tables.iter().find_map(|table| {
            let (one, other) = (table.row(one)?, table.row(other)?);
            let sum = dot(&table.rows[one], &table.rows[other]);
            Some(of_sum(sum, table.scales[one], table.scales[other]))
        })
    }

    /// The vectors that a query may be compared with, and its own.
    fn table<'v>(&'v self, query: &'v Embedding) -> Option<(&'v Table, &'v Row)> {
        let same = |table: &&Table| table.model == query.model_id && table.head == query.head_id;
        let table = self.tables.iter().find(same)?;
        Some((table, check(query).ok()?))
    }
}

impl Table {
    fn row(&self, place: u32) -> Option<usize> {
        let row = *self.row_of.get(place as usize)?;
        (row != NO_ROW).then_some(row as usize)
    }

    fn remove(&mut self, place: u32) -> bool {
        let Some(row) = self.row(place) else {
            return false;
        };
        self.row_of[place as usize] = NO_ROW;
        let last = self.rows.len() - 1;
        if row < last {
            self.rows[row] = self.rows[last];
            self.scales[row] = self.scales[last];
            self.places[row] = self.places[last];
            self.row_of[self.places[row] as usize] = row as u32;
        }
        self.rows[last].fill(0);
        self.rows.pop();
        self.scales.pop();
        self.places.pop();
        true
    }
}

/// The numbers of an embedding that can be stored and searched with.
///
/// # Errors
/// See [`VectorError`].
pub fn check(embedding: &Embedding) -> Result<&[i8; VECTOR_DIMENSIONS], VectorError> {
    let Ok(row) = <&Row>::try_from(embedding.vector.as_slice()) else {
        return Err(VectorError::Dimensions {
            found: embedding.vector.len(),
        });
    };
    if !(embedding.scale.is_finite() && embedding.scale > 0.0) {
        return Err(VectorError::Scale);
    }
    Ok(row)
}

/// The cosine of two unit vectors, quantised, from the product of their whole numbers, which is the same on every host.
fn of_sum(sum: i32, scale: f32, other: f32) -> f32 {
    quantise(f64::from(sum) * f64::from(scale) * f64::from(other))
}

fn dot_wide(query: &[f32], row: &Row) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (query, row) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] += query[lane] * f32::from(row[lane]);
        }
    }
    sums.iter().sum()
}

fn dot(a: &Row, b: &Row) -> i32 {
    let lanes = a.chunks_exact(LANES).zip(b.chunks_exact(LANES));
    lanes
        .map(|(a, b)| {
            let products = a.iter().zip(b).map(|(a, b)| i16::from(*a) * i16::from(*b));
            products.map(i32::from).sum::<i32>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(place: u32) -> RecordId {
        RecordId::new(i64::from(place), [0; 10])
    }

    fn all(place: u32) -> Option<RecordId> {
        Some(id(place))
    }

    /// A unit vector made from a seed, quantised as the embedder does.
    fn embedding(seed: u64, model: &str) -> (Embedding, Vec<f32>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut vector: Vec<f32> = (0..VECTOR_DIMENSIONS)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
            })
            .collect();
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
        let scale = vector.iter().fold(0.0_f32, |m, x| m.max(x.abs())) / 127.0;
        let embedding = Embedding {
            model_id: ModelId(model.to_owned()),
            head_id: HeadId("embedding/1".to_owned()),
            vector: vector.iter().map(|x| (x / scale).round() as i8).collect(),
            scale,
            features: Vec::new(),
        };
        (embedding, vector)
    }

    fn search(vectors: &Vectors, query: &Embedding, limit: usize) -> Vec<VectorHit> {
        let hits = vectors.nearest(query, -1.0, &all, limit, &mut Work::unbounded());
        let wide = dequantise(query).unwrap();
        let (model, head) = (&query.model_id, &query.head_id);
        // Both ways of multiplying find the same; their last digit may differ.
        let same = vectors.search(model, head, &wide, -1.0, &all, limit);
        assert_eq!(hits.len(), same.len());
        for (hit, same) in hits.iter().zip(&same) {
            assert!((hit.score - same.score).abs() < 2e-4);
        }
        hits
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_scan_agrees_with_exact_cosines(
            records in proptest::collection::btree_map(0_u32..256, any::<u64>(), 1..40),
            removed in proptest::collection::vec(0_u32..256, 0..20),
            query in any::<u64>(),
        ) {
            let mut records = records;
            let mut vectors = Vectors::new();
            for (n, seed) in &records {
                vectors.insert(*n, &embedding(seed.wrapping_add(1), "m").0).unwrap();
                vectors.insert(*n, &embedding(*seed, "m").0).unwrap();
            }
            for n in removed {
                prop_assert_eq!(vectors.remove(n), records.remove(&n).is_some());
            }
            let (stored_query, exact_query) = embedding(query, "m");
            let hits = search(&vectors, &stored_query, usize::MAX);
            prop_assert_eq!(hits.len(), records.len());
            let first = hits.first().map(|hit| hit.place);
            if let Some(own) = first.and_then(|place| vectors.between(place, place)) {
                prop_assert!((own - 1.0).abs() < 0.02, "{own}");
            }
            for hit in &hits {
                prop_assert_eq!(vectors.of(&stored_query, hit.place), Some(hit.score));
                prop_assert_eq!(hit.id, id(hit.place));
                let seed = records.get(&hit.place).unwrap();
                let exact: f32 = embedding(*seed, "m").1.iter().zip(&exact_query).map(|(a, b)| a * b).sum();
                // Two int8 roundings of a unit vector of 384 dimensions.
                prop_assert!((hit.score - exact).abs() < 0.02, "{} {}", hit.score, exact);
            }
            for pair in hits.windows(2) {
                prop_assert!(pair[0].score > pair[1].score
                    || pair[0].score == pair[1].score && pair[0].id < pair[1].id);
            }
        }

        #[test]
        fn removal_leaves_nothing(seeds in proptest::collection::vec(any::<u64>(), 1..20)) {
            let mut vectors = Vectors::new();
            for (n, seed) in seeds.iter().enumerate() {
                vectors.insert(n as u32, &embedding(*seed, if seed % 2 == 0 { "a" } else { "b" }).0).unwrap();
            }
            for n in 0..seeds.len() {
                prop_assert!(vectors.remove(n as u32));
            }
            prop_assert!(vectors.is_empty());
        }
    }

    #[test]
    fn models_never_mix() {
        let mut vectors = Vectors::new();
        vectors.insert(1, &embedding(7, "a").0).unwrap();
        assert_eq!(search(&vectors, &embedding(7, "b").0, 10), []);
        let hits = search(&vectors, &embedding(7, "a").0, 10);
        assert_eq!(hits.len(), 1);
        assert!((hits[0].score - 1.0).abs() < 0.01);
    }

    #[test]
    fn equal_scores_go_by_id() {
        let mut vectors = Vectors::new();
        for n in [3, 1, 2] {
            vectors.insert(n, &embedding(7, "a").0).unwrap();
        }
        let ids: Vec<RecordId> = search(&vectors, &embedding(7, "a").0, 2)
            .iter()
            .map(|h| h.id)
            .collect();
        assert_eq!(ids, [id(1), id(2)]);
    }

    /// Around twenty centres, as close as sentences of one topic; the exact vectors are compared.
    #[test]
    fn the_ten_nearest_are_those_of_exact_vectors() {
        let blend = |a: &[f32], b: &[f32], share: f32| -> Vec<f32> {
            let mut sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + share * b).collect();
            let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            sum.iter_mut().for_each(|x| *x /= norm);
            sum
        };
        let stored = |vector: &[f32]| {
            let scale = vector.iter().fold(0.0_f32, |m, x| m.max(x.abs())) / 127.0;
            Embedding {
                vector: vector.iter().map(|x| (x / scale).round() as i8).collect(),
                scale,
                ..embedding(1, "a").0
            }
        };
        let mut vectors = Vectors::new();
        let mut exact: Vec<Vec<f32>> = Vec::new();
        for n in 0..2_000_u64 {
            let vector = blend(
                &embedding(n % 20 + 1, "a").1,
                &embedding(n + 100, "a").1,
                0.6,
            );
            vectors.insert(n as u32, &stored(&vector)).unwrap();
            exact.push(vector);
        }
        let mut found = 0;
        for n in 0..40_u64 {
            let query = blend(&exact[n as usize * 50], &embedding(n + 9_000, "a").1, 0.5);
            let mut nearest: Vec<(u32, f32)> = (0..2_000)
                .map(|n| {
                    (
                        n,
                        exact[n as usize]
                            .iter()
                            .zip(&query)
                            .map(|(a, b)| a * b)
                            .sum(),
                    )
                })
                .collect();
            nearest.sort_by(|a, b| b.1.total_cmp(&a.1));
            let hits = vectors.nearest(&stored(&query), -1.0, &all, 10, &mut Work::unbounded());
            let wanted: Vec<u32> = nearest[..10].iter().map(|(n, _)| *n).collect();
            found += hits
                .iter()
                .filter(|hit| wanted.contains(&hit.place))
                .count();
        }
        assert!(found >= 396, "{found} of 400");
    }

    #[test]
    fn without_work_the_latest_are_looked_at() {
        let mut vectors = Vectors::new();
        for n in [1, 2, 3] {
            vectors.insert(n, &embedding(7, "a").0).unwrap();
        }
        let mut work = Work::new(2 * Work::ROW);
        let query = embedding(7, "a").0;
        let hits = vectors.nearest(&query, -1.0, &all, 10, &mut work);
        assert_eq!(
            hits.iter().map(|h| h.id).collect::<Vec<_>>(),
            [id(2), id(3)]
        );
        assert!(work.is_short());
    }

    #[test]
    fn unusable_embeddings_are_refused() {
        let (good, _) = embedding(1, "a");
        let mut vectors = Vectors::new();
        let short = Embedding {
            vector: vec![1; 3],
            ..good.clone()
        };
        assert_eq!(
            vectors.insert(1, &short),
            Err(VectorError::Dimensions { found: 3 })
        );
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let bad = Embedding {
                scale,
                ..good.clone()
            };
            assert_eq!(vectors.insert(1, &bad), Err(VectorError::Scale));
        }
        assert!(vectors.is_empty());
    }
}
