//! Answers about the calendar of a fleet: schedules, runs, grids of meshes, alarms, and why something does not run.
//!
//! ```
//! use jiff::tz::TimeZone;
//! use linerate_model::calendar::{FleetAnswer, FreeTime, UnixTime};
//! use linerate_report::{TextLayout, fleet};
//!
//! let times = vec![FreeTime { starts: UnixTime::from_ms(0), ends: UnixTime::from_ms(15_000) }];
//! let answer = FleetAnswer::FreeTimes(times);
//! let text = fleet::text(&answer, &TimeZone::UTC, &TextLayout::default());
//! assert_eq!(text, "starts                ends\n1970-01-01 00:00:00   1970-01-01 00:00:15\n");
//! assert_eq!(fleet::document(&answer)["times"][0]["starts"], "1970-01-01T00:00:00Z");
//! ```

mod agents;
mod grid;
mod json;
mod words;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_model::Cause;
use linerate_model::calendar::{
    Alarm, CalendarRun, CalendarRunState, FleetAnswer, FleetHostState, FleetPreview, FleetStatus, FreeTime,
    MeshPreview, ResourceLoad, ScheduleState, UnixTime,
};

use crate::layout::{TextLayout, TextRole, wrap};
use crate::plural;
use crate::table::{Cell, Column, Table};

pub use grid::compact_rate;
pub use json::{
    AgentEntry, AgentsDocument, AlarmEntry, AlarmsDocument, CalendarDocument, CalendarRunEntry, CellEntry,
    ChangeDocument, CoordinatorEntry, EnrolledAgentEntry, EnrollmentDocument, FleetDocument,
    FleetPreviewDocument, FreeTimeEntry, FreeTimesDocument, LoadEntry, MeshEntry, MeshPreviewEntry,
    MeshesDocument, ObstacleEntry, ReservationEntry, ScheduleCounts, ScheduleEntry, SchedulesDocument,
    WhenEntry, WhyDocument, document,
};

/// Fewest columns of a text that may be shortened.
const MIN_WORDS: usize = 12;

/// The answer as text. LocalTimes are in a time zone.
#[must_use]
pub fn text(answer: &FleetAnswer, zone: &TimeZone, view: &TextLayout) -> String {
    let times = LocalTimes(zone);
    let lines = match answer {
        FleetAnswer::Added(state) => vec![added(state, times)],
        FleetAnswer::Changed { schedule, done, cancelled: 0 } => vec![format!("{schedule} {done}")],
        FleetAnswer::Changed { schedule, done, cancelled } => {
            vec![format!("{schedule} {done}; {} cancelled", plural(*cancelled, "coming run"))]
        }
        FleetAnswer::Cancelled(count) => vec![format!("{} cancelled", plural(*count, "run"))],
        FleetAnswer::Schedules(schedules, runs) => schedules_and_runs(schedules, runs, times, view),
        FleetAnswer::Runs(runs) if runs.is_empty() => vec!["no runs".to_owned()],
        FleetAnswer::Runs(runs) => run_table(runs, times).lines(view),
        FleetAnswer::Why(why) => words::why(why, times, view),
        FleetAnswer::FreeTimes(free) if free.is_empty() => {
            vec!["no time is free in the next seven days".to_owned()]
        }
        FleetAnswer::FreeTimes(free) => free_table(free, times).lines(view),
        FleetAnswer::Grids(grids) if grids.is_empty() => vec!["the fleet has no meshes".to_owned()],
        FleetAnswer::Grids(grids) => {
            let each: Vec<Vec<String>> = grids.iter().map(|grid| grid::lines(grid, times, view)).collect();
            each.join(&String::new())
        }
        FleetAnswer::Alarms(alarms) if alarms.is_empty() => vec!["no alarms".to_owned()],
        FleetAnswer::Alarms(alarms) => alarm_lines(alarms, times, view),
        FleetAnswer::Status(status) => status_lines(status, times, view),
        FleetAnswer::Agents(agents, _) if agents.is_empty() => {
            vec!["no agents; `linerate agent enroll HOST FILE` enrols one".to_owned()]
        }
        FleetAnswer::Agents(agents, now) => agents::table(agents, *now, times).lines(view),
        FleetAnswer::Enrolled { host, key, written, reload_broker } => {
            agents::enrolled(host, key, written, *reload_broker, view)
        }
        FleetAnswer::Revoked { host, written } => agents::revoked(host, written, view),
        FleetAnswer::AgentRemoved(host) => agents::removed(host, view),
        FleetAnswer::Preview(preview) => preview_lines(preview, times, view),
    };
    lines.join("\n") + "\n"
}

