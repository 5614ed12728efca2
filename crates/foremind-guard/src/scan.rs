//! Secrets and personal data in a text. Time is linear in its length: needles are sought once, and each pattern is tried
//! from a place that something announces, over a bounded stretch.

use core::ops::Range;
use foremind_types::order::sort_by_key;

use crate::checks::Test;
use crate::decode::LEVELS;
use crate::kinds::{Announces, Class, Kinds, Place, Shape};
use crate::policy::{Action, Policy};
use crate::view::View;

/// What was found, and where in the original text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Name of the kind, as markers and policies have it.
    pub kind: &'static str,
    /// Its class.
    pub class: Class,
    /// What the policy says.
    pub action: Action,
    /// Bytes of the original text.
    pub range: Range<usize>,
}

/// How far behind a needle a match may start, unless its line says otherwise; bytes of the view.
const WINDOW: usize = 64;
/// The same between two matches behind one needle.
const NEXT: usize = 20;
/// Longest stretch that a pattern is tried on, private keys aside.
const STRETCH: usize = 1_024;
/// The same for key blocks and web tokens.
const LONG_STRETCH: usize = 16 * 1_024;
/// How far a word may reach back for what makes a number harmless.
const HARMLESS: usize = 28;
/// How many groups of a number or words of a phrase are given up until the checks hold.
const GROUPS: usize = 14;
/// What closes a quotation.
const CLOSING: [char; 4] = ['"', '`', '」', '』'];
/// Words whose full stop ends no sentence.
const ABBREVIATED: [&str; 9] = ["n", "no", "nr", "num", "nro", "cel", "tel", "acc", "नं"];
/// How far the digits of a free shape may stand behind its start.
const NUMBER: usize = 48;
/// Shortest run of lower-case words that may be a phrase.
const SHORTEST_RUN: usize = 47;
/// Most places of a text where pieces are put together.
const JOINS: usize = 512;
/// Most pieces of a secret that is split by spaces.
const PIECES: usize = 120;

/// All findings, by place; those that overlap may contradict each other.
pub(crate) fn scan(view: &View<'_>, policy: &Policy) -> Vec<Finding> {
    inside(view, policy, LEVELS)
}

fn inside(view: &View<'_>, policy: &Policy, levels: usize) -> Vec<Finding> {
    Scan {
        levels,
        view,
        bytes: view.text.as_bytes(),
        kinds: Kinds::shared(),
        harmless: Vec::new(),
        found: Vec::new(),
        joins: 0,
    }
    .run(policy)
}

struct Scan<'v> {
    view: &'v View<'v>,
    bytes: &'v [u8],
    kinds: &'static Kinds,
    /// Ends of words that announce something harmless.
    harmless: Vec<usize>,
    /// Shape and range in the view.
    found: Vec<(u16, Range<usize>)>,
    /// How many encodings may still be taken off.
    levels: usize,
    /// How often pieces were put together.
    joins: usize,
}

