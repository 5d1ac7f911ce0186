//! A running plan for many viewers.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Bytes;
use linerate_control::RunEvent;
use linerate_model::ForeignText;
use linerate_report::{EndedTrial, PlanFrame, PlanLive, PlanUpdate};
use linerate_runner::plan::{PlanNotice, PlanObserver, TrialBegin, TrialResult};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use linerate_units::Span;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use super::{Message, message};

/// Shortest time between two frames.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// Ended trials that a new viewer sees, and remarks.
const MAX_TRIALS: usize = 200;
const MAX_REMARKS: usize = 20;

/// What a viewer of a plan gets first, and after each trial.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanSnapshot {
    /// The latest state.
    frame: PlanFrame,
    /// The trials that ended last, at most 200, in their order.
    trials: Vec<EndedTrial>,
    /// What makes results doubtful, or was left on a host.
    remarks: Vec<ForeignText>,
    /// The name of the emulated network in which it measures, while that is up: see `watchLab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    lab: Option<String>,
}

/// A plan that viewers watch.
#[derive(Debug)]
pub(crate) struct LivePlan {
    state: Mutex<LivePlanState>,
    newest: watch::Sender<Message>,
}

#[derive(Debug, Default)]
struct LivePlanState {
    live: PlanLive,
    /// When the trial began.
    trial_began: Option<Mono>,
    trials: VecDeque<EndedTrial>,
    remarks: Vec<ForeignText>,
    lab: Option<String>,
    /// When the last frame was sent.
    sent: Option<Mono>,
}

impl LivePlanState {
    fn frame(&self, now: Mono) -> PlanFrame {
        let since = self.trial_began.map_or(Duration::ZERO, |began| now.since(began));
        self.live.frame(Span::from(since))
    }
}

impl LivePlan {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), newest: watch::Sender::new(Message::default()) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Message> {
        self.newest.subscribe()
    }

    pub(super) fn newest(&self) -> &watch::Sender<Message> {
        &self.newest
    }

    pub(super) fn snapshot(&self) -> Bytes {
        let state = locked(&self.state);
        let snapshot = PlanSnapshot {
            frame: state.frame(clock::now()),
            trials: state.trials.iter().cloned().collect(),
            remarks: state.remarks.clone(),
            lab: state.lab.clone(),
        };
        message("snapshot", None, &snapshot)
    }

    /// Changes the state, and shows it to viewers: as a frame, or as a snapshot if a frame does not have it all.
    fn change(&self, needs_snapshot: bool, change: impl FnOnce(&mut LivePlanState)) {
        let now = clock::now();
        let mut state = locked(&self.state);
        change(&mut state);
        let frame = message("frame", None, &state.frame(now));
        state.sent = Some(now);
        // The state is locked: whoever is told to take a snapshot finds this one or a newer one.
        self.newest.send_modify(|newest| {
            newest.frame = frame;
            newest.snapshots += u64::from(needs_snapshot);
        });
    }

    fn begin(&self, trial: &TrialBegin<'_>) {
        self.change(false, |state| {
            state.live.begin(trial.task, trial.plan, trial.progress, trial.elapsed);
            state.trial_began = Some(clock::now());
        });
    }

    fn end_trial(&self, trial: Option<EndedTrial>) {
        self.change(true, |state| {
            if state.trials.len() >= MAX_TRIALS {
                state.trials.pop_front();
            }
            state.trials.extend(trial);
            state.trial_began = None;
        });
    }

    fn remark(&self, text: &str) {
        self.change(true, |state| {
            if state.remarks.len() < MAX_REMARKS {
                state.remarks.push(text.into());
            }
        });
    }
}

/// Shows a plan to its viewers.
pub(crate) struct PlanWatcher<'a>(pub(crate) &'a LivePlan);

