//! Errors of the archive: which file, and the remedy.

use std::path::PathBuf;

use linerate_model::ForeignText;
use rusqlite::ErrorCode;
use thiserror::Error;

/// What a database says is wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatabaseFault {
    /// Error of SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Error of PostgreSQL, or of the connection to it.
    #[cfg(feature = "postgres")]
    #[error("{}", server_words(.0))]
    Postgres(#[from] postgres::Error),
    /// A part of a log is damaged.
    #[error("a part of the log cannot be read: {0}")]
    Part(#[from] std::io::Error),
    /// A row has another content than this program writes.
    #[error("unexpected content: {0}")]
    Content(String),
}

/// The words of the server, or of the operating system that did not reach it.
#[cfg(feature = "postgres")]
fn server_words(error: &postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(server), _) => server.message().to_owned(),
        (None, Some(cause)) => cause.to_string(),
        (None, None) => error.to_string(),
    }
}

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
    /// The location is empty.
    #[error(
        "the location of the archive is empty; name a file with --archive or LINERATE_ARCHIVE, or unset \
             LINERATE_ARCHIVE for the default archive"
    )]
    NoLocation,
    /// The location is no path and no URL of a database that this build supports.
    #[error("--archive {url}: {why}")]
    Unsupported {
        /// The location as typed, without a password.
        url: String,
        /// What is wrong, and the remedy.
        why: String,
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
    #[error(
        "cannot open the archive {archive}; check that it is a file with read and write permission, or name \
             another with --archive"
    )]
    Open {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
    },
    /// A later version wrote the file.
    #[error(
        "the archive {archive} has format {found}, and this version reads formats up to {known}; use a newer \
             linerate or name another file with --archive"
    )]
    Newer {
        /// The archive.
        archive: String,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// An earlier version wrote the file, and it cannot be converted where it is.
    #[error(
        "the archive {archive} has the format of an earlier version and cannot be converted, because it cannot be \
             written; copy it and name the copy with --archive"
    )]
    Older {
        /// The archive.
        archive: String,
    },
    /// The file is a database of another program.
    #[error("{archive} is a database of another program; name another file with --archive")]
    Foreign {
        /// The file.
        archive: String,
    },
    /// The file is damaged or is no database.
    #[error(
        "the archive {archive} is damaged or is not a database; move it away (a new one is created) or restore \
             it from a backup"
    )]
    Corrupt {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
    },
    /// The disk is full.
    #[error(
        "the disk with the archive {archive} is full; free some space, or name a file on another disk with \
             --archive"
    )]
    Full {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
    },
    /// The archive is read-only.
    #[error(
        "the archive {archive} is read-only; check its permissions and those of its folder, or name another \
             file with --archive"
    )]
    ReadOnly {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
    },
    /// The server of the database cannot be reached, or the connection to it is lost.
    #[error(
        "the server of the archive {archive} cannot be reached; check that it runs and accepts connections, or \
             name another archive with --archive"
    )]
    Unreachable {
        /// The archive.
        archive: String,
        /// Error of the connection.
        source: DatabaseFault,
    },
    /// The connection to the server of the database cannot be encrypted, or its certificate is not trusted.
    #[error(
        "the connection to the archive {archive} is not encrypted as it should be; see to the certificate of the              server, give the one of its authority in the URL (sslrootcert=FILE), or choose another sslmode there"
    )]
    Untrusted {
        /// The archive.
        archive: String,
        /// What is wrong with the certificate or the encryption.
        source: DatabaseFault,
    },
    /// The server of the database refuses this user.
    #[error(
        "the server of the archive {archive} refuses this user; check the name and the password in the URL (or in \
             PGPASSWORD, or in ~/.pgpass, which only you may read), and that the database exists"
    )]
    Refused {
        /// The archive.
        archive: String,
        /// The words of the server.
        source: DatabaseFault,
    },
    /// Another process holds a lock.
    #[error(
        "the archive {archive} is locked by another process; wait for it to end, or name another file with --archive"
    )]
    Locked {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
    },
    /// Any other error of the database.
    #[error("accessing the archive {archive} failed; check its disk, or name another file with --archive")]
    Failed {
        /// The archive.
        archive: String,
        /// Error of the database.
        source: DatabaseFault,
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
    #[error("{}", not_found(prefix))]
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
        /// Some of the runs and when they started, the newest first.
        examples: Vec<String>,
    },
    /// This is no id of a run of linerate.
    #[error("a run of the log has an id of {} bytes, and linerate gives no such long ones", run.len())]
    LongId {
        /// The id.
        run: ForeignText,
    },
    /// This cannot be a tag.
    #[error("'{tag}' cannot be a tag: give 1 to 64 characters without spaces and commas")]
    BadTag {
        /// The tag as typed.
        tag: ForeignText,
    },
    /// There is a file in the place of a copy.
    #[error("{} exists; name a file that does not exist for the copy", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
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
    /// Classifies an error of the database of an archive.
    pub(crate) fn of(archive: &str, source: DatabaseFault) -> Self {
        let archive = archive.to_owned();
        match source.kind() {
            FaultKind::Corrupt => Self::Corrupt { archive, source },
            FaultKind::Full => Self::Full { archive, source },
            FaultKind::ReadOnly => Self::ReadOnly { archive, source },
            FaultKind::Locked => Self::Locked { archive, source },
            FaultKind::Open => Self::Open { archive, source },
            FaultKind::Unreachable => Self::Unreachable { archive, source },
            FaultKind::Untrusted => Self::Untrusted { archive, source },
            FaultKind::Refused => Self::Refused { archive, source },
            FaultKind::Other => Self::Failed { archive, source },
        }
    }

    /// Whether another program holds a lock.
    pub(crate) const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }

    /// Whether a retry may succeed without user action.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Unreachable { .. })
    }
}

