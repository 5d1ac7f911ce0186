//! The server of clients that measure responsiveness under working conditions, in round trips per minute (RPM): Apple's
//! `networkQuality` and others.
//!
//! Such a client loads the path with requests of endless bodies over several connections of HTTP/2, adds connections
//! until the rate grows no more, and takes the time of requests of one byte meanwhile: over new connections, and
//! between the bodies of the loaded ones. The responsiveness is its result. The server answers at once, keeps the queues
//! in front of its own line short, and counts what was moved: the requests for bodies of a client are one run, which is
//! over when there have been none for a while.
//!
//! It has a port of its own: browsers would send all requests of a test over one connection if they could speak HTTP/2
//! at the port of their tests.
//!
//! Source: draft-ietf-ippm-responsiveness-08.

mod client;
mod link;
mod transfer;

use std::collections::{BTreeMap, VecDeque};

use http::{Method, Response, StatusCode, Uri, header};
use linerate_model::sniff::Match;
use linerate_model::{Direction, ForeignText};
use linerate_units::{Span, Timestamp};
use serde_json::json;

use super::RESPONSIVENESS_NAME as TOOL;
use super::http2::{Http2Request, PREFACE};
use super::server::Ends;
use super::transfer::{Encryption, is_due};
use crate::stand_in::{Input, Link, LinkOptions, Output, RunId, StandIn, StreamCounts};
use crate::{EmbeddedServerConfig, Tool};
use client::ResponsivenessClient;
use link::LoadedLink;
use transfer::Http2Transfer;

/// Port of the server when none is given: none of the programs has one.
pub(super) const PORT: u16 = 5202;

/// Clients that measure responsiveness in the table of tools.
pub static RESPONSIVENESS: Tool = Tool {
    name: TOOL,
    default_port: PORT,
    sniff,
    embedded_server: ResponsivenessServer::embedded_server,
    refusal: crate::no_refusal,
    options: &[],
};

/// The path at which clients ask where they measure (RFC 8615).
pub const CONFIG_PATH: &str = "/.well-known/nq";
/// The paths that the draft calls small and large download, and upload.
const SMALL_PATH: &str = "/linerate/responsiveness/small";
const LARGE_PATH: &str = "/linerate/responsiveness/large";
const UPLOAD_PATH: &str = "/linerate/responsiveness/upload";

/// Bytes of a large download: the least that the draft permits.
const LARGE_BYTES: u64 = 8_000_000_000;

/// The listener.
const LISTENER: Link = Link(0);

/// Most clients.
const MAX_CLIENTS: u16 = 100;

/// How long a connection may stay without a request.
const IDLE_TIMEOUT: Span = Span::from_secs(15);

/// A body of which nothing was moved for this time is given up.
const STALL_TIMEOUT: Span = Span::from_secs(10);

/// Time between two readings of the counts.
const READ_INTERVAL: Span = Span::from_ms(100);

fn sniff(start: &[u8]) -> Match {
    Match::magic(start, PREFACE)
}

/// Where a client finds what it measures with at a host and port, as JSON of draft-ietf-ippm-responsiveness-09.
#[must_use]
pub fn responsiveness_config(scheme: &str, authority: &str) -> String {
    let url = |path: &str| format!("{scheme}://{authority}{path}");
    let (small, large, upload) = (url(SMALL_PATH), url(LARGE_PATH), url(UPLOAD_PATH));
    // The draft has renamed the fields; programs read the older or the newer ones.
    json!({
        "version": 1,
        "urls": {
            "small_download_url": small,
            "large_download_url": large,
            "upload_url": upload,
            "small_https_download_url": small,
            "large_https_download_url": large,
            "https_upload_url": upload,
        },
    })
    .to_string()
}

/// The server.
#[derive(Debug)]
pub(super) struct ResponsivenessServer {
    port: u16,
    links: BTreeMap<Link, LoadedLink>,
    clients: BTreeMap<u16, ResponsivenessClient>,
    next_look: Option<Timestamp>,
    out: VecDeque<Output>,
    over: bool,
}

impl ResponsivenessServer {
    pub(super) fn new(config: &EmbeddedServerConfig) -> Self {
        Self {
            port: config.port,
            links: BTreeMap::new(),
            clients: BTreeMap::new(),
            next_look: None,
            out: VecDeque::new(),
            over: false,
        }
    }

    fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(config))
    }

    fn accepted(&mut self, now: Timestamp, link: Link, ends: Ends) {
        self.links.insert(link, LoadedLink::new(now, ends));
        // What the kernel has counted of the handshake.
        self.out.push_back(Output::LookLink { link });
    }

    /// Lets a connection work on its requests and bodies.
    fn work(&mut self, now: Timestamp, link: Link) {
        while let Some(loaded) = self.links.get_mut(&link) {
            let requests = loaded.connection.advance();
            let has_moved = loaded.move_bodies(now);
            let is_quiet = requests.is_empty() && !has_moved;
            for request in requests {
                self.answer(now, link, request);
            }
            if is_quiet {
                break;
            }
        }
        let Some(loaded) = self.links.get_mut(&link) else { return };
        if let Some(bytes) = loaded.take_to_send() {
            self.out.push_back(Output::Send { link, bytes });
        }
        if loaded.take_change() {
            self.out.push_back(Output::LookLink { link });
        }
        let (client, has_load, moved) = (loaded.client, loaded.has_load(), loaded.take_moved());
        let is_idle = !has_load && loaded.transfers.is_empty();
        if let Some(client) = client.and_then(|number| self.clients.get_mut(&number)) {
            client.moved(moved);
        }
        if loaded.is_over() && !has_load {
            self.links.remove(&link);
            self.out.push_back(Output::Close { link });
        }
        // As long as it moves something, the others need not be looked at.
        if let Some(client) = client.filter(|_| is_idle) {
            self.idle_since(now, client);
        }
    }

    /// Answers a request, or begins the body that it asks for.
    fn answer(&mut self, now: Timestamp, link: Link, request: Http2Request) {
        let (request, mut respond) = request;
        if let Some(loaded) = self.links.get_mut(&link) {
            loaded.asked(now);
        }
        let (head, body) = request.into_parts();
        let direction = match (&head.method, head.uri.path()) {
            (&Method::GET, LARGE_PATH) => Direction::Download,
            (&Method::POST | &Method::PUT, UPLOAD_PATH) => Direction::Upload,
            (method, path) => {
                let (status, kind, content) = small_response(method, path, &head.uri);
                transfer::respond(&mut respond, &response(status, kind), content);
                return self.probed(now, link);
            }
        };
        let agent = head.headers.get(header::USER_AGENT).map_or("", |agent| agent.to_str().unwrap_or(""));
        let transfer = Http2Transfer::new(now, direction, body, respond);
        match self.client_of(link, &ForeignText::new(agent)) {
            Some(number) => {
                let Some(loaded) = self.links.get_mut(&link) else { return };
                loaded.client = Some(number);
                loaded.transfers.push(transfer);
                let Some(client) = self.clients.get_mut(&number) else { return };
                client.due = None;
                match client.is_admitted() {
                    Some(true) => self.begin(now, link),
                    Some(false) => {}
                    None => self.out.push_back(client.ask(link)),
                }
            }
            None => transfer.refuse(&busy(), "there are too many clients"),
        }
    }

    /// A client has measured latency.
    fn probed(&mut self, now: Timestamp, link: Link) {
        let address = self.links.get(&link).and_then(|loaded| loaded.ends.address());
        for client in self.clients.values_mut().filter(|client| client.address == address) {
            client.probe(now);
        }
    }

    /// The number of the client that sends a request over this link.
    fn client_of(&mut self, link: Link, agent: &ForeignText) -> Option<u16> {
        let loaded = self.links.get(&link)?;
        // Whatever its further requests say of their program.
        if let Some((number, client)) =
            loaded.client.and_then(|number| Some((number, self.clients.get(&number)?)))
        {
            return (!client.is_ending()).then_some(number);
        }
        let address = loaded.ends.address();
        let known = self.clients.iter().find(|(_, client)| client.is_of(address, agent));
        if let Some((number, client)) = known {
            return (!client.is_ending()).then_some(*number);
        }
        let number = (0..MAX_CLIENTS).find(|number| !self.clients.contains_key(number))?;
        self.clients.insert(number, ResponsivenessClient::new(number, address, agent));
        Some(number)
    }

    /// Begins the bodies that wait on a link: its client has a place.
    fn begin(&mut self, now: Timestamp, link: Link) {
        let client = self.links.get(&link).and_then(|loaded| loaded.client);
        let idle: Vec<Direction> = [Direction::Download, Direction::Upload]
            .into_iter()
            .filter(|direction| !self.links_of(client).any(|loaded| loaded.has_load_of(*direction)))
            .collect();
        let Some(loaded) = self.links.get_mut(&link) else { return };
        loaded.begin(now, &response(StatusCode::OK, "application/octet-stream"));
        self.out.extend(room_of(link, loaded));
        let began = idle.into_iter().filter(|direction| loaded.has_load_of(*direction));
        if let Some(client) = client.and_then(|number| self.clients.get_mut(&number)) {
            began.for_each(|direction| client.resume(now, direction));
        }
        self.next_look.get_or_insert(now + READ_INTERVAL);
    }

    fn links_of(&self, client: Option<u16>) -> impl Iterator<Item = &LoadedLink> {
        self.links.values().filter(move |loaded| client.is_some() && loaded.client == client)
    }

    fn numbers_of_links(&self, client: u16) -> Vec<Link> {
        let of = |(_, loaded): &(&Link, &LoadedLink)| loaded.client == Some(client);
        self.links.iter().filter(of).map(|(link, _)| *link).collect()
    }

    fn admitted(&mut self, now: Timestamp, number: u16) {
        let Some(client) = self.clients.get_mut(&number) else {
            let trouble = Some("its client has left".to_owned());
            return self.out.push_back(Output::RunOver { run: RunId(u32::from(number)), trouble });
        };
        client.admitted();
        for link in self.numbers_of_links(number) {
            self.begin(now, link);
            self.work(now, link);
        }
        self.idle_since(now, number);
    }

    fn refused(&mut self, now: Timestamp, number: u16, why: &str, may_retry: bool) {
        self.clients.remove(&number);
        let status = if may_retry { busy() } else { response(StatusCode::TOO_MANY_REQUESTS, TEXT) };
        for link in self.numbers_of_links(number) {
            let Some(loaded) = self.links.get_mut(&link) else { continue };
            loaded.client = None;
            std::mem::take(&mut loaded.transfers).into_iter().for_each(|body| body.refuse(&status, why));
            self.work(now, link);
        }
    }

    /// The counts of a connection.
    fn counted(&mut self, now: Timestamp, link: Link, counts: Option<&StreamCounts>) {
        let Some(loaded) = self.links.get_mut(&link) else { return };
        let ended = loaded.counted(now, counts);
        if let Some(client) = loaded.client.and_then(|number| self.clients.get_mut(&number)) {
            ended.into_iter().for_each(|(direction, body)| client.add(direction, body));
        }
        if loaded.is_over() && !loaded.has_load() {
            self.work(now, link);
        } else if let Some(client) = loaded.client {
            self.idle_since(now, client);
        }
    }

    fn closed(&mut self, now: Timestamp, link: Link, own: Option<&str>) {
        if let Some(why) = own {
            let numbers: Vec<u16> = self
                .clients
                .values()
                .filter(|client| client.asked_over(link))
                .map(|client| client.number)
                .collect();
            if !numbers.is_empty() {
                // The driver has closed it.
                if let Some(loaded) = self.links.get_mut(&link) {
                    loaded.closed();
                }
                return numbers.into_iter().for_each(|number| self.end(now, number, why));
            }
        }
        if let Some(loaded) = self.links.get_mut(&link) {
            loaded.closed();
            self.work(now, link);
        }
    }

    /// Ends the run of a client.
    fn end(&mut self, now: Timestamp, number: u16, why: &str) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.fail(why);
        for link in self.numbers_of_links(number) {
            if let Some(loaded) = self.links.get_mut(&link) {
                loaded.end();
            }
            self.work(now, link);
        }
        self.idle_since(now, number);
    }

    /// Notes that a client moves nothing, if that is so.
    fn idle_since(&mut self, now: Timestamp, number: u16) {
        let is_busy =
            self.links_of(Some(number)).any(|loaded| loaded.has_load() || !loaded.transfers.is_empty());
        let Some(client) = self.clients.get_mut(&number) else { return };
        if client.idle(now, !is_busy) {
            self.finish(number);
        }
    }

    /// Ends the run of a client that moves nothing any more.
    fn finish(&mut self, number: u16) {
        for link in self.numbers_of_links(number) {
            if let Some(loaded) = self.links.get_mut(&link) {
                loaded.client = None;
            }
        }
        if let Some(client) = self.clients.remove(&number) {
            self.out.extend(client.finish());
        }
    }

    fn tick(&mut self, now: Timestamp) {
        let due: Vec<u16> = self.clients.values().filter(|c| is_due(c.due, now)).map(|c| c.number).collect();
        due.into_iter().for_each(|number| self.finish(number));
        let links: Vec<Link> = self.links.keys().copied().collect();
        for link in links {
            let Some(loaded) = self.links.get_mut(&link) else { continue };
            if loaded.expire(now) {
                self.work(now, link);
            }
        }
        if is_due(self.next_look, now) {
            self.look(now);
        }
    }

    /// Reads the counts of the loaded connections, and samples those of their clients.
    fn look(&mut self, now: Timestamp) {
        let numbers: Vec<u16> = self.clients.keys().copied().collect();
        for number in numbers {
            let loads: Vec<_> = self.links_of(Some(number)).flat_map(LoadedLink::readings).collect();
            let Some(client) = self.clients.get_mut(&number) else { continue };
            client.sample(now, &loads);
            self.out.extend(client.take_moved());
        }
        self.next_look = None;
        for (link, loaded) in self.links.iter_mut().filter(|(_, loaded)| loaded.has_load()) {
            self.next_look = Some(now + READ_INTERVAL);
            loaded.resize();
            self.out.extend(room_of(*link, loaded));
            self.out.push_back(Output::LookLink { link: *link });
        }
    }

    fn exit(&mut self, now: Timestamp, code: i32) {
        let numbers: Vec<u16> = self.clients.keys().copied().collect();
        for number in numbers {
            self.end(now, number, "the server stops");
            for link in self.numbers_of_links(number) {
                // No counts will come any more.
                self.counted(now, link, None);
            }
            self.finish(number);
        }
        self.over = true;
        self.out.push_back(Output::Close { link: LISTENER });
        self.out.push_back(Output::Exit(code));
    }
}

