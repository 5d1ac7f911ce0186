//! Progress output of a plan: one live line on a terminal, one line per trial elsewhere.

use std::time::Duration;

use linerate_control::RunEvent;
use linerate_report::{PlanLive, PlanUpdate};
use linerate_runner::plan::{PlanNotice, PlanObserver, TrialBegin, TrialResult};
use linerate_sock::{Mono, clock};

use crate::{print, terminal};

/// Shortest interval between two updates of the live line.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The progress output.
pub(super) struct PlanScreen {
    silent: bool,
    watched: bool,
    shown: bool,
    next: Mono,
    live: PlanLive,
}

impl PlanScreen {
    pub(super) fn new(silent: bool) -> Self {
        let live = PlanLive::default();
        Self { silent, watched: terminal::watched(), shown: false, next: Mono(0), live }
    }

    fn show(&mut self, now: bool) {
        if self.silent || !self.watched || (!now && !self.next.has_passed()) {
            return;
        }
        self.next = clock::now() + REDRAW_INTERVAL;
        print::live(&self.live.line(terminal::stderr_width().saturating_sub(1)));
        self.shown = true;
    }

    /// Removes the live line.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            print::live("");
        }
    }
}

impl PlanObserver for PlanScreen {
    fn trial_begins(&mut self, trial: &TrialBegin<'_>) {
        self.live.begin(trial.task, trial.plan, trial.progress, trial.elapsed);
        self.show(true);
    }

    fn run_event(&mut self, event: &RunEvent<'_>) {
        match self.live.on(event.flow, event.body) {
            PlanUpdate::Nothing => {}
            update => self.show(update == PlanUpdate::Stage),
        }
    }

    /// Prints one line for the trial unless a live line is shown.
    fn trial_ends(&mut self, ended: &TrialResult<'_>) {
        let trial = self.live.end(ended.task, ended.figures, ended.record, ended.progress);
        if !self.silent && !self.watched {
            trial.into_iter().for_each(print::note);
        }
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
