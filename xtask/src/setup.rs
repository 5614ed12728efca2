//! What a command needs on the machine: checked, and installed where that can be done without asking.
//!
//! Every function is idempotent and quick when nothing is to do.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::files::{Stamp, Workspace, read};
use crate::process::{cargo, npm, probe, run, say};

/// The oldest node that the package supports.
const NODE_MAJOR: u32 = 20;
/// The one target that serves browsers, node, Workers and the WASI component.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Checks for node and npm.
///
/// # Errors
/// [`Error::Machine`] when one is absent or too old.
pub(crate) fn node() -> Result<(), Error> {
    let how = format!("install node {NODE_MAJOR} or newer with npm");
    let version = probe(Command::new("node").arg("--version"))
        .ok_or_else(|| Error::Machine(format!("node was not found; {how}")))?;
    if node_major(&version).is_none_or(|major| major < NODE_MAJOR) {
        return Err(Error::Machine(format!("node {version} is too old; {how}")));
    }
    match probe(npm().arg("--version")) {
        Some(_) => Ok(()),
        None => Err(Error::Machine(format!(
            "npm was not found beside node {version}; {how}"
        ))),
    }
}

/// The major number in what `node --version` prints.
fn node_major(version: &str) -> Option<u32> {
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Installs exactly what the folder's `package-lock.json` names.
///
/// # Errors
/// [`Error::Machine`] without node or npm, [`Error::Input`] without a lock file, [`Error::Program`] when npm fails.
pub(crate) fn npm_packages(workspace: &Workspace, folder: &str) -> Result<(), Error> {
    let path = workspace.path(folder);
    let lock = path.join("package-lock.json");
    if !lock.is_file() {
        return Err(Error::Input(format!(
            "{} is missing; restore it from version control",
            lock.display()
        )));
    }
    node()?;
    let stamp = Stamp::new(path.join("node_modules/.foremind-stamp"))
        .input(&read(&path.join("package.json"))?)
        .input(&read(&lock)?);
    if stamp.is_fresh() {
        return Ok(());
    }
    say!("npm ci in {folder}/");
    run(npm()
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(&path))?;
    stamp.set()
}

/// Makes sure that the compiler can build for [`WASM_TARGET`].
///
/// # Errors
/// [`Error::Machine`] when the target is absent and there is no rustup to add it.
pub(crate) fn wasm_target(workspace: &Workspace) -> Result<(), Error> {
    let installed = || {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        probe(Command::new(rustc).args(["--print", "target-libdir", "--target", WASM_TARGET]))
            .is_some_and(|folder| Path::new(&folder).is_dir())
    };
    if installed() {
        return Ok(());
    }
    say!("adding the compile target {WASM_TARGET}");
    let added = run(Command::new("rustup")
        .args(["target", "add", WASM_TARGET])
        .current_dir(workspace.root()));
    if added.is_ok() && installed() {
        return Ok(());
    }
    Err(Error::Machine(format!(
        "the compile target {WASM_TARGET} is not installed and rustup could not add it; \
         install rustup, or the package of your system that holds this target's standard library"
    )))
}

/// Checks that cargo itself answers.
///
/// # Errors
/// [`Error::Machine`].
pub(crate) fn rust(workspace: &Workspace) -> Result<(), Error> {
    match probe(cargo().arg("--version")) {
        Some(_) => wasm_target(workspace),
        None => Err(Error::Machine(
            "cargo does not start; install Rust 1.95 or newer".to_owned(),
        )),
    }
}

/// The two browsers of the end-to-end tests.
pub(crate) struct Browsers {
    /// Chromium or Chrome.
    pub(crate) chromium: PathBuf,
    /// Firefox.
    pub(crate) firefox: PathBuf,
}

struct Browser {
    name: &'static str,
    variable: &'static str,
    programs: &'static [&'static str],
    places: &'static [&'static str],
}

const CHROMIUM: Browser = Browser {
    name: "Chromium or Chrome",
    variable: "FOREMIND_CHROMIUM",
    programs: &[
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ],
    places: &[
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/snap/bin/chromium",
    ],
};
const FIREFOX: Browser = Browser {
    name: "Firefox",
    variable: "FOREMIND_FIREFOX",
    programs: &["firefox-esr", "firefox"],
    places: &[
        "/Applications/Firefox.app/Contents/MacOS/firefox",
        "/snap/bin/firefox",
    ],
};

/// Finds both browsers, installing them on Debian and its relatives when that needs no password.
///
/// # Errors
/// [`Error::Machine`] naming the browser that is missing and the variable that may point to it.
pub(crate) fn browsers() -> Result<Browsers, Error> {
    if CHROMIUM.find()?.is_none() || FIREFOX.find()?.is_none() {
        install_browsers();
    }
    Ok(Browsers {
        chromium: CHROMIUM.found()?,
        firefox: FIREFOX.found()?,
    })
}

