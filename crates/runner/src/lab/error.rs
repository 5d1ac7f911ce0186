//! Why an emulated network is not available.

use std::path::PathBuf;
use std::process::ExitStatus;

use linerate_emu::topology::{OverrideError, TopologyError};
use linerate_lab::{AskError, GroundError, LabNameError};

/// A topology that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyMistakes {
    /// A setting has the wrong form.
    #[error(transparent)]
    Setting(#[from] OverrideError),
    /// The file, or a value that was set, is wrong. Each mistake is a line.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Why an emulated network cannot be created or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabRunError {
    /// The network cannot have this name.
    #[error(transparent)]
    Name(#[from] LabNameError),
    /// Its resources cannot be created or removed.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The process of the switch cannot be started.
    #[error("the switch could not be started: {0}")]
    SwitchNotStarted(std::io::Error),
    /// The switch could not create the network.
    #[error("{0}")]
    NotCreated(String),
    /// The switch ended early.
    #[error(
        "the switch ended before the network was ready{}{}",
        status.map(|status| format!(" ({status})")).unwrap_or_default(),
        log.as_ref().map(|log| format!("; its output is in {}", log.display())).unwrap_or_default()
    )]
    SwitchEnded {
        /// How; absent if that is unknown.
        status: Option<ExitStatus>,
        /// The file with its output; absent if there was none.
        log: Option<PathBuf>,
    },
    /// The switch does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}
