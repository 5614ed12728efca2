//! The data files of this crate and of the guard, which are handed over together.

use foremind_types::data::{self, File};

pub use foremind_types::data::MissingFile;

use crate::{
    attributes, changes, consequences, identifiers, kinds, language, lexicon, questions, semantic,
    triggers,
};

/// One of those that the build script makes or copies, from a module below `src/`.
macro_rules! table_file {
    ($name:literal) => {
        ::foremind_types::data::File {
            name: $name,
            #[cfg(feature = "compiled-data")]
            compiled: include_str!(concat!(env!("OUT_DIR"), "/data/", $name)),
            #[cfg(not(feature = "compiled-data"))]
            compiled: "",
        }
    };
}
pub(crate) use table_file;

/// All of them.
fn files() -> [File; 16] {
    [
        lexicon::FILE,
        consequences::FILE,
        attributes::FILE,
        semantic::FILE,
        questions::FILE,
        kinds::FILE,
        triggers::FILE,
        language::FILE,
        changes::CUES,
        changes::MATTERS,
        changes::WEIGHTS,
        identifiers::FILE,
        identifiers::INNER_WORDS,
        foremind_guard::KINDS,
        foremind_guard::CONCEPTS,
        foremind_guard::WEIGHTS,
    ]
}

/// Whether the data files are there. A router or a guard that is made before lets everything pass.
#[must_use]
pub fn has_data() -> bool {
    files().iter().all(|file| !file.text().is_empty())
}

/// Hands the data files over where they are not compiled in: see [`data::install`].
///
/// # Errors
/// [`MissingFile`]; nothing is changed then.
pub fn install_data(bundle: String) -> Result<(), MissingFile> {
    data::install(bundle, files())
}

/// A line of a data file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(crate) file: &'static str,
    /// From 1.
    pub(crate) line: usize,
    pub(crate) problem: &'static str,
}

impl core::fmt::Display for LineError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// Gives each line of a table to `row`, blank ones and comments (`#`) left out; returns those that it cannot read.
pub(crate) fn each_line(
    file: &'static str,
    text: &'static str,
    row: &mut dyn FnMut(&'static str) -> Result<(), &'static str>,
) -> Vec<LineError> {
    let mut errors = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(problem) = row(line) {
            errors.push(LineError {
                file,
                line: at + 1,
                problem,
            });
        }
    }
    errors
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_empty_or_holds_the_mark_of_a_bundle() {
        assert!(has_data());
        for file in files() {
            assert!(!file.text().contains(data::MARK), "{}", file.name);
            // In a bundle a name is all that tells them apart.
            let same = files()
                .iter()
                .filter(|other| other.name == file.name)
                .count();
            assert_eq!(same, 1, "{}", file.name);
        }
    }
}
