//! The lease of the coordinator that leads, and the epoch that fences off those that led before.

use linerate_model::calendar::UnixTime;
use linerate_units::Span;

use super::rows::{self, optional_time, value_of};
use super::{Calendar, CalendarError, CalendarTransaction};
use crate::value::DatabaseRow;

/// Name of the lease of the coordinator.
const COORDINATOR: &str = "coordinator";

/// How much later than a new one a lease may end.
const MOST_AHEAD: Span = Span::from_secs(60);

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The coordinator that has it.
    pub holder: String,
    /// How often the holder changed.
    pub epoch: u64,
    /// When it ends, unless it is renewed before.
    pub until: UnixTime,
}

impl Calendar {
    /// What the clock of the database's server says, which all coordinators have in common; absent if there is no server.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn server_clock(&mut self) -> Result<Option<UnixTime>, CalendarError> {
        let Some(query) = self.database.clock_query() else { return Ok(None) };
        CalendarTransaction { database: &mut self.database }.first(query, &[], |row| rows::time(row, 0))
    }
}

impl CalendarTransaction<'_> {
    /// The lease of the coordinator, also one that has ended.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn lease(&mut self) -> Result<Option<Lease>, CalendarError> {
        self.first(
            "SELECT holder, epoch, until FROM fleet_lease WHERE name = ?1",
            &[COORDINATOR.into()],
            lease,
        )
    }

    /// Takes the lease of the coordinator until `until` if `holder` had it last or nobody has it now. One that ends much
    /// later is of a host whose clock was ahead, and counts as nobody's. Its epoch rises when the holder changes. Returns the
    /// lease as it is then, which may be that of another. A lease from before the one that the holder has `seen` last, or on
    /// another timeline, is that of a copy of the database: a loss is noted.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn acquire_lease(
        &mut self,
        holder: &str,
        now: UnixTime,
        until: UnixTime,
        seen: Option<&Lease>,
    ) -> Result<Lease, CalendarError> {
        // One statement, so that two coordinators cannot both find the lease free.
        let timeline = self.database.timeline();
        let before = self.first(
            &format!("SELECT holder, epoch, until, timeline, {timeline} FROM fleet_lease WHERE name = ?1"),
            &[COORDINATOR.into()],
            |row| {
                let (known, present) = (row.text(3)?, row.text(4)?);
                Ok((lease(row)?, !known.is_empty() && known != present))
            },
        )?;
        let take = format!(
            "INSERT INTO fleet_lease (name, holder, epoch, until, timeline) VALUES (?1, ?2, 1, ?3, {timeline})
             ON CONFLICT (name) DO UPDATE SET
                 epoch = CASE WHEN fleet_lease.holder = excluded.holder AND fleet_lease.timeline = excluded.timeline
                              THEN fleet_lease.epoch ELSE fleet_lease.epoch + 1 END,
                 holder = excluded.holder,
                 until = excluded.until,
                 timeline = excluded.timeline
             WHERE fleet_lease.holder = excluded.holder OR fleet_lease.until <= ?4 OR fleet_lease.until > ?5"
        );
        let latest = value_of(until.after(MOST_AHEAD));
        let row = [COORDINATOR.into(), holder.into(), value_of(until), value_of(now), latest];
        let taken = self.execute(&take, &row)? > 0;
        let is_earlier = seen.is_some_and(|seen| {
            before.as_ref().is_none_or(|(found, _)| is_earlier(found, seen, holder, until))
        });
        if is_earlier || taken && before.is_some_and(|(_, has_other_timeline)| has_other_timeline) {
            // A copy of the database that took over may lack what was written last.
            self.note_loss(now)?;
            if let Some(seen) = seen {
                self.raise_epoch(seen.epoch)?;
            }
        }
        let found = self.lease()?;
        found.ok_or_else(|| CalendarError::Content("no lease".to_owned()))
    }

    /// Makes the epoch of the lease higher than `above`, the epoch of a calendar that the database has lost.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn raise_epoch(&mut self, above: u64) -> Result<(), CalendarError> {
        let raise = "UPDATE fleet_lease SET epoch = ?2 + 1 WHERE name = ?1 AND epoch <= ?2";
        self.execute(raise, &[COORDINATOR.into(), (above as i64).into()]).map(drop)
    }

    /// Ends the lease of a coordinator that stops, so that another one can lead at once.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn release_lease(&mut self, epoch: u64) -> Result<(), CalendarError> {
        let end = "UPDATE fleet_lease SET until = 0 WHERE name = ?1 AND epoch = ?2";
        self.execute(end, &[COORDINATOR.into(), (epoch as i64).into()]).map(drop)
    }

    /// Checks, and makes sure until the end of the transaction, that no other coordinator has taken over, and no other copy
    /// of the database.
    ///
    /// # Errors
    /// [`CalendarError::Superseded`], or the calendar cannot be read.
    pub fn check_epoch(&mut self, own: u64) -> Result<(), CalendarError> {
        // Writing the row makes a coordinator that takes over wait for the end of this transaction.
        let touch = format!(
            "UPDATE fleet_lease SET epoch = epoch WHERE name = ?1 AND epoch = ?2 AND timeline = {}",
            self.database.timeline()
        );
        if self.execute(&touch, &[COORDINATOR.into(), (own as i64).into()])? == 1 {
            return Ok(());
        }
        let found = self.lease()?.map_or(0, |lease| lease.epoch);
        Err(CalendarError::Superseded { own, found })
    }

    /// Makes this transaction wait for one of a coordinator, and the other way round: what a user changes is not overwritten
    /// by a coordinator that has read it before.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn lock(&mut self) -> Result<(), CalendarError> {
        self.execute("UPDATE fleet_lease SET epoch = epoch WHERE name = ?1", &[COORDINATOR.into()]).map(drop)
    }

    /// When the newest run began or ended; absent if none did.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn last_activity(&mut self) -> Result<Option<UnixTime>, CalendarError> {
        let newest = "SELECT coalesce(max(coalesce(ended, begun)), -1) FROM fleet_run";
        Ok(self.first(newest, &[], |row| optional_time(row, 0))?.flatten())
    }
}

fn lease(row: &mut DatabaseRow) -> Result<Lease, rows::RowError> {
    let holder = row.text(0)?;
    Ok(Lease { holder, epoch: rows::number(row, 1)?, until: rows::time(row, 2)? })
}

/// Whether a lease that was found is from before one that `holder` has seen. Epochs only rise; the end of its own lease only
/// moves on, unless its clock was set back.
fn is_earlier(found: &Lease, seen: &Lease, holder: &str, until: UnixTime) -> bool {
    let is_own = found.holder == holder && seen.holder == holder && found.epoch == seen.epoch;
    found.epoch < seen.epoch || (is_own && found.until < seen.until && seen.until <= until)
}
