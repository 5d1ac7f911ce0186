//! The end that listens and counts.

mod clients;
mod reservation;
mod sync;

use linerate_model::Direction;
use linerate_units::{Span, Timestamp};

use self::clients::Clients;
use self::reservation::SyncSession;
use super::console::NtttcpConsole;
use super::meter::PhaseDurations;
use super::options::NtttcpOptions;
use super::run::{self, Due, NtttcpRun};
use super::sender::EXIT_FAILED;
use super::wire::{END, FINISHED, READY, RUNNING};
use crate::stand_in::{FlowId, Input, Link, LinkOptions, Opened, Output, RunId, StandIn, SystemError};

const SYNC: Link = Link(0);

/// Most connections that wait for a test; further ones are refused.
const MAX_WAITING_CONNECTIONS: usize = 20_000;

/// Without a sync connection: delay between the first connection and the start, in which the others arrive.
const CONNECTION_GATHER_TIME: Span = Span::from_ms(50);

/// How long a sender may query after the test.
const LINGER_TIME: Span = Span::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NtttcpReceiverState {
    Idle,
    /// Waiting for a place for the sender that has queried (only if it serves).
    Reserving,
    /// The sender has a place, and connects.
    Reserved,
    /// The sender is ready; its last connections may still be on their way to this end.
    Gathering,
    /// Waiting for the driver's permission.
    Asked,
    Running,
    Ending,
    /// The result is printed; senders may still query.
    Lingering,
    Over,
}

/// NTttcp with `-r`.
pub struct NtttcpReceiver {
    options: NtttcpOptions,
    serves: bool,
    console: NtttcpConsole,
    state: NtttcpReceiverState,
    clients: Clients,
    /// The sender that has a place (only if it serves).
    session: Option<SyncSession>,
    /// Senders that have queried while the last test was ending.
    early: Vec<Link>,
    /// Connections without a flow, and their port indices from 0.
    waiting: Vec<(Link, usize)>,
    /// Connections that flows have used.
    used: Vec<Link>,
    listening: u32,
    deadline: Option<Timestamp>,
    agreed: u32,
    schedule: PhaseDurations,
    run: Option<NtttcpRun>,
    next_run: RunId,
    next_flow: FlowId,
    code: i32,
}

impl NtttcpReceiver {
    /// Creates a receiver. If it `serves`, the senders determine the duration of a test, and it continues after
    /// each. `time_of_day` is the local time at the driver's start.
    #[must_use]
    pub fn new(options: NtttcpOptions, serves: bool, time_of_day: Span) -> Self {
        Self {
            console: NtttcpConsole::new(time_of_day, options.log.clone()),
            agreed: options.seconds,
            schedule: PhaseDurations::new(options.omit, options.seconds, options.seconds),
            options,
            serves,
            state: NtttcpReceiverState::Idle,
            clients: Clients::default(),
            session: None,
            early: Vec::new(),
            waiting: Vec::new(),
            used: Vec::new(),
            listening: 0,
            deadline: None,
            run: None,
            next_run: RunId(0),
            next_flow: FlowId(0),
            code: 0,
        }
    }

    fn listeners(&self) -> u32 {
        u32::from(self.options.ports) + u32::from(self.options.sync)
    }

    fn data_listeners(&self) -> impl Iterator<Item = (Link, usize)> + use<> {
        (0..self.options.ports).map(|at| (Link(u32::from(at) + 1), usize::from(at)))
    }

    fn begin(&mut self, now: Timestamp) {
        run::banner(now, &mut self.console, &self.options);
        self.console.info(now, &format!("{} threads created", self.listeners()));
        if self.options.sync {
            self.listen(SYNC, self.options.base - 1, self.options.sync_link());
        }
        for (link, at) in self.data_listeners() {
            let port = self.options.base.saturating_add(u16::try_from(at).unwrap_or(0));
            self.listen(link, port, self.options.data_link());
        }
    }

    fn listen(&mut self, link: Link, port: u16, options: LinkOptions) {
        self.console.outputs.push_back(Output::Listen { link, port, options });
    }

