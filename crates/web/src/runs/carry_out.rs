//! The thread that carries out the runs, one after the other.

use std::sync::{Arc, PoisonError};

use linerate_archive::Store;
use linerate_control::{CANCELLED, OwnRunTurn, Sink};
use linerate_model::Outcome;
use linerate_runner::{ArchiveSink, ArchiveWarning, Loopback, archive_to_read};
use linerate_sock::clock;
use linerate_sock::thread::locked;

use super::{KEY_LIFETIME, MAX_ENDED, POLL_INTERVAL, RunQueue, RunQueueState, WebRun, WebRunState};
use crate::live::{End, LivePlan, LiveRun, LiveSink, PlanWatcher, WebLive};
use crate::plan_request::{PlanTask, not_run};
use crate::problem::{HttpProblem, INTERNAL};
use crate::run_request::TestTask;
use crate::web_task::WebTask;

/// How a run ended, and why.
type RunEnding = (Outcome, Option<String>);

/// What visitors read of a warning, which names paths of this host.
fn not_archived(warning: &ArchiveWarning) -> String {
    tracing::warn!(%warning, "a run of a page was not archived");
    "the last run was not archived; the log of the server says why".to_owned()
}

impl RunQueue {
    /// Carries out one run after the other until the queue is stopped.
    pub(crate) fn work(&self) {
        while let Some(run) = self.next() {
            let (outcome, reason) = self.carry_out(&run);
            let mut state = locked(&self.state);
            state.running = None;
            self.end(&mut state, &run, outcome, reason);
        }
        let mut state = locked(&self.state);
        while let Some(run) = state.waiting.pop_front() {
            self.end(&mut state, &run, Outcome::Interrupted, Some("the server was stopped".to_owned()));
        }
    }

