//! How far one run of a group is.

use linerate_model::Outcome;
use linerate_proto::agent::{Input, JobEnd};
use linerate_units::Timestamp;

use super::group::{FlowEnd, FlowStart, Run};
use crate::{flow_log, judge};

/// Where a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunState {
    /// Nobody was asked yet.
    #[default]
    Waiting,
    /// Its agent opens everything.
    Preparing,
    /// It can start.
    Ready,
    /// It was told when to start.
    Started,
    /// It has ended.
    Over,
}

/// A run of a group.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) stage: RunState,
    /// Its number at its agent.
    pub(super) job: Option<u32>,
    /// Where its own time begins, on the coordinator's clock.
    pub(super) epoch: Option<Timestamp>,
    pub(super) start: Option<FlowStart>,
    /// When it was told to begin, on the coordinator's clock.
    pub(super) told_start: Option<Timestamp>,
    /// When it had ended, on the coordinator's clock.
    pub(super) ended: Option<Timestamp>,
    /// How it shall be said to have ended, once it was told to end.
    told: Option<(Outcome, &'static str)>,
    end: Option<(Outcome, Option<String>)>,
}

impl Flow {
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

    /// The job to start, once.
    pub(super) fn start_now(&mut self) -> Option<u32> {
        let starts = self.stage == RunState::Ready && self.told.is_none();
        starts.then(|| self.stage = RunState::Started)?;
        self.job
    }

    /// What a run that its agent calls ended has come to.
    pub(super) fn judge_end(&self, end: JobEnd) -> (Outcome, Option<String>) {
        match (end.outcome, self.told) {
            (Outcome::Interrupted, Some((Outcome::Completed, _))) => (Outcome::Completed, None),
            (Outcome::Interrupted, Some((outcome, why))) => (outcome, Some(why.to_owned())),
            (Outcome::Interrupted, None) => {
                let why = "its agent ended it: it was not ready or not started in time, or is being stopped";
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

impl Run<'_, '_> {
    /// Ends a run early, once; it is then said to have ended like this.
    pub(super) fn stop_flow(&mut self, flow: usize, outcome: Outcome, why: &'static str) {
        let state = &mut self.flows[flow];
        if state.is_over() || state.told.is_some() {
            return;
        }
        state.told = Some((outcome, why));
        match (state.stage, state.job) {
            (RunState::Waiting, _) | (_, None) => {
                // What never began was not completed.
                let outcome = if outcome == Outcome::Completed { Outcome::Interrupted } else { outcome };
                self.end(flow, outcome, Some(why.to_owned()));
            }
            (_, Some(job)) => {
                let from = self.job(flow).from;
                self.ask(from, Input::Stop { job });
            }
        }
    }

    /// Closes the account of a run whose agent is gone: what was told is judged.
    pub(super) fn close_account(&mut self, flow: usize) {
        if self.flows[flow].is_over() {
            return;
        }
        let Some(log) = self.logs.get_mut(flow) else { return };
        let open = |flow: &&linerate_model::FlowRecord| flow.verdict.is_none();
        let open: Vec<u16> = log.record().flows.iter().filter(open).map(|flow| flow.plan.flow).collect();
        for number in open {
            flow_log::warn_partial(number, log);
            judge::judge(number, log);
        }
    }
}
