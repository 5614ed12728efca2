//! What a match has to fulfil beside its pattern: check digits, entropy, form.

use foremind_types::decimal;
use foremind_types::order::sort_by;

use crate::decode::{LEVELS, decoded, rot13};
use crate::kinds::Kinds;

/// The checks of one shape, as its line names them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Checks {
    /// Tested on the match.
    pub(crate) test: Option<Test>,
    /// Least Shannon entropy, bits a character.
    pub(crate) entropy: f32,
    /// How far behind a needle the match may start, bytes.
    pub(crate) window: Option<usize>,
    /// Digits that must stand in the number-like run where a free match starts.
    pub(crate) digits: usize,
    /// Length of the word where a free match starts.
    pub(crate) len: usize,
    /// A byte that the text must hold.
    pub(crate) has: Option<u8>,
    /// A free match starts with a digit.
    pub(crate) starts_with_digit: bool,
    /// No letter, digit, `_` or `-` right before.
    pub(crate) word: bool,
    /// Also sought with spaces removed.
    pub(crate) join: bool,
    /// Several may follow one needle.
    pub(crate) many: bool,
    /// The match grows leftwards over the word that it stands in.
    pub(crate) back: bool,
    /// At least one digit in the match.
    pub(crate) has_digit: bool,
    /// May start with a letter of any script.
    pub(crate) letters: bool,
}

/// A test by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Luhn,
    Card,
    Iban,
    Ssn,
    Nino,
    Nir,
    Dni,
    Ean,
    CnId,
    Hetu,
    Phone,
    PhoneWord,
    Account,
    Licence,
    Password,
    PlainWord,
    Labelled,
    Secret,
    Assigned,
    Quoted,
    Generic,
    Bare,
    Pin,
    Base32,
    Words12,
    Phrase,
    Wallet,
    Basic,
    UrlPassword,
    Mixed,
}

impl Checks {
    /// Reads the last field of a line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut checks = Self::default();
        for word in text.split(' ').filter(|word| !matches!(*word, "-" | "")) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "entropy" => checks.entropy = decimal(value)? as f32,
                "w" => checks.window = Some(value.parse().ok()?),
                "digits" => checks.digits = value.parse().ok()?,
                "len" => checks.len = value.parse().ok()?,
                "has" => checks.has = Some(*value.as_bytes().first()?),
                "d" => checks.starts_with_digit = true,
                "word" => checks.word = true,
                "join" => checks.join = true,
                "letters" => checks.letters = true,
                "many" => checks.many = true,
                "back" | "back2" | "scheme" => checks.back = true,
                "hasdigit" | "spelledat" => checks.has_digit = name == "hasdigit",
                _ => {
                    checks.test = Some(match name {
                        "luhn" => Test::Luhn,
                        "card" => Test::Card,
                        "iban" => Test::Iban,
                        "ssn" => Test::Ssn,
                        "nino" => Test::Nino,
                        "nir" => Test::Nir,
                        "dni" => Test::Dni,
                        "ean" => Test::Ean,
                        "cnid" => Test::CnId,
                        "hetu" => Test::Hetu,
                        "phone" => Test::Phone,
                        "phoneword" => Test::PhoneWord,
                        "account" => Test::Account,
                        "licence" => Test::Licence,
                        "password" => Test::Password,
                        "plainword" => Test::PlainWord,
                        "labelled" => Test::Labelled,
                        "secret" => Test::Secret,
                        "assigned" => Test::Assigned,
                        "quoted" => Test::Quoted,
                        "generic" => Test::Generic,
                        "bare" => Test::Bare,
                        "pin" => Test::Pin,
                        "base32" => Test::Base32,
                        "words12" => Test::Words12,
                        "phrase" => Test::Phrase,
                        "wallet" => Test::Wallet,
                        "basic" => Test::Basic,
                        "urlpass" => Test::UrlPassword,
                        "mixed" => Test::Mixed,
                        "at" => continue,
                        _ => return None,
                    });
                }
            }
        }
        Some(checks)
    }

    /// Whether the match fulfils them.
    pub(crate) fn hold(&self, matched: &str) -> bool {
        (self.entropy == 0.0 || entropy(matched) >= self.entropy)
            && (!self.has_digit || matched.bytes().any(|b| b.is_ascii_digit()))
            && self.test.is_none_or(|test| test.holds(matched))
    }
}

