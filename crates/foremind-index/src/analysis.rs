//! From text to terms, the same for records and queries: case folded, accents stripped, words by UAX #29,
//! function words left out, endings cut off; identifiers also whole; scripts written without spaces (Han, Kana, Hangul, Thai,
//! Lao, Khmer, Burmese) as overlapping pairs of characters, which needs no dictionary.

use std::collections::HashSet;
use std::sync::OnceLock;

use foremind_unicode::{Equivalence, compose, decompose};
use rustc_hash::FxBuildHasher;
use unicode_segmentation::UnicodeSegmentation;

/// Longest term kept, in characters; the rest of a longer word is ignored.
const TERM_CHARS: usize = 40;

/// Least letters of a stem; an English plural may leave one less.
const STEM_CHARS: usize = 4;
/// Longest ending of the list.
const ENDING_CHARS: usize = 8;
/// How often an ending is cut: "organisations" has three.
const STEM_ROUNDS: usize = 3;
/// Longest identifier kept whole.
const IDENTIFIER_BYTES: usize = 80;

static STOPWORDS: &str = include_str!("../data/stopwords.txt");
static ENDINGS: &str = include_str!("../data/suffixes.txt");

type Words = HashSet<&'static str, FxBuildHasher>;

/// The endings, and which lengths to look for.
struct Endings {
    words: Words,
    /// For each last byte, a bit for each length in bytes that an ending with it has.
    lengths: [u32; 256],
}

impl Endings {
    /// Whether the end of `word` from the byte `at` on is an ending.
    fn have(&self, word: &str, at: usize) -> bool {
        let last = word.as_bytes().last().copied().unwrap_or(0);
        let length = word.len() - at;
        let some = self.lengths[usize::from(last)] >> length.min(31) & 1 == 1;
        some && word
            .get(at..)
            .is_some_and(|ending| self.words.contains(ending))
    }
}

/// Case folded, accents stripped, compatibility forms folded.
#[must_use]
pub fn normalise(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.chars().flat_map(char::to_lowercase);
    let mut chars = decompose(lower, Equivalence::Compatible);
    chars.retain(|c| !is_accent(*c));
    compose(&mut chars);
    let mut folded = String::with_capacity(text.len());
    for c in chars {
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
    }
    folded
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
    identifiers(run, found);
    for word in run.unicode_words() {
        // "don't" and "l'eau" are one word of UAX #29; their halves are what texts share.
        for part in word.split(['\'', '’']) {
            let part = match part.char_indices().nth(TERM_CHARS) {
                Some((end, _)) => &part[..end],
                None => part,
            };
            if !part.is_empty() && !stopwords.contains(part) {
                stem(part, found);
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

/// The word without its endings. Words with digits stay as they are.
fn stem(word: &str, found: &mut impl FnMut(&str)) {
    let endings = endings();
    let mut stem = word;
    if word.chars().all(char::is_alphabetic) {
        for _ in 0..STEM_ROUNDS {
            let Some(shorter) = cut(stem, endings) else {
                break;
            };
            stem = shorter;
        }
    }
    found(stem);
}

/// Without the longest ending that leaves enough, and without half of the double consonant that is left: "running", "run".
fn cut<'w>(word: &'w str, endings: &Endings) -> Option<&'w str> {
    let letters = if word.is_ascii() {
        word.len()
    } else {
        word.chars().count()
    };
    let starts = word.char_indices().skip(STEM_CHARS - 1);
    let stem = starts.zip(STEM_CHARS - 1..).find_map(|((at, _), left)| {
        let plural = &word[at..] == "s";
        let enough = left >= STEM_CHARS || plural;
        let kept = plural && word[..at].ends_with(['s', 'u']);
        (letters - left <= ENDING_CHARS && enough && !kept && endings.have(word, at))
            .then_some(&word[..at])
    })?;
    let mut last = stem.chars().rev();
    let double = last.next() == last.next() && !stem.ends_with(['l', 's', 'z']);
    match (
        double && stem.len() > STEM_CHARS - 1,
        stem.char_indices().last(),
    ) {
        (true, Some((at, _))) => Some(&stem[..at]),
        _ => Some(stem),
    }
}

/// What has digits or marks inside, as it stands between spaces: a host, an address, an account or order number. Its parts are terms
/// as well, but only the whole is the same thing.
fn identifiers(run: &str, found: &mut impl FnMut(&str)) {
    for token in run.split_whitespace() {
        // Most words end here.
        if token.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            continue;
        }
        let token = token.trim_matches(|c: char| !c.is_alphanumeric());
        let inner = token.contains(['.', '-', '_', '/', '@', ':', '#', '+']);
        let named = token.contains('@') || token.contains(|c: char| c.is_ascii_digit());
        let dotted = token.matches('.').count() > 1 || token.contains("//");
        let number = token.chars().all(|c| c.is_ascii_digit() || c == '.');
        if inner && (named || dotted) && !number && token.len() <= IDENTIFIER_BYTES {
            let mut whole = String::from("=");
            whole.push_str(token);
            found(&whole);
        }
    }
}

fn endings() -> &'static Endings {
    static SET: OnceLock<Endings> = OnceLock::new();
    SET.get_or_init(|| {
        let words = listed(ENDINGS);
        let mut lengths = [0; 256];
        for ending in &words {
            if let Some(last) = ending.as_bytes().last() {
                lengths[usize::from(*last)] |= 1 << ending.len().min(31);
            }
        }
        Endings { words, lengths }
    })
}

