//! The format of the file, and the migration from older formats.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::ArchiveError;

/// Migrations from each format to the next. The number of applied migrations is `PRAGMA user_version`.
const MIGRATIONS: [&str; 5] = [
    include_str!("../schema/0001_runs.sql"),
    include_str!("../schema/0002_plans.sql"),
    include_str!("../schema/0003_strangers.sql"),
    include_str!("../schema/0004_words.sql"),
    include_str!("../schema/0005_names.sql"),
];
/// Identifies the file as linerate's (`PRAGMA application_id`): the letters `lnrt`.
const APPLICATION: i32 = 0x6c6e_7274;

/// Migrates the file to the newest format.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), ArchiveError> {
    let fail = |source| ArchiveError::of(path, source);
    let known = MIGRATIONS.len() as u32;
    if format_of(connection, path)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // Checked again with the lock: another process may have migrated the file in the meantime.
    let found = format_of(&transaction, path)?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step).map_err(fail)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(fail)?;
    transaction.pragma_update(None, "user_version", known).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// Whether the file is an archive of the newest format.
pub(crate) fn is_current(connection: &Connection, path: &Path) -> Result<bool, ArchiveError> {
    format_of(connection, path).map(|format| format == MIGRATIONS.len() as u32)
}

/// The number of migrations applied to the file.
fn format_of(connection: &Connection, path: &Path) -> Result<u32, ArchiveError> {
    let fail = |source| ArchiveError::of(path, source);
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(fail);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let empty = connection.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(fail)? == 0;
    if empty {
        return Ok(0);
    }
    if pragma("application_id")? != i64::from(APPLICATION) {
        return Err(ArchiveError::Foreign { path: path.to_owned() });
    }
    let (found, known) = (pragma("user_version")? as u32, MIGRATIONS.len() as u32);
    if found > known {
        return Err(ArchiveError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

/// Sets write-ahead mode, which survives a kill without a sync per commit. If the file system does not support
/// it, the rollback journal does the same more slowly.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        // Fails while another process opens the same new file; that process then sets it.
        let _ = connection.pragma_update(None, "journal_mode", "wal");
    }
    connection.pragma_update(None, "synchronous", "normal")
}
