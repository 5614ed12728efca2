//! The command line.

use crate::error::Error;

/// What the command line can say.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>
  demo [--no-serve]               install, build, tell the macaron story, then serve the page
  test [--fast | --long]          run the tests on every host; --fast without browsers and hosts
  build [--profile release|ci]    pkg/dist and target/components
  components                      target/components alone, quickly
  model                           fetch, check and pack the model
  sbom                            target/sbom.cdx.json: what is in the modules, components and the npm package
  imports [--json]                what each built module and component imports
  bench size|open|write|recall|hosts [--json]
                                  measure
  bench embed [--json] [--chart]  measure the embedder; --chart draws docs/embed.svg anew
  eval routing|inmind|indirect|supersession [...]  measure on labelled rows: --rows F | --tasks F, --background F,
                                  --background-labels F, --mode trace|pool, --no-join, --budget-tokens N, --explain, --json
  eval longmemeval|locomo [...]   measure what is found: --data F, --distractors N, --cache F, --budget-tokens N, --explain, --json
  eval guard [...]                measure what is kept out: --data FOLDER, or --rows F
                                  [--format foremind|memshield|notinject|bastion|presidio|routing], --part dev|test, --explain, --json";

/// One parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Print [`USAGE`].
    Usage,
    /// Write the bill of materials.
    Sbom,
    /// The macaron story; `serve`: the page afterwards.
    Demo {
        /// Serve `www/dist` until interrupted.
        serve: bool,
    },
    /// The test suites.
    Test(Extent),
    /// `pkg/dist` and the components.
    Build(Profile),
    /// The components alone, in the quick profile.
    Components,
    /// The packed model.
    Model,
    /// The import lists.
    Imports {
        /// One JSON object as the last line.
        json: bool,
    },
    /// Sizes of what ships.
    BenchSize {
        /// One JSON object as the last line.
        json: bool,
    },
    /// The embedder against others.
    BenchEmbed {
        /// One JSON object as the last line.
        json: bool,
        /// Draw the README's chart anew.
        chart: bool,
    },
    /// The hosted service in workerd, the components in wasmtime.
    BenchHosts {
        /// One JSON object as the last line.
        json: bool,
    },
    /// The benchmark runner, which reads its own arguments.
    Eval(Vec<String>),
    /// Time from process start to first lexical recall.
    BenchOpen {
        /// One JSON object as the last line.
        json: bool,
    },
    /// Time of one recall at several sizes, in wasm.
    BenchRecall {
        /// Print one JSON object on the last line.
        json: bool,
    },
    /// Time of one acknowledged write.
    BenchWrite {
        /// One JSON object as the last line.
        json: bool,
    },
}

/// How much of the test suites to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Without browsers and hosts.
    Fast,
    /// Every suite.
    Full,
    /// Every suite, with the full counts of property and fault runs.
    Long,
}

/// How wasm is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Small, with fat link-time optimisation: what ships for the web.
    Release,
    /// Fast, with the same: what ships as components.
    Component,
    /// Thin link-time optimisation: minutes less, some percent larger.
    Ci,
}

