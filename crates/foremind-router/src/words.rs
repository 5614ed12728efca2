//! Text as words: folded for comparison, with the place of each in the text.
//!
//! Folding is lower case, straight apostrophes, Latin letters without accents, no invisible characters.
//! Latin, Cyrillic, Arabic and Devanagari words are runs of letters and digits; Han, Kana and Hangul become
//! one word for each character, so that phrases of the lexicon match inside unspaced text.

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap(u8);

impl Gap {
    /// Comma, semicolon, colon, dash or bracket: a new clause may begin.
    pub(crate) const CLAUSE: Self = Self(1);
    /// Full stop, exclamation or question mark, or a line break: a new sentence begins.
    pub(crate) const SENTENCE: Self = Self(2);
    /// A question mark stood before the word.
    pub(crate) const QUESTION: Self = Self(4);
    /// Nothing at all: the words touch (Han, Kana, Hangul).
    pub(crate) const JOINED: Self = Self(8);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// One word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    folded: (u32, u32),
    /// Byte range in the text.
    pub(crate) at: (u32, u32),
    /// What stands before it.
    pub(crate) before: Gap,
    /// Whether it stands inside quotation marks.
    pub(crate) quoted: bool,
}

/// A text as words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    folded: String,
    words: Vec<Word>,
    /// What stands after the last word.
    pub(crate) end: Gap,
}

impl Words {
    /// Reads a text; linear in its length.
    pub(crate) fn of(text: &str) -> Self {
        let mut out = Self {
            folded: String::with_capacity(text.len()),
            words: Vec::with_capacity(text.len() / 5 + 1),
            end: Gap::default(),
        };
        let mut gap = Gap::SENTENCE;
        let mut open: Option<Word> = None;
        let quotes = quotations(text);
        let mut quote = 0;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let end = at + c.len_utf8();
            while quotes.get(quote).is_some_and(|q| q.end <= at) {
                quote += 1;
            }
            if is_ignored(c) {
                continue;
            }
            let in_word = is_word(c)
                || (is_apostrophe(c)
                    && open.is_some()
                    && chars.peek().is_some_and(|(_, n)| n.is_alphabetic()));
            if !in_word {
                out.close(&mut open);
                match c {
                    '.' | '!' | '\n' | '\r' | '。' | '！' | '…' | '।' | '॥' | '۔' | '．' => {
                        gap.add(Gap::SENTENCE)
                    }
                    '?' | '？' | '؟' => {
                        gap.add(Gap::SENTENCE);
                        gap.add(Gap::QUESTION);
                    }
                    ',' | ';' | ':' | '(' | ')' | '[' | ']' | '—' | '–' | '、' | '，' | '；'
                    | '：' | '،' | '؛' | '/' | '|' => gap.add(Gap::CLAUSE),
                    '-' if gap == Gap::default()
                        && !chars.peek().is_some_and(|(_, n)| is_word(*n)) =>
                    {
                        gap.add(Gap::CLAUSE)
                    }
                    _ => {}
                }
                if gap == Gap::JOINED {
                    gap = Gap::default();
                }
                continue;
            }
            let single = is_single(c);
            if single {
                if open.is_some() {
                    out.close(&mut open);
                    gap = Gap::JOINED;
                }
            } else if open.is_some_and(|w| is_single_word(&out.folded, w)) {
                out.close(&mut open);
                gap = Gap::JOINED;
            }
            let word = match &mut open {
                Some(word) => word,
                none => {
                    if !out.folded.is_empty() {
                        out.folded.push(' ');
                    }
                    let from = out.folded.len() as u32;
                    none.insert(Word {
                        folded: (from, from),
                        at: (at as u32, at as u32),
                        before: gap,
                        quoted: quotes.get(quote).is_some_and(|q| q.contains(&at)),
                    })
                }
            };
            gap = Gap::default();
            fold(c, &mut out.folded);
            word.folded.1 = out.folded.len() as u32;
            word.at.1 = end as u32;
        }
        out.close(&mut open);
        out.end = gap;
        out
    }

    fn close(&mut self, open: &mut Option<Word>) {
        self.words.extend(open.take());
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word's place; `at` must be below `len`.
    pub(crate) fn word(&self, at: usize) -> &Word {
        &self.words[at]
    }

    /// The folded word, or "" outside the text.
    pub(crate) fn folded(&self, at: usize) -> &str {
        self.phrase(at, at + 1)
    }

    /// The folded words `from..to` with one space between them, or "" outside the text.
    pub(crate) fn phrase(&self, from: usize, to: usize) -> &str {
        match (self.words.get(from), self.words.get(to.wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => {
                &self.folded[first.folded.0 as usize..last.folded.1 as usize]
            }
            _ => "",
        }
    }

    /// Byte range of the words `from..to` in the text.
    pub(crate) fn range(&self, from: usize, to: usize) -> core::ops::Range<usize> {
        match (self.words.get(from), self.words.get(to.wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => first.at.0 as usize..last.at.1 as usize,
            _ => 0..0,
        }
    }
}

/// Byte ranges between quotation marks that open *and* close, in order, without overlap. An apostrophe
/// counts as a mark only where no letter touches it on the outer side.
fn quotations(text: &str) -> Vec<core::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, c)| *c);
        match open {
            None => {
                let close = match c {
                    '"' => Some('"'),
                    '“' | '„' => Some('”'),
                    '«' => Some('»'),
                    '「' => Some('」'),
                    '『' => Some('』'),
                    '\'' if !before.is_alphanumeric() && after.is_alphanumeric() => Some('\''),
                    '‘' if !before.is_alphanumeric() => Some('’'),
                    _ => None,
                };
                open = close.map(|close| (at, close));
            }
            Some((from, close)) => {
                let closes = c == close || (close == '”' && c == '“');
                let inside = matches!(close, '\'' | '’') && after.is_alphanumeric();
                if closes && !inside {
                    found.push(from..at);
                    open = None;
                }
            }
        }
        before = c;
    }
    found
}

