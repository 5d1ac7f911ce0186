//! The calendar of a fleet, in the database of the archive.
//!
//! Its tables are created when a calendar is opened for the first time, so archives without a fleet have none.

mod agents;
mod inventory;
mod lease;
mod pages;
mod result_parts;
mod rows;
mod runs;
mod schedules;
mod silent;

use crate::database::Database;
use crate::error::DatabaseFault;
use crate::value::{DatabaseRow, Value};
use crate::{Archive, ArchiveError};
use rows::RowError;

pub use agents::{AgentRemoval, HandedCalendar};
pub use lease::Lease;
pub use pages::NewestRun;
pub use result_parts::ResultParts;
pub use runs::{LastAttempt, RunFilter};
pub use schedules::DueLimits;

/// How often a transaction is tried again that met another one.
const MAX_TRIES: u32 = 10;

/// Names that one statement looks for at most.
const NAMES_AT_ONCE: usize = 500;

/// The format of the tables of a calendar.
const FORMAT: i64 = 3;

/// A calendar in the database of an archive. Any number of programs may use it at the same time.
#[derive(Debug)]
pub struct Calendar {
    database: Database,
}

/// Why a calendar could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarError {
    /// The archive cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A later version wrote the calendar.
    #[error(
        "the calendar in {archive} has format {found}, and this version reads format {FORMAT}; use a newer linerate"
    )]
    Newer {
        /// The archive.
        archive: String,
        /// Its format.
        found: i64,
    },
    /// Another booking has a part of the time. Booking again finds another time.
    #[error("another run was booked at the same moment; try again")]
    Conflict,
    /// Another coordinator has taken over.
    #[error("another coordinator has taken over the calendar (epoch {found}, this one has {own})")]
    Superseded {
        /// The epoch of the caller.
        own: u64,
        /// The present epoch.
        found: u64,
    },
    /// Two agents have one key.
    #[error("the key is that of the agent '{0}' already; every agent needs a key of its own")]
    KeyTaken(String),
    /// What a row says cannot be read.
    #[error(
        "the calendar has an entry that this version cannot read ({0}); use a newer linerate, or remove it"
    )]
    Content(String),
}

/// What can be read and written within one transaction.
#[derive(Debug)]
pub struct CalendarTransaction<'d> {
    database: &'d mut Database,
}

impl Calendar {
    /// Opens the calendar in the archive at `location`, as [`crate::open`] does, and creates its tables if they are
    /// missing.
    ///
    /// # Errors
    /// The archive or the calendar cannot be used.
    pub fn open(location: &str) -> Result<Self, CalendarError> {
        Self::of(crate::open(location)?)
    }

    /// The calendar in the database of an archive.
    ///
    /// # Errors
    /// The calendar cannot be used.
    pub fn of(archive: Archive) -> Result<Self, CalendarError> {
        let mut calendar = Self { database: archive.into_database() };
        calendar.create_tables()?;
        Ok(calendar)
    }

    /// The calendar in the database of an archive, if it has one. Nothing is written, unless an earlier version created
    /// it.
    ///
    /// # Errors
    /// The calendar cannot be used.
    pub fn existing(archive: Archive) -> Result<Option<Self>, CalendarError> {
        let mut calendar = Self { database: archive.into_database() };
        match calendar.format()? {
            None => Ok(None),
            Some(FORMAT) => Ok(Some(calendar)),
            Some(found) if found > FORMAT => {
                Err(CalendarError::Newer { archive: calendar.shown().to_owned(), found })
            }
            // One of an earlier version is a calendar all the same, and has to be brought up to date to be read.
            Some(_) => {
                calendar.create_tables()?;
                Ok(Some(calendar))
            }
        }
    }

