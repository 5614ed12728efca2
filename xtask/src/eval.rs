//! The `eval` command: builds the benchmark runner and hands it the rest of the command line.

use std::process::ExitCode;

use crate::error::Error;
use crate::process::cargo;

/// Runs `foremind-eval` in the caller's folder, so that paths mean what the caller means. Its exit code is ours: 2 for bad
/// input, whose one line it has printed already.
///
/// # Errors
/// [`Error::Program`] when it cannot be started.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let status = cargo()
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "foremind-eval",
            "--",
        ])
        .args(arguments)
        .status()
        .map_err(|error| Error::Program {
            command: "cargo run --package foremind-eval".to_owned(),
            outcome: error.to_string(),
        })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
