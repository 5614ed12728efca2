//! The hashed n-gram head: grade, domain, time to live and subject from characters and words, for every language.
//!
//! Each distinct bucket of a text adds its row of small integers, if it has one; the sum is divided by the root of their number and goes
//! through one small matrix. Integers up to the division and a fixed order after it, so every host gets the same bits.
//! After Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification" (<https://arxiv.org/abs/1607.01759>).
//! `tools/routing/ngrams.py` trains it with these very buckets.

use foremind_types::order::sort_by;

use crate::semantic::{FEATURES, HeadError};

/// The head's id.
pub const NGRAM_HEAD: &str = "ngram/1";
/// First bytes of a file.
const MAGIC: &[u8; 8] = b"fmngrm\r\n";
/// Bytes before the table: magic, version u16, width u16, buckets u32, step f32.
const HEADER_BYTES: usize = 20;
const VERSION: u16 = 2;
/// Most columns of the table, and buckets of it.
const WIDTH_MAX: usize = 64;
const BUCKETS_MAX: usize = 1 << 20;
/// Characters of a text that are looked at.
const CHARS: usize = 1024;

const GRAMS: core::ops::RangeInclusive<usize> = 1..=5;
const WORD_SEED: u32 = 101;
const PAIR_SEED: u32 = 102;

/// A loaded head. Only the buckets that tell something have a row.
#[derive(Clone, Debug)]
pub struct NgramHead {
    width: usize,
    buckets: u32,
    /// What one step of the table is worth.
    step: f32,
    /// One bit a bucket, lowest first: whether it has a row.
    known: Vec<u8>,
    /// How many rows stand before each byte of `known`.
    before: Vec<u32>,
    /// The rows: the first column as i8, then two columns a byte, the lower four bits first, as four-bit integers.
    rows: Vec<u8>,
    /// `[width][output]`
    matrix: Vec<f32>,
    bias: Vec<f32>,
}

/// The sum of a text's rows through the matrix.
fn project(sums: &[f32], matrix: &[f32], bias: &[f32], found: usize, step: f32) -> [f32; FEATURES] {
    let scale = step / (found.max(1) as f32).sqrt();
    let mut out = [0.0; FEATURES];
    for (at, feature) in out.iter_mut().enumerate() {
        let mut total = 0.0_f32;
        for (sum, row) in sums.iter().zip(matrix.chunks_exact(FEATURES)) {
            total += sum * row[at];
        }
        *feature = total * scale + bias[at];
    }
    out
}

impl NgramHead {
    /// The distinct buckets of a text, ascending: what a head is trained on.
    #[must_use]
    pub fn buckets(text: &str, buckets: u32) -> Vec<u32> {
        buckets_of(text, buckets.max(1))
    }

    /// Reads a file: the header, a bit for each bucket, the rows, the matrix and the bias as f32; all little-endian.
    ///
    /// # Errors
    /// [`HeadError::BadFile`].
    pub fn read(file: &[u8]) -> Result<Self, HeadError> {
        let bad = |what| HeadError::BadFile { what };
        let header: &[u8; HEADER_BYTES] = file.first_chunk().ok_or_else(|| bad("too short"))?;
        if &header[..8] != MAGIC {
            return Err(bad("no n-gram head"));
        }
        let [
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            v0,
            v1,
            w0,
            w1,
            b0,
            b1,
            b2,
            b3,
            s0,
            s1,
            s2,
            s3,
        ] = *header;
        if u16::from_le_bytes([v0, v1]) != VERSION {
            return Err(bad("another version"));
        }
        let width = usize::from(u16::from_le_bytes([w0, w1]));
        let buckets = u32::from_le_bytes([b0, b1, b2, b3]);
        let step = f32::from_le_bytes([s0, s1, s2, s3]);
        let sized = (1..=WIDTH_MAX).contains(&width)
            && (8..=BUCKETS_MAX).contains(&(buckets as usize))
            && buckets.is_multiple_of(8)
            && step.is_finite();
        let wrong = || bad("sizes that do not fit");
        let bits = buckets as usize / 8;
        let known = file[HEADER_BYTES..].get(..bits).filter(|_| sized);
        let known = known.ok_or_else(wrong)?.to_vec();
        let mut rows = 0;
        let before = known
            .iter()
            .map(|byte| {
                let before = rows;
                rows += byte.count_ones();
                before
            })
            .collect();
        let (rows, maps) = file[HEADER_BYTES + bits..]
            .split_at_checked(rows as usize * row_bytes(width))
            .ok_or_else(wrong)?;
        if maps.len() != (width + 1) * FEATURES * 4 {
            return Err(wrong());
        }
        let mut numbers: Vec<f32> = maps
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        if !numbers.iter().all(|x| x.is_finite()) {
            return Err(bad("a number that is none"));
        }
        let bias = numbers.split_off(width * FEATURES);
        Ok(Self {
            width,
            buckets,
            step,
            known,
            before,
            rows: rows.to_vec(),
            matrix: numbers,
            bias,
        })
    }

