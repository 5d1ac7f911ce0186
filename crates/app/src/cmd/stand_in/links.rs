//! `linerate install-links`: symbolic links with the names of the tools.

use std::path::PathBuf;

use clap::Args;
use linerate_model::foreign_text;
use linerate_runner::create_tool_links;

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
    let wanted = |name: &&str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let names: Vec<&str> = known.into_iter().filter(wanted).collect();
    let (mut exit, mut lines) = (Exit::Done, String::new());
    for link in create_tool_links(&args.folder, &names).map_err(CommandError::failed)? {
        match link {
            Ok(line) => lines += &format!("{line}\n"),
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