    fn listening(&mut self, now: Timestamp, opened: &Opened) {
        if self.options.verbose {
            self.console.debug(now, &format!("ntttcp server is listening on {}", opened.local));
        }
        self.listening += 1;
        let all = self.listening == self.listeners();
        if all && self.options.udp && !self.options.sync && self.state == NtttcpReceiverState::Idle {
            self.ask(now, Link(1));
        }
    }

    fn not_listening(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        let port = u32::from(self.options.base) + link.0 - 1;
        let text = format!("failed to listen on port {port}: {}. errno = {}", reason.text, reason.errno);
        self.console.error(now, &text);
        self.code = EXIT_FAILED;
        self.end();
    }

    fn accepted(&mut self, now: Timestamp, listener: Link, link: Link, opened: &Opened) {
        let remote = opened.remote.map_or_else(String::new, |remote| remote.to_string());
        let (port, socket) = (opened.local.port(), opened.descriptor);
        if self.options.verbose {
            let kind = if listener == SYNC { "Sync" } else { "New" };
            let text = format!("{kind} connection: {remote} --> local:{port} [socket {socket}]");
            self.console.debug(now, &text);
        }
        if listener == SYNC && self.options.sync {
            if !self.clients.add(now, link, opened.remote.map(|remote| remote.ip())) {
                self.console.outputs.push_back(Output::Reset { link });
            }
            return;
        }
        if self.serves && !self.is_from_session(opened) {
            // Of another host, or of a sender that does not use the sync port.
            self.console.outputs.push_back(Output::Reset { link });
            return;
        }
        self.note_connection(now);
        let at = usize::try_from(listener.0.saturating_sub(1)).unwrap_or(0);
        match self.state {
            NtttcpReceiverState::Idle
            | NtttcpReceiverState::Reserved
            | NtttcpReceiverState::Gathering
            | NtttcpReceiverState::Asked
                if self.waiting.len() < MAX_WAITING_CONNECTIONS =>
            {
                self.waiting.push((link, at));
                if !self.options.sync && self.state == NtttcpReceiverState::Idle && self.deadline.is_none() {
                    self.deadline = Some(now + CONNECTION_GATHER_TIME);
                }
            }
            NtttcpReceiverState::Running => {
                if let Some(run) = &mut self.run {
                    run.start(&[(link, at)], &self.options, &mut self.console);
                    self.used.push(link);
                }
            }
            _ => self.console.outputs.push_back(Output::Reset { link }),
        }
    }

