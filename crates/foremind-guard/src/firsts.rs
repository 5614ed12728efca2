//! With which ASCII characters the matches of a pattern can start: a look at one byte saves most tries.

/// Bits of ASCII characters, and whether others are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Firsts {
    ascii: u128,
    others: bool,
}

impl Firsts {
    const NONE: Self = Self {
        ascii: 0,
        others: false,
    };
    const ALL: Self = Self {
        ascii: u128::MAX,
        others: true,
    };

    /// Those of a pattern. What is not understood can start with anything.
    pub(crate) fn of(pattern: &str) -> Self {
        let mut reader = Reader {
            rest: pattern.as_bytes(),
            folds: false,
        };
        match reader.alternatives() {
            Some((firsts, false)) if reader.rest.is_empty() => firsts,
            _ => Self::ALL,
        }
    }

    /// Whether a match can start with a byte.
    pub(crate) fn has(self, byte: u8) -> bool {
        match byte {
            0..=0x7f => self.ascii >> byte & 1 == 1,
            _ => self.others,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            ascii: self.ascii | other.ascii,
            others: self.others || other.others,
        }
    }

    fn add(&mut self, from: u8, to: u8) {
        for byte in from..=to.min(0x7f) {
            self.ascii |= 1 << byte;
        }
        self.others |= to > 0x7f;
    }
}

struct Reader<'p> {
    rest: &'p [u8],
    /// Letters of either case.
    folds: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Up to a closing parenthesis or the end; whether it can be empty.
    fn alternatives(&mut self) -> Option<(Firsts, bool)> {
        let (mut firsts, mut empty) = (Firsts::NONE, false);
        loop {
            let (one, can_be_empty) = self.sequence()?;
            firsts = firsts.and(one);
            empty |= can_be_empty;
            if !self.takes(b"|") {
                return Some((firsts, empty));
            }
        }
    }

    fn sequence(&mut self) -> Option<(Firsts, bool)> {
        let (mut firsts, mut empty) = (Firsts::NONE, true);
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            let Some((one, can_be_empty)) = self.atom()? else {
                continue;
            };
            let optional = self.quantifier()?;
            if empty {
                firsts = firsts.and(one);
            }
            empty &= can_be_empty || optional;
        }
        Some((firsts, empty))
    }

    /// What one atom starts with, and whether it can be empty; nothing for a flag.
    fn atom(&mut self) -> Option<Option<(Firsts, bool)>> {
        if self.takes(b"(?i)") {
            self.folds = true;
            return Some(None);
        }
        if self.takes(b"(?s)") {
            return Some(None);
        }
        let mut firsts = Firsts::NONE;
        match self.next()? {
            b'(' => {
                self.takes(b"?:");
                let folds = self.folds;
                let inner = self.alternatives()?;
                self.folds = folds;
                return self.takes(b")").then_some(Some(inner));
            }
            b'[' => firsts = self.class()?,
            b'.' => firsts = Firsts::ALL,
            b'\\' => firsts = self.escape()?,
            b'^' | b'$' => return None,
            byte => firsts.add(byte, byte),
        }
        Some(Some((self.folded(firsts), false)))
    }

    /// Whether the atom before may be left out.
    fn quantifier(&mut self) -> Option<bool> {
        let optional = match self.rest.first() {
            Some(b'?' | b'*') => {
                self.next();
                true
            }
            Some(b'+') => {
                self.next();
                false
            }
            Some(b'{') => {
                let end = self.rest.iter().position(|byte| *byte == b'}')?;
                let least = self.rest.get(1)?;
                let optional = *least == b'0' || *least == b',';
                self.rest = self.rest.get(end + 1..)?;
                optional
            }
            _ => false,
        };
        // Lazy.
        self.takes(b"?");
        Some(optional)
    }

    fn escape(&mut self) -> Option<Firsts> {
        let mut firsts = Firsts::NONE;
        match self.next()? {
            b'd' => firsts.add(b'0', b'9'),
            b's' => b" \t\n\r\x0b\x0c"
                .iter()
                .for_each(|byte| firsts.add(*byte, *byte)),
            byte if byte.is_ascii_alphanumeric() => return None,
            byte => firsts.add(byte, byte),
        }
        Some(firsts)
    }

    fn class(&mut self) -> Option<Firsts> {
        let mut firsts = Firsts::NONE;
        let negated = self.takes(b"^");
        loop {
            let from = match self.next()? {
                b']' => break,
                b'\\' => {
                    firsts = firsts.and(self.escape()?);
                    continue;
                }
                byte => byte,
            };
            let to = match self.rest {
                [b'-', to, ..] if *to != b']' => *to,
                _ => {
                    firsts.add(from, from);
                    continue;
                }
            };
            self.rest = self.rest.get(2..)?;
            firsts.add(from, to);
        }
        Some(match negated {
            true => Firsts {
                ascii: !self.folded(firsts).ascii,
                others: true,
            },
            false => firsts,
        })
    }

    fn folded(&self, mut firsts: Firsts) -> Firsts {
        if self.folds {
            for letter in b'a'..=b'z' {
                let upper = letter.to_ascii_uppercase();
                if firsts.has(letter) || firsts.has(upper) {
                    firsts.add(letter, letter);
                    firsts.add(upper, upper);
                }
            }
            // Case folding of regex-lite goes no further than ASCII.
        }
        firsts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn what_a_pattern_starts_with() {
        let starts = |pattern: &str| -> String {
            let firsts = Firsts::of(pattern);
            (0..0x7f)
                .filter(|byte| firsts.has(*byte))
                .map(char::from)
                .collect()
        };
        for (pattern, wanted) in [
            ("abc", "a"),
            ("[xyz]?b", "bxyz"),
            ("(?:a|b?)c{0,2}d", "abcd"),
            (r"\(?\+?\d[\d ]{5,18}\d", "(+0123456789"),
            ("(?i)wifi:", "Ww"),
            ("(?:[5K][1-9]{3}|0x[0-9]{4})", "05K"),
            (r"-(?:p|a) ?[^\s-]", "-"),
        ] {
            assert_eq!(starts(pattern), wanted, "{pattern}");
        }
        assert_eq!(Firsts::of("a?"), Firsts::ALL);
        assert_eq!(Firsts::of(r"\bword"), Firsts::ALL);
        assert!(!Firsts::of("[a-z]").has(0xc3));
        assert!(Firsts::of("[^a-z]").has(0xc3));
    }

    /// Against the engine itself: a pattern matches nothing that starts otherwise.
    #[test]
    fn no_match_of_any_kind_starts_with_another_byte() {
        let tails = [
            "BCDEFGHIJKLMNOPQRSTUVWXYZ234567abcdefgh",
            "0123456789012345678901234567890123456789",
            "12.345.678-9 12/345/6789 A1B2-C3D4 x=y@z.example",
            "word word word word word word word word word word word word",
        ];
        for shape in &Kinds::shared().shapes {
            for byte in 0x20..0x7f_u8 {
                for tail in tails {
                    let text = format!("{}{tail}", char::from(byte));
                    let found = shape.unfiltered(&text);
                    assert!(
                        found.is_none() || shape.firsts.has(byte),
                        "{} {text}",
                        shape.kind
                    );
                }
            }
        }
    }
}
