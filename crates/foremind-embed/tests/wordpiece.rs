//! Every token equals the `tokenizers` crate's, on lines of all scripts.
//!
//! That crate's normaliser has older tables than ours: combining characters that are newer than Unicode 12
//! and not of class 0 there may come in another order. No vocabulary in use has them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::Seeded;
use foremind_embed::pack::{Pack, Section};
use foremind_embed::{TOKENS_MAX, WordPiece};
use tokenizers::models::wordpiece::WordPiece as OracleModel;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{Tokenizer, TruncationParams};

/// Sentences of everyday speech with what is special in each language.
const SENTENCES: &[&str] = &[
    "I'm allergic to tree nuts, don't put almonds in it!",
    "Ich wohne in der Straße 12a; GROẞES SS, Äpfel & Öl.",
    "Je n'ai pas mangé à l'hôtel – c'était « très » cher…",
    "El niño cumplió 3 años, ¿verdad? ¡Sí!",
    "Tôi bị dị ứng với đậu phộng và hải sản.",
    "Mám alergiu na orechy, žltý kôň úpěl ďábelské ódy.",
    "Όδυσσεύς ΣΊΣΥΦΟΣ ἀγαθός",
    "У меня аллергия на орехи, ёлки-палки, йод.",
    "İstanbul'da IĞDIR ılık çay içtim, ŞIK.",
    "אני אלרגי לאגוזים, שָׁלוֹם עֲלֵיכֶם",
    "أنا مُصابٌ بالسكّري ولا آكل السكر ١٢٣",
    "मुझे मूँगफली से एलर्जी है। क्ष ज्ञ ड़",
    "আমি দুধ খেতে পারি না",
    "எனக்கு நிலக்கடலை ஒவ்வாமை",
    "ฉันแพ้ถั่วลิสงและกุ้ง",
    "私はナッツアレルギーです。ガギグ ｶﾞｷﾞ １２３",
    "我对坚果过敏，不能吃花生。𠮷野家",
    "저는 견과류 알레르기가 있어요. 한글 ㅎㅏㄴ",
    "ខ្ញុំមិនញ៉ាំសាច់ទេ",
    "မြန်မာဘာသာစကား",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꮳꮃꭹ",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇩🇪 👍🏽 ❤️ 1️⃣",
    "fn main() { println!(\"{:?}\", a[0] << 2); } // C:\\x\\y?z=1&w=%20",
    "https://example.org/a_b-c?d=e#f  name@example.org  #tag @user $5.00 €3 £2 50% 3×4=12 ±½",
    "x\u{0301}\u{0302}\u{0327} q\u{0323}\u{0307} q\u{0307}\u{0323} \u{0344} \u{1d15e} \u{fb2c}",
    "zero\u{200b}width soft\u{ad}hyphen \u{202e}bidi\u{202c} \u{feff}bom nul\0nul rep\u{fffd}rep",
    "tab\there\u{b}vt\u{c}ff\u{85}nel\u{a0}nbsp\u{2003}em\u{3000}wide\u{2028}line\u{1680}ogham\r\nend",
    "ﬁ ﬂ ﬆ ĳ Ǆ ǆ Ǳ ŉ ẞ Ⅻ ℡ № ㎏ ™ ª º ² ₂",
    "[CLS] [SEP] [MASK] [UNK] [PAD] ##ing ## # [unused1]",
    "\u{037e} \u{0387} \u{1fef} \u{2126} \u{212b} \u{2329}x\u{232a} \u{f900}\u{fa0e} \u{2f800}",
];

