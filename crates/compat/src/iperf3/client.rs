//! iperf3's client.

mod close;
mod open;
mod receive;
mod run;

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::auth::Login;
use super::errors::{Iperf3Error, Iperf3ErrorNumber};
use super::params::Params;
use super::report::{Iperf3Report, Iperf3SystemInfo, OutputText};
use super::results::Iperf3Results;
use super::settings::Iperf3Settings;
use super::state::Iperf3State;
use super::test_state::Iperf3OpenTest;
use super::wire::Cookie;
use crate::stand_in::{Input, Link, Opened, Output, RunId, StandIn, Stop};

/// The link of the control connection.
const CONTROL: Link = Link(1);
/// The link of the first stream; the others follow.
const FIRST_STREAM: u32 = 2;
/// The only run.
const RUN: RunId = RunId(0);

/// Timeout for a message of the server during the setup.
const SETUP_TIMEOUT: Span = Span::from_secs(30);
/// Timeout for the results: all data that are queued on the path may have to arrive first.
const RESULTS_TIMEOUT: Span = Span::from_secs(60);
/// Timeout for the server to close the connection at the end.
const CLOSE_TIMEOUT: Span = Span::from_secs(3);
/// Timeout for flows to stop.
const STOP_TIMEOUT: Span = Span::from_secs(2);
/// How long to wait for the server's error message after a stream has broken.
const ERROR_REPORT_TIMEOUT: Span = Span::from_ms(500);
/// How often a goal is checked that the engine cannot check.
const GOAL_TICK: Span = Span::from_ms(5);

/// The configuration of a client in addition to its command line.
#[derive(Debug)]
pub struct Iperf3ClientConfig {
    /// The settings from the command line.
    pub settings: Iperf3Settings,
    /// The description of this host.
    pub host: Iperf3SystemInfo,
    /// Milliseconds since the Unix epoch at [`Timestamp::START`].
    pub unix_ms: u64,
    /// Random seed for the cookie and the login; must be unguessable.
    pub seed: [u8; 32],
    /// The credentials; absent for no login.
    pub login: Option<Login>,
}

/// The client of iperf3: one test, from the connection to the exit.
#[derive(Debug)]
pub struct Iperf3Client {
    config: Iperf3ClientConfig,
    random: StdRng,
    out: VecDeque<Output>,
    phase: Iperf3ClientPhase,
    /// When this phase times out.
    timeout: Option<Timestamp>,
    /// Unprocessed bytes of the control connection.
    held: Vec<u8>,
    /// Whether the server has sent anything.
    server_replied: bool,
    cookie: Cookie,
    report: Iperf3Report,
    control: Option<Opened>,
    params: Option<Params>,
    streams: Vec<Opened>,
    test: Option<Iperf3OpenTest>,
    /// When the duration of the test ends.
    end: Option<Timestamp>,
    /// When the goal is checked next.
    goal_tick: Option<Timestamp>,
    /// The error of a broken stream, in case the server reports none.
    broken: Option<Iperf3Error>,
    /// When the last counts were read.
    ended_at: Timestamp,
    /// The server's results.
    peer: Option<Iperf3Results>,
    /// Whether the server has closed the connection at the end.
    parted: bool,
    /// Why counts were requested.
    looking: Iperf3ClientCountsReason,
    /// The signal that ended the test.
    signal: Option<i32>,
}

/// The phase of the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf3ClientPhase {
    /// Opening the control connection.
    Connecting,
    /// The cookie was sent; waiting for the requests of the parameters and then of the streams.
    Agreeing,
    /// Opening the streams.
    Opening,
    /// The streams are open; waiting for the start.
    Ready,
    /// The timers run.
    Running,
    /// Waiting for the flows to stop.
    Stopping,
    /// TEST_END was sent; waiting for the request of the results.
    Ended,
    /// Our results were sent; waiting for the server's.
    Exchanging,
    /// The results were exchanged; waiting for the server's DISPLAY_RESULTS.
    Showing,
    /// IPERF_DONE was sent.
    Leaving,
    /// The server has failed; waiting for the numbers of its error.
    Failing,
    /// Over.
    Over,
}

/// Why counts were requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf3ClientCountsReason {
    /// They were not requested.
    No,
    /// The timers start.
    Begin,
    /// A timer is due.
    Timer,
    /// The test ends: the last counts of received data.
    Last,
    /// The test is interrupted: the counts so far.
    BreakOff,
}

