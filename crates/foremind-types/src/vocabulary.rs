//! Enumerations that cross borders as words. Read and written by one function for all: what `serde` derives is compiled for
//! each enumeration and each form anew, 2 to 5 KB of wasm each.

use core::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// Declares an enumeration whose values have words, with `ALL`, `as_str`, `parse` and the traits of serde.
#[macro_export]
macro_rules! vocabulary {
    ($(#[$meta:meta])+ $visible:vis enum $name:ident { $($(#[$note:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $name {
            $($(#[$note])* $variant,)+
        }

        #[allow(dead_code, reason = "not each enumeration needs all of it")]
        impl $name {
            /// All values, in the order of their declaration.
            $visible const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their words.
            const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word used in data files, JSON and rendered text.
            #[must_use]
            $visible fn as_str(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// Inverse of `as_str`.
            #[must_use]
            $visible fn parse(text: &str) -> Option<Self> {
                let at = Self::WORDS.iter().position(|word| *word == text)?;
                Some(Self::ALL[at])
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::vocabulary::position(deserializer, Self::WORDS).map(|at| Self::ALL[at])
            }
        }
    };
}

/// The place of the word that comes next among `words`.
///
/// # Errors
/// The deserializer's, for anything else; it names the words.
pub fn position<'de, D: Deserializer<'de>>(
    deserializer: D,
    words: &'static [&'static str],
) -> Result<usize, D::Error> {
    deserializer.deserialize_str(Word(words))
}

struct Word(&'static [&'static str]);

impl Visitor<'_> for Word {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of ")?;
        for (at, word) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            f.write_str(word)?;
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        let place = self.0.iter().position(|word| *word == text);
        place.ok_or_else(|| E::unknown_variant(text, self.0))
    }
}
