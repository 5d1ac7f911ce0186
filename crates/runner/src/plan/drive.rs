//! Execution of a plan from its first trial to its last.

use std::time::Duration;

use linerate_control::{
    CANCELLED, Coordinator, HostError, HostRef, PlanLog, ServerTrust, Sink, TestBed, Token,
};
use linerate_model::{
    Body, Caveat, CaveatKind, MethodTable, Outcome, PlanRecord, RunRecord, TrialEnd, World,
};
use linerate_plan::{
    Plan, PlanHeaderFacts, PlanScheduler, Point, RunMeasurements, TrialFigures, TrialTask, counts,
    judgements, tables,
};
use linerate_sock::clock;
use linerate_units::Span;

use super::claim::ResumeLock;
use super::error::{PlanRunError, WorldError};
use super::observer::{PlanNotice, PlanObserver, TrialResult};
use super::prepare::PreparedPlan;
use super::sinks::SharedSinks;
use crate::lab::{LabSetup, PlanNetwork};
use crate::{CancelToken, now, run_name};

/// Number of consecutive trials without any measurement after which the plan ends, as the hosts are probably
/// gone.
const MAX_EMPTY_TRIALS: u32 = 3;

/// Clock error above which a synchronized start is doubtful.
const COARSE_CLOCK: Span = Span::from_ms(1);

/// Interval of checks for a cancellation during a pause.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Where a plan is carried out.
#[derive(Debug)]
pub enum PlanWorld<'a> {
    /// On the hosts at the addresses in the plan.
    Hosts {
        /// The token of their agents.
        token: Token,
        /// How to recognise them over encrypted control connections; absent for connections that are not encrypted.
        tls: Option<ServerTrust>,
    },
    /// In an emulated network that is created for it.
    Lab(LabSetup<'a>),
}

/// How the hosts are reached.
enum HostsSource<'a> {
    Hosts(Vec<HostRef>),
    Lab(Box<PlanNetwork<'a>>),
}

/// A running plan.
pub(super) struct Drive<'a, 's> {
    pub(super) prepared: &'a PreparedPlan<'a>,
    pub(super) cancel: &'a CancelToken,
    pub(super) sinks: &'a SharedSinks<'s>,
    pub(super) observer: &'a mut dyn PlanObserver,
    pub(super) scheduler: PlanScheduler<'a>,
    place: HostsSource<'a>,
    pub(super) coordinator: Option<Coordinator>,
    /// Names of the test bed's hosts, in its order.
    pub(super) names: Vec<String>,
    in_vain: u32,
    /// Whether the plan changes settings of hosts.
    pub(super) sets_hosts: bool,
}

