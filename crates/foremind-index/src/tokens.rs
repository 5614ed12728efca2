//! How many tokens a text costs a host's model, estimated from above without a vocabulary.
//!
//! A byte-pair tokenizer first splits a text by character classes and then cuts words that are not in its
//! vocabulary. So each run of one class has a mean cost and a spread, by script, length and a few marks of
//! rare words; the estimate of a line is the sum of the means plus a share of the root of the summed spread,
//! as for any sum of independent terms. English words are cheaper than those of other languages in the same
//! script, so the language of a line is guessed from its function words.
//!
//! Means and spreads were fitted to o200k_base; `tests/tokens.rs` measures what they are worth. All numbers
//! are whole hundredths, so every host gets the same estimate.

use std::collections::HashSet;
use std::sync::OnceLock;

use rustc_hash::FxBuildHasher;

/// Slope and share of the spread: see [`estimate_line`].
const SLOPE_PERCENT: u64 = 103;
const SPREAD_PERCENT: u64 = 28;

/// Estimated tokens of a text. The estimate of lines joined by line breaks is the sum of theirs plus one for
/// each break.
#[must_use]
pub fn estimate(text: &str) -> u32 {
    let mut lines = text.split('\n');
    let first = lines.next().map_or(0, estimate_line);
    lines.fold(first, |sum, line| {
        sum.saturating_add(1).saturating_add(estimate_line(line))
    })
}

/// Estimated tokens of a text without line breaks.
#[must_use]
pub fn estimate_line(line: &str) -> u32 {
    let cost = cost(line, is_english(line));
    // The spread is a variance in hundredths of a squared token, so its root times ten is in hundredths of a
    // token; the factor goes under the root to stay among whole numbers.
    let margin = (SPREAD_PERCENT * SPREAD_PERCENT * cost.spread).isqrt();
    let hundredths = (cost.mean * SLOPE_PERCENT).div_ceil(100) + margin;
    u32::try_from(hundredths.div_ceil(100)).unwrap_or(u32::MAX)
}

/// Mean and variance of a run's tokens, in hundredths.
#[derive(Clone, Copy, Default)]
struct Cost {
    mean: u64,
    spread: u64,
}

impl Cost {
    fn each(count: usize, mean: u64, spread: u64) -> Self {
        let count = count as u64;
        Self {
            mean: count * mean,
            spread: count * spread,
        }
    }
}

/// What the tokenizer never joins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Digit,
    Latin,
    Cyrillic,
    Semitic,
    Indic,
    Han,
    Kana,
    Hangul,
    OtherLetter,
    FarLetter,
    Mark,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Latin,
        ' ' => Class::Space,
        '0'..='9' => Class::Digit,
        _ if c.is_whitespace() => Class::Space,
        _ if c.is_ascii() => Class::Mark,
        '\u{300}'..='\u{36f}' => Class::Latin,
        '\u{64b}'..='\u{652}' => Class::Semitic,
        '\u{900}'..='\u{97f}' => Class::Indic,
        _ if c.is_alphabetic() => match c {
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Class::Latin,
            '\u{370}'..='\u{52f}' => Class::Cyrillic,
            '\u{590}'..='\u{77f}' | '\u{fb1d}'..='\u{feff}' => Class::Semitic,
            '\u{900}'..='\u{dff}' => Class::Indic,
            '\u{3040}'..='\u{30ff}' => Class::Kana,
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => Class::Han,
            '\u{ac00}'..='\u{d7a3}' => Class::Hangul,
            '\u{10000}'.. => Class::FarLetter,
            _ => Class::OtherLetter,
        },
        _ if c.is_numeric() => Class::Digit,
        _ => Class::Mark,
    }
}

fn cost(line: &str, english: bool) -> Cost {
    let chars: Vec<char> = line.chars().collect();
    let mut sum = Cost::default();
    let mut from = 0;
    while from < chars.len() {
        let kind = class(chars[from]);
        let mut to = from + 1;
        while to < chars.len() && class(chars[to]) == kind && !starts_word(kind, &chars, to) {
            to += 1;
        }
        let before = from.checked_sub(1).map(|at| chars[at]);
        let inside = Neighbours {
            before_that: from.checked_sub(2).map(|at| chars[at]),
            before,
            after: chars.get(to).copied(),
        };
        let cost = run_cost(kind, &chars[from..to], inside, english);
        sum.mean += cost.mean;
        sum.spread += cost.spread;
        from = to;
    }
    sum
}

/// The tokenizer cuts words where a capital follows a small letter.
fn starts_word(kind: Class, chars: &[char], at: usize) -> bool {
    kind == Class::Latin && chars[at].is_uppercase() && chars[at - 1].is_lowercase()
}

#[derive(Clone, Copy)]
struct Neighbours {
    before_that: Option<char>,
    before: Option<char>,
    after: Option<char>,
}