/// Tells the socket of a connection how many bytes may wait in it, if that has changed.
fn room_of(link: Link, loaded: &mut LoadedLink) -> Option<Output> {
    let notsent_lowat = Some(loaded.take_room()?);
    let options = LinkOptions { no_delay: true, notsent_lowat, ..LinkOptions::default() };
    Some(Output::Tune { link, options })
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The head of a response, which no cache keeps.
fn response(status: StatusCode, kind: &'static str) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let value = header::HeaderValue::from_static;
    response.headers_mut().insert(header::CONTENT_TYPE, value(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, value("no-store, no-transform"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, value("nosniff"));
    response
}

fn busy() -> Response<()> {
    let mut busy = response(StatusCode::SERVICE_UNAVAILABLE, TEXT);
    busy.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
    busy
}

/// The response to a request that moves nothing: status, content type, content.
fn small_response(method: &Method, path: &str, uri: &Uri) -> (StatusCode, &'static str, Vec<u8>) {
    let text = |status, text: &str| (status, TEXT, text.as_bytes().to_vec());
    match (method, path) {
        (&Method::GET, SMALL_PATH) => (StatusCode::OK, "application/octet-stream", b"x".to_vec()),
        (&Method::GET, CONFIG_PATH) => {
            let authority = uri.authority().map_or("", http::uri::Authority::as_str);
            let text = responsiveness_config(uri.scheme_str().unwrap_or("https"), authority);
            (StatusCode::OK, "application/json", text.into_bytes())
        }
        (_, SMALL_PATH | CONFIG_PATH | LARGE_PATH) => {
            text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here\n")
        }
        (_, UPLOAD_PATH) => text(StatusCode::METHOD_NOT_ALLOWED, "only POST is served here\n"),
        _ => text(StatusCode::NOT_FOUND, "this port measures responsiveness; see /.well-known/nq\n"),
    }
}

impl StandIn for ResponsivenessServer {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        let number = |run: RunId| u16::try_from(run.0).unwrap_or(u16::MAX);
        match input {
            Input::Begin => {
                let options = LinkOptions { no_delay: true, ..LinkOptions::default() };
                self.out.push_back(Output::Listen { link: LISTENER, port: self.port, options });
            }
            Input::NotOpened { link: LISTENER, .. } => self.exit(now, 1),
            Input::Accepted { listener: LISTENER, link, opened } => {
                let encryption = Encryption::of(opened.encrypted);
                self.accepted(now, link, Ends { local: opened.local, peer: opened.remote, encryption });
            }
            Input::Bytes { link, bytes } => {
                if let Some(loaded) = self.links.get_mut(&link) {
                    loaded.received(bytes);
                    self.work(now, link);
                    if let Some(loaded) = self.links.get_mut(&link).filter(|loaded| loaded.is_flooded()) {
                        loaded.closed();
                        self.work(now, link);
                    }
                }
            }
            Input::Sent { link } => {
                if let Some(loaded) = self.links.get_mut(&link) {
                    loaded.sent();
                    self.work(now, link);
                }
            }
            Input::LinkCounts { link, counts } => self.counted(now, link, counts),
            Input::Closed { link, reason } => {
                let own =
                    reason.as_ref().filter(|reason| reason.errno == 0).map(|reason| reason.text.as_str());
                self.closed(now, link, own);
            }
            Input::Admitted { run } => self.admitted(now, number(run)),
            Input::Refused { run, why, may_retry } => self.refused(now, number(run), &why, may_retry),
            Input::Tick => self.tick(now),
            Input::Signal(signal) => self.exit(now, 128 + signal),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let clients = self.clients.values().filter_map(|client| client.due);
        let links = self.links.values().filter_map(LoadedLink::deadline);
        clients.chain(links).chain(self.next_look).min()
    }
}