/// LocalTimes in a zone.
#[derive(Clone, Copy)]
struct LocalTimes<'z>(&'z TimeZone);

impl LocalTimes<'_> {
    /// To the second.
    fn exact(self, at: UnixTime) -> String {
        self.format(at, "%Y-%m-%d %H:%M:%S")
    }

    /// To the minute.
    fn minute(self, at: UnixTime) -> String {
        self.format(at, "%Y-%m-%d %H:%M")
    }

    fn format(self, at: UnixTime, format: &str) -> String {
        let time = Timestamp::from_millisecond(at.as_ms()).unwrap_or(Timestamp::MAX);
        time.to_zoned(self.0.clone()).strftime(format).to_string()
    }

    /// To the second, or a dash.
    fn or_dash(self, at: Option<UnixTime>) -> String {
        at.map_or_else(|| "-".to_owned(), |at| self.exact(at))
    }
}

fn added(state: &ScheduleState, times: LocalTimes<'_>) -> String {
    let name = &state.schedule.name;
    match state.next_due {
        Some(due) => format!("{name} added; it is due next at {}", times.exact(due)),
        None => format!("{name} added"),
    }
}

fn schedules_and_runs(
    schedules: &[ScheduleState],
    runs: &[CalendarRun],
    times: LocalTimes<'_>,
    view: &TextLayout,
) -> Vec<String> {
    if schedules.is_empty() && runs.is_empty() {
        return vec![
            "no schedules; add one with `linerate schedule add`, or a mesh in the file of the fleet"
                .to_owned(),
        ];
    }
    let words = |head, text: &dyn Fn(&ScheduleState) -> String| {
        Column::words(head, schedules.iter().map(|state| Cell::plain(text(state))).collect())
    };
    let mut booked: BTreeMap<&str, UnixTime> = BTreeMap::new();
    for run in runs {
        let first = booked.entry(&run.schedule).or_insert(run.starts);
        *first = run.starts.min(*first);
    }
    let next = |state: &ScheduleState| {
        let booked = booked.get(state.schedule.name.as_str()).copied();
        booked.into_iter().chain(state.next_due).min()
    };
    let state_of = |state: &ScheduleState| match (state.paused, next(state)) {
        (true, _) => Cell::new(TextRole::Warning, "paused"),
        (false, None) => Cell::new(TextRole::Faint, "over"),
        (false, Some(at)) => Cell::plain(times.exact(at)),
    };
    let table = Table::new(vec![
        words("schedule", &|state| state.schedule.name.to_string()).at_least(MIN_WORDS),
        words("from", &|state| state.schedule.from.to_string()),
        words("to", &|state| state.schedule.to.to_string()),
        words("when", &|state| words::when(&state.schedule.recurrence, &state.schedule.zone, times))
            .at_least(MIN_WORDS),
        words("priority", &|state| state.schedule.priority.to_string()).of_importance(1),
        Column::words("next", schedules.iter().map(state_of).collect()),
    ]);
    let mut lines = table.lines(view);
    let active: Vec<CalendarRun> =
        runs.iter().filter(|run| run.state == CalendarRunState::Running).cloned().collect();
    if !active.is_empty() {
        lines.push(String::new());
        lines.extend(run_table(&active, times).lines(view));
    }
    lines
}

