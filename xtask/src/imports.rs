//! What the built modules and components import: the proof of what they cannot reach.

use std::collections::BTreeMap;

use wasmparser::{Parser, Payload};

use crate::build::{self, COMPONENT, DIST, WEB_MODULES};
use crate::error::Error;
use crate::files::{Workspace, read};
use crate::process::say;

/// Import lists by path below the root, each sorted.
pub(crate) type ImportLists = BTreeMap<String, Vec<String>>;

/// The `imports` command.
///
/// # Errors
/// Those of the build; [`Error::Artefact`] for a file that is no wasm.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<(), Error> {
    build::current(workspace)?;
    let lists = collect(workspace)?;
    if json {
        println!("{}", serde_json::json!(lists));
        return Ok(());
    }
    for (path, imports) in &lists {
        println!("{path}: {} imports", imports.len());
        for import in imports {
            println!("  {import}");
        }
    }
    Ok(())
}

/// Reads the import lists of what was built.
///
/// # Errors
/// [`Error::Io`] for a missing file, [`Error::Artefact`] for one that is no wasm.
pub(crate) fn collect(workspace: &Workspace) -> Result<ImportLists, Error> {
    let modules = WEB_MODULES
        .iter()
        .map(|module| format!("{DIST}/{}_bg.wasm", module.name));
    modules
        .chain(
            workspace
                .path(COMPONENT)
                .is_file()
                .then(|| COMPONENT.to_owned()),
        )
        .map(|path| {
            let bytes = read(&workspace.path(&path))?;
            let imports =
                list(&bytes).map_err(|error| Error::Artefact(format!("{path}: {error}")))?;
            Ok((path, imports))
        })
        .collect()
}

/// What the JavaScript glue may give a module, by the name before its hash.
///
/// Everything here works on values that the caller handed in, throws, or reads a value's type. Nothing here can open a
/// connection, read a clock, draw randomness or touch storage: those belong to the driver outside.
const GLUE: [&str; 0] = [];

/// Compares the modules' imports with [`GLUE`]; how many modules passed and failed.
///
/// # Errors
/// As [`collect`].
pub(crate) fn check(workspace: &Workspace) -> Result<(usize, usize), Error> {
    let (mut passed, mut failed) = (0, 0);
    for (path, imports) in collect(workspace)? {
        let unexpected: Vec<&String> = imports
            .iter()
            .filter(|import| path != COMPONENT && !GLUE.contains(&glue_name(import)))
            .collect();
        if unexpected.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            say!("{path} imports more than the glue: {unexpected:?}");
        }
    }
    Ok((passed, failed))
}

/// `./foremind_core_bg.js __wbg_new_8a6f238a6ece86ea` is `new`: the hash changes with versions, the meaning does not.
fn glue_name(import: &str) -> &str {
    let name = import.rsplit(' ').next().unwrap_or(import);
    let name = name.strip_prefix("__wbg_").unwrap_or(name);
    match name.rsplit_once('_') {
        Some((name, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => name,
    }
}

/// The imports of a module (`module name`) or of a component (the interface's name), sorted.
///
/// # Errors
/// What the parser says about bytes that are no wasm.
pub(crate) fn list(bytes: &[u8]) -> Result<Vec<String>, wasmparser::BinaryReaderError> {
    let mut imports = Vec::new();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            // Modules inside a component import from their neighbours; only the outermost list reaches the host.
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ImportSection(section) if depth == 0 => {
                for import in section.into_imports() {
                    let import = import?;
                    imports.push(format!("{} {}", import.module, import.name));
                }
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    imports.sort();
    Ok(imports)
}
