//! The bill of materials: what is in the modules, the components and the npm package, as CycloneDX 1.6
//! (<https://cyclonedx.org/docs/1.6/json/>). From `cargo tree`, `Cargo.lock` and `package-lock.json`; nothing is fetched.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::Error;
use crate::files::{Workspace, read, write};
use crate::process::{cargo, output, say};

/// Where it is written.
const SBOM: &str = "target/sbom.cdx.json";
/// What is shipped.
const SHIPPED: [&str; 4] = [
    "foremind-web",
    "foremind-web-embed",
    "foremind-web-service",
    "foremind-component",
];

/// The `sbom` command.
///
/// # Errors
/// [`Error::Program`] from cargo, [`Error::Input`] for a lock file that cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let text = |file: &str| {
        read(&workspace.path(file)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut command = cargo();
    command.args(["tree", "--locked", "--prefix", "none", "--no-dedupe"]);
    command.args(["--edges", "normal", "--target", "wasm32-unknown-unknown"]);
    command.args(["--format", "{p}\t{l}"]);
    for shipped in SHIPPED {
        command.args(["--package", shipped]);
    }
    let tree = output(command.current_dir(workspace.root()))?;
    let lock = text("pkg/package-lock.json")?;
    let lock: Value = serde_json::from_str(&lock)
        .map_err(|error| Error::Input(format!("pkg/package-lock.json: {error}")))?;
    let mut components = crates(&tree, &checksums(&text("Cargo.lock")?));
    components.extend(packages(&lock));
    say!("{SBOM}: {} components", components.len());
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "library",
            "name": "foremind",
            "version": lock["version"],
            "purl": purl("npm", "foremind", lock["version"].as_str().unwrap_or_default()),
        }},
        "components": components,
    });
    let bill = serde_json::to_vec_pretty(&bill)
        .map_err(|error| Error::Artefact(format!("{SBOM}: {error}")))?;
    write(&workspace.path(SBOM), &bill)
}

fn purl(kind: &str, name: &str, version: &str) -> String {
    format!("pkg:{kind}/{}@{version}", name.replace('@', "%40"))
}

/// SHA-256 of each crate of a registry, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|line| line.strip_prefix(" = "))
                .map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

/// Lines `name vVERSION (source)<tab>licence`.
fn crates(tree: &str, checksums: &BTreeMap<(String, String), String>) -> Vec<Value> {
    let mut found = BTreeMap::new();
    for line in tree.lines() {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        let version = version.trim_start_matches('v');
        let sum = checksums.get(&(name.to_owned(), version.to_owned()));
        let mut component = json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": purl("cargo", name, version),
            "licenses": [{ "expression": licence }],
        });
        if let Some(sum) = sum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        found.insert((name.to_owned(), version.to_owned()), component);
    }
    found.into_values().collect()
}

/// Packages of npm; those that only build and test the package are `excluded`.
fn packages(lock: &Value) -> Vec<Value> {
    let all = lock["packages"].as_object().into_iter().flatten();
    all.filter_map(|(place, package)| {
        let name = place.rsplit_once("node_modules/")?.1;
        let version = package["version"].as_str()?;
        let scope = match package["dev"].as_bool() {
            Some(true) => "excluded",
            _ => "required",
        };
        Some(json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": purl("npm", name, version),
            "scope": scope,
            "licenses": [{ "expression": package["license"].as_str().unwrap_or("NOASSERTION") }],
        }))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_listed_once_with_their_checksum() {
        let lock =
            "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n";
        let tree =
            "own v0.1.0 (/src)\tMIT\na v1.0.0\tMIT OR Apache-2.0\na v1.0.0\tMIT OR Apache-2.0\n\n";
        let found = crates(tree, &checksums(lock));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(found[0]["hashes"][0]["content"], "ff");
        assert_eq!(found[1]["name"], "own");
        assert_eq!(found[1]["hashes"], Value::Null);
    }

    #[test]
    fn what_only_builds_the_package_is_excluded() {
        let lock = json!({ "packages": {
            "": { "version": "0.1.0" },
            "node_modules/@types/node": { "version": "20.9.5", "dev": true, "license": "MIT" },
            "node_modules/b": { "version": "2.0.0" },
        }});
        let found = packages(&lock);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["purl"], "pkg:npm/%40types/node@20.9.5");
        assert_eq!(found[0]["scope"], "excluded");
        assert_eq!(found[1]["scope"], "required");
    }
}