/// Ranges of letters, marks and signs that lines of one script are drawn from.
const SCRIPTS: &[(u32, u32)] = &[
    (0x20, 0x7F),
    (0xA0, 0x180),
    (0x180, 0x250),
    (0x250, 0x370),
    (0x370, 0x400),
    (0x400, 0x530),
    (0x530, 0x590),
    (0x590, 0x600),
    (0x600, 0x700),
    (0x700, 0x860),
    (0x900, 0x980),
    (0x980, 0xA00),
    (0xA00, 0xB00),
    (0xB00, 0xC00),
    (0xC00, 0xD00),
    (0xD00, 0xE00),
    (0xE00, 0xF00),
    (0xF00, 0x1000),
    (0x1000, 0x10A0),
    (0x10A0, 0x1100),
    (0x1100, 0x1200),
    (0x1200, 0x13A0),
    (0x13A0, 0x1680),
    (0x1680, 0x1780),
    (0x1780, 0x1800),
    (0x1800, 0x1900),
    (0x1900, 0x1B00),
    (0x1B00, 0x1D00),
    (0x1D00, 0x1E00),
    (0x1E00, 0x1F00),
    (0x1F00, 0x2000),
    (0x2000, 0x2100),
    (0x2100, 0x2400),
    (0x2400, 0x2800),
    (0x2800, 0x2C00),
    (0x2C00, 0x2E80),
    (0x2E80, 0x3040),
    (0x3040, 0x3130),
    (0x3130, 0x3400),
    (0x3400, 0x4E00),
    (0x4E00, 0xA000),
    (0xA000, 0xA800),
    (0xA800, 0xAC00),
    (0xAC00, 0xD7B0),
    (0xF900, 0xFB00),
    (0xFB00, 0xFE00),
    (0xFE00, 0x10000),
    (0x10000, 0x10800),
    (0x10800, 0x11000),
    (0x11000, 0x12000),
    (0x12000, 0x13000),
    (0x1D000, 0x1D800),
    (0x1F000, 0x1FB00),
    (0x20000, 0x2A6E0),
    (0x2A700, 0x2CEB0),
    (0x2F800, 0x2FA20),
    (0xE0000, 0xE01F0),
];

const SPACES: &[&str] = &[
    " ", " ", " ", "  ", "\t", "\n", "\u{a0}", "\u{3000}", "\u{2009}", "\u{200b}", "",
];

fn lines() -> Vec<String> {
    let mut seeded = Seeded(2);
    let mut lines: Vec<String> = SENTENCES.iter().map(|line| (*line).to_owned()).collect();
    // Every assigned or unassigned code point of the planes in use occurs once, between its neighbours.
    for first in (0..0x32400_u32).chain(0xE0000..0xE0200).step_by(24) {
        lines.push((first..first + 24).filter_map(char::from_u32).collect());
    }
    for _ in 0..1500 {
        lines.push(one_script(&mut seeded));
        lines.push(mixed(&mut seeded));
    }
    for chars in [99, 100, 101, 102, 1000, 20_000] {
        for c in ["a", "é", "ß", "İ", "x\u{302e}\u{1d165}", "𝔘", "가"] {
            lines.push(format!("so {} it is", c.repeat(chars)));
        }
        lines.push(format!("a{}b c", "\u{301}".repeat(chars)));
        lines.push(format!("a{}b c", "\u{302e}\u{1d165}".repeat(chars / 2)));
        lines.push("word, ".repeat(chars));
        lines.push("我".repeat(chars));
    }
    // Cut inside a word of several tokens.
    for words in 240..260 {
        lines.push(format!("{} unaffordablenesses of it", "a ".repeat(words)));
    }
    lines.extend(["", " ", "\0", "\u{301}", "\u{200d}"].map(str::to_owned));
    lines.extend(seed_texts());
    lines
}

fn one_script(seeded: &mut Seeded) -> String {
    let (first, end) = *seeded.pick(SCRIPTS);
    let mut line = String::new();
    for _ in 0..1 + seeded.below(12) {
        for _ in 0..1 + seeded.below(9) {
            let code = first + seeded.below((end - first) as usize) as u32;
            line.extend(char::from_u32(code));
        }
        line.push_str(SPACES[seeded.below(SPACES.len())]);
    }
    line
}

/// Pieces of the sentences, cut anywhere, in upper and lower case, with single characters in between.
fn mixed(seeded: &mut Seeded) -> String {
    let mut line = String::new();
    for _ in 0..1 + seeded.below(8) {
        let chars: Vec<char> = seeded.pick(SENTENCES).chars().collect();
        let start = seeded.below(chars.len());
        let piece: String = chars[start..].iter().take(1 + seeded.below(14)).collect();
        match seeded.below(3) {
            0 => line.push_str(&piece.to_uppercase()),
            _ => line.push_str(&piece),
        }
        match seeded.below(4) {
            0 => line.extend(char::from_u32(seeded.below(0x3000) as u32)),
            1 => {}
            _ => line.push_str(SPACES[seeded.below(SPACES.len())]),
        }
    }
    line
}

/// The texts of the routing evaluation's seed rows.
fn seed_texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/routing/seed");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        for row in std::fs::read_to_string(file).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            texts.extend(row["text"].as_str().map(str::to_owned));
        }
    }
    assert!(texts.len() > 1000, "{} seed texts", texts.len());
    texts
}

