//! Judges results: a limit that is crossed twice in a row raises an alarm.

use linerate_archive::{CalendarError, CalendarTransaction, RunFilter};
use linerate_model::calendar::{Alarm, AlarmKind, CalendarRun, CalendarRunState, Schedule, UnixTime};
use linerate_units::{Bitrate, Span};

use super::book::{NewId, book_one, confirming};
use crate::alarm::{Crossing, HISTORY, crossings, kept};
use crate::inventory::Inventory;

/// How long a second test may wait for a free time.
const CONFIRM_WINDOW: Span = Span::from_secs(15 * 60);

/// Judges a run that has ended; the alarms that it raised or cleared. A first crossing books a second test.
pub(super) fn judge(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    run: &CalendarRun,
    epoch: u64,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<Vec<Alarm>, CalendarError> {
    let Some(state) = calendar.schedule(&run.schedule)? else { return Ok(Vec::new()) };
    let schedule = &state.schedule;
    let open = calendar.open_alarms_of(&schedule.name)?;
    if schedule.alarm.is_empty() && open.is_empty() {
        return Ok(Vec::new());
    }
    let crossed = crossed_by(calendar, schedule, run)?;
    let mut told = Vec::new();
    let within = kept(&schedule.alarm, run.result.as_ref(), &crossed);
    for alarm in open.iter().filter(|alarm| within.contains(&alarm.kind)) {
        if calendar.clear_alarm(&schedule.name, alarm.kind, now)? {
            told.push(Alarm { cleared: Some(now), ..alarm.clone() });
        }
    }
    let fresh: Vec<&Crossing> =
        crossed.iter().filter(|one| !open.iter().any(|alarm| alarm.kind == one.kind)).collect();
    if fresh.is_empty() {
        return Ok(told);
    }
    match &run.confirms {
        None => {
            if !has_second_test(calendar, schedule)?
                && !book_second_test(calendar, inventory, schedule, run, epoch, now, new_id)?
            {
                let note = "; no time was free for a second test";
                for crossing in fresh {
                    told.extend(raise(calendar, schedule, crossing, run, run, note, now)?);
                }
            }
        }
        Some(first) => {
            let Some(first) = calendar.run(first)? else { return Ok(told) };
            let before = crossed_by(calendar, schedule, &first)?;
            for crossing in fresh.into_iter().filter(|one| before.iter().any(|other| other.kind == one.kind))
            {
                told.extend(raise(calendar, schedule, crossing, &first, run, "", now)?);
            }
        }
    }
    Ok(told)
}

/// The limits that a run crosses, with the results before it.
fn crossed_by(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
    run: &CalendarRun,
) -> Result<Vec<Crossing>, CalendarError> {
    let history = match schedule.alarm.change {
        Some(_) => history(calendar, schedule, run)?,
        None => Vec::new(),
    };
    Ok(crossings(&schedule.alarm, run.state, &run.reason, run.result.as_ref(), &history))
}

/// The goodputs of the newest results before a run, the oldest first, since the last change that was reported.
fn history(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
    run: &CalendarRun,
) -> Result<Vec<Bitrate>, CalendarError> {
    let since = calendar.last_alarm_since(&schedule.name, AlarmKind::Change)?;
    let filter = RunFilter {
        schedule: Some(schedule.name.to_string()),
        states: vec![CalendarRunState::Finished],
        starts_before: Some(run.starts),
        ends_after: since,
        newest_first: true,
        limit: Some(HISTORY as u32),
        ..RunFilter::default()
    };
    let mut rates: Vec<Bitrate> =
        calendar.runs(&filter)?.into_iter().filter_map(|one| one.result?.goodput).collect();
    rates.reverse();
    Ok(rates)
}

fn has_second_test(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
) -> Result<bool, CalendarError> {
    let active = RunFilter {
        schedule: Some(schedule.name.to_string()),
        states: vec![CalendarRunState::Booked, CalendarRunState::Running],
        ..RunFilter::default()
    };
    Ok(calendar.runs(&active)?.iter().any(|run| run.confirms.is_some()))
}

fn book_second_test(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    schedule: &Schedule,
    run: &CalendarRun,
    epoch: u64,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<bool, CalendarError> {
    let within = (now.after(Span::from_secs(1)), now.after(CONFIRM_WINDOW));
    let second = confirming(schedule, run, within, epoch, new_id)?;
    book_one(calendar, inventory, schedule, second, within.0, now, new_id)
}

fn raise(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
    crossing: &Crossing,
    first: &CalendarRun,
    second: &CalendarRun,
    note: &str,
    now: UnixTime,
) -> Result<Option<Alarm>, CalendarError> {
    let since = match crossing.kind {
        AlarmKind::Change => start_of_change(calendar, schedule, crossing.results_since)?.unwrap_or(now),
        _ => first.ended.unwrap_or(now),
    };
    let alarm = Alarm {
        since,
        raised: now,
        cleared: None,
        schedule: schedule.name.to_string(),
        mesh: schedule.mesh.as_ref().map(ToString::to_string),
        from: schedule.from.to_string(),
        to: schedule.to.to_string(),
        kind: crossing.kind,
        text: format!("{}{note}", crossing.text).into(),
        first_run: first.id.clone(),
        second_run: second.id.clone(),
    };
    Ok(calendar.raise_alarm(&alarm)?.then_some(alarm))
}

/// When the reservation of the first of the newest results began.
fn start_of_change(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
    results: usize,
) -> Result<Option<UnixTime>, CalendarError> {
    let filter = RunFilter {
        schedule: Some(schedule.name.to_string()),
        states: vec![CalendarRunState::Finished],
        newest_first: true,
        limit: Some(results as u32),
        ..RunFilter::default()
    };
    Ok(calendar.runs(&filter)?.last().map(|run| run.starts))
}
