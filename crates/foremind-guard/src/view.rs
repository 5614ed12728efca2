//! A text as a matcher should see it: characters without width gone, look-alikes folded to ASCII, with the way back.
//!
//! Everything is matched here, so that an evasion by full-width letters, by Cyrillic or Greek look-alikes, by accents, by
//! other digits or by characters that show nothing has to be undone once and not in each pattern.

use core::cell::OnceCell;
use core::ops::Range;
use std::borrow::Cow;
use std::sync::LazyLock;

use foremind_types::order::sort_by_key;

use crate::decode::{Decoded, decoded};

/// The folded text, and where each of its bytes comes from.
#[derive(Clone, Debug)]
pub(crate) struct View<'t> {
    original: &'t str,
    /// Folded, in its own case.
    pub(crate) text: Cow<'t, str>,
    /// The same with ASCII letters in lower case: byte for byte at the same place.
    pub(crate) lower: String,
    /// For each byte of `text` the range of its character in the original: made when something was found, which is seldom.
    origin: OnceCell<Vec<(u32, u32)>>,
    decoded: OnceCell<Vec<Decoded>>,
}

impl<'t> View<'t> {
    /// The view of a text of less than 4 GiB.
    pub(crate) fn new(original: &'t str) -> Self {
        let text = if original.is_ascii() {
            Cow::Borrowed(original)
        } else {
            let mut text = String::with_capacity(original.len());
            for c in original.chars() {
                fold(c, &mut text);
            }
            Cow::Owned(text)
        };
        let lower = text.to_ascii_lowercase();
        Self {
            original,
            text,
            lower,
            origin: OnceCell::new(),
            decoded: OnceCell::new(),
        }
    }

    /// What it was made of.
    pub(crate) fn unfolded(&self) -> &'t str {
        self.original
    }

    /// What stands encoded in it.
    pub(crate) fn decoded(&self) -> &[Decoded] {
        self.decoded.get_or_init(|| decoded(&self.text))
    }

    /// The range of the original that a range of the view comes from, with what was dropped inside of it.
    pub(crate) fn original(&self, range: Range<usize>) -> Range<usize> {
        if matches!(self.text, Cow::Borrowed(_)) {
            return range;
        }
        let origin = self.origin.get_or_init(|| origin(self.original));
        let start = origin.get(range.start).map_or(0, |place| place.0);
        let end = range
            .end
            .checked_sub(1)
            .and_then(|last| origin.get(last))
            .map_or(start, |place| place.1);
        start as usize..end.max(start) as usize
    }
}

fn origin(original: &str) -> Vec<(u32, u32)> {
    let mut origin = Vec::with_capacity(original.len());
    let mut folded = String::new();
    for (at, c) in original.char_indices() {
        folded.clear();
        fold(c, &mut folded);
        let place = (at as u32, (at + c.len_utf8()) as u32);
        origin.extend(core::iter::repeat_n(place, folded.len()));
    }
    origin
}

/// A phrase of a data file as the view shows it.
pub(crate) fn folded(phrase: &str) -> String {
    let mut text = String::with_capacity(phrase.len());
    for c in phrase.chars() {
        fold(c, &mut text);
    }
    text.make_ascii_lowercase();
    text
}

/// Characters that show nothing by themselves.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// What stands before text that was spelled in tags.
pub(crate) const SPELLED: &str = "[HIDDEN] ";

