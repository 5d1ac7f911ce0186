//! `linerate lab set`.

use std::time::Duration;

use clap::Args;
use linerate_lab::AskError;
use linerate_lab::control_protocol::Ask;

use super::which_lab::WhichLab;
use crate::command_error::CommandError;
use crate::exit::Exit;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The link to change: link.NAME, or link.NAME.from.NODE for one direction
    target: String,
    /// Keys and values as in a topology file: delay=25ms loss=1e-4
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
    #[command(flatten)]
    lab: WhichLab,
}

pub(super) fn run(args: &SetArgs) -> Result<Exit, CommandError> {
    let mut changes = Vec::new();
    for change in &args.changes {
        let Some((key, value)) = change.split_once('=') else {
            let why = format!("{change:?}: write KEY=VALUE, for example delay=25ms");
            return Err(CommandError::usage(why));
        };
        changes.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let lab = args.lab.find()?;
    if lab.status(ANSWER_TIMEOUT).is_ok_and(|status| status.pid.is_none()) {
        let why =
            "this lab runs in the kernel and cannot be changed while it is up; start it again with --set";
        return Err(CommandError::failed(why));
    }
    match lab.ask(&Ask::Set { target: args.target.clone(), changes }, ANSWER_TIMEOUT) {
        Ok(_) => Ok(Exit::Done),
        Err(AskError::Refused(why)) => Err(CommandError::usage(why)),
        Err(error) => Err(CommandError::failed(error)),
    }
}
