//! What the built modules and components import: the proof of what they cannot reach.

use std::collections::BTreeMap;

use wasmparser::{Parser, Payload};

use crate::build::{self, COMPONENTS, DIST, WEB_MODULES};
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
        .map(|module| format!("{DIST}/{}", module.wasm()));
    modules
        .chain(
            COMPONENTS
                .iter()
                .filter(|(path, _)| workspace.path(path).is_file())
                .map(|(path, _)| (*path).to_owned()),
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
/// Everything here works on values that the caller handed in, makes plain values, or throws. Nothing here can open a
/// connection, read a clock, draw randomness or touch storage: those belong to the driver outside.
const GLUE: [&str; 46] = [
    "Error",
    "Number",
    "__wbindgen_bigint_get_as_i64",
    "__wbindgen_boolean_get",
    "__wbindgen_debug_string",
    "__wbindgen_generic",
    "__wbindgen_in",
    "__wbindgen_init_externref_table",
    "__wbindgen_is_bigint",
    "__wbindgen_is_function",
    "__wbindgen_is_null",
    "__wbindgen_is_object",
    "__wbindgen_is_string",
    "__wbindgen_is_undefined",
    "__wbindgen_jsval_eq",
    "__wbindgen_jsval_loose_eq",
    "__wbindgen_number_get",
    "__wbindgen_string_get",
    "__wbindgen_throw",
    "assign",
    "call",
    "deleteProperty",
    "done",
    "entries",
    "from",
    "get",
    "get_unchecked",
    "get_with_ref_key",
    "instanceof_ArrayBuffer",
    "instanceof_Map",
    "instanceof_Uint8Array",
    "isArray",
    "isSafeInteger",
    "isView",
    "iterator",
    "length",
    "new",
    "new_from_slice",
    "next",
    "parse",
    "prototypesetcall",
    "push",
    "set",
    "slice",
    "stringify",
    "value",
];

/// What the module for ONNX files may have besides: tract's dependencies link the system's randomness, which gives but
/// takes nothing.
const ONNX_GLUE: (&str, &str) = ("./foremind_onnx_bg.js", "getRandomValues");

/// Compares the modules' imports with [`GLUE`] and [`ONNX_GLUE`]; how many modules passed and failed. The components' exact lists are asserted
/// by the test that runs them.
///
/// # Errors
/// As [`collect`].
pub(crate) fn check(workspace: &Workspace) -> Result<(usize, usize), Error> {
    let (mut passed, mut failed) = (0, 0);
    for (path, imports) in collect(workspace)? {
        if COMPONENTS.iter().any(|(component, _)| path == *component) {
            continue;
        }
        let unexpected: Vec<&String> = imports.iter().filter(|import| !is_glue(import)).collect();
        if unexpected.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            say!("{path} imports more than the glue: {unexpected:?}");
        }
    }
    Ok((passed, failed))
}

/// Whether an import such as `./foremind_core_bg.js __wbg_new_8a6f238a6ece86ea` is allowed: the hash changes with
/// versions, the meaning does not.
fn is_glue(import: &str) -> bool {
    let Some((module, name)) = import.split_once(' ') else {
        return false;
    };
    let name = name.strip_prefix("__wbg_").unwrap_or(name);
    let name = match name.rsplit_once('_') {
        Some((name, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => name,
    };
    WEB_MODULES
        .iter()
        .any(|web| module == format!("./{}_bg.js", web.name))
        && (GLUE.contains(&name) || (module, name) == ONNX_GLUE)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that imports one function, written by hand: header, one type, the import section.
    fn importing(module: &str, name: &str) -> Vec<u8> {
        let mut section = vec![1];
        for text in [module, name] {
            section.push(text.len() as u8);
            section.extend(text.bytes());
        }
        section.extend([0, 0]);
        let mut bytes = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02".to_vec();
        bytes.push(section.len() as u8);
        bytes.extend(section);
        bytes
    }

    #[test]
    fn a_module_s_imports_are_listed() {
        let bytes = importing("./foremind_core_bg.js", "__wbg_new_8a6f238a6ece86ea");
        assert_eq!(
            list(&bytes).unwrap(),
            ["./foremind_core_bg.js __wbg_new_8a6f238a6ece86ea"]
        );
        assert!(list(&bytes[..20]).is_err());
    }

    #[test]
    fn the_network_the_clock_and_foreign_modules_are_no_glue() {
        assert!(is_glue("./foremind_core_bg.js __wbg_new_8a6f238a6ece86ea"));
        assert!(is_glue(
            "./foremind_embed_bg.js __wbg___wbindgen_throw_4c88d8bf264fd984"
        ));
        for import in [
            "./foremind_core_bg.js __wbg_fetch_8a6f238a6ece86ea",
            "./foremind_core_bg.js __wbg_now_8a6f238a6ece86ea",
            "./foremind_core_bg.js __wbg_new_WebSocket_8a6f238a6ece86ea",
            "env __wbg_new_8a6f238a6ece86ea",
            "wasi_snapshot_preview1 fd_write",
            "__wbg_new_8a6f238a6ece86ea",
        ] {
            assert!(!is_glue(import), "{import}");
        }
    }
}
