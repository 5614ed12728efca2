//! `cargo xtask`: build, test, measure and demonstrate foremind.
//!
//! Progress goes to standard error. What a command was asked for goes to standard output; with `--json` the last line of
//! it is one JSON object. Exit code 0: done; 1: something failed; 2: the command, its input or the machine is at fault.

// A command-line tool speaks through these two streams; the lint keeps libraries from doing so.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod build;
mod checkpoint;
mod demo;
mod error;
mod eval;
mod files;
mod imports;
mod model;
mod process;
mod sbom;
mod setup;
mod suites;

use std::process::ExitCode;

use args::Command;
use error::Error;
use files::Workspace;

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)).and_then(run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Error> {
    let workspace = Workspace::locate()?;
    if let Command::Eval(arguments) = &command {
        return eval::run(&workspace, arguments);
    }
    match command {
        Command::Eval(_) => Ok(()),
        Command::Usage => {
            println!("{}", args::USAGE);
            Ok(())
        }
        Command::Demo { serve } => demo::run_demo(&workspace, serve),
        Command::Test(extent) => suites::run(&workspace, extent),
        Command::Build(profile) => build::everything(&workspace, profile),
        Command::Components => build::components(&workspace, args::Profile::Ci),
        Command::Model => model::ensure(&workspace).map(|_| ()),
        Command::Sbom => sbom::run(&workspace),
        Command::Imports { json } => imports::run(&workspace, json),
        Command::BenchSize { json } => bench::size(&workspace, json),
        Command::BenchEmbed { json, chart } => bench::embed(&workspace, json, chart),
        Command::BenchHosts { json } => bench::hosts(&workspace, json),
        Command::BenchOpen { json } => bench::open(&workspace, json),
        Command::BenchRecall { json } => bench::recalls(&workspace, json),
        Command::BenchWrite { json } => bench::writes(&workspace, json),
    }
    .map(|()| ExitCode::SUCCESS)
}
