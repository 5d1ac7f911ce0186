//! What a person sees while a plan is carried out: one moving line on a terminal, a line for each trial elsewhere.

use std::time::Duration;

use linerate_control::Told;
use linerate_model::{Body, Outcome, PlanRecord};
use linerate_plan::{Plan, Standing, Task};
use linerate_sock::{Mono, clock};
use linerate_units::{Bitrate, Bytes, Span};

use super::super::plan::text::time;
use crate::{say, terminal};

/// Characters of the bar.
const BAR: usize = 20;

/// The moving line is written at most so often.
const STEP: Duration = Duration::from_millis(200);

/// What is shown.
pub(super) struct Screen {
    silent: bool,
    watched: bool,
    shown: bool,
    next: Mono,
    head: String,
    flows: Vec<Flow>,
    place: String,
}

struct Flow {
    name: String,
    last: (Bytes, Span),
    rate: Option<Bitrate>,
}

impl Screen {
    pub(super) fn new(silent: bool) -> Self {
        Self {
            silent,
            watched: terminal::watched(),
            shown: false,
            next: Mono(0),
            head: String::new(),
            flows: Vec::new(),
            place: String::new(),
        }
    }

    pub(super) fn begin_trial(&mut self, task: &Task, plan: &Plan, standing: Standing, elapsed: Span) {
        let step = task.step.as_ref().map(|step| format!(" {}", step.value)).unwrap_or_default();
        let repeat =
            if plan.largest_repeats() > 1 { format!(" trial {}", task.repeat) } else { String::new() };
        self.place = format!("{}{step}{repeat}", task.point.label());
        self.flows = plan
            .flows
            .iter()
            .map(|flow| Flow { name: flow.name.clone(), last: (Bytes::new(0), Span::ZERO), rate: None })
            .collect();
        let full = BAR * standing.done / standing.of.max(1);
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR.saturating_sub(full)));
        let count = format!("{}/{}", standing.done + 1, standing.of);
        self.head = match self.watched {
            true => format!("[{bar}] {count}, {} left", time(left(standing, elapsed))),
            false => count,
        };
        self.show(true);
    }

    /// Takes an event of a run in.
    pub(super) fn told(&mut self, told: &Told<'_>) {
        let Body::Progress { bytes, elapsed, .. } = told.body else { return };
        let Some(flow) = self.flows.get_mut(told.flow) else { return };
        let (before, then) = flow.last;
        if *elapsed < then {
            // Another direction has begun.
            flow.last = (Bytes::new(0), Span::ZERO);
        } else if elapsed.saturating_sub(then) >= Span::from_ms(200) {
            let more = Bytes::new(bytes.get().saturating_sub(before.get()));
            flow.rate = Bitrate::of(more, elapsed.saturating_sub(then));
            flow.last = (*bytes, *elapsed);
        }
        self.show(false);
    }

    fn show(&mut self, now: bool) {
        if self.silent || !self.watched || (!now && !self.next.has_passed()) {
            return;
        }
        self.next = clock::now() + STEP;
        let rates: Vec<String> =
            self.flows.iter().filter_map(|flow| Some(format!("{} {}", flow.name, flow.rate?))).collect();
        let line = format!("{}  {}  {}", self.head, self.place, rates.join(", "));
        let width = terminal::stderr_width().saturating_sub(1);
        say::live(&line.chars().take(width).collect::<String>());
        self.shown = true;
    }

    /// A trial is over: where nobody watches a moving line, it is told in a line of its own.
    pub(super) fn end_trial(&mut self, task: &Task, record: &PlanRecord) {
        if self.silent || self.watched {
            return;
        }
        let Some(trial) = record.trials.last() else { return };
        let failed: Vec<String> = trial
            .runs
            .iter()
            .filter(|run| run.outcome != Outcome::Completed)
            .map(|run| format!("{}: {}", run.flow, run.reason.as_deref().unwrap_or("not completed")))
            .collect();
        let how = match (&task.step, failed.as_slice()) {
            (_, [_, ..]) => failed.join("; "),
            (Some(_), _) if trial.step.as_ref().is_some_and(|step| step.passed) => "passed".to_owned(),
            (Some(_), _) => "did not pass".to_owned(),
            (None, _) => {
                let rates: Vec<String> = self
                    .flows
                    .iter()
                    .filter_map(|flow| Some(format!("{} {}", flow.name, flow.rate?)))
                    .collect();
                if rates.is_empty() { "done".to_owned() } else { rates.join(", ") }
            }
        };
        say::note(format!("{}  {}: {how}", self.head, self.place));
    }

    /// Takes the moving line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            say::live("");
        }
    }
}

/// The time that is left: the estimate of what is left, as much longer or shorter as what is behind took.
fn left(standing: Standing, elapsed: Span) -> Span {
    if standing.behind == Span::ZERO {
        return standing.left;
    }
    let pace = elapsed.as_secs_f64() / standing.behind.as_secs_f64();
    Span::from_secs_f64(standing.left.as_secs_f64() * pace).unwrap_or(standing.left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let standing = |behind, left| Standing {
            done: 1,
            of: 2,
            behind: Span::from_secs(behind),
            left: Span::from_secs(left),
        };
        assert_eq!(left(standing(0, 90), Span::from_secs(3)), Span::from_secs(90), "nothing is known yet");
        assert_eq!(
            left(standing(30, 90), Span::from_secs(15)),
            Span::from_secs(45),
            "twice as fast as reckoned"
        );
    }
}
