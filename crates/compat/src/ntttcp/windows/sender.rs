//! The end that connects and sends.

use linerate_units::{Span, Timestamp};

use super::dialer::Dialer;
use super::{DATA, QUESTIONS, TOKEN, TOKEN_PORTS, TOKENS, kind, link, ports, schedule};
use crate::ntttcp::console::NtttcpConsole;
use crate::ntttcp::options::NtttcpOptions;
use crate::ntttcp::run::{self, Due, NtttcpRun};
use crate::ntttcp::sender::EXIT_FAILED;
use crate::stand_in::{
    FlowId, Input, Link, LinkOptions, Output, RunId, StandIn, Stop, SystemError, Transport,
};

const RUN: RunId = RunId(0);

/// Timeout for a token or port of the receiver.
const RECEIVER_TIMEOUT: Span = Span::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowsSenderState {
    /// Opening connections of this kind and waiting for their answers.
    Dialing(u32),
    Running,
    Ending,
    Over,
}

/// NTttcp for Windows with `-s`.
pub struct WindowsSender {
    options: NtttcpOptions,
    console: NtttcpConsole,
    state: WindowsSenderState,
    dialer: Dialer,
    ports: Vec<u16>,
    /// Number of threads that have completed the current step.
    through: usize,
    /// The bytes of its port that each thread has received.
    port_bytes: Vec<Vec<u8>>,
    deadline: Option<Timestamp>,
    run: Option<NtttcpRun>,
    planned: bool,
    code: i32,
}

impl WindowsSender {
    /// A sender to the address in the options, which the driver knows. `time_of_day` is the local time at the
    /// driver's start.
    #[must_use]
    pub fn new(options: NtttcpOptions, time_of_day: Span) -> Self {
        Self {
            console: NtttcpConsole::new(time_of_day, None),
            state: WindowsSenderState::Dialing(DATA),
            dialer: Dialer::default(),
            ports: ports(&options),
            through: 0,
            port_bytes: vec![Vec::new(); usize::from(options.ports)],
            deadline: None,
            run: None,
            planned: false,
            code: 0,
            options,
        }
    }

    fn announces_ports(&self) -> bool {
        self.options.windows.as_ref().is_some_and(|windows| windows.announces_ports)
    }

    fn begin(&mut self, now: Timestamp) {
        run::banner(now, &mut self.console, &self.options);
        self.dial(now, if self.announces_ports() { QUESTIONS } else { DATA });
    }

    fn dial(&mut self, now: Timestamp, kind: u32) {
        self.state = WindowsSenderState::Dialing(kind);
        self.through = 0;
        self.deadline = Some(now + RECEIVER_TIMEOUT);
        for (thread, port) in self.ports.iter().enumerate() {
            let port = match kind {
                QUESTIONS => self.options.base,
                TOKENS => port.saturating_add(TOKEN_PORTS),
                _ => *port,
            };
            self.dialer.add(link(&self.options, kind, thread), port);
        }
        self.connect(now);
    }

