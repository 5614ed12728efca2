use core::fmt;

use crate::format::v1;

/// Name of a stored value: `head`, `key`, `spare`, `stamp`, or 32 lower-case hexadecimal digits that say nothing about
/// what they name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The value that every commit compares and swaps.
    #[must_use]
    pub fn head() -> Self {
        Self("head".to_owned())
    }

    /// The wrapped data key.
    #[must_use]
    pub fn slot() -> Self {
        Self("key".to_owned())
    }

    /// A copy of the wrapped data key, which only a repair reads.
    #[must_use]
    pub fn spare() -> Self {
        Self("spare".to_owned())
    }

    /// What a replica says about itself; in no other store.
    #[must_use]
    pub fn stamp() -> Self {
        Self("stamp".to_owned())
    }

    /// A name that a store listed, if it can be one of a memory's values.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let known = ["head", "key", "spare", "stamp"].contains(&name) || Self::is_of_log(name);
        known.then(|| Self(name.to_owned()))
    }

    pub(crate) fn hashed(hash: [u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = hash
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|nibble| char::from(DIGITS[usize::from(nibble)]));
        Self(digits.collect())
    }

    /// Whether a name in a store has the form of a value of the log, of whichever memory.
    #[must_use]
    pub fn is_of_log(name: &str) -> bool {
        name.len() == 32
            && name
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    }

    /// The name as a store uses it: 3 to 32 characters of `a-z 0-9`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first [`HeadToken::BYTES`] bytes of the stored `head`: what a store compares before it swaps. Two
/// heads never share one, because it holds 16 random bytes drawn for each commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadToken(pub [u8; Self::BYTES]);

impl HeadToken {
    /// Bytes of a token.
    pub const BYTES: usize = v1::HEADER_BYTES;

    /// The token of a stored `head` value; `None` when the value is shorter than a token, which a store
    /// treats as different from every token.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        head.first_chunk().copied().map(Self)
    }

    /// How many commits led to this head.
    #[must_use]
    pub fn generation(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[v1::GENERATION_AT..v1::COMMIT_AT]);
        u64::from_le_bytes(bytes)
    }
}

impl fmt::Debug for HeadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeadToken(generation {})", self.generation())
    }
}