/// What a user can do about a fault.
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "a file is never unreachable, encrypts nothing and refuses nobody")
)]
enum FaultKind {
    Corrupt,
    Full,
    ReadOnly,
    Locked,
    Open,
    Unreachable,
    Untrusted,
    Refused,
    Other,
}

impl DatabaseFault {
    /// Whether a row of the calendar of a fleet has the place of another one.
    pub(crate) fn is_double_booking(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
                    && error.to_string().contains("fleet_")
            }
            #[cfg(feature = "postgres")]
            // A unique and an exclusion constraint.
            Self::Postgres(error) => error.as_db_error().is_some_and(|server| {
                matches!(server.code().code(), "23505" | "23P01")
                    && server.table().is_some_and(|table| table.starts_with("fleet_"))
            }),
            Self::Part(_) | Self::Content(_) => false,
        }
    }

    fn kind(&self) -> FaultKind {
        match self {
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FaultKind::Corrupt,
                Some(ErrorCode::DiskFull) => FaultKind::Full,
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => FaultKind::ReadOnly,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FaultKind::Locked,
                Some(ErrorCode::CannotOpen) => FaultKind::Open,
                _ => FaultKind::Other,
            },
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => match error.code() {
                Some(state) => kind_of_state(state.code()),
                None => kind_without_state(error),
            },
            Self::Part(_) | Self::Content(_) => FaultKind::Corrupt,
        }
    }
}

/// By the SQLSTATE that the server gives.
#[cfg(feature = "postgres")]
fn kind_of_state(state: &str) -> FaultKind {
    match state {
        // Too many connections.
        "53300" => FaultKind::Unreachable,
        // Connection exceptions, and operator intervention such as a shutdown.
        _ if state.starts_with("08") || state.starts_with("57P") => FaultKind::Unreachable,
        // Invalid authorization, and a database that does not exist.
        _ if state.starts_with("28") || state == "3D000" => FaultKind::Refused,
        "53100" => FaultKind::Full,
        // No permission for a table, and a server that only reads.
        "42501" | "25006" => FaultKind::ReadOnly,
        // A lock or a statement took too long, a deadlock, a failed serialization.
        "55P03" | "57014" | "40P01" | "40001" => FaultKind::Locked,
        // Data or an index is damaged.
        _ if state.starts_with("XX") => FaultKind::Corrupt,
        _ => FaultKind::Other,
    }
}

/// Whether a handshake failed for what the server is, and not because the connection was lost.
#[cfg(feature = "postgres")]
fn is_about_encryption(error: &postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
        Some(cause) => matches!(cause.get_ref(), Some(inner) if inner.is::<rustls::Error>()),
        // The client library has no type for it.
        None => error.to_string().contains("TLS"),
    }
}

/// Of an error that the server did not report.
#[cfg(feature = "postgres")]
fn kind_without_state(error: &postgres::Error) -> FaultKind {
    let cause = std::error::Error::source(error);
    if is_about_encryption(error) {
        return FaultKind::Untrusted;
    }
    if error.is_closed() || cause.is_some_and(<dyn std::error::Error>::is::<std::io::Error>) {
        return FaultKind::Unreachable;
    }
    // The server wants a password and none is given, or it wants a method that the library does not have.
    // The library says only in the cause which of the two.
    let words = format!("{error} {}", cause.map_or_else(String::new, ToString::to_string));
    if words.contains("password") || words.contains("authentication") {
        FaultKind::Refused
    } else {
        FaultKind::Other
    }
}

/// `latest` is also what commands take if no run is named.
fn not_found(prefix: &str) -> String {
    if prefix == "latest" {
        return "no runs are archived yet".to_owned();
    }
    format!(
        "no run in the archive has the name '{prefix}' or one that begins with it; `linerate history` lists the runs"
    )
}
