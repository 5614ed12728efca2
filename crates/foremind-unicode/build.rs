//! Writes what normalising needs to know of each character as columns of small numbers, in the order of the code points. `src/table.rs`
//! reads them; both speak of an *entry*: a character that decomposes, or that combines with one before it.
//!
//! A number takes seven bits a byte, the lowest first, the top bit set on all but the last byte. Signed ones are folded: 0, -1, 1, -2.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, io};

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

/// Hangul syllables (Unicode 3.12) follow from a rule.
const HANGUL: std::ops::RangeInclusive<char> = '\u{ac00}'..='\u{d7a3}';

#[derive(Default)]
struct Columns {
    /// Code point, less that of the entry before.
    points: Vec<u8>,
    /// Four times the length of the decomposition, plus 2 if it composes again, plus 1 if it is one of compatibility only.
    kinds: Vec<u8>,
    /// First character, less that of the decomposition before; where there is none, the combining class, less the one before.
    firsts: Vec<u8>,
    /// The other characters.
    others: Vec<u8>,
}

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut columns = Columns::default();
    let combining = combining();
    let (mut point, mut first, mut class) = (0, 0, 0);
    for c in ('\0'..=char::MAX).filter(|c| !HANGUL.contains(c)) {
        let (chars, kind) = decomposition(c);
        if chars.is_empty() && !combining.contains(&c) {
            continue;
        }
        number(&mut columns.points, u32::from(c) - point);
        point = u32::from(c);
        let length = u32::try_from(chars.len()).map_err(io::Error::other)?;
        number(&mut columns.kinds, length << 2 | kind);
        let Some((head, rest)) = chars.split_first() else {
            let own = i64::from(canonical_combining_class(c));
            signed(&mut columns.firsts, own - class)?;
            class = own;
            continue;
        };
        let head = i64::from(u32::from(*head));
        signed(&mut columns.firsts, head - first)?;
        first = head;
        for c in rest {
            number(&mut columns.others, u32::from(*c));
        }
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    let out = Path::new(&out);
    fs::write(out.join("points"), columns.points)?;
    fs::write(out.join("kinds"), columns.kinds)?;
    fs::write(out.join("firsts"), columns.firsts)?;
    fs::write(out.join("others"), columns.others)
}

/// What `c` stands for, and the two lower bits of its kind. Of a character that composes again, only the last step: two characters.
fn decomposition(c: char) -> (Vec<char>, u32) {
    let (mut canonical, mut compatible) = (Vec::new(), Vec::new());
    decompose_canonical(c, |part| canonical.push(part));
    decompose_compatible(c, |part| compatible.push(part));
    if compatible == [c] {
        (Vec::new(), 0)
    } else if canonical == [c] {
        (compatible, 1)
    } else if let Some((before, last)) = last_step(c, &canonical) {
        (vec![before, last], 2)
    } else {
        (canonical, 0)
    }
}

fn last_step(c: char, parts: &[char]) -> Option<(char, char)> {
    let (last, before) = parts.split_last()?;
    let (first, between) = before.split_first()?;
    let before = between
        .iter()
        .try_fold(*first, |sum, part| compose(sum, *part))?;
    (compose(before, *last) == Some(c)).then_some((before, *last))
}

/// What may combine with a character before it: all of a class other than 0, and the second parts of what composes.
fn combining() -> BTreeSet<char> {
    let mut combining: BTreeSet<char> = ('\0'..=char::MAX)
        .filter(|c| canonical_combining_class(*c) != 0)
        .collect();
    for c in ('\0'..=char::MAX).filter(|c| !HANGUL.contains(c)) {
        if let (chars, 2) = decomposition(c) {
            combining.extend(chars.last());
        }
    }
    combining
}

fn number(bytes: &mut Vec<u8>, mut number: u32) {
    while let rest @ 1.. = number >> 7 {
        bytes.push(number as u8 | 0x80);
        number = rest;
    }
    bytes.push(number as u8);
}

fn signed(bytes: &mut Vec<u8>, signed: i64) -> io::Result<()> {
    let folded = if signed < 0 {
        -signed * 2 - 1
    } else {
        signed * 2
    };
    number(bytes, u32::try_from(folded).map_err(io::Error::other)?);
    Ok(())
}
