//! A server and clients of the HTTP/2 library, in virtual time.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::super::*;
use crate::http::RESPONSIVENESS;
use crate::http::http2::{ByteQueue, QueueEnd};
use crate::stand_in::{CountedFlow, LinkOptions};
use bytes::Bytes as Chunk;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request, StatusCode};

/// The room of the clients' queues.
const ROOM: usize = 64 << 10;

pub(super) fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A connection of a client.
pub(super) struct ClientLink {
    pub(super) queue: ByteQueue,
    pub(super) send: SendRequest<Chunk>,
    pub(super) connection: Pin<Box<Connection<QueueEnd, Chunk>>>,
    /// Bytes that the server has sent, and those that the client's kernel has acknowledged.
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// What the server has sent since it was held back.
    pub(super) held: Option<Vec<u8>>,
}

/// A server, its clients, and everything that it has requested.
pub(super) struct ServedResponsiveness {
    pub(super) server: Box<dyn StandIn>,
    pub(super) now: Timestamp,
    pub(super) clients: BTreeMap<Link, ClientLink>,
    pub(super) next: u32,
    /// What the driver answers to a request for a place; absent if it does not yet.
    pub(super) admits: Option<bool>,
    /// Requests for a place, results, ends of runs and bytes for the quotas.
    pub(super) asked: Vec<Planned>,
    pub(super) counted: Vec<CountedFlow>,
    pub(super) over: Vec<Option<String>>,
    pub(super) moved: u64,
    pub(super) closed: Vec<Link>,
    pub(super) options: LinkOptions,
    pub(super) agent: &'static str,
    /// The limit of what waits in the sockets.
    pub(super) rooms: BTreeMap<Link, u64>,
}

impl ServedResponsiveness {
    pub(super) fn new() -> Self {
        let mut served = Self {
            server: (RESPONSIVENESS.embedded_server)(&EmbeddedServerConfig::at(5202)),
            now: Timestamp::from_ns(3_600_000_000_000),
            clients: BTreeMap::new(),
            next: 1 << 16,
            admits: Some(true),
            asked: Vec::new(),
            counted: Vec::new(),
            over: Vec::new(),
            moved: 0,
            closed: Vec::new(),
            options: LinkOptions::default(),
            agent: "networkQuality/1 (test)",
            rooms: BTreeMap::new(),
        };
        served.give(Input::Begin);
        served
    }

