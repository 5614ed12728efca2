//! Makes the tables that are looked up as they stand out of the data files that people write: a module of the build script, and of the
//! tests. What opens a memory or asks a question then reads no list of phrases and sorts none.
//!
//! A table has a line for each phrase, folded as texts are, sorted by its bytes: the phrase, a tab, and a number as one
//! character ([`character`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::words::Words;

/// Shortest beginning of a word that a data file may name, in bytes.
pub(crate) const STEM_BYTES: usize = 3;

/// Begins a line that names a list of phrases.
const LIST: &str = "list\t";
/// Most halvings that the weight of a cue counts.
const WEIGHT_MAX: u32 = 10;
/// Stands for the number 0; what follows are the numbers from 1.
const ZERO: u32 = 0x30;

/// A number as one character.
fn character(number: usize) -> Result<char, String> {
    let code = u32::try_from(number).ok().map(|number| ZERO + number);
    code.and_then(char::from_u32)
        .ok_or_else(|| format!("{number} is too many"))
}

/// The number that a character of a table stands for.
pub(crate) fn number(character: char) -> usize {
    (u32::from(character)).saturating_sub(ZERO) as usize
}

/// A phrase as texts are folded.
fn folded(phrase: &str) -> Result<String, String> {
    let words = Words::of(phrase);
    if words.len() == 0 {
        return Err("empty phrase".to_owned());
    }
    Ok(words.phrase(0, words.len()).to_owned())
}

/// Gives each line to `row`, blank ones and comments (`#`) left out.
///
/// # Errors
/// Those of `row`, with the file and the line, from 1.
fn each_line<'t>(
    (file, text): (&str, &'t str),
    mut row: impl FnMut(&'t str) -> Result<(), String>,
) -> Result<(), String> {
    for (at, line) in text.lines().enumerate() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            row(line).map_err(|problem| format!("{file}:{}: {problem}", at + 1))?;
        }
    }
    Ok(())
}

/// The fields of a line, without the spaces around them.
fn fields<const N: usize>(line: &str) -> Result<[&str; N], String> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    <[&str; N]>::try_from(fields).map_err(|_| format!("expected {N} fields, separated by tabs"))
}

/// Whole phrases and beginnings of words, each with one number or more, or without one.
#[derive(Default)]
struct Phrases {
    whole: BTreeSet<String>,
    stems: BTreeSet<String>,
}

impl Phrases {
    /// The line of a phrase as a data file writes it, and whether it is a beginning: a `*` at the end of a single word makes it one.
    fn line(phrase: &str, number: Option<usize>) -> Result<(String, bool), String> {
        let (text, stem) = match phrase.strip_suffix('*') {
            Some(rest) => (rest, true),
            None => (phrase, false),
        };
        let mut line = folded(text)?;
        if stem && (line.contains(' ') || line.len() < STEM_BYTES) {
            return Err(
                "only a single word of three letters or more can be a beginning".to_owned(),
            );
        }
        if let Some(number) = number {
            line.push('\t');
            line.push(character(number)?);
        }
        Ok((line, stem))
    }

    fn add(&mut self, phrase: &str, number: Option<usize>) -> Result<(), String> {
        let (line, stem) = Self::line(phrase, number)?;
        let lines = if stem {
            &mut self.stems
        } else {
            &mut self.whole
        };
        lines.insert(line);
        Ok(())
    }

    /// The place of each line, counted from `base`.
    fn places(&self, base: usize) -> BTreeMap<(String, bool), usize> {
        let whole = self.whole.iter().map(|line| (line.clone(), false));
        let stems = self.stems.iter().map(|line| (line.clone(), true));
        whole.chain(stems).zip(base..).collect()
    }

    /// The whole phrases, an empty line, the beginnings.
    fn into_text(self) -> String {
        let lines = |lines: BTreeSet<String>| -> String {
            lines.into_iter().map(|line| line + "\n").collect()
        };
        format!("{}\n{}", lines(self.whole), lines(self.stems))
    }
}

/// The lexicon: a line with the meanings (`class domain`, separated by commas), then the table of phrases. Of two domains of one phrase
/// and class the first counts.
pub(crate) fn lexicon(files: &[(&str, &str)]) -> Result<String, String> {
    let mut meanings: Vec<String> = Vec::new();
    let mut lines: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for file in files {
        each_line(*file, |line| {
            let [class, domain, phrases] = fields(line)?;
            let meaning = format!("{class} {domain}");
            let number = meanings.iter().position(|known| *known == meaning);
            let number = number.unwrap_or_else(|| {
                meanings.push(meaning);
                meanings.len() - 1
            });
            for phrase in phrases.split(',') {
                lines.entry((folded(phrase)?, class)).or_insert(number);
            }
            Ok(())
        })?;
    }
    let line = |((phrase, _), number): ((String, &str), usize)| {
        Ok(format!("{phrase}\t{}\n", character(number)?))
    };
    let mut lines = lines
        .into_iter()
        .map(line)
        .collect::<Result<Vec<_>, String>>()?;
    lines.sort();
    Ok(format!("{}\n{}", meanings.join(","), lines.concat()))
}

