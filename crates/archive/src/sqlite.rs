//! An archive in one SQLite file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use crate::ArchiveError;
use crate::error::DatabaseFault;
use crate::migrate::sqlite::{is_current, migrate};
use crate::value::{DatabaseRow, Value};

/// How long opening and reading wait for another process's lock. The last process that closes a file holds it while it
/// tidies up, for a long time on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a transaction that writes waits for another process's lock. Transactions take milliseconds, and events
/// queue up during the wait.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);
/// Serialises writers within this process. SQLite's own waiting is polling without order: if hundreds of runs
/// end in one program at once, some would never get the lock.
static WRITE_LOCK: Mutex<()> = Mutex::new(());
/// Prepared statements that are kept.
const KEPT_STATEMENTS: usize = 32;

/// One SQLite file in write-ahead mode: any number of readers and one writer at a time, from any number of processes.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    shown: String,
    connection: Connection,
}

impl SqliteDatabase {
    /// Opens the file at `path`. Creates it and its directory if they are missing.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| ArchiveError::Folder { path: folder.to_owned(), source })?;
        }
        let _turn = Self::turn();
        let mut database = Self::connected(path, Connection::open(path))?;
        let shown = database.shown.clone();
        let fail = |source: rusqlite::Error| ArchiveError::of(&shown, source.into());
        database.connection.pragma_update(None, "foreign_keys", true).map_err(fail)?;
        migrate(&mut database.connection, &shown)?;
        prepare(&database.connection).map_err(fail)?;
        Ok(database)
    }

    /// Opens the file at `path` without writing anything, also in a folder that this user cannot write. It has to
    /// have the format of this version.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, ArchiveError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // With a write-ahead log, SQLite makes an index of it. Without one, nothing is made.
        let connection = match unchanging(path) {
            Some(uri) => Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI),
            None => Connection::open_with_flags(path, flags),
        };
        let database = Self::connected(path, connection)?;
        if !is_current(&database.connection, &database.shown)? {
            return Err(ArchiveError::Older { archive: database.shown });
        }
        Ok(database)
    }

    fn connected(path: &Path, connection: rusqlite::Result<Connection>) -> Result<Self, ArchiveError> {
        let shown = path.display().to_string();
        let fail = |source: rusqlite::Error| ArchiveError::of(&shown, source.into());
        let connection = connection.map_err(fail)?;
        connection.busy_timeout(READ_TIMEOUT).map_err(fail)?;
        connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
        Ok(Self { shown, connection })
    }

    /// The turn of this thread among the writers of this process.
    pub(crate) fn turn() -> MutexGuard<'static, ()> {
        WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn query(&self, sql: &str, parameters: &[Value]) -> Result<Vec<DatabaseRow>, DatabaseFault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map(params_from_iter(parameters), |row| {
            let values = (0..columns).map(|column| Ok(owned(row.get_ref(column)?))).collect::<Result<_, _>>();
            values.map(DatabaseRow)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(crate) fn execute(&self, sql: &str, parameters: &[Value]) -> Result<u64, DatabaseFault> {
        Ok(self.connection.prepare_cached(sql)?.execute(params_from_iter(parameters))? as u64)
    }

    /// Begins a transaction with the lock for writers.
    pub(crate) fn begin(&self) -> Result<(), DatabaseFault> {
        self.connection.busy_timeout(WRITE_TIMEOUT)?;
        let begun = self.statement("BEGIN IMMEDIATE");
        self.connection.busy_timeout(READ_TIMEOUT)?;
        begun
    }

    pub(crate) fn statement(&self, sql: &str) -> Result<(), DatabaseFault> {
        Ok(self.connection.execute_batch(sql)?)
    }

    pub(crate) fn vacuum(&self) -> Result<(), DatabaseFault> {
        let _turn = Self::turn();
        self.statement("VACUUM; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA optimize")
    }

    /// Copies the archive, as it is at this moment, into a new file. Others may write meanwhile.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), DatabaseFault> {
        let target = path
            .to_str()
            .map(Value::from)
            .ok_or_else(|| DatabaseFault::Content("the name of the copy is not UTF-8".to_owned()))?;
        self.execute("VACUUM INTO ?1", &[target]).map(drop)
    }
}

/// The URI of a database that nobody writes: it has no write-ahead log.
fn unchanging(path: &Path) -> Option<String> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let path = path.to_str().filter(|_| !PathBuf::from(&log).exists())?;
    let escaped: String = path
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02x}"),
        })
        .collect();
    Some(format!("file:{escaped}?immutable=1"))
}

/// Sets write-ahead mode, which survives a kill without a sync per commit. If the file system does not support
/// it, the rollback journal does the same more slowly.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        // Fails while another process opens the same new file; that process then sets it.
        let _ = connection.pragma_update(None, "journal_mode", "wal");
    }
    connection.pragma_update(None, "synchronous", "normal")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Blob(value) => ValueRef::Blob(value),
        }))
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        // The columns of texts are written by this program; another program's may be no UTF-8.
        ValueRef::Text(value) => Value::Text(String::from_utf8_lossy(value).into_owned()),
        ValueRef::Blob(value) => Value::Blob(value.to_vec()),
    }
}