    fn ask(&mut self, now: Timestamp, link: Link) {
        self.state = NtttcpReceiverState::Asked;
        self.deadline = None;
        let requested = if self.serves { 0 } else { self.options.seconds };
        self.schedule = PhaseDurations::new(self.options.omit, requested, self.agreed);
        let streams = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX).max(1);
        let mut planned = run::planned(self.next_run, link, &self.options, &self.schedule, streams);
        planned.flows = vec![(self.next_flow, Direction::Upload)];
        self.console.outputs.push_back(Output::Ask(Box::new(planned)));
        self.clients.start_time(now);
    }

    fn admitted(&mut self, now: Timestamp, run: RunId) {
        if run != self.next_run {
            return;
        }
        match self.state {
            NtttcpReceiverState::Asked => self.start(now, run),
            NtttcpReceiverState::Reserving => self.reserved(),
            _ => {}
        }
    }

    fn start(&mut self, now: Timestamp, run: RunId) {
        self.next_run = self.next_run.next();
        self.state = NtttcpReceiverState::Running;
        for link in self.clients.ready() {
            self.reply(link, READY);
        }
        if self.options.sync {
            self.console.info(now, "Network activity progressing...");
        }
        let ports = usize::from(self.options.ports);
        let mut run = NtttcpRun::new(now, run, self.schedule, ports, &self.options, &mut self.console);
        run.number_from(self.next_flow);
        if self.options.udp {
            let links: Vec<(Link, usize)> = self.data_listeners().collect();
            run.start(&links, &self.options, &mut self.console);
        } else {
            let links = std::mem::take(&mut self.waiting);
            self.used.extend(links.iter().map(|(link, _)| *link));
            run.start(&links, &self.options, &mut self.console);
        }
        self.run = Some(run);
        if self.options.sync && self.clients.ready().is_empty() {
            self.deserted(now);
        }
    }

    fn refused(&mut self, now: Timestamp, why: &str) {
        match self.state {
            NtttcpReceiverState::Asked => {}
            NtttcpReceiverState::Reserving => return self.not_reserved(now, why),
            _ => return,
        }
        self.turn_down(now, why);
        if !self.serves {
            self.code = EXIT_FAILED;
            self.end();
        }
    }

    /// Refuses to start the test of the senders that are ready.
    fn turn_down(&mut self, now: Timestamp, why: &str) {
        self.console.info(now, &format!("the test was refused: {why}"));
        self.give_place_back(why);
        self.state = NtttcpReceiverState::Idle;
        for link in self.clients.ready() {
            self.reply(link, END);
            self.console.outputs.push_back(Output::Close { link });
            self.clients.remove(link);
        }
        self.drop_waiting();
    }

    fn drop_waiting(&mut self) {
        for (link, _) in self.waiting.drain(..) {
            self.console.outputs.push_back(Output::Reset { link });
        }
    }

    fn ended_by_sender(&mut self, now: Timestamp, link: Link) {
        // Anybody can reach this port. Only a host that takes part ends a test.
        if self.state == NtttcpReceiverState::Running && !self.clients.takes_part(link) {
            return self.reply(link, RUNNING);
        }
        self.reply(link, FINISHED);
        // A sender also says so at the end of its time if that is shorter than the agreed time.
        let early = !self.run.as_ref().is_some_and(|run| run.may_be_left(now));
        if self.state == NtttcpReceiverState::Running && early {
            self.console.info(now, "test exited because sender side was interrupted");
            self.stop_early(now);
        }
    }

    fn closed(&mut self, now: Timestamp, link: Link) {
        self.waiting.retain(|(other, _)| *other != link);
        self.console.outputs.push_back(Output::Close { link });
        self.left(now, link);
    }

    /// A sync connection was closed.
    fn left(&mut self, now: Timestamp, link: Link) {
        self.early.retain(|other| *other != link);
        if !self.clients.remove(link) {
            return;
        }
        match self.state {
            NtttcpReceiverState::Idle if self.clients.is_empty() => self.drop_waiting(),
            NtttcpReceiverState::Reserved | NtttcpReceiverState::Gathering if self.is_session(link) => {
                self.abandoned()
            }
            NtttcpReceiverState::Running if self.clients.ready().is_empty() => self.deserted(now),
            NtttcpReceiverState::Lingering if self.clients.has_no_others(&self.early) => self.next(),
            _ => {}
        }
    }

    /// No sender is left.
    fn deserted(&mut self, now: Timestamp) {
        if !self.run.as_ref().is_some_and(|run| run.may_be_left(now)) {
            self.console.error(now, "sender has closed the connection before the end of the test");
            self.code = EXIT_FAILED;
            self.stop_early(now);
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if let (NtttcpReceiverState::Running | NtttcpReceiverState::Ending, Some(run)) =
            (self.state, &mut self.run)
        {
            match run.tick(now, &self.options, &mut self.console) {
                Due::Nothing => {}
                Due::Ending => self.state = NtttcpReceiverState::Ending,
                Due::Settled => self.finish(now),
            }
            return;
        }
        for link in self.clients.overdue(now) {
            self.console.outputs.push_back(Output::Close { link });
            self.left(now, link);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            match self.state {
                NtttcpReceiverState::Idle => self.start_without_sync(now),
                NtttcpReceiverState::Gathering => self.ask_for_session(now),
                NtttcpReceiverState::Lingering => self.next(),
                _ => {}
            }
        }
    }

    /// Without a sync connection the first data connection begins the test.
    fn start_without_sync(&mut self, now: Timestamp) {
        if let Some((link, _)) = self.waiting.first().copied() {
            self.ask(now, link);
        }
    }

    fn stop_early(&mut self, now: Timestamp) {
        if let (NtttcpReceiverState::Running, Some(run)) = (self.state, &mut self.run) {
            run.stop_early(now, &self.options, &mut self.console);
            self.state = NtttcpReceiverState::Ending;
        }
    }

    fn ended(&mut self, now: Timestamp, flow: FlowId) {
        let Some(run) = self.run.as_mut().filter(|run| run.has_flow(flow)) else {
            // It ended after its test had stopped waiting.
            self.console.outputs.push_back(Output::Forget { flow });
            return;
        };
        run.ended(now, flow);
        let alone =
            !self.options.sync && run.running().is_empty() && self.state == NtttcpReceiverState::Running;
        if alone && !self.options.udp {
            self.deserted(now);
        }
    }

    fn finish(&mut self, now: Timestamp) {
        if let Some(run) = self.run.take() {
            run.report(now, &self.options, &mut self.console);
            let trouble = run.was_broken_off().then(|| "the test was aborted".to_owned());
            self.console.outputs.extend(run.release_flows());
            self.next_flow = run.next_flow();
            self.console.outputs.push_back(Output::RunOver { run: run.run, trouble });
        }
        // A sender whose timer runs a little longer must not get a reset.
        self.console.outputs.extend(self.used.iter().map(|link| Output::Discard { link: *link }));
        self.state = NtttcpReceiverState::Lingering;
        self.deadline = Some(now + LINGER_TIME);
        if self.clients.has_no_others(&self.early) {
            self.next();
        }
    }

    /// Handles the end of a test.
    fn next(&mut self) {
        self.console.outputs.extend(self.used.drain(..).map(|link| Output::Close { link }));
        let early = std::mem::take(&mut self.early);
        for link in self.clients.drain_but(&early) {
            self.console.outputs.push_back(Output::Close { link });
        }
        if self.serves || self.options.again {
            self.drop_waiting();
            (self.state, self.deadline, self.code) = (NtttcpReceiverState::Idle, None, 0);
            self.session = None;
            self.agreed = self.options.seconds;
            for link in early {
                self.queried(link);
            }
        } else {
            self.end();
        }
    }

    fn interrupted(&mut self, now: Timestamp) {
        self.console.info(now, "Interrupted by Ctrl+C");
        self.code = 1;
        self.options.again = false;
        self.serves = false;
        match self.state {
            NtttcpReceiverState::Running => self.stop_early(now),
            NtttcpReceiverState::Ending => {}
            _ => self.end(),
        }
    }

    fn end(&mut self) {
        self.state = NtttcpReceiverState::Over;
        self.deadline = None;
        for link in self.clients.drain() {
            self.console.outputs.push_back(Output::Close { link });
        }
        self.drop_waiting();
        self.console.outputs.extend(self.used.drain(..).map(|link| Output::Close { link }));
        for (link, _) in self.data_listeners() {
            self.console.outputs.push_back(Output::Close { link });
        }
        if self.options.sync {
            self.console.outputs.push_back(Output::Close { link: SYNC });
        }
        self.console.outputs.push_back(Output::Exit(self.code));
    }
}

impl StandIn for NtttcpReceiver {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.state == NtttcpReceiverState::Over {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { opened, .. } => self.listening(now, &opened),
            Input::NotOpened { link, reason } => self.not_listening(now, link, &reason),
            Input::Accepted { listener, link, opened } => self.accepted(now, listener, link, &opened),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Closed { link, .. } => self.closed(now, link),
            Input::Admitted { run } => self.admitted(now, run),
            Input::Refused { why, .. } => self.refused(now, &why),
            Input::Ended { counts } => self.ended(now, counts.flow),
            Input::NotStarted { flow, .. } => self.ended(now, flow),
            Input::Tick => self.tick(now),
            Input::Signal(_) => self.interrupted(now),
            other => {
                if let Some(run) = &mut self.run {
                    run.take_counts(now, &other, &self.options, &mut self.console);
                }
            }
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.console.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == NtttcpReceiverState::Over {
            return None;
        }
        if let (NtttcpReceiverState::Running | NtttcpReceiverState::Ending, Some(run)) =
            (self.state, &self.run)
        {
            return run.deadline();
        }
        self.deadline.into_iter().chain(self.clients.deadline()).min()
    }
}
