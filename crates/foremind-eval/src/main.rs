//! The benchmark runner: `foremind-eval routing|inmind|indirect|supersession|longmemeval|locomo|guard`, started by `cargo xtask eval`.
//!
//! Progress and `--explain` listings go to standard error; the figures go to standard output, with `--json` as one JSON
//! object on the last line. Exit code 2: a file is missing, a row is bad (its line is named) or the command line is wrong.

// A command-line tool speaks through these two streams; the lint keeps libraries from doing so.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod baselines;
mod dates;
mod guard;
mod input;
mod locomo;
mod longmemeval;
mod memory;
mod ranking;
mod rates;
mod routing;
mod stages;
mod supersession;
mod tasks;
mod trace;

use std::process::ExitCode;

use serde_json::Value;

use arguments::{Arguments, Suite};
use input::Problem;

fn main() -> ExitCode {
    let figures = Arguments::parse(std::env::args().skip(1)).and_then(|arguments| {
        let json = arguments.json;
        run(&arguments).map(|figures| (figures, json))
    });
    match figures {
        Ok((figures, true)) => println!("{figures}"),
        Ok((figures, false)) => {
            for (name, figure) in figures.as_object().into_iter().flatten() {
                println!("{name}: {figure}");
            }
        }
        Err(problem) => {
            eprintln!("eval: {problem}");
            return ExitCode::from(problem.exit_code());
        }
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Arguments) -> Result<Value, Problem> {
    match arguments.suite {
        Suite::Routing => routing::measure(arguments),
        Suite::Guard => guard::measure(arguments),
        Suite::Supersession => supersession::measure(arguments),
        Suite::InMind | Suite::Indirect => trace::measure(arguments),
        Suite::LongMemEval => longmemeval::measure(arguments),
        Suite::LoCoMo => locomo::measure(arguments),
    }
}
