use core::fmt;
use std::collections::HashMap;

use foremind_types::{Embedding, HeadId, ModelId, RecordId, VECTOR_DIMENSIONS};

use crate::number::quantise;

/// Partial sums of a dot product: enough for the compiler to use wide registers, and a fixed order of
/// addition, so that every host gets the same bits.
const LANES: usize = 16;

/// Vectors by record: int8 rows with a scale, scanned whole. Each (model, head) has a table of its own; vectors
/// of different tables never meet.
#[derive(Debug, Default)]
pub struct Vectors {
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    model: ModelId,
    head: HeadId,
    ids: Vec<RecordId>,
    scales: Vec<f32>,
    /// [`VECTOR_DIMENSIONS`] a row.
    rows: Vec<i8>,
    places: HashMap<RecordId, usize>,
}

/// A record near a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorHit {
    /// The record.
    pub id: RecordId,
    /// Cosine, -1 to 1, quantised to 1e-4.
    pub score: f32,
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
        self.tables.iter().map(|table| table.ids.len()).sum()
    }

    /// Whether there is no vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The records whose vectors are of other models than `model`, or of other heads than `head` alone.
    pub fn outside<'v>(
        &'v self,
        model: &'v ModelId,
        head: &'v HeadId,
    ) -> impl Iterator<Item = RecordId> + 'v {
        let own = |table: &&Table| table.model == *model && table.head == *head;
        let inside = self.tables.iter().find(own);
        let others = self.tables.iter().filter(move |table| !own(table));
        others
            .flat_map(|table| &table.ids)
            .filter(move |id| !inside.is_some_and(|table| table.places.contains_key(id)))
            .copied()
    }

    /// Adds the vector of a record to the table of its model and head, or replaces it there.
    ///
    /// # Errors
    /// See [`VectorError`]; nothing is changed.
    pub fn insert(&mut self, id: RecordId, embedding: &Embedding) -> Result<(), VectorError> {
        check(embedding)?;
        let known = self
            .tables
            .iter()
            .position(|t| t.model == embedding.model_id && t.head == embedding.head_id);
        let at = known.unwrap_or_else(|| {
            self.tables.push(Table {
                model: embedding.model_id.clone(),
                head: embedding.head_id.clone(),
                ids: Vec::new(),
                scales: Vec::new(),
                rows: Vec::new(),
                places: HashMap::new(),
            });
            self.tables.len() - 1
        });
        let table = &mut self.tables[at];
        match table.places.get(&id) {
            Some(place) => {
                table.scales[*place] = embedding.scale;
                let from = place * VECTOR_DIMENSIONS;
                table.rows[from..from + VECTOR_DIMENSIONS].copy_from_slice(&embedding.vector);
            }
            None => {
                table.places.insert(id, table.ids.len());
                table.ids.push(id);
                table.scales.push(embedding.scale);
                table.rows.extend_from_slice(&embedding.vector);
            }
        }
        Ok(())
    }

    /// Whether any table has a vector of the record.
    #[must_use]
    pub fn contains(&self, id: RecordId) -> bool {
        self.tables
            .iter()
            .any(|table| table.places.contains_key(&id))
    }

    /// Removes a record's vectors from every table; tells whether there was one. The row's bytes are
    /// overwritten.
    pub fn remove(&mut self, id: RecordId) -> bool {
        let mut removed = false;
        for table in &mut self.tables {
            removed |= table.remove(id);
        }
        self.tables.retain(|table| !table.ids.is_empty());
        removed
    }

    /// The records of the table of `model` and `head` that are at least `floor` near the query and that
    /// `accepts`: nearest first, ties by id, at most `limit`. `query` has [`VECTOR_DIMENSIONS`] numbers; a
    /// query of another length finds nothing.
    #[must_use]
    pub fn search(
        &self,
        model: &ModelId,
        head: &HeadId,
        query: &[f32],
        floor: f32,
        accepts: impl Fn(RecordId) -> bool,
        limit: usize,
    ) -> Vec<VectorHit> {
        let table = self
            .tables
            .iter()
            .find(|t| t.model == *model && t.head == *head);
        let Some(table) = table.filter(|_| query.len() == VECTOR_DIMENSIONS) else {
            return Vec::new();
        };
        let mut hits: Vec<VectorHit> = table
            .rows
            .chunks_exact(VECTOR_DIMENSIONS)
            .zip(&table.scales)
            .zip(&table.ids)
            .filter_map(|((row, scale), id)| {
                let score = quantise(f64::from(dot(query, row) * scale));
                (score >= floor && accepts(*id)).then_some(VectorHit { id: *id, score })
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits.truncate(limit);
        hits
    }
}

impl Table {
    fn remove(&mut self, id: RecordId) -> bool {
        let Some(place) = self.places.remove(&id) else {
            return false;
        };
        let last = self.ids.len() - 1;
        self.ids.swap_remove(place);
        self.scales.swap_remove(place);
        let (from, last_from) = (place * VECTOR_DIMENSIONS, last * VECTOR_DIMENSIONS);
        self.rows.copy_within(last_from.., from);
        self.rows[last_from..].fill(0);
        self.rows.truncate(last_from);
        if let Some(moved) = self.ids.get(place) {
            self.places.insert(*moved, place);
        }
        true
    }
}

fn check(embedding: &Embedding) -> Result<(), VectorError> {
    if embedding.vector.len() != VECTOR_DIMENSIONS {
        return Err(VectorError::Dimensions {
            found: embedding.vector.len(),
        });
    }
    if !(embedding.scale.is_finite() && embedding.scale > 0.0) {
        return Err(VectorError::Scale);
    }
    Ok(())
}

fn dot(query: &[f32], row: &[i8]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (query, row) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] += query[lane] * f32::from(row[lane]);
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(n: u8) -> RecordId {
        RecordId::new(0, [n; 10])
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
        let wide = dequantise(query).unwrap();
        vectors.search(
            &query.model_id,
            &query.head_id,
            &wide,
            -1.0,
            |_| true,
            limit,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_scan_agrees_with_exact_cosines(
            records in proptest::collection::btree_map(any::<u8>(), any::<u64>(), 1..40),
            removed in proptest::collection::vec(any::<u8>(), 0..20),
            query in any::<u64>(),
        ) {
            let mut records = records;
            let mut vectors = Vectors::new();
            for (n, seed) in &records {
                vectors.insert(id(*n), &embedding(seed.wrapping_add(1), "m").0).unwrap();
                vectors.insert(id(*n), &embedding(*seed, "m").0).unwrap();
            }
            for n in removed {
                prop_assert_eq!(vectors.remove(id(n)), records.remove(&n).is_some());
            }
            let (stored_query, exact_query) = embedding(query, "m");
            let hits = search(&vectors, &stored_query, usize::MAX);
            prop_assert_eq!(hits.len(), records.len());
            for hit in &hits {
                let seed = records.iter().find(|(n, _)| id(**n) == hit.id).unwrap().1;
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
                vectors.insert(id(n as u8), &embedding(*seed, if seed % 2 == 0 { "a" } else { "b" }).0).unwrap();
            }
            for n in 0..seeds.len() {
                prop_assert!(vectors.remove(id(n as u8)));
            }
            prop_assert!(vectors.is_empty());
        }
    }

    #[test]
    fn models_never_mix() {
        let mut vectors = Vectors::new();
        vectors.insert(id(1), &embedding(7, "a").0).unwrap();
        assert_eq!(search(&vectors, &embedding(7, "b").0, 10), []);
        let hits = search(&vectors, &embedding(7, "a").0, 10);
        assert_eq!(hits.len(), 1);
        assert!((hits[0].score - 1.0).abs() < 0.01);
    }

    #[test]
    fn equal_scores_go_by_id() {
        let mut vectors = Vectors::new();
        for n in [3, 1, 2] {
            vectors.insert(id(n), &embedding(7, "a").0).unwrap();
        }
        let ids: Vec<RecordId> = search(&vectors, &embedding(7, "a").0, 2)
            .iter()
            .map(|h| h.id)
            .collect();
        assert_eq!(ids, [id(1), id(2)]);
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
            vectors.insert(id(1), &short),
            Err(VectorError::Dimensions { found: 3 })
        );
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let bad = Embedding {
                scale,
                ..good.clone()
            };
            assert_eq!(vectors.insert(id(1), &bad), Err(VectorError::Scale));
        }
        assert!(vectors.is_empty());
    }
}