impl Scan<'_> {
    fn run(mut self, policy: &Policy) -> Vec<Finding> {
        let mut announced = Vec::new();
        self.kinds.needles.each(&self.view.lower, |needle| {
            announced.push((needle.from, needle.to, needle.what));
        });
        // A needle in a marker announces nothing.
        let markers = markers(&self.view.text);
        announced.retain(|(from, _, _)| !is_within(&markers, *from, *from + 1));
        self.harmless = announced
            .iter()
            .filter(|(_, _, what)| *what == Announces::Harmless)
            .map(|(_, to, _)| *to)
            .collect();
        // One stretch behind a word that comes again and again is looked at once for each shape.
        let mut looked: Vec<usize> = vec![0; self.kinds.shapes.len()];
        for (from, to, what) in announced {
            let Announces::Shape(number) = what else {
                continue;
            };
            let shape = &self.kinds.shapes[usize::from(number)];
            match shape.place {
                Place::At => self.at(number, shape, from, &mut looked[usize::from(number)]),
                Place::Near => self.near(number, shape, from, to, &mut looked[usize::from(number)]),
                Place::Free => {}
            }
        }
        self.free();
        self.split();
        let levels = self.levels;
        self.encoded(policy, levels);
        self.findings(policy)
    }

    /// The shape that starts with its needle.
    fn at(&mut self, number: u16, shape: &'static Shape, from: usize, looked: &mut usize) {
        if from < *looked || shape.checks.word && self.before(from).is_some_and(is_inside_word) {
            return;
        }
        if let Some(end) = self.matched(shape, from) {
            let start = if shape.checks.back {
                self.word_start(from)
            } else {
                from
            };
            *looked = end;
            self.found.push((number, start..end));
        } else if shape.checks.join {
            self.joined(number, shape, from);
        }
    }

    /// The shape at the first word behind the needle where it matches.
    fn near(
        &mut self,
        number: u16,
        shape: &'static Shape,
        from: usize,
        to: usize,
        looked: &mut usize,
    ) {
        // A letter before a needle of Latin script makes it another word.
        let needle = &self.bytes[from..to];
        let inside = needle[0].is_ascii_alphabetic()
            && self.before(from).is_some_and(|b| b.is_ascii_alphabetic());
        if inside {
            return;
        }
        let mut at = to.max(*looked);
        // A window counts letters; those of other scripts have two or three bytes.
        let scale = if needle[0].is_ascii() { 1 } else { 2 };
        let window = shape.checks.window.unwrap_or(WINDOW) * scale;
        let mut end = (to + window).min(self.bytes.len());
        *looked = (*looked).max(to);
        let mut tries = 0;
        while at < end {
            if self.is_end_of_sentence(at) && shape.class != Class::Key {
                break;
            }
            let starts = self.starts_word(at) || shape.checks.letters && self.starts_letters(at);
            if !starts || is_told_by_words(shape) && self.is_harmless(at, from) {
                at += 1;
                continue;
            }
            tries += 1;
            if let Some(stop) = self.matched(shape, at) {
                self.found.push((number, at..stop));
                *looked = stop;
                if !shape.checks.many {
                    break;
                }
                at = stop;
                end = (stop + NEXT).min(self.bytes.len());
                continue;
            }
            at += 1;
            if tries > 24 {
                break;
            }
        }
        // Whether a shape matches at a place does not hang on the needle: no place is tried twice.
        *looked = (*looked).max(at);
    }

    /// Shapes without a needle.
    fn free(&mut self) {
        let mut at = 0;
        let mut taken = 0;
        let has = [self.bytes.contains(&b'<'), self.bytes.contains(&b'@')];
        let lower = &self.view.lower;
        let marked = has != [false, false] || lower.contains("(at)") || lower.contains("[at]");
        // Ends of the word and of the run of lower-case words that were seen last, and the place of the next digit.
        let (mut word_end, mut run_end, mut digit) = (0, 0, 0);
        while at < self.bytes.len() {
            if !self.starts_word(at) || at < taken {
                at += 1;
                continue;
            }
            if word_end <= at {
                let rest = self.bytes[at..].iter();
                word_end = at + rest.take_while(|b| b.is_ascii_graphic()).count();
            }
            let word = word_end - at;
            if digit < at {
                let rest = self.bytes[at..].iter();
                digit = at + rest.take_while(|b| !b.is_ascii_digit()).count();
            }
            if run_end <= at {
                run_end = at + self.run_of_words(at);
            }
            let run = run_end - at;
            let is_run =
                run >= SHORTEST_RUN || at + run == self.bytes.len() && run >= SHORTEST_RUN - 7;
            // Nothing that any of them asks for.
            if digit >= at + NUMBER && word < self.kinds.free_len && !marked && !is_run {
                at += 1;
                continue;
            }
            let digits = self.bytes[at..]
                .iter()
                .take(NUMBER)
                .take_while(|b| {
                    b.is_ascii_alphanumeric()
                        || matches!(b, b' ' | b'-' | b'.' | b'/' | b'(' | b')' | b'+')
                })
                .filter(|b| b.is_ascii_digit())
                .count();
            for number in self.kinds.free.iter().copied() {
                let shape = &self.kinds.shapes[usize::from(number)];
                let checks = &shape.checks;
                if digits < checks.digits
                    || word < checks.len
                    || checks.starts_with_digit && !self.bytes[at].is_ascii_digit()
                    || checks
                        .has
                        .is_some_and(|byte| byte != b'a' && !has[usize::from(byte == b'@')])
                    || checks.has == Some(b'a') && !self.is_spelled(at, word)
                    || shape.kind == "seed_phrase" && !is_run
                    || is_told_by_words(shape) && self.is_harmless(at, at.saturating_sub(HARMLESS))
                {
                    continue;
                }
                if let Some(end) = self.matched(shape, at) {
                    self.found.push((number, at..end));
                    if checks.digits > 0 || checks.len > 0 {
                        taken = taken.max(end);
                    }
                }
            }
            at += 1;
        }
    }

    /// Where the shape ends when it matches from `at`, as a whole word and with its checks.
    fn matched(&self, shape: &Shape, at: usize) -> Option<usize> {
        let stretch =
            if shape.class == Class::Key || shape.kind == "jwt" || shape.checks.window == Some(6) {
                LONG_STRETCH
            } else {
                STRETCH
            };
        let end = self
            .view
            .text
            .floor_char_boundary((at + stretch).min(self.bytes.len()));
        let text = self.view.text.get(at..end)?;
        let mut length = shape.matched(text)?;
        if shape.checks.test == Some(Test::Quoted) {
            // Only what stands between two quotes.
            let mut before = &self.view.text[..at];
            // French quotes have a space inside of them, and one before that.
            if let Some(outside) = before.strip_suffix("\" ")
                && outside.ends_with(' ')
            {
                before = &before[..=outside.len()];
            }
            let quoted = match before.chars().next_back() {
                Some('"' | '`' | '「' | '『') => true,
                // Behind a letter it stands for one that was left out.
                Some('\'') => !before
                    .as_bytes()
                    .iter()
                    .rev()
                    .nth(1)
                    .copied()
                    .is_some_and(is_inside_word),
                _ => false,
            };
            let close = quoted
                .then(|| text.find(CLOSING).or_else(|| text.find('\'')))
                .flatten()?;
            length = length.max(close);
            length = text[..length].find(CLOSING).unwrap_or(length);
            length = text[..length].find('\'').unwrap_or(length);
            length = text[..length].trim_end().len();
            return (length >= 4 && shape.checks.hold(&text[..length])).then_some(at + length);
        }
        let matched = text.get(..length)?;
        if shape.class == Class::Credential {
            // In markup and code the secret ends where the string does.
            if shape.kind == "password" || shape.kind == "wifi_password" {
                length = matched.find(['"', '<', '|', '`']).unwrap_or(length);
            }
            let matched = text.get(..length)?;
            length = matched
                .trim_end_matches(|c: char| {
                    !c.is_ascii_graphic()
                        || matches!(c, '.' | ',' | ';' | ':' | ')' | '"' | '\'' | ']' | '}')
                })
                .len();
        }
        // A number written in groups may be followed by other groups: the longest that fulfils the checks.
        let grouped = matches!(
            shape.checks.test,
            Some(Test::Iban | Test::Card | Test::Phone | Test::Phrase | Test::Words12)
        );
        for _ in 0..GROUPS {
            let open = !text[..length].ends_with(['-', '=', '@', ';', '<', '>']);
            let next = self.bytes.get(at + length);
            let cut = open
                && shape.class != Class::Credential
                && next.is_some_and(|b| b.is_ascii_alphanumeric());
            if !cut && shape.checks.hold(&text[..length]) {
                return Some(at + length);
            }
            if !grouped {
                return None;
            }
            length = text[..length].rfind([' ', '-', '.'])?;
            length = text[..length].trim_end_matches([' ', '-', '.', '(']).len();
        }
        None
    }

    /// A token whose pieces stand apart: as many of them as the pattern takes whole.
    fn joined(&mut self, number: u16, shape: &Shape, from: usize) {
        if self.joins == JOINS || self.before(from).is_some_and(is_inside_word) {
            return;
        }
        self.joins += 1;
        let mut token = String::new();
        // Length of the token, its end in the view, and whether prose or nothing follows.
        let mut cuts: Vec<(usize, usize, bool)> = Vec::new();
        let (mut at, mut pieces, mut random) = (from, 0_usize, 0_usize);
        while pieces < PIECES && token.len() < 260 {
            let piece = self.bytes[at..]
                .iter()
                .take_while(|b| b.is_ascii_graphic())
                .count();
            if piece == 0 {
                break;
            }
            let word = self.view.text[at..at + piece].trim_end_matches([',', '.', ';']);
            let prose = word.len() > 1 && word.bytes().all(|b| b.is_ascii_lowercase());
            if prose
                && pieces > 0
                && let Some(last) = cuts.last_mut()
            {
                last.2 = true;
            }
            token.push_str(word);
            at += piece;
            random += usize::from(pieces > 0 && !prose);
            pieces += 1;
            if random > 0 && random * 2 >= pieces - 1 {
                cuts.push((token.len(), at, false));
            }
            let gap = self.bytes[at..]
                .iter()
                .take_while(|b| b.is_ascii_whitespace())
                .count();
            if gap == 0 || gap > 4 {
                break;
            }
            at += gap;
        }
        if let Some(last) = cuts.last_mut() {
            last.2 = true;
        }
        let whole = shape.matched(&token);
        let best = cuts
            .iter()
            .filter(|(length, _, open)| *open || whole == Some(*length))
            .take(8)
            .filter(|(length, _, _)| {
                let token = &token[..*length];
                shape.matched(token) == Some(*length) && shape.checks.hold(token)
            })
            .last();
        if let Some((_, end, _)) = best {
            self.found.push((number, from..*end));
        }
    }

    /// Tokens whose prefix itself is split.
    fn split(&mut self) {
        let spaces = self
            .bytes
            .iter()
            .filter(|b| b.is_ascii_whitespace())
            .count();
        if spaces < 1 {
            return;
        }
        let mut compact = String::with_capacity(self.bytes.len());
        let mut places = Vec::with_capacity(self.bytes.len());
        for (at, c) in self.view.lower.char_indices() {
            if !c.is_ascii_whitespace() {
                compact.push(c);
                places.extend(core::iter::repeat_n(at, c.len_utf8()));
            }
        }
        let mut wanted = Vec::new();
        self.kinds.joined.each(&compact, |needle| {
            let (from, last) = (places[needle.from], places[needle.to - 1]);
            if last - from > needle.to - needle.from - 1 {
                wanted.push((needle.what, from));
            }
        });
        for (number, from) in wanted {
            let shape = &self.kinds.shapes[usize::from(number)];
            self.joined(number, shape, from);
        }
    }

    /// Secrets inside of encoded text: the whole of it goes.
    fn encoded(&mut self, policy: &Policy, levels: usize) {
        if levels == 0 {
            return;
        }
        for part in self.view.decoded() {
            let findings = inside(&View::new(&part.text), policy, levels - 1);
            let secret = findings.iter().find(|finding| {
                finding.action != Action::Allow
                    && matches!(
                        finding.class,
                        Class::Key | Class::Token | Class::Credential | Class::Totp
                    )
            });
            let number = secret.and_then(|secret| {
                self.kinds
                    .shapes
                    .iter()
                    .position(|shape| shape.kind == secret.kind)
            });
            if let Some(number) = number {
                self.found.push((number as u16, part.range.clone()));
            }
        }
    }

    fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).map(|before| self.bytes[before])
    }

    /// Whether an ASCII word, number or sign that opens one starts here.
    fn starts_word(&self, at: usize) -> bool {
        let here = self.bytes[at];
        let opens = here.is_ascii_alphanumeric()
            || matches!(here, b'+' | b'(' | b'_' | b'<' | b'-' | b'.' | b'~');
        opens && !self.before(at).is_some_and(is_inside_word)
    }

    /// Whether a character beyond ASCII starts here.
    fn starts_letters(&self, at: usize) -> bool {
        !self.bytes[at].is_ascii() && self.view.text.is_char_boundary(at)
    }

    fn is_end_of_sentence(&self, at: usize) -> bool {
        match self.bytes[at] {
            b'.' | b'!' | b'?' => {
                let ends = self
                    .bytes
                    .get(at + 1)
                    .is_some_and(|b| *b == b' ' || *b == b'\n');
                ends && !ABBREVIATED.iter().any(|word| self.ends_with_word(at, word))
            }
            b'\n' => self.bytes.get(at + 1) == Some(&b'\n'),
            0xe3 => self.bytes[at..].starts_with("。".as_bytes()),
            _ => false,
        }
    }

    /// Whether a word that makes numbers harmless stands between `since` and `at`.
    fn is_harmless(&self, at: usize, since: usize) -> bool {
        let first = self
            .harmless
            .partition_point(|end| *end < since.max(at.saturating_sub(HARMLESS)));
        self.harmless.get(first).is_some_and(|end| *end <= at + 4)
    }

    fn is_spelled(&self, at: usize, word: usize) -> bool {
        let rest = &self.bytes[at + word..];
        [&b" (at)"[..], b" [at]", b"(at)", b"[at]"]
            .iter()
            .any(|sign| rest.starts_with(sign))
            || self.view.lower[at..at + word].contains("(at)")
    }

    /// Length of a run of lower-case words.
    fn run_of_words(&self, at: usize) -> usize {
        let rest = self.bytes[at..].iter();
        rest.take_while(|b| b.is_ascii_lowercase() || **b == b' ')
            .count()
    }

    fn ends_with_word(&self, at: usize, word: &str) -> bool {
        let from = at.wrapping_sub(word.len());
        self.view.lower.get(from..at) == Some(word)
            && !self.before(from).is_some_and(|b| b.is_ascii_alphanumeric())
    }

    fn word_start(&self, at: usize) -> usize {
        let back = self.bytes[..at]
            .iter()
            .rev()
            .take(200)
            .take_while(|b| {
                b.is_ascii_graphic()
                    && !matches!(b, b'"' | b'\'' | b'(' | b'<' | b',' | b'=' | b'[')
            })
            .count();
        at - back
    }

    fn findings(self, policy: &Policy) -> Vec<Finding> {
        let mut found = self.found;
        let markers = markers(&self.view.text);
        found.retain(|(_, range)| !is_within(&markers, range.start, range.end));
        sort_by_key(&mut found, |(number, range)| (range.start, *number));
        found
            .into_iter()
            .map(|(number, range)| {
                let shape = &self.kinds.shapes[usize::from(number)];
                Finding {
                    kind: shape.kind,
                    class: shape.class,
                    action: policy.action(shape.kind, shape.action),
                    range: self.view.original(range),
                }
            })
            .collect()
    }
}

