//! Why a test could not be carried out.

use linerate_control::ControlError;
use linerate_model::SpecError;

/// Why a test could not be started or finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The server is not named as HOST, HOST:PORT or \[ADDRESS\]:PORT.
    #[error("'{0}' is not HOST, HOST:PORT or [ADDRESS]:PORT with a port from 1 to 65535")]
    Target(String),
    /// The server is given as a URL.
    #[error("'{typed}' is a URL; give only its host: {host}")]
    TargetUrl {
        /// The server as typed.
        typed: String,
        /// The host in it.
        host: String,
    },
    /// The server is given as a network or with a path.
    #[error("'{typed}' is not a host but has a '/'; give only the host: {host}")]
    TargetSlash {
        /// The server as typed.
        typed: String,
        /// What is before the slash.
        host: String,
    },
    /// The specification contradicts itself or asks for something impossible.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A run needs a random name.
    #[error("this system has no random numbers to name the run with: {0}")]
    NoRandomNumbers(getrandom::Error),
    /// The peer, this host or the user ended the run.
    #[error(transparent)]
    Control(#[from] ControlError),
}
