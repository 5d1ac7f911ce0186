//! Errors of the archive: which file, and the remedy.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why an archive could not be opened, written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// There is no home directory for the archive.
    #[error(
        "HOME is not set, so the location of the archive is unknown; set HOME or name a file with --archive"
    )]
    NoHome,
    /// The path of the home directory is relative.
    #[error(
        "HOME is '{}', which is not an absolute path, so the location of the archive would depend on the \
         current folder; set HOME to your home directory or name a file with --archive",
        home.display()
    )]
    RelativeHome {
        /// Value from the environment.
        home: PathBuf,
    },
    /// This build does not support this kind of archive.
    #[error("this build does not support an archive at {url}; give the path of an SQLite file")]
    Unsupported {
        /// The location as typed, without a password.
        url: String,
    },
    /// The directory of the archive cannot be created.
    #[error("cannot create the folder {} for the archive; create it yourself or name another file with \
             --archive", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file cannot be opened.
    #[error("cannot open the archive {}; check that it is a file with read and write permission, or name \
             another with --archive", path.display())]
    Open {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// A later version wrote the file.
    #[error("the archive {} has format {found}, and this version reads formats up to {known}; use a newer \
             linerate or name another file with --archive", path.display())]
    Newer {
        /// The archive.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// An earlier version wrote the file, and it cannot be converted where it is.
    #[error("the archive {} has the format of an earlier version and cannot be converted, because it cannot be \
             written; copy it and name the copy with --archive", path.display())]
    Older {
        /// The archive.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("{} is a database of another program; name another file with --archive", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged or is no database.
    #[error("the archive {} is damaged or is not a database; move it away (a new one is created) or restore \
             it from a backup", path.display())]
    Corrupt {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The disk is full.
    #[error("the disk with the archive {} is full; free some space, or name a file on another disk with \
             --archive", path.display())]
    Full {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The archive is read-only.
    #[error("the archive {} is read-only; check its permissions and those of its folder, or name another \
             file with --archive", path.display())]
    ReadOnly {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// Another process holds a lock.
    #[error("the archive {} is locked by another process; wait for it to end, or name another file with --archive", path.display())]
    Locked {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// Any other error of SQLite.
    #[error("accessing the archive {} failed; check its disk, or name another file with --archive", path.display())]
    Sqlite {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// An event cannot be serialised.
    #[error("event {seq} of run {run} cannot be stored; this is a bug in linerate, please report it")]
    Encode {
        /// The run.
        run: String,
        /// The event.
        seq: u64,
        /// The reason.
        source: serde_json::Error,
    },
    /// The archive could not be written for a long time, and events were dropped.
    #[error("{events} events could not be archived in time and were lost; the log of this run has a gap")]
    Dropped {
        /// Number of lost events.
        events: u64,
    },
    /// No run has this name or prefix.
    #[error(
        "no run in the archive has the name '{prefix}' or one that begins with it; `linerate history` lists the runs"
    )]
    NotFound {
        /// The name as typed.
        prefix: String,
    },
    /// Several runs have the name that a user gave them.
    #[error("several runs have the name '{name}': `linerate history {name}` lists them (the newest are {}); give the id \
             of one", examples.join(", "))]
    SharedName {
        /// The name as typed.
        name: String,
        /// Some of the runs, the newest first.
        examples: Vec<String>,
    },
    /// Several runs have this prefix.
    #[error("'{prefix}' matches several runs ({}); give more characters", examples.join(", "))]
    Ambiguous {
        /// The name as typed.
        prefix: String,
        /// Some of the runs.
        examples: Vec<String>,
    },
}

impl ArchiveError {
    /// Classifies an SQLite error of the archive at `path`.
    pub(crate) fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path, source },
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path, source },
            Some(ErrorCode::CannotOpen) => Self::Open { path, source },
            _ => Self::Sqlite { path, source },
        }
    }

    /// Whether a retry may succeed without user action.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }
}
