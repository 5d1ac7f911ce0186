//! Reads the file of a fleet from the disk, with the topology that it names.

use std::path::Path;

use linerate_plan::{PlanError, Source};
use linerate_runner::plan::topology_paths;

use super::read::{TopologyPath, read};
use crate::inventory::Inventory;

/// Why the file of a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetFileError {
    /// It cannot be read.
    #[error("the file of the fleet {file} cannot be read")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// It has mistakes.
    #[error(transparent)]
    Mistakes(#[from] PlanError),
}

/// Reads the file of a fleet.
///
/// # Errors
/// It cannot be read, or has mistakes: all of them, each with line and column.
pub fn load(path: &Path) -> Result<Inventory, FleetFileError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| FleetFileError::Unreadable { file: name.clone(), source })?;
    let paths = |topology: &str| {
        let found = topology_paths(topology, &name).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|(hosts, links)| TopologyPath { hosts, links }).collect())
    };
    Ok(read(&Source { name: name.clone(), text }, &paths)?)
}
