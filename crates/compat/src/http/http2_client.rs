//! HTTP/2 at its client, over bytes that others move, with or without TLS.

use std::future::Future;
use std::io::{BufRead, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use super::http2::{ByteQueue, QueueEnd};

/// Receive windows of a stream and of a connection: enough for 1 Gb/s over 100 ms.
pub(super) const WINDOW: u32 = 16 << 20;

/// Most bytes of the fields of a response.
const MAX_FIELDS_BYTES: u32 = 16 << 10;

/// Most bytes of a stream that the library keeps until they fit into the connection.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// How a client encrypts.
#[derive(Debug, Clone)]
pub struct Http2Tls {
    /// What it trusts and offers; the only protocol is HTTP/2 (`h2`).
    pub config: Arc<ClientConfig>,
    /// The name of its server.
    pub server: ServerName<'static>,
    /// Says in words why TLS failed.
    pub describe: fn(rustls::Error) -> String,
}

/// What passes between the link and HTTP/2.
enum Channel {
    Plain,
    Tls(Box<ClientConnection>, fn(rustls::Error) -> String),
}

type OpenedHttp2 = (SendRequest<Bytes>, client::Connection<QueueEnd, Bytes>);

enum ClientState {
    Handshake(Pin<Box<dyn Future<Output = Result<OpenedHttp2, h2::Error>> + Send>>),
    Open(SendRequest<Bytes>, Box<client::Connection<QueueEnd, Bytes>>),
    Over,
}

/// A connection at its client.
pub(super) struct Http2Client {
    channel: Channel,
    pub(super) queue: ByteQueue,
    state: ClientState,
}

impl std::fmt::Debug for Http2Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Client").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Http2Client {
    /// A new connection, of which at most `room` bytes wait to be taken.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub(super) fn new(tls: Option<&Http2Tls>, room: usize) -> Result<Self, String> {
        let channel = match tls {
            None => Channel::Plain,
            Some(Http2Tls { config, server, describe }) => {
                let mut tls = ClientConnection::new(Arc::clone(config), server.clone()).map_err(describe)?;
                // What may wait is limited by the room.
                tls.set_buffer_limit(None);
                Channel::Tls(Box::new(tls), *describe)
            }
        };
        let queue = ByteQueue::of_client(room);
        let end = queue.end();
        let shaking = async move {
            client::Builder::new()
                .enable_push(false)
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_header_list_size(MAX_FIELDS_BYTES)
                .max_send_buffer_size(MAX_KEPT_BYTES)
                .handshake(end)
                .await
        };
        Ok(Self { channel, queue, state: ClientState::Handshake(Box::pin(shaking)) })
    }

    /// Takes in what has arrived.
    ///
    /// # Errors
    /// It is no TLS, or the server is not trusted.
    pub(super) fn received(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        let Channel::Tls(tls, describe) = &mut self.channel else {
            self.queue.received(bytes);
            return Ok(());
        };
        while !bytes.is_empty() {
            let taken = tls.read_tls(&mut bytes).map_err(|error| error.to_string())?;
            let state = tls.process_new_packets().map_err(*describe)?;
            let (mut reader, mut read) = (tls.reader(), 0);
            // It ends when nothing is left, or with an error that says so.
            while let Ok(plain @ [_, ..]) = reader.fill_buf() {
                self.queue.received(plain);
                read = plain.len();
                reader.consume(read);
            }
            if state.peer_has_closed() {
                self.queue.closed();
            }
            if taken == 0 && read == 0 {
                break;
            }
        }
        // Nothing else was offered.
        if !tls.is_handshaking() && tls.alpn_protocol().is_none() {
            return Err("the server does not speak HTTP/2 (h2) here; check the port".to_owned());
        }
        Ok(())
    }

    /// Whether requests may be sent: the connection is encrypted, if it has to be.
    pub(super) fn is_ready(&self) -> bool {
        match &self.channel {
            Channel::Plain => true,
            Channel::Tls(tls, _) => !tls.is_handshaking(),
        }
    }

    /// Lets the library work on what has arrived, and on what streams send.
    pub(super) fn advance(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        if let ClientState::Handshake(shaking) = &mut self.state {
            match shaking.as_mut().poll(&mut context) {
                Poll::Ready(Ok((send, connection))) => {
                    self.state = ClientState::Open(send, Box::new(connection));
                }
                Poll::Ready(Err(_)) => self.state = ClientState::Over,
                Poll::Pending => {}
            }
        }
        if let ClientState::Open(_, connection) = &mut self.state
            && Pin::new(connection.as_mut()).poll(&mut context).is_ready()
        {
            self.state = ClientState::Over;
        }
    }

    /// Sends the head of a request; its body follows if `is_whole` is false.
    pub(super) fn request(&mut self, request: Request<()>, is_whole: bool) -> Requested {
        self.advance();
        let ClientState::Open(send, _) = &mut self.state else { return Requested::Never };
        let mut context = Context::from_waker(Waker::noop());
        match send.poll_ready(&mut context).map_ok(|()| send.send_request(request, is_whole)) {
            Poll::Ready(Ok(Ok((response, stream)))) => Requested::Sent(response, stream),
            Poll::Pending => Requested::NotNow,
            Poll::Ready(_) => Requested::Never,
        }
    }

    /// How many round trips the TLS handshake had (RFC 8446, section 4.1.4).
    pub(super) fn handshake_round_trips(&self) -> u64 {
        match &self.channel {
            Channel::Tls(tls, _)
                if tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest) =>
            {
                2
            }
            _ => 1,
        }
    }

    /// Takes the bytes that have to be sent, and how many bytes of bodies were sent with all of them so far.
    pub(super) fn take(&mut self) -> Option<(Vec<u8>, u64)> {
        let plain = if self.is_ready() { self.queue.take() } else { None };
        let bytes = match &mut self.channel {
            Channel::Plain => plain.unwrap_or_default(),
            Channel::Tls(tls, _) => {
                let mut encrypted = Vec::new();
                // Writing to memory cannot fail.
                if let Some(plain) = plain {
                    let _ = tls.writer().write_all(&plain);
                }
                while tls.wants_write() && tls.write_tls(&mut encrypted).is_ok_and(|count| count > 0) {}
                encrypted
            }
        };
        (!bytes.is_empty()).then(|| (bytes, self.queue.bodies_taken()))
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ClientState::Over)
    }
}