/// Whether a stretch overlaps one of `markers`, which stand in order.
fn is_within(markers: &[Range<usize>], start: usize, end: usize) -> bool {
    let next = markers.partition_point(|marker| marker.end <= start);
    markers.get(next).is_some_and(|marker| marker.start < end)
}

/// Markers of earlier redactions.
fn markers(text: &str) -> Vec<Range<usize>> {
    const OPEN: &str = "[REDACTED:";
    let mut markers = Vec::new();
    for (at, _) in text.match_indices(OPEN) {
        let name = &text[at + OPEN.len()..];
        let name = name.split(']').next().unwrap_or_default();
        if Kinds::shared()
            .shapes
            .iter()
            .any(|shape| shape.kind == name)
        {
            markers.push(at..at + OPEN.len() + name.len() + 1);
        }
    }
    markers
}

/// Whether a shape is so common that the words beside it decide.
fn is_told_by_words(shape: &Shape) -> bool {
    match shape.class {
        Class::Generic | Class::Bank | Class::Id | Class::Totp => {
            shape.checks.test != Some(Test::Iban)
        }
        Class::Contact => shape.kind == "phone",
        Class::Token | Class::Credential | Class::Key => shape.place == Place::Near,
        Class::Card => false,
    }
}

fn is_inside_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The text with a marker in place of what the policy does not allow; overlapping findings become one, named after that
/// which stands first in the table.
pub(crate) fn redacted(text: &str, findings: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut pending: Option<(&'static str, Range<usize>)> = None;
    let close = |out: &mut String, at: &mut usize, (kind, range): (&'static str, Range<usize>)| {
        out.push_str(&text[*at..range.start]);
        out.push_str("[REDACTED:");
        out.push_str(kind);
        out.push(']');
        *at = range.end;
    };
    for finding in findings
        .iter()
        .filter(|finding| finding.action != Action::Allow)
    {
        match &mut pending {
            Some((_, range)) if finding.range.start < range.end => {
                range.end = range.end.max(finding.range.end);
            }
            _ => {
                if let Some(done) = pending.replace((finding.kind, finding.range.clone())) {
                    close(&mut out, &mut at, done);
                }
            }
        }
    }
    if let Some(done) = pending {
        close(&mut out, &mut at, done);
    }
    out.push_str(&text[at..]);
    out
}