    /// Waits for the next run that may begin; absent when the queue is stopped.
    fn next(&self) -> Option<Arc<WebRun>> {
        let mut state = locked(&self.state);
        loop {
            if state.stopping {
                return None;
            }
            if let Some(run) = state.waiting.front().cloned() {
                if !locked(&run.progress).is_compared {
                    // A name may take seconds to resolve, in which others must be able to wait and cancel.
                    drop(state);
                    self.leave_if_own_server(&run);
                    state = locked(&self.state);
                    continue;
                }
                match run.turn(&self.own_runs) {
                    Ok(OwnRunTurn::Now) => {
                        state.waiting.pop_front();
                        let has_place = {
                            let mut progress = locked(&run.progress);
                            progress.state = WebRunState::Running;
                            progress.began = Some(clock::now());
                            progress.place.is_some()
                        };
                        for waiting in state.waiting.iter().filter(|_| !has_place) {
                            locked(&waiting.progress).place = None;
                        }
                        state.running = Some(Arc::clone(&run));
                        self.publish(&state);
                        return Some(run);
                    }
                    Ok(OwnRunTurn::Later { .. }) => {}
                    Err(error) => {
                        state.waiting.pop_front();
                        self.end(&mut state, &run, Outcome::Failed, Some(error.to_string()));
                        continue;
                    }
                }
            }
            let wait = if state.waiting.is_empty() { KEY_LIFETIME } else { POLL_INTERVAL };
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A test against the server of this program takes its place there, as that server's client.
    fn leave_if_own_server(&self, run: &WebRun) {
        let own = run.task.is_against_server(self.own_runs.port());
        let mut progress = locked(&run.progress);
        progress.is_compared = true;
        if own {
            (progress.place, progress.needs_place) = (None, false);
        }
    }

    /// Measures; how the run ended and why.
    fn carry_out(&self, run: &WebRun) -> (Outcome, Option<String>) {
        let mut archive =
            match ArchiveSink::open(self.archive.location(), |warning| drop(not_archived(&warning))) {
                Ok(sink) => Some(sink),
                Err(warning) => {
                    self.archive.set_write_trouble(Some(not_archived(&warning)));
                    None
                }
            };
        let sink = archive.as_mut();
        let ended = match (&run.task, &run.live) {
            (WebTask::Test(test), WebLive::Test(live)) => measure(run, test, live, sink),
            (WebTask::Plan(plan), WebLive::Plan(live)) => self.carry_out_plan(run, plan, live, sink),
            _ => Err(HttpProblem::new(INTERNAL, "the run is shown as another kind of run")),
        };
        if let Some(sink) = &mut archive {
            let closed = sink.close();
            self.archive.set_write_trouble(match closed {
                Ok(true) => None,
                Ok(false) => Some("the last run was not archived".to_owned()),
                Err(warning) => Some(not_archived(&warning)),
            });
        }
        match ended {
            Ok(ending) => ending,
            Err(problem) => {
                let (outcome, reason) = not_begun(run, problem);
                (outcome, Some(reason))
            }
        }
    }

    fn carry_out_plan(
        &self,
        run: &WebRun,
        plan: &PlanTask,
        live: &LivePlan,
        mut archive: Option<&mut ArchiveSink>,
    ) -> Result<RunEnding, HttpProblem> {
        let open = || archive_to_read(self.archive.location()).map(|found| Box::new(found) as Box<dyn Store>);
        let prepared = plan.prepare(&run.id, &open)?;
        let world = plan.open_world(&self.plan_setup)?;
        let record = match prepared.run(world, &run.cancel, sinks(&mut archive), &mut PlanWatcher(live)) {
            Ok(record) => record,
            // Its visitor may have gone: it is in the history, as every other run that was started.
            Err(error) => {
                let (outcome, reason) = not_begun(run, not_run(error));
                prepared.note_not_begun(outcome, &reason, sinks(&mut archive)).map_err(not_run)?;
                return Ok((outcome, Some(reason)));
            }
        };
        let reason = record.reason.as_ref().map(ToString::to_string);
        Ok((record.outcome.unwrap_or(Outcome::Failed), reason))
    }

    pub(super) fn end(
        &self,
        state: &mut RunQueueState,
        run: &Arc<WebRun>,
        outcome: Outcome,
        reason: Option<String>,
    ) {
        let reason = {
            let mut progress = locked(&run.progress);
            progress.state = WebRunState::Ended;
            progress.place = None;
            if progress.problem.is_none() && outcome != Outcome::Completed {
                progress.problem = reason;
            }
            progress.problem.clone()
        };
        if state.ended.len() >= MAX_ENDED {
            state.ended.pop_front();
        }
        state.ended.push_back(Arc::clone(run));
        self.publish(state);
        run.live.end(&End { outcome, reason });
    }
}

fn sinks<'a>(archive: &'a mut Option<&mut ArchiveSink>) -> Vec<&'a mut dyn Sink> {
    archive.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect()
}

/// The end of a run that could not begin.
fn not_begun(run: &WebRun, problem: HttpProblem) -> (Outcome, String) {
    match run.cancel.is_cancelled() {
        // What was interrupted by it may say so in other words.
        true => (Outcome::Interrupted, CANCELLED.to_owned()),
        false => (Outcome::Failed, problem.detail),
    }
}

/// Carries out a test.
fn measure(
    run: &WebRun,
    test: &TestTask,
    live: &LiveRun,
    archive: Option<&mut ArchiveSink>,
) -> Result<RunEnding, HttpProblem> {
    let failed = |error: &dyn ToString| HttpProblem::new(INTERNAL, error.to_string());
    let loopback = test.is_loopback().then(Loopback::start).transpose().map_err(|e| failed(&e))?;
    let port = loopback.as_ref().map(Loopback::port);
    let mut measurement = test.measurement(&run.id, port).map_err(|e| failed(&e))?;
    measurement.calibration = linerate_runner::calibration::stored().ok().flatten();
    let mut live = LiveSink(live);
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut live];
    sinks.extend(archive.map(|sink| sink as &mut dyn Sink));
    let measured = measurement.run(&run.cancel, sinks, &mut |_| None);
    Ok(match measured.outcome {
        Ok(outcome) => (outcome, measured.record.reason.as_ref().map(ToString::to_string)),
        Err(error) => (measured.record.outcome.unwrap_or(Outcome::Failed), Some(error.to_string())),
    })
}
