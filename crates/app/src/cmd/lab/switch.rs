//! The switch process of a lab.

use clap::Args;
use linerate_lab::{LabName, StateDir};
use linerate_runner::lab::{LabSwitch, refuse};
use linerate_units::{Bytes, above_zero};

use super::which_lab::lab_name;
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::{Signals, ending};

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Name of the lab
    #[arg(long)]
    name: String,
    /// End when the reader of stdout is gone
    #[arg(long)]
    tied: bool,
    /// Memory that packets in transit may take
    #[arg(long, env = "LINERATE_LAB_MEMORY", value_parser = above_zero::<Bytes>)]
    memory: Option<Bytes>,
    #[command(flatten)]
    place: RunFolder,
}

impl SwitchArgs {
    fn lab(&self) -> Result<(StateDir, LabName), CommandError> {
        Ok((self.place.open().map_err(CommandError::failed)?, lab_name(&self.name)?))
    }
}

/// Runs until the lab is removed. Errors are passed to the process that started this one, which
/// prints them.
pub(super) fn run(args: &SwitchArgs) -> Result<Exit, CommandError> {
    let (state, name) = args.lab().map_err(|error| {
        refuse(&error.into_text());
        Exit::Failed
    })?;
    let Ok(switch) = LabSwitch::create(&name, &state, args.memory) else { return Ok(Exit::Failed) };
    let stopper = switch.stopper();
    Signals::hand_over(&ending(), move |_| stopper.stop()).map_err(|error| {
        refuse(&error.into_text());
        Exit::Failed
    })?;
    match switch.run(args.tied) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            tracing::error!(%error, "the switch ended");
            Ok(Exit::Failed)
        }
    }
}
