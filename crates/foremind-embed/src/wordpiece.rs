//! WordPiece for uncased BERT: Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, section 4.1, with the
//! text cleaning of Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>.
//!
//! The text is read once, character by character, and reading stops when the tokens are full: work is
//! linear in the text read and memory does not depend on the text. A test holds every token equal to the
//! `tokenizers` crate's. One intended difference to how that crate is usually set up: `[SEP]` and its like
//! in a text are plain text here, so that what a person writes cannot forge the frame of a sequence.

use unicode_categories::UnicodeCategories;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

use crate::EmbedError;

/// Most tokens of one text, `[CLS]` and `[SEP]` included.
pub const TOKENS_MAX: usize = 256;
/// A word of more characters is one `[UNK]`.
const WORD_CHARS_MAX: usize = 100;
/// Starts a token that continues a word.
const CONTINUATION: &[u8] = b"##";
/// Token ids fit in 24 bits with room to spare; no known vocabulary comes near.
const VOCABULARY_SIZE_MAX: usize = 1 << 20;
/// Marks a free slot of the hash table.
const FREE: u32 = u32::MAX;

/// A vocabulary, ready to split text into tokens.
pub struct WordPiece {
    /// All tokens, each followed by a line ending.
    text: Box<[u8]>,
    /// Start of each token in `text`, and the end of the last.
    starts: Vec<u32>,
    /// Open addressing with linear probing over FNV-1a, at most half full: token ids.
    slots: Vec<u32>,
    /// Bytes of the longest token: no longer prefix of a word needs a look-up.
    longest_bytes: usize,
    unknown: u32,
    start: u32,
    end: u32,
}

impl WordPiece {
    /// Reads a vocabulary: UTF-8, one token a line, in the order of the ids.
    ///
    /// # Errors
    /// [`EmbedError::BadVocabulary`] when it is no text, a token is empty or occurs twice, it has more than
    /// 2^20 tokens, or one of `[UNK]`, `[CLS]`, `[SEP]` is absent.
    pub fn new(vocabulary: &[u8]) -> Result<Self, EmbedError> {
        let bad = |what| EmbedError::BadVocabulary { what };
        let lines = core::str::from_utf8(vocabulary)
            .map_err(|_| bad("expected UTF-8, found other bytes"))?
            .lines();
        let mut text = Vec::with_capacity(vocabulary.len() + 1);
        let mut starts = vec![0];
        let mut longest_bytes = 0;
        for line in lines {
            if line.is_empty() {
                return Err(bad("expected a token on every line, found an empty line"));
            }
            longest_bytes = longest_bytes.max(line.len());
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
            starts.push(u32::try_from(text.len()).map_err(|_| bad("it is larger than 4 GiB"))?);
        }
        let size = starts.len() - 1;
        if size > VOCABULARY_SIZE_MAX {
            return Err(bad("expected at most 2^20 tokens, found more"));
        }
        let mut this = Self {
            text: text.into(),
            starts,
            slots: vec![FREE; (2 * size).next_power_of_two()],
            longest_bytes,
            unknown: 0,
            start: 0,
            end: 0,
        };
        for id in 0..size {
            let token = this.token(id);
            match this.slot(hash(FNV_BASIS, token), token, b"") {
                Ok(_) => return Err(bad("expected distinct tokens, found one twice")),
                Err(free) => this.slots[free] = id as u32,
            }
        }
        let special = |token: &str, what| {
            this.id(hash(FNV_BASIS, token.as_bytes()), token.as_bytes(), b"")
                .ok_or(bad(what))
        };
        let unknown = special("[UNK]", "expected a token [UNK], found none")?;
        let start = special("[CLS]", "expected a token [CLS], found none")?;
        let end = special("[SEP]", "expected a token [SEP], found none")?;
        Ok(Self {
            unknown,
            start,
            end,
            ..this
        })
    }

    /// Number of tokens; ids are below.
    #[must_use]
    pub fn vocabulary_size(&self) -> usize {
        self.starts.len() - 1
    }

