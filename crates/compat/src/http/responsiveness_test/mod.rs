//! A client that measures responsiveness under working conditions, in round trips per minute (RPM), with any server of
//! that kind.
//!
//! It reads what the server offers, measures the idle path, and then loads it: another connection of HTTP/2 in each
//! direction after every interval. Until the rate is stable and the responsiveness after it, requests of one byte over new
//! connections and over the loaded ones take the time of their round trips.
//!
//! Source: draft-ietf-ippm-responsiveness-09. Intervals are 1 s, as in its versions up to 08, unless the user wants
//! others.

mod connection;
mod ending;
mod load;
mod loading;
mod probing;
mod stage;
mod target;
mod urls;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use linerate_model::{Direction, ForeignText, ResponsivenessReport, TestSpec};
use linerate_units::{Span, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::RESPONSIVENESS_NAME as TOOL;
use super::body_totals::BodyTotals;
use super::http2_client::{Answered, Http2Tls};
use crate::stand_in::{Input, Link, LinkOptions, Opened, Output, Planned, RunId, StandIn, StreamCounts};
use connection::{Fetch, ForeignTimes, refusal};
use load::LoadConnection;
use stage::{LoadStage, LoadStageState, index};
pub use target::{ResponsivenessTarget, ResponsivenessTargetError};
use urls::{MAX_CONFIG_BYTES, TestUrls};

/// Number of the run.
const RUN: RunId = RunId(0);

/// Number of requests over the idle path, and the time between two of them.
const IDLE_PROBES: usize = 10;
const IDLE_PAUSE: Span = Span::from_ms(50);

/// Pause between two stages, in which what waits on the path drains.
const STAGE_PAUSE: Span = Span::from_ms(1_000);

/// Time between two readings of the counts.
const READ_INTERVAL: Span = Span::from_ms(100);

/// Timeouts of a connection, and of a request over a new one.
const CONNECT_TIMEOUT: Span = Span::from_secs(10);
const ANSWER_TIMEOUT: Span = Span::from_secs(10);

/// Which directions carry load, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoadOrder {
    /// Both at once.
    #[default]
    Concurrent,
    /// The download, then the upload.
    Sequential,
    /// One alone.
    Only(Direction),
}

