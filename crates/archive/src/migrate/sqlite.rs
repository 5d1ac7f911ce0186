//! Migrations of SQLite files.

use linerate_units::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::FORMAT;
use crate::ArchiveError;
use crate::error::DatabaseFault;
use crate::part::LogPart;

/// Migrations from each format to the next. The number of applied migrations is `PRAGMA user_version`.
const MIGRATIONS: [&str; FORMAT as usize] = [
    include_str!("../../schema/0001_runs.sql"),
    include_str!("../../schema/0002_plans.sql"),
    include_str!("../../schema/0003_strangers.sql"),
    include_str!("../../schema/0004_words.sql"),
    include_str!("../../schema/0005_names.sql"),
    include_str!("../../schema/0006_parts.sql"),
];
/// The format in which logs became parts.
const PARTS: u32 = 6;
/// Identifies the file as linerate's (`PRAGMA application_id`): the letters `lnrt`.
const APPLICATION: i32 = 0x6c6e_7274;

/// Migrates the file to the newest format.
pub(crate) fn migrate(connection: &mut Connection, shown: &str) -> Result<(), ArchiveError> {
    if format_of(connection, shown)? == FORMAT {
        return Ok(());
    }
    let migrated = |connection: &mut Connection| -> Result<(), Fault> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Checked again with the lock: another process may have migrated the file in the meantime.
        let found = format_of(&transaction, shown).map_err(Fault::Format)?;
        for (number, step) in (1_u32..).zip(MIGRATIONS).skip(found as usize) {
            transaction.execute_batch(step)?;
            if number == PARTS {
                pack_events(&transaction)?;
            }
        }
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        Ok(transaction.commit()?)
    };
    migrated(connection).map_err(|fault| match fault {
        Fault::Format(error) => error,
        Fault::Database(source) => ArchiveError::of(shown, source),
    })
}

/// Why a migration failed.
enum Fault {
    Format(ArchiveError),
    Database(DatabaseFault),
}

impl<E: Into<DatabaseFault>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

/// Makes parts of the events of earlier formats, whose tables are then dropped.
fn pack_events(transaction: &Transaction<'_>) -> Result<(), DatabaseFault> {
    let mut runs = transaction.prepare("SELECT number FROM run ORDER BY number")?;
    let runs = runs.query_map([], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut events =
        transaction.prepare("SELECT seq, at_ns, host, body FROM event WHERE run = ?1 ORDER BY seq")?;
    let mut insert = transaction.prepare("INSERT INTO log_part VALUES (?1, ?2, ?3, ?4)")?;
    for run in runs {
        let mut bytes = 0;
        let mut store = |part: &LogPart| -> Result<(), DatabaseFault> {
            let content = part.compressed()?;
            bytes += content.len() as i64;
            insert.execute(params![run, part.first, part.last, content])?;
            Ok(())
        };
        let mut rows = events.query([run])?;
        let mut open: Option<LogPart> = None;
        while let Some(row) = rows.next()? {
            let at = Timestamp::from_ns(row.get::<_, i64>(1)? as u64);
            let next = LogPart::new(
                row.get(0)?,
                at,
                row.get(2)?,
                row.get_ref(3)?.as_str().map_err(|error| DatabaseFault::Content(error.to_string()))?,
            );
            match &mut open {
                None => open = Some(next),
                Some(part) => {
                    if let Some(next) = part.append(next) {
                        store(part)?;
                        open = Some(next);
                    }
                }
            }
        }
        if let Some(part) = &open {
            store(part)?;
        }
        transaction.execute("UPDATE run SET bytes = ?2 WHERE number = ?1", params![run, bytes])?;
    }
    Ok(transaction.execute_batch("DROP TABLE event; DROP TABLE summary")?)
}

/// Whether the file is an archive of the newest format.
pub(crate) fn is_current(connection: &Connection, shown: &str) -> Result<bool, ArchiveError> {
    format_of(connection, shown).map(|format| format == FORMAT)
}

/// The number of migrations applied to the file.
fn format_of(connection: &Connection, shown: &str) -> Result<u32, ArchiveError> {
    let fail = |source: rusqlite::Error| ArchiveError::of(shown, source.into());
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(fail);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let empty = connection.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(fail)? == 0;
    if empty {
        return Ok(0);
    }
    if pragma("application_id")? != i64::from(APPLICATION) {
        return Err(ArchiveError::Foreign { archive: shown.to_owned() });
    }
    let found = pragma("user_version")? as u32;
    if found > FORMAT {
        return Err(ArchiveError::Newer { archive: shown.to_owned(), found, known: FORMAT });
    }
    Ok(found)
}