impl Test {
    fn holds(self, text: &str) -> bool {
        match self {
            Self::Luhn => luhn(&digits(text)),
            Self::Card => card(text),
            Self::Iban => iban(text),
            Self::Ssn => ssn(&digits(text)),
            Self::Nino => nino(text),
            Self::Nir => nir(text),
            Self::Dni => dni(text),
            Self::Ean => ean(&digits(text)),
            Self::CnId => cn_id(text),
            Self::Hetu => hetu(text),
            Self::Phone => phone(text),
            Self::PhoneWord => {
                phone(text) || (6..=13).contains(&digits(text).len()) && !is_date(text)
            }
            Self::Account => (3..=19).contains(&digits(text).len()),
            Self::Licence => {
                let given = text.bytes().filter(u8::is_ascii_alphanumeric).count();
                given >= 8 && digits(text).len() >= 4
            }
            Self::Password => is_password(text),
            Self::PlainWord => is_plain_word(text),
            Self::Labelled => text.split_once([':', '=']).is_some_and(|(label, word)| {
                let label = label.trim().to_ascii_lowercase();
                !Kinds::shared().ordinary.contains(&label.as_str()) && is_plain_word(word)
            }),
            Self::Secret => is_assigned(text),
            Self::Assigned => {
                entropy(text) >= 2.0 && !is_placeholder(text) && !text.contains("REDACTED:")
            }
            // Quotes are no part of what is matched; see `Scan::matched`.
            Self::Quoted => !is_placeholder(text),
            Self::Generic => is_generic(text),
            Self::Bare => is_bare(text),
            Self::Pin => !is_year(text),
            Self::Base32 => is_base32(text),
            Self::Words12 => is_phrase(text) && are_varied(text),
            Self::Phrase => is_phrase(text),
            Self::Wallet => entropy(text) > 3.0 && text.bytes().any(|b| b.is_ascii_digit()),
            Self::Basic => text.len() >= 12 && is_mixed(text),
            Self::UrlPassword => url_password(text),
            Self::Mixed => is_mixed(text) && text.bytes().any(|b| b.is_ascii_digit()),
        }
    }
}

/// Whether the last word may be a password: none of those that are said of one.
fn is_plain_word(text: &str) -> bool {
    let word = text.rsplit(' ').next().unwrap_or(text).to_ascii_lowercase();
    word.len() >= 4 && !is_placeholder(&word) && !Kinds::shared().ordinary.contains(&word.as_str())
}

/// Shannon entropy, bits a character.
pub(crate) fn entropy(text: &str) -> f32 {
    let mut counts = [0_u16; 128];
    let mut all = 0_u32;
    for byte in text.bytes().take(512) {
        counts[usize::from(byte & 0x7f)] += 1;
        all += 1;
    }
    let all = all as f32;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f32::from(*count) / all;
            -share * share.log2()
        })
        .sum()
}

fn digits(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(u8::is_ascii_digit)
        .map(|b| b - b'0')
        .collect()
}

/// Source: ISO/IEC 7812-1, annex B.
fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    digits.len() > 1 && sum.is_multiple_of(10)
}

/// Luhn, a length that its network has, and separators as people write them.
fn card(text: &str) -> bool {
    let digits = digits(text);
    let head = |places: usize| {
        digits
            .iter()
            .take(places)
            .fold(0_u32, |n, d| n * 10 + u32::from(*d))
    };
    let (two, three, four) = (head(2), head(3), head(4));
    let length = digits.len();
    let network = match two {
        // Visa; the next lines: Diners, American Express, JCB, Mastercard, Maestro and others, UnionPay, Troy and Korean.
        40..=49 => matches!(length, 13 | 16 | 18 | 19),
        30 | 36 | 38 | 39 => length == 14 || length == 16,
        34 | 37 => length == 15,
        35 => (16..=19).contains(&length),
        21 | 18 if matches!(four, 2131 | 1800) => length == 15 || length == 16,
        20 => (2200..=2204).contains(&four) && length >= 16,
        22..=27 => (2200..=2720).contains(&four) && length >= 16,
        51..=55 => length == 16,
        50 | 56..=69 => (12..=19).contains(&length),
        81 | 82 => length >= 16,
        94 | 97 => length == 16,
        _ => matches!(three, 60..=69) && digits.first() == Some(&0) && length == 12 || four == 6,
    };
    network && luhn(&digits) && digits.windows(2).any(|pair| pair[0] != pair[1])
}