impl LoadOrder {
    fn stages(self) -> Vec<Vec<Direction>> {
        let (download, upload) = (Direction::Download, Direction::Upload);
        match self {
            Self::Concurrent => vec![vec![download, upload]],
            Self::Sequential => vec![vec![download], vec![upload]],
            Self::Only(direction) => vec![vec![direction]],
        }
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct ResponsivenessTestConfig {
    /// The server.
    pub target: ResponsivenessTarget,
    /// How the connections are encrypted; absent for addresses that begin with `http`.
    pub tls: Option<Http2Tls>,
    /// Which directions carry load, and when.
    pub order: LoadOrder,
    /// Longest time of each measurement.
    pub most_time: Span,
    /// Length of an interval; more than 0.
    pub interval: Span,
    /// Options of all connections.
    pub link: LinkOptions,
    /// Random seed for the choice of loaded connections.
    pub seed: u64,
    /// Whether to print a line after each interval, on standard error.
    pub shows_progress: bool,
}

/// What the test is doing.
#[derive(Debug)]
enum TestPhase {
    /// It reads what the server offers, until this time once it is connected.
    Fetching(Link, Box<Fetch>, Option<Timestamp>),
    /// It measures the idle path: the current request, and when the next one begins.
    Idle(Option<(Link, Box<Fetch>)>, Timestamp),
    Loading(Box<LoadStage>),
    /// The last counts of the connections are read, with the reason if the test has failed.
    Ending(Box<LoadStage>, Option<TestEnd>),
    Pausing(Timestamp),
    Over,
}

/// Why a test ends early.
#[derive(Debug, Clone)]
struct TestEnd {
    trouble: String,
    code: i32,
}

/// The client.
#[derive(Debug)]
pub struct ResponsivenessTest {
    config: ResponsivenessTestConfig,
    stages: VecDeque<Vec<Direction>>,
    phase: TestPhase,
    urls: Option<TestUrls>,
    /// The address that answered first, which all connections use.
    server: Option<SocketAddr>,
    next_link: u32,
    rng: StdRng,
    idle: Vec<ForeignTimes>,
    /// When the requests over the idle path began that were not answered.
    idle_failed: Vec<Timestamp>,
    totals: [BodyTotals; 2],
    /// The TCP handshakes while each direction carried load.
    handshakes: [Vec<(Timestamp, Option<Span>)>; 2],
    reports: Vec<ResponsivenessReport>,
    /// Connections of which the counts were asked for.
    looking: BTreeSet<Link>,
    next_look: Timestamp,
    /// Whether the run has begun.
    has_run: bool,
    out: VecDeque<Output>,
}

impl ResponsivenessTest {
    /// A test with this server.
    #[must_use]
    pub fn new(config: ResponsivenessTestConfig) -> Self {
        Self {
            stages: config.order.stages().into(),
            phase: TestPhase::Over,
            urls: None,
            server: None,
            next_link: 0,
            rng: StdRng::seed_from_u64(config.seed),
            idle: Vec::new(),
            idle_failed: Vec::new(),
            totals: Default::default(),
            handshakes: Default::default(),
            reports: Vec::new(),
            looking: BTreeSet::new(),
            next_look: Timestamp::START,
            has_run: false,
            out: VecDeque::new(),
            config,
        }
    }

    /// Begins to connect, under a number that no connection has.
    fn connect(&mut self, port: u16) -> Link {
        loop {
            self.next_link = self.next_link % (Link::FIRST_ACCEPTED.0 - 1) + 1;
            if !self.is_open(Link(self.next_link)) {
                break;
            }
        }
        let link = Link(self.next_link);
        let options = LinkOptions {
            no_delay: true,
            connect_timeout: Some(CONNECT_TIMEOUT),
            device: self.config.target.device().map(str::to_owned),
            ..self.config.link.clone()
        };
        let to = self.server.map(|mut server| {
            // Its zone stays.
            server.set_port(port);
            server
        });
        self.out.push_back(Output::Connect { link, port, to, options });
        link
    }

    fn is_open(&self, link: Link) -> bool {
        match &self.phase {
            TestPhase::Fetching(own, ..) | TestPhase::Idle(Some((own, _)), _) => *own == link,
            TestPhase::Loading(stage) | TestPhase::Ending(stage, _) => {
                stage.loads.contains_key(&link) || stage.fetches.contains_key(&link)
            }
            _ => false,
        }
    }

    fn begin(&mut self, now: Timestamp) {
        let target = self.config.target.clone();
        match Fetch::new(now, target.uri(), self.config.tls.as_ref(), MAX_CONFIG_BYTES) {
            Ok(fetch) => {
                let link = self.connect(target.port());
                self.phase = TestPhase::Fetching(link, Box::new(fetch), None);
            }
            Err(trouble) => self.fail(now, trouble),
        }
    }

    /// The connection with this number, if it is open.
    fn fetch_of(&mut self, link: Link) -> Option<&mut Fetch> {
        match &mut self.phase {
            TestPhase::Fetching(own, fetch, _) | TestPhase::Idle(Some((own, fetch)), _) if *own == link => {
                Some(fetch)
            }
            TestPhase::Loading(stage) => stage.fetches.get_mut(&link),
            _ => None,
        }
    }

    fn load_of(&mut self, link: Link) -> Option<&mut LoadConnection> {
        match &mut self.phase {
            TestPhase::Loading(stage) | TestPhase::Ending(stage, _) => stage.loads.get_mut(&link),
            _ => None,
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: &Opened) {
        self.server = self.server.or(opened.remote);
        if let TestPhase::Fetching(own, _, until) = &mut self.phase
            && *own == link
        {
            until.get_or_insert(now + ANSWER_TIMEOUT);
        }
        if let Some(fetch) = self.fetch_of(link) {
            fetch.connection.opened(now, opened);
        } else if let Some(load) = self.load_of(link)
            && load.connection.opened(now, opened)
        {
            // What the kernel has counted before everything that is sent.
            self.out.push_back(Output::LookLink { link });
        }
        self.work(now, link);
    }

    fn received(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        let taken = if let Some(fetch) = self.fetch_of(link) {
            fetch.connection.received(now, bytes)
        } else if let Some(load) = self.load_of(link) {
            load.connection.received(now, bytes)
        } else {
            return;
        };
        match taken {
            Ok(()) => self.work(now, link),
            Err(trouble) => self.broken(now, link, trouble),
        }
    }

    fn sent(&mut self, now: Timestamp, link: Link) {
        if let Some(fetch) = self.fetch_of(link) {
            fetch.connection.has_sent();
        } else if let Some(load) = self.load_of(link) {
            load.connection.has_sent();
        }
        self.work(now, link);
    }

    /// Lets a connection work.
    fn work(&mut self, now: Timestamp, link: Link) {
        if let Some(fetch) = self.fetch_of(link) {
            match fetch.work(now) {
                Ok(None) => {
                    if let Some(bytes) = fetch.connection.take_to_send() {
                        self.out.push_back(Output::Send { link, bytes });
                    }
                }
                Ok(Some((answered, times))) => self.fetched(now, link, &answered, times),
                Err(trouble) => self.broken(now, link, trouble),
            }
        } else if let TestPhase::Loading(stage) = &mut self.phase
            && let Some(load) = stage.loads.get_mut(&link)
        {
            match load.work(now) {
                Ok(times) => {
                    if let Some(bytes) = load.connection.take_to_send() {
                        self.out.push_back(Output::Send { link, bytes });
                    }
                    if let Some(notsent_lowat) = load.connection.room.take() {
                        let options = LinkOptions {
                            no_delay: true,
                            notsent_lowat: Some(notsent_lowat),
                            ..LinkOptions::default()
                        };
                        self.out.push_back(Output::Tune { link, options });
                    }
                    let is_spent = load.is_spent();
                    stage.answered(now, times);
                    if is_spent {
                        self.replace(now, link);
                    }
                }
                Err(trouble) => self.broken(now, link, trouble),
            }
        }
    }

    /// A request over a new connection was answered.
    fn fetched(&mut self, now: Timestamp, link: Link, answered: &Answered, times: ForeignTimes) {
        self.out.push_back(Output::Close { link });
        let is_success = answered.status.is_success();
        match &mut self.phase {
            TestPhase::Fetching(..) if !is_success => self.fail(now, refusal(answered)),
            TestPhase::Fetching(..) => match TestUrls::read(&answered.content, self.config.target.uri()) {
                Ok(urls) => {
                    self.urls = Some(urls);
                    self.plan(link, answered);
                    self.phase = TestPhase::Idle(None, now);
                }
                Err(trouble) => self.fail(now, trouble),
            },
            TestPhase::Idle(..) | TestPhase::Loading(_) if !is_success => self.fail(now, refusal(answered)),
            TestPhase::Idle(current, next) => {
                (*current, *next) = (None, now + IDLE_PAUSE);
                self.idle.push(times);
            }
            TestPhase::Loading(stage) => {
                stage.fetches.remove(&link);
                stage.fetched(now, Ok(times));
            }
            _ => {}
        }
    }

    /// The run begins.
    fn plan(&mut self, link: Link, answered: &Answered) {
        let server = answered.fields.get(http::header::SERVER).and_then(|name| name.to_str().ok());
        let peer =
            server.map_or_else(|| "a server of HTTP/2".to_owned(), |name| ForeignText::new(name).to_string());
        let mut spec = TestSpec::default();
        spec.traffic.no_latency = true;
        self.has_run = true;
        // It has to begin before its connection is closed.
        self.out.push_front(Output::Plan(Box::new(Planned {
            run: RUN,
            tool: TOOL,
            peer: Some(peer),
            link,
            client: true,
            spec,
            flows: Vec::new(),
            expected: Some(self.config.most_time),
        })));
    }

    /// A connection is broken, or was not opened.
    fn broken(&mut self, now: Timestamp, link: Link, trouble: String) {
        self.out.push_back(Output::Close { link });
        self.gone(now, link, trouble);
    }

    /// The same, and it is closed.
    fn gone(&mut self, now: Timestamp, link: Link, trouble: String) {
        match &mut self.phase {
            TestPhase::Fetching(own, ..) if *own == link => self.fail(now, trouble),
            TestPhase::Idle(current, next) => {
                let Some((_, fetch)) = current.take_if(|(own, _)| *own == link) else { return };
                *next = now + IDLE_PAUSE;
                self.idle_failed.push(fetch.began());
                if self.idle.is_empty() {
                    self.fail(now, trouble);
                }
            }
            TestPhase::Loading(stage) if stage.loads.contains_key(&link) => self.fail(now, trouble),
            TestPhase::Loading(stage) => {
                if let Some(fetch) = stage.fetches.remove(&link) {
                    stage.fetched(now, Err(fetch.began()));
                }
            }
            TestPhase::Ending(stage, _) => {
                stage.loads.remove(&link);
                self.looking.remove(&link);
                self.end_if_counted(now);
            }
            _ => {}
        }
    }

    /// Asks for the counts of all connections that carry load.
    fn look(&mut self, now: Timestamp) {
        self.next_look = now + READ_INTERVAL;
        let (TestPhase::Loading(stage) | TestPhase::Ending(stage, _)) = &mut self.phase else { return };
        for (link, load) in &mut stage.loads {
            load.connection.resize();
            self.looking.insert(*link);
            self.out.push_back(Output::LookLink { link: *link });
        }
    }

    fn counted(&mut self, now: Timestamp, link: Link, counts: Option<&StreamCounts>) {
        if let Some((load, counts)) = self.load_of(link).zip(counts) {
            load.counted(now, counts);
        }
        if self.looking.remove(&link) && self.looking.is_empty() {
            self.sample(now);
        }
        self.work(now, link);
    }

    /// The counts of all connections were read.
    fn sample(&mut self, now: Timestamp) {
        let TestPhase::Loading(stage) = &mut self.phase else { return self.end_if_counted(now) };
        for direction in &stage.directions {
            let loads = stage.loads.values().filter(|load| load.direction == *direction);
            self.totals[index(*direction)].sample(now, loads.filter_map(LoadConnection::reading));
        }
        stage.hasten_probes(now);
        let is_late = stage.elapsed(now) >= self.config.most_time;
        if now < stage.interval_end() {
            if is_late {
                self.end_stage(now, None);
            }
            return;
        }
        let state = stage.evaluate(now);
        self.print_progress(now);
        if state == LoadStageState::Stable || is_late {
            return self.end_stage(now, None);
        }
        let TestPhase::Loading(stage) = &self.phase else { return };
        for direction in stage.wanting() {
            self.add_load(now, direction, 0);
        }
    }

    fn tick(&mut self, now: Timestamp) {
        match &mut self.phase {
            TestPhase::Fetching(.., Some(until)) if *until <= now => {
                let trouble =
                    format!("no answer from the server for {} s", ANSWER_TIMEOUT.as_ns() / 1_000_000_000);
                self.fail(now, trouble);
            }
            TestPhase::Idle(Some((link, fetch)), _) if fetch.began() + ANSWER_TIMEOUT <= now => {
                let link = *link;
                self.broken(now, link, "a request over the idle path was not answered".to_owned());
            }
            TestPhase::Idle(None, next) if *next <= now => self.probe_idle(now),
            TestPhase::Pausing(until) if *until <= now => {
                if let Some(directions) = self.stages.pop_front() {
                    self.begin_stage(now, directions);
                }
            }
            TestPhase::Loading(_) => {
                self.probe(now);
                self.give_up_probes(now);
                if self.next_look <= now && self.looking.is_empty() {
                    self.look(now);
                }
            }
            _ => {}
        }
    }
}

/// What to do if nobody answers at the port of the configuration.
const REMEDY: &str = "; is linerate serve --tls --responsiveness-port running there?";

impl StandIn for ResponsivenessTest {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { link, opened } => self.opened(now, link, &opened),
            Input::NotOpened { link, reason } => {
                let target = &self.config.target;
                let (server, remedy) = match &self.phase {
                    TestPhase::Fetching(..) => (target.authority(), REMEDY),
                    // The ports may be others.
                    _ => (target.host().to_owned(), ""),
                };
                self.gone(now, link, format!("no connection to {server}: {}{remedy}", reason.text));
            }
            Input::Bytes { link, bytes } => self.received(now, link, bytes),
            Input::Sent { link } => self.sent(now, link),
            Input::Closed { link, reason } => {
                let why = reason.map_or(String::new(), |reason| format!(": {}", reason.text));
                self.broken(now, link, format!("the server closed a connection{why}"));
            }
            Input::LinkCounts { link, counts } => self.counted(now, link, counts),
            Input::Tick => self.tick(now),
            Input::Signal(signal) => {
                self.stop(now, TestEnd { trouble: "stopped by a signal".to_owned(), code: 128 + signal });
            }
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            TestPhase::Fetching(.., until) => *until,
            TestPhase::Pausing(until) => Some(*until),
            TestPhase::Idle(Some((_, fetch)), _) => Some(fetch.began() + ANSWER_TIMEOUT),
            TestPhase::Idle(None, next) => Some(*next),
            TestPhase::Loading(stage) => {
                let look = if self.looking.is_empty() { Some(self.next_look) } else { None };
                [look, Some(stage.next_foreign), Some(stage.next_loaded)].into_iter().flatten().min()
            }
            TestPhase::Ending(..) | TestPhase::Over => None,
        }
    }
}