/// A vocabulary of pieces of the lines: single characters and random infixes, as word starts and as
/// continuations, in a seeded order. Each piece is cut from folded text, so that many words split well.
fn made_vocabulary(lines: &[String]) -> String {
    let mut seeded = Seeded(3);
    let mut pieces = BTreeSet::new();
    for line in lines.iter().step_by(3) {
        for word in line.to_lowercase().split_whitespace().take(12) {
            let chars: Vec<char> = word.chars().take(40).collect();
            for length in [1, 1, 2, 3, 5, 8] {
                let start = seeded.below(chars.len());
                let piece: String = chars[start..].iter().take(length).collect();
                let lead = if seeded.below(2) == 0 { "" } else { "##" };
                pieces.insert(format!("{lead}{piece}"));
            }
        }
    }
    let mut pieces: Vec<String> = pieces
        .into_iter()
        .filter(|piece| piece.lines().count() == 1)
        .collect();
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, seeded.below(at + 1));
    }
    let specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    pieces.retain(|piece| !specials.contains(&piece.as_str()));
    format!("{}\n{}\n", specials.join("\n"), pieces.join("\n"))
}

fn oracle(vocabulary: &str) -> Tokenizer {
    let ids: BTreeMap<&str, u32> = vocabulary.lines().zip(0..).collect();
    let model = serde_json::json!({
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": ids,
    });
    let model: OracleModel = serde_json::from_str(&model.to_string()).unwrap();
    let frame = |token: &str| (token.to_owned(), ids[token]);
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_normalizer(Some(BertNormalizer::default()))
        .unwrap()
        .with_pre_tokenizer(Some(BertPreTokenizer))
        .with_post_processor(Some(BertProcessing::new(frame("[SEP]"), frame("[CLS]"))))
        .with_truncation(Some(TruncationParams {
            max_length: TOKENS_MAX,
            ..TruncationParams::default()
        }))
        .unwrap();
    tokenizer
}

fn check_all(vocabulary: &str, lines: &[String]) {
    let oracle = oracle(vocabulary);
    let ours = WordPiece::new(vocabulary.as_bytes()).unwrap();
    assert_eq!(ours.vocabulary_size(), vocabulary.lines().count());
    let unknown = vocabulary
        .lines()
        .position(|token| token == "[UNK]")
        .unwrap() as u32;
    let (mut pieces, mut unknowns) = (0, 0);
    for line in lines {
        let expected = oracle.encode(line.as_str(), true).unwrap();
        let tokens = ours.tokens(line);
        assert_eq!(
            tokens,
            expected.get_ids(),
            "{:?}",
            line.chars().take(200).collect::<String>()
        );
        pieces += tokens.len();
        unknowns += tokens.iter().filter(|id| **id == unknown).count();
    }
    // The comparison says little if nearly all is unknown.
    assert!(
        unknowns * 2 < pieces,
        "{unknowns} of {pieces} tokens are unknown"
    );
}

#[test]
fn tokens_equal_the_reference_on_a_made_vocabulary() {
    let lines = lines();
    assert!(lines.len() >= 5000, "{} lines", lines.len());
    check_all(&made_vocabulary(&lines), &lines);
}

#[test]
fn tokens_equal_the_reference_on_the_model_s_vocabulary() {
    let default =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/model/minilm-l6-v2.fmpack");
    let path = std::env::var_os("FOREMIND_MODEL_PACK").map_or(default, PathBuf::from);
    let Ok(bytes) = std::fs::read(&path) else {
        println!("skipped: no model file; run `cargo xtask model` or set FOREMIND_MODEL_PACK");
        return;
    };
    let pack = Pack::read(bytes).unwrap();
    let vocabulary = std::str::from_utf8(pack.section(Section::Vocabulary).unwrap()).unwrap();
    assert_eq!(vocabulary.lines().count(), 30_522);
    check_all(vocabulary, &lines());
}

#[test]
fn ten_megabytes_are_read_only_until_the_tokens_are_full() {
    let vocabulary = format!("[UNK]\n[CLS]\n[SEP]\na\n##a\n{}\n", "a".repeat(60));
    let ours = WordPiece::new(vocabulary.as_bytes()).unwrap();
    let megabyte = 1 << 20;
    let megabytes = 10 * megabyte;
    for (text, expected) in [
        ("a ".repeat(megabytes / 2), 256),
        ("a".repeat(megabytes), 3),
        ("\u{302e}".repeat(megabyte / 3), 3),
        (" ".repeat(megabyte), 2),
        ("\0".repeat(megabyte), 2),
        (format!("{} ", "a".repeat(100)).repeat(megabytes / 101), 256),
    ] {
        let tokens = ours.tokens(&text);
        assert_eq!(tokens.len(), expected);
        assert_eq!((tokens[0], tokens[expected - 1]), (1, 2));
    }
}