fn stopwords() -> &'static Words {
    static SET: OnceLock<Words> = OnceLock::new();
    SET.get_or_init(|| listed(STOPWORDS))
}

/// The words of a data file, each line of which begins with the language.
fn listed(file: &'static str) -> Words {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, words)| words.split(' '))
        .collect()
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
    fn words_lose_case_accents_and_endings() {
        check(
            "My CATS ate Crème Brûlées!",
            &["cat", "ate", "crem", "brul"],
        );
        check("a bus, glass", &["bus", "glass"]);
        check("Straße in Łódź", &["strass", "lodz"]);
        check("don't, l'eau", &["l", "eau"]);
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        for forms in [
            "allergy allergies allergic",
            "run runs running",
            "paint painted painting paintings painter",
            "nation national nations",
            "organization organizations organized",
            "house houses",
            "Wohnung Wohnungen",
            "Krankheit Krankheiten",
            "maison maisons",
            "cancion canción canciones",
            "abogado abogados abogada",
            "viagem viagens",
            "ragazzo ragazzi ragazza",
            "книга книги книгу книгами",
            "врача врачу врачи",
            "σκυλος σκυλου σκυλο",
        ] {
            let forms = terms(forms);
            assert!(forms.windows(2).all(|pair| pair[0] == pair[1]), "{forms:?}");
        }
        for (one, other) in [
            ("nurse", "nut"),
            ("march", "market"),
            ("house", "horse"),
            ("anna", "anne"),
        ] {
            assert_ne!(terms(one), terms(other));
        }
    }

    #[test]
    fn numbers_and_codes_stay_whole() {
        check("HbA1c 7.2 B12", &["hba1c", "7.2", "b12"]);
        check("order AC-4431.", &["=ac-4431", "order", "ac", "4431"]);
        assert!(terms("ask db-7.example.com").contains(&"=db-7.example.com".to_owned()));
        assert!(terms("mail ada@example.com, please").contains(&"=ada@example.com".to_owned()));
        assert!(
            terms("well-known and/or")
                .iter()
                .all(|term| !term.starts_with('='))
        );
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
    fn the_data_files_are_in_normal_form() {
        for word in stopwords().iter().chain(&endings().words) {
            assert_eq!(normalise(word), *word);
        }
        let longest = endings()
            .words
            .iter()
            .map(|ending| ending.chars().count())
            .max();
        assert_eq!(longest, Some(ENDING_CHARS));
    }
}
