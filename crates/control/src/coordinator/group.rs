//! Executes one group: holds places, compares clocks, prepares the runs, starts them together, and follows them
//! to their end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::{Body, EVENT_SCHEMA, GroupPlace, GroupStart, Outcome, RunStart, World};
use linerate_proto::agent::{AgentInput, AgentOutput, Job, JobEnd, JobEvent};
use linerate_proto::native::NATIVE;
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};

use super::Coordinator;
use super::check::name;
use super::host::{CoordinatorHost, CoordinatorHostEvent, listen};
use super::prepare_next::Ahead;
use super::progress::{RunProgress, RunState};
use super::start_lead::Lead;
use super::test_bed::{FlowJob, RunGroup, RunServer, TestBed};
use crate::CANCELLED;
use crate::log::Log;

/// How often the stop flag is checked.
pub(super) const POLL_INTERVAL: Span = Span::from_ms(100);

/// How long before its start a run is prepared. Servers do not wait much longer for a run that is ready.
pub(super) const PREPARE_LEAD: Span = Span::from_secs(15);

/// The same for a run that waits for others, whose runs have normally ended by then.
const DEPENDENT_PREPARE_LEAD: Span = Span::from_secs(5);

/// How a run of a group ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEnd {
    /// Whether it completed, and if not, what ended it.
    pub outcome: Outcome,
    /// Why it did not complete; absent if it did.
    pub reason: Option<String>,
    /// When it began to measure; absent if it did not, or its agent did not report it.
    pub start: Option<FlowStart>,
}

/// Planned and actual start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStart {
    /// Planned start on the coordinator's clock: the common start, or the end of the runs that it waits for
    /// plus the pause.
    pub planned: Timestamp,
    /// Start error by the clock of the run's agent. For a run that waits for others it includes the
    /// preparation.
    pub start_error: Span,
    /// Largest error of the offset between the agent's clock and the coordinator's.
    pub clock_error: Span,
}

/// An event of a run, reported on arrival.
#[derive(Debug, Clone, Copy)]
pub struct RunEvent<'a> {
    /// Index of the run in the group.
    pub flow: usize,
    /// Time on the coordinator's clock, within the error of the agent's offset.
    pub at: Timestamp,
    /// Host of the event: 0 is the agent, 1 the server that it measures to.
    pub host: u16,
    /// The event.
    pub body: &'a Body,
}

/// A group in progress.
pub(super) struct RunningGroup<'a, 'l> {
    test_bed: &'a TestBed,
    pub(super) hosts: &'a mut [CoordinatorHost],
    epoch: Mono,
    pub(super) group: &'a RunGroup,
    pub(super) logs: &'a mut [Log<'l>],
    stop: &'a AtomicBool,
    on: &'a mut dyn FnMut(&RunEvent<'_>),
    pub(super) flows: Vec<RunProgress>,
    pub(super) start_lead: &'a mut Lead,
    unfit: &'a BTreeMap<usize, String>,
    /// The next group, if it can be prepared before this one is over.
    pub(super) next: Option<&'a RunGroup>,
    pub(super) prepared: &'a mut Option<Ahead>,
    /// The common start.
    start: Option<Timestamp>,
    stopping: bool,
    /// From when on the group starts without runs that are not ready.
    timeout: Option<Timestamp>,
}

