//! Measures: sizes of what ships, time to the first recall, the embedder against others.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::args::Profile;
use crate::build::{self, DIST};
use crate::error::Error;
use crate::files::{Stamp, Workspace, files_below, read, sha256, write};
use crate::model;
use crate::process::{cargo, output, run, say};
use crate::setup;

/// Highest quality and the window that browsers accept.
const BROTLI_QUALITY: i32 = 11;
const BROTLI_WINDOW_BITS: i32 = 24;

/// `bench size`: bytes as built with the release profile, raw and compressed.
///
/// # Errors
/// Those of the build.
pub(crate) fn size(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    let dist = workspace.path(DIST);
    let scripts: Vec<PathBuf> = files_below(&dist)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "js"))
        .collect();
    let heads = build::HEAD_FILES.map(|(_, name)| dist.join(name));
    let sizes = json!({
        "core": sizes(workspace, &[dist.join("foremind_core_bg.wasm")])?,
        "embed_simd": sizes(workspace, &[dist.join("foremind_embed_bg.wasm")])?,
        "embed_relaxed": sizes(workspace, &[dist.join("foremind_embed_relaxed_bg.wasm")])?,
        "embed_onnx": sizes(workspace, &[dist.join("foremind_onnx_bg.wasm")])?,
        "data": sizes(workspace, &[dist.join(build::DATA_FILE)])?,
        "router": sizes(workspace, &heads)?,
        "service": sizes(workspace, &[dist.join("foremind_service_bg.wasm")])?,
        "model": sizes(workspace, &[workspace.path(model::MODEL_PACKAGE).join(model::PACK)])?,
        "js": sizes(workspace, &scripts)?,
    });
    if json {
        println!("{sizes}");
        return Ok(());
    }
    println!("{:<14}{:>12}{:>12}{:>12}", "bytes", "raw", "gzip", "brotli");
    for (name, size) in sizes.as_object().into_iter().flatten() {
        println!(
            "{name:<14}{:>12}{:>12}{:>12}",
            size["raw"], size["gzip"], size["brotli"]
        );
    }
    Ok(())
}

/// The sums over `paths`, each file compressed by itself, as they are sent.
fn sizes(workspace: &Workspace, paths: &[PathBuf]) -> Result<Value, Error> {
    let (mut raw, mut gzip, mut brotli) = (0, 0, 0);
    for path in paths {
        let size = file_size(workspace, path)?;
        raw += size[0];
        gzip += size[1];
        brotli += size[2];
    }
    Ok(json!({ "raw": raw, "gzip": gzip, "brotli": brotli }))
}

/// Raw, gzip and brotli length of one file; kept by content, since the model takes a minute.
fn file_size(workspace: &Workspace, path: &Path) -> Result<[u64; 3], Error> {
    let bytes = read(path)?;
    let kept = workspace.folder("target/sizes")?.join(sha256(&bytes));
    let known: Vec<u64> = fs::read_to_string(&kept)
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    if let [raw, gzip, brotli] = known[..] {
        return Ok([raw, gzip, brotli]);
    }
    if bytes.len() > 1 << 20 {
        say!("compressing {}", path.display());
    }
    let size = [
        bytes.len() as u64,
        gzip_bytes(&bytes)?,
        brotli_bytes(&bytes)?,
    ];
    write(
        &kept,
        size.map(|number| number.to_string()).join(" ").as_bytes(),
    )?;
    Ok(size)
}

/// A writer that only counts.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn gzip_bytes(bytes: &[u8]) -> Result<u64, Error> {
    let mut encoder = GzEncoder::new(Count(0), Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map(|count| count.0)
        .map_err(Error::io("compress", "gzip"))
}

fn brotli_bytes(bytes: &[u8]) -> Result<u64, Error> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        ..Default::default()
    };
    let mut count = Count(0);
    brotli::BrotliCompress(&mut &bytes[..], &mut count, &parameters)
        .map_err(Error::io("compress", "brotli"))?;
    Ok(count.0)
}

/// `bench open`: from a fresh process to the first lexical recall, the embedder not loaded.
///
/// # Errors
/// Those of the build and of the script.
pub(crate) fn open(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    setup::npm_packages(workspace, "tests")?;
    setup::npm_packages(workspace, "benches")?;
    let browsers = setup::browsers()?;
    let mut command = Command::new("node");
    command
        .arg("benches/open.mjs")
        .env("FOREMIND_CHROMIUM", browsers.chromium);
    print_figures(workspace, "benches/open.mjs", &mut command, json)
}

/// `bench write`: one acknowledged write in Chromium, beside plain IndexedDB and PGlite.
///
/// # Errors
/// Those of the build and of the script.
pub(crate) fn writes(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    setup::npm_packages(workspace, "tests")?;
    setup::npm_packages(workspace, "benches")?;
    let browsers = setup::browsers()?;
    let mut command = Command::new("node");
    command
        .arg("benches/write.mjs")
        .env("FOREMIND_CHROMIUM", browsers.chromium);
    print_figures(workspace, "benches/write.mjs", &mut command, json)
}

