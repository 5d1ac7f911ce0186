//! Execution of a plan from its first trial to its last.

use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_archive::Store;
use linerate_control::{Coordinator, HostError as HostTrouble, HostRef, PlanLog, TestBed};
use linerate_model::{
    Body, Caveat, CaveatKind, MethodTable, Outcome, PlanRecord, RunRecord, TrialEnd, World,
};
use linerate_plan::{Figures, Opening, PlanScheduler, Point, Task, TrialFigures, counts, judgements, tables};
use linerate_sock::clock;
use linerate_units::Span;

use super::claim::Claim;
use super::lab::LabWorld;
use super::prepare::Prepared;
use super::screen::Screen;
use super::sinks::Sinks;
use super::{RunArgs, RunError, hosts, outcome};
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;
use linerate_runner::{now, run_name};

/// Number of consecutive trials without any measurement after which the plan ends, as the hosts are probably
/// gone.
const MAX_EMPTY_TRIALS: u32 = 3;

/// Clock error above which a synchronized start is doubtful.
const COARSE_CLOCK: Span = Span::from_ms(1);

/// Interval of checks for a signal during a pause.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How the hosts are reached.
enum HostsSource {
    Hosts(Vec<HostRef>),
    Lab(Box<LabWorld>),
}

/// A running plan.
pub(super) struct Drive<'a> {
    args: &'a RunArgs,
    pub(super) prepared: &'a Prepared,
    pub(super) signals: &'a Signals,
    pub(super) sinks: &'a Sinks,
    pub(super) scheduler: PlanScheduler<'a>,
    place: HostsSource,
    pub(super) coordinator: Option<Coordinator>,
    /// Names of the test bed's hosts, in its order.
    pub(super) names: Vec<String>,
    pub(super) screen: Screen,
    in_vain: u32,
    /// Whether the plan changes settings of hosts.
    pub(super) sets_hosts: bool,
}

/// Runs the plan, prints the result, and returns the exit code.
pub(super) fn drive(args: &RunArgs, prepared: &Prepared, signals: &Signals) -> Result<Exit, RunError> {
    let record = match &prepared.before {
        Some(record) => record.clone(),
        None => PlanRecord { run: run_name().map_err(RunError::failed)?.into(), ..PlanRecord::default() },
    };
    let _claim = Claim::acquire(&record.run)?;
    let sinks = Sinks::open(args);
    let mut drive = Drive {
        args,
        prepared,
        signals,
        sinks: &sinks,
        scheduler: scheduler(args, prepared)?,
        place: match prepared.world {
            World::Lab => HostsSource::Lab(Box::new(LabWorld::new(args, &prepared.plan, &record.run)?)),
            _ => HostsSource::Hosts(hosts::hosts(args, &prepared.plan)?),
        },
        coordinator: None,
        names: prepared.plan.used_hosts().map(|host| host.name.clone()).collect(),
        screen: Screen::new(args.quiet || args.json || args.json_stream),
        in_vain: 0,
        sets_hosts: false,
    };
    let mut outlets = sinks.for_a_log();
    let outlets = outlets.iter_mut().map(|sink| &mut **sink as &mut dyn linerate_control::Sink).collect();
    let mut log = PlanLog::resume(record, outlets);
    let ended = drive.carry_out(&mut log);
    drive.end();
    ended?;
    let record = log.into_record();
    let kept = sinks.close().then(|| record.run.chars().take(8).collect());
    let printed = outcome::print(args, &record, kept);
    Ok(match (record.outcome, printed) {
        (Some(Outcome::Interrupted), _) => Exit::Interrupted(signals.which().unwrap_or(2)),
        (Some(Outcome::Completed), Exit::Done) if !sinks.streamed() => Exit::Failed,
        (Some(Outcome::Completed), Exit::Done) if record.judgements.iter().any(|one| !one.holds) => {
            Exit::Broken
        }
        (Some(Outcome::Completed), exit) => exit,
        _ => Exit::Failed,
    })
}

