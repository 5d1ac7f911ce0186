//! The end that listens and counts, for one test.

use linerate_units::{Span, Timestamp};

use super::{DATA, TOKEN, TOKEN_PORTS, TOKENS, kind, link, ports, schedule};
use crate::ntttcp::console::NtttcpConsole;
use crate::ntttcp::options::NtttcpOptions;
use crate::ntttcp::run::{self, Due, NtttcpRun};
use crate::ntttcp::sender::EXIT_FAILED;
use crate::stand_in::{
    FlowCounts, Input, Link, LinkOptions, Output, RunId, StandIn, Stop, SystemError, Transport,
};

/// The listener on which threads request their port.
const PORT_LISTENER: Link = Link(0);

const RUN: RunId = RunId(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowsReceiverState {
    Gathering,
    /// Waiting for the driver's permission.
    Asked,
    Running,
    Ending,
    Over,
}

/// NTttcp for Windows with `-r`.
pub struct WindowsReceiver {
    options: NtttcpOptions,
    console: NtttcpConsole,
    state: WindowsReceiverState,
    /// The connection of each thread.
    data: Vec<Option<Link>>,
    /// Connections that wait for a token, and the number of threads that have theirs.
    expected: Vec<Link>,
    tokens: usize,
    /// Number of threads that were sent their port.
    announced: u16,
    listening: usize,
    run: Option<NtttcpRun>,
    code: i32,
}

impl WindowsReceiver {
    /// Creates a receiver; `time_of_day` is the local time at the driver's start.
    #[must_use]
    pub fn new(options: NtttcpOptions, time_of_day: Span) -> Self {
        Self {
            console: NtttcpConsole::new(time_of_day, None),
            state: WindowsReceiverState::Gathering,
            data: vec![None; usize::from(options.ports)],
            expected: Vec::new(),
            tokens: 0,
            announced: 0,
            listening: 0,
            run: None,
            code: 0,
            options,
        }
    }

    fn has_tokens(&self) -> bool {
        self.options.windows.as_ref().is_some_and(|windows| windows.tokens)
    }

    fn listeners(&self) -> Vec<(Link, u16, Transport)> {
        let mut all = Vec::new();
        if self.options.windows.as_ref().is_some_and(|windows| windows.announces_ports) {
            all.push((PORT_LISTENER, self.options.base, Transport::Tcp));
        }
        for (thread, port) in ports(&self.options).into_iter().enumerate() {
            all.push((link(&self.options, DATA, thread), port, self.options.transport()));
            if self.has_tokens() {
                let port = port.saturating_add(TOKEN_PORTS);
                all.push((link(&self.options, TOKENS, thread), port, Transport::Tcp));
            }
        }
        all
    }

    fn begin(&mut self, now: Timestamp) {
        run::banner(now, &mut self.console, &self.options);
        for (link, port, transport) in self.listeners() {
            let options = LinkOptions { transport, ..self.options.sync_link() };
            self.console.outputs.push_back(Output::Listen { link, port, options });
        }
    }

    fn listening(&mut self) {
        self.listening += 1;
        if self.options.udp && self.listening == self.listeners().len() {
            self.begin_if_complete();
        }
    }

    fn not_listening(&mut self, now: Timestamp, reason: &SystemError) {
        let text = format!("cannot listen: {}. errno = {}", reason.text, reason.errno);
        self.console.error(now, &text);
        self.code = EXIT_FAILED;
        self.end();
    }

    fn accepted(&mut self, listener: Link, link: Link) {
        if listener == PORT_LISTENER {
            let port = u32::from(self.options.base) + u32::from(self.announced) + 1;
            if self.announced < self.options.ports {
                self.announced += 1;
                let bytes = port.to_le_bytes().to_vec();
                self.console.outputs.push_back(Output::Send { link, bytes });
            }
            self.console.outputs.push_back(Output::Close { link });
            return;
        }
        match kind(&self.options, listener) {
            Some((DATA, thread)) => {
                let place = self.data.get_mut(thread).filter(|place| place.is_none());
                let Some(place) = place.filter(|_| self.state == WindowsReceiverState::Gathering) else {
                    self.console.outputs.push_back(Output::Reset { link });
                    return;
                };
                *place = Some(link);
                // A sender may finish its tokens before this end does.
                self.console.outputs.push_back(Output::Hold { link });
                self.console.outputs.push_back(Output::Close { link: listener });
                self.begin_if_complete();
            }
            Some((TOKENS, _)) if self.expected.len() < usize::from(self.options.ports) => {
                self.expected.push(link);
                self.console.outputs.push_back(Output::Send { link, bytes: vec![TOKEN] });
            }
            _ => self.console.outputs.push_back(Output::Reset { link }),
        }
    }

    fn bytes(&mut self, link: Link, bytes: &[u8]) {
        let before = self.expected.len();
        self.expected.retain(|other| *other != link || bytes != [TOKEN]);
        if self.expected.len() < before {
            self.console.outputs.push_back(Output::Close { link });
            self.tokens += 1;
            self.begin_if_complete();
        }
    }

    fn begin_if_complete(&mut self) {
        let threads = usize::from(self.options.ports);
        let connected = self.options.udp || self.data.iter().all(Option::is_some);
        let ready = connected && (!self.has_tokens() || self.tokens >= threads);
        if ready && self.state == WindowsReceiverState::Gathering {
            self.state = WindowsReceiverState::Asked;
            let first = self.links().first().map_or(PORT_LISTENER, |(link, _)| *link);
            let schedule = schedule(&self.options);
            let planned = run::planned(RUN, first, &self.options, &schedule, self.options.streams());
            self.console.outputs.push_back(Output::Ask(Box::new(planned)));
        }
    }

    /// The links of a flow, with their threads.
    fn links(&self) -> Vec<(Link, usize)> {
        let data = self.data.iter().enumerate();
        if self.options.udp {
            return data.map(|(thread, _)| (link(&self.options, DATA, thread), thread)).collect();
        }
        data.filter_map(|(thread, link)| Some(((*link)?, thread))).collect()
    }

    fn admitted(&mut self, now: Timestamp) {
        if self.state != WindowsReceiverState::Asked {
            return;
        }
        self.state = WindowsReceiverState::Running;
        self.console.info(now, "Network activity progressing...");
        let threads = usize::from(self.options.ports);
        let schedule = schedule(&self.options);
        let mut run = NtttcpRun::new(now, RUN, schedule, threads, &self.options, &mut self.console);
        run.start(&self.links(), &self.options, &mut self.console);
        self.run = Some(run);
    }

    fn refused(&mut self, now: Timestamp, why: &str) {
        self.console.error(now, &format!("the test was refused: {why}"));
        self.code = EXIT_FAILED;
        self.end();
    }

    /// The sender's connections have ended: a reset, or an end after all buffers, is normal.
    fn ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        let Some(run) = self.run.as_mut().filter(|run| run.has_flow(counts.flow)) else {
            return;
        };
        run.ended(now, counts.flow);
        if self.state == WindowsReceiverState::Running {
            let early = run.meter.end().is_some() && !run.may_be_left(now);
            if early && counts.trouble.is_none() {
                self.console.error(now, "Unexpected disconnect");
            }
            run.complete(now, Stop::AtOnce, &self.options, &mut self.console);
            self.state = WindowsReceiverState::Ending;
        }
    }

    fn tick(&mut self, now: Timestamp) {
        let Some(run) = &mut self.run else { return };
        match run.tick(now, &self.options, &mut self.console) {
            Due::Nothing => {}
            Due::Ending => self.state = WindowsReceiverState::Ending,
            Due::Settled => self.finish(now),
        }
    }

    fn interrupted(&mut self, now: Timestamp) {
        self.code = 1;
        match (self.state, &mut self.run) {
            (WindowsReceiverState::Running, Some(run)) => {
                run.stop_early(now, &self.options, &mut self.console);
                self.state = WindowsReceiverState::Ending;
            }
            (WindowsReceiverState::Ending, _) => {}
            _ => self.end(),
        }
    }

    fn finish(&mut self, now: Timestamp) {
        if let Some(run) = self.run.take() {
            run.report(now, &self.options, &mut self.console);
            let trouble = run.was_broken_off().then(|| "the test was aborted".to_owned());
            self.console.outputs.push_back(Output::RunOver { run: RUN, trouble });
        }
        self.end();
    }

    fn end(&mut self) {
        self.state = WindowsReceiverState::Over;
        let listeners = self.listeners().into_iter().map(|(link, ..)| link);
        let all = listeners.chain(self.data.iter().flatten().copied()).chain(self.expected.iter().copied());
        let close: Vec<Output> = all.map(|link| Output::Close { link }).collect();
        self.console.outputs.extend(close);
        self.console.outputs.push_back(Output::Exit(self.code));
    }
}

impl StandIn for WindowsReceiver {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.state == WindowsReceiverState::Over {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { .. } => self.listening(),
            Input::NotOpened { reason, .. } => self.not_listening(now, &reason),
            Input::Accepted { listener, link, .. } => self.accepted(listener, link),
            Input::Bytes { link, bytes } => self.bytes(link, bytes),
            Input::Closed { link, .. } => self.expected.retain(|other| *other != link),
            Input::Admitted { .. } => self.admitted(now),
            Input::Refused { why, .. } => self.refused(now, &why),
            Input::Ended { counts } => self.ended(now, counts),
            Input::NotStarted { flow, reason } => {
                let counts = FlowCounts { flow, trouble: Some(reason), ..FlowCounts::default() };
                self.ended(now, &counts);
            }
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
            (WindowsReceiverState::Over, _) => None,
            (WindowsReceiverState::Running | WindowsReceiverState::Ending, Some(run)) => run.deadline(),
            _ => None,
        }
    }
}
