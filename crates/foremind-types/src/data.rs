//! Data files of the crates: compiled in (their feature `compiled-data`), or handed over once, before they are first read. As a
//! file of their own they load beside a wasm module, and a host may cache and compress them as text.

use std::sync::OnceLock;

/// Stands before the name of each file of a bundle; its text follows on the next line.
pub const MARK: char = '\u{1}';

/// Names and texts.
type Files = Vec<(&'static str, &'static str)>;

static INSTALLED: OnceLock<Files> = OnceLock::new();

/// One data file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name, with ending.
    pub name: &'static str,
    /// Its text, or nothing where it is not compiled in.
    pub compiled: &'static str,
}

impl File {
    /// The text; empty while nothing is there.
    #[must_use]
    pub fn text(self) -> &'static str {
        if !self.compiled.is_empty() {
            return self.compiled;
        }
        let files = INSTALLED.get().map_or(&[][..], Vec::as_slice);
        let found = files.iter().find(|(name, _)| *name == self.name);
        found.map_or("", |(_, text)| text)
    }
}

/// A file of the crate's `data/`, from a module below `src/`.
#[macro_export]
macro_rules! data_file {
    ($name:literal) => {
        $crate::data::File {
            name: $name,
            #[cfg(feature = "compiled-data")]
            compiled: include_str!(concat!("../data/", $name)),
            #[cfg(not(feature = "compiled-data"))]
            compiled: "",
        }
    };
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

/// Hands data files over, once for the process: for each a line with [`MARK`] and its name, then its text. A second bundle
/// changes nothing.
///
/// # Errors
/// [`MissingFile`] when one of `wanted` is not in it; nothing is changed then.
pub fn install(bundle: String, wanted: impl IntoIterator<Item = File>) -> Result<(), MissingFile> {
    let bundle: &'static str = Box::leak(bundle.into_boxed_str());
    let parts = bundle.split(MARK);
    let files: Files = parts.filter_map(|part| part.split_once('\n')).collect();
    let has = |wanted: &str| files.iter().any(|(name, _)| *name == wanted);
    if let Some(File { name, .. }) = wanted.into_iter().find(|file| !has(file.name)) {
        return Err(MissingFile { name });
    }
    // Whoever was first has installed the same.
    let _ = INSTALLED.set(files);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEK: File = File {
        name: "greek.tsv",
        compiled: "",
    };
    const LATIN: File = File {
        name: "latin.tsv",
        compiled: "",
    };

    #[test]
    fn a_bundle_gives_each_file_back_and_one_that_lacks_a_file_is_refused() {
        assert_eq!(GREEK.text(), "");
        let part = format!("{MARK}greek.tsv\na\n\nb");
        let refused = install(part.clone(), [GREEK, LATIN]);
        assert_eq!(refused, Err(MissingFile { name: "latin.tsv" }));
        assert_eq!(GREEK.text(), "", "nothing was installed");
        let whole = format!("{part}{MARK}latin.tsv\nc");
        assert_eq!(install(whole, [GREEK, LATIN]), Ok(()));
        assert_eq!((GREEK.text(), LATIN.text()), ("a\n\nb", "c"));
        assert_eq!(install(part, [GREEK]), Ok(()));
        assert_eq!(LATIN.text(), "c", "the first counts");
        let compiled = File {
            compiled: "d",
            ..LATIN
        };
        assert_eq!(compiled.text(), "d");
    }
}