fn run_cost(kind: Class, run: &[char], near: Neighbours, english: bool) -> Cost {
    let is_latin = |c: Option<char>| c.is_some_and(|c| class(c) == Class::Latin);
    let length = run.len();
    let by_length =
        |means: &[u64], beyond: u64| means.get(length).copied().unwrap_or(beyond * length as u64);
    match kind {
        Class::Latin => match near.before {
            // The end of a contraction belongs to its word.
            Some('\'') if length <= 2 && is_latin(near.before_that) => Cost::each(1, 20, 15),
            Some('’') if length <= 2 && is_latin(near.before_that) => Cost::each(1, 60, 30),
            _ => word_cost(run, english),
        },
        // A single space belongs to the word behind it, but never to a number.
        Class::Space if run == [' '] && near.after.is_none_or(|c| class(c) != Class::Digit) => {
            Cost::default()
        }
        Class::Space => Cost::each(length.div_ceil(16), 100, 10),
        Class::Digit => Cost::each(length.div_ceil(3), 100, 0),
        Class::Mark => match run {
            ['\''] if is_latin(near.before) && is_latin(near.after) => Cost::each(
                1,
                if english { 0 } else { 70 },
                if english { 5 } else { 25 },
            ),
            ['’'] if is_latin(near.before) && is_latin(near.after) => Cost::each(1, 60, 30),
            _ => run.iter().fold(Cost::default(), |sum, c| {
                let (mean, spread) = match c {
                    '\0'..='\u{1fff}' => (97, 5),
                    '\u{2010}'..='\u{2027}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' => {
                        (100, 12)
                    }
                    '\u{2000}'..='\u{ffff}' => (200, 40),
                    _ => (250, 60),
                };
                Cost {
                    mean: sum.mean + mean,
                    spread: sum.spread + spread,
                }
            }),
        },
        Class::Han => Cost::each(length, 92, 24),
        Class::Kana => Cost::each(length, 85, 16),
        Class::Hangul => Cost {
            mean: by_length(&[0, 120, 185, 252, 350, 460, 560], 93),
            spread: 30 * length as u64,
        },
        Class::Semitic => Cost {
            mean: by_length(&[0, 100, 105, 130, 170, 190, 220, 255, 280], 34),
            spread: 12 * length as u64,
        },
        Class::Indic => Cost {
            mean: by_length(&[0, 100, 115, 150, 160, 190], 42),
            spread: 15 * length as u64,
        },
        Class::Cyrillic => Cost {
            mean: (42 * length as u64).max(100),
            spread: 15 * length as u64,
        },
        Class::OtherLetter => Cost::each(length, 200, 100),
        Class::FarLetter => Cost::each(length, 400, 0),
    }
}

/// Means and spreads of Latin words of 1 to 15 letters; a longer one costs [`FURTHER_LETTER`] more for each.
struct Words {
    means: [u64; 15],
    spreads: [u64; 15],
}

const FURTHER_LETTER: u64 = 50;

const ENGLISH: Words = Words {
    means: [
        100, 100, 100, 100, 102, 105, 108, 113, 120, 130, 140, 155, 190, 240, 260,
    ],
    spreads: [0, 0, 0, 0, 2, 5, 9, 15, 25, 33, 41, 60, 100, 120, 120],
};
/// English words with a common ending, which are rarely cut.
const ENGLISH_DERIVED: Words = Words {
    means: [
        100, 100, 100, 100, 102, 103, 105, 106, 110, 110, 112, 114, 118, 130, 150,
    ],
    spreads: [0, 0, 0, 0, 2, 3, 5, 7, 11, 12, 15, 18, 22, 30, 40],
};
/// English words with letters that learned words have.
const ENGLISH_LEARNED: Words = Words {
    means: [
        100, 100, 100, 100, 102, 110, 118, 122, 130, 140, 165, 215, 230, 270, 300,
    ],
    spreads: [0, 0, 0, 0, 2, 11, 22, 30, 37, 45, 70, 150, 150, 170, 200],
};
/// Words with a capital in an English line.
const ENGLISH_NAME: Words = Words {
    means: [
        100, 100, 103, 107, 114, 121, 133, 142, 150, 165, 200, 225, 250, 280, 320,
    ],
    spreads: [0, 0, 3, 7, 14, 22, 33, 41, 50, 60, 77, 85, 100, 120, 200],
};
/// Words of other languages.
const FOREIGN: Words = Words {
    means: [
        100, 100, 102, 111, 123, 140, 158, 179, 215, 230, 260, 270, 340, 350, 375,
    ],
    spreads: [0, 0, 2, 10, 18, 26, 34, 52, 76, 90, 90, 90, 140, 140, 140],
};
/// And those with letters outside of ASCII.
const ACCENTED: Words = Words {
    means: [
        100, 106, 110, 139, 151, 168, 205, 225, 240, 260, 300, 310, 350, 380, 400,
    ],
    spreads: [
        0, 6, 10, 35, 40, 58, 100, 110, 110, 110, 120, 150, 150, 180, 200,
    ],
};

const COMMON_ENDINGS: [&str; 16] = [
    "ing", "ed", "ly", "er", "ers", "tion", "tions", "ment", "ments", "able", "ness", "ies", "al",
    "ty", "ence", "ance",
];