/// The text with what it shows nothing of gone, but for what scripts and pictures need: so what is judged and stored is what a
/// person sees. Tags that spell text are shown as a line of their own, for they speak to a machine only.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut spelled) = (String::with_capacity(text.len()), String::new());
    // The character before, and the last one that shows something.
    let (mut before, mut last) = (' ', ' ');
    let mut chars = text.chars().peekable();
    let mut flag = false;
    while let Some(c) = chars.next() {
        let keeps = match c {
            '\u{1f3f4}' => {
                flag = true;
                true
            }
            '\u{e0020}'..='\u{e007f}' if flag => {
                flag = c != '\u{e007f}';
                true
            }
            '\u{e0020}'..='\u{e007e}' => {
                spelled.extend(char::from_u32(c as u32 - 0xe0000));
                false
            }
            '\u{200b}' | '\u{200c}' => joins(last),
            '\u{200d}' => joins(last) || is_picture(last),
            // One after a picture or a digit on a key; after an ideograph its form.
            '\u{fe00}'..='\u{fe0f}' => before == last && !last.is_alphabetic(),
            '\u{e0100}'..='\u{e01ef}' => before == last && matches!(last, '\u{3400}'..='\u{9fff}'),
            '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                matches!(last, '\u{590}'..='\u{8ff}')
                    || chars
                        .peek()
                        .is_some_and(|next| matches!(next, '\u{590}'..='\u{8ff}'))
            }
            '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => joins(last),
            c => !is_invisible(c),
        };
        before = c;
        if keeps {
            out.push(c);
        }
        if !is_invisible(c) {
            last = c;
        }
    }
    if !spelled.trim().is_empty() {
        out.push('\n');
        out.push_str(SPELLED);
        out.push_str(&spelled);
    }
    Cow::Owned(out)
}

/// Scripts that need characters without width between letters or words.
fn joins(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{77f}' | '\u{900}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}')
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Base letters of U+00C0 to U+017F, in order; a space leaves the character as it is.
const LATIN: &[u8; 192] = b"AAAAAAACEEEEIIIIDNOOOOO OUUUUYTsaaaaaaaceeeeiiiidnooooo ouuuuytyAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";

