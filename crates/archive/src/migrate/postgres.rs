//! Migrations of PostgreSQL databases.

use super::FORMAT;
use crate::ArchiveError;
use crate::error::DatabaseFault;
use crate::postgres::PostgresDatabase;

/// Migrations by the format that they lead to. The first one makes the tables of format 6, so that a number means the
/// same format in both databases.
const MIGRATIONS: [(u32, &str); 1] = [(FORMAT, include_str!("../../schema/postgres/0006_start.sql"))];
/// One process migrates at a time: the lock of a transaction with this number, the letters `lnrt`.
pub(crate) const LOCK: &str = "SELECT pg_advisory_xact_lock(1819177588)";

/// Migrates the database to the newest format.
pub(crate) fn migrate(database: &mut PostgresDatabase) -> Result<(), ArchiveError> {
    if format_of(database)? == FORMAT {
        return Ok(());
    }
    let shown = database.shown().to_owned();
    let fail = |fault: DatabaseFault| ArchiveError::of(&shown, fault);
    database.begin("BEGIN").map_err(fail)?;
    let migrated = database.statement(LOCK).map_err(fail).and_then(|()| {
        // Checked again with the lock: another process may have migrated the database in the meantime.
        let found = format_of(database)?;
        for (_, step) in MIGRATIONS.iter().filter(|(format, _)| *format > found) {
            database.statement(step).map_err(fail)?;
        }
        let number = format!("DELETE FROM linerate_archive; INSERT INTO linerate_archive VALUES ({FORMAT})");
        database.statement(&number).and_then(|()| database.end("COMMIT")).map_err(fail)
    });
    if migrated.is_err() {
        let _ = database.end("ROLLBACK");
    }
    migrated
}

/// The number of the last migration; 0 for a database without our tables.
fn format_of(database: &mut PostgresDatabase) -> Result<u32, ArchiveError> {
    let shown = database.shown().to_owned();
    let mut one = |sql: &str| {
        let rows = database.query(sql, &[]);
        let number = rows.and_then(|mut rows| rows.first_mut().map_or(Ok(0), |row| row.integer(0)));
        number.map_err(|fault| ArchiveError::of(&shown, fault))
    };
    // In one statement: another process may make the tables at this moment.
    let tables = "SELECT CASE WHEN to_regclass('linerate_archive') IS NOT NULL THEN -1 ELSE
                    (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
                     AND relname IN ('run', 'log_part', 'flow', 'tag')) END";
    match one(tables)? {
        -1 => {}
        0 => return Ok(0),
        // Tables of another program with the names of ours must not be touched.
        _ => return Err(ArchiveError::Foreign { archive: shown }),
    }
    let found = one("SELECT max(format) FROM linerate_archive")? as u32;
    if found > FORMAT {
        return Err(ArchiveError::Newer { archive: shown, found, known: FORMAT });
    }
    Ok(found)
}
