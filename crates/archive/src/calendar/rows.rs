//! Rows of the calendar as values.

use std::collections::BTreeMap;

use linerate_model::calendar::{
    Alarm, AlarmKind, CalendarRun, CalendarRunState, ResourceReservation, ScheduleState, UnixTime,
};
use linerate_units::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DatabaseFault;
use crate::value::{DatabaseRow, Value};

/// Why a row cannot be a value.
#[derive(Debug)]
pub(super) enum RowError {
    Database(DatabaseFault),
    Content(String),
}

impl From<DatabaseFault> for RowError {
    fn from(fault: DatabaseFault) -> Self {
        Self::Database(fault)
    }
}

/// The columns that [`run`] reads.
pub(super) const RUN_COLUMNS: &str =
    "r.id, r.schedule, r.mesh, r.from_host, r.to_host, s.content, r.confirms, r.due,
     r.attempt, r.latest, r.starts, r.ends, r.set_up, r.settle, r.priority, r.state, r.reason, r.epoch,
     coalesce(r.begun, -1), coalesce(r.ended, -1), r.result, r.handed";

/// The columns that [`reservation`] reads.
pub(super) const RESERVATION_COLUMNS: &str =
    "v.resource, v.first_unit, v.last_unit, v.starts, v.ends, v.run, r.schedule,
     r.priority, r.state, r.handed";

/// A value as it is stored.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, RowError> {
    serde_json::to_string(value).map_err(|error| RowError::Content(error.to_string()))
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, RowError> {
    serde_json::from_str(text).map_err(|error| RowError::Content(error.to_string()))
}

pub(super) fn time(row: &mut DatabaseRow, column: usize) -> Result<UnixTime, RowError> {
    Ok(UnixTime::from_ms(row.integer(column)?))
}

/// A time that may be absent, which the query gives as -1.
pub(super) fn optional_time(row: &mut DatabaseRow, column: usize) -> Result<Option<UnixTime>, RowError> {
    Ok(Some(row.integer(column)?).filter(|ms| *ms >= 0).map(UnixTime::from_ms))
}

pub(super) fn value_of(time: UnixTime) -> Value {
    time.as_ms().into()
}

pub(super) fn nanoseconds(span: Span) -> Value {
    i64::try_from(span.as_ns()).unwrap_or(i64::MAX).into()
}

fn span(row: &mut DatabaseRow, column: usize) -> Result<Span, RowError> {
    Ok(Span::from_ns(number(row, column)?))
}

pub(super) fn number<T: TryFrom<i64>>(row: &mut DatabaseRow, column: usize) -> Result<T, RowError> {
    let value = row.integer(column)?;
    T::try_from(value).map_err(|_| RowError::Content(format!("the number {value}")))
}

/// A text that one of our enums has as a name.
pub(super) fn named<T>(
    row: &mut DatabaseRow,
    column: usize,
    named: impl Fn(&str) -> Option<T>,
) -> Result<T, RowError> {
    let text = row.text(column)?;
    named(&text).ok_or_else(|| RowError::Content(format!("the name '{text}'")))
}

pub(super) fn run(row: &mut DatabaseRow) -> Result<CalendarRun, RowError> {
    let result = row.optional_text(20)?;
    Ok(CalendarRun {
        id: row.text(0)?,
        schedule: row.text(1)?,
        mesh: row.optional_text(2)?,
        from: row.text(3)?,
        to: row.text(4)?,
        spec: parse(&row.text(5)?)?,
        confirms: Some(row.text(6)?).filter(|run| !run.is_empty()),
        due: time(row, 7)?,
        attempt: number(row, 8)?,
        latest: time(row, 9)?,
        starts: time(row, 10)?,
        ends: time(row, 11)?,
        set_up: span(row, 12)?,
        settle: span(row, 13)?,
        priority: number(row, 14)?,
        state: named(row, 15, CalendarRunState::named)?,
        reason: row.text(16)?.into(),
        epoch: number(row, 17)?,
        begun: optional_time(row, 18)?,
        ended: optional_time(row, 19)?,
        result: result.as_deref().map(parse).transpose()?,
        handed: row.integer(21)? != 0,
    })
}

/// Reads [`RESERVATION_COLUMNS`], with the names of the resources by their numbers.
pub(super) fn reservation(
    row: &mut DatabaseRow,
    names: &BTreeMap<i64, String>,
) -> Result<ResourceReservation, RowError> {
    let number = row.integer(0)?;
    let name = names.get(&number);
    Ok(ResourceReservation {
        resource: name.cloned().ok_or_else(|| RowError::Content(format!("the resource {number}")))?,
        first_unit: self::number(row, 1)?,
        last_unit: self::number(row, 2)?,
        starts: time(row, 3)?,
        ends: time(row, 4)?,
        run: row.text(5)?,
        schedule: row.text(6)?,
        priority: self::number(row, 7)?,
        state: named(row, 8, CalendarRunState::named)?,
        handed: row.integer(9)? != 0,
    })
}

/// Reads `content, paused, coalesce(next_due, -1)`.
pub(super) fn schedule(row: &mut DatabaseRow) -> Result<ScheduleState, RowError> {
    Ok(ScheduleState {
        schedule: parse(&row.text(0)?)?,
        paused: row.integer(1)? != 0,
        next_due: optional_time(row, 2)?,
    })
}

/// Reads all columns but the number, in the order of the table.
pub(super) fn alarm(row: &mut DatabaseRow) -> Result<Alarm, RowError> {
    Ok(Alarm {
        schedule: row.text(0)?,
        mesh: row.optional_text(1)?,
        from: row.text(2)?,
        to: row.text(3)?,
        kind: named(row, 4, AlarmKind::named)?,
        since: time(row, 5)?,
        raised: time(row, 6)?,
        cleared: optional_time(row, 7)?,
        text: row.text(8)?.into(),
        first_run: row.text(9)?,
        second_run: row.text(10)?,
    })
}
