//! The guardian of an agent, which restores the settings of the host when the agent is killed.

use std::path::PathBuf;

use clap::Args;
use linerate_control::{Restored, restore_leftovers};
use linerate_runner::SettingsGuardians;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

/// The command that runs it.
pub(super) const NAME: &str = "guard-settings";

/// Arguments of a guardian.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Folder of the undo journals
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Waits until the agent at the other end of standard input ends, and restores the settings that it has left
/// changed.
pub(crate) fn run(args: &GuardArgs) -> Result<Exit, CommandError> {
    // A signal that ends the agent may reach this process too, which must survive to restore the settings.
    if let Err(error) = Signals::ignore() {
        print::warning(format!("the guardian of an agent's settings cannot ignore signals: {error}"));
    }
    SettingsGuardians::wait_for_end_of_agent();
    let restored = restore_leftovers(&args.folder).map_err(CommandError::failed)?;
    print_restored(&restored, "the agent was killed: ");
    Ok(Exit::Done)
}

/// Prints which settings of this host were restored, and which were not.
pub(super) fn print_restored(restored: &Restored, head: &str) {
    restored.put_back.iter().for_each(|setting| print::note(format!("{head}restored {setting}")));
    restored.left.iter().for_each(|why| print::warning(format!("{head}{why}")));
}
