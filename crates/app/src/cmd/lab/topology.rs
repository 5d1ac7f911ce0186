//! Finds topologies and labs, and reports errors in them.

use linerate_emu::topology::Topology;
use linerate_lab::{LabHandle, LabName, StateDir};
use linerate_plan::Source;
use linerate_runner::find_topology;
use linerate_runner::lab::read_topology;

use super::{PlaceArgs, WhichLab};
use crate::exit::Exit;
use crate::print;

/// An error message, and the exit code.
#[derive(Debug)]
pub(in crate::cmd) struct LabError {
    text: String,
    exit: Exit,
}

impl LabError {
    /// An error in the command line or the file.
    #[expect(clippy::needless_pass_by_value, reason = "so that map_err can name it")]
    pub(super) fn usage(text: impl ToString) -> Self {
        Self { text: text.to_string(), exit: Exit::Usage }
    }

    /// A failure during execution.
    #[expect(clippy::needless_pass_by_value, reason = "so that map_err can name it")]
    pub(super) fn failed(text: impl ToString) -> Self {
        Self { text: text.to_string(), exit: Exit::Failed }
    }

    /// The message alone, to pass it to another process.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Prints the message.
    pub(in crate::cmd) fn report(self) -> Exit {
        // A file may have several errors, one per line.
        for line in self.text.lines() {
            print::error(line);
        }
        self.exit
    }
}

/// A name for a lab.
pub(super) fn lab_name(text: &str) -> Result<LabName, LabError> {
    text.parse().map_err(LabError::usage)
}

/// The bundled topology with this name, or the file of this name.
pub(super) fn find(name: &str) -> Result<Source, LabError> {
    find_topology(name).map_err(LabError::usage)
}

/// Parses the topology and applies `--set`.
pub(super) fn read(source: &Source, set: &[String]) -> Result<Topology, LabError> {
    read_topology(source, set).map_err(LabError::usage)
}

impl PlaceArgs {
    /// The folder of this user's labs.
    pub(in crate::cmd) fn open(&self) -> Result<StateDir, LabError> {
        StateDir::open(self.run_dir.as_deref()).map_err(LabError::failed)
    }

    /// The selected lab, which must be running.
    pub(super) fn lab(&self, name: Option<&str>) -> Result<LabHandle, LabError> {
        let labs = self.open()?.labs().map_err(LabError::failed)?;
        choose(labs.into_iter().filter(LabHandle::is_up).collect(), name)
    }

    /// The selected lab, running or killed.
    pub(super) fn lab_or_leftover(&self, name: Option<&str>) -> Result<LabHandle, LabError> {
        choose(self.open()?.labs().map_err(LabError::failed)?, name)
    }
}

impl WhichLab {
    pub(super) fn find(&self) -> Result<LabHandle, LabError> {
        self.place.lab(self.name.as_deref())
    }
}

fn choose(mut labs: Vec<LabHandle>, name: Option<&str>) -> Result<LabHandle, LabError> {
    let names: Vec<String> = labs.iter().map(|lab| lab.name().to_owned()).collect();
    let found = match name {
        Some(name) => names.iter().position(|lab| lab == name),
        None if names.len() == 1 => Some(0),
        None => None,
    };
    if let Some(found) = found {
        return Ok(labs.swap_remove(found));
    }
    Err(LabError::failed(match (name, names.as_slice()) {
        (_, []) => "no lab is up; start one with: linerate lab up pair".to_owned(),
        (Some(name), names) => format!("no lab {name:?} is up; running labs: {}", names.join(", ")),
        (None, names) => format!("several labs are up; name one of: {}", names.join(", ")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_that_is_not_there_or_a_wrong_setting_is_a_wrong_command_line() {
        let unknown = find("pear").unwrap_err();
        assert!(unknown.exit == Exit::Usage && unknown.text.contains("science-dmz"), "{}", unknown.text);
        assert!(read(&find("pair").unwrap(), &["nonsense".into()]).is_err_and(|why| why.exit == Exit::Usage));
    }
}
