//! The end that connects and sends.

use crate::stand_in::FlowId;
use linerate_units::{Span, Timestamp};

use super::console::NtttcpConsole;
use super::meter::PhaseDurations;
use super::options::NtttcpOptions;
use super::run::{self, Due, NtttcpRun};
use super::wire::{self, END, LAST, NumberSplitter, QUERY, READY, RUNNING, WAIT};
use crate::stand_in::{Input, Link, LinkOptions, Opened, Output, RunId, StandIn, SystemError};

const SYNC: Link = Link(0);

/// Link number of the first data connection.
const FIRST_CONNECTION: u32 = 1;

const RUN: RunId = RunId(0);

/// Timeout for an answer of the receiver.
const RECEIVER_TIMEOUT: Span = Span::from_secs(30);

/// The exit code for the tool's general error, -1000.
pub(super) const EXIT_FAILED: i32 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NtttcpSenderState {
    Connecting,
    Asked,
    Proposed,
    Opening,
    Ready,
    Waiting,
    Running,
    Ending,
    Over,
}

/// NTttcp with `-s`.
pub struct NtttcpSender {
    options: NtttcpOptions,
    console: NtttcpConsole,
    state: NtttcpSenderState,
    numbers: NumberSplitter,
    deadline: Option<Timestamp>,
    schedule: PhaseDurations,
    opened: u32,
    opening_since: Timestamp,
    run: Option<NtttcpRun>,
    planned: bool,
    code: i32,
}

impl NtttcpSender {
    /// A sender to the address in the options, which the driver knows. `time_of_day` is the local time at the
    /// driver's start.
    #[must_use]
    pub fn new(options: NtttcpOptions, time_of_day: Span) -> Self {
        Self {
            console: NtttcpConsole::new(time_of_day, options.log.clone()),
            schedule: PhaseDurations::new(options.omit, options.seconds, proposal(&options)),
            options,
            state: NtttcpSenderState::Connecting,
            numbers: NumberSplitter::default(),
            deadline: None,
            opened: 0,
            opening_since: Timestamp::START,
            run: None,
            planned: false,
            code: 0,
        }
    }

