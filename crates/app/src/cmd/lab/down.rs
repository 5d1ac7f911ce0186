//! `linerate lab down`.

use clap::Args;

use super::which_lab::{all, running_or_killed};
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// The lab [default: the only one that is running]
    name: Option<String>,
    /// All labs of this user
    #[arg(long, conflicts_with = "name")]
    all: bool,
    #[command(flatten)]
    place: RunFolder,
}

pub(super) fn run(args: &DownArgs) -> Result<Exit, CommandError> {
    let labs = match args.all {
        true => all(&args.place)?,
        false => vec![running_or_killed(&args.place, args.name.as_deref())?],
    };
    let mut exit = Exit::Done;
    for lab in labs {
        match lab.down() {
            Ok(left) => {
                for name in left {
                    print::warning(format!("not removed, because it belongs to another program: {name}"));
                }
                print::note(format!("{} is down", lab.name()));
            }
            Err(error) => exit = CommandError::failed(error).report(),
        }
    }
    if args.all {
        args.place.open().and_then(|state| state.remove_dead_logs()).map_err(CommandError::failed)?;
    }
    Ok(exit)
}
