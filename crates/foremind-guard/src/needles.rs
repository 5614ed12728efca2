//! Many fixed strings sought at once: which stand where. One look-up a byte, by the first three bytes of a string.

use foremind_types::order::sort_by_key;

/// Shortest needle, bytes.
pub(crate) const SHORTEST: usize = 3;
const BUCKETS: usize = 4096;
/// Bits that say whether any needle starts so: most places of a text are passed over without a look at the buckets.
const STARTS: usize = 1 << 16;

/// Needles with what each stands for.
#[derive(Clone, Debug)]
pub(crate) struct Needles<T> {
    /// By bucket.
    entries: Vec<(Box<str>, T)>,
    /// Where each bucket starts in `entries`, and the end of the last.
    starts: Vec<u32>,
    /// [`STARTS`] bits.
    some: Box<[u64]>,
}

/// A needle that stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found<T> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) what: T,
}

/// Which of the [`STARTS`]; its upper bits are the bucket.
fn start(bytes: &[u8]) -> usize {
    let [a, b, c] = [bytes[0], bytes[1], bytes[2]].map(u32::from);
    ((a | b << 8 | c << 16).wrapping_mul(0x9E37_79B1) >> 16) as usize % STARTS
}

fn bucket(bytes: &[u8]) -> usize {
    start(bytes) / (STARTS / BUCKETS)
}

impl<T: Copy> Needles<T> {
    /// Those of at least [`SHORTEST`] bytes; shorter ones are left out.
    pub(crate) fn new(needles: impl IntoIterator<Item = (String, T)>) -> Self {
        let mut entries: Vec<(Box<str>, T)> = needles
            .into_iter()
            .filter(|(needle, _)| needle.len() >= SHORTEST)
            .map(|(needle, what)| (needle.into_boxed_str(), what))
            .collect();
        sort_by_key(&mut entries, |(needle, _)| bucket(needle.as_bytes()));
        let mut starts = vec![0_u32; BUCKETS + 1];
        let mut some = vec![0_u64; STARTS / 64].into_boxed_slice();
        for (needle, _) in &entries {
            starts[bucket(needle.as_bytes()) + 1] += 1;
            let start = start(needle.as_bytes());
            some[start / 64] |= 1 << (start % 64);
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self {
            entries,
            starts,
            some,
        }
    }

    /// Calls `found` for each needle in `text`, by place.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(Found<T>)) {
        let bytes = text.as_bytes();
        for (from, head) in bytes.windows(SHORTEST).enumerate() {
            let start = start(head);
            if self.some[start / 64] >> (start % 64) & 1 == 0 {
                continue;
            }
            let place = start / (STARTS / BUCKETS);
            let (first, last) = (self.starts[place] as usize, self.starts[place + 1] as usize);
            for (needle, what) in &self.entries[first..last] {
                let to = from + needle.len();
                // Needles of one bucket differ late: most are told apart by their last byte.
                if bytes.get(to - 1) == needle.as_bytes().last()
                    && bytes[from..].starts_with(needle.as_bytes())
                {
                    found(Found {
                        from,
                        to,
                        what: *what,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_stand_there_are_found_overlapping_ones_too() {
        let needles = Needles::new([
            ("token".to_owned(), 1),
            ("ken".to_owned(), 2),
            ("密钥".to_owned(), 3),
            ("ab".to_owned(), 4),
        ]);
        let mut found = Vec::new();
        needles.each("ab token密钥", |f| found.push((f.from, f.to, f.what)));
        assert_eq!(found, [(3, 8, 1), (5, 8, 2), (8, 14, 3)]);
    }
}
