//! The server: a listener, requests that are arriving, and the tests.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use linerate_model::Direction;
use linerate_model::sniff::Match;
use linerate_units::{Span, Timestamp};

use super::bodies::BodySession;
use super::browser::{self, BrowserSession};
use super::endpoint::{Endpoint, Wanted};
use super::ndt7::{self, Ndt7Session};
use super::request::{self, HttpMethod, HttpRequest, RequestError};
use super::transfer::Encryption;
use super::{sniff, websocket};
use crate::sessions::{Sessions, ToolSession};
use crate::stand_in::{Input, Link, LinkOptions, Output, StandIn};
use crate::{EmbeddedServerConfig, StartCheck};

/// The listener.
const LISTENER: Link = Link(0);

/// Most concurrent tests.
const MAX_TESTS: u16 = 400;

/// Most connections whose request is incomplete.
const MAX_REQUESTS: usize = 1_000;

/// Timeout for a request.
const REQUEST_TIMEOUT: Span = Span::from_secs(10);

/// How long a connection may wait for the next request.
const IDLE_TIMEOUT: Span = Span::from_secs(15);

/// The path of a test ends within this many bytes of a request.
const MAX_TARGET_START: usize = 256;

/// Start of the paths of a page's tests.
const BROWSER_PATH: &str = "/linerate/browser/";

/// Length of the name of a page's test, in hex digits.
const TEST_NAME_LENGTH: usize = 32;

/// The first of the two flows of a test.
pub(super) const fn first_flow(number: u16) -> u16 {
    number * 2
}

/// The response that opens the WebSocket of a page, or the one that refuses it.
pub(super) fn accept(request: &HttpRequest, protocol: &str) -> Result<Vec<u8>, Vec<u8>> {
    let Some(key) = &request.websocket_key else {
        return Err(request::text("426 Upgrade Required", "this is a WebSocket\n"));
    };
    if !request.protocols.iter().any(|offered| offered == protocol) {
        return Err(request::text("400 Bad Request", &format!("the subprotocol {protocol} is missing\n")));
    }
    Ok(websocket::accept(key, protocol))
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// Our address.
    pub(super) local: SocketAddr,
    /// The client's.
    pub(super) peer: Option<SocketAddr>,
    /// How the client has encrypted it.
    pub(super) encryption: Encryption,
}

impl Ends {
    /// The client's host.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip().to_canonical())
    }
}

fn wrong_method() -> Vec<u8> {
    request::text("405 Method Not Allowed", "only GET is served here\n")
}

/// Whether bytes that begin a connection are a request of a test, and not one of a page.
#[must_use]
pub fn test_request(start: &[u8]) -> Match {
    let line = start.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let is_whole = line.len() < start.len() || start.len() >= MAX_TARGET_START;
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if words.next().is_none() && path.len() == target.len() {
        return if is_whole || sniff(start) == Match::No { Match::No } else { Match::More };
    }
    let is_method = matches!(method, b"GET" | b"POST" | b"OPTIONS");
    let is_test = |path: &str| {
        Endpoint::of(path).is_some() || ndt7::direction_of(path).is_some() || path.starts_with(BROWSER_PATH)
    };
    match is_method && std::str::from_utf8(path).is_ok_and(is_test) {
        true => Match::Yes,
        false => Match::No,
    }
}

/// A test.
#[derive(Debug)]
enum WebTest {
    Browser(BrowserSession),
    Ndt7(Ndt7Session),
    Bodies(Box<BodySession>),
}

impl ToolSession for WebTest {
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        match self {
            Self::Browser(test) => test.input(now, input),
            Self::Ndt7(test) => test.input(now, input),
            Self::Bodies(client) => client.input(now, input),
        }
    }

    fn output(&mut self) -> Option<Output> {
        match self {
            Self::Browser(test) => test.output(),
            Self::Ndt7(test) => test.output(),
            Self::Bodies(client) => client.output(),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Browser(test) => test.deadline(),
            Self::Ndt7(test) => test.deadline(),
            Self::Bodies(client) => client.deadline(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Browser(test) => test.is_over(),
            Self::Ndt7(test) => test.is_over(),
            Self::Bodies(client) => client.is_over(),
        }
    }
}

/// A connection whose request is incomplete.
#[derive(Debug)]
struct PendingRequest {
    ends: Ends,
    received: Vec<u8>,
    until: Timestamp,
    /// Whether an earlier request over the connection was answered.
    is_idle: bool,
}

/// A server for the tests of browsers.
#[derive(Debug)]
pub struct HttpServer {
    port: u16,
    seed: u64,
    /// Names of protocols that are not served.
    without: Vec<String>,
    start_check: Option<StartCheck>,
    requests: BTreeMap<Link, PendingRequest>,
    /// The connections whose requests are being answered by a client's session.
    borrowed: BTreeMap<Link, Ends>,
    tests: Sessions<WebTest>,
    out: VecDeque<Output>,
    over: bool,
}