impl PlanObserver for PlanWatcher<'_> {
    fn trial_begins(&mut self, trial: &TrialBegin<'_>) {
        self.0.begin(trial);
    }

    fn run_event(&mut self, event: &RunEvent<'_>) {
        let mut state = locked(&self.0.state);
        let shows = match state.live.on(event.flow, event.body) {
            PlanUpdate::Nothing => false,
            PlanUpdate::Figures => state.sent.is_none_or(|sent| clock::now().since(sent) >= MIN_INTERVAL),
            PlanUpdate::Stage => true,
        };
        drop(state);
        if shows {
            self.0.change(false, |_| ());
        }
    }

    fn trial_ends(&mut self, ended: &TrialResult<'_>) {
        let (task, figures, record) = (ended.task, ended.figures, ended.record);
        let trial = locked(&self.0.state).live.end(task, figures, record, ended.progress);
        self.0.end_trial(trial);
    }

    fn lab(&mut self, name: Option<&str>) {
        self.0.change(true, |state| state.lab = name.map(str::to_owned));
    }

    fn notice(&mut self, notice: &PlanNotice) {
        match notice {
            // They concern whoever runs this host.
            PlanNotice::KilledLab(_) | PlanNotice::LabKept(_) => tracing::info!(%notice, "a plan of a page"),
            PlanNotice::LabLeft { .. } => tracing::error!(%notice, "a plan of a page"),
            _ => self.0.remark(&notice.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Body;
    use linerate_runner::plan::{Plan, PlanProgress, TrialTask, read_without_files};
    use linerate_units::Timestamp;
    use serde_json::Value;

    fn data(message: &Bytes) -> Value {
        let text = String::from_utf8(message.to_vec()).unwrap();
        serde_json::from_str(text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap()
    }

    fn trial(number: usize) -> EndedTrial {
        EndedTrial {
            number,
            position: number,
            of: 1000,
            trial: format!("window={number}").into(),
            result: "bulk 10.0 Mb/s".into(),
            measured: true,
            goodputs: Vec::new(),
        }
    }

    #[test]
    fn viewers_are_told_of_every_trial_and_of_no_more_than_fit() {
        let plan = LivePlan::new();
        let mut viewer = plan.subscribe();
        (1..=MAX_TRIALS + 3).for_each(|number| plan.end_trial(Some(trial(number))));
        // A viewer that has missed all of them knows that there is more than the newest frame says.
        assert_eq!(viewer.borrow_and_update().snapshots, MAX_TRIALS as u64 + 3);
        let seen = data(&plan.snapshot());
        let trials = seen["trials"].as_array().unwrap();
        assert_eq!((trials.len(), &trials[0]["number"]), (MAX_TRIALS, &Value::from(4)));
        assert_eq!(seen["frame"]["of"], 0, "no trial has begun");
        let snapshots = viewer.borrow().snapshots;
        plan.change(false, |_| ());
        assert!(viewer.has_changed().unwrap());
        assert_eq!(viewer.borrow_and_update().snapshots, snapshots, "a frame has it all");
    }

    #[test]
    fn that_a_trial_waits_is_shown_though_a_frame_was_just_sent() {
        let plan = LivePlan::new();
        let task = TrialTask { point: two_points().point(0).unwrap(), repeat: 1, step: None };
        let progress = PlanProgress::default();
        plan.begin(&TrialBegin { task: &task, plan: &two_points(), progress, elapsed: Span::ZERO });
        let body = Body::Queued { position: 1, wait: Span::ZERO };
        let event = RunEvent { flow: 0, at: Timestamp::START, host: 0, body: &body };
        PlanWatcher(&plan).run_event(&event);
        let frame = data(&plan.subscribe().borrow().frame);
        assert_eq!(frame["flows"][0]["position"], 1, "{frame}");
    }

    fn two_points() -> Plan {
        let text = "[lab]\ntopology = \"pair\"\n[test]\nduration = 1\n[axis]\nstreams = [1, 2]\n";
        read_without_files(text, &[]).unwrap()
    }

    #[test]
    fn the_network_of_a_plan_is_named_while_it_is_up() {
        let plan = LivePlan::new();
        let mut watcher = PlanWatcher(&plan);
        assert_eq!(data(&plan.snapshot()).get("lab"), None);
        watcher.lab(Some("plan-1"));
        assert_eq!(data(&plan.snapshot())["lab"], "plan-1");
        watcher.lab(None);
        assert_eq!(data(&plan.snapshot()).get("lab"), None);
        assert_eq!(plan.subscribe().borrow().snapshots, 2, "viewers are told");
    }

    #[test]
    fn remarks_are_cleaned_and_bounded() {
        let plan = LivePlan::new();
        (0..30).for_each(|_| plan.remark("\u{1b}[31mred"));
        let remarks = data(&plan.snapshot())["remarks"].clone();
        assert_eq!(remarks.as_array().unwrap().len(), MAX_REMARKS);
        assert!(!remarks[0].as_str().unwrap().contains('\u{1b}'), "{remarks}");
    }
}