    /// The ids of a text: `[CLS]`, at most [`TOKENS_MAX`] - 2 tokens of the text, `[SEP]`.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        let mut words = Words {
            word_piece: self,
            tokens: vec![self.start],
            word: String::new(),
            word_chars: 0,
            marks: Vec::new(),
        };
        for c in text.chars() {
            if words.tokens.len() >= TOKENS_MAX - 1 {
                break;
            }
            words.take(c);
        }
        words.end_word();
        let mut tokens = words.tokens;
        tokens.truncate(TOKENS_MAX - 1);
        tokens.push(self.end);
        tokens
    }

    /// Appends the tokens of one word of at most [`WORD_CHARS_MAX`] characters: always the longest that
    /// fits; `[UNK]` for the whole word when at some place none does.
    fn split(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let mut at = 0;
        while at < word.len() {
            let lead = if at == 0 { b"" } else { CONTINUATION };
            match self.longest(lead, &word[at..]) {
                Some((id, bytes)) => {
                    tokens.push(id);
                    at += bytes;
                }
                None => {
                    tokens.truncate(before);
                    tokens.push(self.unknown);
                    return;
                }
            }
        }
    }

    /// The longest token that is `lead` and then a prefix of `rest`, with the bytes of that prefix.
    fn longest(&self, lead: &'static [u8], rest: &str) -> Option<(u32, usize)> {
        let mut best = None;
        let mut state = hash(FNV_BASIS, lead);
        let mut end = 0;
        for c in rest.chars() {
            let next = end + c.len_utf8();
            if lead.len() + next > self.longest_bytes {
                break;
            }
            state = hash(state, &rest.as_bytes()[end..next]);
            end = next;
            if let Some(id) = self.id(state, lead, &rest.as_bytes()[..end]) {
                best = Some((id, end));
            }
        }
        best
    }

    fn token(&self, id: usize) -> &[u8] {
        &self.text[self.starts[id] as usize..self.starts[id + 1] as usize - 1]
    }

    fn id(&self, hash: u32, head: &[u8], tail: &[u8]) -> Option<u32> {
        let slot = self.slot(hash, head, tail).ok()?;
        Some(self.slots[slot])
    }

    /// The slot of the token `head` + `tail`, or else the free slot where it would go.
    fn slot(&self, hash: u32, head: &[u8], tail: &[u8]) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let id = self.slots[slot];
            if id == FREE {
                return Err(slot);
            }
            let token = self.token(id as usize);
            if token.len() == head.len() + tail.len()
                && token.starts_with(head)
                && token.ends_with(tail)
            {
                return Ok(slot);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The state between two characters of a text.
struct Words<'v> {
    word_piece: &'v WordPiece,
    tokens: Vec<u32>,
    /// The word so far, at most [`WORD_CHARS_MAX`] characters of it.
    word: String,
    /// Characters of the word so far, those beyond the limit included.
    word_chars: usize,
    /// Combining characters that wait for their canonical order, with their class.
    marks: Vec<(u8, char)>,
}

impl Words<'_> {
    /// Cleans one character of the text, decomposes it and hands it on.
    fn take(&mut self, c: char) {
        if c.is_ascii() {
            match c {
                ' ' | '\t' | '\n' | '\r' => self.end_word(),
                _ if c.is_ascii_control() => {}
                _ => self.order(c),
            }
        } else if c == '\u{fffd}' || c.is_other() {
            // Control and format characters vanish without splitting a word.
        } else if c.is_whitespace() {
            self.end_word();
        } else if is_ideograph(c) {
            self.end_word();
            decompose_canonical(c, |part| self.order(part));
            self.end_word();
        } else {
            decompose_canonical(c, |part| self.order(part));
        }
    }

    /// Drops accents and puts what other combining characters there are into canonical order.
    fn order(&mut self, c: char) {
        if c.is_ascii() {
            self.end_marks();
            self.lower(c);
        } else if !c.is_mark_nonspacing() {
            match canonical_combining_class(c) {
                0 => {
                    self.end_marks();
                    self.lower(c);
                }
                // Marks are always part of one word, so that a longer run makes it [UNK] in any order.
                class if self.marks.len() <= WORD_CHARS_MAX => self.marks.push((class, c)),
                _ => {}
            }
        }
    }

    fn end_marks(&mut self) {
        if self.marks.is_empty() {
            return;
        }
        let mut marks = core::mem::take(&mut self.marks);
        marks.sort_by_key(|(class, _)| *class);
        for (_, c) in marks {
            self.lower(c);
        }
    }

    fn lower(&mut self, c: char) {
        for c in c.to_lowercase() {
            if c.is_whitespace() {
                self.end_letters();
            } else if c.is_ascii_punctuation() || !c.is_ascii() && c.is_punctuation() {
                self.end_letters();
                self.word.push(c);
                self.word_chars = 1;
                self.end_letters();
            } else {
                if self.word_chars < WORD_CHARS_MAX {
                    self.word.push(c);
                }
                self.word_chars += 1;
            }
        }
    }

    fn end_word(&mut self) {
        self.end_marks();
        self.end_letters();
    }

    fn end_letters(&mut self) {
        if self.word_chars > WORD_CHARS_MAX {
            self.tokens.push(self.word_piece.unknown);
        } else {
            self.word_piece.split(&self.word, &mut self.tokens);
        }
        self.word.clear();
        self.word_chars = 0;
    }
}

/// The blocks of unified and compatibility ideographs that BERT splits into single characters. Kana and
/// Hangul are not among them; the gap from 2B820 to 2B91F is part of the published behaviour.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

const FNV_BASIS: u32 = 0x811C_9DC5;

/// FNV-1a, 32 bits, continued: the hash of a prefix is the state for the next byte.
fn hash(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |state, byte| {
        (state ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