impl Iperf3Client {
    /// Creates a client that has not started.
    #[must_use]
    pub fn new(config: Iperf3ClientConfig) -> Self {
        let mut random = StdRng::from_seed(config.seed);
        let cookie = Cookie::generate(&mut random);
        let report = Iperf3Report::new(&config.settings, &config.host);
        Self {
            config,
            random,
            out: VecDeque::new(),
            phase: Iperf3ClientPhase::Connecting,
            timeout: None,
            held: Vec::new(),
            server_replied: false,
            cookie,
            report,
            control: None,
            params: None,
            streams: Vec::new(),
            test: None,
            end: None,
            goal_tick: None,
            broken: None,
            ended_at: Timestamp::START,
            peer: None,
            parted: false,
            looking: Iperf3ClientCountsReason::No,
            signal: None,
        }
    }

    fn enter(&mut self, phase: Iperf3ClientPhase, timeout: Option<Timestamp>) {
        self.phase = phase;
        self.timeout = timeout;
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send { link: CONTROL, bytes });
    }

    fn send_state(&mut self, state: Iperf3State) {
        let words = self.report.sent_state(state);
        self.speak(words);
        self.send(vec![state.byte()]);
    }

    fn print(&mut self, text: String) {
        if !text.is_empty() {
            self.out.push_back(Output::Print(text));
        }
    }

    fn speak(&mut self, words: OutputText) {
        self.print(words.out);
        if !words.err.is_empty() {
            self.out.push_back(Output::PrintError(words.err));
        }
    }

    fn request_counts(&mut self, why: Iperf3ClientCountsReason) {
        self.looking = why;
        self.out.push_back(Output::Look);
    }

    fn is_udp(&self) -> bool {
        self.config.settings.client.udp
    }

    /// Handles a signal: informs the server and prints what was measured.
    fn interrupt(&mut self, signal: i32) {
        self.signal = Some(signal);
        match self.phase {
            Iperf3ClientPhase::Running => self.request_counts(Iperf3ClientCountsReason::BreakOff),
            Iperf3ClientPhase::Over => {}
            Iperf3ClientPhase::Leaving => self.exit(0),
            _ => self.show_interrupted(),
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.timeout = None;
            self.timed_out(now);
        } else if self.phase == Iperf3ClientPhase::Running && self.looking == Iperf3ClientCountsReason::No {
            self.request_counts(Iperf3ClientCountsReason::Timer);
        }
    }

    /// A timeout has passed.
    fn timed_out(&mut self, now: Timestamp) {
        const ETIMEDOUT: i32 = 110;
        let late = |number| Iperf3Error::because(number, ETIMEDOUT, "Connection timed out");
        match self.phase {
            Iperf3ClientPhase::Opening => self.fail(&late(if self.is_udp() {
                Iperf3ErrorNumber::STREAM_READ
            } else {
                Iperf3ErrorNumber::STREAM_CONNECT
            })),
            Iperf3ClientPhase::Running => {
                let trouble = self.broken.take().unwrap_or_else(|| late(Iperf3ErrorNumber::STREAM_READ));
                self.fail(&trouble);
            }
            Iperf3ClientPhase::Stopping => self.finish(now),
            Iperf3ClientPhase::Exchanging => self.fail(&late(Iperf3ErrorNumber::RECV_RESULTS)),
            Iperf3ClientPhase::Failing => self.server_failed(),
            Iperf3ClientPhase::Leaving => self.exit(0),
            Iperf3ClientPhase::Over => {}
            _ => self.fail(&late(Iperf3ErrorNumber::RECV_MESSAGE)),
        }
    }
}

impl StandIn for Iperf3Client {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.phase == Iperf3ClientPhase::Over {
            return;
        }
        match input {
            Input::Begin => self.connect(),
            Input::Opened { link: CONTROL, opened } => self.control_opened(now, opened),
            Input::Opened { link, opened } => self.stream_opened(now, link, opened),
            Input::NotOpened { link, reason } => self.not_opened(link, &reason),
            Input::Bytes { link: CONTROL, bytes } => self.receive(now, bytes),
            Input::Datagram { link, bytes, .. } => self.datagram(now, link, bytes),
            Input::Closed { link, reason } => self.link_closed(now, link, reason),
            Input::NotStarted { flow, reason } => self.not_started(flow, &reason),
            Input::Counts { cpu, flows } => self.counts(now, cpu, flows),
            Input::Written { .. } => self.stop(now),
            Input::Ended { counts } => self.flow_ended(now, counts),
            Input::Tick => self.tick(now),
            Input::Signal(signal) => self.interrupt(signal),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let timers = if self.phase == Iperf3ClientPhase::Running { self.timer() } else { None };
        [self.timeout, timers].into_iter().flatten().min()
    }
}

/// Aborts all running flows.
fn abort(test: &Iperf3OpenTest, out: &mut VecDeque<Output>) {
    out.extend(test.running().iter().map(|flow| Output::Stop { flow: *flow, how: Stop::Abort }));
}