    /// The row of a bucket, if it has one.
    fn row(&self, bucket: u32) -> Option<&[u8]> {
        let (byte, bit) = (bucket as usize / 8, bucket % 8);
        let known = *self.known.get(byte)?;
        if known >> bit & 1 == 0 {
            return None;
        }
        let lower = known & ((1 << bit) - 1);
        let row = *self.before.get(byte)? + lower.count_ones();
        let bytes = row_bytes(self.width);
        self.rows.get(row as usize * bytes..)?.get(..bytes)
    }

    /// Logits of a statement, in the order of [`crate::semantic`]. Linear in the text, of which the first 1,024
    /// characters count.
    #[must_use]
    pub fn features(&self, text: &str) -> [f32; FEATURES] {
        let found = buckets_of(text, self.buckets);
        let mut sums = vec![0_i32; self.width];
        for row in found.iter().filter_map(|bucket| self.row(*bucket)) {
            for (column, sum) in sums.iter_mut().enumerate() {
                // Column 1 is the lower half of byte 1, column 2 its upper half.
                let byte = row[column.div_ceil(2)] as i8;
                *sum += i32::from(match column {
                    0 => byte,
                    _ if column % 2 == 1 => (byte << 4) >> 4,
                    _ => byte >> 4,
                });
            }
        }
        // Exact: the sums are far below 2^24.
        let sums: Vec<f32> = sums.into_iter().map(|sum| sum as f32).collect();
        project(&sums, &self.matrix, &self.bias, found.len(), self.step)
    }
}

/// Bytes of a row.
fn row_bytes(width: usize) -> usize {
    1 + (width - 1).div_ceil(2)
}

/// The distinct buckets of a text, ascending.
fn buckets_of(text: &str, buckets: u32) -> Vec<u32> {
    let words = folded(text);
    let mut line = vec![0x20];
    line.extend(words.join(&0x20));
    line.push(0x20);
    let mut found = Vec::with_capacity(line.len() * 7);
    for size in GRAMS {
        for window in line.windows(size) {
            found.push(hash(window, size as u32));
        }
    }
    for word in &words {
        found.push(hash(word, WORD_SEED));
    }
    for pair in words.windows(2) {
        found.push(hash(&pair.join(&0x20), PAIR_SEED));
    }
    for value in &mut found {
        // The upper bits are the better ones: fold them down.
        *value = (*value ^ (*value >> 15)) % buckets;
    }
    sort_by(&mut found, Ord::cmp);
    found.dedup();
    found
}

/// FNV-1a over code points instead of bytes (<http://www.isthe.com/chongo/tech/comp/fnv/>).
fn hash(codes: &[u32], seed: u32) -> u32 {
    codes.iter().fold(2_166_136_261 ^ seed, |value, code| {
        (value ^ code).wrapping_mul(16_777_619)
    })
}

