//! Where things are, content hashes, and stamps of work already done.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::Error;

/// The repository's folders.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this program was built from.
    ///
    /// # Errors
    /// [`Error::Input`] when the source folder has moved since.
    pub(crate) fn locate() -> Result<Self, Error> {
        // `cargo xtask` sets the variable anew on each run; the program alone knows where it was compiled.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = package.parent().unwrap_or(Path::new(".")).to_path_buf();
        if !root.join("Cargo.toml").is_file() {
            return Err(Error::Input(format!(
                "no workspace at {}; run cargo xtask inside it",
                root.display()
            )));
        }
        Ok(Workspace { root })
    }

    /// A path below the root.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// The repository's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder below the root, created when it is absent.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn folder(&self, below: &str) -> Result<PathBuf, Error> {
        let path = self.path(below);
        fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(path)
    }
}

/// Lower-case hexadecimal SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The whole file.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}

/// Writes through a neighbour and a rename, so that an interrupted run leaves no half file.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    fs::write(&part, bytes).map_err(Error::io("write", &part))?;
    fs::rename(&part, path).map_err(Error::io("write", path))
}

/// [`write()`], unless the file holds these bytes already: keeps its time for tools that look at it. Whether it wrote.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    write(path, bytes).map(|()| true)
}

/// All source files below `folder`, sorted: those outside `node_modules` and `dist`.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    walk(folder, &["node_modules", "dist"])
}

/// All files below `folder`, sorted.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    walk(folder, &[])
}

fn walk(folder: &Path, left_out: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
            let path = entry.map_err(Error::io("list", &folder))?.path();
            if path.is_dir() {
                if !left_out.iter().any(|name| path.ends_with(name)) {
                    open.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A file that remembers the hash of the inputs of a finished step.
pub(crate) struct Stamp {
    path: PathBuf,
    inputs: Sha256,
}

impl Stamp {
    /// The stamp at `path`, with no input yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Stamp {
            path,
            inputs: Sha256::new(),
        }
    }

    /// Adds an input; its length goes first, so two inputs never read as one.
    pub(crate) fn input(mut self, bytes: &[u8]) -> Self {
        self.inputs.update(bytes.len().to_le_bytes());
        self.inputs.update(bytes);
        self
    }

    /// Adds the name and content of each file.
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub(crate) fn files(mut self, paths: &[PathBuf]) -> Result<Self, Error> {
        for path in paths {
            self = self
                .input(path.to_string_lossy().as_bytes())
                .input(&read(path)?);
        }
        Ok(self)
    }

    /// Whether the step was finished with just these inputs.
    pub(crate) fn is_fresh(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|old| old == self.digest())
    }

    /// Remembers that the step is finished.
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub(crate) fn set(&self) -> Result<(), Error> {
        write(&self.path, self.digest().as_bytes())
    }

    fn digest(&self) -> String {
        self.inputs
            .clone()
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_that_of_fips_180_4() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_stamp_holds_for_its_inputs_only() {
        let folder =
            std::env::temp_dir().join(format!("foremind-xtask-stamp-{}", std::process::id()));
        let stamp = |parts: &[&str]| {
            parts
                .iter()
                .fold(Stamp::new(folder.join("stamp")), |stamp, part| {
                    stamp.input(part.as_bytes())
                })
        };
        assert!(!stamp(&["ab", "c"]).is_fresh());
        stamp(&["ab", "c"]).set().unwrap();
        assert!(stamp(&["ab", "c"]).is_fresh());
        assert!(!stamp(&["a", "bc"]).is_fresh());
        fs::remove_dir_all(&folder).unwrap();
    }
}
