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
use super::errors::{Iperf3Error, Number};
use super::params::Params;
use super::report::{Host, Report, Words};
use super::results::Results;
use super::settings::Settings;
use super::state::State;
use super::test_state::Course;
use super::wire::Cookie;
use crate::stand_in::{Input, Link, Opened, Output, RunId, StandIn, Stop};

/// The control connection.
const CONTROL: Link = Link(1);
/// The first stream; the others follow.
const FIRST_STREAM: u32 = 2;
/// The only run.
const RUN: RunId = 0;

/// Longest wait for a word of the server while the test is set up.
const SETUP_TIMEOUT: Span = Span::from_secs(30);
/// Longest wait for the results: all that is queued on the path may have to arrive first.
const RESULTS_TIMEOUT: Span = Span::from_secs(60);
/// Longest wait for the server to close, after the farewell.
const CLOSE_TIMEOUT: Span = Span::from_secs(3);
/// Longest wait for flows that were told to stop.
const STOP_TIMEOUT: Span = Span::from_secs(2);
/// How long a broken stream waits for the server's word about it.
const ERROR_REPORT_TIMEOUT: Span = Span::from_ms(500);
/// How often a goal is looked at that the engine cannot know.
const GOAL_TICK: Span = Span::from_ms(5);

/// What a client is told beside its command line.
#[derive(Debug)]
pub struct ClientConfig {
    /// The command line.
    pub settings: Settings,
    /// This host.
    pub host: Host,
    /// Milliseconds since the Unix epoch at [`Timestamp::START`].
    pub unix_ms: u64,
    /// Randomness for the cookie and the login; nobody may guess it.
    pub seed: [u8; 32],
    /// Who logs in.
    pub login: Option<Login>,
}

/// The client of iperf3: one test, from the connection to the exit.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    random: StdRng,
    out: VecDeque<Output>,
    phase: Phase,
    /// When this phase is given up.
    patience: Option<Timestamp>,
    /// Bytes of the control connection that wait for their turn.
    held: Vec<u8>,
    /// Whether the server has said a word.
    heard: bool,
    cookie: Cookie,
    report: Report,
    control: Option<Opened>,
    params: Option<Params>,
    streams: Vec<Opened>,
    course: Option<Course>,
    /// When time ends the test.
    end: Option<Timestamp>,
    /// When a goal is looked at next.
    goal_tick: Option<Timestamp>,
    /// A stream broke: what to say about it, unless the server says more.
    broken: Option<Iperf3Error>,
    /// When the last counts were read.
    ended_at: Timestamp,
    /// What the server has counted.
    peer: Option<Results>,
    /// The server has closed after the farewell.
    parted: bool,
    /// Why counts were asked for.
    looking: Looking,
    /// The signal that ended the test.
    signal: Option<i32>,
}

/// Where the dialogue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The control connection is being opened.
    Connecting,
    /// The cookie was sent; the server asks for the parameters, then for the streams.
    Agreeing,
    /// Streams are being opened.
    Opening,
    /// Streams are open; the server says when to start.
    Ready,
    /// The timers run.
    Running,
    /// The flows were told to stop.
    Stopping,
    /// TEST_END was sent; the server asks for the results.
    Ended,
    /// Our results were sent; the server's come.
    Exchanging,
    /// Both know everything; the server says to show it.
    Showing,
    /// The farewell was sent.
    Leaving,
    /// The server has failed; the numbers that say why are on their way.
    Failing,
    /// Nothing more.
    Over,
}

/// Why counts were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looking {
    /// They were not.
    No,
    /// The timers start.
    Begin,
    /// A timer is due.
    Timer,
    /// The test ends: the last counts of what is received.
    Last,
    /// The test is broken off: what there is.
    BreakOff,
}

impl Client {
    /// A client that has not begun.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let mut random = StdRng::from_seed(config.seed);
        let cookie = Cookie::generate(&mut random);
        let report = Report::new(&config.settings, &config.host);
        Self {
            config,
            random,
            out: VecDeque::new(),
            phase: Phase::Connecting,
            patience: None,
            held: Vec::new(),
            heard: false,
            cookie,
            report,
            control: None,
            params: None,
            streams: Vec::new(),
            course: None,
            end: None,
            goal_tick: None,
            broken: None,
            ended_at: Timestamp::START,
            peer: None,
            parted: false,
            looking: Looking::No,
            signal: None,
        }
    }

    fn enter(&mut self, phase: Phase, patience: Option<Timestamp>) {
        self.phase = phase;
        self.patience = patience;
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send { link: CONTROL, bytes });
    }

    fn send_state(&mut self, state: State) {
        self.send(vec![state.byte()]);
    }

    fn print(&mut self, text: String) {
        if !text.is_empty() {
            self.out.push_back(Output::Print(text));
        }
    }

    fn speak(&mut self, words: Words) {
        self.print(words.out);
        if !words.err.is_empty() {
            self.out.push_back(Output::Complain(words.err));
        }
    }

    fn request_counts(&mut self, why: Looking) {
        self.looking = why;
        self.out.push_back(Output::Look);
    }

    fn is_udp(&self) -> bool {
        self.config.settings.client.udp
    }

    /// A signal: the server is told, and what was measured is shown.
    fn interrupt(&mut self, signal: i32) {
        self.signal = Some(signal);
        match self.phase {
            Phase::Running => self.request_counts(Looking::BreakOff),
            Phase::Over => {}
            Phase::Leaving => self.exit(0),
            _ => self.show_interrupted(),
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if self.patience.is_some_and(|patience| patience <= now) {
            self.patience = None;
            self.timed_out(now);
        } else if self.phase == Phase::Running && self.looking == Looking::No {
            self.request_counts(Looking::Timer);
        }
    }

    /// What was waited for has not come.
    fn timed_out(&mut self, now: Timestamp) {
        const ETIMEDOUT: i32 = 110;
        let late = |number| Iperf3Error::because(number, ETIMEDOUT, "Connection timed out");
        match self.phase {
            Phase::Opening => {
                self.fail(&late(if self.is_udp() { Number::STREAM_READ } else { Number::STREAM_CONNECT }))
            }
            Phase::Running => {
                let trouble = self.broken.take().unwrap_or_else(|| late(Number::STREAM_READ));
                self.fail(&trouble);
            }
            Phase::Stopping => self.finish(now),
            Phase::Exchanging => self.fail(&late(Number::RECV_RESULTS)),
            Phase::Failing => self.server_failed(),
            Phase::Leaving => self.exit(0),
            Phase::Over => {}
            _ => self.fail(&late(Number::RECV_MESSAGE)),
        }
    }
}

impl StandIn for Client {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.phase == Phase::Over {
            return;
        }
        match input {
            Input::Begin => self.connect(),
            Input::Opened { link: CONTROL, opened } => self.control_opened(now, opened),
            Input::Opened { link, opened } => self.stream_opened(now, link, opened),
            Input::NotOpened { link, reason } => self.not_opened(link, &reason),
            Input::Bytes { link: CONTROL, bytes } => {
                self.heard = true;
                self.held.extend_from_slice(bytes);
                self.listen(now);
            }
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
        let timers = if self.phase == Phase::Running { self.timer() } else { None };
        [self.patience, timers].into_iter().flatten().min()
    }
}

/// How flows are ended that nobody needs any more.
fn abort(course: &Course, out: &mut VecDeque<Output>) {
    out.extend(course.running().iter().map(|flow| Output::Stop { flow: *flow, how: Stop::Abort }));
}
