//! The macaron story, told by what was built.

use std::process::Command;

use crate::build;
use crate::error::Error;
use crate::files::Workspace;
use crate::process::{output, run, say};
use crate::setup;

/// The `demo` command.
///
/// # Errors
/// Those of the set-up and the build; [`Error::Artefact`] when the story has another ending.
pub(crate) fn run_demo(workspace: &Workspace, serve: bool) -> Result<(), Error> {
    build::current(workspace)?;
    build::page(workspace)?;
    say!("telling the story");
    let story = output(
        Command::new("node")
            .arg(workspace.path("xtask/story.mjs"))
            .current_dir(workspace.root()),
    )?;
    print!("{story}");
    let prompt = story
        .split_once("PROMPT:")
        .map(|(_, prompt)| prompt)
        .unwrap_or_default();
    if !prompt.contains("tree nuts") {
        return Err(Error::Artefact(
            "the allergy does not stand in the prompt of the macaron question".to_owned(),
        ));
    }
    if serve {
        setup::node()?;
        run(Command::new("node")
            .arg("server.mjs")
            .current_dir(workspace.path("www")))?;
    }
    Ok(())
}