fn is_single_word(folded: &str, word: Word) -> bool {
    folded[word.folded.0 as usize..word.folded.1 as usize]
        .chars()
        .next()
        .is_some_and(is_single)
}

/// Invisible characters and Arabic vowel signs: never part of a comparison.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        | '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{640}' | '\u{fe0f}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | 'ʼ' | '‘' | '`')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{900}'..='\u{963}' | '\u{966}'..='\u{97f}')
}

/// Characters that are words of their own: Kana, Han, Hangul.
fn is_single(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Folds one character into `out`.
fn fold(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
        return;
    }
    if is_apostrophe(c) {
        out.push('\'');
        return;
    }
    for low in c.to_lowercase() {
        match low {
            'à'..='å' | 'ā' | 'ă' | 'ą' => out.push('a'),
            'ç' | 'ć' | 'č' => out.push('c'),
            'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => out.push('e'),
            'ì'..='ï' | 'ī' | 'į' => out.push('i'),
            'ñ' | 'ń' | 'ň' => out.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => out.push('o'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => out.push('u'),
            'ý' | 'ÿ' => out.push('y'),
            'ß' => out.push_str("ss"),
            'œ' => out.push_str("oe"),
            'æ' => out.push_str("ae"),
            'š' | 'ś' => out.push('s'),
            'ž' | 'ź' | 'ż' => out.push('z'),
            'أ' | 'إ' | 'آ' => out.push('ا'),
            'ى' => out.push('ي'),
            '\u{300}'..='\u{36f}' => {}
            _ => out.push(low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let words = Words::of(text);
        let shown: Vec<_> = (0..words.len()).map(|i| words.folded(i)).collect();
        assert_eq!(shown.join("|"), expected);
    }

    #[test]
    fn folds_and_splits() {
        check("I’m ALLERGIC to tree-nuts.", "i'm|allergic|to|tree|nuts");
        check("Soy alérgico; Œuf", "soy|alergico|oeuf");
        check("薬を飲む", "薬|を|飲|む");
        check("al\u{200b}ler\u{ad}gic 'quoted'", "allergic|quoted");
        check("मैं शाकाहारी हूँ।", "मैं|शाकाहारी|हूँ");
        check("비자가 나왔어요", "비|자|가|나|왔|어|요");
        check("", "");
        check("🎉 \u{202e}", "");
    }

    #[test]
    fn ranges_are_those_of_the_text() {
        let text = "Ça va, “non”? Oui";
        let words = Words::of(text);
        for i in 0..words.len() {
            let (from, to) = words.word(i).at;
            assert!(text.get(from as usize..to as usize).is_some());
        }
        assert!(words.word(2).quoted && !words.word(3).quoted);
        assert!(words.word(2).before.has(Gap::CLAUSE) && words.word(3).before.has(Gap::QUESTION));
    }
}