    fn begin(&mut self, now: Timestamp) {
        run::banner(now, &mut self.console, &self.options);
        if self.options.sync {
            let (port, options) = (self.options.base - 1, self.options.sync_link());
            self.console.outputs.push_back(Output::Connect { link: SYNC, port, to: None, options });
        } else {
            self.console.info(now, "Starting sender activity (no sync) ...");
            self.open_data(now);
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: &Opened) {
        let remote = opened.remote.map_or_else(String::new, |remote| remote.to_string());
        let (port, socket) = (opened.local.port(), opened.descriptor);
        if link == SYNC {
            if self.options.verbose {
                let text = format!("Sync connection: local:{port} [socket:{socket}] --> {remote}");
                self.console.debug(now, &text);
            }
            self.state = NtttcpSenderState::Asked;
            return self.ask(now, QUERY);
        }
        if self.options.verbose {
            let text = format!("New connection: local:{port} [socket:{socket}] --> {remote}");
            self.console.debug(now, &text);
        }
        self.opened += 1;
        if self.opened == self.options.streams() && self.state == NtttcpSenderState::Opening {
            self.all_open(now);
        }
    }

    fn not_opened(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        let host = self.options.address.clone().unwrap_or_default();
        let (port, what) = if link == SYNC {
            (self.options.base - 1, "sender: failed to create sync socket")
        } else {
            (self.port_of(link), "sender: failed to create a data connection")
        };
        let errno = reason.errno;
        let text = format!("failed to connect to receiver: {host}:{port} on socket: 3. errno = {errno}");
        self.console.error(now, &text);
        self.fail(now, what);
    }

    fn thread_of(&self, link: Link) -> usize {
        let at = link.0.saturating_sub(FIRST_CONNECTION) / u32::from(self.options.connections.max(1));
        usize::try_from(at).unwrap_or(0)
    }

    fn port_of(&self, link: Link) -> u16 {
        let port = self.thread_of(link) / usize::from(self.options.threads.max(1));
        self.options.base.saturating_add(u16::try_from(port).unwrap_or(0))
    }

    fn data_links(&self) -> impl Iterator<Item = Link> + use<> {
        (FIRST_CONNECTION..FIRST_CONNECTION + self.options.streams()).map(Link)
    }

    fn open_data(&mut self, now: Timestamp) {
        self.console.info(now, &format!("{} threads created", self.options.sender_threads()));
        self.state = NtttcpSenderState::Opening;
        self.opening_since = now;
        self.deadline = Some(now + RECEIVER_TIMEOUT);
        for link in self.data_links() {
            let at = u16::try_from(link.0 - FIRST_CONNECTION).unwrap_or(u16::MAX);
            let local_port = self.options.source_port.map(|first| first.saturating_add(at));
            let options = LinkOptions { local_port, ..self.options.data_link() };
            let port = self.port_of(link);
            self.console.outputs.push_back(Output::Connect { link, port, to: None, options });
        }
    }

    fn all_open(&mut self, now: Timestamp) {
        let microseconds = now.since(self.opening_since).as_ns() / 1000;
        let text = format!("{} connections created in {microseconds} microseconds", self.opened);
        self.console.info(now, &text);
        if self.options.sync {
            self.state = NtttcpSenderState::Ready;
            self.ask(now, if self.options.last { LAST } else { READY });
        } else {
            self.start(now);
        }
    }

    fn ask(&mut self, now: Timestamp, number: i32) {
        self.console.outputs.push_back(Output::Send { link: SYNC, bytes: wire::encode(number) });
        self.deadline = Some(now + RECEIVER_TIMEOUT);
    }

    /// Handles a number from the receiver.
    fn answer(&mut self, now: Timestamp, number: i32) {
        match self.state {
            NtttcpSenderState::Asked if number == RUNNING => {
                self.fail(now, "receiver is busy with an existing test running")
            }
            NtttcpSenderState::Asked => {
                self.state = NtttcpSenderState::Proposed;
                self.ask(now, i32::try_from(proposal(&self.options)).unwrap_or(i32::MAX));
            }
            NtttcpSenderState::Proposed => self.agreed(now, number),
            NtttcpSenderState::Ready | NtttcpSenderState::Waiting => match number {
                READY => self.start(now),
                WAIT => {
                    self.console.info(now, "waiting for the last client to join the test");
                    self.state = NtttcpSenderState::Waiting;
                    self.deadline = None;
                }
                END => self.fail(now, "receiver refused to start the test"),
                _ => self.fail(
                    now,
                    &format!(
                        "receiver answered {number}, which is not a valid answer to a \
                                              start"
                    ),
                ),
            },
            // A receiver answers the last of several senders twice.
            _ => {}
        }
    }

    fn agreed(&mut self, now: Timestamp, seconds: i32) {
        let Ok(agreed) = u32::try_from(seconds) else {
            return self.fail(now, "receiver answered a negative time");
        };
        if agreed != self.options.seconds {
            self.console.info(now, &format!("Test cycle time negotiated is: {agreed} seconds"));
        }
        self.schedule = PhaseDurations::new(self.options.omit, self.options.seconds, agreed);
        self.open_data(now);
    }

    fn start(&mut self, now: Timestamp) {
        if self.options.sync {
            self.console.info(now, "Network activity progressing...");
        }
        self.state = NtttcpSenderState::Running;
        self.deadline = None;
        let links: Vec<(Link, usize)> = self.data_links().map(|link| (link, self.thread_of(link))).collect();
        let Some((first, _)) = links.first().copied() else {
            return;
        };
        let streams = self.options.streams();
        let planned = run::planned(RUN, first, &self.options, &self.schedule, streams);
        self.console.outputs.push_back(Output::Plan(Box::new(planned)));
        self.planned = true;
        let threads = usize::try_from(self.options.sender_threads()).unwrap_or(0);
        let mut run = NtttcpRun::new(now, RUN, self.schedule, threads, &self.options, &mut self.console);
        run.start(&links, &self.options, &mut self.console);
        self.run = Some(run);
    }

    fn tick(&mut self, now: Timestamp) {
        if let (NtttcpSenderState::Running | NtttcpSenderState::Ending, Some(run)) =
            (self.state, &mut self.run)
        {
            match run.tick(now, &self.options, &mut self.console) {
                Due::Nothing => {}
                Due::Ending => self.state = NtttcpSenderState::Ending,
                Due::Settled => self.finish(now),
            }
        } else if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.fail(now, "receiver does not answer: is it NTttcp for Linux, with the same -N and -P?");
        }
    }

