//! From crates to what ships: wasm, its JavaScript glue, the package, the component.
//!
//! Cargo decides what to compile again. The steps after it (bindgen, wasm-opt) are kept by the hash of their input in
//! `target/wasm`, so switching between profiles or running again costs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wasm_bindgen_cli_support::Bindgen;
use wit_component::ComponentEncoder;

use crate::args::Profile;
use crate::error::Error;
use crate::files::{Stamp, Workspace, files_below, read, sha256, sources, write, write_if_changed};
use crate::model;
use crate::process::{cargo, npm, run, say};
use crate::setup::{self, WASM_TARGET};

/// A crate that becomes a wasm module for JavaScript hosts.
pub(crate) struct WebModule {
    package: &'static str,
    /// The name of the built module.
    pub(crate) name: &'static str,
    /// The name of its JavaScript glue. Builds of one crate that differ in WebAssembly features share one.
    glue: &'static str,
    /// Cargo features.
    features: &'static [&'static str],
    variant: Variant,
}

/// WebAssembly features of a build.
///
/// Paths are remapped, and then Cargo does not tell flags apart by file name: with different ones each build would
/// compile the other's dependencies again. So each variant has a target folder of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Simd128,
    RelaxedSimd,
}

impl Variant {
    fn target_features(self) -> &'static str {
        match self {
            Self::Simd128 => "+simd128",
            Self::RelaxedSimd => "+simd128,+relaxed-simd",
        }
    }

    /// Below the root.
    fn target_folder(self) -> &'static str {
        match self {
            Self::Simd128 => "target",
            Self::RelaxedSimd => "target/relaxed",
        }
    }
}

/// The modules of the npm package: the core; the service, for Workers; the embedder twice, with equal exports, for engines without and with
/// relaxed-simd; the embedder that also runs ONNX files, which only users who bring one load.
pub(crate) const WEB_MODULES: [WebModule; 5] = [
    WebModule {
        package: "foremind-web",
        name: "foremind_core",
        glue: "foremind_core",
        features: &[],
        variant: Variant::Simd128,
    },
    WebModule {
        package: "foremind-web-service",
        name: "foremind_service",
        glue: "foremind_service",
        features: &[],
        variant: Variant::Simd128,
    },
    WebModule {
        package: "foremind-web-embed",
        name: "foremind_embed",
        glue: "foremind_embed",
        features: &[],
        variant: Variant::Simd128,
    },
    WebModule {
        package: "foremind-web-embed",
        name: "foremind_embed_relaxed",
        glue: "foremind_embed",
        features: &[],
        variant: Variant::RelaxedSimd,
    },
    WebModule {
        package: "foremind-web-embed",
        name: "foremind_onnx",
        glue: "foremind_onnx",
        features: &["onnx"],
        variant: Variant::Simd128,
    },
];
/// Loop strength reduction joins the pointers of the kernels' inner loop into one index, and each load then computes
/// its address instead of carrying an offset: 5 to 7 % of a product's time.
const CODE_GENERATION: &str = "-Cllvm-args=-disable-lsr";
/// What the bindgen step makes of each module beside the module itself.
const GLUE_SUFFIXES: [&str; 3] = [".js", ".d.ts", "_bg.wasm.d.ts"];

impl WebModule {
    /// The module's file name.
    pub(crate) fn wasm(&self) -> String {
        format!("{}_bg.wasm", self.name)
    }

