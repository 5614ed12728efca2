//! The `eval` command: builds the benchmark runner and hands it the rest of the command line.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::error::Error;
use crate::files::Workspace;
use crate::model;
use crate::process::cargo;

/// The suites that the heads have a say in.
const JUDGED: [&str; 6] = [
    "routing",
    "inmind",
    "indirect",
    "supersession",
    "longmemeval",
    "locomo",
];

/// Runs `foremind-eval` in the caller's folder, so that paths mean what the caller means, with the heads that ship unless
/// others are named. Its exit code is ours: 2 for bad input, whose one line it has printed already.
///
/// # Errors
/// Those of the model; [`Error::Program`] when it cannot be started.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<ExitCode, Error> {
    let (suite, rest) = arguments.split_at(arguments.len().min(1));
    let judges = suite.iter().any(|suite| JUDGED.contains(&suite.as_str()));
    let mut heads: Vec<OsString> = Vec::new();
    if judges && !rest.iter().any(|argument| argument == "--lexical") {
        model::ensure(workspace)?;
        let model = workspace.path("target/model").join(model::PACK);
        let data = workspace.path("crates/foremind-router/data");
        for (flag, file) in [
            ("--model", model),
            ("--adapter", data.join("route.fmadpt")),
            ("--ngrams", data.join("ngrams.bin")),
        ] {
            heads.extend([flag.into(), file.into()]);
        }
    }
    let status = cargo()
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "foremind-eval",
            "--",
        ])
        .args(suite)
        .args(heads)
        .args(rest)
        .status()
        .map_err(|error| Error::Program {
            command: "cargo run --package foremind-eval".to_owned(),
            outcome: error.to_string(),
        })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