/// What became of a request.
pub(super) enum Requested {
    /// Its head is on its way.
    Sent(ResponseFuture, SendStream<Bytes>),
    /// The server takes none at the moment.
    NotNow,
    /// The server takes none over this connection any more.
    Never,
}

/// A request whose response is expected, up to a number of bytes.
#[derive(Debug)]
pub(super) struct Awaited {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    head: Option<(StatusCode, HeaderMap)>,
    content: Vec<u8>,
    most: usize,
}

/// A complete response.
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) content: Vec<u8>,
}

impl Awaited {
    /// The response, of which at most `most` bytes are read.
    pub(super) fn new(response: ResponseFuture, most: usize) -> Self {
        Self { response: Some(response), body: None, head: None, content: Vec::new(), most }
    }

    /// The rest of a response whose head has arrived.
    pub(super) fn rest(head: http::response::Parts, body: RecvStream, most: usize) -> Self {
        let head = Some((head.status, head.headers));
        Self { response: None, body: Some(body), head, content: Vec::new(), most }
    }

    /// The response, if it is complete.
    pub(super) fn poll(&mut self) -> Poll<Result<Answered, h2::Error>> {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(response) = &mut self.response {
            match Pin::new(response).poll(&mut context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    self.head = Some((head.status, head.headers));
                    (self.response, self.body) = (None, Some(body));
                }
            }
        }
        while let Some(body) = &mut self.body {
            match body.poll_data(&mut context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(bytes))) => {
                    let _ = body.flow_control().release_capacity(bytes.len());
                    let room = self.most.saturating_sub(self.content.len());
                    self.content.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    if bytes.len() > room {
                        // The rest is not wanted.
                        self.body = None;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => self.body = None,
            }
        }
        let (status, fields) = self.head.take().unwrap_or_default();
        Poll::Ready(Ok(Answered { status, fields, content: std::mem::take(&mut self.content) }))
    }
}
