//! From text to terms, the same for records and queries: case folded, accents stripped, words by UAX #29,
//! function words left out, English plurals folded; scripts written without spaces (Han, Kana, Hangul, Thai,
//! Lao, Khmer, Burmese) as overlapping pairs of characters, which needs no dictionary.

use std::collections::HashSet;
use std::sync::OnceLock;

use foldhash::fast::FixedState;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Longest term kept, in characters; the rest of a longer word is ignored.
const TERM_CHARS: usize = 40;

static STOPWORDS: &str = include_str!("../data/stopwords.txt");

/// Case folded, accents stripped, compatibility forms folded.
#[must_use]
pub fn normalise(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars()
        .flat_map(char::to_lowercase)
        .nfkd()
        .filter(|c| !is_accent(*c))
        .nfc()
        .fold(String::with_capacity(text.len()), |mut folded, c| {
            match c {
                'ß' => folded.push_str("ss"),
                'æ' => folded.push_str("ae"),
                'œ' => folded.push_str("oe"),
                'ø' => folded.push('o'),
                'ł' => folded.push('l'),
                'đ' => folded.push('d'),
                'ı' => folded.push('i'),
                'ς' => folded.push('σ'),
                _ => folded.push(c),
            }
            folded
        })
}

/// The terms of a text in order, repetitions included.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_term(text, |term| found.push(term.to_owned()));
    found
}

/// Calls `found` with each of the [`terms`], without a string for each: every text is read once when a memory opens.
pub(crate) fn each_term(text: &str, mut found: impl FnMut(&str)) {
    let text = normalise(text);
    if text.is_ascii() {
        words(&text, &mut found);
        return;
    }
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let dense = is_dense(first);
        let end = rest
            .char_indices()
            .find(|(_, c)| is_dense(*c) != dense)
            .map_or(rest.len(), |(at, _)| at);
        let (run, after) = rest.split_at(end);
        if dense {
            pairs(run, &mut found);
        } else {
            words(run, &mut found);
        }
        rest = after;
    }
}

fn words(run: &str, found: &mut impl FnMut(&str)) {
    let stopwords = stopwords();
    for word in run.unicode_words() {
        // "don't" and "l'eau" are one word of UAX #29; their halves are what texts share.
        for part in word.split(['\'', '’']) {
            let part = match part.char_indices().nth(TERM_CHARS) {
                Some((end, _)) => &part[..end],
                None => part,
            };
            if !part.is_empty() && !stopwords.contains(part) {
                singular(part, found);
            }
        }
    }
}

/// Overlapping pairs; Han characters also alone, since many are words.
fn pairs(run: &str, found: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    let end = |nth: usize| starts.get(nth).copied().unwrap_or(run.len());
    if starts.len() == 1 {
        found(run);
        return;
    }
    for (nth, c) in run.chars().enumerate() {
        if is_han(c) {
            found(&run[starts[nth]..end(nth + 1)]);
        }
    }
    for nth in 1..starts.len() {
        found(&run[starts[nth - 1]..end(nth + 1)]);
    }
}

/// The weak stemmer S of D. Harman, "How Effective is Suffixing?", 1991: English plurals only. Words of other
/// languages that end alike are folded on both sides, which costs little.
fn singular(word: &str, found: &mut impl FnMut(&str)) {
    let plain = word.len() > 3 && word.bytes().all(|b| b.is_ascii_lowercase());
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if !plain || !word.ends_with('s') || ends_in(&["us", "ss"]) {
        found(word);
    } else if word.ends_with("ies") && !ends_in(&["eies", "aies"]) {
        found(&format!("{}y", &word[..word.len() - 3]));
    } else {
        found(&word[..word.len() - 1]);
    }
}

fn stopwords() -> &'static HashSet<&'static str, FixedState> {
    static SET: OnceLock<HashSet<&'static str, FixedState>> = OnceLock::new();
    SET.get_or_init(|| {
        STOPWORDS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(": "))
            .flat_map(|(_, words)| words.split(' '))
            .collect()
    })
}

/// Marks that readers leave out when they type in a hurry. Vowel signs of Indic scripts, Thai tones and the
/// voicing marks of Kana are not among them: they make other words.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{652}' | '\u{670}' | '\u{640}')
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_dense(c: char) -> bool {
    is_han(c)
        || matches!(c, '\u{3041}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '々')
        || matches!(c, '\u{ac00}'..='\u{d7a3}')
        || matches!(c, '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ece}')
        || matches!(c, '\u{1000}'..='\u{1049}' | '\u{1780}'..='\u{17d3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(terms(text), expected, "{text}");
    }

    #[test]
    fn words_lose_case_accents_and_plural() {
        check(
            "My CATS ate Crème Brûlées!",
            &["cat", "ate", "creme", "brulee"],
        );
        check(
            "the allergies of a bus in trees",
            &["allergy", "bus", "tree"],
        );
        check("Straße in Łódź", &["strasse", "lodz"]);
        check("don't, l'eau", &["l", "eau"]);
    }

    #[test]
    fn numbers_and_codes_stay_whole() {
        check("HbA1c 7.2 B12", &["hba1c", "7.2", "b12"]);
    }

    #[test]
    fn dense_scripts_become_pairs() {
        check(
            "花生过敏",
            &["花", "生", "过", "敏", "花生", "生过", "过敏"],
        );
        check("猫", &["猫"]);
        check("ナッツ", &["ナッ", "ッツ"]);
        check("땅콩 알레르기", &["땅콩", "알레", "레르", "르기"]);
        check("แพ้ถั่ว", &["แพ", "พ้", "้ถ", "ถั", "ั่", "่ว"]);
    }

    #[test]
    fn voiced_kana_differ_from_unvoiced() {
        assert_ne!(terms("がき"), terms("かき"));
    }

    #[test]
    fn function_words_alone_give_no_terms() {
        for text in [
            "what is it that I have?",
            "was ist das",
            "¿qué es esto?",
            "...",
        ] {
            assert!(
                terms(text).iter().all(|t| t == "was" || t == "que"),
                "{text}: {:?}",
                terms(text)
            );
        }
        assert!(terms("what is it that I have?").is_empty());
    }

    #[test]
    fn the_stopword_file_is_in_normal_form() {
        for word in stopwords() {
            assert_eq!(normalise(word), *word);
        }
    }
}
