//! The loop that runs a stand-in.
//!
//! A driver needs a thread only while its stand-in has clients. Between them, an embedded server is an
//! [`IdleDriver`], which the server's own loop waits for.

mod execute;
mod time_limits;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use linerate_compat::stand_in::{FlowId, FlowTask, Link, RunId, StandIn, Transport};
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};

use super::console::Console;
use super::driver_event::DriverEvent;
use super::endpoint::HostArgument;
use super::flows::{FlowPoll, Flows, flow_of};
use super::helper_threads::Helpers;
use super::interrupts::Interrupts;
use super::links::{AcceptedConnection, DriverEvents, Links, More};
use super::runs::Runs;
use super::server_ports::{Incoming, ServerPorts};
use crate::error::ControlError;
use time_limits::Admitted;

/// Tokens of the wakers. Those of links are below, those of flows above.
const INTERRUPT_TOKEN: u64 = 1 << 33;
const HELPERS_TOKEN: u64 = INTERRUPT_TOKEN + 1;
const PORTS_TOKEN: u64 = INTERRUPT_TOKEN + 2;

/// How often running flows write to their logs.
const INTERIM_INTERVAL: Duration = Duration::from_millis(250);

/// Longest wait at the end for the last bytes to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Shortest time between two ticks for a deadline in the past.
const MIN_TICK_INTERVAL: Duration = Duration::from_millis(1);

/// How long an idle driver keeps its thread: a client that connects several times in a row does not start a
/// thread for each connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Most events delivered or connections accepted in one turn.
const MAX_EVENTS_PER_TURN: usize = 256;

/// Most steps for one link in one turn, with at most 64 KiB each: other links, flows, signals and timers wait as long. A
/// stand-in that measures latency over one link may move payload over many others.
const MAX_STEPS_PER_LINK: usize = 2;

/// A stand-in with its links, flows and runs.
pub(crate) struct Driver<'a> {
    /// What remains of it when it is idle.
    core: IdleDriver,
    /// Flows that start when their links have no more unsent bytes.
    waiting: Vec<FlowTask>,
    runs: Runs<'a>,
    /// The admitted runs.
    admitted: BTreeMap<RunId, Admitted>,
    next_courtesy: Mono,
    console: Console<'a>,
    interrupts: &'a Interrupts,
    interrupted: bool,
    ports: Option<&'a mut dyn ServerPorts>,
    events: DriverEvents,
    next_interim: Mono,
    no_tick_before: Mono,
    /// When it returns if it is idle.
    idle_until: Mono,
    exit: Option<i32>,
}

/// What a driver uses while it runs, besides its stand-in.
pub(super) struct DriverContext<'a> {
    pub(super) runs: Runs<'a>,
    pub(super) console: Console<'a>,
    pub(super) interrupts: &'a Interrupts,
    /// The server's ports; absent for a tool that runs by itself.
    pub(super) ports: Option<&'a mut dyn ServerPorts>,
}

/// A server stand-in without clients, and its listeners.
///
/// Its descriptor becomes readable when something arrives for it. Then it needs a driver again, with the same
/// interrupts and ports as before.
pub(crate) struct IdleDriver {
    stand_in: Box<dyn StandIn>,
    epoch: Mono,
    cpu_before: (Duration, Duration),
    host: HostArgument,
    links: Links,
    flows: Flows,
    helpers: Helpers,
}

impl IdleDriver {
    /// What is ready when the next client comes.
    pub(crate) fn poller(&self) -> &Poller {
        self.links.poller()
    }
}