impl Profile {
    /// The cargo profile's name.
    pub(crate) fn cargo_name(self) -> &'static str {
        match self {
            Profile::Release => "wasm",
            Profile::Component => "component",
            Profile::Ci => "wasm-ci",
        }
    }

    /// How hard wasm-opt tries: the highest level takes minutes on the larger module.
    pub(crate) fn wasm_opt_level(self) -> &'static str {
        match self {
            Profile::Release | Profile::Component => "-O3",
            Profile::Ci => "-O1",
        }
    }
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// [`Error::Usage`] for an unknown command or argument, naming it.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, Error> {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((&command, rest)) = words.split_first() else {
        return Ok(Command::Usage);
    };
    match command {
        "help" | "--help" | "-h" => {
            flags(command, rest, &[])?;
            Ok(Command::Usage)
        }
        "demo" => Ok(Command::Demo {
            serve: !flags(command, rest, &["--no-serve"])?,
        }),
        "test" => match rest {
            [] => Ok(Command::Test(Extent::Full)),
            ["--fast"] => Ok(Command::Test(Extent::Fast)),
            ["--long"] => Ok(Command::Test(Extent::Long)),
            ["--fast" | "--long", "--fast" | "--long"] => Err(Error::Usage(
                "test: --fast and --long exclude each other".to_owned(),
            )),
            ["--fast" | "--long", unknown, ..] | [unknown, ..] => {
                Err(unknown_argument(command, unknown))
            }
        },
        "build" => match rest {
            [] | ["--profile", "release"] | ["--profile=release"] => {
                Ok(Command::Build(Profile::Release))
            }
            ["--profile", "ci"] | ["--profile=ci"] => Ok(Command::Build(Profile::Ci)),
            ["--profile"] => Err(Error::Usage(
                "build: --profile needs `release` or `ci`".to_owned(),
            )),
            ["--profile", unknown] => Err(Error::Usage(format!(
                "build: unknown profile `{unknown}`; there are `release` and `ci`"
            ))),
            [.., unknown] => Err(unknown_argument(command, unknown)),
        },
        "components" => {
            flags(command, rest, &[])?;
            Ok(Command::Components)
        }
        "model" => {
            flags(command, rest, &[])?;
            Ok(Command::Model)
        }
        "sbom" => {
            flags(command, rest, &[])?;
            Ok(Command::Sbom)
        }
        "eval" => Ok(Command::Eval(arguments[1..].to_vec())),
        "imports" => Ok(Command::Imports {
            json: flags(command, rest, &["--json"])?,
        }),
        "bench" => match rest.split_first() {
            None => Err(Error::Usage(
                "bench: name a suite: size, open, write, recall, embed, hosts".to_owned(),
            )),
            Some((&"size", rest)) => Ok(Command::BenchSize {
                json: flags("bench size", rest, &["--json"])?,
            }),
            Some((&"open", rest)) => Ok(Command::BenchOpen {
                json: flags("bench open", rest, &["--json"])?,
            }),
            Some((&"recall", rest)) => Ok(Command::BenchRecall {
                json: flags("bench recall", rest, &["--json"])?,
            }),
            Some((&"write", rest)) => Ok(Command::BenchWrite {
                json: flags("bench write", rest, &["--json"])?,
            }),
            Some((&"hosts", rest)) => Ok(Command::BenchHosts {
                json: flags("bench hosts", rest, &["--json"])?,
            }),
            Some((&"embed", rest)) => {
                flags("bench embed", rest, &["--json", "--chart"])?;
                Ok(Command::BenchEmbed {
                    json: rest.contains(&"--json"),
                    chart: rest.contains(&"--chart"),
                })
            }
            Some((unknown, _)) => Err(Error::Usage(format!(
                "bench: unknown suite `{unknown}`; there are size, open, write, recall, embed, hosts"
            ))),
        },
        unknown => Err(Error::Usage(format!(
            "unknown command `{unknown}`; there are demo, test, build, components, model, sbom, imports, bench, eval"
        ))),
    }
}

/// Whether a flag of `allowed` was given; anything else is an error.
fn flags(command: &str, rest: &[&str], allowed: &[&str]) -> Result<bool, Error> {
    match rest.iter().find(|argument| !allowed.contains(argument)) {
        Some(unknown) => Err(unknown_argument(command, unknown)),
        None => Ok(!rest.is_empty()),
    }
}

fn unknown_argument(command: &str, argument: &str) -> Error {
    Error::Usage(format!("{command}: unknown argument `{argument}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, Error> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_documented_command_is_understood() {
        for (line, command) in [
            ("", Command::Usage),
            ("demo", Command::Demo { serve: true }),
            ("demo --no-serve", Command::Demo { serve: false }),
            ("test", Command::Test(Extent::Full)),
            ("test --fast", Command::Test(Extent::Fast)),
            ("test --long", Command::Test(Extent::Long)),
            ("build", Command::Build(Profile::Release)),
            ("build --profile ci", Command::Build(Profile::Ci)),
            ("components", Command::Components),
            ("model", Command::Model),
            ("imports", Command::Imports { json: false }),
            ("imports --json", Command::Imports { json: true }),
            ("bench size --json", Command::BenchSize { json: true }),
            ("bench open --json", Command::BenchOpen { json: true }),
            ("bench write --json", Command::BenchWrite { json: true }),
            ("bench recall --json", Command::BenchRecall { json: true }),
            ("bench hosts", Command::BenchHosts { json: false }),
            (
                "bench embed --chart",
                Command::BenchEmbed {
                    json: false,
                    chart: true,
                },
            ),
            (
                "eval routing --rows f",
                Command::Eval(["routing", "--rows", "f"].map(str::to_owned).to_vec()),
            ),
        ] {
            assert_eq!(parsed(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn anything_else_ends_with_code_2_and_names_the_culprit_in_one_line() {
        for (line, culprit) in [
            ("frobnicate", "frobnicate"),
            ("demo --loud", "--loud"),
            ("test --fast --loud", "--loud"),
            ("test --loud", "--loud"),
            ("test --fast --long", "exclude"),
            ("build --profile", "--profile"),
            ("build --profile debug", "debug"),
            ("build --profile ci extra", "extra"),
            ("model x", "`x`"),
            ("imports --yaml", "--yaml"),
            ("bench", "size"),
            ("bench speed", "speed"),
            ("bench size --yaml", "--yaml"),
            ("bench embed --json --fast", "--fast"),
        ] {
            let error = parsed(line).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(
                text.contains(culprit) && !text.contains('\n'),
                "{line}: {text}"
            );
        }
    }
}
