//! `linerate install-links`: symbolic links with the names of the tools.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_model::foreign_text;

use super::TOOLS;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout};

/// Create symbolic links to this program with the names of the tools that it replaces
#[derive(Debug, Args)]
pub(crate) struct InstallLinksArgs {
    /// Folder for the links, for example the first one in PATH
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only these tools, by name [default: all]
    #[arg(value_name = "TOOL")]
    only: Vec<String>,
}

/// Creates the links, and prints what was done.
pub(crate) fn install(args: &InstallLinksArgs) -> Result<Exit, CommandError> {
    let known: Vec<&str> = TOOLS.iter().flat_map(|tool| tool.names).copied().collect();
    if let Some(unknown) = args.only.iter().find(|name| !known.contains(&name.as_str())) {
        let why = format!("unknown tool '{unknown}'; the tools are {}", known.join(", "));
        return Err(CommandError::usage(why));
    }
    let program = std::env::current_exe().map_err(|error| {
        CommandError::failed(format!("this program cannot find its own executable: {error}"))
    })?;
    // A folder that is missing is made, as install(1) -D does it; one error about it says more than one a link.
    std::fs::create_dir_all(&args.folder).map_err(|error| {
        CommandError::failed(format!("the folder {} cannot be created: {error}", args.folder.display()))
    })?;
    let (mut exit, mut lines) = (Exit::Done, String::new());
    for name in known.into_iter().filter(|name| args.only.is_empty() || args.only.iter().any(|o| o == name)) {
        let link = args.folder.join(name);
        match make(&program, &link) {
            Ok(true) => lines += &format!("{} -> {}\n", link.display(), program.display()),
            Ok(false) => lines += &format!("{} already exists\n", link.display()),
            Err(trouble) => {
                print::error(trouble);
                exit = Exit::Failed;
            }
        }
    }
    Ok(match stdout::print(foreign_text::lines(&lines).as_bytes()) {
        Exit::Done => exit,
        failed => failed,
    })
}

/// Creates one link; false if it already exists. Never replaces another file.
fn make(program: &Path, link: &Path) -> Result<bool, String> {
    match symlink(program, link) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if std::fs::read_link(link).is_ok_and(|target| target == program) {
                return Ok(false);
            }
            Err(format!(
                "{} exists and was not created by linerate; move it away, or name another folder",
                link.display()
            ))
        }
        Err(error) => Err(format!("{} cannot be created: {error}", link.display())),
    }
}