/// `bench recall`: one recall in wasm, beside Orama's hybrid search and a loop of cosines.
///
/// # Errors
/// Those of the build and of the script.
pub(crate) fn recalls(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    setup::npm_packages(workspace, "benches")?;
    let mut command = Command::new("node");
    command.arg("benches/recall.mjs");
    print_figures(workspace, "benches/recall.mjs", &mut command, json)
}

/// `bench hosts`: the hosted service in workerd, and the components in wasmtime beside the native engine.
///
/// # Errors
/// Those of the build, of the script and of the program.
pub(crate) fn hosts(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    setup::npm_packages(workspace, "tests")?;
    let mut script = Command::new("node");
    script.arg("benches/hosts.mjs");
    let workerd = figures(workspace, "benches/hosts.mjs", &mut script)?;
    let mut program = cargo();
    program.args(["run", "--locked", "--quiet", "--profile", "hosts"]);
    program.args([
        "--package",
        "foremind-component-tests",
        "--example",
        "hosts",
    ]);
    let wasmtime = figures(workspace, "the example `hosts`", &mut program)?;
    print(&json!({ "workerd": workerd, "wasmtime": wasmtime }), json);
    Ok(())
}

/// Where the README finds its chart, below the root.
const CHART: &str = "docs/embed.svg";
/// The Python environment of [`baselines`], below the root.
const PYTHON: &str = "target/tools/python";

/// `bench embed`: foremind's embedder against onnxruntime-web and tract, in node and in Chromium.
///
/// # Errors
/// Those of the build, of the Python step and of the script.
pub(crate) fn embed(workspace: &Workspace, json: bool, chart: bool) -> Result<(), Error> {
    build::everything(workspace, Profile::Release)?;
    setup::npm_packages(workspace, "tests")?;
    baselines(workspace)?;
    let browsers = setup::browsers()?;
    let mut command = Command::new("node");
    command
        .arg("benches/embed.mjs")
        .env("FOREMIND_CHROMIUM", browsers.chromium);
    if chart {
        command.args(["--chart", CHART]);
    }
    print_figures(workspace, "benches/embed.mjs", &mut command, json)
}

/// Makes the model files that others are measured on: see `tools/onnx_baselines.py`.
fn baselines(workspace: &Workspace) -> Result<(), Error> {
    let (script, requirements) = (
        workspace.path("tools/onnx_baselines.py"),
        workspace.path("tools/onnx-requirements.txt"),
    );
    let stamp = Stamp::new(workspace.path("target/tools/baselines")).files(&[
        script.clone(),
        requirements.clone(),
        workspace.path("target/model/model.onnx"),
        workspace.path("target/model/model.safetensors"),
    ])?;
    let made = ["minilm-f32.onnx", "minilm-dynamic-int8.onnx"]
        .iter()
        .all(|name| workspace.path("target/model").join(name).is_file());
    if stamp.is_fresh() && made {
        return Ok(());
    }
    say!("making the model files that others are measured on, with Python");
    let python = workspace.path(PYTHON);
    run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
    let program = python.join("bin/python");
    run(Command::new(&program)
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&requirements))?;
    run(Command::new(&program)
        .arg(&script)
        .arg(workspace.path("target/model")))?;
    stamp.set()
}

/// Runs a measuring script and prints the JSON object that it ends with.
fn print_figures(
    workspace: &Workspace,
    script: &str,
    command: &mut Command,
    json: bool,
) -> Result<(), Error> {
    print(&figures(workspace, script, command)?, json);
    Ok(())
}

/// Runs a measuring program; the JSON object that it ends with.
fn figures(workspace: &Workspace, name: &str, command: &mut Command) -> Result<Value, Error> {
    let printed = output(command.current_dir(workspace.root()))?;
    let last = printed.trim_end().rsplit('\n').next().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| {
        Error::Artefact(format!("{name} did not end with one JSON object: {error}"))
    })
}

fn print(figures: &Value, json: bool) {
    if json {
        println!("{figures}");
        return;
    }
    for (name, figure) in figures.as_object().into_iter().flatten() {
        println!("{name}: {figure}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn compressed_lengths_are_those_of_streams_that_decode() {
        let text = b"macaron ".repeat(1000);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&text).unwrap();
        let stream = encoder.finish().unwrap();
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&stream[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(
            (back, gzip_bytes(&text).unwrap()),
            (text.clone(), stream.len() as u64)
        );

        let brotli = brotli_bytes(&text).unwrap();
        assert!(brotli > 0 && brotli < 100, "{brotli}");
    }
}
