//! Schedules and obstacles in words.

use linerate_model::calendar::{CalendarRun, Recurrence, ScheduleObstacle, WhyAnswer};
use linerate_units::Span;

use super::{LocalTimes, marked_lines};
use crate::layout::{TextLayout, TextRole, wrap};

/// When a schedule is due.
pub(super) fn when(recurrence: &Recurrence, zone: &str, times: LocalTimes<'_>) -> String {
    match recurrence {
        Recurrence::Cron(expression) if zone == "UTC" => expression.to_string(),
        Recurrence::Cron(expression) => format!("{expression} ({zone})"),
        Recurrence::Every { period, jitter, .. } if jitter.as_ns() == 0 => {
            format!("every {}", whole(*period))
        }
        Recurrence::Every { period, jitter, .. } => {
            format!("every {}, jitter {}", whole(*period), whole(*jitter))
        }
        Recurrence::Once(at) => format!("once, {}", times.minute(*at)),
    }
}

/// A time as users write it: in the largest unit of which it is a whole number, never rounded to one.
fn whole(span: Span) -> String {
    const UNITS: [(&str, u64); 3] = [("d", 86_400), ("h", 3600), ("min", 60)];
    let seconds = span.as_ns() / 1_000_000_000;
    let fits = |(_, size): &&(&str, u64)| seconds > 0 && span == Span::from_secs(seconds / size * size);
    match UNITS.iter().find(fits) {
        Some((name, size)) => format!("{} {name}", seconds / size),
        None => span.to_string(),
    }
}

/// The answer to "why does it not run now".
pub(super) fn why(why: &WhyAnswer, times: LocalTimes<'_>, view: &TextLayout) -> Vec<String> {
    let schedule = &why.state.schedule;
    let what = format!(
        "{}: {} to {}, {}",
        schedule.name,
        schedule.from,
        schedule.to,
        when(&schedule.recurrence, &schedule.zone, times)
    );
    let mut lines = wrap(&what, view.columns());
    if let Some(run) = &why.active {
        lines.push(format!(
            "It measures now: run {}, until {} at the latest.",
            run.id,
            times.exact(run.ends)
        ));
    }
    if why.obstacles.is_empty() && why.active.is_none() {
        lines.push(format!("Nothing keeps it from measuring at {}.", times.exact(why.at)));
    }
    if !why.obstacles.is_empty() {
        lines.push(format!("At {} it does not begin, because:", times.exact(why.at)));
        let obstacles = why.obstacles.iter().map(|one| (TextRole::Warning, obstacle_words(one, times)));
        lines.extend(marked_lines(obstacles, view));
    }
    lines.push(match why.next_free {
        Some(at) => format!("Everything that it uses is free at {}.", times.exact(at)),
        None => "Everything that it uses is at no time free in the next seven days.".to_owned(),
    });
    let run = |label: &str, run: &CalendarRun| {
        let reason = if run.reason.is_empty() { String::new() } else { format!(": {}", run.reason) };
        wrap(
            &format!(
                "{label} run: {} at {}, {}{reason}",
                run.id,
                times.exact(run.starts),
                run.state.name().replace('_', " ")
            ),
            view.columns(),
        )
    };
    lines.extend(why.next.iter().flat_map(|next| run("Next", next)));
    lines.extend(why.last.iter().flat_map(|last| run("Last", last)));
    lines
}

pub(super) fn obstacle_words(obstacle: &ScheduleObstacle, times: LocalTimes<'_>) -> String {
    match obstacle {
        ScheduleObstacle::Paused => "it is paused; `linerate schedule resume` ends that".to_owned(),
        ScheduleObstacle::NotDue(Some(due)) => format!("it is not due before {}", times.exact(*due)),
        ScheduleObstacle::NotDue(None) => "it is never due again".to_owned(),
        ScheduleObstacle::Quiet(until) => {
            format!("it would measure in its quiet hours, which last until {}", times.exact(*until))
        }
        ScheduleObstacle::Busy(other) if other.state.is_end() => format!(
            "{} is held for run {} of '{}' ({}), which an agent may still have in its calendar, from {} until {}",
            other.resource,
            other.run,
            other.schedule,
            other.state.name().replace('_', " "),
            times.exact(other.starts),
            times.exact(other.ends)
        ),
        ScheduleObstacle::Busy(other) => format!(
            "{} is in use by run {} of '{}' (priority {}) from {} until {}",
            other.resource,
            other.run,
            other.schedule,
            other.priority,
            times.exact(other.starts),
            times.exact(other.ends)
        ),
        ScheduleObstacle::NoCoordinator(None) => {
            "no coordinator carries out the calendar; start `linerate fleet run FILE`".to_owned()
        }
        ScheduleObstacle::NoCoordinator(Some(last)) => format!(
            "no coordinator carries out the calendar (the last run was at {}); start `linerate fleet run FILE`",
            times.exact(*last)
        ),
        ScheduleObstacle::Agent(why) => format!("{why}; `linerate agent list` shows the agents"),
        ScheduleObstacle::AfterLoss(until) => format!(
            "nothing is booked until all agents have confirmed new calendars, because the database lost what was written \
             last; it goes on by {} at the latest",
            times.exact(*until)
        ),
        ScheduleObstacle::AfterChange(until) => format!(
            "nothing is booked until agents have given back what was booked before the fleet was changed; it goes on \
             by {} at the latest",
            times.exact(*until)
        ),
        ScheduleObstacle::Unsettled(until) => format!(
            "nothing is booked before {}, because a test of before a loss or a change of the fleet may still be on the wire",
            times.exact(*until)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_never_rounded_to_another_one() {
        let words = [
            (45, "45 s"),
            (150, "150 s"),
            (5400, "90 min"),
            (7200, "2 h"),
            (86_400, "1 d"),
            (86_460, "1441 min"),
        ];
        for (seconds, expected) in words {
            assert_eq!(whole(Span::from_secs(seconds)), expected);
        }
        assert_eq!(whole(Span::from_ms(60_500)), Span::from_ms(60_500).to_string());
    }
}