fn run_table(runs: &[CalendarRun], times: LocalTimes<'_>) -> Table {
    let words = |head, text: &dyn Fn(&CalendarRun) -> String| {
        Column::words(head, runs.iter().map(|run| Cell::plain(text(run))).collect())
    };
    let result = |run: &CalendarRun| match &run.result {
        Some(result) if result.is_impossible() => Cell::new(TextRole::Struck, Cause::Impossible.name()),
        result => {
            let rate = result.as_ref().and_then(|result| result.goodput);
            Cell::new(TextRole::Result, rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()))
        }
    };
    let note = |run: &CalendarRun| match (&run.confirms, run.reason.is_empty()) {
        (Some(first), true) => format!("second test after {first}"),
        _ => run.reason.to_string(),
    };
    let verdict = |run: &CalendarRun| {
        let cause = run.result.as_ref().and_then(|result| result.cause);
        let note = note(run);
        if note.is_empty() { cause.map(|cause| cause.name().to_owned()).unwrap_or_default() } else { note }
    };
    let state = |run: &CalendarRun| Cell::new(ink_of(run.state), run.state.name());
    Table::new(vec![
        words("run", &|run| short_name(&run.id)),
        words("starts", &|run| times.minute(run.starts)),
        words("schedule", &|run| run.schedule.clone()).at_least(MIN_WORDS),
        words("pair", &|run| format!("{} to {}", run.from, run.to)).of_importance(2),
        Column::words("state", runs.iter().map(state).collect()),
        Column::numbers("goodput", runs.iter().map(result).collect()),
        words("note", &verdict).at_least(MIN_WORDS),
    ])
}

fn ink_of(state: CalendarRunState) -> TextRole {
    match state {
        CalendarRunState::Finished => TextRole::Good,
        CalendarRunState::Booked | CalendarRunState::Running => TextRole::Plain,
        CalendarRunState::Cancelled => TextRole::Faint,
        _ => TextRole::Warning,
    }
}

fn free_table(free: &[FreeTime], times: LocalTimes<'_>) -> Table {
    let column = |head, of: &dyn Fn(&FreeTime) -> UnixTime| {
        Column::words(head, free.iter().map(|time| Cell::plain(times.exact(of(time)))).collect())
    };
    Table::new(vec![column("starts", &|time| time.starts), column("ends", &|time| time.ends)])
}

/// The beginning of the name of a run, which selects it in all commands.
fn short_name(run: &str) -> String {
    run.chars().take(8).collect()
}

/// Each alarm as a sentence.
fn alarm_lines(alarms: &[Alarm], times: LocalTimes<'_>, view: &TextLayout) -> Vec<String> {
    let sentence = |alarm: &Alarm| {
        let since = times.minute(alarm.since);
        let until = match alarm.cleared {
            Some(cleared) => format!("from {since} until {}", times.minute(cleared)),
            None => format!("open since {since}"),
        };
        let ink = if alarm.cleared.is_some() { TextRole::Faint } else { TextRole::Warning };
        (ink, format!("{} to {}, {until}: {}", alarm.from, alarm.to, alarm.text))
    };
    marked_lines(alarms.iter().map(sentence), view)
}

/// A list of sentences, each with a mark.
fn marked_lines(sentences: impl Iterator<Item = (TextRole, String)>, view: &TextLayout) -> Vec<String> {
    let mut lines = Vec::new();
    for (ink, text) in sentences {
        let wrapped = wrap(&text, view.columns().saturating_sub(4));
        lines.extend(wrapped.iter().enumerate().map(|(number, line)| {
            let mark = if number == 0 { "  - " } else { "    " };
            format!("{mark}{}", view.ink(ink, line))
        }));
    }
    lines
}