    fn connect(&mut self, now: Timestamp) {
        for (link, port) in self.dialer.next(now) {
            let is_data = kind(&self.options, link).is_some_and(|(kind, _)| kind == DATA);
            let transport = if is_data { self.options.transport() } else { Transport::Tcp };
            let options = LinkOptions { transport, ..self.options.sync_link() };
            self.console.outputs.push_back(Output::Connect { link, port, to: None, options });
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link) {
        self.dialer.opened(link);
        match kind(&self.options, link) {
            Some((DATA, _)) => self.one_through(now),
            Some((TOKENS, _)) => {
                self.console.outputs.push_back(Output::Send { link, bytes: vec![TOKEN] });
            }
            _ => {}
        }
        self.connect(now);
    }

    fn not_opened(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        if self.dialer.not_opened(now, link) {
            return self.connect(now);
        }
        let text = format!("cannot connect to the receiver: {}. errno = {}", reason.text, reason.errno);
        self.fail(now, &text);
    }

    /// Handles a token, or the port of a thread.
    fn bytes(&mut self, now: Timestamp, from: Link, bytes: &[u8]) {
        let WindowsSenderState::Dialing(step) = self.state else {
            return;
        };
        let Some((kind, thread)) = kind(&self.options, from).filter(|(kind, _)| *kind == step) else {
            return;
        };
        if kind == TOKENS && bytes == [TOKEN] {
            self.console.outputs.push_back(Output::Close { link: from });
            return self.one_through(now);
        }
        let Some(received) = self.port_bytes.get_mut(thread).filter(|_| kind == QUESTIONS) else {
            return self.fail(
                now,
                "the receiver does not speak as NTttcp for Windows does: give -ns to both or to none",
            );
        };
        received.extend_from_slice(bytes);
        if received.len() < 4 {
            return;
        }
        let number = <[u8; 4]>::try_from(received.as_slice()).map_or(0, u32::from_le_bytes);
        let (Ok(port @ 1..), Some(place)) = (u16::try_from(number), self.ports.get_mut(thread)) else {
            return self.fail(now, &format!("the receiver tells {number}, which is no port"));
        };
        *place = port;
        self.console.outputs.push_back(Output::Close { link: from });
        self.one_through(now);
    }

    fn one_through(&mut self, now: Timestamp) {
        self.through += 1;
        if self.through < usize::from(self.options.ports) {
            return;
        }
        let tokens = self.options.windows.as_ref().is_some_and(|windows| windows.tokens);
        match self.state {
            WindowsSenderState::Dialing(QUESTIONS) => self.dial(now, DATA),
            WindowsSenderState::Dialing(DATA) if tokens => self.dial(now, TOKENS),
            WindowsSenderState::Dialing(_) => self.start(now),
            _ => {}
        }
    }

    fn start(&mut self, now: Timestamp) {
        self.console.info(now, "Network activity progressing...");
        self.state = WindowsSenderState::Running;
        self.deadline = None;
        let threads = usize::from(self.options.ports);
        let links: Vec<(Link, usize)> =
            (0..threads).map(|thread| (link(&self.options, DATA, thread), thread)).collect();
        let schedule = schedule(&self.options);
        let first = link(&self.options, DATA, 0);
        let planned = run::planned(RUN, first, &self.options, &schedule, self.options.streams());
        self.console.outputs.push_back(Output::Plan(Box::new(planned)));
        self.planned = true;
        let mut run = NtttcpRun::new(now, RUN, schedule, threads, &self.options, &mut self.console);
        if !self.options.udp {
            // A receiver accepts a reset as the end, but treats an early orderly close as an error.
            run.stops_by(Stop::Abort);
        }
        run.start(&links, &self.options, &mut self.console);
        self.run = Some(run);
    }

    fn tick(&mut self, now: Timestamp) {
        match (self.state, &mut self.run) {
            (_, Some(run)) => match run.tick(now, &self.options, &mut self.console) {
                Due::Nothing => {}
                Due::Ending => self.state = WindowsSenderState::Ending,
                Due::Settled => self.finish(now),
            },
            (WindowsSenderState::Dialing(_), _) if self.deadline.is_some_and(|at| now >= at) => {
                self.fail(now, "the receiver does not answer: give the same -m, -p, -ns and -sp to both");
            }
            _ => self.connect(now),
        }
    }

    /// All buffers are written.
    fn written(&mut self, now: Timestamp) {
        if let (WindowsSenderState::Running, Some(run)) = (self.state, &mut self.run) {
            run.complete(now, Stop::Regularly, &self.options, &mut self.console);
            self.state = WindowsSenderState::Ending;
        }
    }

    fn ended(&mut self, now: Timestamp, flow: FlowId) {
        let Some(run) = self.run.as_mut().filter(|run| run.has_flow(flow)) else {
            return;
        };
        run.ended(now, flow);
        let early = !run.may_be_left(now);
        if self.state == WindowsSenderState::Running && early {
            self.console.error(now, "receiver has closed the connection before the end of the test");
            self.code = EXIT_FAILED;
            self.stop_early(now);
        }
    }

    fn stop_early(&mut self, now: Timestamp) {
        if let (WindowsSenderState::Running, Some(run)) = (self.state, &mut self.run) {
            run.stop_early(now, &self.options, &mut self.console);
            self.state = WindowsSenderState::Ending;
        }
    }

    fn interrupted(&mut self, now: Timestamp) {
        self.code = 1;
        match self.state {
            WindowsSenderState::Running => self.stop_early(now),
            WindowsSenderState::Ending => {}
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
        self.state = WindowsSenderState::Over;
        self.deadline = None;
        for thread in 0..usize::from(self.options.ports) {
            let link = link(&self.options, DATA, thread);
            self.console.outputs.push_back(Output::Close { link });
        }
        if self.planned {
            let trouble = (self.code != 0).then(|| "the test was aborted".to_owned());
            self.console.outputs.push_back(Output::RunOver { run: RUN, trouble });
        }
        self.console.outputs.push_back(Output::Exit(self.code));
    }
}

impl StandIn for WindowsSender {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.state == WindowsSenderState::Over {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { link, .. } => self.opened(now, link),
            Input::NotOpened { link, reason } => self.not_opened(now, link, &reason),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Written { .. } => self.written(now),
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
        match (self.state, &self.run) {
            (WindowsSenderState::Over, _) => None,
            (WindowsSenderState::Running | WindowsSenderState::Ending, Some(run)) => run.deadline(),
            _ => self.deadline.into_iter().chain(self.dialer.deadline()).min(),
        }
    }
}
