//! Texts inside of texts: base64, hexadecimal, percent signs, escapes. Bounded: what is decoded is shorter than where it stood,
//! and it goes [`LEVELS`] levels deep.

use core::ops::Range;

/// How many levels of encoding are taken off.
pub(crate) const LEVELS: usize = 3;
/// Shortest run that is looked at, bytes.
const SHORTEST: usize = 16;

/// Text that stood encoded in another, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) range: Range<usize>,
}

/// Everything in `text` that decodes to readable text; each place once.
pub(crate) fn decoded(text: &str) -> Vec<Decoded> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at], b'%' | b'\\' | b'&') {
            let end = at + escaped_run(&bytes[at..]);
            if end > at + 1 {
                push(&mut all, unescaped(&bytes[at..end]), at..end);
                at = end;
                continue;
            }
        }
        let run = bytes[at..].iter().take_while(|b| is_base64(**b)).count();
        if run < SHORTEST {
            at += run.max(1);
            continue;
        }
        let end = at
            + run
            + bytes[at + run..]
                .iter()
                .take(2)
                .take_while(|b| **b == b'=')
                .count();
        let body = &bytes[at..at + run];
        let hex = body.strip_prefix(b"0x").unwrap_or(body);
        if hex.iter().all(u8::is_ascii_hexdigit) {
            push(&mut all, hexadecimal(hex.iter().copied()), at..end);
        } else {
            push(&mut all, base64(body.iter().copied()), at..end);
        }
        at = end;
    }
    // Pairs of hexadecimal digits with spaces between, and base64 that was broken into lines.
    spaced(text, &mut all);
    all
}

fn push(all: &mut Vec<Decoded>, bytes: Vec<u8>, range: Range<usize>) {
    if let Ok(text) = String::from_utf8(bytes)
        && is_readable(&text)
    {
        all.push(Decoded { text, range });
    }
}

