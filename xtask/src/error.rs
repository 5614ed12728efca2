//! What can go wrong, and whose fault it is.

use std::fmt;
use std::path::PathBuf;

/// One failure of a command; the display text is one line that says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The command line names something that does not exist.
    Usage(String),
    /// The machine lacks a tool; the text says which and how to get it.
    Machine(String),
    /// A file that the command needs is absent, cut or altered.
    Input(String),
    /// The operating system refused a file operation.
    Io {
        /// What was being done, as a verb phrase: "read", "create".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A program that was started failed.
    Program {
        /// The command line, shortened.
        command: String,
        /// Its exit code or the reason that it did not start.
        outcome: String,
    },
    /// A built artefact is not as it has to be.
    Artefact(String),
    /// Some tests failed; the table above says which.
    TestsFailed(usize),
}

impl Error {
    /// 2 where the command line, an input or the machine is at fault, 1 otherwise.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::Machine(_) | Error::Input(_) => 2,
            Error::Io { .. }
            | Error::Program { .. }
            | Error::Artefact(_)
            | Error::TestsFailed(_) => 1,
        }
    }

    /// An [`Error::Io`] maker for `map_err`.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io {
            doing,
            path,
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text)
            | Error::Machine(text)
            | Error::Input(text)
            | Error::Artefact(text) => f.write_str(text),
            Error::Io {
                doing,
                path,
                source,
            } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Error::Program { command, outcome } => write!(f, "`{command}` failed: {outcome}"),
            Error::TestsFailed(count) => write!(
                f,
                "{count} failed; the lines marked FAILED above name the suites"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