/// The cues of questions: a line with their names and domains (`name domain`, separated by commas), their phrases, an empty line, and
/// the cue of each phrase by its place, which packs better than beside it.
pub(crate) fn cues(file: (&str, &str)) -> Result<String, String> {
    let mut names: Vec<String> = Vec::new();
    let mut phrases: BTreeSet<(bool, String, usize)> = BTreeSet::new();
    each_line(file, |line| {
        let [name, domain, list] = fields(line)?;
        let entry = format!("{name} {domain}");
        let twice = names
            .iter()
            .any(|known| known.split(' ').next() == Some(name));
        if name.is_empty() || twice {
            return Err("a cue without a name, or named twice".to_owned());
        }
        for phrase in list.split(',') {
            let (line, stem) = Phrases::line(phrase.trim(), None)?;
            phrases.insert((stem, line, names.len()));
        }
        names.push(entry);
        Ok(())
    })?;
    let lines = |of_stems: bool| -> String {
        let lines = phrases.iter().filter(|(stem, ..)| *stem == of_stems);
        lines.map(|(_, line, _)| format!("{line}\n")).collect()
    };
    let numbers = phrases.iter().map(|(.., cue)| character(*cue));
    let numbers: String = numbers.collect::<Result<_, _>>()?;
    let (whole, stems) = (lines(false), lines(true));
    Ok(format!(
        "{}\n{whole}\n{stems}\n{numbers}\n",
        names.join(",")
    ))
}

/// Names of the cues that [`cues`] has made a table of.
fn cue_names(cues: &str) -> Vec<&str> {
    let names = cues.lines().next().unwrap_or_default().split(',');
    names
        .map(|entry| entry.split(' ').next().unwrap_or_default())
        .collect()
}

/// A line of the table of kinds.
struct Kind<'t> {
    name: &'t str,
    domain: &'t str,
    severity: &'t str,
    triggers: &'t str,
    cues: Vec<usize>,
    source: &'t str,
}