/// Mostly characters that people write.
fn is_readable(text: &str) -> bool {
    let good = text
        .chars()
        .filter(|c| !c.is_control() || c.is_whitespace())
        .count();
    let all = text.chars().count();
    all >= 6 && good * 20 >= all * 19
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Source: RFC 4648, sections 4 and 5; padding is not asked for.
pub(crate) fn base64(digits: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    out
}

fn hexadecimal(digits: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut high = None;
    for digit in digits {
        let Some(value) = char::from(digit).to_digit(16) else {
            continue;
        };
        match high.take() {
            None => high = Some(value),
            Some(upper) => out.push((upper << 4 | value) as u8),
        }
    }
    out
}

/// Length of a run of `%41`, `\x41`, `\u0041` that has at least four of them; plain characters may stand between.
fn escaped_run(bytes: &[u8]) -> usize {
    let (mut at, mut count, mut end) = (0, 0, 0);
    while at < bytes.len() {
        let length = escape_length(&bytes[at..]);
        if length > 0 {
            count += 1;
            at += length;
            end = at;
        } else if bytes[at].is_ascii_graphic() && bytes[at] != b'%' && at - end < 12 {
            at += 1;
        } else {
            break;
        }
    }
    if count >= 4 { end.max(at) } else { 0 }
}

fn escape_length(bytes: &[u8]) -> usize {
    let hex = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match bytes {
        [b'%', ..] if hex(1, 3) => 3,
        [b'\\', b'x', ..] if hex(2, 4) => 4,
        [b'\\', b'u', ..] if hex(2, 6) => 6,
        [b'&', b'#', rest @ ..] => {
            let digits = rest.iter().take(6).take_while(|b| b.is_ascii_digit());
            let digits = digits.count();
            if digits > 0 && rest.get(digits) == Some(&b';') {
                digits + 3
            } else {
                0
            }
        }
        _ => 0,
    }
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = escape_length(&bytes[at..]);
        if length == 0 {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        if bytes[at] == b'&' {
            let code = bytes[at + 2..at + length - 1]
                .iter()
                .fold(0_u32, |n, b| n * 10 + u32::from(b - b'0'));
            let c = char::from_u32(code).unwrap_or(' ');
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            at += length;
            continue;
        }
        let digits = &bytes[at + if bytes[at] == b'%' { 1 } else { 2 }..at + length];
        let code = hexadecimal(digits.iter().copied());
        match code.as_slice() {
            [high, low] => {
                let c = char::from_u32(u32::from(*high) << 8 | u32::from(*low)).unwrap_or(' ');
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            one => out.extend_from_slice(one),
        }
        at += length;
    }
    out
}

/// Digit pairs apart ("69 67 6e") and base64 over several lines.
fn spaced(text: &str, all: &mut Vec<Decoded>) {
    let bytes = text.as_bytes();
    let (mut start, mut pairs, mut end) = (0, 0, 0);
    let (mut line_start, mut lines, mut line_end) = (0, 0, 0);
    let mut close_pairs = |from: usize, to: usize, count: usize| {
        if count >= 8 {
            let plain = text[from..to]
                .split_whitespace()
                .flat_map(|pair| pair.strip_prefix("0x").unwrap_or(pair).bytes());
            push(all, hexadecimal(plain), from..to);
        }
    };
    let mut wrapped = Vec::new();
    for (from, word) in words(text) {
        let pair = word.strip_prefix("0x").unwrap_or(word);
        if pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            if pairs == 0 {
                start = from;
            }
            pairs += 1;
            end = from + word.len();
        } else {
            close_pairs(start, end, pairs);
            pairs = 0;
        }
        let long = word.len() >= 24 && word.trim_end_matches('=').bytes().all(is_base64);
        if long
            || lines > 0
                && word.len() >= 4
                && word.trim_end_matches('=').bytes().all(is_base64)
                && bytes[line_end..from].contains(&b'\n')
        {
            if lines == 0 {
                line_start = from;
            }
            lines += 1;
            line_end = from + word.len();
        } else {
            if lines > 1 {
                wrapped.push(line_start..line_end);
            }
            lines = 0;
        }
    }
    close_pairs(start, end, pairs);
    if lines > 1 {
        wrapped.push(line_start..line_end);
    }
    for range in wrapped {
        push(all, base64(text[range.clone()].bytes()), range);
    }
}

/// Letters of ASCII moved by thirteen.
pub(crate) fn rot13(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
            'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
            c => c,
        })
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        decoded(text).into_iter().map(|d| d.text).collect()
    }

    #[test]
    fn common_encodings_are_read() {
        assert_eq!(
            texts("note: aWdub3JlIGFsbCBydWxlcw== ok"),
            ["ignore all rules"]
        );
        assert_eq!(
            texts("69676e6f726520616c6c2072756c6573"),
            ["ignore all rules"]
        );
        assert_eq!(texts("69 67 6e 6f 72 65 20 61 6c 6c"), ["ignore all"]);
        assert_eq!(texts("%69%67%6e%6f%72%65%20all"), ["ignore all"]);
        assert_eq!(texts(r"\x69\x67\x6e\x6f\x72\x65 x"), ["ignore"]);
        assert_eq!(texts(r"\u0069\u0067\u006e\u006f\u0072\u0065"), ["ignore"]);
        let wrapped = texts("aWdub3JlIGFsbCBydWxlcyBvZiB0\naGUgaG91c2U=");
        assert!(wrapped.contains(&"ignore all rules of the house".to_owned()));
    }

    #[test]
    fn what_is_no_text_gives_none() {
        for text in [
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "an ordinary sentence with internationalisation in it",
            "MCowBQYDK2VwAyEATUdZNZMB/CrC5GUBYvEW/4eR1R80CRLDMqwvVIiDCFg=",
            "100 % of 50 %",
        ] {
            assert_eq!(texts(text), [""; 0], "{text}");
        }
    }
}
