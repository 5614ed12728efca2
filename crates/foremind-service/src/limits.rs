//! A token bucket for each grant.

use std::collections::BTreeMap;

/// Most buckets that are kept. Beyond, the fullest are dropped, which only favours their grants.
const BUCKETS: usize = 16_384;
const STORED_BYTES: usize = 24;

/// The buckets that are not full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buckets(BTreeMap<u64, Bucket>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// Thousandths of a request.
    level: u64,
    at_ms: i64,
}

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) per_minute: u32,
    pub(crate) burst: u32,
}

impl Rate {
    fn full(self) -> u64 {
        u64::from(self.burst) * 1_000
    }

    fn level(self, bucket: Bucket, now_ms: i64) -> u64 {
        // A clock that was put back costs nothing: the bucket goes on from there.
        let elapsed_ms = now_ms.saturating_sub(bucket.at_ms).max(0).unsigned_abs();
        let gained = elapsed_ms.saturating_mul(u64::from(self.per_minute)) / 60;
        bucket.level.saturating_add(gained).min(self.full())
    }
}

impl Buckets {
    /// Takes one request out of a bucket; `Err` holds the seconds after which there is one again.
    pub(crate) fn take(&mut self, rate: Rate, name: &str, now_ms: i64) -> Result<(), u64> {
        let id = id(name);
        let level = self
            .0
            .get(&id)
            .map_or(rate.full(), |bucket| rate.level(*bucket, now_ms));
        let Some(left) = level.checked_sub(1_000) else {
            let lacking_ms = (1_000 - level) * 60 / u64::from(rate.per_minute.max(1));
            return Err(lacking_ms.div_ceil(1_000).max(1));
        };
        if self.0.len() >= BUCKETS {
            self.drop_fullest(rate, now_ms);
        }
        self.0.insert(
            id,
            Bucket {
                level: left,
                at_ms: now_ms,
            },
        );
        Ok(())
    }

    fn drop_fullest(&mut self, rate: Rate, now_ms: i64) {
        let mut levels: Vec<u64> = self
            .0
            .values()
            .map(|bucket| rate.level(*bucket, now_ms))
            .collect();
        levels.sort_unstable();
        let middle = levels.get(levels.len() / 2).copied().unwrap_or_default();
        self.0
            .retain(|_, bucket| rate.level(*bucket, now_ms) < middle);
    }

    /// The buckets that are not full, 24 bytes each: id, level, time.
    pub(crate) fn stored(&self, rate: Rate, now_ms: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (id, bucket) in &self.0 {
            if rate.level(*bucket, now_ms) < rate.full() {
                bytes.extend(id.to_le_bytes());
                bytes.extend(bucket.level.to_le_bytes());
                bytes.extend(bucket.at_ms.to_le_bytes());
            }
        }
        bytes
    }

    /// Inverse of [`Buckets::stored`]; what is no bucket is passed over.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let rows = bytes.chunks_exact(STORED_BYTES).take(BUCKETS);
        Self(
            rows.map(|row| {
                let bucket = Bucket {
                    level: word(&row[8..16]),
                    at_ms: word(&row[16..]).cast_signed(),
                };
                (word(&row[..8]), bucket)
            })
            .collect(),
        )
    }
}

fn id(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_minute: 60,
        burst: 2,
    };

    #[test]
    fn a_bucket_holds_its_burst_and_fills_over_time() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.take(RATE, "g", 0), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 0), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 0), Err(1));
        assert_eq!(buckets.take(RATE, "other", 0), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 999), Err(1));
        assert_eq!(buckets.take(RATE, "g", 1_000), Ok(()));
        // An hour later there is the burst and no more.
        assert_eq!(buckets.take(RATE, "g", 3_600_000), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 3_600_000), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 3_600_000), Err(1));
    }

    #[test]
    fn a_clock_that_jumps_neither_locks_out_nor_fills() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.take(RATE, "g", i64::MAX), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 5), Ok(()));
        assert_eq!(buckets.take(RATE, "g", 5), Err(1));
        assert_eq!(buckets.take(RATE, "g", 1_005), Ok(()));
    }

    #[test]
    fn stored_buckets_are_read_again_without_the_full_ones() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.take(RATE, "early", 0), Ok(()));
        assert_eq!(buckets.take(RATE, "late", 60_000), Ok(()));
        let stored = buckets.stored(RATE, 60_000);
        assert_eq!(stored.len(), STORED_BYTES);
        let mut again = Buckets::read(&stored);
        assert_eq!(again.take(RATE, "late", 60_000), Ok(()));
        assert_eq!(again.take(RATE, "late", 60_000), Err(1));
        assert_eq!(Buckets::read(&[1; 23]), Buckets::default());
    }

    #[test]
    fn there_is_an_end_to_the_buckets() {
        let mut buckets = Buckets::default();
        for n in 0..BUCKETS + 10 {
            assert_eq!(buckets.take(RATE, &n.to_string(), n as i64), Ok(()));
        }
        assert!(buckets.0.len() <= BUCKETS);
    }
}