    /// Passes an input, and executes what the server wants.
    pub(super) fn give(&mut self, input: Input<'_>) {
        self.server.input(self.now, input);
        while let Some(output) = self.server.output() {
            match output {
                Output::Listen { port: 5202, options, .. } => self.options = options,
                Output::Send { link, bytes } => self.deliver(link, bytes),
                Output::Tune { link, options } => {
                    let _ = self.rooms.insert(link, options.notsent_lowat.unwrap());
                }
                Output::LookLink { link } => {
                    let counts = self.clients.get(&link).map(|client| StreamCounts {
                        retransmits: Some(3),
                        connection: Some(ConnectionCounts {
                            bytes_acknowledged: 1_000 + client.acknowledged,
                            busy: Span::from_ms(10),
                            ..ConnectionCounts::default()
                        }),
                        ..StreamCounts::default()
                    });
                    self.server.input(self.now, Input::LinkCounts { link, counts: counts.as_ref() });
                }
                Output::Ask(planned) => {
                    let run = planned.run;
                    self.asked.push(*planned);
                    match self.admits {
                        Some(true) => self.server.input(self.now, Input::Admitted { run }),
                        Some(false) => {
                            let why = "another test is running".to_owned();
                            self.server.input(self.now, Input::Refused { run, why, may_retry: true });
                        }
                        None => {}
                    }
                }
                Output::Counted { counted, .. } => self.counted.push(*counted),
                Output::RunOver { trouble, .. } => self.over.push(trouble),
                Output::Moved { bytes, .. } => self.moved += bytes.get(),
                Output::Exit(_) => {}
                Output::Close { link } => {
                    self.closed.push(link);
                    if let Some(client) = self.clients.get(&link) {
                        client.queue.closed();
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn deliver(&mut self, link: Link, bytes: Vec<u8>) {
        let client = self.clients.get_mut(&link).unwrap();
        client.sent += bytes.len() as u64;
        match &mut client.held {
            Some(held) => held.extend(bytes),
            None => {
                client.acknowledged = client.sent;
                client.queue.received(&bytes);
                self.server.input(self.now, Input::Sent { link });
            }
        }
    }

    pub(super) fn connect(&mut self, from: &str) -> Link {
        let link = Link(self.next);
        self.next += 1;
        let queue = ByteQueue::new(ROOM);
        let mut shaking =
            Box::pin(h2::client::Builder::new().initial_window_size(1 << 20).handshake(queue.end()));
        let Poll::Ready(Ok((send, connection))) = shaking.as_mut().poll(&mut context()) else { panic!() };
        let connection = Box::pin(connection);
        let client = ClientLink { queue, send, connection, sent: 0, acknowledged: 0, held: None };
        self.clients.insert(link, client);
        let from = from.parse::<SocketAddr>().unwrap();
        let opened = crate::virtual_hosts::opened(([192, 0, 2, 1], 5202), from);
        self.give(Input::Accepted { listener: LISTENER, link, opened });
        link
    }

    /// Lets both ends work until nothing moves any more, or for this number of turns.
    pub(super) fn exchange(&mut self, link: Link, turns: usize) {
        for _ in 0..turns {
            let client = self.clients.get_mut(&link).unwrap();
            let _ = client.connection.as_mut().poll(&mut context());
            let Some(bytes) = client.queue.take() else { return };
            self.give(Input::Bytes { link, bytes: &bytes });
        }
    }

    pub(super) fn ask(
        &mut self,
        link: Link,
        method: Method,
        path: &str,
        ends: bool,
    ) -> (ResponseFuture, SendStream<Chunk>) {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://h.example:5202{path}"))
            .header("user-agent", self.agent)
            .body(())
            .unwrap();
        let client = self.clients.get_mut(&link).unwrap();
        let asked = client.send.send_request(request, ends).unwrap();
        self.exchange(link, 1);
        asked
    }

    /// The head of a response that has arrived.
    pub(super) fn head(&mut self, response: &mut ResponseFuture) -> http::Response<RecvStream> {
        match Pin::new(response).poll(&mut context()) {
            Poll::Ready(response) => response.unwrap(),
            Poll::Pending => panic!("no response"),
        }
    }

    /// A short response: status, fields, and content.
    pub(super) fn fetch(
        &mut self,
        link: Link,
        method: Method,
        path: &str,
    ) -> (StatusCode, http::HeaderMap, String) {
        let (mut response, _) = self.ask(link, method, path, true);
        self.exchange(link, 4);
        let (head, mut body) = self.head(&mut response).into_parts();
        (head.status, head.headers, String::from_utf8(self.read(link, &mut body)).unwrap())
    }

    /// Reads what has arrived of a body, and returns its room to the server.
    pub(super) fn read(&mut self, link: Link, body: &mut RecvStream) -> Vec<u8> {
        let mut all = Vec::new();
        while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut context()) {
            body.flow_control().release_capacity(bytes.len()).unwrap();
            all.extend(bytes);
        }
        self.exchange(link, 1);
        all
    }

    /// Writes this number of bytes, the last ones of an upload, as fast as the server reads them.
    pub(super) fn write(&mut self, link: Link, stream: &mut SendStream<Chunk>, count: usize) -> usize {
        self.write_part(link, stream, count, true)
    }

    pub(super) fn write_part(
        &mut self,
        link: Link,
        stream: &mut SendStream<Chunk>,
        mut left: usize,
        ends: bool,
    ) -> usize {
        let (whole, mut idle_turns) = (left, 0);
        while left > 0 && idle_turns < 4 {
            stream.reserve_capacity(left.min(ROOM));
            let count = stream.capacity().min(left);
            if count > 0 {
                stream.send_data(Chunk::from(vec![7; count]), ends && count == left).unwrap();
                left -= count;
            }
            idle_turns = if count > 0 { 0 } else { idle_turns + 1 };
            self.exchange(link, 2);
        }
        self.exchange(link, 10);
        whole - left
    }

    /// Advances the time, with a tick at each deadline.
    pub(super) fn pass(&mut self, ms: u64) {
        let until = self.now + Span::from_ms(ms);
        while let Some(at) = self.server.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.give(Input::Tick);
        }
        self.now = until;
    }

    pub(super) fn result(&self, direction: Direction) -> &Tally {
        &self.counted.iter().find(|counted| counted.direction == direction).unwrap().tally
    }
}
