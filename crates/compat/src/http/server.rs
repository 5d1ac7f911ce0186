//! The server: a listener, requests that are arriving, and the tests.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_model::Direction;
use linerate_units::{Span, Timestamp};

use super::browser::{self, BrowserSession};
use super::ndt7::{self, Ndt7Session};
use super::request::{self, HttpRequest, RequestError};
use super::websocket;
use crate::EmbeddedServerConfig;
use crate::sessions::{Sessions, ToolSession};
use crate::stand_in::{Input, Link, LinkOptions, Output, StandIn};

/// The listener.
const LISTENER: Link = Link(0);

/// Most concurrent tests.
const MAX_TESTS: u16 = 400;

/// Most connections whose request is incomplete.
const MAX_REQUESTS: usize = 1_000;

/// Timeout for a request.
const REQUEST_TIMEOUT: Span = Span::from_secs(10);

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

/// A test.
#[derive(Debug)]
enum WebTest {
    Browser(BrowserSession),
    Ndt7(Ndt7Session),
}

impl ToolSession for WebTest {
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        match self {
            Self::Browser(test) => test.input(now, input),
            Self::Ndt7(test) => test.input(now, input),
        }
    }

    fn output(&mut self) -> Option<Output> {
        match self {
            Self::Browser(test) => test.output(),
            Self::Ndt7(test) => test.output(),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Browser(test) => test.deadline(),
            Self::Ndt7(test) => test.deadline(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Browser(test) => test.is_over(),
            Self::Ndt7(test) => test.is_over(),
        }
    }
}

/// A connection whose request is incomplete.
#[derive(Debug)]
struct PendingRequest {
    local: SocketAddr,
    peer: Option<SocketAddr>,
    received: Vec<u8>,
    until: Timestamp,
}

/// A server for the tests of browsers.
#[derive(Debug)]
pub struct HttpServer {
    port: u16,
    seed: u64,
    /// Names of protocols that are not served.
    without: Vec<String>,
    requests: BTreeMap<Link, PendingRequest>,
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
            requests: BTreeMap::new(),
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
            Ok(Some((request, length))) if length == pending.received.len() => {
                let (local, peer) = (pending.local, pending.peer);
                self.requests.remove(&link);
                match self.route(now, link, local, peer, &request) {
                    Ok(()) => return,
                    Err(response) => response,
                }
            }
            // Nothing may follow before the response.
            Ok(Some(_)) => request::text("400 Bad Request", "one request at a time\n"),
            Err(RequestError::Malformed) => request::text("400 Bad Request", "this is not HTTP/1.1\n"),
            Err(RequestError::TooLarge) => {
                request::text("431 Request Header Fields Too Large", "the head of the request is too large\n")
            }
            Err(RequestError::Method) => request::text("405 Method Not Allowed", "only GET is served here\n"),
        };
        self.requests.remove(&link);
        self.out.push_back(Output::Send { link, bytes: response });
        self.out.push_back(Output::Discard { link });
        self.out.push_back(Output::Close { link });
    }

    /// Hands a connection to a test, or returns the response that refuses it.
    fn route(
        &mut self,
        now: Timestamp,
        link: Link,
        local: SocketAddr,
        peer: Option<SocketAddr>,
        request: &HttpRequest,
    ) -> Result<(), Vec<u8>> {
        let nothing = || request::text("404 Not Found", "there is no such test\n");
        let serves = |protocol: &str| match self.without.iter().any(|name| name == protocol) {
            true => Err(request::text("404 Not Found", &format!("this server does not serve {protocol}\n"))),
            false => Ok(()),
        };
        if let Some(rest) = request.path.strip_prefix(BROWSER_PATH) {
            serves(browser::TOOL)?;
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
            let address = peer.map(|peer| peer.ip().to_canonical());
            let known = self.tests.find(|known| {
                matches!(known, WebTest::Browser(known) if known.test == test && known.address == address)
            });
            return match (part, known) {
                ("control", None) => {
                    let number = self.free_number()?;
                    let session = BrowserSession::new(number, test, (link, address), request)?;
                    self.tests.insert(number, WebTest::Browser(session));
                    Ok(())
                }
                ("down", Some(WebTest::Browser(known))) => {
                    known.join(now, link, Direction::Download, request)
                }
                ("up", Some(WebTest::Browser(known))) => known.join(now, link, Direction::Upload, request),
                _ => Err(nothing()),
            };
        }
        if ndt7::direction_of(&request.path).is_some() {
            serves(ndt7::TOOL)?;
            let number = self.free_number()?;
            let session = Ndt7Session::new(now, number, self.seed, (link, local, peer), request)?;
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
            self.requests.remove(&link);
            let bytes = request::text("408 Request Timeout", "the request did not arrive in time\n");
            self.out.push_back(Output::Send { link, bytes });
            self.out.push_back(Output::Close { link });
        }
    }

    fn exit(&mut self, now: Timestamp, code: i32) {
        self.tests.end_all(|test| match test {
            WebTest::Browser(test) => test.end(now, "the server stops"),
            WebTest::Ndt7(test) => test.end("the server stops"),
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
                let (local, peer, until) = (opened.local, opened.remote, now + REQUEST_TIMEOUT);
                self.requests.insert(*link, PendingRequest { local, peer, received: Vec::new(), until });
            }
            Input::Bytes { link, bytes } if self.requests.contains_key(link) => {
                self.received(now, *link, bytes)
            }
            Input::Closed { link, .. } if self.requests.contains_key(link) => {
                self.requests.remove(link);
                self.out.push_back(Output::Close { link: *link });
            }
            Input::Signal(number) => return self.exit(now, 128 + number),
            _ => {
                if matches!(input, Input::Tick) {
                    self.expire(now);
                }
                self.tests.input(now, &input);
            }
        }
        self.tests.collect(&mut self.out);
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let requests = self.requests.values().map(|pending| pending.until);
        requests.chain(self.tests.deadline()).min()
    }
}
