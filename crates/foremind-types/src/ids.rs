use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits::NAME_BYTES;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdError {
    /// Not 26 characters of Crockford base32 (ULID specification).
    NotAUlid,
    /// Not 32 lower-case hexadecimal digits.
    NotHex,
    /// Empty, longer than [`NAME_BYTES`] bytes, or with a character outside `A-Z a-z 0-9 . _ ~ -`, or
    /// not starting with a letter or digit.
    NotAName,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUlid => {
                f.write_str("expected a record id: 26 characters of Crockford base32")
            }
            Self::NotHex => f.write_str("expected 32 lower-case hexadecimal digits"),
            Self::NotAName => write!(
                f,
                "expected 1 to {NAME_BYTES} characters of A-Z a-z 0-9 . _ ~ - that start with a letter or digit"
            ),
        }
    }
}

impl core::error::Error for IdError {}

/// Id of a record: a ULID (48 bits of Unix milliseconds, 80 random bits, written as 26 characters of
/// Crockford base32), so ids sort by time of telling.
///
/// Source: the ULID specification. The `ulid` crate is not used because on wasm it depends on
/// wasm-bindgen, which nothing below a binding may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u128);

/// Crockford's digits: no I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_CHARACTERS: usize = 26;
const TIME_BITS: u32 = 48;
const RANDOM_BITS: u32 = 80;

impl RecordId {
    /// Makes an id from the time of telling and 80 bits of the caller's entropy.
    #[must_use]
    pub fn new(told_ms: i64, entropy: [u8; 10]) -> Self {
        let mut wide = [0; 16];
        wide[..10].copy_from_slice(&entropy);
        let time = u128::from(told_ms.max(0).unsigned_abs()) & ((1 << TIME_BITS) - 1);
        Self(time << RANDOM_BITS | u128::from_le_bytes(wide))
    }

    /// The 16 bytes, most significant first.
    #[must_use]
    #[expect(
        clippy::big_endian_bytes,
        reason = "the specification's order, which sorts by time"
    )]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Inverse of [`RecordId::to_bytes`].
    #[must_use]
    #[expect(
        clippy::big_endian_bytes,
        reason = "the specification's order, which sorts by time"
    )]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..ULID_CHARACTERS).rev().try_for_each(|place| {
            let digit = (self.0 >> (5 * place)) as usize % DIGITS.len();
            fmt::Write::write_char(f, char::from(DIGITS[digit]))
        })
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordId {
    type Err = IdError;

    /// Lower case is read as upper case, as Crockford's base32 allows.
    fn from_str(text: &str) -> Result<Self, IdError> {
        // 26 characters hold 130 bits: the first may be at most 7.
        if text.len() != ULID_CHARACTERS || !matches!(text.as_bytes()[0], b'0'..=b'7') {
            return Err(IdError::NotAUlid);
        }
        text.bytes()
            .try_fold(0_u128, |value, byte| {
                let upper = byte.to_ascii_uppercase();
                let digit = DIGITS.iter().position(|digit| *digit == upper)?;
                Some(value << 5 | digit as u128)
            })
            .map(Self)
            .ok_or(IdError::NotAUlid)
    }
}

impl Serialize for RecordId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Id of a memory: 16 random bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub [u8; 16]);

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MemoryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(IdError::NotHex);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |digit: u8| match digit {
                b'0'..=b'9' => Ok(digit - b'0'),
                b'a'..=b'f' => Ok(digit - b'a' + 10),
                _ => Err(IdError::NotHex),
            };
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for MemoryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Who wrote an entry: random, drawn afresh at each opening of a memory, so that no two writers share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterId(pub u64);

/// A host's name for a user, project, thread, agent or turn: 1 to 128 characters of
/// `A-Z a-z 0-9 . _ ~ -` that start with a letter or digit. Compared byte by byte, never by prefix. A copy is the same text: names stand
/// in each record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Validates a name.
    ///
    /// # Errors
    /// [`IdError::NotAName`].
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        let starts_well = text
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric);
        if starts_well && text.len() <= NAME_BYTES && text.bytes().all(valid) {
            Ok(Self(text.into()))
        } else {
            Err(IdError::NotAName)
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ids_round_trip_and_sort_by_time() {
        let early = RecordId::new(1_000, [0xff; 10]);
        let late = RecordId::new(1_001, [0; 10]);
        assert!(early < late);
        assert_eq!(early.to_string().parse(), Ok(early));
        assert_eq!(RecordId::from_bytes(early.to_bytes()), early);
        assert_eq!("not an id".parse::<RecordId>(), Err(IdError::NotAUlid));
        // The example of the specification: 1469918176385 ms.
        let example: RecordId = "01ARYZ6S41TSV4RRFFQ69G5FAV".parse().unwrap();
        assert_eq!(
            example.to_bytes()[..6],
            1_469_918_176_385_u64
                .to_le_bytes()
                .iter()
                .rev()
                .copied()
                .collect::<Vec<_>>()[2..]
        );
        assert_eq!(example.to_string(), "01ARYZ6S41TSV4RRFFQ69G5FAV");
        assert_eq!("01aryz6s41tsv4rrffq69g5fav".parse(), Ok(example));
        // One more than the largest, and a letter that is no digit.
        assert_eq!(
            "80000000000000000000000000".parse::<RecordId>(),
            Err(IdError::NotAUlid)
        );
        assert_eq!(
            "7ZZZZZZZZZZZZZZZZZZZZZZZZU".parse::<RecordId>(),
            Err(IdError::NotAUlid)
        );
        assert_eq!("é".repeat(13).parse::<RecordId>(), Err(IdError::NotAUlid));
    }

    #[test]
    fn memory_ids_accept_lower_case_hexadecimal_only() {
        let id = MemoryId([0xa5; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(
            id.to_string().to_uppercase().parse::<MemoryId>(),
            Err(IdError::NotHex)
        );
        assert_eq!("a5".parse::<MemoryId>(), Err(IdError::NotHex));
    }

    #[test]
    fn names_are_strict() {
        for good in ["a", "0", "user-1", "a.b_c~d", &"x".repeat(128)] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "-a",
            "a b",
            "a/b",
            "ä",
            "a\0",
            "a\n",
            &"x".repeat(129),
        ] {
            assert_eq!(Name::new(bad), Err(IdError::NotAName), "{bad}");
        }
    }
}