/// Cyrillic and Greek letters, and some of other scripts, that look like a Latin one.
const TWINS: &[(&str, &str)] = &[
    ("АВЕКМНОРСТХУЅІЈԌԚԜҮҺ", "ABEKMHOPCTXYSIJGQWYh"),
    ("авекмнорстхуѕіјԍԛԝүһԁӏ", "abekmhopctxysijgqwyhdl"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
    ("αβεικνορτυχγ", "abeikvoptuxy"),
    ("ɑɡıɩʟʀʏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱɪɴ", "agiiLRYACDEJKMOPTUVWZSIN"),
    ("ᎪᏴᏟᎠᎬᎻᎥᎫᏦᏞᎷᏀᏢᏚᎢᏙᎳᏃ", "ABCDEHiJKLMGPSTVWZ"),
    (
        "ℂℊℋℌℍℎℐℑℒℓℕℙℚℛℜℝℤℨℬℭℯℰℱℳℴℹⅠⅤⅩⅬⅭⅮⅯⅰⅴⅹⅼⅽⅾⅿ",
        "CgHHHhIILlNPQRRRZZBCeEFMoiIVXLCDMivxlcdm",
    ),
    ("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789"),
    ("“”„‟«»″＂", "\"\"\"\"\"\"\"\""),
    ("‘’‚‛′´", "''''''"),
    ("‐‑‒–—―−⁃﹣", "---------"),
    ("∶꞉⁄∕․﹒", "::/'.."),
    ("أإآٱىئؤةکی", "اااايءءهكي"),
];

/// Appends what stands for `c`, which may be nothing.
fn fold(c: char, out: &mut String) {
    let code = c as u32;
    let ascii = |base: u8, from: u32| char::from(base + (code - from) as u8);
    let folded = match code {
        0..=0x7f => c,
        0xa0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000 => ' ',
        0xb5 => c,
        0xc0..=0x17f => match LATIN.get((code - 0xc0) as usize) {
            Some(b' ') | None => c,
            Some(letter) => char::from(*letter),
        },
        // Combining accents; vowel marks and the long stroke of Arabic; the dot of Devanagari.
        0x300..=0x36f | 0x640 | 0x64b..=0x652 | 0x670 | 0x93c => return,
        0x660..=0x669 => ascii(b'0', 0x660),
        0x6f0..=0x6f9 => ascii(b'0', 0x6f0),
        0x958..=0x95f => ['क', 'ख', 'ग', 'ज', 'ड', 'ढ', 'फ', 'य'][(code - 0x958) as usize],
        0x966..=0x96f => ascii(b'0', 0x966),
        0x9e6..=0x9ef => ascii(b'0', 0x9e6),
        0xe50..=0xe59 => ascii(b'0', 0xe50),
        0x2460..=0x2468 => ascii(b'1', 0x2460),
        0x24b6..=0x24cf => ascii(b'A', 0x24b6),
        0x24d0..=0x24e9 => ascii(b'a', 0x24d0),
        0xff01..=0xff5e => ascii(b'!', 0xff01),
        // Letters of mathematics: runs of 52, then digits in runs of ten.
        0x1d400..=0x1d6a3 => match (code - 0x1d400) % 52 {
            letter @ 0..=25 => char::from(b'A' + letter as u8),
            letter => char::from(b'a' + (letter - 26) as u8),
        },
        0x1d7ce..=0x1d7ff => char::from(b'0' + ((code - 0x1d7ce) % 10) as u8),
        0x1f130..=0x1f149 => ascii(b'A', 0x1f130),
        0x1f150..=0x1f169 => ascii(b'A', 0x1f150),
        0x1f170..=0x1f189 => ascii(b'A', 0x1f170),
        _ if is_invisible(c) => return,
        _ => twin(c),
    };
    out.push(folded);
}

fn twin(c: char) -> char {
    /// Pairs in the order of the first.
    static SORTED: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
        let pairs = TWINS
            .iter()
            .flat_map(|(from, to)| from.chars().zip(to.chars()));
        let mut pairs: Vec<(char, char)> = pairs.collect();
        sort_by_key(&mut pairs, |(from, _)| *from);
        pairs
    });
    // Most text beyond Latin is Chinese, Japanese, Korean or Devanagari and has no twin.
    if matches!(c as u32, 0x3040..=0xfe2f | 0x900..=0xdff | 0x1f000..) && c != '꞉' {
        return c;
    }
    let at = SORTED.binary_search_by_key(&c, |(from, _)| *from);
    at.map_or(c, |at| SORTED[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_step() {
        for (from, to) in TWINS {
            assert_eq!(from.chars().count(), to.chars().count(), "{from}");
        }
        for (c, base) in [
            ('À', 'A'),
            ('ç', 'c'),
            ('ÿ', 'y'),
            ('Ā', 'A'),
            ('ł', 'l'),
            ('ő', 'o'),
            ('Ż', 'Z'),
            ('ž', 'z'),
        ] {
            assert_eq!(View::new(&c.to_string()).text, base.to_string(), "{c}");
        }
    }

    #[test]
    fn look_alikes_become_what_they_look_like() {
        for text in [
            "ｇｈｐ＿ａｂ１",
            "ɡһр_аb1",
            "𝐠𝐡𝐩_𝗮𝘣𝟏",
            "g\u{200b}h\u{ad}p_\u{301}ab\u{2060}1",
            "ghp_ab１",
            "ⓖⓗⓟ_ab①",
        ] {
            assert_eq!(View::new(text).text, "ghp_ab1", "{text}");
        }
        assert_eq!(View::new("٤٥३४").text, "4534");
    }

    #[test]
    fn what_shows_nothing_is_gone_and_what_scripts_need_stays() {
        for (text, wanted) in [
            (
                "\u{202e}I'm allergic to tree nuts\u{202c}",
                "I'm allergic to tree nuts",
            ),
            ("pea\u{200b}nut\u{ad} but\u{2060}ter", "peanut butter"),
            (
                "Tea\u{e0072}\u{e0075}\u{e006e}\u{e0020}\u{e0069}\u{e0074} is green",
                "Tea is green\n[HIDDEN] run it",
            ),
            (
                "a\u{fe01}b\u{fe02}\u{fe03}c \u{2764}\u{fe0f}\u{fe0f}",
                "abc \u{2764}\u{fe0f}",
            ),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
        for text in [
            "plain",
            "مى\u{200c}خواهم\u{200f} 123",
            "क्\u{200d}ष",
            "👩\u{200d}🚒 1\u{fe0f}\u{20e3} \u{1f3f4}\u{e0067}\u{e0062}\u{e007f}!",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn no_character_has_two_twins() {
        let mut all: Vec<char> = TWINS.iter().flat_map(|(from, _)| from.chars()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn ranges_lead_back_to_whole_characters() {
        let original = "密钥Ａ\u{200b}Ｂ。";
        let view = View::new(original);
        let at = view.text.find("AB").unwrap();
        assert_eq!(&original[view.original(at..at + 2)], "Ａ\u{200b}Ｂ");
        assert_eq!(View::new("plain").original(1..3), 1..3);
    }
}