/// Words as code points: lower case, digits as 0, each question mark or quote a word of its own, other marks left out.
fn folded(text: &str) -> Vec<Vec<u32>> {
    let mut words: Vec<Vec<u32>> = Vec::new();
    let mut word: Vec<u32> = Vec::new();
    for c in text.chars().take(CHARS).flat_map(char::to_lowercase) {
        let single = match c {
            '?' | '？' | '؟' | '¿' => Some('?'),
            '"' | '«' | '»' | '“' | '”' | '„' | '「' | '」' | '『' | '』' | '‹' | '›' => {
                Some('"')
            }
            _ => None,
        };
        let kept = if c.is_ascii() {
            c.is_ascii_alphanumeric()
        } else {
            !is_mark(c)
        };
        if single.is_none() && kept {
            word.push(if c.is_ascii_digit() { 0x30 } else { c as u32 });
            continue;
        }
        if !word.is_empty() {
            words.push(core::mem::take(&mut word));
        }
        words.extend(single.map(|mark| vec![mark as u32]));
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Blocks of marks that part words; all else above U+007F is part of a word.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{a9}' | '\u{ab}'..='\u{b4}' | '\u{b6}'..='\u{b9}' | '\u{bb}'..='\u{bf}'
        | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
        | '\u{60c}' | '\u{61b}' | '\u{6d4}' | '\u{964}' | '\u{965}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let word = |codes: Vec<u32>| codes.into_iter().filter_map(char::from_u32).collect();
        folded(text).into_iter().map(word).collect()
    }

    #[test]
    fn texts_are_folded_to_words_alike_in_every_script() {
        for (text, wanted) in [
            ("I'm 196 cm tall, OK?", "i m 000 cm tall ok ?"),
            ("¿Vale? «Sí»", "? vale ? \" sí \""),
            ("Größe: 1,96 m – Straße", "größe 0 00 m straße"),
            ("真的？水泡。", "真的 ? 水泡"),
            ("हाथ लाल।", "हाथ लाल"),
            ("صح؟", "صح ?"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), wanted, "{text}");
        }
    }

    #[test]
    fn a_hash_is_fnv_1a_of_code_points() {
        // In wider integers.
        assert_eq!(
            hash(&[97], 1),
            ((2_166_136_261_u64 ^ 1 ^ 97) * 16_777_619 % (1 << 32)) as u32
        );
        assert_ne!(hash(&[97, 98], 2), hash(&[98, 97], 2));
    }

    #[test]
    fn equal_texts_up_to_case_and_marks_have_equal_buckets() {
        let buckets = |text| NgramHead::buckets(text, 4096);
        assert_eq!(buckets("No Nuts!"), buckets("no nuts."));
        assert_ne!(buckets("no nuts?"), buckets("no nuts."));
        assert!(buckets("no nuts").is_sorted_by(|a, b| a < b));
        // Of " no ": 4 + 3 + 2 + 1 windows, and the word; two spaces are one bucket.
        assert_eq!(buckets("no").len(), 10);
    }

    /// A file of 8 buckets, those of `known` with these rows.
    fn file(width: u16, known: u8, rows: &[u8], maps: &[f32]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(VERSION.to_le_bytes());
        file.extend(width.to_le_bytes());
        file.extend(8_u32.to_le_bytes());
        file.extend(0.5_f32.to_le_bytes());
        file.push(known);
        file.extend(rows);
        file.extend(maps.iter().flat_map(|x| x.to_le_bytes()));
        file
    }

    #[test]
    fn features_are_the_scaled_sum_through_the_matrix() {
        // All buckets have the row 4, -2, 3: every sum is that row times the number of buckets found.
        let mut maps = vec![0.0; 4 * FEATURES];
        (
            maps[0],
            maps[FEATURES],
            maps[2 * FEATURES],
            maps[3 * FEATURES],
        ) = (2.0, 3.0, 1.0, 0.25);
        let rows = [4, 0x3e].repeat(8);
        let head = NgramHead::read(&file(3, 0xff, &rows, &maps)).unwrap();
        let found = NgramHead::buckets("any text", 8).len() as f32;
        let features = head.features("any text");
        let wanted = 0.5 * found.sqrt() * (4.0 * 2.0 - 2.0 * 3.0 + 3.0 * 1.0) + 0.25;
        assert!((features[0] - wanted).abs() < 1e-5, "{features:?}");
        assert!(features[1..].iter().all(|x| *x == 0.0));
    }

    #[test]
    fn each_bucket_has_the_row_that_was_written_for_it() {
        let head = NgramHead::read(&file(
            2,
            0b1001_0110,
            &[1, 1, 2, 2, 3, 3, 4, 4],
            &vec![0.0; 3 * FEATURES],
        ))
        .unwrap();
        let rows: Vec<Option<u8>> = (0..9).map(|b| head.row(b).map(|row| row[0])).collect();
        let (one, two, three, four) = (Some(1), Some(2), Some(3), Some(4));
        assert_eq!(rows, [None, one, two, None, three, None, None, four, None]);
    }

    #[test]
    fn files_that_are_cut_altered_or_foreign_are_refused() {
        let good = file(2, 1, &[4, 0x0e], &vec![0.0; 3 * FEATURES]);
        assert!(NgramHead::read(&good).is_ok());
        for length in [0, 7, HEADER_BYTES, good.len() - 1] {
            assert!(NgramHead::read(&good[..length]).is_err(), "{length}");
        }
        for at in [0, 8, 10, 12, HEADER_BYTES] {
            let mut bytes = good.clone();
            bytes[at] ^= 0x40;
            assert!(NgramHead::read(&bytes).is_err(), "byte {at}");
        }
        assert!(NgramHead::read(&file(2, 1, &[4, 0x0e], &vec![f32::NAN; 3 * FEATURES])).is_err());
    }

    #[test]
    fn odd_texts_have_features_too() {
        let head = NgramHead::read(&file(1, 0xff, &[1; 8], &vec![1.0; 2 * FEATURES])).unwrap();
        for text in [
            "",
            " ",
            "?!",
            "🙂",
            "\u{200f}\u{200b}",
            &"a".repeat(100_000),
        ] {
            assert!(
                head.features(text).iter().all(|x| x.is_finite()),
                "{text:.9}"
            );
        }
    }
}
