//! The database of an archive: SQLite or PostgreSQL, with the statements that both understand.

use std::path::Path;

use crate::error::DatabaseFault;
use crate::sqlite::SqliteDatabase;
use crate::value::{DatabaseRow, Value};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresDatabase;

/// A connection to a database.
///
/// Statements are written for both: parameters are `?1`, `?2`, …, every integer has 64 bits, and truth values are
/// read as integers.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite(SqliteDatabase),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresDatabase>),
}

impl Database {
    /// The location, as messages show it.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Sqlite(database) => database.shown(),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.shown(),
        }
    }

    /// The rows that a statement returns.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Vec<DatabaseRow>, DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.query(sql, parameters),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.query(sql, parameters),
        }
    }

    /// Carries out a statement that returns no rows; the number of rows that it changed.
    pub(crate) fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.execute(sql, parameters),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.execute(sql, parameters),
        }
    }

    /// Executes `work` in one transaction that holds the lock for writers from its start, so that it cannot fail for
    /// lack of the lock later.
    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DatabaseFault>,
    ) -> Result<T, DatabaseFault> {
        let _turn = match self {
            Self::Sqlite(_) => Some(SqliteDatabase::turn()),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
        };
        self.begin()?;
        let done = work(self).and_then(|value| self.end("COMMIT").map(|()| value));
        if done.is_err() {
            // Fails if the database has ended the transaction itself.
            let _ = self.end("ROLLBACK");
        }
        done
    }

    fn begin(&mut self) -> Result<(), DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.begin(),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.begin("BEGIN"),
        }
    }

    /// Begins a transaction that sees the database as it is now, and writes nothing.
    pub(crate) fn begin_reading(&mut self) -> Result<(), DatabaseFault> {
        match self {
            // The first statement that reads fixes what the transaction sees.
            Self::Sqlite(database) => database.statement("BEGIN"),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.begin("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        }
    }

    /// Copies the database into a new SQLite file at `path`; `false` if it cannot do that in one statement.
    pub(crate) fn copy_to(&mut self, path: &Path) -> Result<bool, DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.copy_to(path).map(|()| true),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(false),
        }
    }

    /// Ends the transaction with `COMMIT` or `ROLLBACK`.
    pub(crate) fn end(&mut self, sql: &str) -> Result<(), DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.statement(sql),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.end(sql),
        }
    }

    /// The query for the clock of its server, in milliseconds since 1970; absent if it has none of its own.
    pub(crate) fn clock_query(&self) -> Option<&'static str> {
        match self {
            Self::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Some("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"),
        }
    }

    /// Makes other programs wait that create tables, until the end of the transaction.
    pub(crate) fn lock_migrations(&mut self) -> Result<(), DatabaseFault> {
        match self {
            // The lock for writers does that.
            Self::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.statement(crate::migrate::postgres::LOCK),
        }
    }

    /// Whether there is a table with this name.
    pub(crate) fn has_table(&mut self, name: &str) -> Result<bool, DatabaseFault> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {
                "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ?1"
            }
        };
        let mut rows = self.query(sql, &[name.into()])?;
        rows.first_mut().map_or(Ok(false), |row| Ok(row.integer(0)? > 0))
    }

    /// Brings the tables of a calendar from one format to the next; format 0 has none.
    pub(crate) fn migrate_calendar(&mut self, found: i64) -> Result<(), DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.statement(match found {
                0 => include_str!("../schema/calendar/sqlite.sql"),
                1 => include_str!("../schema/calendar/sqlite_agents.sql"),
                _ => include_str!("../schema/calendar/sqlite_long_specs.sql"),
            }),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.statement(match found {
                0 => include_str!("../schema/calendar/postgres.sql"),
                1 => include_str!("../schema/calendar/postgres_agents.sql"),
                _ => include_str!("../schema/calendar/postgres_long_specs.sql"),
            }),
        }
    }

    /// What changes when another copy of the database takes over, as an expression: the timeline of the server.
    pub(crate) fn timeline(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "''",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)",
        }
    }

    /// Gives the space of removed runs back to the disk.
    pub(crate) fn vacuum(&mut self) -> Result<(), DatabaseFault> {
        match self {
            Self::Sqlite(database) => database.vacuum(),
            #[cfg(feature = "postgres")]
            Self::Postgres(database) => database.vacuum(),
        }
    }

    /// The bytes that the database uses on its disk.
    pub(crate) fn size(&mut self) -> Result<u64, DatabaseFault> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {
                "SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c
                 WHERE c.relname IN ('run', 'log_part', 'flow', 'tag') AND c.relnamespace = current_schema()::regnamespace"
            }
        };
        let mut rows = self.query(sql, &[])?;
        rows.first_mut().map_or(Ok(0), |row| row.integer(0)).map(i64::unsigned_abs)
    }
}