    /// The location of the archive, as messages show it.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.database.shown()
    }

    fn create_tables(&mut self) -> Result<(), CalendarError> {
        let found = self.format()?;
        if found == Some(FORMAT) {
            return Ok(());
        }
        let shown = self.database.shown().to_owned();
        let fail = |fault| CalendarError::Archive(ArchiveError::of(&shown, fault));
        if let Some(found) = found.filter(|found| *found > FORMAT) {
            return Err(CalendarError::Newer { archive: shown, found });
        }
        let migrated = self.database.write(|database| {
            database.lock_migrations()?;
            // Read again with the lock: another process may have created them in the meantime.
            (format_of(database)?.unwrap_or(0)..FORMAT).try_for_each(|found| database.migrate_calendar(found))
        });
        migrated.map_err(fail)
    }

    fn format(&mut self) -> Result<Option<i64>, CalendarError> {
        let shown = self.database.shown().to_owned();
        format_of(&mut self.database).map_err(|fault| ArchiveError::of(&shown, fault).into())
    }

    /// Carries out `work` in one transaction that writes. It is tried again if another program wrote at the same
    /// moment, so `work` may be called several times.
    ///
    /// # Errors
    /// Those of `work`, after which nothing was written, or of the database.
    pub fn write<T>(
        &mut self,
        mut work: impl FnMut(&mut CalendarTransaction<'_>) -> Result<T, CalendarError>,
    ) -> Result<T, CalendarError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.write_once(&mut work) {
                Err(CalendarError::Conflict) if tries < MAX_TRIES => {}
                Err(CalendarError::Archive(error)) if tries < MAX_TRIES && error.is_locked() => {}
                result => return result,
            }
        }
    }

    fn write_once<T>(
        &mut self,
        work: &mut impl FnMut(&mut CalendarTransaction<'_>) -> Result<T, CalendarError>,
    ) -> Result<T, CalendarError> {
        let mut failed = None;
        let done = self.database.write(|database| {
            let worked = work(&mut CalendarTransaction { database });
            worked.map_err(|error| {
                failed = Some(error);
                DatabaseFault::Content(String::new())
            })
        });
        match (done, failed) {
            (_, Some(error)) => Err(error),
            (Ok(value), None) => Ok(value),
            (Err(fault), None) => Err(self.error(fault)),
        }
    }

    /// Reads the calendar as it is at one moment.
    ///
    /// # Errors
    /// Those of `work`, or of the database.
    pub fn read<T>(
        &mut self,
        work: impl FnOnce(&mut CalendarTransaction<'_>) -> Result<T, CalendarError>,
    ) -> Result<T, CalendarError> {
        self.database.begin_reading().map_err(|fault| self.error(fault))?;
        let done = work(&mut CalendarTransaction { database: &mut self.database });
        let ended = self.database.end("ROLLBACK");
        let value = done?;
        ended.map_err(|fault| self.error(fault))?;
        Ok(value)
    }

    fn error(&self, fault: DatabaseFault) -> CalendarError {
        calendar_error(self.database.shown(), fault)
    }
}

/// The format of the calendar in a database; absent if it has none.
fn format_of(database: &mut Database) -> Result<Option<i64>, DatabaseFault> {
    if !database.has_table("fleet_calendar")? {
        return Ok(None);
    }
    let mut rows = database.query("SELECT max(format) FROM fleet_calendar", &[])?;
    rows.first_mut().map(|row| row.integer(0)).transpose()
}

/// `?3, ?4` for two names from the third parameter on.
fn names(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count).map(|number| format!("?{number}")).collect();
    places.join(", ")
}

fn calendar_error(shown: &str, fault: DatabaseFault) -> CalendarError {
    if fault.is_double_booking() { CalendarError::Conflict } else { ArchiveError::of(shown, fault).into() }
}

impl CalendarTransaction<'_> {
    fn fail(&self, fault: DatabaseFault) -> CalendarError {
        calendar_error(self.database.shown(), fault)
    }

    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<DatabaseRow>, CalendarError> {
        self.database.query(sql, parameters).map_err(|fault| self.fail(fault))
    }

    fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, CalendarError> {
        self.database.execute(sql, parameters).map_err(|fault| self.fail(fault))
    }

    /// The rows of a query, each made into a value.
    fn list<T>(
        &mut self,
        sql: &str,
        parameters: &[Value],
        of: impl Fn(&mut DatabaseRow) -> Result<T, RowError>,
    ) -> Result<Vec<T>, CalendarError> {
        let mut rows = self.query(sql, parameters)?;
        rows.iter_mut()
            .map(|row| {
                of(row).map_err(|error| match error {
                    RowError::Database(fault) => self.fail(fault),
                    RowError::Content(text) => CalendarError::Content(text),
                })
            })
            .collect()
    }

    /// The first row of a query, made into a value.
    fn first<T>(
        &mut self,
        sql: &str,
        parameters: &[Value],
        of: impl Fn(&mut DatabaseRow) -> Result<T, RowError>,
    ) -> Result<Option<T>, CalendarError> {
        Ok(self.list(sql, parameters, of)?.into_iter().next())
    }
}