fn scheduler<'a>(args: &RunArgs, prepared: &'a Prepared) -> Result<PlanScheduler<'a>, RunError> {
    let Some(record) = &prepared.before else {
        return PlanScheduler::new(&prepared.plan).map_err(RunError::usage);
    };
    let archive = super::super::archived::archive(&args.archive).map_err(RunError::failed)?;
    let mut figures = |trial: &TrialEnd| -> TrialFigures {
        let of_flow = |flow: &linerate_plan::Flow| {
            let run = trial.runs.iter().find(|run| run.flow == flow.name).filter(|run| counts(run))?;
            let events = archive.events(&run.run).ok()?;
            Some(Figures::of(&RunRecord::fold(&events)))
        };
        prepared.plan.flows.iter().map(of_flow).collect()
    };
    PlanScheduler::resume(&prepared.plan, record, &mut figures).map_err(RunError::usage)
}

impl Drive<'_> {
    /// Runs the remaining trials. Returns only errors from before the start of the log; later ones are in the
    /// log.
    fn carry_out(&mut self, log: &mut PlanLog<'_>) -> Result<(), RunError> {
        let mut task = self.scheduler.next_task().map_err(RunError::usage)?;
        let mut doubts = Vec::new();
        if let Some(first) = &task {
            self.make_ready(&first.point)?;
            doubts = self.check()?;
            self.sets_hosts = self.check_settings()?;
        }
        self.open(log)?;
        for (kind, text) in doubts {
            print::warning(&text);
            log.note(Body::Caveat { flow: None, caveat: Caveat { kind, text: text.into() } });
        }
        let mut trouble = None;
        let mut first = true;
        while let Some(next) = task {
            if self.is_stopped() || (!std::mem::take(&mut first) && !self.pause()) {
                break;
            }
            if let Err(why) = self.make_ready(&next.point).and_then(|()| self.apply_settings(&next.point)) {
                trouble = Some(why.text());
                break;
            }
            let (runs, figures) = self.trial(&next, log);
            let nothing = !runs.iter().any(counts);
            self.in_vain = if nothing { self.in_vain + 1 } else { 0 };
            let results = self.screen.results(&figures);
            for body in self.scheduler.done(&next, runs, figures) {
                log.note(body);
            }
            self.screen.end_trial(&next, log.record(), &results);
            if self.in_vain >= MAX_EMPTY_TRIALS && !self.is_stopped() {
                trouble = Some(format!("nothing was measured in {MAX_EMPTY_TRIALS} trials in a row"));
                break;
            }
            task = self.scheduler.next_task().map_err(RunError::usage)?;
        }
        self.close(log, trouble)
    }

    fn open(&self, log: &mut PlanLog<'_>) -> Result<(), RunError> {
        let resumes = log.record().start.clone();
        let opening = Opening {
            started_at: resumes.as_ref().map_or_else(now, |start| start.started_at.to_string()),
            world: self.prepared.world,
            linerate: env!("CARGO_PKG_VERSION").to_owned(),
            set: self.prepared.set.clone(),
        };
        let start = self.prepared.plan.open(opening).map_err(RunError::usage)?;
        if resumes.is_some() {
            log.note(Body::PlanResumed);
        }
        if resumes.as_ref() != Some(&start) {
            log.note(Body::PlanStarted(Box::new(start)));
        }
        Ok(())
    }

    /// Computes the results of all points and ends the log.
    fn close(&mut self, log: &mut PlanLog<'_>, trouble: Option<String>) -> Result<(), RunError> {
        let summaries = self.scheduler.sum().map_err(RunError::usage)?;
        let missing = self.scheduler.is_missing_any();
        let stopped = self.is_stopped() && missing;
        let judged = match stopped {
            // Assertions cannot be evaluated on an incomplete plan.
            true => Vec::new(),
            false => judgements(&self.prepared.plan, &summaries, &self.prepared.others),
        };
        summaries.into_iter().for_each(|summary| log.note(Body::PointSummed(summary)));
        for table in self.tables(log.record()) {
            log.note(Body::MethodTable(table));
        }
        judged.into_iter().for_each(|judgement| log.note(Body::Judged(judgement)));
        let (outcome, reason) = match (stopped, trouble, missing) {
            (true, ..) => (Outcome::Interrupted, Some("stopped by a signal".to_owned())),
            (_, Some(trouble), _) => (Outcome::Failed, Some(trouble)),
            (_, None, true) => (Outcome::Failed, Some("some trials failed".to_owned())),
            (_, None, false) => (Outcome::Completed, None),
        };
        log.note(Body::RunEnded { outcome, reason: reason.map(Into::into) });
        Ok(())
    }

    /// The results as tables of the plan's method.
    fn tables(&self, record: &PlanRecord) -> Vec<MethodTable> {
        let archive = super::super::archived::archive(&self.args.archive).ok();
        let find = |run: &str| Some(RunRecord::fold(&archive.as_ref()?.events(run).ok()?));
        tables(&self.prepared.plan, record, &find)
    }

    fn is_stopped(&self) -> bool {
        self.signals.stop().load(Ordering::Relaxed)
    }

    /// Waits between two trials; false if a signal arrived.
    fn pause(&mut self) -> bool {
        if self.sets_hosts
            && let Some(coordinator) = &mut self.coordinator
        {
            coordinator.wait(self.prepared.plan.pause, self.signals.stop());
            return !self.is_stopped();
        }
        // Lets the servers measure other clients meanwhile.
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| self.prepared.plan.pause > Span::ZERO)
        {
            coordinator.release_places();
        }
        let until = clock::now() + self.prepared.plan.pause.as_duration();
        while !until.has_passed() && !self.is_stopped() {
            clock::sleep_until(until.min(clock::now() + POLL_INTERVAL));
        }
        !self.is_stopped()
    }

    /// Configures the network as the point requires, and connects to its hosts.
    fn make_ready(&mut self, point: &Point) -> Result<(), RunError> {
        let fresh = match (&mut self.place, &point.lab) {
            (HostsSource::Lab(world), Some(lab)) => {
                let coordinator = &mut self.coordinator;
                world.reconfigure_for(lab, &mut || {
                    if let Some(old) = coordinator.take() {
                        old.finish();
                    }
                })?
            }
            (HostsSource::Hosts(hosts), _) if self.coordinator.is_none() => Some(hosts.clone()),
            _ => None,
        };
        let Some(hosts) = fresh else { return Ok(()) };
        let bed = TestBed { name: format!("plan {}", self.prepared.plan.name), hosts };
        let connected =
            Coordinator::connect(bed, self.signals.stop()).map_err(|troubles| host_errors(&troubles))?;
        self.coordinator = Some(connected);
        Ok(())
    }

    /// Checks before the first packet that the hosts support everything in the plan; returns what makes its
    /// results doubtful.
    fn check(&self) -> Result<Vec<(CaveatKind, String)>, RunError> {
        let Some(coordinator) = &self.coordinator else { return Ok(Vec::new()) };
        let mut troubles: Vec<HostTrouble> = Vec::new();
        for number in 0..self.prepared.plan.grid.len() {
            let point = self.prepared.plan.point(number).map_err(RunError::usage)?;
            let task = Task { point, repeat: 1, step: None };
            for trouble in coordinator.check(&self.group(&task, "")) {
                if !troubles.contains(&trouble) {
                    troubles.push(trouble);
                }
            }
        }
        if !troubles.is_empty() {
            return Err(host_errors(&troubles));
        }
        let mut doubts = Vec::new();
        for (privilege, name) in coordinator.standings().iter().zip(&self.names) {
            let Some(privilege) = privilege else { continue };
            if privilege.host.linerate != env!("CARGO_PKG_VERSION") {
                let (theirs, ours) = (&privilege.host.linerate, env!("CARGO_PKG_VERSION"));
                let text = format!(
                    "{name} has linerate {theirs}, but this is {ours}; install the same version on \
                             all hosts"
                );
                doubts.push((CaveatKind::ConcurrentRun, text));
            }
            if privilege.offset_error > COARSE_CLOCK {
                let text = format!(
                    "the clock of {name} is known only within {}: its flows may start earlier or later than \
                     others by that much",
                    privilege.offset_error
                );
                doubts.push((CaveatKind::OffsetUncertain, text));
            }
        }
        Ok(doubts)
    }

    /// Restores settings, disconnects and removes the emulated network.
    fn end(mut self) {
        self.screen.end();
        self.restore_settings();
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.finish();
        }
        if let HostsSource::Lab(world) = self.place {
            world.end();
        }
    }
}

pub(super) fn host_errors(troubles: &[HostTrouble]) -> RunError {
    let mut lines: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    if lines.is_empty() {
        lines.push("no host is connected".to_owned());
    }
    RunError { lines, exit: Exit::Usage }
}
