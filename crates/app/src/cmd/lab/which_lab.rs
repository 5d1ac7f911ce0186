//! The lab or topology that a command line names.

use clap::Args;
use linerate_lab::{LabHandle, LabName};
use linerate_plan::Source;
use linerate_runner::find_topology;

use crate::args::RunFolder;
use crate::command_error::CommandError;

/// Selects one of the running labs.
#[derive(Debug, Args)]
pub(crate) struct WhichLab {
    /// The lab [default: the only one that is running]
    #[arg(long = "lab", value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    place: RunFolder,
}

impl WhichLab {
    /// The selected lab, which must be running.
    pub(super) fn find(&self) -> Result<LabHandle, CommandError> {
        running(&self.place, self.name.as_deref())
    }
}

/// A name for a lab.
pub(super) fn lab_name(text: &str) -> Result<LabName, CommandError> {
    text.parse().map_err(CommandError::usage)
}

/// The bundled topology with this name, or the file of this name.
pub(super) fn topology(name: &str) -> Result<Source, CommandError> {
    find_topology(name).map_err(CommandError::usage)
}

/// The lab with this name, or the only one, which must be running.
pub(super) fn running(place: &RunFolder, name: Option<&str>) -> Result<LabHandle, CommandError> {
    LabHandle::choose(all(place)?.into_iter().filter(LabHandle::is_up).collect(), name)
        .map_err(CommandError::failed)
}

/// The same, running or killed.
pub(super) fn running_or_killed(place: &RunFolder, name: Option<&str>) -> Result<LabHandle, CommandError> {
    LabHandle::choose(all(place)?, name).map_err(CommandError::failed)
}

/// All labs of this user, running or killed.
pub(super) fn all(place: &RunFolder) -> Result<Vec<LabHandle>, CommandError> {
    place.open().and_then(|state| state.labs()).map_err(CommandError::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use linerate_runner::lab::read_topology;

    #[test]
    fn a_topology_that_is_not_there_or_a_wrong_setting_is_a_wrong_command_line() {
        let text = topology("piar").unwrap_err().into_text();
        assert!(text.contains("did you mean 'pair'?"), "{text}");
        assert_eq!(topology("piar").unwrap_err().report(), Exit::Usage);
        let read = read_topology(&topology("pair").unwrap(), &["nonsense".into()]);
        assert_eq!(read.map_err(CommandError::usage).unwrap_err().report(), Exit::Usage);
    }
}