    /// The glue's file names.
    fn glue_files(&self) -> impl Iterator<Item = String> {
        GLUE_SUFFIXES
            .iter()
            .map(|suffix| format!("{}{suffix}", self.glue))
    }
}
/// The crate whose build script makes tables of the data files.
const ROUTER_PACKAGE: &str = "foremind-router";
/// The component's crate.
const COMPONENT_PACKAGE: &str = "foremind-component";
/// The built components, below the root, and the features of each: one for each kind of store that hosts offer,
/// one with a model inside, and the service for hosts that hand requests over.
pub(crate) const COMPONENTS: [(&str, &[&str]); 6] = [
    ("target/components/foremind.wasm", &[]),
    ("target/components/foremind-draft.wasm", &["draft"]),
    ("target/components/foremind-spin.wasm", &["spin"]),
    ("target/components/foremind-model.wasm", &["model"]),
    ("target/components/foremind-service.wasm", &["service"]),
    (
        "target/components/foremind-service-spin.wasm",
        &["service", "spin"],
    ),
];
/// Where they are, below the root.
const COMPONENTS_FOLDER: &str = "target/components";
/// The npm package's built folder, below the root.
pub(crate) const DIST: &str = "pkg/dist";
/// The router's heads, beside the modules that run them.
pub(crate) const HEAD_FILES: [(&str, &str); 2] = [
    ("route.fmadpt", "foremind_route.fmadpt"),
    ("ngrams.bin", "foremind_ngrams.bin"),
];
/// The router's data files as one, which the core is handed.
pub(crate) const DATA_FILE: &str = "foremind_data.txt";
/// Says with which profile [`DIST`] was built.
const PROFILE_FILE: &str = "target/wasm/profile";

/// The features are named one by one: `--all-features` emits instructions that node 20 rejects.
const WASM_OPT_FEATURES: [&str; 9] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
    "--enable-simd",
    "--enable-relaxed-simd",
];

/// Builds all that ships.
///
/// # Errors
/// Those of each step, the first one that fails.
pub(crate) fn everything(workspace: &Workspace, profile: Profile) -> Result<(), Error> {
    setup::rust(workspace)?;
    setup::npm_packages(workspace, "xtask")?;
    model::ensure(workspace)?;
    let dist = workspace.folder(DIST)?;
    let mut tables = None;
    for module in &WEB_MODULES {
        let built = web_module(workspace, module, profile, &dist)?;
        tables = tables.or(built);
    }
    let tables =
        tables.ok_or_else(|| Error::Artefact(format!("{ROUTER_PACKAGE} made no tables")))?;
    npm_package(workspace, &tables)?;
    components(workspace, profile)?;
    write(
        &workspace.path(PROFILE_FILE),
        profile.cargo_name().as_bytes(),
    )?;
    say!("built {DIST} and {COMPONENTS_FOLDER}");
    Ok(())
}

/// Builds what is missing or out of date, with the profile that [`DIST`] was last built with, else the quick one.
///
/// # Errors
/// As [`everything`].
pub(crate) fn current(workspace: &Workspace) -> Result<(), Error> {
    let release = fs::read(workspace.path(PROFILE_FILE))
        .is_ok_and(|name| name == Profile::Release.cargo_name().as_bytes());
    everything(
        workspace,
        if release {
            Profile::Release
        } else {
            Profile::Ci
        },
    )
}

/// Compiles one crate, makes its glue, optimises it, and puts the files into `dist`. Gives back where the router's tables
/// are, if it is among what the crate is made of.
fn web_module(
    workspace: &Workspace,
    module: &WebModule,
    profile: Profile,
    dist: &Path,
) -> Result<Option<PathBuf>, Error> {
    let (compiled, tables) = compile(
        workspace,
        module.package,
        module.features,
        module.variant,
        profile,
    )?;
    let input = read(&compiled)?;
    let kept = workspace.folder(&format!(
        "target/wasm/{}-{}",
        module.name,
        &sha256(&input)[..16]
    ))?;
    // How the steps are done is an input as well: this file.
    let stamp = Stamp::new(kept.join("stamp"))
        .input(&input)
        .input(profile.wasm_opt_level().as_bytes())
        .input(include_bytes!("build.rs"));
    if !stamp.is_fresh() {
        bindgen(module.glue, input, &kept)?;
        optimise(
            workspace,
            profile,
            &kept.join(format!("{}_bg.wasm", module.glue)),
        )?;
        stamp.set()?;
    }
    let wasm = read(&kept.join(format!("{}_bg.wasm", module.glue)))?;
    write_if_changed(&dist.join(module.wasm()), &wasm)?;
    for name in module.glue_files() {
        let glue = read(&kept.join(&name))?;
        if module.glue != module.name && read(&dist.join(&name))? != glue {
            return Err(Error::Artefact(format!(
                "{} needs another {name} than the module it shares it with",
                module.name
            )));
        }
        write_if_changed(&dist.join(&name), &glue)?;
    }
    Ok(tables)
}