/// Whether a word in small letters has letters that learned words have.
fn is_learned(word: &[u8]) -> bool {
    (0..word.len()).any(|at| {
        matches!(
            word[at..],
            [b'x' | b'z' | b'q' | b'k', ..]
                | [b'p' | b'r', b'h', ..]
                | [b'y' | b'o', b'l', ..]
                | [b'a' | b'o', b'e', ..]
                | [b'e', b'u', ..]
                | [b'c', b'y', ..]
                | [b'o', b'p', b'a', ..]
                | [b'o', b'i', b'd', ..]
                | [b'i', b'n', b'e', ..]
        )
    })
}

fn word_cost(run: &[char], english: bool) -> Cost {
    let length = run.len();
    let ascii = run.iter().all(char::is_ascii);
    if english && ascii && length > 2 && run.iter().all(|c| c.is_uppercase()) {
        return Cost {
            mean: (50 * length as u64).max(100),
            spread: 30 * length as u64,
        };
    }
    let words = if !ascii {
        &ACCENTED
    } else if !english {
        &FOREIGN
    } else if length > 2 && run[0].is_uppercase() {
        &ENGLISH_NAME
    } else if length >= 6 {
        let word: Vec<u8> = run.iter().map(|c| c.to_ascii_lowercase() as u8).collect();
        if COMMON_ENDINGS
            .iter()
            .any(|end| word.ends_with(end.as_bytes()))
        {
            &ENGLISH_DERIVED
        } else if is_learned(&word) {
            &ENGLISH_LEARNED
        } else {
            &ENGLISH
        }
    } else {
        &ENGLISH
    };
    let place = length.min(words.means.len()) - 1;
    let further = FURTHER_LETTER * (length - place - 1) as u64;
    Cost {
        mean: words.means[place] + further,
        spread: words.spreads[place] + further,
    }
}

/// Function words of English that other languages lack.
const ENGLISH_WORDS: &str = "the and my of to for it its that with i you your are this these he she they his her their our we don doesn can won isn not from what how has had have been did does which who when why where by without since if there two was were will would should could any some at be but or out up off all every then than now just only like get got need until after before really do here no go give";
/// Function words of other languages in the same script.
const FOREIGN_WORDS: &str = "der die das und ich ist nicht mit ein eine zu den auf von im fur le la les des et je un une est pas que du en il elle mon ma mes el los las y mi se con por para una es lo ho di che e non sono per della o os da um uma meu minha em na com nao eu";

type WordSet = HashSet<&'static str, FxBuildHasher>;

/// The words of both lists.
fn function_words() -> &'static (WordSet, WordSet) {
    static WORDS: OnceLock<(WordSet, WordSet)> = OnceLock::new();
    WORDS.get_or_init(|| {
        let set = |words: &'static str| words.split(' ').collect();
        (set(ENGLISH_WORDS), set(FOREIGN_WORDS))
    })
}

/// Whether a line's function words are English.
fn is_english(line: &str) -> bool {
    let (of_english, of_others) = function_words();
    let (mut words, mut english, mut foreign) = (0, 0, 0);
    let (mut letters, mut far_letters) = (0, 0);
    let mut key = String::new();
    for word in line.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        words += 1;
        let of_word = word.chars().filter(|c| c.is_alphabetic()).count();
        letters += of_word;
        if !word.is_ascii() {
            far_letters += word
                .chars()
                .filter(|c| c.is_alphabetic() && !c.is_ascii())
                .count();
            continue;
        }
        key.clear();
        key.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        let gerund = of_word > 5 && key.ends_with("ing");
        if gerund || (of_word < 9 && of_english.contains(key.as_str())) {
            english += 1;
        } else if of_word < 9 && of_others.contains(key.as_str()) {
            foreign += 1;
        }
    }
    english > foreign && english * 12 >= words && far_letters * 2 <= letters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_estimate_of_lines_is_the_sum_of_theirs() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("\n"), 1);
        let lines = [
            "<memory>",
            "- allergy: \"nuts\" (user, 2026-11-29)",
            "",
            "花生",
        ];
        let sum: u32 = lines.iter().map(|line| estimate_line(line)).sum();
        assert_eq!(estimate(&lines.join("\n")), sum + 3);
    }

    #[test]
    fn english_is_told_from_other_languages() {
        for line in [
            "I'm allergic to tree nuts",
            "That's really helpful!",
            "Do you think so?",
        ] {
            assert!(is_english(line), "{line}");
        }
        for line in [
            "Soy alérgico a las nueces",
            "Ich esse kein Fleisch",
            "花生过敏",
            "",
            "42",
        ] {
            assert!(!is_english(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn words_never_make_a_line_cheaper(line in "[a-zé花 ]{0,30}", word in "[a-z]{1,20}") {
            // Within one guess of the language.
            let costs = |text: &str| cost(text, true).mean;
            let longer = format!("{} {}", line, word);
            prop_assert!(costs(&longer) >= costs(&line));
        }

        #[test]
        fn any_text_has_an_estimate(text in any::<String>()) {
            let tokens = estimate(&text);
            prop_assert!(tokens as usize <= 4 * text.chars().count() + 4);
            prop_assert!(text.is_empty() || tokens > 0 || text.trim_matches(' ').is_empty());
        }
    }
}
