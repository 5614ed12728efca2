//! Running other programs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::error::Error;

/// Says on standard error what is being done.
macro_rules! say {
    ($($text:tt)*) => { eprintln!("xtask: {}", format_args!($($text)*)) };
}
pub(crate) use say;

/// Runs `command` with its output on standard error; an exit code other than 0 is an error.
///
/// # Errors
/// [`Error::Program`].
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .map_err(|error| failed(command, format!("it did not start: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(command, status.to_string()))
    }
}

/// Runs `command` and returns its standard output; standard error passes through.
///
/// # Errors
/// [`Error::Program`].
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(command, format!("it did not start: {error}")))?;
    if !output.status.success() {
        return Err(failed(command, output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` in silence; its standard output when it started and ended well.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs `command`, passing each line of standard output on to standard error and to `line`; whether it ended well.
///
/// # Errors
/// [`Error::Program`] when it did not start.
pub(crate) fn stream(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool, Error> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(command, format!("it did not start: {error}")))?;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut bytes = Vec::new();
        while reader
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|count| count > 0)
        {
            let text = String::from_utf8_lossy(&bytes);
            // A closed standard error is no reason to stop the tests.
            let _ = std::io::stderr().write_all(text.as_bytes());
            line(text.trim_end());
            bytes.clear();
        }
    }
    let status = child
        .wait()
        .map_err(|error| failed(command, error.to_string()))?;
    Ok(status.success())
}

/// `npm`, by the name that the system needs.
pub(crate) fn npm() -> Command {
    Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Set for this program by `cargo run`; a nested cargo must not take them for its own package.
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_PKG_NAME");
    command
}

fn failed(command: &Command, outcome: String) -> Error {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        if line.len() > 160 {
            line.push_str(" ...");
            break;
        }
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    Error::Program {
        command: line,
        outcome,
    }
}