    /// Ends the test early.
    fn stop_early(&mut self, now: Timestamp) {
        if let (NtttcpSenderState::Running, Some(run)) = (self.state, &mut self.run) {
            run.stop_early(now, &self.options, &mut self.console);
            self.state = NtttcpSenderState::Ending;
        }
    }

    /// A flow has ended; too early if the receiver has disconnected.
    fn ended(&mut self, now: Timestamp, flow: FlowId) {
        let Some(run) = self.run.as_mut().filter(|run| run.has_flow(flow)) else {
            return;
        };
        run.ended(now, flow);
        let nearly = run.may_be_left(now);
        if self.state == NtttcpSenderState::Running && !nearly {
            self.lost(now);
        }
    }

    fn lost(&mut self, now: Timestamp) {
        self.console.error(now, "receiver has closed the connection before the end of the test");
        self.code = EXIT_FAILED;
        self.stop_early(now);
    }

    fn closed(&mut self, now: Timestamp) {
        match self.state {
            NtttcpSenderState::Running => {
                if !self.run.as_ref().is_some_and(|run| run.may_be_left(now)) {
                    self.lost(now);
                }
            }
            NtttcpSenderState::Ending | NtttcpSenderState::Over => {}
            _ => self.fail(now, "cannot read data from the socket for sender/receiver sync"),
        }
    }

    fn interrupted(&mut self, now: Timestamp) {
        self.console.info(now, "Interrupted by Ctrl+C");
        self.code = 1;
        match self.state {
            NtttcpSenderState::Running => {
                if self.options.sync {
                    self.console.outputs.push_back(Output::Send { link: SYNC, bytes: wire::encode(END) });
                }
                self.stop_early(now);
            }
            NtttcpSenderState::Ending => {}
            _ => self.end(),
        }
    }

    fn finish(&mut self, now: Timestamp) {
        if let Some(run) = &self.run {
            run.report(now, &self.options, &mut self.console);
        }
        self.end();
    }

    fn fail(&mut self, now: Timestamp, text: &str) {
        self.console.error(now, text);
        self.code = EXIT_FAILED;
        self.end();
    }

    fn end(&mut self) {
        if self.state == NtttcpSenderState::Over {
            return;
        }
        self.state = NtttcpSenderState::Over;
        self.deadline = None;
        for link in self.data_links() {
            self.console.outputs.push_back(Output::Close { link });
        }
        self.console.outputs.push_back(Output::Close { link: SYNC });
        if self.planned {
            let trouble = (self.code != 0).then(|| "the test was aborted".to_owned());
            self.console.outputs.push_back(Output::RunOver { run: RUN, trouble });
        }
        self.console.outputs.push_back(Output::Exit(self.code));
    }
}

/// Seconds of the whole test, 0 for no limit; avoids values that a receiver could mistake for another request.
fn proposal(options: &NtttcpOptions) -> u32 {
    if options.seconds == 0 {
        return 0;
    }
    let total = options.omit + options.seconds + options.cooldown;
    let mistaken = i32::try_from(total).is_ok_and(wire::is_mistaken);
    if mistaken && options.sync { total + 1 } else { total }
}

impl StandIn for NtttcpSender {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.state == NtttcpSenderState::Over {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { link, opened } => self.opened(now, link, &opened),
            Input::NotOpened { link, reason } => self.not_opened(now, link, &reason),
            Input::Bytes { link: SYNC, bytes } => {
                for number in self.numbers.push(bytes) {
                    self.answer(now, number);
                }
            }
            Input::Closed { link: SYNC, .. } => self.closed(now),
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
        let run = self
            .run
            .as_ref()
            .filter(|_| matches!(self.state, NtttcpSenderState::Running | NtttcpSenderState::Ending));
        run.and_then(NtttcpRun::deadline).or(self.deadline)
    }
}
