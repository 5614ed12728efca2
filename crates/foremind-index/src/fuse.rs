use foremind_types::small::SmallMap;

use foremind_types::RecordId;
use foremind_types::order::sort_by;

use crate::number::quantise;

/// The constant of reciprocal rank fusion.
pub const FUSION_K: u32 = 60;

/// Reciprocal rank fusion of rankings, each best first: the sum of `(k + 1) / (k + rank)`, rank from 1, so the
/// first place of one ranking counts 1. Best first, ties by id.
///
/// Source: G. Cormack, C. Clarke, S. Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
/// Rank Learning Methods", SIGIR 2009.
#[must_use]
pub fn fuse(rankings: &[&[RecordId]]) -> Vec<(RecordId, f32)> {
    let mut sums: SmallMap<RecordId, f64> = SmallMap::new();
    for ranking in rankings {
        for (rank, id) in (1_u32..).zip(*ranking) {
            *sums.entry(*id).or_default() += f64::from(FUSION_K + 1) / f64::from(FUSION_K + rank);
        }
    }
    let mut fused: Vec<(RecordId, f32)> = sums
        .into_iter()
        .map(|(id, sum)| (id, quantise(sum)))
        .collect();
    // The sort is stable and the map gave the ids in order.
    sort_by(&mut fused, |(_, a), (_, b)| b.total_cmp(a));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> RecordId {
        RecordId::new(0, [n; 10])
    }

    #[test]
    fn two_middling_ranks_beat_one_first_and_ties_go_by_id() {
        let words = [id(9), id(2), id(3)];
        let meaning = [id(4), id(2), id(1)];
        let ids: Vec<RecordId> = fuse(&[&words, &meaning])
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, [id(2), id(4), id(9), id(1), id(3)]);
    }

    #[test]
    fn the_first_place_counts_one() {
        assert_eq!(fuse(&[&[id(1)]]), [(id(1), 1.0)]);
        assert_eq!(fuse(&[&[], &[]]), []);
    }
}