impl HttpServer {
    /// Creates a server.
    #[must_use]
    pub fn new(config: &EmbeddedServerConfig) -> Self {
        Self {
            port: config.port,
            seed: config.seed,
            without: config.without.clone(),
            start_check: config.start_check.clone(),
            requests: BTreeMap::new(),
            borrowed: BTreeMap::new(),
            tests: Sessions::default(),
            out: VecDeque::new(),
            over: false,
        }
    }

    /// Creates the server for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(config))
    }

    fn received(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        let Some(pending) = self.requests.get_mut(&link) else { return };
        pending.received.extend_from_slice(bytes);
        let response = match HttpRequest::read(&pending.received) {
            Ok(None) => return,
            Ok(Some((request, length))) => {
                let Some(pending) = self.requests.remove(&link) else { return };
                let (_, rest) = pending.received.split_at(length);
                let ends = pending.ends;
                let routed = match Endpoint::of(&request.path) {
                    Some(endpoint) => self.exchange(now, (link, ends), endpoint, &request, rest),
                    // Nothing may follow before the response.
                    None if !rest.is_empty() => {
                        Err(request::text("400 Bad Request", "one request at a time\n"))
                    }
                    None if request.method != HttpMethod::Get => Err(wrong_method()),
                    None => self.route(now, link, ends, &request),
                };
                match routed {
                    Ok(()) => return,
                    Err(response) => response,
                }
            }
            Err(RequestError::Malformed) => request::text("400 Bad Request", "this is not HTTP/1.1\n"),
            Err(RequestError::TooLarge) => {
                request::text("431 Request Header Fields Too Large", "the head of the request is too large\n")
            }
            Err(RequestError::Method) => wrong_method(),
        };
        self.requests.remove(&link);
        self.out.push_back(Output::Send { link, bytes: response });
        self.out.push_back(Output::Discard { link });
        self.out.push_back(Output::Close { link });
    }

    /// Answers a request of another speed test, or returns the response that refuses it.
    fn exchange(
        &mut self,
        now: Timestamp,
        (link, ends): (Link, Ends),
        endpoint: Endpoint,
        request: &HttpRequest,
        rest: &[u8],
    ) -> Result<(), Vec<u8>> {
        self.serves(endpoint.tool)?;
        let address = ends.address();
        let is_client = |known: &WebTest| matches!(known, WebTest::Bodies(known) if known.is_of(endpoint.tool, address, request));
        let wanted = endpoint.wanted(request, address)?;
        let most = match wanted {
            Wanted::Upload(length) => length.unwrap_or(u64::MAX),
            Wanted::Response(_) | Wanted::Download(_) => 0,
        };
        if rest.len() as u64 > most {
            return Err(request::text("400 Bad Request", "one request at a time\n"));
        }
        let body = match wanted {
            Wanted::Response(bytes) => {
                if let Some(WebTest::Bodies(client)) = self.tests.find(is_client) {
                    client.probe(now);
                }
                self.out.push_back(Output::Send { link, bytes });
                match request.is_persistent {
                    true => self.idle(now, link, ends, &[]),
                    false => self.out.push_back(Output::Close { link }),
                }
                return Ok(());
            }
            Wanted::Upload(bytes) => (Direction::Upload, bytes),
            Wanted::Download(bytes) => (Direction::Download, Some(bytes)),
        };
        if self.tests.find(is_client).is_none() {
            let number = self.free_number()?;
            self.tests.insert(
                number,
                WebTest::Bodies(Box::new(BodySession::new(number, endpoint.tool, address, request))),
            );
        }
        if let Some(WebTest::Bodies(client)) = self.tests.find(is_client) {
            if !client.has_room() {
                return Err(request::busy("there are too many requests of this client"));
            }
            client.begin(now, (link, ends.encryption), request, body, rest)?;
            self.borrowed.insert(link, ends);
        }
        Ok(())
    }

    /// Waits for the next request over a connection, of which these bytes have arrived.
    fn idle(&mut self, now: Timestamp, link: Link, ends: Ends, received: &[u8]) {
        if self.requests.len() >= MAX_REQUESTS {
            return self.out.push_back(Output::Close { link });
        }
        let (until, is_idle) = (now + IDLE_TIMEOUT, true);
        self.requests.insert(link, PendingRequest { ends, received: Vec::new(), until, is_idle });
        if !received.is_empty() {
            self.received(now, link, received);
        }
    }

    /// Moves the outputs of the tests to those of the server, and takes back connections whose response is complete.
    fn collect(&mut self, now: Timestamp) {
        loop {
            let mut free = Vec::new();
            self.tests.for_each(|test| {
                if let WebTest::Bodies(client) = test {
                    free.extend(client.take_free());
                }
            });
            self.tests.collect(&mut self.out);
            if free.is_empty() {
                return;
            }
            for (link, received) in free {
                if let Some((ends, received)) = self.borrowed.remove(&link).zip(received) {
                    self.idle(now, link, ends, &received);
                }
            }
        }
    }

    fn serves(&self, protocol: &str) -> Result<(), Vec<u8>> {
        match self.without.iter().any(|name| name == protocol) {
            true => Err(request::text("404 Not Found", &format!("this server does not serve {protocol}\n"))),
            false => Ok(()),
        }
    }

    /// Hands a connection to a test, or returns the response that refuses it.
    fn route(
        &mut self,
        now: Timestamp,
        link: Link,
        ends: Ends,
        request: &HttpRequest,
    ) -> Result<(), Vec<u8>> {
        let nothing = || request::text("404 Not Found", "there is no such test\n");
        if let Some(rest) = request.path.strip_prefix(BROWSER_PATH) {
            self.serves(browser::TOOL)?;
            let (test, part) = rest.split_once('/').ok_or_else(nothing)?;
            let is_name = test.len() == TEST_NAME_LENGTH
                && test.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'));
            if !is_name {
                return Err(nothing());
            }
            if !request.is_of_own_page() {
                let why = "tests are started from pages of this host\n";
                return Err(request::text("403 Forbidden", why));
            }
            let address = ends.address();
            let known = self.tests.find(|known| {
                matches!(known, WebTest::Browser(known) if known.test == test && known.address == address)
            });
            return match (part, known) {
                ("control", None) => {
                    let number = self.free_number()?;
                    if self.start_check.as_ref().is_some_and(|check| !check.admits(test, address)) {
                        let why = "a test needs a ticket, which the pages of this host get for it\n";
                        return Err(request::text("403 Forbidden", why));
                    }
                    let session = BrowserSession::new(number, test, (link, ends), request)?;
                    self.tests.insert(number, WebTest::Browser(session));
                    Ok(())
                }
                ("down", Some(WebTest::Browser(known))) => {
                    known.join(now, (link, ends.encryption), Direction::Download, request)
                }
                ("up", Some(WebTest::Browser(known))) => {
                    known.join(now, (link, ends.encryption), Direction::Upload, request)
                }
                _ => Err(nothing()),
            };
        }
        if ndt7::direction_of(&request.path).is_some() {
            self.serves(ndt7::TOOL)?;
            let number = self.free_number()?;
            let session = Ndt7Session::new(now, number, self.seed, (link, ends), request)?;
            self.tests.insert(number, WebTest::Ndt7(session));
            return Ok(());
        }
        if request.path == "/" {
            let text =
                "This port of linerate measures; its pages are on another one (linerate serve --web).\n";
            return Err(request::text("200 OK", text));
        }
        Err(nothing())
    }

    fn free_number(&self) -> Result<u16, Vec<u8>> {
        self.tests.free_number(MAX_TESTS).ok_or_else(|| request::busy("there are too many tests"))
    }

    fn expire(&mut self, now: Timestamp) {
        let late = self.requests.iter().filter(|(_, pending)| pending.until <= now).map(|(link, _)| *link);
        for link in late.collect::<Vec<_>>() {
            let pending = self.requests.remove(&link);
            // A client that sends nothing expects no answer.
            if pending.is_none_or(|pending| !pending.is_idle || !pending.received.is_empty()) {
                let bytes = request::text("408 Request Timeout", "the request did not arrive in time\n");
                self.out.push_back(Output::Send { link, bytes });
            }
            self.out.push_back(Output::Close { link });
        }
    }

    fn exit(&mut self, now: Timestamp, code: i32) {
        self.tests.for_each(|test| match test {
            WebTest::Browser(test) => test.end(now, "the server stops"),
            WebTest::Ndt7(test) => test.end("the server stops"),
            WebTest::Bodies(client) => client.end(now, "the server stops"),
        });
        self.tests.collect(&mut self.out);
        self.over = true;
        self.out.push_back(Output::Close { link: LISTENER });
        self.out.push_back(Output::Exit(code));
    }
}

