use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// 32 bytes of a keyed hash, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected 64 hexadecimal digits"))
    }
}

impl Digest {
    /// Of 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let read = |pair: &[u8]| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()
        };
        let pairs = text.as_bytes().chunks_exact(2);
        let whole = text.len() == 64
            && bytes
                .iter_mut()
                .zip(pairs)
                .all(|(byte, pair)| read(pair).map(|value| *byte = value).is_some());
        whole.then_some(Self(bytes))
    }
}

/// What an erasure took out, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErasedCounts {
    /// Records, each with its versions.
    pub records: u32,
    /// Of these, records that were not named and had no other evidence.
    pub derived: u32,
    /// Vectors.
    pub vectors: u32,
    /// Records in the index of words.
    pub words: u32,
    /// Records of the profile.
    pub profile: u32,
    /// Records that waited for a judgement.
    pub pending: u32,
    /// Stored values that were deleted.
    pub values: u32,
}

/// The proof of an erasure, which the one who asked for it keeps. It holds no text: roots of keyed hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The memory, as 32 hexadecimal digits.
    pub memory_id: String,
    /// The commit that wrote it down.
    pub generation: u64,
    /// When, Unix milliseconds.
    pub at_ms: i64,
    /// The `mac` of the receipt before it, zeros for the first.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub previous: Digest,
    /// Merkle root over the keyed hashes of what was erased.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub erased: Digest,
    /// Merkle root over the keyed hashes of all records that were left.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Digest,
    /// What was taken out.
    pub counts: ErasedCounts,
    /// Everything above under the memory's key; of a whole memory, under `key`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub mac: Digest,
    /// For a whole memory only: the key of this receipt, wrapped as the data key was, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
