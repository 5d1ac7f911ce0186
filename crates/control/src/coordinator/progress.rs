//! The progress of one run of a group.

use linerate_model::Outcome;
use linerate_model::flow::FlowId;
use linerate_proto::agent::{AgentInput, JobEnd};
use linerate_units::Timestamp;

use super::group::{FlowEnd, FlowStart, RunningGroup};
use crate::{flow_log, judge};

/// The state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunState {
    /// Not requested yet.
    #[default]
    Waiting,
    /// Its agent is opening the sockets.
    Preparing,
    /// Ready to start.
    Ready,
    /// Its agent has the start time.
    Started,
    /// Ended.
    Over,
}

/// A run of a group.
#[derive(Debug, Default)]
pub(super) struct RunProgress {
    pub(super) stage: RunState,
    /// Its job number at its agent.
    pub(super) job: Option<u32>,
    /// The origin of its own time, on the coordinator's clock.
    pub(super) epoch: Option<Timestamp>,
    pub(super) start: Option<FlowStart>,
    /// The start time sent to its agent, on the coordinator's clock.
    pub(super) sent_start: Option<Timestamp>,
    /// When it ended, on the coordinator's clock.
    pub(super) ended: Option<Timestamp>,
    /// The outcome to report, set when the coordinator ends the run.
    stopped_as: Option<(Outcome, &'static str)>,
    end: Option<(Outcome, Option<String>)>,
}

impl RunProgress {
    pub(super) fn is_over(&self) -> bool {
        self.stage == RunState::Over
    }

    pub(super) fn prepare(&mut self, job: u32) {
        self.stage = RunState::Preparing;
        self.job = Some(job);
    }

    pub(super) fn is_ready(&mut self) {
        if self.stage == RunState::Preparing {
            self.stage = RunState::Ready;
        }
    }

    /// Marks a ready run as started; returns its job number, once.
    pub(super) fn start_now(&mut self) -> Option<u32> {
        let starts = self.stage == RunState::Ready && self.stopped_as.is_none();
        starts.then(|| self.stage = RunState::Started)?;
        self.job
    }

    /// The outcome of a run that its agent reports as ended.
    pub(super) fn judge_end(&self, end: JobEnd) -> (Outcome, Option<String>) {
        match (end.outcome, self.stopped_as) {
            (Outcome::Interrupted, Some((Outcome::Completed, _))) => (Outcome::Completed, None),
            (Outcome::Interrupted, Some((outcome, why))) => (outcome, Some(why.to_owned())),
            (Outcome::Interrupted, None) => {
                let why = "its agent ended it: it was not ready in time, as when it waits in the queue of a busy \
                           server, or not started in time, or is being stopped";
                (Outcome::Failed, Some(why.to_owned()))
            }
            (outcome, _) => (outcome, end.reason.map(Into::into)),
        }
    }

    pub(super) fn end(&mut self, outcome: Outcome, reason: Option<String>, now: Timestamp) {
        self.stage = RunState::Over;
        self.ended = Some(now);
        self.end = Some((outcome, reason));
    }

    pub(super) fn take_end(&mut self) -> FlowEnd {
        let (outcome, reason) = self.end.take().unwrap_or((Outcome::Failed, None));
        FlowEnd { outcome, reason, start: self.start }
    }
}

impl RunningGroup<'_, '_> {
    /// Ends a run early, once, with this outcome.
    pub(super) fn stop_flow(&mut self, flow: usize, outcome: Outcome, why: &'static str) {
        let state = &mut self.flows[flow];
        if state.is_over() || state.stopped_as.is_some() {
            return;
        }
        state.stopped_as = Some((outcome, why));
        match (state.stage, state.job) {
            (RunState::Waiting, _) | (_, None) => {
                // A run that never began is not completed.
                let outcome = if outcome == Outcome::Completed { Outcome::Interrupted } else { outcome };
                self.end(flow, outcome, Some(why.to_owned()));
            }
            (_, Some(job)) => {
                let from = self.job(flow).from;
                self.ask(from, AgentInput::Stop { job });
            }
        }
    }

    /// Adds a caveat to the flows of a run whose agent is lost, and judges what was reported.
    pub(super) fn close_account(&mut self, flow: usize) {
        if self.flows[flow].is_over() {
            return;
        }
        let Some(log) = self.logs.get_mut(flow) else { return };
        let open = |flow: &&linerate_model::FlowRecord| flow.verdict.is_none();
        let open: Vec<FlowId> = log.record().flows.iter().filter(open).map(|flow| flow.plan.flow).collect();
        for number in open {
            flow_log::warn_partial(number, log);
            judge::judge(number, log);
        }
    }
}
