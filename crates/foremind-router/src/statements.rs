//! Splits a turn into statements.

use foremind_types::limits::{STATEMENT_BYTES, STATEMENTS_PER_TURN, TURN_BYTES};

/// A sentence that leans on the one before by a pronoun is kept with it up to this size.
const JOINED_BYTES: usize = 400;

/// Abbreviations whose full stop ends no sentence, in lower case without the stop.
const ABBREVIATIONS: &[&str] = &[
    "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "eg", "ie", "approx", "vol", "fig",
    "ltd", "jr", "sr", "dept", "mt", "ave", "a.m", "p.m", "u.s", "u.k", "sra", "dra", "sig", "hr",
    "fr", "bzw", "z.b", "usw", "ca", "nr", "av", "mme", "mlle",
];

/// Pronouns that need the sentence before to be understood.
const LEANING: &[&str] = &[
    "he", "she", "they", "he's", "she's", "they're", "his", "her", "their", "hers", "both",
];

/// After so many statements the rest of the turn is cut by size alone, so that all of it finds a place
/// within [`STATEMENTS_PER_TURN`].
const SENTENCES: usize = STATEMENTS_PER_TURN - 2 * TURN_BYTES / STATEMENT_BYTES;

/// Statements of a turn: slices of it, trimmed, each with a letter or digit, in order, without overlap, at
/// most [`STATEMENTS_PER_TURN`] and each at most [`STATEMENT_BYTES`] long. Nothing of a turn of at most
/// [`TURN_BYTES`] is left out. Linear in the turn.
pub(crate) fn split(turn: &str) -> Vec<&str> {
    let mut out: Vec<core::ops::Range<usize>> = Vec::new();
    // Whether the last statement may take up a sentence that leans on it.
    let mut open = false;
    let mut start = 0;
    let mut chars = turn.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, c)| *c);
        let full = end - start >= STATEMENT_BYTES - 4;
        let newline = matches!(c, '\n' | '\r');
        let stop = match c {
            '。' | '！' | '？' | '।' | '॥' | '۔' | '؟' | '．' => true,
            '!' | '?' | '…' => next.is_none_or(ends_after),
            '.' => next.is_none_or(ends_after) && !abbreviated(&turn[start..at]),
            _ => false,
        };
        // Closing quotes and repeated marks belong to the sentence that they end.
        let more = stop
            && next.is_some_and(|n| {
                matches!(
                    n,
                    '.' | '!' | '?' | '…' | '。' | '！' | '？' | '"' | '”' | '’' | ')' | '」' | '»'
                )
            });
        let sentence = (stop && !more) || newline || closes(turn, start, at, c, next);
        // By size: at the first white space past half of the limit, so that no word is cut.
        let half = c.is_whitespace() && end - start >= STATEMENT_BYTES / 2;
        if full
            || (if out.len() < SENTENCES {
                sentence
            } else {
                half
            })
        {
            push(turn, start..end, &mut out, &mut open);
            if newline {
                open = false;
            }
            start = end;
        }
    }
    push(turn, start..turn.len(), &mut out, &mut open);
    out.truncate(STATEMENTS_PER_TURN);
    out.into_iter().filter_map(|r| turn.get(r)).collect()
}

/// What may stand after the mark that ends a sentence.
fn ends_after(next: char) -> bool {
    next.is_whitespace()
        || matches!(
            next,
            '"' | '”' | '’' | ')' | '.' | '!' | '?' | '…' | '」' | '»'
        )
        || ('\u{3040}'..='\u{9fff}').contains(&next)
}

/// A closing mark after the mark that ends a sentence, before white space.
fn closes(turn: &str, start: usize, at: usize, c: char, next: Option<char>) -> bool {
    matches!(c, '"' | '”' | '’' | ')' | '」' | '»')
        && next.is_none_or(char::is_whitespace)
        && turn[start..at].ends_with(['.', '!', '?', '…', '。', '！', '？'])
}