/// Why a driver returned.
pub(crate) enum Returned {
    /// Its stand-in has exited with this code.
    Exited(i32),
    /// It is an embedded server that has no clients any more.
    Idle(Box<IdleDriver>),
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        stand_in: Box<dyn StandIn>,
        host: HostArgument,
        context: DriverContext<'a>,
    ) -> Result<Self, ControlError> {
        let (links, helpers) = (Links::new()?, Helpers::new()?);
        links.poller().add(context.interrupts, INTERRUPT_TOKEN, Interest::READ)?;
        links.poller().add(helpers.waker(), HELPERS_TOKEN, Interest::READ)?;
        if let Some(ports) = &context.ports {
            links.poller().add(&ports.waker(), PORTS_TOKEN, Interest::READ)?;
        }
        let (epoch, cpu_before, flows) = (clock::now(), clock::process_times(), Flows::default());
        let core = IdleDriver { stand_in, epoch, cpu_before, host, links, flows, helpers };
        // Clients that have arrived already are reported again, so a new embedded server may return at once.
        Ok(Self { events: VecDeque::from([DriverEvent::Begin]), ..Self::of(core, context, Mono(0)) })
    }

    /// The driver of a stand-in that was idle.
    pub(crate) fn resume(idle: IdleDriver, context: DriverContext<'a>) -> Self {
        Self::of(idle, context, clock::now() + IDLE_TIMEOUT)
    }

    fn of(core: IdleDriver, context: DriverContext<'a>, idle_until: Mono) -> Self {
        let DriverContext { runs, console, interrupts, ports } = context;
        Self {
            core,
            waiting: Vec::new(),
            runs,
            admitted: BTreeMap::new(),
            next_courtesy: Mono::FAR,
            console,
            interrupts,
            interrupted: false,
            ports,
            events: VecDeque::new(),
            next_interim: Mono::FAR,
            no_tick_before: Mono(0),
            idle_until,
            exit: None,
        }
    }

    /// Runs the stand-in until it exits, or until it is idle if it is an embedded server.
    pub(crate) fn run(mut self) -> Result<Returned, ControlError> {
        let mut events = Events::with_capacity(MAX_EVENTS_PER_TURN);
        loop {
            self.run_until_idle();
            let over = self.ports.as_ref().is_some_and(|ports| ports.end_by().has_passed());
            if let Some(code) = self.exit.or(over.then_some(0)) {
                self.end();
                return Ok(Returned::Exited(code));
            }
            if self.is_idle() && self.idle_until.has_passed() {
                return Ok(Returned::Idle(Box::new(self.core)));
            }
            self.core.links.poller().wait_ns(&mut events, self.deadline())?;
            let mut tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            for link in self.core.links.with_decrypted() {
                let token = u64::from(link.0);
                if !tokens.contains(&token) {
                    tokens.push(token);
                }
            }
            if !tokens.is_empty() {
                self.idle_until = clock::now() + IDLE_TIMEOUT;
            }
            self.turn(&tokens);
        }
    }

    /// Whether this is an embedded server that waits for nothing but its next client.
    fn is_idle(&self) -> bool {
        let busy =
            self.core.flows.any() || self.runs.any() || !self.admitted.is_empty() || !self.waiting.is_empty();
        self.ports.is_some()
            && !busy
            && self.events.is_empty()
            && self.core.links.are_listeners()
            && self.core.stand_in.deadline().is_none()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ns(clock::now().since(self.core.epoch).as_nanos().try_into().unwrap_or(u64::MAX))
    }

    fn deadline(&self) -> Mono {
        if !self.events.is_empty() {
            return Mono(0);
        }
        let tick =
            self.core.stand_in.deadline().map_or(Mono::FAR, |at| self.moment(at).max(self.no_tick_before));
        let interim = if self.core.flows.any() { self.next_interim } else { Mono::FAR };
        let runs =
            self.admitted.values().map(|run| run.until).min().unwrap_or(Mono::FAR).min(self.next_courtesy);
        let ports = self.ports.as_ref().map_or(Mono::FAR, |ports| ports.end_by());
        let idle = if self.is_idle() { self.idle_until } else { Mono::FAR };
        tick.min(interim).min(runs).min(ports).min(idle).min(self.core.links.deadline())
    }

    fn moment(&self, at: Timestamp) -> Mono {
        self.core.epoch + Span::from_ns(at.as_ns()).as_duration()
    }

    /// Delivers events and executes outputs until there are none.
    fn run_until_idle(&mut self) {
        for _ in 0..MAX_EVENTS_PER_TURN {
            while self.exit.is_none()
                && let Some(output) = self.core.stand_in.output()
            {
                self.execute(output);
            }
            if self.exit.is_some() {
                return;
            }
            let Some(events) = self.events.pop_front() else { return };
            self.interrupted |= matches!(events, DriverEvent::Signal(_));
            self.note_activity(&events);
            if let DriverEvent::Opened { opened, .. } = &events {
                self.core.host.answered(opened.remote);
            }
            events.deliver(self.now(), self.core.stand_in.as_mut());
        }
    }

    /// Handles what is ready: first bytes, then connections, flows, signals, and timers last.
    fn turn(&mut self, tokens: &[u64]) {
        let link = |token: &u64| u32::try_from(*token).ok().map(Link);
        let (listeners, mut others): (Vec<Link>, Vec<Link>) =
            tokens.iter().filter_map(link).partition(|link| self.core.links.is_listener(*link));
        // Older links first: a tool's control connection before the links that it opens later.
        others.sort_unstable();
        for link in others.into_iter().chain(listeners) {
            self.step(link);
        }
        if tokens.contains(&PORTS_TOKEN) {
            self.take_incoming();
        }
        self.start_waiting();
        for flow in tokens.iter().copied().filter_map(flow_of) {
            self.check_flow(flow);
        }
        if tokens.contains(&HELPERS_TOKEN) {
            for events in self.core.helpers.take() {
                if let DriverEvent::Exchanged { link, .. } = &events {
                    self.core.links.restore(&[*link]);
                }
                self.events.push_back(events);
                self.run_until_idle();
            }
        }
        if let Some(signal) = self.interrupts.take() {
            self.events.push_back(DriverEvent::Signal(signal));
            self.run_until_idle();
        }
        self.core.links.expire(&mut self.events);
        self.end_late_runs();
        self.end_overstaying_runs();
        self.update_logs();
        self.run_until_idle();
        self.tick();
    }

    /// Handles what is ready on a link. Its events are delivered before the next read, because they may hand
    /// the link to a flow.
    fn step(&mut self, link: Link) {
        for _ in 0..MAX_STEPS_PER_LINK {
            let mut came = DriverEvents::new();
            let more = self.core.links.step(link, &mut came);
            if let Some(DriverEvent::Accepted { link, .. }) = came.front() {
                self.step_before(Some(*link));
            }
            self.events.append(&mut came);
            self.run_until_idle();
            if more == More::No || !self.events.is_empty() || self.exit.is_some() {
                return;
            }
        }
    }

    /// Handles everything that is ready now on the links except `newest`. A client that was accepted just now may have
    /// closed its previous test before it connected, and the stand-in has to learn of that first.
    fn step_before(&mut self, newest: Option<Link>) {
        let mut events = Events::with_capacity(MAX_EVENTS_PER_TURN);
        if self.core.links.poller().wait_ns(&mut events, Mono(0)).is_err() {
            return;
        }
        let links = events.iter().filter_map(|ready| u32::try_from(ready.token).ok().map(Link));
        let mut older: Vec<Link> =
            links.filter(|link| Some(*link) != newest && !self.core.links.is_listener(*link)).collect();
        older.sort_unstable();
        older.into_iter().for_each(|link| self.step(link));
    }

    fn take_incoming(&mut self) {
        let ports = self.ports.as_mut();
        let come: Vec<Incoming> = ports.map_or_else(Vec::new, |ports| {
            std::iter::from_fn(|| ports.take()).take(MAX_EVENTS_PER_TURN).collect()
        });
        // Once for all of them: a round over links that carry load takes time.
        if come.iter().any(|incoming| matches!(incoming, Incoming::Connection { .. })) {
            self.step_before(None);
        }
        for incoming in come {
            match incoming {
                Incoming::Connection { port, stream, peer, received, permit } => {
                    let Some(listener) = self.core.links.shared_listener(Transport::Tcp, port) else {
                        continue;
                    };
                    let (stream, channel, rest) = stream.into_channel();
                    let received = [received, rest].concat();
                    let came = AcceptedConnection { stream, peer, channel, permit: Some(permit) };
                    let link = self.core.links.take_in(listener, came, &mut self.events);
                    self.run_until_idle();
                    if let Some(link) = link.filter(|_| !received.is_empty()) {
                        self.events.push_back(DriverEvent::Bytes { link, bytes: received });
                    }
                }
                Incoming::Datagram { port, from, to, bytes } => {
                    let Some(link) = self.core.links.shared_listener(Transport::Udp, port) else { continue };
                    let from = super::endpoint::plain(from);
                    self.core.links.note_destination(link, from, to);
                    self.events.push_back(DriverEvent::Datagram { link, from, bytes });
                }
            }
            self.run_until_idle();
        }
    }

    fn start_waiting(&mut self) {
        for task in std::mem::take(&mut self.waiting) {
            self.start_flow(task);
            self.run_until_idle();
        }
    }

    fn check_flow(&mut self, flow: FlowId) {
        loop {
            match self.core.flows.poll_flow(flow, &self.core.links) {
                FlowPoll::Nothing => return,
                FlowPoll::Written => self.events.push_back(DriverEvent::Written { flow }),
                FlowPoll::Ended(over) => {
                    self.core.links.restore(&over.links);
                    self.events
                        .push_back(DriverEvent::Ended { counts: Box::new(over.report.counts.clone()) });
                    self.runs.ended(flow, *over);
                }
            }
            self.run_until_idle();
        }
    }

    fn update_logs(&mut self) {
        if self.core.flows.any() && self.next_interim.has_passed() {
            self.next_interim = clock::now() + INTERIM_INTERVAL;
            self.core.flows.interim().into_iter().for_each(|interim| self.runs.interim(interim));
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        let due = |stand_in: &dyn StandIn| stand_in.deadline().is_some_and(|at| at <= now);
        if self.exit.is_some() || !due(self.core.stand_in.as_ref()) || !self.no_tick_before.has_passed() {
            return;
        }
        self.events.push_back(DriverEvent::Tick);
        self.run_until_idle();
        if due(self.core.stand_in.as_ref()) {
            self.no_tick_before = clock::now() + MIN_TICK_INTERVAL;
        }
    }

    /// Sends the last bytes, ends the logs and releases the server's places. Running flows are aborted.
    fn end(&mut self) {
        self.core.links.flush_at_end(clock::now() + FLUSH_TIMEOUT);
        self.runs.end(self.interrupted);
        for run in std::mem::take(&mut self.admitted).into_keys() {
            if let Some(ports) = &mut self.ports
                && let Some(left) = ports.leave(run)
            {
                ports.ended(left.client, Err("the stand-in ended during the run".to_owned()));
            }
        }
    }
}