/// Executes a group.
pub(super) fn carry_out(
    coordinator: &mut Coordinator,
    group: &RunGroup,
    next: Option<&RunGroup>,
    logs: &mut [Log<'_>],
    stop: &AtomicBool,
    on: &mut dyn FnMut(&RunEvent<'_>),
) -> Vec<FlowEnd> {
    let flows = group.flows.iter().map(|_| RunProgress::default()).collect();
    let mut run = RunningGroup {
        test_bed: &coordinator.test_bed,
        hosts: &mut coordinator.hosts,
        epoch: coordinator.epoch,
        group,
        logs,
        stop,
        on,
        flows,
        start_lead: &mut coordinator.start_lead,
        unfit: &coordinator.unfit,
        next,
        prepared: &mut coordinator.prepared,
        start: None,
        stopping: false,
        timeout: None,
    };
    run.begin();
    run.adopt();
    run.reserve_places();
    run.compare_clocks();
    run.follow();
    run.flows.iter_mut().map(RunProgress::take_end).collect()
}

impl RunningGroup<'_, '_> {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_ns(clock::now().as_ns().saturating_sub(self.epoch.as_ns()))
    }

    fn instant_of(&self, at: Timestamp) -> Mono {
        Mono(self.epoch.as_ns().saturating_add(at.as_ns()))
    }

    pub(super) fn job(&self, flow: usize) -> &FlowJob {
        &self.group.flows[flow]
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The address and port to measure to.
    pub(super) fn target(&self, to: &RunServer) -> (String, Option<u16>) {
        match to {
            RunServer::Server { host, port } => (host.clone(), *port),
            RunServer::Host(at) => {
                let host = &self.test_bed.hosts[*at];
                (host.test_address.clone().unwrap_or_else(|| host.address.clone()), host.port)
            }
        }
    }

    /// The job of a run for the agent that is its client.
    pub(super) fn new_job(&mut self, run: &FlowJob) -> Box<Job> {
        let (host, port) = self.target(&run.to);
        let server = run.to.host().map(|at| &self.hosts[at]);
        let ticket = server.and_then(CoordinatorHost::ticket);
        // The agent could not recognise the server itself; this coordinator has.
        let certificate = server.and_then(|server| server.about()?.certificate);
        let port = port.or(Some(NATIVE.default_port));
        let job = self.hosts[run.from].next_job();
        Box::new(Job { job, host: host.into(), port, ticket, certificate, spec: run.spec.clone() })
    }

    fn begin(&mut self) {
        for at in 0..self.flows.len() {
            let job = self.job(at).clone();
            let (host, _) = self.target(&job.to);
            let FlowJob { start_after, cross_traffic, plan, .. } = job.clone();
            let place = self.group.name.clone().map(|group| GroupPlace {
                group: group.into(),
                start_after,
                cross_traffic,
                plan,
            });
            // A part of a plan is recorded as such before it begins, so that a kill in between leaves no
            // unassigned run.
            let (before, after) = match place {
                Some(place) if place.plan.is_some() => (Some(place), None),
                place => (None, place),
            };
            if let Some(place) = before {
                self.note(at, Body::Grouped(place));
            }
            let world = self.hosts[job.from].about().and_then(|about| about.world).unwrap_or(World::Hosts);
            self.note(
                at,
                Body::RunStarted(Box::new(RunStart {
                    schema: EVENT_SCHEMA.into(),
                    started_at: self.group.started_at.clone().into(),
                    world,
                    linerate: env!("CARGO_PKG_VERSION").into(),
                    target: host.into(),
                    spec: job.spec,
                })),
            );
            if let Some(place) = after {
                self.note(at, Body::Grouped(place));
            }
        }
        let unfit = self.unfit;
        for at in self.group.hosts() {
            if let Some(why) = unfit.get(&at) {
                self.host_lost(at, why);
            } else if !self.hosts[at].connected() {
                self.host_lost(at, "it could not be reached");
            }
        }
    }

    /// Adds an event of the coordinator to the log of a run.
    fn note(&mut self, flow: usize, body: Body) {
        let at = self.now();
        (self.on)(&RunEvent { flow, at, host: 0, body: &body });
        if self.flows[flow].epoch.is_some() {
            self.logs[flow].note(body);
        } else {
            // The time of a run counts from when its agent begins it. Earlier events have no time of their own.
            self.logs[flow].note_at(Timestamp::START, 0, body);
        }
    }

    /// Waits at most until `until` for messages, and handles the messages of all hosts.
    pub(super) fn turn(&mut self, until: Timestamp) {
        for (at, event) in self.listen(until) {
            match event {
                CoordinatorHostEvent::Message(message) => self.handle(at, message),
                CoordinatorHostEvent::Gone(why) => self.host_lost(at, &why),
            }
        }
        if self.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.stopping, true) {
            for flow in 0..self.flows.len() {
                self.stop_flow(flow, Outcome::Interrupted, CANCELLED);
            }
        }
        if self.start.is_none() && self.group.start_by.is_some_and(Mono::has_passed) {
            self.give_up_start();
        }
    }

    /// The common start would be too late.
    fn give_up_start(&mut self) {
        for flow in 0..self.flows.len() {
            let why = "it could not start in time: the hosts were not ready, or measured for others";
            self.stop_flow(flow, Outcome::Failed, why);
        }
    }

    pub(super) fn listen(&mut self, until: Timestamp) -> Vec<(usize, CoordinatorHostEvent)> {
        let latest = self.instant_of(until.min(self.now() + POLL_INTERVAL));
        listen(self.hosts, latest)
    }

    /// Sends a request to a host. If that fails, the host is lost.
    pub(super) fn ask(&mut self, at: usize, input: AgentInput<'_>) {
        if let Err(error) = self.hosts[at].ask(input) {
            self.host_lost(at, &error.to_string());
        }
    }

    pub(super) fn handle(&mut self, at: usize, word: AgentOutput) {
        let word = match self.prepared.as_mut() {
            Some(prepared) => prepared.take_prepared(at, word),
            None => Some(word),
        };
        let Some(word) = word else { return };
        match word {
            AgentOutput::Waiting(place) => {
                for flow in self.flows_at(at) {
                    self.note(flow, Body::Queued { position: place.position, wait: place.wait_ns });
                }
            }
            AgentOutput::Held(ticket) => self.hosts[at].keep_ticket(Some(ticket)),
            AgentOutput::Pong(exchange) => {
                self.start_lead.trip(exchange.back.since(exchange.sent));
                self.hosts[at].offset.refine(exchange);
            }
            AgentOutput::NotHeld(why) => {
                self.host_lost(at, &format!("it refuses a place in its queue: {why}"))
            }
            AgentOutput::Accepted { job, epoch } => {
                if let Some(flow) = self.flow_of(at, job) {
                    let epoch = self.hosts[at].offset.ours(epoch);
                    self.flows[flow].epoch = Some(epoch);
                    let instant = self.instant_of(epoch);
                    self.logs[flow].count_from(instant);
                }
            }
            AgentOutput::Ready { job } => {
                if let Some(flow) = self.flow_of(at, job) {
                    self.flows[flow].is_ready();
                    self.timeout.get_or_insert(self.now() + PREPARE_LEAD);
                }
            }
            AgentOutput::Event(event) => self.take_event(at, *event),
            AgentOutput::Ended(end) => {
                if let Some(flow) = self.flow_of(at, end.job) {
                    self.job_ended(flow, end);
                }
            }
            _ => {}
        }
    }

    fn take_event(&mut self, at: usize, event: JobEvent) {
        let Some(flow) = self.flow_of(at, event.job) else { return };
        let JobEvent { host, at: time, mut body, .. } = event;
        if let Body::Started(start) = &mut body {
            self.take_start(flow, start);
            if self.group.name.is_none() {
                return;
            }
        }
        let epoch = self.flows[flow].epoch.unwrap_or_default();
        let merged = epoch + Span::from_ns(time.as_ns());
        (self.on)(&RunEvent { flow, at: merged, host, body: &body });
        self.logs[flow].note_at(time, host, body);
    }

    /// Completes the start event of a run: the agent knows how late it was relative to the start time that it
    /// got, and the coordinator knows the planned start.
    fn take_start(&mut self, flow: usize, start: &mut GroupStart) {
        let clock_error = self.hosts[self.job(flow).from].offset.error_at(self.now());
        start.clock_error = Some(clock_error);
        self.start_lead.late(start.start_error);
        let Some(sent) = self.flows[flow].sent_start else { return };
        let planned = self.due(flow).unwrap_or(sent).min(sent);
        let delay = sent.since(planned);
        start.start_error = start.start_error + delay;
        start.planned = Timestamp::from_ns(start.planned.as_ns().saturating_sub(delay.as_ns()));
        self.flows[flow].start = Some(FlowStart { planned, start_error: start.start_error, clock_error });
    }

    fn job_ended(&mut self, flow: usize, end: JobEnd) {
        let (mut outcome, mut reason) = self.flows[flow].judge_end(end);
        if outcome == Outcome::Completed && self.job(flow).cross_traffic && self.is_accompanying() {
            outcome = Outcome::Failed;
            reason = Some("this cross traffic ended before the runs that it belongs to".to_owned());
        }
        self.end(flow, outcome, reason);
    }

    /// Ends a run and logs its outcome.
    pub(super) fn end(&mut self, flow: usize, outcome: Outcome, reason: Option<String>) {
        if self.flows[flow].is_over() {
            return;
        }
        let now = self.now();
        self.flows[flow].end(outcome, reason.clone(), now);
        self.note(flow, Body::RunEnded { outcome, reason: reason.map(Into::into) });
    }

    /// Handles the loss of a host: its own runs fail, and so do waiting runs towards it.
    pub(super) fn host_lost(&mut self, at: usize, why: &str) {
        if let Some(prepared) = self.prepared.as_mut() {
            prepared.remove(at);
        }
        let reason = format!("{}: {why}", name(self.test_bed, at));
        for flow in self.flows_at(at) {
            // A running flow towards it detects the loss itself.
            if self.job(flow).from == at || self.flows[flow].stage == RunState::Waiting {
                self.close_account(flow);
                self.end(flow, Outcome::Failed, Some(reason.clone()));
            }
        }
    }

    /// The unfinished runs in which a host takes part.
    pub(super) fn flows_at(&self, at: usize) -> Vec<usize> {
        let has_part = |job: &FlowJob| job.from == at || job.to.host() == Some(at);
        let all = (0..self.flows.len()).filter(|flow| has_part(self.job(*flow)));
        all.filter(|flow| !self.flows[*flow].is_over()).collect()
    }

    fn flow_of(&self, at: usize, job: u32) -> Option<usize> {
        let is_it = |flow: &RunProgress| flow.job == Some(job) && !flow.is_over();
        (0..self.flows.len()).find(|flow| self.job(*flow).from == at && is_it(&self.flows[*flow]))
    }

    pub(super) fn is_over(&self) -> bool {
        self.flows.iter().all(RunProgress::is_over)
    }

    /// Follows the group from the first preparation to the end of the last run.
    fn follow(&mut self) {
        while !self.is_over() {
            self.prepare_what_is_due();
            self.start_what_is_ready();
            self.end_cross_traffic();
            self.prepare_next();
            if !self.is_over() {
                self.turn(self.now() + POLL_INTERVAL);
            }
        }
        self.prepare_next();
    }

    /// The planned start of a run, if it is already known: relative to the common start, or to the actual ends
    /// of the runs that it waits for.
    fn due(&self, flow: usize) -> Option<Timestamp> {
        let job = self.job(flow);
        let Some(after) = &job.after else { return Some(self.start? + job.start_after) };
        let ends = after.flows.iter().map(|before| self.flows.get(*before)?.ended);
        Some(ends.collect::<Option<Vec<_>>>()?.into_iter().max()? + after.pause)
    }

    fn is_due(&self, flow: usize) -> bool {
        let job = self.job(flow);
        if job.after.is_some() {
            // Not earlier: the preparation would disturb the runs that it waits for, and would measure their
            // load.
            return self.due(flow).is_some_and(|due| self.now() + DEPENDENT_PREPARE_LEAD >= due);
        }
        job.start_after <= PREPARE_LEAD || self.due(flow).is_some_and(|due| self.now() + PREPARE_LEAD >= due)
    }

    /// Runs whose start is planned before the group starts, and early enough to prepare them before it.
    fn is_first(&self, flow: usize) -> bool {
        let job = self.job(flow);
        job.after.is_none() && job.start_after <= PREPARE_LEAD
    }

    fn prepare_what_is_due(&mut self) {
        for flow in 0..self.flows.len() {
            if self.flows[flow].stage != RunState::Waiting || !self.is_due(flow) {
                continue;
            }
            let plan = self.job(flow).clone();
            let job = self.new_job(&plan);
            self.flows[flow].prepare(job.job);
            self.ask(plan.from, AgentInput::Prepare(job));
            // Nothing is measured during the preparation, and an exchange keeps the clock offset current.
            if self.hosts[plan.from].connected() {
                self.ask(plan.from, AgentInput::Ping);
            }
        }
    }

    fn lead_of(&self, flows: impl Iterator<Item = usize>) -> Span {
        let longest = flows.map(|flow| self.job(flow).spec.traffic.measured()).max();
        self.start_lead.of(longest.unwrap_or_default())
    }

    fn start_what_is_ready(&mut self) {
        if self.start.is_none() {
            let first: Vec<usize> = (0..self.flows.len()).filter(|flow| self.is_first(*flow)).collect();
            let preparing = |flow: &&usize| self.flows[**flow].stage == RunState::Preparing;
            let late: Vec<usize> = first.iter().filter(preparing).copied().collect();
            let waits = self.timeout.is_none_or(|until| self.now() < until);
            if !late.is_empty() && waits {
                return;
            }
            for flow in late {
                let why = "it was not ready in time for the others";
                self.stop_flow(flow, Outcome::Failed, why);
            }
            let start = self.now() + self.lead_of(0..self.flows.len());
            if self.group.start_by.is_some_and(|latest| self.instant_of(start) > latest) {
                return self.give_up_start();
            }
            self.start = Some(start);
        }
        for flow in 0..self.flows.len() {
            let Some(due) = self.due(flow) else { continue };
            if let Some(job) = self.flows[flow].start_now() {
                let (from, follows) = (self.job(flow).from, self.job(flow).after.is_some());
                let soonest = self.now() + self.lead_of(std::iter::once(flow));
                let at = if follows { due.max(soonest) } else { due };
                self.flows[flow].sent_start = Some(at);
                let at = self.hosts[from].offset.agent_time(at);
                self.ask(from, AgentInput::Start { job, at });
            }
        }
    }

    /// Whether a run is not over that cross traffic belongs to.
    fn is_accompanying(&self) -> bool {
        self.flows.iter().zip(&self.group.flows).any(|(flow, job)| !job.cross_traffic && !flow.is_over())
    }

    fn end_cross_traffic(&mut self) {
        let others = self.group.flows.iter().any(|job| !job.cross_traffic);
        if !others || self.is_accompanying() {
            return;
        }
        for flow in 0..self.flows.len() {
            self.stop_flow(
                flow,
                Outcome::Completed,
                "the runs that this cross traffic belongs to have ended",
            );
        }
    }
}