/// Whether the text before a full stop ends in an abbreviation or a list number.
fn abbreviated(before: &str) -> bool {
    let tail = before
        .char_indices()
        .rev()
        .take(8)
        .find(|(_, c)| c.is_whitespace() || *c == '(')
        .map_or_else(
            || {
                if before.chars().count() <= 8 {
                    before
                } else {
                    ""
                }
            },
            |(at, c)| &before[at + c.len_utf8()..],
        );
    let word = tail.to_lowercase();
    let single = word.chars().count() == 1 && word != "i" && word.chars().all(char::is_alphabetic);
    let number = word.len() <= 3 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let listed = number && before.trim_start().len() == word.len();
    single || listed || ABBREVIATIONS.contains(&word.as_str())
}

/// Adds a range, trimmed of white space and list marks; empty ones are dropped, leaning ones joined.
fn push(
    turn: &str,
    range: core::ops::Range<usize>,
    out: &mut Vec<core::ops::Range<usize>>,
    open: &mut bool,
) {
    let Some(slice) = turn.get(range.clone()) else {
        return;
    };
    let mark =
        |c: char| c.is_whitespace() || matches!(c, '-' | '*' | '•' | '–' | '—' | '>' | '#' | '·');
    let left = slice.trim_start_matches(mark);
    let start = range.end - left.len();
    let text = left.trim_end();
    if !text.chars().any(char::is_alphanumeric) {
        return;
    }
    let range = start..start + text.len();
    let first = text.split_whitespace().next().unwrap_or_default();
    let first = first
        .trim_end_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
        .replace('’', "'");
    if let Some(last) = out.last_mut()
        && *open
        && LEANING.contains(&first.as_str())
        && range.end - last.start <= JOINED_BYTES
    {
        last.end = range.end;
        return;
    }
    *open = !text.ends_with(['?', '？', '؟']);
    out.push(range);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(turn: &str, expected: &[&str]) {
        assert_eq!(split(turn), expected, "{turn:?}");
    }

    #[test]
    fn sentences() {
        check(
            "Hi there. I'm diabetic! Any ideas?",
            &["Hi there.", "I'm diabetic!", "Any ideas?"],
        );
        check(
            "Dr. Patel put me on 2.5 mg of warfarin.",
            &["Dr. Patel put me on 2.5 mg of warfarin."],
        );
        check(
            "e.g. nuts. Wait... what?!",
            &["e.g. nuts.", "Wait...", "what?!"],
        );
        check(
            "He said \"stop.\" I went.",
            &["He said \"stop.\"", "I went."],
        );
        check(
            "see example.com/a.b for it",
            &["see example.com/a.b for it"],
        );
    }

    #[test]
    fn lists_and_lines() {
        check(
            "- no pork\n* no wine\n\n1. I drive\n2. I cycle",
            &["no pork", "no wine", "1. I drive", "2. I cycle"],
        );
        check("", &[]);
        check(" \n --- \n🎉\n", &[]);
    }

    #[test]
    fn other_scripts() {
        check(
            "卵アレルギーです。明日は晴れ？はい",
            &["卵アレルギーです。", "明日は晴れ？", "はい"],
        );
        check("मैं शाकाहारी हूँ। धन्यवाद।", &["मैं शाकाहारी हूँ।", "धन्यवाद।"]);
        check("هل هذا آمن؟ لدي حساسية.", &["هل هذا آمن؟", "لدي حساسية."]);
    }

    #[test]
    fn a_leaning_sentence_stays_with_the_one_it_leans_on() {
        check(
            "My daughter starts school. She can't have gluten. The sun is out.",
            &[
                "My daughter starts school. She can't have gluten.",
                "The sun is out.",
            ],
        );
        check(
            "Is she well? She is five.",
            &["Is she well?", "She is five."],
        );
    }

    #[test]
    fn bounds_hold() {
        let many = "I eat. ".repeat(STATEMENTS_PER_TURN * 2);
        let statements = split(&many);
        assert!(statements.len() <= STATEMENTS_PER_TURN);
        let words = |text: &str| text.split_whitespace().count();
        assert_eq!(
            statements.iter().map(|s| words(s)).sum::<usize>(),
            words(&many)
        );
        let long = "é".repeat(STATEMENT_BYTES * 2);
        assert!(split(&long).iter().all(|s| s.len() <= STATEMENT_BYTES));
        assert_eq!(split(&long).concat(), long);
    }
}
