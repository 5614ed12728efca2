//! The data files of this crate and of the guard, which are handed over together.

use foremind_types::data::{self, File};

pub use foremind_types::data::MissingFile;

use crate::lexicon::{FILES, LineError};
use crate::{attributes, changes, consequences, identifiers, kinds, language, questions, semantic};

/// All of them.
fn files() -> impl Iterator<Item = File> {
    FILES.into_iter().chain([
        consequences::FILE,
        attributes::FILE,
        semantic::FILE,
        questions::FILE,
        kinds::FILE,
        language::FILE,
        changes::CUES,
        changes::MATTERS,
        changes::WEIGHTS,
        identifiers::FILE,
        foremind_guard::KINDS,
    ])
}

/// Those whose words are words of a language.
pub(crate) fn vocabulary() -> impl Iterator<Item = File> {
    let others = [
        consequences::FILE,
        attributes::FILE,
        questions::FILE,
        kinds::FILE,
        language::FILE,
        changes::CUES,
        changes::MATTERS,
    ];
    FILES.into_iter().chain(others)
}

/// Whether the data files are there. A router or a guard that is made before lets everything pass.
#[must_use]
pub fn has_data() -> bool {
    files().all(|file| !file.text().is_empty())
}

/// Hands the data files over where they are not compiled in: see [`data::install`].
///
/// # Errors
/// [`MissingFile`]; nothing is changed then.
pub fn install_data(bundle: String) -> Result<(), MissingFile> {
    data::install(bundle, files())
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
        }
    }
}
