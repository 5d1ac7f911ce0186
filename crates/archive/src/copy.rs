//! Copies of archives: a backup into a file, and all runs into another archive.

use std::path::Path;

use crate::archive::{Archive, places};
use crate::database::Database;
use crate::error::DatabaseFault;
use crate::log::log_of;
use crate::value::{DatabaseRow, Value};
use crate::{ArchiveError, EventStore};

/// Columns of a run that a copy has. Its number is that of its place in the new archive.
const COLUMNS: &str =
    "id, started_at, target, world, linerate, outcome, event_count, derived_at, kind, part_of,
                       foreign_client, bytes, name, small_parts";
/// Number of [`COLUMNS`].
const COLUMN_COUNT: usize = 14;
/// What belongs to a run: the tables, and their columns besides its number.
const TABLES: [(&str, &str, usize); 3] = [
    ("log_part", "first_seq, last_seq, content", 3),
    ("flow", "flow, name, direction, transport, bitrate_bps, cause", 6),
    ("tag", "tag", 1),
];

/// A copied run: its columns, and the rows of each table of [`TABLES`].
struct CopiedRun {
    id: String,
    columns: Vec<Value>,
    rows: Vec<Vec<DatabaseRow>>,
}

impl Archive {
    /// Copies the archive as it is at this moment into a new SQLite file. Others may use it meanwhile.
    ///
    /// # Errors
    /// If `path` exists or cannot be written, or the archive cannot be read.
    pub fn backup(&self, path: &Path) -> Result<(), ArchiveError> {
        if path.exists() {
            return Err(ArchiveError::Exists { path: path.to_owned() });
        }
        let copied = self.read(|database| database.copy_to(path))?;
        if !copied {
            let mut copy = Self::open(path)?;
            // In one transaction that sees the archive as it was at its start.
            self.database_at_one_moment(|source| copy.take_runs(source))?;
        }
        Ok(())
    }

    /// Copies the runs that `target` does not have into it, and the events that it lacks of the others; the number of
    /// new runs.
    ///
    /// # Errors
    /// If this archive cannot be read or `target` not be written. The runs until then are copied.
    pub fn copy_to(&self, target: &mut Self) -> Result<u64, ArchiveError> {
        self.database_at_one_moment(|source| target.take_runs(source))
    }

    /// Takes the runs of another archive; the number of new ones.
    fn take_runs(&mut self, source: &mut CopySource<'_>) -> Result<u64, ArchiveError> {
        let mut new = 0;
        for number in source.numbers()? {
            let run = source.run(number)?;
            if self.contains(&run.id)? {
                let log = source.log(number, &run.id)?;
                self.append(&log)?;
                continue;
            }
            self.write(|database| insert(database, &run))?;
            new += 1;
        }
        Ok(new)
    }

    fn database_at_one_moment<T>(
        &self,
        work: impl FnOnce(&mut CopySource<'_>) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let mut database = self.database();
        let shown = self.shown();
        database.begin_reading().map_err(|fault| ArchiveError::of(shown, fault))?;
        let done = work(&mut CopySource { database: &mut database, shown });
        // Nothing was written.
        let _ = database.end("ROLLBACK");
        done
    }
}

/// An archive that is copied.
struct CopySource<'a> {
    database: &'a mut Database,
    shown: &'a str,
}

impl CopySource<'_> {
    fn read<T>(
        &mut self,
        work: impl FnOnce(&mut Database) -> Result<T, DatabaseFault>,
    ) -> Result<T, ArchiveError> {
        work(self.database).map_err(|fault| ArchiveError::of(self.shown, fault))
    }

    /// The numbers of all runs, oldest first.
    fn numbers(&mut self) -> Result<Vec<i64>, ArchiveError> {
        self.read(|database| {
            let rows = database.query("SELECT number FROM run ORDER BY number", &[])?;
            rows.into_iter().map(|mut row| row.integer(0)).collect()
        })
    }

    fn run(&mut self, number: i64) -> Result<CopiedRun, ArchiveError> {
        self.read(|database| {
            let select = format!("SELECT {COLUMNS} FROM run WHERE number = ?1");
            let columns = database.query(&select, &[number.into()])?.pop().map_or_else(Vec::new, |row| row.0);
            let Some(Value::Text(id)) = columns.first() else {
                return Err(DatabaseFault::Content("a run has no id".to_owned()));
            };
            let id = id.clone();
            let rows = TABLES.map(|(table, columns, _)| {
                database.query(&format!("SELECT {columns} FROM {table} WHERE run = ?1"), &[number.into()])
            });
            Ok(CopiedRun { id, columns, rows: rows.into_iter().collect::<Result<_, _>>()? })
        })
    }

    fn log(&mut self, number: i64, id: &str) -> Result<Vec<linerate_model::Event>, ArchiveError> {
        self.read(|database| log_of(database, number, &id.into()))
    }
}

/// Adds a run that the archive does not have.
fn insert(database: &mut Database, run: &CopiedRun) -> Result<(), DatabaseFault> {
    let insert = format!("INSERT INTO run ({COLUMNS}) VALUES ({}) RETURNING number", places(COLUMN_COUNT));
    let number = match database.query(&insert, &run.columns)?.first_mut() {
        Some(row) => row.integer(0)?,
        None => return Ok(()),
    };
    for ((table, columns, count), rows) in TABLES.iter().zip(&run.rows) {
        let insert = format!("INSERT INTO {table} (run, {columns}) VALUES ({})", places(count + 1));
        for row in rows {
            database.execute(&insert, &[&[number.into()], &row.0[..]].concat())?;
        }
    }
    Ok(())
}
