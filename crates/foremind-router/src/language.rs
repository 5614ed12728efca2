//! Whether a statement is English: the heads on the encoder were trained on English, the n-gram head on ten other languages as
//! well. A guess by function words, which for one statement is right more often than letters are; in doubt, English.

use foremind_types::small::SmallSet;

use crate::data::{LineError, each_line, table_file};
use foremind_types::data::File;

/// The data file.
pub(crate) const FILE: File = table_file!("function_words.tsv");

/// Function words of English, and of the other languages that are written in Latin letters.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionWords {
    english: SmallSet<&'static str>,
    others: SmallSet<&'static str>,
}

impl FunctionWords {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(file: &'static str, text: &'static str) -> (Self, Vec<LineError>) {
        let mut table = Self::default();
        let errors = each_line(file, text, &mut |line| {
            let (language, words) = line
                .split_once('\t')
                .ok_or("expected a language and words, separated by a tab")?;
            let set = if language == "en" {
                &mut table.english
            } else {
                &mut table.others
            };
            for word in words.split(',') {
                set.insert(word.trim());
            }
            Ok(())
        });
        // What another language has too tells nothing.
        table.others.retain(|word| !table.english.contains(word));
        (table, errors)
    }

    /// Whether a text is English, as far as its function words and letters tell. Looks at the first 200 words.
    pub(crate) fn is_english(&self, text: &str) -> bool {
        let (mut english, mut others, mut foreign) = (0, 0, 0);
        let mut lower = String::new();
        let words = text
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}')
            .filter(|word| !word.is_empty());
        for word in words.take(200) {
            lower.clear();
            for c in word.chars().flat_map(char::to_lowercase) {
                lower.push(if c == '\u{2019}' { '\'' } else { c });
            }
            if self.english.contains(lower.as_str()) {
                english += 1;
            } else if self.others.contains(lower.as_str()) {
                others += 1;
            } else if lower.chars().any(|c| c.is_alphabetic() && !c.is_ascii()) {
                // Halves: names keep their accents in any language.
                foreign += if is_latin(&lower) { 1 } else { 8 };
            }
        }
        2 * english >= 2 * others + foreign
    }
}

/// Whether all letters are of the Latin script: basic, supplement, extended A and B, additional.
fn is_latin(word: &str) -> bool {
    word.chars()
        .all(|c| !c.is_alphabetic() || matches!(u32::from(c), 0..=0x24f | 0x1e00..=0x1eff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        let (words, errors) = FunctionWords::read(FILE.name, FILE.text());
        assert_eq!(errors, []);
        for text in [
            "We redid the kitchen in marble",
            "allergic to nuts",
            "Peanuts, no.",
            "I’m vegan",
            "the café on the corner is run by my cousin",
            "My naïve cousin José moved to Málaga",
            "",
            "42",
        ] {
            assert!(words.is_english(text), "{text}");
        }
        for text in [
            "Soy alérgica a los frutos secos",
            "Ich vertrage keine Laktose",
            "Je ne mange pas de porc",
            "Non posso mangiare glutine",
            "Não posso comer amendoim",
            "ナッツにアレルギーがあります",
            "我对花生过敏",
            "У меня аллергия",
            "我吃 vegan 的东西 and nothing else 因为过敏",
        ] {
            assert!(!words.is_english(text), "{text}");
        }
    }
}
