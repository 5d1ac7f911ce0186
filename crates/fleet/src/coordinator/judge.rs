//! Judges results: a limit that is crossed twice in a row raises an alarm.

use linerate_archive::{CalendarError, CalendarTransaction, RunFilter};
use linerate_model::calendar::{Alarm, AlarmKind, CalendarRun, CalendarRunState, Schedule, UnixTime};
use linerate_units::{Bitrate, Span};

use super::book::{NewId, book_one, confirming};
use super::why_no_runs;
use crate::alarm::{Crossing, HISTORY, crossings, kept};
use crate::inventory::Inventory;
use crate::recurrence::rfc3339;

/// How long a second test may wait for a free time.
const CONFIRM_WINDOW: Span = Span::from_secs(15 * 60);

/// Looks for alarms within a transaction.
pub(super) struct AlarmJudge<'j, 'd> {
    pub(super) calendar: &'j mut CalendarTransaction<'d>,
    pub(super) inventory: &'j Inventory,
    /// An agent that was not heard since then is silent; absent as long as the coordinator cannot know.
    pub(super) silent_before: Option<UnixTime>,
    pub(super) epoch: u64,
    pub(super) now: UnixTime,
    pub(super) new_id: &'j mut NewId,
}

impl AlarmJudge<'_, '_> {
    /// Judges a run that has ended; the alarms that it raised or cleared. A first crossing books a second test.
    pub(super) fn judge(&mut self, run: &CalendarRun) -> Result<Vec<Alarm>, CalendarError> {
        let Some(state) = self.calendar.schedule(&run.schedule)? else { return Ok(Vec::new()) };
        let schedule = &state.schedule;
        let open = self.calendar.open_alarms_of(&schedule.name)?;
        if schedule.alarm.is_empty() && open.is_empty() {
            return Ok(Vec::new());
        }
        let crossed = crossed_by(self.calendar, schedule, run)?;
        let mut changes = Vec::new();
        let within = kept(&schedule.alarm, run.result.as_ref(), &crossed);
        for alarm in open.iter().filter(|alarm| within.contains(&alarm.kind)) {
            if self.calendar.clear_alarm(&schedule.name, alarm.kind, self.now)? {
                changes.push(Alarm { cleared: Some(self.now), ..alarm.clone() });
            }
        }
        let is_failure = crossed.iter().any(|one| one.kind == AlarmKind::Failure);
        if is_failure && !state.paused && self.is_back(&open, schedule, run)? {
            self.book_second_test(schedule, run)?;
        }
        let fresh: Vec<&Crossing> =
            crossed.iter().filter(|one| !open.iter().any(|alarm| alarm.kind == one.kind)).collect();
        if fresh.is_empty() {
            return Ok(changes);
        }
        match &run.confirms {
            None => {
                if let Some(note) = self.book_second_test(schedule, run)? {
                    for crossing in fresh {
                        changes.extend(raise(self.calendar, schedule, crossing, (run, run), note, self.now)?);
                    }
                }
            }
            Some(first) => {
                let Some(first) = self.calendar.run(first)? else { return Ok(changes) };
                let before = crossed_by(self.calendar, schedule, &first)?;
                let again = |one: &&Crossing| before.iter().any(|other| other.kind == one.kind);
                for crossing in fresh.into_iter().filter(again) {
                    changes.extend(raise(self.calendar, schedule, crossing, (&first, run), "", self.now)?);
                }
            }
        }
        Ok(changes)
    }

    /// Whether an agent tells what became of a run because of which it was reported as silent. Another test says then whether
    /// it measures again: the next one may be due a week later.
    fn is_back(
        &mut self,
        open: &[Alarm],
        schedule: &Schedule,
        run: &CalendarRun,
    ) -> Result<bool, CalendarError> {
        // A run that is being judged is in no alarm for another reason.
        let of_silence = |alarm: &&Alarm| alarm.kind == AlarmKind::Failure && alarm.first_run == run.id;
        let Some(alarm) = open.iter().find(of_silence) else { return Ok(false) };
        let agent = self.calendar.agent(&schedule.from)?;
        Ok(agent.and_then(|agent| agent.seen).is_some_and(|seen| seen > alarm.raised))
    }

    /// Books a second test, unless the schedule has one; what to say if that is impossible.
    fn book_second_test(
        &mut self,
        schedule: &Schedule,
        run: &CalendarRun,
    ) -> Result<Option<&'static str>, CalendarError> {
        if has_second_test(self.calendar, schedule)? {
            return Ok(None);
        }
        // Nobody would hear for two days that a silent agent has not made it.
        let seen_after = self.silent_before.unwrap_or(UnixTime::from_ms(0));
        let agent = self.calendar.agent(&schedule.from)?;
        if agent.is_some_and(|agent| why_no_runs(&agent, seen_after).is_some()) {
            return Ok(Some("; its agent takes no second test"));
        }
        let within = (self.now.after(Span::from_secs(1)), self.now.after(CONFIRM_WINDOW));
        let second = confirming(schedule, run, within, self.epoch, self.new_id)?;
        let (calendar, inventory) = (&mut *self.calendar, self.inventory);
        let booked = book_one(calendar, inventory, schedule, second, within.0, self.now, self.new_id)?;
        Ok((!booked).then_some("; no time was free for a second test"))
    }

    /// Raises an alarm because nobody has told what became of a run.
    pub(super) fn raise_silence(
        &mut self,
        schedule: &Schedule,
        run: &CalendarRun,
        why: &str,
    ) -> Result<Option<Alarm>, CalendarError> {
        let text = format!("no result of the test that was due at {}: {why}", rfc3339(run.due));
        let crossing = Crossing { kind: AlarmKind::Failure, text, results_since: 0 };
        raise(self.calendar, schedule, &crossing, (run, run), "", self.now)
    }
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

fn raise(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &Schedule,
    crossing: &Crossing,
    (first, second): (&CalendarRun, &CalendarRun),
    note: &str,
    now: UnixTime,
) -> Result<Option<Alarm>, CalendarError> {
    let since = match crossing.kind {
        AlarmKind::Change => start_of_change(calendar, schedule, crossing.results_since)?.unwrap_or(now),
        // Nobody knows when a run ended whose agent is silent.
        _ => first.ended.unwrap_or(first.ends).min(now),
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