impl Browser {
    /// The variable first, then the search path, then the usual places.
    fn find(&self) -> Result<Option<PathBuf>, Error> {
        if let Some(path) = std::env::var_os(self.variable).filter(|value| !value.is_empty()) {
            let path = PathBuf::from(path);
            if path.is_file() {
                return Ok(Some(path));
            }
            return Err(Error::Machine(format!(
                "{} names {}, which is no file",
                self.variable,
                path.display()
            )));
        }
        let search: Vec<PathBuf> = std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).collect())
            .unwrap_or_default();
        let by_name = self
            .programs
            .iter()
            .flat_map(|program| search.iter().map(move |folder| folder.join(program)));
        Ok(by_name
            .chain(self.places.iter().map(PathBuf::from))
            .find(|path| path.is_file()))
    }

    fn found(&self) -> Result<PathBuf, Error> {
        self.find()?.ok_or_else(|| {
            Error::Machine(format!(
                "{} was not found; install it, or set {} to its program file (cargo xtask test --fast needs no browser)",
                self.name, self.variable
            ))
        })
    }
}

/// The Redis of the test past one machine: what `FOREMIND_REDIS` names, or the one on the search path; installed on Debian and its
/// relatives when that needs no password. `None`: the test says that it is skipped.
pub(crate) fn redis() -> Option<PathBuf> {
    let found = || {
        let named = std::env::var_os("FOREMIND_REDIS").filter(|value| !value.is_empty());
        named.map(PathBuf::from).or_else(|| {
            let path = std::env::var_os("PATH")?;
            let mut folders = std::env::split_paths(&path);
            folders.find_map(|folder| {
                let program = folder.join("redis-server");
                program.is_file().then_some(program)
            })
        })
    };
    found().or_else(|| {
        install(&["redis-server"]);
        found()
    })
}

/// The Python environment of the example, with what its `requirements.txt` names; its program. `None`, and why is said, on a
/// machine without Python or its packages.
///
/// # Errors
/// Those of reading the requirements.
pub(crate) fn python_example(workspace: &Workspace) -> Result<Option<PathBuf>, Error> {
    let requirements = workspace.path("examples/python/requirements.txt");
    let folder = workspace.path("target/tools/python-example");
    let program = folder.join("bin/python");
    let stamp = Stamp::new(workspace.path("target/tools/python-example-stamp"))
        .files(std::slice::from_ref(&requirements))?;
    if stamp.is_fresh() && probe(Command::new(&program).arg("--version")).is_some() {
        return Ok(Some(program));
    }
    say!("making the Python environment of the example");
    let made = run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder))
    .and_then(|()| {
        run(Command::new(&program)
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(&requirements))
    });
    match made {
        Ok(()) => stamp.set().map(|()| Some(program)),
        Err(error) => {
            say!("the Python example cannot be run here: {error}");
            Ok(None)
        }
    }
}

/// Best effort: the caller looks for the browsers again and reports what is missing.
fn install_browsers() {
    // Ubuntu's archive has Firefox under this name, Debian's under the other; each run asks for what is missing.
    let missing: Vec<&str> = [(&CHROMIUM, "chromium"), (&FIREFOX, "firefox-esr")]
        .into_iter()
        .filter(|(browser, _)| matches!(browser.find(), Ok(None)))
        .map(|(_, package)| package)
        .collect();
    install(&missing);
}

/// Installs packages with apt-get where there is one and no password is asked for.
fn install(missing: &[&str]) {
    if probe(Command::new("apt-get").arg("--version")).is_none() {
        return;
    }
    let root = probe(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
    let sudo = !root && probe(Command::new("sudo").args(["-n", "true"])).is_some();
    if !root && !sudo {
        return;
    }
    let apt = |arguments: &[&str]| {
        let mut command = if root {
            Command::new("apt-get")
        } else {
            let mut command = Command::new("sudo");
            command.args(["-n", "--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
            command
        };
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments);
        run(&mut command)
    };
    say!("installing {}", missing.join(" and "));
    // First, since a machine may have no package lists, or old ones: the tests need browsers as they are now.
    let _ = apt(&["update"]);
    let install = [&["install", "-y", "--no-install-recommends"], missing].concat();
    if apt(&install).is_err() {
        say!("apt-get could not install {}", missing.join(" and "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_versions_are_read() {
        assert_eq!(node_major("v20.20.2"), Some(20));
        assert_eq!(node_major("v8.0.0\n"), Some(8));
        assert_eq!(node_major("20.0.0"), None);
        assert_eq!(node_major(""), None);
    }
}
