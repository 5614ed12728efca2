//! The data files: compiled in with the feature `compiled-data`, else handed over once, before the first router is made. As a
//! file of its own they load beside the module, and a host may cache and compress them as text.

use std::sync::OnceLock;

/// Stands before the name of each file of a bundle; its text follows on the next line.
const MARK: char = '\u{1}';

/// Names and texts.
type Files = Vec<(&'static str, &'static str)>;

static INSTALLED: OnceLock<Files> = OnceLock::new();

/// One data file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) compiled: &'static str,
}

/// A file of `data/`.
#[cfg(feature = "compiled-data")]
macro_rules! file {
    ($name:literal) => {
        $crate::data::File {
            name: $name,
            compiled: include_str!(concat!("../data/", $name)),
        }
    };
}
#[cfg(not(feature = "compiled-data"))]
macro_rules! file {
    ($name:literal) => {
        $crate::data::File {
            name: $name,
            compiled: "",
        }
    };
}
pub(crate) use file;

impl File {
    /// The text; empty while nothing is there.
    pub(crate) fn text(self) -> &'static str {
        if cfg!(feature = "compiled-data") {
            return self.compiled;
        }
        let files = INSTALLED.get().map_or(&[][..], Vec::as_slice);
        let found = files.iter().find(|(name, _)| *name == self.name);
        found.map_or("", |(_, text)| text)
    }
}

/// Why a bundle of data files cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// The file that it lacks.
    pub name: &'static str,
}

impl core::fmt::Display for MissingFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the data file lacks {}: it is of another version of the package",
            self.name
        )
    }
}

impl core::error::Error for MissingFile {}

/// Whether the data files are there. A router that is made before has no lexicon.
#[must_use]
pub fn has_data() -> bool {
    cfg!(feature = "compiled-data") || INSTALLED.get().is_some()
}

/// Hands the data files over, once for the process: for each a line with U+0001 and its name, then its text. A second
/// bundle changes nothing, nor does one where they are compiled in.
///
/// # Errors
/// [`MissingFile`]; nothing is changed then.
pub fn install_data(bundle: String) -> Result<(), MissingFile> {
    if has_data() {
        return Ok(());
    }
    let files = read(Box::leak(bundle.into_boxed_str()))?;
    // Whoever was first has installed the same.
    let _ = INSTALLED.set(files);
    Ok(())
}

fn read(bundle: &'static str) -> Result<Files, MissingFile> {
    let parts = bundle.split(MARK);
    let files: Files = parts.filter_map(|part| part.split_once('\n')).collect();
    let has = |wanted: &str| files.iter().any(|(name, _)| *name == wanted);
    match crate::files().find(|file| !has(file.name)) {
        Some(File { name, .. }) => Err(MissingFile { name }),
        None => Ok(files),
    }
}

#[cfg(all(test, feature = "compiled-data"))]
mod tests {
    use super::*;

    /// As the build writes it.
    fn bundle() -> String {
        crate::files()
            .map(|file| format!("{MARK}{}\n{}", file.name, file.text()))
            .collect()
    }

    #[test]
    fn a_bundle_gives_each_file_back() {
        let files = read(Box::leak(bundle().into_boxed_str())).unwrap();
        for file in crate::files() {
            assert!(files.contains(&(file.name, file.text())), "{}", file.name);
            assert!(!file.text().contains(MARK), "{}", file.name);
        }
        assert_eq!(files.len(), crate::files().count());
    }

    #[test]
    fn a_bundle_that_lacks_a_file_is_refused_by_its_name() {
        let part = bundle().split_inclusive(MARK).take(3).collect::<String>();
        let refused = read(Box::leak(part.into_boxed_str()));
        assert_eq!(refused.unwrap_err().name, "legal.tsv");
        assert!(has_data());
    }
}
