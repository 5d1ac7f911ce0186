//! Why an emulated network is not available.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitStatus;

use linerate_control::ControlError;
use linerate_emu::topology::{OverrideError, TopologyError};
use linerate_lab::{AskError, LabNameError, LabResourceError};
use linerate_plan::SurroundingsError;
use linerate_sock::SockError;

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
    /// The topology of a plan is not found.
    #[error("{}", with_cause(.0))]
    NotFound(SurroundingsError),
    /// The network cannot have this name.
    #[error(transparent)]
    Name(#[from] LabNameError),
    /// Its resources cannot be created or removed.
    #[error(transparent)]
    Resources(#[from] LabResourceError),
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
    /// The lab was created without root.
    #[error("plans in the lab need root: a coordinator cannot reach the network of a lab without root")]
    Rootless,
    /// The lab has no such host.
    #[error("the lab has no host {0}")]
    NoHost(String),
    /// The network namespace of a host cannot be opened.
    #[error("the network of host {host}: {error}")]
    HostNetwork {
        /// The host.
        host: String,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// An agent cannot be started.
    #[error("the agent on host {host} cannot be started: {error}")]
    AgentNotStarted {
        /// Its host.
        host: String,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// An agent ended early.
    #[error("the agent on host {0} ended before it was listening")]
    AgentEnded(String),
    /// The agents need a random token.
    #[error("this system cannot provide random numbers: {0}")]
    NoRandomNumbers(getrandom::Error),
    /// An agent cannot read its token.
    #[error("the agent cannot read its token: {0}")]
    Token(Box<dyn Error + Send + Sync>),
    /// A process cannot enter a host.
    #[error(transparent)]
    Host(#[from] SockError),
    /// An agent cannot serve.
    #[error(transparent)]
    Serve(#[from] ControlError),
}

fn with_cause(error: &SurroundingsError) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