/// Compiles one crate to wasm; the module's path, and that of the router's tables if they were made for it.
fn compile(
    workspace: &Workspace,
    package: &str,
    features: &[&str],
    variant: Variant,
    profile: Profile,
) -> Result<(PathBuf, Option<PathBuf>), Error> {
    say!(
        "compiling {package} ({}, {}{}{})",
        profile.cargo_name(),
        variant.target_features(),
        if features.is_empty() { "" } else { ", " },
        features.join(", ")
    );
    // Paths of the building machine would otherwise stand in panic messages, and change the bytes from one to the next.
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .unwrap_or_default();
    let mut flags = vec![
        format!(
            "--remap-path-prefix={}=foremind",
            workspace.root().display()
        ),
        format!("--remap-path-prefix={}=cargo", home.display()),
        format!("-Ctarget-feature={}", variant.target_features()),
        CODE_GENERATION.to_owned(),
    ];
    // A folder below is named by the registry that a crate came from. Of two rules that match, the later one counts.
    let registries = fs::read_dir(home.join("registry/src"))
        .into_iter()
        .flatten();
    let mut folders: Vec<PathBuf> = registries.flatten().map(|folder| folder.path()).collect();
    folders.sort();
    let short = |folder: &PathBuf| format!("--remap-path-prefix={}=crates", folder.display());
    flags.extend(folders.iter().map(short));
    let mut command = cargo();
    // The component's feature `model` holds that file.
    command.env(
        "FOREMIND_MODEL_FILE",
        workspace.path("target/model").join(model::PACK),
    );
    command
        .args([
            "build",
            "--locked",
            "--message-format=json-render-diagnostics",
            "--target",
            WASM_TARGET,
        ])
        .args([
            "--profile",
            profile.cargo_name(),
            "--package",
            package,
            "--lib",
            "--features",
            &features.join(","),
        ])
        .arg("--target-dir")
        .arg(workspace.path(variant.target_folder()))
        // Replaces whatever flags the surroundings set for native code.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .current_dir(workspace.root())
        .stdout(Stdio::piped());
    let messages = crate::process::output(&mut command)?;
    let messages: Vec<serde_json::Value> = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let crate_name = package.replace('-', "_");
    let module = messages
        .iter()
        .filter(|message| {
            message["reason"] == "compiler-artifact"
                && message["target"]["name"] == crate_name.as_str()
        })
        .filter_map(|message| message["filenames"].as_array())
        .flatten()
        .filter_map(|path| path.as_str().map(PathBuf::from))
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .ok_or_else(|| {
            Error::Artefact(format!(
                "{package} built no wasm module; its crate-type must hold cdylib"
            ))
        })?;
    let of_router = |message: &&serde_json::Value| {
        message["reason"] == "build-script-executed"
            && message["package_id"]
                .as_str()
                .is_some_and(|id| id.contains(ROUTER_PACKAGE))
    };
    let out = messages.iter().find(of_router);
    let out = out.and_then(|message| message["out_dir"].as_str());
    Ok((module, out.map(|out| Path::new(out).join("data"))))
}

/// Makes the JavaScript glue and the type declarations.
fn bindgen(name: &str, input: Vec<u8>, folder: &Path) -> Result<(), Error> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_bytes(name, input)
        .out_name(name)
        .typescript(true)
        // The package drops an instance after a trap and makes a fresh one of the same module.
        .reset_state_function(true);
    // With the default module path left out, `await init()` in the web target fails.
    bindgen
        .web(true)
        .map_err(unusable(name))?
        .omit_default_module_path(false);
    bindgen.generate(folder).map_err(unusable(name))
}

/// Both libraries report through one dynamic error type, whose chain the alternate form prints.
fn unusable<E: std::fmt::Display>(name: &str) -> impl Fn(E) -> Error {
    move |error| Error::Artefact(format!("{name} was compiled but cannot be used: {error:#}"))
}

