//! Parts of a calendar that may have any number of schedules.

use std::collections::BTreeMap;

use linerate_model::ForeignText;
use linerate_model::calendar::{CalendarRun, CalendarRunState, ScheduleState, UnixTime};

use super::rows::{self, RUN_COLUMNS, optional_time, value_of};
use super::runs::RUNS;
use super::schedules::SCHEDULE_COLUMNS;
use super::silent::LONGEST_DELAY;
use super::{CalendarError, CalendarTransaction, NAMES_AT_ONCE, names};
use crate::value::Value;

/// What the newest run of a schedule shows of its hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestRun {
    /// The host that is the client.
    pub from: String,
    /// The host that is the server.
    pub to: String,
    /// `Running`, `Finished` or `Failed`.
    pub state: CalendarRunState,
    /// When it ended.
    pub ended: Option<UnixTime>,
    /// Why it has no result.
    pub reason: ForeignText,
}

impl CalendarTransaction<'_> {
    /// How many schedules there are, and how many of them are paused.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedule_counts(&mut self) -> Result<(u64, u64), CalendarError> {
        let counts = "SELECT count(*), count(CASE WHEN paused <> 0 THEN 1 END) FROM fleet_schedule";
        let counts = self.first(counts, &[], |row| Ok((rows::number(row, 0)?, rows::number(row, 1)?)))?;
        Ok(counts.unwrap_or_default())
    }

    /// The newest run of each schedule that was made and ended after a time, or is active. One whose time is over and that
    /// nobody has ended says nothing yet.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn newest_runs(&mut self, since: UnixTime, now: UnixTime) -> Result<Vec<NewestRun>, CalendarError> {
        // One look at the index for each schedule, without what was measured: a fleet has many runs a day.
        let newest = "SELECT r.from_host, r.to_host, r.state, coalesce(r.ended, -1), r.reason
             FROM fleet_schedule h JOIN fleet_run r ON r.id =
                 (SELECT m.id FROM fleet_run m WHERE m.schedule = h.name AND m.due > ?1 AND m.ends > ?2
                      AND (m.state IN ('finished', 'failed') OR m.state = 'running' AND m.ends > ?3)
                  ORDER BY m.due DESC, m.attempt DESC LIMIT 1)";
        let values = [value_of(since.before(LONGEST_DELAY)), value_of(since), value_of(now)];
        self.list(newest, &values, |row| {
            Ok(NewestRun {
                from: row.text(0)?,
                to: row.text(1)?,
                state: rows::named(row, 2, CalendarRunState::named)?,
                ended: optional_time(row, 3)?,
                reason: row.text(4)?.into(),
            })
        })
    }

    /// The first schedules after the one with this name, or of all, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedules_after(
        &mut self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ScheduleState>, CalendarError> {
        let page =
            format!("SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule WHERE name > ?1 ORDER BY name LIMIT ?2");
        self.list(&page, &[after.unwrap_or_default().into(), i64::from(limit).into()], rows::schedule)
    }

    /// The first schedules that belong to no mesh, by name, and how many there are.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedules_without_mesh(&mut self, limit: u32) -> Result<(Vec<ScheduleState>, u64), CalendarError> {
        let count = "SELECT count(*) FROM fleet_schedule WHERE mesh IS NULL";
        let count = self.first(count, &[], |row| rows::number(row, 0))?.unwrap_or(0);
        let first = format!(
            "SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule WHERE mesh IS NULL ORDER BY name LIMIT ?1"
        );
        Ok((self.list(&first, &[i64::from(limit).into()], rows::schedule)?, count))
    }

    /// When each of these schedules is due next, of those that are.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn next_due(&mut self, schedules: &[&str]) -> Result<BTreeMap<String, UnixTime>, CalendarError> {
        let mut all = BTreeMap::new();
        for group in schedules.chunks(NAMES_AT_ONCE) {
            let due = format!(
                "SELECT name, coalesce(next_due, -1) FROM fleet_schedule WHERE name IN ({})",
                names(1, group.len())
            );
            let group: Vec<Value> = group.iter().map(|name| Value::from(*name)).collect();
            let due = self.list(&due, &group, |row| Ok((row.text(0)?, optional_time(row, 1)?)))?;
            all.extend(due.into_iter().filter_map(|(name, due)| Some((name, due?))));
        }
        Ok(all)
    }

    /// The run of each of these schedules that comes next, or that is active if those count, of those that have one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn next_runs(
        &mut self,
        schedules: &[&str],
        with_active: bool,
        now: UnixTime,
    ) -> Result<Vec<CalendarRun>, CalendarError> {
        let states = if with_active { "'booked', 'running'" } else { "'booked'" };
        // One whose time is over and whose end is not known does not come next.
        let which = format!("m.state IN ({states}) AND m.due > ?1 AND m.ends > ?2 ORDER BY m.due, m.attempt");
        let times = [value_of(now.before(LONGEST_DELAY)), value_of(now)];
        self.one_run_of_each(schedules, &which, &times)
    }

    /// The newest run of each of these schedules that was made, or should have been: not one that a user cancelled or that
    /// found no time.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn last_runs(
        &mut self,
        schedules: &[&str],
        with_result: bool,
    ) -> Result<Vec<CalendarRun>, CalendarError> {
        let which =
            if with_result { "m.result IS NOT NULL" } else { "m.state IN ('finished', 'failed', 'missed')" };
        self.one_run_of_each(schedules, &format!("{which} ORDER BY m.due DESC, m.attempt DESC"), &[])
    }

    fn one_run_of_each(
        &mut self,
        schedules: &[&str],
        which: &str,
        values: &[Value],
    ) -> Result<Vec<CalendarRun>, CalendarError> {
        let mut all = Vec::new();
        for group in schedules.chunks(NAMES_AT_ONCE) {
            // One look at the index for each schedule: it may have years of runs.
            let one = format!(
                "SELECT {RUN_COLUMNS} FROM {RUNS} JOIN fleet_schedule h ON r.id =
                     (SELECT m.id FROM fleet_run m WHERE m.schedule = h.name AND {which} LIMIT 1)
                 WHERE h.name IN ({})",
                names(values.len() + 1, group.len())
            );
            let mut parameters = values.to_vec();
            parameters.extend(group.iter().map(|name| Value::from(*name)));
            all.extend(self.list(&one, &parameters, rows::run)?);
        }
        Ok(all)
    }
}