impl PreparedPlan<'_> {
    /// Carries out the plan and returns its record, from the first trial that is not yet done to the last one. Its
    /// outcome says whether all of them were measured. Every sink gets each event of the plan and of its runs as
    /// it happens, on the calling thread, which blocks until the plan is over and what it created is removed. Any
    /// thread may cancel the token to end early; [`super::PlanRequest::resume`] continues later.
    ///
    /// # Errors
    /// The plan could not begin, and the sinks have got nothing: [`Self::note_not_begun`] gives them the reason. Later
    /// errors and failures of trials are in the record.
    pub fn run(
        &self,
        world: PlanWorld<'_>,
        cancel: &CancelToken,
        sinks: Vec<&mut dyn Sink>,
        observer: &mut dyn PlanObserver,
    ) -> Result<PlanRecord, PlanRunError> {
        let record = match &self.before {
            Some(record) => record.clone(),
            None => self.new_record()?,
        };
        let _claim = ResumeLock::acquire(&record.run)?;
        let sinks = SharedSinks::new(sinks);
        let mut drive = Drive {
            prepared: self,
            cancel,
            sinks: &sinks,
            observer,
            scheduler: self.scheduler()?,
            place: match (self.world, world) {
                (World::Lab, PlanWorld::Lab(setup)) => {
                    HostsSource::Lab(Box::new(PlanNetwork::new(setup, &self.plan, &record.run)?))
                }
                (World::Hosts, PlanWorld::Hosts { token, tls }) => {
                    HostsSource::Hosts(hosts(&self.plan, &token, tls.as_ref()))
                }
                (prepared, _) => return Err(WorldError::Prepared(prepared).into()),
            },
            coordinator: None,
            names: self.plan.used_hosts().map(|host| host.name.clone()).collect(),
            in_vain: 0,
            sets_hosts: false,
        };
        let mut outlets = sinks.for_a_log();
        let outlets = outlets.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
        let mut log = PlanLog::resume(record, outlets);
        let ended = drive.carry_out(&mut log);
        drive.end();
        ended?;
        Ok(log.into_record())
    }

    /// Gives the sinks the log of a run that could not begin: its start, and why it has no trials. Of a run that should
    /// have been resumed they get nothing, as it has a log.
    ///
    /// # Errors
    /// The run cannot be named, or the plan cannot be described.
    pub fn note_not_begun(
        &self,
        outcome: Outcome,
        reason: &str,
        sinks: Vec<&mut dyn Sink>,
    ) -> Result<(), PlanRunError> {
        if self.before.is_some() {
            return Ok(());
        }
        let mut log = PlanLog::resume(self.new_record()?, sinks);
        self.note_start(&mut log)?;
        log.note(Body::RunEnded { outcome, reason: Some(reason.into()) });
        Ok(())
    }

    fn new_record(&self) -> Result<PlanRecord, PlanRunError> {
        let run = self.run.clone().map_or_else(run_name, Ok)?;
        Ok(PlanRecord { run: run.into(), ..PlanRecord::default() })
    }

    /// Begins the log, or goes on with it.
    fn note_start(&self, log: &mut PlanLog<'_>) -> Result<(), PlanRunError> {
        let resumes = log.record().start.clone();
        let opening = PlanHeaderFacts {
            started_at: resumes.as_ref().map_or_else(now, |start| start.started_at.to_string()),
            world: self.world,
            linerate: env!("CARGO_PKG_VERSION").to_owned(),
            set: self.set.clone(),
        };
        let start = self.plan.open(opening)?;
        if resumes.is_some() {
            log.note(Body::PlanResumed);
        }
        if resumes.as_ref() != Some(&start) {
            log.note(Body::PlanStarted(Box::new(start)));
        }
        Ok(())
    }

    fn scheduler(&self) -> Result<PlanScheduler<'_>, PlanRunError> {
        let Some(record) = &self.before else { return Ok(PlanScheduler::new(&self.plan)?) };
        let open = self.archive.ok_or(PlanRunError::NoArchive)?;
        let archive = open().map_err(PlanRunError::Archive)?;
        let mut figures = |trial: &TrialEnd| -> TrialFigures {
            let of_flow = |flow: &linerate_plan::Flow| {
                let run = trial.runs.iter().find(|run| run.flow == flow.name).filter(|run| counts(run))?;
                let events = archive.events(&run.run).ok()?;
                Some(RunMeasurements::of(&RunRecord::fold(&events)))
            };
            self.plan.flows.iter().map(of_flow).collect()
        };
        Ok(PlanScheduler::resume(&self.plan, record, &mut figures)?)
    }
}

/// The hosts that the flows use, in the order of the plan.
fn hosts(plan: &Plan, token: &Token, tls: Option<&ServerTrust>) -> Vec<HostRef> {
    let host = |host: &linerate_plan::Host| {
        Some(HostRef {
            name: host.name.clone(),
            address: host.address.clone()?,
            port: Some(host.port),
            test_address: None,
            token: token.clone(),
            tls: tls.cloned(),
            netns: None,
        })
    };
    plan.used_hosts().filter_map(host).collect()
}

impl Drive<'_, '_> {
    /// Carries out what remains. Returns only errors from before the start of the log; later ones are in the log.
    fn carry_out(&mut self, log: &mut PlanLog<'_>) -> Result<(), PlanRunError> {
        let task = self.scheduler.next_task()?;
        let mut caveats = Vec::new();
        if let Some(first) = &task {
            self.make_ready(&first.point)?;
            caveats = self.check()?;
            self.sets_hosts = self.check_settings()?;
        }
        self.prepared.note_start(log)?;
        self.scheduler.corrections().into_iter().for_each(|body| log.note(body));
        for (kind, text) in caveats {
            let caveat = Caveat { kind, text: text.into() };
            log.note(Body::Caveat { flow: None, caveat: caveat.clone() });
            self.observer.notice(&PlanNotice::Caveat(caveat));
        }
        let trouble = self.trials(task, log).err();
        self.close(log, trouble);
        Ok(())
    }

    /// Runs the remaining trials, of which the first one is given; the error says why not all of them.
    fn trials(&mut self, mut task: Option<TrialTask>, log: &mut PlanLog<'_>) -> Result<(), String> {
        let words = |error: PlanRunError| error.to_string();
        let mut first = true;
        while let Some(next) = task {
            if self.is_stopped() || (!std::mem::take(&mut first) && !self.pause()) {
                break;
            }
            self.make_ready(&next.point).and_then(|()| self.apply_settings(&next.point)).map_err(words)?;
            let (runs, figures) = self.trial(&next, log);
            let nothing = !runs.iter().any(counts);
            self.in_vain = if nothing { self.in_vain + 1 } else { 0 };
            for body in self.scheduler.done(&next, runs, figures.clone()) {
                log.note(body);
            }
            self.observer.trial_ends(&TrialResult {
                task: &next,
                figures: &figures,
                record: log.record(),
                progress: self.scheduler.progress(),
            });
            if nothing && let Some(why) = self.network_ended() {
                return Err(why);
            }
            if self.in_vain >= MAX_EMPTY_TRIALS && !self.is_stopped() {
                return Err(format!("nothing was measured in {MAX_EMPTY_TRIALS} trials in a row"));
            }
            task = self.scheduler.next_task().map_err(|error| words(error.into()))?;
        }
        Ok(())
    }

