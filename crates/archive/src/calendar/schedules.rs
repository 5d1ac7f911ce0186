//! Schedules, and the alarms of their results.

use linerate_model::calendar::{Alarm, AlarmKind, Schedule, ScheduleState, UnixTime};

use super::rows::{self, RowError, value_of};
use super::{CalendarError, CalendarTransaction};
use crate::value::Value;

pub(super) const SCHEDULE_COLUMNS: &str = "content, paused, coalesce(next_due, -1)";
const ALARM_COLUMNS: &str = "schedule, mesh, from_host, to_host, kind, since, raised, coalesce(cleared, -1), text, first_run, second_run";

/// Until when schedules count as due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueLimits {
    /// Before this time.
    pub before: UnixTime,
    /// Before this time, those from hosts whose agents take no runs at present.
    pub soon: UnixTime,
    /// An agent that was not heard since then takes no runs.
    pub seen_after: UnixTime,
}

impl CalendarTransaction<'_> {
    /// All schedules, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedules(&mut self) -> Result<Vec<ScheduleState>, CalendarError> {
        let all = format!("SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule ORDER BY name");
        self.list(&all, &[], rows::schedule)
    }

    /// The schedule with this name, if there is one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedule(&mut self, name: &str) -> Result<Option<ScheduleState>, CalendarError> {
        let one = format!("SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule WHERE name = ?1");
        self.first(&one, &[name.into()], rows::schedule)
    }

    /// The schedules that are due and not paused, the first one first.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn due_schedules(
        &mut self,
        limits: &DueLimits,
        limit: u32,
    ) -> Result<Vec<ScheduleState>, CalendarError> {
        let due = format!(
            "SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule s WHERE paused = 0 AND next_due IS NOT NULL AND next_due < ?1
             AND (next_due < ?2 OR NOT EXISTS (SELECT 1 FROM fleet_agent a WHERE a.name = s.from_host
                 AND (a.revoked IS NOT NULL OR a.note <> '' OR coalesce(a.seen, 0) < ?3)))
             ORDER BY next_due, name LIMIT ?4"
        );
        let values = [
            value_of(limits.before),
            value_of(limits.soon),
            value_of(limits.seen_after),
            i64::from(limit).into(),
        ];
        self.list(&due, &values, rows::schedule)
    }

    /// Stores a schedule that is due next at `next_due`, in place of one with its name.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn put_schedule(
        &mut self,
        schedule: &Schedule,
        next_due: Option<UnixTime>,
    ) -> Result<(), CalendarError> {
        let content = rows::json(schedule).map_err(unwritable)?;
        let store = "INSERT INTO fleet_schedule (name, mesh, next_due, content, from_host) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (name) DO UPDATE SET mesh = excluded.mesh, next_due = excluded.next_due,
                 content = excluded.content, from_host = excluded.from_host";
        let row = [
            schedule.name.as_str().into(),
            schedule.mesh.as_deref().into(),
            next_due.map(UnixTime::as_ms).into(),
            content.into(),
            schedule.from.as_str().into(),
        ];
        self.execute(store, &row).map(drop)
    }

    /// Sets when a schedule is due next.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn set_next_due(&mut self, name: &str, next_due: Option<UnixTime>) -> Result<(), CalendarError> {
        let set = "UPDATE fleet_schedule SET next_due = ?2 WHERE name = ?1";
        self.execute(set, &[name.into(), next_due.map(UnixTime::as_ms).into()]).map(drop)
    }

    /// Pauses a schedule or resumes it, and sets when it is due next; false if there is none with this name.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn set_paused(
        &mut self,
        name: &str,
        paused: bool,
        next_due: Option<UnixTime>,
    ) -> Result<bool, CalendarError> {
        let set = "UPDATE fleet_schedule SET paused = ?2, next_due = ?3 WHERE name = ?1";
        let row = [name.into(), i64::from(paused).into(), next_due.map(UnixTime::as_ms).into()];
        self.execute(set, &row).map(|rows| rows > 0)
    }

    /// Removes a schedule and ends its alarms; false if there is none with this name. Its runs stay.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn remove_schedule(&mut self, name: &str, now: UnixTime) -> Result<bool, CalendarError> {
        let end = "UPDATE fleet_alarm SET cleared = ?2 WHERE schedule = ?1 AND cleared IS NULL";
        self.execute(end, &[name.into(), value_of(now)])?;
        self.execute("DELETE FROM fleet_schedule WHERE name = ?1", &[name.into()]).map(|rows| rows > 0)
    }

    /// The newest alarms, the last one first; `open` selects those that are not cleared.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn alarms(&mut self, open: bool, limit: u32) -> Result<Vec<Alarm>, CalendarError> {
        let which = if open { "WHERE cleared IS NULL" } else { "" };
        let all = format!(
            "SELECT {ALARM_COLUMNS} FROM fleet_alarm {which} ORDER BY raised DESC, number DESC LIMIT ?1"
        );
        self.list(&all, &[i64::from(limit).into()], rows::alarm)
    }

    /// The alarm of this kind that a schedule has now, if there is one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn open_alarms_of(&mut self, schedule: &str) -> Result<Vec<Alarm>, CalendarError> {
        let all = format!("SELECT {ALARM_COLUMNS} FROM fleet_alarm WHERE schedule = ?1 AND cleared IS NULL");
        self.list(&all, &[schedule.into()], rows::alarm)
    }

    /// Stores a new alarm; false if the schedule has one of this kind that is not cleared.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn raise_alarm(&mut self, alarm: &Alarm) -> Result<bool, CalendarError> {
        let store = "INSERT INTO fleet_alarm
             (schedule, mesh, from_host, to_host, kind, since, raised, text, first_run, second_run)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING";
        let row: [Value; 10] = [
            alarm.schedule.as_str().into(),
            alarm.mesh.clone().into(),
            alarm.from.as_str().into(),
            alarm.to.as_str().into(),
            alarm.kind.name().into(),
            value_of(alarm.since),
            value_of(alarm.raised),
            alarm.text.as_str().into(),
            alarm.first_run.as_str().into(),
            alarm.second_run.as_str().into(),
        ];
        self.execute(store, &row).map(|rows| rows > 0)
    }

    /// Ends the alarm of this kind of a schedule; false if it has none.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn clear_alarm(
        &mut self,
        schedule: &str,
        kind: AlarmKind,
        now: UnixTime,
    ) -> Result<bool, CalendarError> {
        let end = "UPDATE fleet_alarm SET cleared = ?3 WHERE schedule = ?1 AND kind = ?2 AND cleared IS NULL";
        self.execute(end, &[schedule.into(), kind.name().into(), value_of(now)]).map(|rows| rows > 0)
    }

    /// When the newest alarm of this kind of a schedule began; absent if it never had one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn last_alarm_since(
        &mut self,
        schedule: &str,
        kind: AlarmKind,
    ) -> Result<Option<UnixTime>, CalendarError> {
        let newest = "SELECT coalesce(max(since), -1) FROM fleet_alarm WHERE schedule = ?1 AND kind = ?2";
        let found =
            self.first(newest, &[schedule.into(), kind.name().into()], |row| rows::optional_time(row, 0))?;
        Ok(found.flatten())
    }
}

pub(super) fn unwritable(error: RowError) -> CalendarError {
    match error {
        RowError::Content(text) => CalendarError::Content(text),
        RowError::Database(fault) => CalendarError::Content(fault.to_string()),
    }
}
