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
        "no home directory is known, so there is no place for the archive; name a file with --archive or set HOME"
    )]
    NoHome,
    /// The path of the home directory is relative.
    #[error(
        "HOME is '{}', which is no absolute path, so the place of the archive would depend on the current folder; set HOME to your home directory or name a file with --archive",
        home.display()
    )]
    RelativeHome {
        /// Value from the environment.
        home: PathBuf,
    },
    /// This build does not support this kind of archive.
    #[error("an archive at {url} is not in this build yet; give the path of an SQLite file")]
    Unsupported {
        /// The location as typed, without a password.
        url: String,
    },
    /// The directory of the archive cannot be created.
    #[error("cannot make the folder {} of the archive; make it yourself or name another file with --archive", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file cannot be opened.
    #[error("cannot open the archive {}; check that it is a file that you may read and write, or name another with --archive", path.display())]
    Open {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// A later version wrote the file.
    #[error("the archive {} has format {found} and this version knows formats up to {known}; use a newer linerate or name another file with --archive", path.display())]
    Newer {
        /// The archive.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The file is a database of another program.
    #[error("{} is a database of another program; name another file with --archive", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged or is no database.
    #[error("the archive {} is damaged or is no database; move it away (a new one is made) or restore it from a copy", path.display())]
    Corrupt {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The disk is full.
    #[error("no room is left for the archive {}; free some, or name a file on another disk with --archive", path.display())]
    Full {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The archive is read-only.
    #[error("the archive {} may not be written; check its permissions and its folder's, or name another file with --archive", path.display())]
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
    #[error("the archive {} failed; check its disk, or name another file with --archive", path.display())]
    Sqlite {
        /// The archive.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// An event cannot be serialised.
    #[error(
        "event {seq} of run {run} cannot be written down; this is a defect of linerate, please report it"
    )]
    Encode {
        /// The run.
        run: String,
        /// The event.
        seq: u64,
        /// The reason.
        source: serde_json::Error,
    },
    /// The archive could not be written for a long time, and events were dropped.
    #[error("{events} events could not be archived in time and are lost; the log of this run has a gap")]
    Dropped {
        /// Number of lost events.
        events: u64,
    },
    /// No run has this prefix.
    #[error("no run in the archive begins with '{prefix}'; `linerate history` lists them")]
    NotFound {
        /// The name as typed.
        prefix: String,
    },
    /// Several runs have this prefix.
    #[error("'{prefix}' is the beginning of several runs ({}); give more letters", examples.join(", "))]
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