    /// Computes the results of all points and ends the log.
    fn close(&mut self, log: &mut PlanLog<'_>, mut trouble: Option<String>) {
        let summaries = self.scheduler.sum().unwrap_or_else(|error| {
            trouble.get_or_insert(error.to_string());
            Vec::new()
        });
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
            (true, ..) => (Outcome::Interrupted, Some(CANCELLED.to_owned())),
            (_, Some(trouble), _) => (Outcome::Failed, Some(trouble)),
            (_, None, true) => (Outcome::Failed, Some("some trials failed".to_owned())),
            (_, None, false) => (Outcome::Completed, None),
        };
        log.note(Body::RunEnded { outcome, reason: reason.map(Into::into) });
    }

    /// The results as tables of the plan's method.
    fn tables(&self, record: &PlanRecord) -> Vec<MethodTable> {
        let archive = self.prepared.archive.and_then(|open| open().ok());
        let find = |run: &str| Some(RunRecord::fold(&archive.as_ref()?.events(run).ok()?));
        tables(&self.prepared.plan, record, &find)
    }

    /// Why the emulated network has ended by itself.
    fn network_ended(&mut self) -> Option<String> {
        match &mut self.place {
            HostsSource::Lab(network) => network.ended(),
            HostsSource::Hosts(_) => None,
        }
    }

    fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits between two trials; false if the plan was cancelled.
    fn pause(&mut self) -> bool {
        if self.sets_hosts
            && let Some(coordinator) = &mut self.coordinator
        {
            coordinator.wait(self.prepared.plan.pause, self.cancel.flag());
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
    fn make_ready(&mut self, point: &Point) -> Result<(), PlanRunError> {
        let fresh = match (&mut self.place, &point.lab) {
            (HostsSource::Lab(world), Some(lab)) => {
                let coordinator = &mut self.coordinator;
                let mut leave = || {
                    if let Some(old) = coordinator.take() {
                        old.finish();
                    }
                };
                world.reconfigure_for(lab, &mut leave, self.observer)?
            }
            (HostsSource::Hosts(hosts), _) if self.coordinator.is_none() => Some(hosts.clone()),
            _ => None,
        };
        let Some(hosts) = fresh else { return Ok(()) };
        let bed = TestBed { name: format!("plan {}", self.prepared.plan.name), hosts };
        let connected = Coordinator::connect(bed, self.cancel.flag()).map_err(PlanRunError::Hosts)?;
        self.coordinator = Some(connected);
        Ok(())
    }

    /// Checks before the first packet that the hosts support everything in the plan; returns what makes its
    /// results doubtful.
    fn check(&self) -> Result<Vec<(CaveatKind, String)>, PlanRunError> {
        let Some(coordinator) = &self.coordinator else { return Ok(Vec::new()) };
        let mut troubles: Vec<HostError> = Vec::new();
        let plan = &self.prepared.plan;
        for number in 0..plan.grid.len() {
            let confirming = plan.search.as_ref().filter(|search| search.confirm.is_some());
            let confirming = confirming.map(|search| plan.point_of_step(number, &search.high, true));
            for point in std::iter::once(plan.point(number)).chain(confirming) {
                let task = TrialTask { point: point?, repeat: 1, step: None };
                for trouble in coordinator.check(&self.group(&task, "")) {
                    if !troubles.contains(&trouble) {
                        troubles.push(trouble);
                    }
                }
            }
        }
        if !troubles.is_empty() {
            return Err(PlanRunError::Hosts(troubles));
        }
        let mut caveats = Vec::new();
        for (state, name) in coordinator.host_states().iter().zip(&self.names) {
            let Some(state) = state else { continue };
            if state.host.linerate != env!("CARGO_PKG_VERSION") {
                let (theirs, ours) = (&state.host.linerate, env!("CARGO_PKG_VERSION"));
                let text = format!(
                    "{name} has linerate {theirs}, but this is {ours}; install the same version on \
                             all hosts"
                );
                caveats.push((CaveatKind::ConcurrentRun, text));
            }
            if state.offset_error > COARSE_CLOCK {
                let text = format!(
                    "the clock of {name} is known only within {}: its flows may start earlier or later than \
                     others by that much",
                    state.offset_error
                );
                caveats.push((CaveatKind::OffsetUncertain, text));
            }
        }
        Ok(caveats)
    }

    /// Restores settings, disconnects and removes the emulated network.
    fn end(mut self) {
        self.restore_settings();
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.finish();
        }
        if let HostsSource::Lab(network) = self.place {
            network.end(self.observer);
        }
    }
}