fn status_lines(status: &FleetStatus, times: LocalTimes<'_>, view: &TextLayout) -> Vec<String> {
    let (schedules, paused) = status.schedules;
    let mut lines = vec![format!(
        "{}: {}, {} ({paused} paused)",
        status.name,
        plural(status.hosts.len() as u64, "host"),
        plural(schedules, "schedule")
    )];
    lines.extend(match &status.coordinator {
        Some((name, _)) => {
            wrap(&format!("coordinator {name} leads (epoch {})", status.epoch), view.columns())
        }
        None => {
            let text = "no coordinator carries out the calendar; start `linerate fleet run FILE`";
            wrap(text, view.columns()).iter().map(|line| view.ink(TextRole::Warning, line)).collect()
        }
    });
    let counts: Vec<String> = status
        .runs
        .iter()
        .map(|(state, count)| format!("{count} {}", state.name().replace('_', " ")))
        .collect();
    if !counts.is_empty() {
        lines.extend(wrap(
            &format!("runs of the last 24 hours and coming ones: {}", counts.join(", ")),
            view.columns(),
        ));
    }
    let words = |head, text: &dyn Fn(&linerate_model::calendar::FleetHostStatus) -> String| {
        Column::words(head, status.hosts.iter().map(|host| Cell::plain(text(host))).collect())
    };
    let state = status.hosts.iter().map(|host| match host.state {
        FleetHostState::Ready => Cell::new(TextRole::Good, "ready"),
        FleetHostState::Failed => Cell::new(TextRole::Warning, "failed"),
        other => Cell::plain(other.name()),
    });
    lines.push(String::new());
    let table = Table::new(vec![
        words("host", &|host| host.name.clone()),
        words("agent", &|host| format!("{}:{}", host.address, host.port)).at_least(MIN_WORDS),
        Column::words("state", state.collect()),
        words("since", &|host| times.or_dash(host.since)).of_importance(1),
        words("note", &|host| host.reason.to_string()).at_least(MIN_WORDS),
    ]);
    lines.extend(table.lines(view));
    if !status.alarms.is_empty() {
        lines.push(String::new());
        lines.push("alarms:".to_owned());
        lines.extend(alarm_lines(&status.alarms, times, view));
    }
    lines
}

/// Resources whose load is shown at most.
const MAX_LOADS: usize = 10;
/// Share of its time from which a resource has no room for anything else.
const NEARLY_FULL: f64 = 0.8;

fn preview_lines(preview: &FleetPreview, times: LocalTimes<'_>, view: &TextLayout) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", preview.name, plural(preview.hosts as u64, "host"))];
    let words = |head, text: &dyn Fn(&MeshPreview) -> String| {
        Column::words(head, preview.meshes.iter().map(|mesh| Cell::plain(text(mesh))).collect())
    };
    if preview.meshes.is_empty() {
        lines.push("no meshes; `linerate schedule add` adds tests between two hosts".to_owned());
    } else {
        let table = Table::new(vec![
            words("mesh", &|mesh| mesh.name.clone()),
            words("pairs", &|mesh| mesh.pairs.to_string()),
            words("when", &|mesh| words::when(&mesh.example.recurrence, &mesh.example.zone, times))
                .at_least(MIN_WORDS),
            words("reserved for each", &|mesh| mesh.length.to_string()),
            words("use", &|mesh| if mesh.example.shared { "shared" } else { "exclusive" }.to_owned())
                .of_importance(1),
        ]);
        lines.push(String::new());
        lines.extend(table.lines(view));
    }
    if !preview.loads.is_empty() {
        let shown = &preview.loads[..preview.loads.len().min(MAX_LOADS)];
        let share = |load: &ResourceLoad| {
            let ink = if load.share > NEARLY_FULL { TextRole::Warning } else { TextRole::Plain };
            Cell::new(ink, format!("{:.0} %", load.share * 100.0))
        };
        let table = Table::new(vec![
            Column::words("busiest", shown.iter().map(|load| Cell::plain(load.resource.clone())).collect()),
            Column::numbers("of its time", shown.iter().map(share).collect()),
        ]);
        lines.push(String::new());
        lines.extend(table.lines(view));
    }
    if let Some(load) = preview.loads.first().filter(|load| load.share > NEARLY_FULL) {
        let text = match load.share > 1.0 {
            true => format!(
                "{} would be used more than all of its time, so tests will find no time; measure less often or shorter",
                load.resource
            ),
            false => format!(
                "{} has little time left, so tests will begin late; measure less often or shorter",
                load.resource
            ),
        };
        lines.extend(wrap(&text, view.columns()).iter().map(|line| view.ink(TextRole::Warning, line)));
    }
    lines
}

#[cfg(test)]
mod tests;