impl StandIn for HttpServer {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match &input {
            Input::Begin => {
                let options = LinkOptions { no_delay: true, ..LinkOptions::default() };
                self.out.push_back(Output::Listen { link: LISTENER, port: self.port, options });
            }
            Input::NotOpened { link: LISTENER, .. } => self.exit(now, 1),
            Input::Accepted { listener: LISTENER, link, .. } if self.requests.len() >= MAX_REQUESTS => {
                self.out.push_back(Output::Close { link: *link });
            }
            Input::Accepted { listener: LISTENER, link, opened } => {
                let encryption = Encryption::of(opened.encrypted);
                let ends = Ends { local: opened.local, peer: opened.remote, encryption };
                let until = now + REQUEST_TIMEOUT;
                let pending = PendingRequest { ends, received: Vec::new(), until, is_idle: false };
                self.requests.insert(*link, pending);
            }
            Input::Bytes { link, bytes } if self.requests.contains_key(link) => {
                self.received(now, *link, bytes)
            }
            Input::Closed { link, .. } if self.requests.contains_key(link) => {
                self.requests.remove(link);
                self.out.push_back(Output::Close { link: *link });
                // The driver ends a run by the connection of its first request, which may be idle.
                self.tests.input(now, &input);
            }
            Input::Signal(number) => return self.exit(now, 128 + number),
            _ => {
                if matches!(input, Input::Tick) {
                    self.expire(now);
                }
                self.tests.input(now, &input);
            }
        }
        self.collect(now);
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let requests = self.requests.values().map(|pending| pending.until);
        requests.chain(self.tests.deadline()).min()
    }
}