/// Source: ISO 13616-1, check characters by ISO 7064 MOD 97-10.
fn iban(text: &str) -> bool {
    const COUNTRIES: &str = "AD AE AL AT AZ BA BE BG BH BR BY CH CR CY CZ DE DK DO EE EG ES FI FO FR GB GE GI GL GR GT HR HU IE IL IQ IS IT JO KW KZ LB LC LI LT LU LV LY MC MD ME MK MR MT MU NL NO PK PL PS PT QA RO RS SA SC SE SI SK SM ST SV TL TN TR UA VA VG XK DZ";
    let plain: Vec<u8> = text
        .bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|b| b.to_ascii_uppercase())
        .collect();
    let country = plain.get(..2).and_then(|c| core::str::from_utf8(c).ok());
    if !(15..=34).contains(&plain.len())
        || !country.is_some_and(|c| COUNTRIES.split(' ').any(|k| k == c))
    {
        return false;
    }
    let (head, tail) = plain.split_at(4);
    let rest = tail
        .iter()
        .chain(head)
        .fold(0_u32, |rest, byte| match byte {
            b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
            _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        });
    rest == 1
}

/// Numbers that can have been given; those of advertisements and films are let through.
fn ssn(digits: &[u8]) -> bool {
    let number = |range: core::ops::Range<usize>| {
        digits[range]
            .iter()
            .fold(0_u32, |n, d| n * 10 + u32::from(*d))
    };
    digits.len() == 9
        && number(0..3) != 0
        && number(0..3) != 666
        && number(3..5) != 0
        && number(5..9) != 0
}

fn nino(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let head = upper.get(..2).unwrap_or_default();
    !matches!(head, "BG" | "GB" | "NK" | "KN" | "TN" | "NT" | "ZZ")
        && upper.ends_with(['A', 'B', 'C', 'D'])
        && (text == upper || text.contains(' '))
}

/// The French key: 97 minus the number modulo 97; Corsica's letters count as 19 and 18.
fn nir(text: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.len() != 15 {
        return false;
    }
    let numeric = plain[..13].replace("2A", "19").replace("2B", "18");
    match (numeric.parse::<u64>(), plain[13..].parse::<u64>()) {
        (Ok(number), Ok(key)) => key == 97 - number % 97,
        _ => false,
    }
}

fn dni(text: &str) -> bool {
    const LETTERS: &[u8] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let plain = text.to_ascii_uppercase();
    let number: String = plain
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .enumerate()
        .map(|(at, c)| match (at, c) {
            (0, 'X') => '0',
            (0, 'Y') => '1',
            (0, 'Z') => '2',
            _ => c,
        })
        .collect();
    let Some((number, letter)) = number
        .len()
        .checked_sub(1)
        .and_then(|at| number.split_at_checked(at))
    else {
        return false;
    };
    number
        .parse::<usize>()
        .is_ok_and(|n| LETTERS[n % 23] == letter.as_bytes()[0])
}

/// Source: GS1 General Specifications, section 7.9.
fn ean(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .enumerate()
        .map(|(at, digit)| u32::from(*digit) * if at % 2 == 0 { 1 } else { 3 })
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

/// Source: GB 11643-1999 (ISO 7064 MOD 11-2).
fn cn_id(text: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let plain: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    if plain.len() != 18 {
        return false;
    }
    let sum: u32 = plain
        .iter()
        .zip(WEIGHTS)
        .map(|(b, w)| u32::from(b - b'0') * w)
        .sum();
    b"10X98765432"[(sum % 11) as usize] == plain[17].to_ascii_uppercase()
}

fn hetu(text: &str) -> bool {
    const SIGNS: &[u8] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let digits = digits(text);
    let Some(number) = digits.get(..9) else {
        return false;
    };
    let number = number.iter().fold(0_usize, |n, d| n * 10 + usize::from(*d));
    text.bytes().next_back() == Some(SIGNS[number % 31])
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '/', '.', ' ']).collect();
    let year = |part: &str| part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    parts.len() == 3
        && (year(parts[0]) || year(parts[2]))
        && parts.iter().all(|part| part.len() <= 4)
}