/// Runs wasm-opt on a file in place.
fn optimise(workspace: &Workspace, profile: Profile, path: &Path) -> Result<(), Error> {
    let before = read(path)?.len();
    let out = path.with_extension("opt");
    let mut command = Command::new("node");
    command.arg(workspace.path("xtask/node_modules/binaryen/bin/wasm-opt"));
    command
        .arg(profile.wasm_opt_level())
        .args(WASM_OPT_FEATURES);
    run(command.arg(path).arg("-o").arg(&out))?;
    fs::rename(&out, path).map_err(Error::io("replace", path))?;
    say!(
        "wasm-opt: {} from {before} to {} bytes",
        file_name(path),
        read(path)?.len()
    );
    Ok(())
}

/// The data files of router and guard as one: for each a line with U+0001 and its name, then its text. Those of the router
/// are what its build script makes of them.
fn data(workspace: &Workspace, tables: &Path) -> Result<String, Error> {
    let mut bundle = String::new();
    let mut paths = files_below(tables)?;
    paths.extend(files_below(&workspace.path("crates/foremind-guard/data"))?);
    for path in paths {
        if path.extension().is_some_and(|ending| ending == "tsv") {
            let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            let mark = format!("\u{1}{}\n", file_name(&path));
            if bundle.contains(&mark) {
                return Err(Error::Artefact(format!(
                    "two data files have the name {}",
                    file_name(&path)
                )));
            }
            bundle.push_str(&mark);
            bundle.push_str(&text);
        }
    }
    Ok(bundle)
}

/// Builds the TypeScript part of the package.
fn npm_package(workspace: &Workspace, tables: &Path) -> Result<(), Error> {
    setup::npm_packages(workspace, "pkg")?;
    let dist = workspace.path(DIST);
    let mut inputs = sources(&workspace.path("pkg"))?;
    for module in &WEB_MODULES {
        inputs.push(dist.join(module.wasm()));
        inputs.extend(module.glue_files().map(|name| dist.join(name)));
    }
    for (file, name) in HEAD_FILES {
        let bytes = read(&workspace.path("crates/foremind-router/data").join(file))?;
        write_if_changed(&dist.join(name), &bytes)?;
    }
    write_if_changed(&dist.join(DATA_FILE), data(workspace, tables)?.as_bytes())?;
    let stamp = Stamp::new(workspace.path("target/wasm/npm-package")).files(&inputs)?;
    if stamp.is_fresh() && dist.join("index.js").is_file() {
        return Ok(());
    }
    say!("npm run build in pkg/");
    run(npm()
        .args(["run", "--silent", "build"])
        .current_dir(workspace.path("pkg")))?;
    stamp.set()
}

/// Builds the demonstration page from the built package.
///
/// # Errors
/// Those of npm.
pub(crate) fn page(workspace: &Workspace) -> Result<(), Error> {
    setup::npm_packages(workspace, "www")?;
    let stamp = Stamp::new(workspace.path("target/wasm/page"))
        .files(&sources(&workspace.path("www"))?)?
        .files(&files_below(&workspace.path(DIST))?)?
        .files(&sources(&workspace.path(model::MODEL_PACKAGE))?)?;
    if stamp.is_fresh() && workspace.path("www/dist/index.html").is_file() {
        return Ok(());
    }
    say!("npm run build in www/");
    run(npm()
        .args(["run", "--silent", "build"])
        .current_dir(workspace.path("www")))?;
    stamp.set()
}

/// Compiles the component's crate for each world and wraps it.
///
/// # Errors
/// Those of cargo; [`Error::Artefact`] for a module that is no component.
pub(crate) fn components(workspace: &Workspace, profile: Profile) -> Result<(), Error> {
    let worlds = workspace.path("wit");
    if !worlds.is_dir() || files_below(&worlds)?.is_empty() {
        say!("wit/ holds no world yet: no component to build");
        return Ok(());
    }
    model::ensure(workspace)?;
    let profile = match profile {
        Profile::Release => Profile::Component,
        other => other,
    };
    for (component, features) in COMPONENTS {
        let (module, _) = compile(
            workspace,
            COMPONENT_PACKAGE,
            features,
            Variant::Simd128,
            profile,
        )?;
        let input = read(&module)?;
        let bytes = ComponentEncoder::default()
            .validate(true)
            .module(&input)
            .and_then(|encoder| encoder.encode())
            .map_err(unusable(COMPONENT_PACKAGE))?;
        write_if_changed(&workspace.path(component), &bytes)?;
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
