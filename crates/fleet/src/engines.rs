//! The servers that a fleet on one machine can use: PostgreSQL for its calendar, and NATS for its agents.
//!
//! Each of them keeps its files in the folder of the fleet, is reachable from this machine only, and ends when its value
//! is dropped. It is the leader of a process group of its own, so that Ctrl-C on a terminal does not end it before the
//! coordinator. What a killed coordinator has left running is ended by the next start, or by [`end_left_servers`].
//!
//! Nothing here keeps two coordinators apart: the caller holds a lock of the folder, as a
//! [`PidFile`](linerate_runner::PidFile) is.

mod local_nats;
mod local_postgres;
mod programs;
mod server_process;
mod server_user;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::ForeignText;

pub use local_nats::LocalNats;
pub use local_postgres::LocalPostgres;
pub(crate) use server_process::process_with;
pub(crate) use server_user::effective_user;

/// How long NATS may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the programs of the servers are. What is absent is searched for.
///
/// Errors call the fields by the options `--postgres-bin` and `--nats-server`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnginePaths {
    /// The folder with `initdb`, `postgres` and `pg_ctl`. Otherwise it is a folder of `PATH`, or
    /// `/usr/lib/postgresql/VERSION/bin`, where Debian has them.
    pub postgres_bin: Option<PathBuf>,
    /// The program `nats-server`. Otherwise it is searched for in `PATH`.
    pub nats_server: Option<PathBuf>,
}

impl EnginePaths {
    /// Which of the servers cannot be found, as errors.
    pub(crate) fn missing(&self) -> Vec<LocalServerError> {
        let found = [programs::find_postgres(self, None), programs::find_nats(self)];
        found.into_iter().filter_map(Result::err).collect()
    }
}

/// Why a server on this machine cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalServerError {
    /// A program is not there.
    #[error("{program} is missing: it is not in {searched}; {remedy}")]
    Missing {
        /// The name of the program.
        program: &'static str,
        /// Where it was searched for.
        searched: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// A program does not start.
    #[error("{} cannot be run{}: {source}", program.display(), as_user(user.as_deref()))]
    Program {
        /// The program.
        program: PathBuf,
        /// The user that it was to run as, if that is not this one.
        user: Option<String>,
        /// Why.
        source: io::Error,
    },
    /// A program does not tell its version.
    #[error("{} does not say which version it is: {output}", program.display())]
    NoVersion {
        /// The program.
        program: PathBuf,
        /// What it says.
        output: ForeignText,
    },
    /// A program is too old.
    #[error("{} is version {found}, and at least {needed} is needed; {remedy}", program.display())]
    Old {
        /// The program.
        program: PathBuf,
        /// Its version.
        found: ForeignText,
        /// The oldest one that will do.
        needed: &'static str,
        /// How to get a newer one.
        remedy: &'static str,
    },
    /// The data is of another version of PostgreSQL.
    #[error(
        "the data in {folder} is of PostgreSQL {found}, and {program} is version {version}; give the programs of version {found} with --postgres-bin, another folder with --dir, or remove {folder} with its data",
        folder = folder.display(),
        program = program.display()
    )]
    OtherVersion {
        /// The folder with the data.
        folder: PathBuf,
        /// The version that has written it.
        found: ForeignText,
        /// The program that was found.
        program: PathBuf,
        /// Its version.
        version: ForeignText,
    },
    /// A file or folder cannot be used.
    #[error("{} cannot be used: {source}; give another folder with --dir", path.display())]
    Path {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Root has no user to run PostgreSQL as.
    #[error(
        "PostgreSQL does not run as root, and this host has neither a user 'postgres' nor 'nobody'; create one with `useradd --system postgres`, or start the fleet as another user"
    )]
    NoUser,
    /// The user that PostgreSQL runs as cannot enter a folder.
    #[error(
        "PostgreSQL does not run as root, and its user '{user}' may not enter {}; give a folder that every user may enter with --dir, such as /var/lib/linerate-fleet{}",
        closed.display(),
        if *own { format!(", or type: chmod a+x {}", closed.display()) } else { String::new() }
    )]
    Closed {
        /// The user.
        user: String,
        /// The first folder that it may not enter.
        closed: PathBuf,
        /// Whether that is the folder of the fleet itself.
        own: bool,
    },
    /// A server ended before it accepted connections.
    #[error("{program} did not start: {output}; see {}", log.display())]
    Ended {
        /// The server.
        program: &'static str,
        /// Its last message.
        output: ForeignText,
        /// The file with all its messages.
        log: PathBuf,
    },
    /// A server does not accept connections in time.
    #[error("{program} accepts no connections after {} s: {output}; see {}", timeout.as_secs(), log.display())]
    NotReady {
        /// The server.
        program: &'static str,
        /// Its time.
        timeout: Duration,
        /// Its last message.
        output: ForeignText,
        /// The file with all its messages.
        log: PathBuf,
    },
    /// A server that an earlier coordinator has left does not end.
    #[error(
        "process {process}, {program} of an earlier fleet in this folder, does not end; type: kill -9 {process}"
    )]
    Stuck {
        /// The server.
        program: &'static str,
        /// Its number.
        process: u32,
    },
    /// A server does not take its new configuration.
    #[error("nats-server does not take its new configuration: {0}")]
    Reload(ForeignText),
}

fn as_user(user: Option<&str>) -> String {
    user.map(|user| format!(" as the user '{user}'")).unwrap_or_default()
}

/// Ends the servers that a killed coordinator has left running in the folder of a fleet. Their files stay.
///
/// # Errors
/// One does not end; the others have been ended then.
pub fn end_left_servers(folder: &Path) -> Result<(), LocalServerError> {
    // Of a folder that is gone, no process is known.
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let ended = local_postgres::end_left(&folder);
    local_nats::end_left(&folder).and(ended)
}

/// The path of a folder from the root, so that its processes are known by it; it is created if it is missing.
fn prepared_folder(folder: &Path) -> Result<PathBuf, LocalServerError> {
    fs::create_dir_all(folder).and_then(|()| folder.canonicalize()).map_err(|source| unusable(folder, source))
}

fn unusable(path: &Path, source: io::Error) -> LocalServerError {
    LocalServerError::Path { path: path.to_owned(), source }
}
