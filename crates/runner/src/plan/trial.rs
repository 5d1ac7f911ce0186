//! One trial of a plan: the request to the hosts, and its results.

use linerate_control::{After, FlowEnd, FlowJob, Log, PlanLog, RunEvent, RunGroup, RunServer};
use linerate_model::{Body, EVENT_SCHEMA, GroupPlace, Outcome, PlanPlace, RunStart, TrialRun, World};
use linerate_plan::{RunMeasurements, TrialFigures, TrialTask, counts};
use linerate_units::Span;

use super::drive::Drive;
use super::error::PlanRunError;
use super::observer::TrialBegin;
use crate::{now, run_name};

/// How much longer cross traffic would last than the flows that it accompanies.
const CROSS_TRAFFIC_MARGIN: Span = Span::from_secs(30);

/// The same if the end of these flows depends on the network.
const UNKNOWN_END: Span = Span::from_secs(3600);

impl Drive<'_, '_> {
    pub(super) fn group(&self, task: &TrialTask, run: &str) -> RunGroup {
        let plan = &self.prepared.plan;
        let at = |name: &str| self.names.iter().position(|known| known == name).unwrap_or(usize::MAX);
        let slots = plan.schedule(&task.point);
        // Flows that the point leaves out are not waited for.
        let place = |name: &String| task.point.tests.iter().position(|test| test.flow == *name);
        let after = |flow: &linerate_plan::Flow| After {
            flows: flow.after.iter().filter_map(place).collect(),
            pause: flow.at,
        };
        let flow = |(test, slot): (&linerate_plan::PointFlow, &linerate_plan::FlowTiming)| {
            let mut spec = test.spec.clone();
            if test.cross_traffic {
                // Cross traffic must not end before the others. Its plan sets nothing else that could end it.
                let others = slot.end.map_or(UNKNOWN_END, |end| end.saturating_sub(slot.start));
                spec.traffic.duration = Some(others + CROSS_TRAFFIC_MARGIN);
            }
            let place = PlanPlace {
                run: run.into(),
                point: task.point.id.to_string().into(),
                repeat: task.repeat.saturating_sub(1),
                flow: test.flow.clone().into(),
            };
            FlowJob {
                from: at(&test.from),
                to: RunServer::Host(at(&test.to)),
                spec,
                start_after: slot.start,
                after: plan.flow(&test.flow).map(after).filter(|after| !after.flows.is_empty()),
                cross_traffic: test.cross_traffic,
                plan: Some(place),
            }
        };
        RunGroup {
            name: Some(format!("{} {} trial {}", plan.name, task.point.id, task.repeat)),
            started_at: now(),
            start_by: None,
            flows: task.point.tests.iter().zip(&slots).map(flow).collect(),
        }
    }

    /// The trial that directly follows this one, on the same network with the same settings.
    fn following(&self, task: &TrialTask) -> Option<TrialTask> {
        if self.sets_hosts || self.prepared.plan.pause > Span::ZERO {
            return None;
        }
        self.scheduler.following().filter(|next| next.point.lab == task.point.lab)
    }

    /// Runs one trial; returns its runs and their results.
    pub(super) fn trial(
        &mut self,
        task: &TrialTask,
        plan_log: &PlanLog<'_>,
    ) -> (Vec<TrialRun>, TrialFigures) {
        let group = self.group(task, plan_log.run());
        let next = self.following(task).map(|task| self.group(&task, plan_log.run()));
        self.observer.trial_begins(&TrialBegin {
            task,
            plan: &self.prepared.plan,
            progress: self.scheduler.progress(),
            elapsed: plan_log.session_time(),
        });
        // Without random numbers, the position in the plan's log makes the name unique.
        let at = plan_log.record().events;
        let name = |flow| run_name().unwrap_or_else(|_| format!("{}{at:08x}{flow:04x}", plan_log.run()));
        let names: Vec<String> = (0..group.flows.len()).map(name).collect();
        let mut logs: Vec<Log<'_>> =
            names.iter().map(|name| Log::owning(name.clone(), self.sinks.for_a_log())).collect();
        let (observer, stop) = (&mut *self.observer, self.cancel.flag());
        let mut on = |event: &RunEvent<'_>| observer.run_event(event);
        let ran = match &mut self.coordinator {
            Some(coordinator) => coordinator.run_before(&group, next.as_ref(), &mut logs, stop, &mut on),
            None => Err(Vec::new()),
        };
        let ends = ran.unwrap_or_else(|troubles| {
            let why = PlanRunError::Hosts(troubles).to_string();
            logs.iter_mut().zip(&group.flows).map(|(log, job)| not_begun(log, job, &group, &why)).collect()
        });
        let mut runs = Vec::new();
        let plan = &self.prepared.plan;
        let mut figures: TrialFigures = plan.flows.iter().map(|_| None).collect();
        for (((log, end), test), run) in logs.into_iter().zip(ends).zip(&task.point.tests).zip(names) {
            let begun = end.start.is_some() || end.outcome == Outcome::Completed;
            let trial_run = TrialRun {
                flow: test.flow.clone().into(),
                run: run.into(),
                outcome: end.outcome,
                reason: end.reason.map(Into::into),
                began: begun.then(|| plan_log.time_of(log.epoch())).flatten(),
                start_error: end.start.map(|start| start.start_error),
                clock_error: end.start.map(|start| start.clock_error),
            };
            if let Some(at) = plan.flows.iter().position(|flow| flow.name == test.flow)
                && let Some(figures) = figures.get_mut(at)
            {
                *figures = counts(&trial_run).then(|| RunMeasurements::of(&log.into_record()));
            }
            runs.push(trial_run);
        }
        (runs, figures)
    }
}

/// A run that could not start is still logged, with the reason.
fn not_begun(log: &mut Log<'_>, job: &FlowJob, group: &RunGroup, why: &str) -> FlowEnd {
    log.note(Body::Grouped(GroupPlace {
        group: group.name.clone().unwrap_or_default().into(),
        start_after: job.start_after,
        cross_traffic: job.cross_traffic,
        plan: job.plan.clone(),
    }));
    log.note(Body::RunStarted(Box::new(RunStart {
        schema: EVENT_SCHEMA.into(),
        started_at: group.started_at.clone().into(),
        world: World::Hosts,
        linerate: env!("CARGO_PKG_VERSION").into(),
        target: "".into(),
        spec: job.spec.clone(),
    })));
    log.note(Body::RunEnded { outcome: Outcome::Failed, reason: Some(why.into()) });
    FlowEnd { outcome: Outcome::Failed, reason: Some(why.to_owned()), start: None }
}