/// The kinds of fact, by name, and the lists of phrases that they share.
fn read_kinds<'t>(
    file: (&str, &'t str),
    cues: &str,
) -> Result<(Vec<Kind<'t>>, Vec<[&'t str; 2]>), String> {
    let names = cue_names(cues);
    let (mut kinds, mut lists): (Vec<Kind<'t>>, Vec<[&str; 2]>) = (Vec::new(), Vec::new());
    each_line(file, |line| {
        if let Some(list) = line.strip_prefix(LIST) {
            let (name, phrases) = list.split_once('\t').ok_or("a list without phrases")?;
            lists.push([name.trim(), phrases]);
            return Ok(());
        }
        let [name, domain, severity, triggers, affects, source] = fields(line)?;
        if name.is_empty() || kinds.iter().any(|known| known.name == name) {
            return Err("a kind without a name, or named twice".to_owned());
        }
        if source.is_empty() {
            return Err("a kind without a public source".to_owned());
        }
        let cue = |cue: &str| {
            let at = names.iter().position(|name| *name == cue.trim());
            at.ok_or("unknown cue")
        };
        let cues: BTreeSet<usize> = affects.split(',').map(cue).collect::<Result<_, _>>()?;
        // Read here once so that an error names its line.
        for trigger in triggers.split(',') {
            read_condition(trigger, &lists, &mut |_| Ok(0))?;
        }
        kinds.push(Kind {
            name,
            domain,
            severity,
            triggers,
            cues: cues.into_iter().collect(),
            source,
        });
        Ok(())
    })?;
    kinds.sort_by_key(|kind| kind.name);
    Ok((kinds, lists))
}

/// What a question needs of the kinds: a line with the weight of each cue (1 to 10, the fewer kinds it bears on, the more it
/// tells), then a line for each kind, by name: name, domain, severity, cues, source.
pub(crate) fn kinds(file: (&str, &str), cues: &str) -> Result<String, String> {
    let (kinds, _) = read_kinds(file, cues)?;
    let mut text = String::new();
    for cue in 0..cue_names(cues).len() {
        let bears = kinds.iter().filter(|kind| kind.cues.contains(&cue)).count();
        // Halvings of the table that the cue makes, from 1.
        let halvings = (kinds.len() / bears.max(1)).max(1).ilog2() + 1;
        text.push(character(halvings.min(WEIGHT_MAX) as usize)?);
    }
    text.push('\n');
    for kind in &kinds {
        let cues = kind.cues.iter().map(|cue| character(*cue));
        let cues: String = cues.collect::<Result<_, _>>()?;
        let fields = [kind.name, kind.domain, kind.severity, &cues, kind.source];
        text.push_str(&fields.join("\t"));
        text.push('\n');
    }
    Ok(text)
}

/// A condition: the slots of its phrases, and its marks ([`NOTED`] and so on).
struct Condition {
    first: usize,
    second: Option<usize>,
    marks: usize,
}

/// Marks of a condition, as bits.
pub(crate) const NOTED: usize = 1;
pub(crate) const STRONG: usize = 2;
pub(crate) const NEAR: usize = 4;
pub(crate) const PLAIN: usize = 8;

/// Reads one condition; `slot` gives a phrase its slot.
fn read_condition(
    trigger: &str,
    lists: &[[&str; 2]],
    slot: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Condition, String> {
    let trigger = trigger.trim();
    let (mut marks, trigger) = match trigger.as_bytes().first() {
        Some(b'~') => (NOTED, trigger[1..].trim_start()),
        Some(b'!') => (STRONG, trigger[1..].trim_start()),
        _ => (0, trigger),
    };
    let near = trigger.contains(" > ");
    let names_owner = |word: &str| {
        matches!(
            word,
            "i" | "i'm" | "i've" | "my" | "our" | "we" | "we've" | "we're" | "me" | "us" | "am"
        )
    };
    if near {
        marks |= NEAR;
    }
    if trigger.split(' ').any(names_owner) {
        marks |= PLAIN;
    }
    let mut part = |phrase: &str| {
        let list = phrase.strip_prefix('[').and_then(|p| p.strip_suffix(']'));
        match list {
            // The lists have the first slots.
            Some(name) => {
                let at = lists.iter().position(|list| list[0] == name);
                at.ok_or_else(|| "unknown list".to_owned())
            }
            None => slot(phrase),
        }
    };
    let mut parts = trigger
        .split(if near { " > " } else { " + " })
        .map(str::trim);
    let first = part(parts.next().unwrap_or_default())?;
    let second = parts.next().map(&mut part).transpose()?;
    if parts.next().is_some() {
        return Err("more than two phrases of one condition".to_owned());
    }
    Ok(Condition {
        first,
        second,
        marks,
    })
}

/// What betrays that a statement is of a kind: a line with the number of lists; the phrases, those of a list with its number, the
/// others without one, since theirs is their place after the lists; an empty line; and the conditions by their first slot, a line for
/// each column: first slot less that of the condition before, kind, marks, second slot from 1 or 0.
pub(crate) fn triggers(file: (&str, &str), cues: &str) -> Result<String, String> {
    let (kinds, lists) = read_kinds(file, cues)?;
    let mut phrases = Phrases::default();
    for (slot, [_, list]) in lists.iter().enumerate() {
        for phrase in list.split(',') {
            phrases.add(phrase.trim(), Some(slot))?;
        }
    }
    let mut of_kinds: Vec<(usize, &str)> = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        of_kinds.extend(kind.triggers.split(',').map(|trigger| (number, trigger)));
    }
    for (_, trigger) in &of_kinds {
        let mut slot = |phrase: &str| phrases.add(phrase, None).map(|()| 0);
        read_condition(trigger, &lists, &mut slot)?;
    }
    let places = phrases.places(lists.len());
    let mut found = Vec::new();
    for (kind, trigger) in of_kinds {
        let mut slot = |phrase: &str| {
            let place = places.get(&Phrases::line(phrase, None)?);
            place.copied().ok_or_else(|| "unknown phrase".to_owned())
        };
        found.push((read_condition(trigger, &lists, &mut slot)?, kind));
    }
    found.sort_by_key(|(condition, _)| condition.first);
    let mut text = format!("{}\n{}\n", character(lists.len())?, phrases.into_text());
    let mut columns = [const { String::new() }; 4];
    let mut before = 0;
    for (condition, kind) in found {
        let second = condition.second.map_or(0, |slot| slot + 1);
        let row = [condition.first - before, kind, condition.marks, second];
        before = condition.first;
        for (column, number) in columns.iter_mut().zip(row) {
            column.push(character(number)?);
        }
    }
    for column in columns {
        text.push_str(&column);
        text.push('\n');
    }
    Ok(text)
}

/// Classes of `identifiers.tsv`, each a bit by its place.
pub(crate) const IDENTIFIER_CLASSES: [&str; 14] = [
    "given",
    "family",
    "cue",
    "relation",
    "after-name",
    "verb",
    "keep",
    "street-after",
    "street-before",
    "unit",
    "code",
    "particle",
    "birth",
    "avoid",
];

/// The lists of `identifiers.tsv`: each phrase as it stands there, with the bits of its classes.
pub(crate) fn identifiers(file: (&str, &str)) -> Result<String, String> {
    let mut phrases: BTreeMap<&str, usize> = BTreeMap::new();
    each_line(file, |line| {
        let [class, list] = fields(line)?;
        let bit = IDENTIFIER_CLASSES.iter().position(|known| *known == class);
        let bit = bit.ok_or("unknown class")?;
        for phrase in list.split(',') {
            *phrases.entry(phrase.trim()).or_default() |= 1 << bit;
        }
        Ok(())
    })?;
    let line = |(phrase, bits): (&str, usize)| Ok(format!("{phrase}\t{}\n", character(bits)?));
    let mut lines = phrases
        .into_iter()
        .map(line)
        .collect::<Result<Vec<_>, String>>()?;
    lines.sort();
    Ok(lines.concat())
}

/// The words of `files` with which no phrase of `tables` begins, one a line, sorted. Words with a capital are names of sources.
pub(crate) fn inner_words(files: &[&str], tables: &[&str]) -> String {
    let mut inner = BTreeSet::new();
    let lines = files.iter().flat_map(|text| text.lines());
    for line in lines.filter(|line| !line.starts_with('#')) {
        for word in line.split(|c: char| !c.is_alphanumeric()) {
            let words = Words::of(word);
            // Scripts without spaces are read character by character.
            if words.len() == 1 && !word.contains(char::is_uppercase) {
                inner.insert(words.phrase(0, 1).to_owned());
            }
        }
    }
    for line in tables.iter().flat_map(|table| table.lines()) {
        let phrase = line.split('\t').next().unwrap_or_default();
        let first = phrase.split(|c: char| !c.is_alphanumeric()).next();
        inner.remove(first.unwrap_or_default());
    }
    let lines: Vec<String> = inner.into_iter().map(|word| word + "\n").collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_folded_and_sorted_so_that_a_longer_one_follows_its_beginning() {
        let mut phrases = Phrases::default();
        for (phrase, number) in [
            ("starfruit", 1),
            ("Star fruit", 2),
            ("star", 3),
            ("crème", 4),
        ] {
            phrases.add(phrase, Some(number)).unwrap();
        }
        phrases.add("swim*", None).unwrap();
        assert_eq!(
            phrases.into_text(),
            "creme\t4\nstar\t3\nstar fruit\t2\nstarfruit\t1\n\nswim\n"
        );
    }

    #[test]
    fn numbers_come_back() {
        for at in [0, 1, 511, 6_000, 16_383] {
            assert_eq!(number(character(at).unwrap()), at);
        }
        assert!(character(usize::MAX).is_err());
        assert!(character(0xd7d0).is_err(), "a surrogate");
    }

    #[test]
    fn a_bad_phrase_is_refused() {
        let mut phrases = Phrases::default();
        assert!(phrases.add("two words*", None).is_err());
        assert!(phrases.add("ab*", None).is_err());
        assert!(phrases.add("?", None).is_err());
    }

    #[test]
    fn an_error_names_file_and_line() {
        let error = |made: Result<String, String>| made.unwrap_err();
        assert_eq!(
            error(lexicon(&[(
                "x.tsv",
                "# fine\nmedical\tallergy\tasthma\nmedical\tx\n"
            )])),
            "x.tsv:3: expected 3 fields, separated by tabs"
        );
        assert_eq!(
            error(cues(("q.tsv", "a\tfood\tx\na\tfood\ty"))),
            "q.tsv:2: a cue without a name, or named twice"
        );
        let table = cues(("q.tsv", "acids\thome\tvinegar")).unwrap();
        for (line, problem) in [
            (
                "a\thome\tmild\tx\tacids\tEPA",
                "2: a kind without a name, or named twice",
            ),
            ("b\thome\tmild\tx\tacid\tEPA", "2: unknown cue"),
            ("c\thome\tmild\t[kim] + x\tacids\tEPA", "2: unknown list"),
            (
                "d\thome\tmild\tx\tacids\t",
                "2: a kind without a public source",
            ),
            (
                "e\thome\tmild\tx",
                "2: expected 6 fields, separated by tabs",
            ),
            (
                "f\thome\tmild\tx + y + z\tacids\tEPA",
                "2: more than two phrases of one condition",
            ),
        ] {
            let text = format!("a\thome\tmild\tx\tacids\tEPA\n{line}\n");
            assert_eq!(
                error(kinds(("t.tsv", &text), &table)),
                format!("t.tsv:{problem}")
            );
        }
    }

    #[test]
    fn words_that_begin_no_phrase_are_listed() {
        assert_eq!(
            inner_words(
                &["pine nut, nut oil", "oil"],
                &["pine nut\t0\nnut oil\t0\n"]
            ),
            "oil\n"
        );
    }
}