fn phone(text: &str) -> bool {
    let digits = digits(text);
    let separated = text
        .bytes()
        .any(|b| matches!(b, b' ' | b'-' | b'.' | b'(' | b'/'));
    let mobile = text.starts_with('+')
        || digits.len() == 11 && digits.first() == Some(&1)
        || digits.len() >= 10 && digits.first() == Some(&0);
    (7..=15).contains(&digits.len()) && (separated || mobile) && !is_date(text)
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && (text.starts_with("20") && matches!(text.as_bytes()[2], b'0'..=b'3'))
}

/// Words that stand where the secret would be.
fn is_placeholder(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "your",
        "redacted",
        "example",
        "placeholder",
        "changeme",
        "xxxx",
        "****",
        "...",
        "<",
        "${",
        "{{",
        "%s",
        "password",
        "passwort",
        "contrasena",
        "senha_",
        "sua_",
        "_aqui",
        "_ici",
        "_hier",
        "_qui",
        "votre_",
        "tu_",
        "insert",
        "enter_",
        "here",
        "todo",
        "://",
        "api_key",
        "apikey",
        "user:pass",
        "host",
        "eintragen",
        "process.env",
        "os.environ",
        "getenv",
        "secrets.",
    ];
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// A word that no prose has: letters with digits or with signs inside.
fn is_password(text: &str) -> bool {
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let inner = &text[..text.len().saturating_sub(1)];
    let sign = inner.bytes().any(|b| {
        matches!(
            b,
            b'#' | b'$'
                | b'!'
                | b'?'
                | b'&'
                | b'*'
                | b'+'
                | b'@'
                | b'_'
                | b'^'
                | b'%'
                | b'~'
                | b'='
        )
    });
    let two_words =
        inner.contains('.') && inner.bytes().any(|b| b.is_ascii_uppercase()) && digits > 0;
    let lower = text.to_ascii_lowercase();
    let ordinary = matches!(
        lower.as_str(),
        "wpa2"
            | "wpa3"
            | "2fa"
            | "mfa2"
            | "base64"
            | "sha256"
            | "1password"
            | "oauth2"
            | "utf-8"
            | "wi-fi"
            | "ipv4"
            | "ipv6"
            | "h264"
            | "mp3"
            | "mp4"
            | "covid-19"
            | "b2b"
    );
    let unit = text.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && digits + 3 >= text.len()
        && !sign;
    // Version numbers, clock times, mail addresses.
    let form = lower.starts_with("v") && digits + 3 >= text.len()
        || text.contains(':') && digits + 1 >= text.len()
        || text.contains('@')
            && inner.contains('.')
            && text
                .split('@')
                .nth(1)
                .is_some_and(|host| host.contains('.'));
    text.len() >= 5
        && letters >= 2
        && (digits > 0 || sign || two_words)
        && !ordinary
        && !unit
        && !form
        && !is_placeholder(text)
}

fn is_assigned(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits > 0 && entropy(text) >= 2.8 && !is_placeholder(text) && !text.contains("](")
}

/// Whether it is nothing but sentences in encodings: what they say is judged, not how they look.
fn is_encoded_text(text: &str, levels: usize) -> bool {
    let speaks = |text: &str| text.contains(' ') || text.contains('<');
    let inner = |text: &str| {
        decoded(text)
            .iter()
            .any(|part| speaks(&part.text) || levels > 1 && is_encoded_text(&part.text, levels - 1))
    };
    inner(text) || levels == LEVELS && inner(&rot13(text))
}

/// Long, mixed, without the form of an id that everybody may know.
fn is_generic(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    (digits >= 2 || digits == 1 && is_mixed(text) && text.len() >= 20)
        && letters >= 3
        && entropy(text) >= 3.0
        && !is_uuid(text)
        && !is_placeholder(text)
        && !is_encoded_text(text, LEVELS)
        && !text.contains('/') | is_mixed(text)
        && text
            .bytes()
            .filter(|b| matches!(b, b'-' | b'.' | b'_' | b'/'))
            .count()
            * 5
            <= text.len()
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().filter(|b| *b == b'-').count() == 4
}

fn is_mixed(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_uppercase()) && text.bytes().any(|b| b.is_ascii_lowercase())
}

/// Without a word beside it: as random as it gets, and long.
fn is_bare(text: &str) -> bool {
    is_mixed(text)
        && text.bytes().filter(u8::is_ascii_digit).count() >= 3
        && entropy(text) >= 4.3
        && text
            .bytes()
            .filter(|b| matches!(b, b'-' | b'_' | b'/'))
            .count()
            * 8
            <= text.len()
        && !text.starts_with("sha")
        && !text.starts_with("AAAA")
        && !is_placeholder(text)
        && !is_encoded_text(text, LEVELS)
}

