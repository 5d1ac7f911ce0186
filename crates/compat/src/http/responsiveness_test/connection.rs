//! A connection of the test, and a request of a small object over a new one.

use std::task::Poll;

use http::{Method, Request, Uri, header};
use linerate_model::flow::StreamCounts;
use linerate_units::{Span, Timestamp};

use super::super::acknowledged::{MIN_ROOM, SendRoom, SentBodies};
use super::super::http2_client::{Answered, Awaited, Http2Client, Http2Tls, Requested, WINDOW};
use super::load::broken;
use crate::stand_in::Opened;

/// A handshake that took this much longer than a round trip has lost a packet, which kernels retransmit after 1 s (RFC 6298).
const LOST_PACKET: Span = Span::from_ms(900);

/// Most bytes that a server may send without reading what it has to read first: twice what its window allows.
const MAX_UNREAD: usize = 2 * WINDOW as usize;

/// A connection.
#[derive(Debug)]
pub(super) struct TestConnection {
    pub(super) http: Http2Client,
    began: Timestamp,
    opened_at: Option<Timestamp>,
    is_encrypted: bool,
    /// Duration of the TCP handshake, and of the TLS handshake.
    tcp: Option<Span>,
    tls: Option<Span>,
    pub(super) sent: SentBodies,
    pub(super) room: SendRoom,
    /// Whether what was sent last is not in the socket yet.
    is_sending: bool,
    pub(super) counts: StreamCounts,
    pub(super) counted_at: Timestamp,
    /// Whether the kernel's counts were read.
    pub(super) is_counted: bool,
}

impl TestConnection {
    /// A connection that begins to connect.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub(super) fn new(now: Timestamp, tls: Option<&Http2Tls>) -> Result<Self, String> {
        Ok(Self {
            http: Http2Client::new(tls, MIN_ROOM)?,
            began: now,
            opened_at: None,
            is_encrypted: tls.is_some(),
            tcp: None,
            tls: None,
            sent: SentBodies::default(),
            room: SendRoom::default(),
            is_sending: false,
            counts: StreamCounts::default(),
            counted_at: now,
            is_counted: false,
        })
    }

    /// It is open; true the first time.
    pub(super) fn opened(&mut self, now: Timestamp, opened: &Opened) -> bool {
        let is_new = self.opened_at.is_none();
        if is_new {
            self.opened_at = Some(now);
            let handshake = opened.handshake.unwrap_or(now - self.began);
            // The kernel's time does not depend on when this program had the CPU. It may leave out packets that were lost.
            let of_kernel = opened.rtt.filter(|rtt| handshake < *rtt + LOST_PACKET);
            self.tcp = Some(of_kernel.unwrap_or(handshake));
        }
        is_new
    }

    /// Takes in what has arrived.
    ///
    /// # Errors
    /// It is no TLS, or the server is not trusted.
    pub(super) fn received(&mut self, now: Timestamp, bytes: &[u8]) -> Result<(), String> {
        self.http.received(bytes)?;
        if let Some(opened_at) = self.opened_at
            && self.is_encrypted
            && self.http.is_ready()
        {
            let handshake = Span::from_ns((now - opened_at).as_ns() / self.http.handshake_round_trips());
            self.tls.get_or_insert(handshake);
        }
        if self.http.queue.unread() > MAX_UNREAD {
            return Err("the server sends more than it may, and does not read".to_owned());
        }
        Ok(())
    }

    /// Whether it takes requests.
    pub(super) fn is_ready(&self) -> bool {
        self.opened_at.is_some() && self.http.is_ready()
    }

    /// What was sent last is in the socket.
    pub(super) fn has_sent(&mut self) {
        self.is_sending = false;
    }

    /// Takes what has to be sent, if the socket has taken what was before.
    pub(super) fn take_to_send(&mut self) -> Option<Vec<u8>> {
        if self.is_sending || self.opened_at.is_none() {
            return None;
        }
        let (bytes, bodies) = self.http.take()?;
        self.is_sending = true;
        self.sent.wrote(bytes.len() as u64, bodies);
        Some(bytes)
    }

    /// Takes the counts of the kernel.
    pub(super) fn counted(&mut self, now: Timestamp, counts: &StreamCounts) {
        (self.counts, self.counted_at, self.is_counted) = (*counts, now, true);
        self.sent.counted(counts);
    }

    /// Notes that the time between two readings has passed.
    pub(super) fn resize(&mut self) {
        self.http.queue.set_room(self.room.resize(self.sent.sent()));
    }
}

/// The head of a request.
pub(super) fn request(method: Method, uri: &Uri) -> Request<()> {
    let value = header::HeaderValue::from_static;
    let mut request = Request::new(());
    if method == Method::POST {
        request.headers_mut().insert(header::CONTENT_TYPE, value("application/octet-stream"));
    }
    *request.method_mut() = method;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(header::ACCEPT_ENCODING, value("identity"));
    request.headers_mut().insert(header::USER_AGENT, value(concat!("linerate/", env!("CARGO_PKG_VERSION"))));
    request
}

/// The round trips of a request over a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForeignTimes {
    /// When it began to connect.
    pub(super) began: Timestamp,
    pub(super) tcp: Span,
    pub(super) tls: Option<Span>,
    pub(super) http: Span,
}

/// A request over a new connection.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) connection: TestConnection,
    uri: Uri,
    most: usize,
    asked: Option<(Timestamp, Awaited)>,
}

impl Fetch {
    /// The request for an object, of which at most `most` bytes are read.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub(super) fn new(
        now: Timestamp,
        uri: &Uri,
        tls: Option<&Http2Tls>,
        most: usize,
    ) -> Result<Self, String> {
        Ok(Self { connection: TestConnection::new(now, tls)?, uri: uri.clone(), most, asked: None })
    }

    /// When it began.
    pub(super) fn began(&self) -> Timestamp {
        self.connection.began
    }

    /// Works on what has arrived. Returns the response, once it is complete.
    ///
    /// # Errors
    /// There will be none.
    pub(super) fn work(&mut self, now: Timestamp) -> Result<Option<(Answered, ForeignTimes)>, String> {
        if self.asked.is_none() && self.connection.is_ready() {
            let head = request(Method::GET, &self.uri);
            if let Requested::Sent(response, _) = self.connection.http.request(head, true) {
                self.asked = Some((now, Awaited::new(response, self.most)));
            }
        }
        self.connection.http.advance();
        let answered = match &mut self.asked {
            Some((asked_at, awaited)) => match awaited.poll() {
                Poll::Ready(Ok(answered)) => Some((answered, now - *asked_at)),
                Poll::Ready(Err(error)) => return Err(broken("request", &error)),
                Poll::Pending => None,
            },
            None => None,
        };
        let Some((answered, http)) = answered else {
            if self.connection.http.is_over() {
                let hint = if self.connection.is_encrypted {
                    ""
                } else {
                    "; it may not speak HTTP/2 without TLS (with prior knowledge)"
                };
                return Err(format!("the server closed the connection before it answered{hint}"));
            }
            return Ok(None);
        };
        let TestConnection { began, tcp, tls, .. } = self.connection;
        Ok(Some((answered, ForeignTimes { began, tcp: tcp.unwrap_or_default(), tls, http })))
    }
}

/// The words of a response that is no success, with the first line of what it says.
pub(super) fn refusal(answered: &Answered) -> String {
    let text = String::from_utf8_lossy(&answered.content);
    let line = linerate_model::ForeignText::new(text.lines().next().unwrap_or_default());
    let rest = if line.is_empty() { String::new() } else { format!(": {line}") };
    format!("the server answered {}{rest}", answered.status)
}
