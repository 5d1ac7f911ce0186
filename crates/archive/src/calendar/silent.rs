//! What was due at agents that are not heard.

use linerate_model::calendar::{AlarmKind, CalendarRun, ScheduleState, UnixTime};
use linerate_units::Span;

use super::rows::{self, RUN_COLUMNS, value_of};
use super::runs::RUNS;
use super::schedules::SCHEDULE_COLUMNS;
use super::{CalendarError, CalendarTransaction};

/// The longest from when a run is due until it is over: it may begin a week later.
pub(super) const LONGEST_DELAY: Span = Span::from_secs(8 * 24 * 3600);

impl CalendarTransaction<'_> {
    /// The schedules from hosts whose agents were not heard since a time, by name: not those that are paused, and not those
    /// that have an alarm of this kind already.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedules_of_silent_agents(
        &mut self,
        silent_before: UnixTime,
        without: AlarmKind,
    ) -> Result<Vec<ScheduleState>, CalendarError> {
        // One that was never heard is silent since it was enrolled.
        let silent = format!(
            "SELECT {SCHEDULE_COLUMNS} FROM fleet_schedule s WHERE paused = 0
             AND EXISTS (SELECT 1 FROM fleet_agent a WHERE a.name = s.from_host AND a.revoked IS NULL
                 AND coalesce(a.seen, a.enrolled) < ?1)
             AND NOT EXISTS (SELECT 1 FROM fleet_alarm m WHERE m.schedule = s.name AND m.kind = ?2
                 AND m.cleared IS NULL)
             ORDER BY name"
        );
        self.list(&silent, &[value_of(silent_before), without.name().into()], rows::schedule)
    }

    /// The first run of a schedule whose time has ended between two moments and whose end nobody has told, or that was not
    /// booked.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn first_unreported(
        &mut self,
        schedule: &str,
        (since, now): (UnixTime, UnixTime),
    ) -> Result<Option<CalendarRun>, CalendarError> {
        // The index is by the time at which runs were due.
        let first = format!(
            "SELECT {RUN_COLUMNS} FROM {RUNS} WHERE r.schedule = ?1 AND r.due > ?2 AND r.ends > ?3 AND r.ends < ?4
             AND r.state IN ('booked', 'running', 'not_booked') ORDER BY r.due, r.attempt LIMIT 1"
        );
        let oldest = since.before(LONGEST_DELAY);
        let values = [schedule.into(), value_of(oldest), value_of(since), value_of(now)];
        self.first(&first, &values, rows::run)
    }
}
