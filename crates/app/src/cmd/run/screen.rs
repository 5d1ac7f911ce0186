//! Progress output of a plan: one live line on a terminal, one line per trial elsewhere.

use std::time::Duration;

use linerate_control::RunEvent;
use linerate_model::foreign_text::one_line;
use linerate_model::{Body, Direction, Outcome};
use linerate_plan::{PlanProgress, RunMeasurements, TrialFigures};
use linerate_report::plan_preview::long_time;
use linerate_runner::plan::{PlanNotice, PlanObserver, TrialBegin, TrialResult};
use linerate_sock::{Mono, clock};
use linerate_units::{Bitrate, Bytes, Span};

use crate::{print, terminal};

/// Width of the progress bar, characters.
const BAR_WIDTH: usize = 20;

/// Shortest interval between two updates of the live line.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The progress output.
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

    fn show(&mut self, now: bool) {
        if self.silent || !self.watched || (!now && !self.next.has_passed()) {
            return;
        }
        self.next = clock::now() + REDRAW_INTERVAL;
        let rates: Vec<String> =
            self.flows.iter().filter_map(|flow| Some(format!("{} {}", flow.name, flow.rate?))).collect();
        let line = format!("{}  {}  {}", self.head, self.place, rates.join(", "));
        let width = terminal::stderr_width().saturating_sub(1);
        print::live(&one_line(&line).chars().take(width).collect::<String>());
        self.shown = true;
    }

    /// Results of the flows of a trial: the goodput of each flow over the trial.
    fn results(&self, figures: &TrialFigures) -> Vec<String> {
        let of_flow = |(flow, figures): (&Flow, &Option<RunMeasurements>)| {
            let rates: Vec<(Direction, Bitrate)> = figures.as_ref()?.goodputs().collect();
            let told: Vec<String> = match &rates[..] {
                [(_, rate)] => vec![rate.to_string()],
                all => all.iter().map(|(direction, rate)| format!("{} {rate}", direction.name())).collect(),
            };
            (!told.is_empty()).then(|| format!("{} {}", flow.name, told.join(" ")))
        };
        self.flows.iter().zip(figures).filter_map(of_flow).collect()
    }

    /// Removes the live line.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            print::live("");
        }
    }
}

impl PlanObserver for Screen {
    fn trial_begins(&mut self, trial: &TrialBegin<'_>) {
        let TrialBegin { task, plan, progress, elapsed } = *trial;
        let step = task.step.as_ref().map(|step| format!(" {}", step.value)).unwrap_or_default();
        let repeat =
            if plan.largest_repeats() > 1 { format!(" trial {}", task.repeat) } else { String::new() };
        self.place = format!("{}{step}{repeat}", task.point.label());
        self.flows = plan
            .flows
            .iter()
            .map(|flow| Flow { name: flow.name.clone(), last: (Bytes::new(0), Span::ZERO), rate: None })
            .collect();
        let full = BAR_WIDTH * progress.done / progress.of.max(1);
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR_WIDTH.saturating_sub(full)));
        let count = format!("{}/{}", progress.done + 1, progress.of);
        self.head = match self.watched {
            true => format!("[{bar}] {count}, {} left", long_time(left(progress, elapsed))),
            false => count,
        };
        self.show(true);
    }

    fn run_event(&mut self, told: &RunEvent<'_>) {
        let Body::Progress { bytes, elapsed, .. } = told.body else { return };
        let Some(flow) = self.flows.get_mut(told.flow) else { return };
        let (before, then) = flow.last;
        if *elapsed < then {
            // Another direction has started.
            flow.last = (Bytes::new(0), Span::ZERO);
        } else if elapsed.saturating_sub(then) >= Span::from_ms(200) {
            let more = Bytes::new(bytes.get().saturating_sub(before.get()));
            flow.rate = Bitrate::of(more, elapsed.saturating_sub(then));
            flow.last = (*bytes, *elapsed);
        }
        self.show(false);
    }

    /// Prints one line for the trial unless a live line is shown.
    fn trial_ends(&mut self, ended: &TrialResult<'_>) {
        if self.silent || self.watched {
            return;
        }
        let Some(trial) = ended.record.trials.last() else { return };
        let failed: Vec<String> = trial
            .runs
            .iter()
            .filter(|run| run.outcome != Outcome::Completed)
            .map(|run| format!("{}: {}", run.flow, run.reason.as_deref().unwrap_or("not completed")))
            .collect();
        let results = self.results(ended.figures);
        let how = match (&ended.task.step, failed.as_slice()) {
            (_, [_, ..]) => failed.join("; "),
            (Some(_), _) if trial.step.as_ref().is_some_and(|step| step.passed) => "passed".to_owned(),
            (Some(_), _) => "did not pass".to_owned(),
            (None, _) if results.is_empty() => "done".to_owned(),
            (None, _) => results.join(", "),
        };
        print::note(one_line(&format!("{}  {}: {how}", self.head, self.place)));
    }

    fn notice(&mut self, notice: &PlanNotice) {
        self.end();
        match notice {
            PlanNotice::KilledLab(_) => print::note(notice),
            PlanNotice::LabKept(name) => {
                print::note(format!("the lab {name} stays up; remove it with: linerate lab down {name}"));
            }
            _ => print::warning(notice),
        }
    }
}

/// The remaining time: the estimate, scaled by the ratio of real and estimated time so far.
fn left(privilege: PlanProgress, elapsed: Span) -> Span {
    if privilege.behind == Span::ZERO {
        return privilege.left;
    }
    let pace = elapsed.as_secs_f64() / privilege.behind.as_secs_f64();
    Span::from_secs_f64(privilege.left.as_secs_f64() * pace).unwrap_or(privilege.left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_told_by_its_result_and_not_by_its_last_interval() {
        use linerate_model::{Event, FlowPlan, RunRecord, Side, Tally, Transport};
        use linerate_units::Timestamp;
        let rate = |bps| Bitrate::from_bps(bps).unwrap();
        let mut screen = Screen::new(false);
        screen.flows =
            vec![Flow { name: "bulk".to_owned(), last: Default::default(), rate: Some(rate(940e6)) }];
        let flow = FlowPlan {
            flow: 0,
            name: "upload".into(),
            from: "".into(),
            to: "".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        };
        let tally = Tally { elapsed: Span::from_secs(2), bitrate: rate(555e6), ..Tally::default() };
        let bodies = [Body::FlowPlanned(flow), Body::FlowEnded { flow: 0, side: Side::Receiver, tally }];
        let event = |(seq, body)| Event { run: "r".into(), host: 0, seq, at: Timestamp::START, body };
        let record = RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>());
        assert_eq!(screen.results(&vec![Some(RunMeasurements::of(&record))]), ["bulk 555.0 Mb/s"]);
        assert!(screen.results(&vec![None]).is_empty());
    }

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let privilege = |behind, left| PlanProgress {
            done: 1,
            of: 2,
            behind: Span::from_secs(behind),
            left: Span::from_secs(left),
        };
        assert_eq!(left(privilege(0, 90), Span::from_secs(3)), Span::from_secs(90), "nothing is known yet");
        assert_eq!(
            left(privilege(30, 90), Span::from_secs(15)),
            Span::from_secs(45),
            "twice as fast as reckoned"
        );
    }
}
