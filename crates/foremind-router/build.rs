//! Makes the tables of `src/compile.rs` out of `data/*.tsv`, and lays the other data files beside them: what is found in `$OUT_DIR/data`
//! is what the router reads, compiled in or handed over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "src/compile.rs"]
#[allow(dead_code, reason = "the readers of the tables use the rest")]
mod compile;
#[path = "src/words.rs"]
#[allow(dead_code, reason = "the router uses the rest")]
mod words;

/// The files of the lexicon, in reading order.
const LEXICON: [&str; 11] = [
    "medical.tsv",
    "diet.tsv",
    "medications.tsv",
    "legal.tsv",
    "circumstances.tsv",
    "rules.tsv",
    "people.tsv",
    "cues.tsv",
    "idioms.tsv",
    "topics.tsv",
    "languages.tsv",
];
/// Those that go on as they are, and whose words are words of a language.
const PLAIN: [&str; 5] = [
    "attributes.tsv",
    "changes.tsv",
    "domains.tsv",
    "function_words.tsv",
    "matters.tsv",
];
/// Those of numbers.
const NUMBERS: [&str; 2] = ["heads.tsv", "replaces.tsv"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=data");
    println!("cargo::rerun-if-changed=src/compile.rs");
    println!("cargo::rerun-if-changed=src/words.rs");
    let read = |name: &str| fs::read_to_string(Path::new("data").join(name));
    let out = PathBuf::from(env::var("OUT_DIR")?).join("data");
    fs::create_dir_all(&out)?;
    // What an earlier build has left would be handed over with the rest.
    let mut left: BTreeSet<PathBuf> = fs::read_dir(&out)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    let mut write = |name: &str, text: &str| {
        left.remove(&out.join(name));
        write_if_changed(&out.join(name), text.as_bytes())
    };

    let texts: Vec<String> = LEXICON
        .iter()
        .map(|name| read(name))
        .collect::<Result<_, _>>()?;
    let files: Vec<(&str, &str)> = LEXICON
        .iter()
        .copied()
        .zip(texts.iter().map(String::as_str))
        .collect();
    let (questions, consequences) = (read("questions.tsv")?, read("consequences.tsv")?);
    let consequences_file = ("consequences.tsv", consequences.as_str());
    let lexicon = compile::lexicon(&files)?;
    let cues = compile::cues(("questions.tsv", &questions))?;
    let triggers = compile::triggers(consequences_file, &cues)?;
    write("lexicon.tsv", &lexicon)?;
    write("questions.tsv", &cues)?;
    write("fact_kinds.tsv", &compile::kinds(consequences_file, &cues)?)?;
    write("triggers.tsv", &triggers)?;
    write(
        "identifiers.tsv",
        &compile::identifiers(("identifiers.tsv", &read("identifiers.tsv")?))?,
    )?;

    let plain: Vec<String> = PLAIN
        .iter()
        .map(|name| read(name))
        .collect::<Result<_, _>>()?;
    for (name, text) in PLAIN.iter().zip(&plain) {
        write(name, text)?;
    }
    for name in NUMBERS {
        write(name, &read(name)?)?;
    }
    let written = texts
        .iter()
        .chain([&questions, &consequences])
        .chain(&plain);
    let written: Vec<&str> = written.map(String::as_str).collect();
    write(
        "inner_words.tsv",
        &compile::inner_words(&written, &[&lexicon, &cues, &triggers]),
    )?;
    for path in left {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Leaves the time of a file alone that would stay the same.
fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::read(path) {
        Ok(old) if old == bytes => Ok(()),
        _ => fs::write(path, bytes),
    }
}
