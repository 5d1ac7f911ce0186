//! Why a fleet for trying out cannot be started or ended, and what goes wrong while it is up.

use std::io;
use std::path::PathBuf;

use linerate_control::TokenError;
use linerate_model::ForeignText;

use super::STOP_TIMEOUT;
use crate::engines::LocalServerError;
use crate::error::FleetError;
use crate::fleet_file::FleetFileError;

/// Why the fleet cannot be started or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryOutError {
    /// It runs already.
    #[error("the fleet in {} is up already; end it with `linerate fleet down`, or give another --dir", .0.display())]
    Up(PathBuf),
    /// It does not run.
    #[error("no fleet is up in {}; start one with `linerate fleet up`", .0.display())]
    NotUp(PathBuf),
    /// The folder cannot be used.
    #[error("the folder {} cannot be used: {source}; give another one with --dir", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Programs of PostgreSQL or NATS are missing.
    #[error("{}; or start a fleet without both: linerate fleet up --simple", joined(.0))]
    Missing(Vec<LocalServerError>),
    /// This program cannot use PostgreSQL.
    #[error(
        "this build of linerate has no PostgreSQL, which a fleet with NATS needs; start one without both with \
         `linerate fleet up --simple`, or build linerate with the feature postgres"
    )]
    NoPostgres,
    /// PostgreSQL or NATS does not start, or what an earlier fleet has left of them does not end.
    #[error(transparent)]
    Engine(#[from] LocalServerError),
    /// The server or the agent of a host cannot be started.
    #[error("{name} cannot be started: {why}")]
    Child {
        /// Which one.
        name: String,
        /// Why.
        why: ForeignText,
    },
    /// Its process ended, or is not ready in time.
    #[error("the fleet did not come up: {0}")]
    NotStarted(ForeignText),
    /// The coordinator does not end.
    #[error(
        "process {process} did not end within {} s; look at what it does, or end it with `kill -9 {process}`",
        STOP_TIMEOUT.as_secs()
    )]
    Stuck {
        /// Its number.
        process: u32,
    },
    /// The token cannot be made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The description of the fleet is wrong.
    #[error(transparent)]
    File(#[from] FleetFileError),
    /// The calendar cannot be used.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

fn joined(errors: &[LocalServerError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Something that goes wrong while the fleet is up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryOutWarning {
    /// A process of the fleet has ended by itself.
    #[error("{name} has ended; see {}, and start the fleet again", log.display())]
    Ended {
        /// Which one.
        name: String,
        /// Its messages.
        log: PathBuf,
    },
    /// The users of the broker were changed, and it does not take them.
    #[error("the broker goes on with its earlier users: {0}")]
    Users(LocalServerError),
}