fn is_base32(text: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let one_case = plain.bytes().all(|b| !b.is_ascii_lowercase())
        || plain.bytes().all(|b| !b.is_ascii_uppercase());
    let signs = plain.bytes().any(|b| b.is_ascii_digit())
        || plain.len() >= 26 && plain.bytes().all(|b| b.is_ascii_uppercase());
    one_case
        && (signs
            || plain.len() >= 16
                && entropy(&plain) > 3.3
                && !text.contains(' ')
                && plain.bytes().all(|b| b.is_ascii_uppercase()))
        && plain.len() >= 16
}

/// As many words as a wallet's phrase has, and none of those that hold sentences together.
///
/// Source: BIP 39 has 12 to 24 words of three to eight letters from a list without articles and pronouns.
fn is_phrase(text: &str) -> bool {
    const GLUE: &[&str] = &[
        "the", "and", "for", "with", "was", "are", "not", "but", "from", "has", "had", "his",
        "her", "she", "its", "our", "their", "been", "were", "would", "which", "who", "que",
        "para", "con", "por", "los", "las", "una", "les", "des", "est", "pour", "avec", "dans",
        "sur", "und", "der", "die", "das", "ist", "mit", "von", "ein", "eine", "nicht", "che",
        "per", "del", "non", "com", "uma", "dos", "nao", "der", "you", "your_", "my", "all_",
        "i'm", "dolor", "ipsum",
    ];
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let glue = words.iter().filter(|word| GLUE.contains(word)).count();
    words.len() >= 12 && glue == 0
}

/// Prose repeats words, and so do songs; phrases hardly do.
fn are_varied(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let mut distinct = words.clone();
    sort_by(&mut distinct, Ord::cmp);
    distinct.dedup();
    distinct.len() * 5 > words.len() * 3 || words.contains(&"abandon")
}

fn url_password(text: &str) -> bool {
    let inside = text.trim_start_matches("://").trim_end_matches('@');
    inside.split_once(':').is_some_and(|(_, password)| {
        password.len() >= 3
            && !is_placeholder(password)
            && !matches!(password, "pass" | "pwd" | "secret" | "pw")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits() {
        assert!(luhn(&digits("4111 1111 1111 1111")) && !luhn(&digits("4111 1111 1111 1112")));
        assert!(iban("GB82 WEST 1234 5698 7654 32") && !iban("GB83 WEST 1234 5698 7654 32"));
        assert!(!iban("ZZ82 WEST 1234 5698 7654 32"), "no such country");
        assert!(ean(&digits("7569217076985")) && !ean(&digits("7569217076986")));
        assert!(cn_id("11010519491231002X") && !cn_id("110105194912310021"));
        assert!(dni("12345678Z") && dni("X1234567L") && !dni("12345678A"));
        assert!(hetu("131052-308T") && !hetu("131052-308U"));
        assert!(
            ssn(&digits("212-34-5678"))
                && !ssn(&digits("666-34-5678"))
                && !ssn(&digits("212-00-5678"))
        );
        assert!(nir("255081416802538") && !nir("255081416802539"));
    }

    #[test]
    fn cards_have_the_length_of_their_network() {
        assert!(card("378282246310005") && card("5555 5555 5555 4444") && card("30569309025904"));
        assert!(!card("0000000000000000"), "one digit only");
        assert!(!card("1234567812345670"), "no network");
    }

    #[test]
    fn a_password_is_no_word_of_prose() {
        for password in [
            "Copper-Kettle-29",
            "Marmot_juice",
            "mW7#tulipRoad",
            "hedgehog+77",
        ] {
            assert!(is_password(password), "{password}");
        }
        for word in [
            "catalogue",
            "two-factor",
            "wpa2",
            "2031",
            "v1.2.3",
            "<your-key>",
            "someone@example.org",
            "12:30",
            "30min",
        ] {
            assert!(!is_password(word), "{word}");
        }
    }

    #[test]
    fn a_phrase_is_no_sentence() {
        assert!(is_phrase(
            "legal winner thank year wave sausage worth useful legal winner thank yellow"
        ));
        assert!(!is_phrase(
            "went home and then had some soup with the kids before they fell asleep"
        ));
    }
}
