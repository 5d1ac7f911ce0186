//! HTTP/2 over bytes that others move (RFC 9113): the library's connections without sockets and without a runtime.
//!
//! What arrives is put in, what has to be sent is taken out, and [`Http2Connection::advance`] lets the library work on
//! both. There are no wakers: after each input, everything that waits for the connection is polled again.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 sends first (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of the head of a frame (RFC 9113, section 4.1).
const FRAME_HEAD_BYTES: usize = 9;

/// The type of frames that carry a body (RFC 9113, section 6.1).
const DATA: u8 = 0;

/// Most streams of a connection.
const MAX_STREAMS: u32 = 32;

/// Most bytes of the fields of a request.
const MAX_FIELDS_BYTES: u32 = 8 << 10;

/// Most bytes of a stream that the library keeps until they fit into the connection.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Receive windows of a connection whose bodies are read: enough for 1 Gb/s over 100 ms.
const OPEN_WINDOW: u32 = 16 << 20;

/// Bytes of a block, which bodies repeat. Nothing on the path can compress it.
const BLOCK_BYTES: usize = 64 << 10;

fn block() -> Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    let made = BLOCK.get_or_init(|| {
        let mut block = vec![0; BLOCK_BYTES];
        StdRng::seed_from_u64(1).fill_bytes(&mut block);
        Bytes::from(block)
    });
    made.clone()
}

/// Writes at most `part` bytes of a body of which `left` bytes are left, or of one without an end. Returns how many fitted;
/// absent if the stream takes none any more.
pub(super) fn write_part(stream: &mut SendStream<Bytes>, part: usize, left: Option<u64>) -> Option<u64> {
    let wanted = left.map_or(part, |left| usize::try_from(left).unwrap_or(part).min(part)).min(BLOCK_BYTES);
    stream.reserve_capacity(wanted);
    let count = stream.capacity().min(wanted);
    if count > 0 {
        stream.send_data(block().slice(..count), left == Some(count as u64)).ok()?;
    }
    Some(count as u64)
}

/// A request, its body, and the handle for the response.
pub(super) type Http2Request = (Request<RecvStream>, SendResponse<Bytes>);

/// Bytes in transit between the library and the link.
#[derive(Debug)]
struct QueuedBytes {
    received: VecDeque<u8>,
    is_closed: bool,
    queued: Vec<u8>,
    /// How many bytes may be queued.
    room: usize,
    meter: FrameMeter,
}

/// The link's end of them.
#[derive(Debug)]
pub(super) struct ByteQueue(Arc<Mutex<QueuedBytes>>);

/// The library's end of them.
#[derive(Debug)]
pub(super) struct QueueEnd(Arc<Mutex<QueuedBytes>>);

fn locked(queue: &Mutex<QueuedBytes>) -> std::sync::MutexGuard<'_, QueuedBytes> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ByteQueue {
    /// Nothing yet; at most `room` bytes wait to be taken.
    pub(super) fn new(room: usize) -> Self {
        Self(Arc::new(Mutex::new(QueuedBytes {
            received: VecDeque::new(),
            is_closed: false,
            queued: Vec::new(),
            room,
            meter: FrameMeter::default(),
        })))
    }

    /// The same for what a client sends, which begins with the preface of a connection.
    pub(super) fn of_client(room: usize) -> Self {
        let queue = Self::new(room);
        locked(&queue.0).meter.left = PREFACE.len();
        queue
    }

    pub(super) fn end(&self) -> QueueEnd {
        QueueEnd(Arc::clone(&self.0))
    }

    /// Adds bytes that have arrived.
    pub(super) fn received(&self, bytes: &[u8]) {
        locked(&self.0).received.extend(bytes);
    }

    /// Bytes that have arrived and that the library did not read yet. It reads none while an answer has no room.
    pub(super) fn unread(&self) -> usize {
        locked(&self.0).received.len()
    }

    /// The peer sends no more.
    pub(super) fn closed(&self) {
        locked(&self.0).is_closed = true;
    }

    /// Sets how many bytes may wait to be taken.
    pub(super) fn set_room(&self, room: usize) {
        locked(&self.0).room = room;
    }

    /// Takes the bytes that have to be sent, if there are any.
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        let queue = &mut *locked(&self.0);
        let queued = std::mem::take(&mut queue.queued);
        queue.meter.read(&queued);
        (!queued.is_empty()).then_some(queued)
    }

    /// Bytes of bodies in everything that was taken.
    pub(super) fn bodies_taken(&self) -> u64 {
        locked(&self.0).meter.bodies
    }
}

impl AsyncRead for QueueEnd {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let queue = &mut *locked(&self.0);
        let (first, _) = queue.received.as_slices();
        let count = first.len().min(into.remaining());
        if count == 0 && !queue.is_closed {
            return Poll::Pending;
        }
        into.put_slice(&first[..count]);
        drop(queue.received.drain(..count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for QueueEnd {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let queue = &mut *locked(&self.0);
        let count = bytes.len().min(queue.room.saturating_sub(queue.queued.len()));
        if count == 0 && !bytes.is_empty() {
            return Poll::Pending;
        }
        queue.queued.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Counts the bodies in a stream of frames.
#[derive(Debug, Default)]
pub(super) struct FrameMeter {
    head: Vec<u8>,
    /// Bytes of the current frame that are still to come, and whether they are those of a body.
    left: usize,
    is_body: bool,
    /// Bytes of bodies so far.
    pub(super) bodies: u64,
}

impl FrameMeter {
    /// Reads the next bytes of the stream.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let count = self.left.min(bytes.len());
                self.left -= count;
                if self.is_body {
                    self.bodies += count as u64;
                }
                bytes = &bytes[count..];
                continue;
            }
            let count = (FRAME_HEAD_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if let [a, b, c, kind, ..] = self.head[..]
                && self.head.len() == FRAME_HEAD_BYTES
            {
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                self.is_body = kind == DATA;
                self.head.clear();
            }
        }
    }
}

enum Http2State {
    Handshake(server::Handshake<QueueEnd, Bytes>),
    Open(server::Connection<QueueEnd, Bytes>),
    Over,
}

/// A connection at its server.
pub(super) struct Http2Connection {
    pub(super) queue: ByteQueue,
    state: Http2State,
    /// Whether the windows of streams are to be enlarged.
    wants_windows: bool,
}

impl std::fmt::Debug for Http2Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Connection").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Http2Connection {
    /// A new connection, of which at most `room` bytes wait to be taken. Bodies may be 64 KiB long before somebody
    /// reads them.
    pub(super) fn new(room: usize) -> Self {
        let queue = ByteQueue::new(room);
        let handshake = server::Builder::new()
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_FIELDS_BYTES)
            .max_send_buffer_size(MAX_KEPT_BYTES)
            .handshake(queue.end());
        Self { queue, state: Http2State::Handshake(handshake), wants_windows: false }
    }

    /// Works on what has arrived, and on what streams send, and returns the new requests.
    pub(super) fn advance(&mut self) -> Vec<Http2Request> {
        let mut context = Context::from_waker(Waker::noop());
        if let Http2State::Handshake(handshake) = &mut self.state {
            match Pin::new(handshake).poll(&mut context) {
                Poll::Ready(Ok(connection)) => self.state = Http2State::Open(connection),
                Poll::Ready(Err(_)) => self.state = Http2State::Over,
                Poll::Pending => {}
            }
        }
        let mut requests = Vec::new();
        loop {
            while let Http2State::Open(connection) = &mut self.state {
                match connection.poll_accept(&mut context) {
                    Poll::Ready(Some(Ok(request))) => requests.push(request),
                    Poll::Ready(Some(Err(_)) | None) => self.state = Http2State::Over,
                    Poll::Pending => break,
                }
            }
            // What arrived may have been what this waits for.
            if !self.change_windows() {
                break;
            }
        }
        requests
    }

    /// Lets the peer send bodies as fast as the path permits from now on: they are read at once.
    pub(super) fn open_windows(&mut self) {
        self.wants_windows = true;
        if let Http2State::Open(connection) = &mut self.state {
            connection.set_target_window_size(OPEN_WINDOW);
        }
        self.change_windows();
    }

    /// Changes the windows of streams, if that is wanted; true if it did. The library refuses it while the peer has not
    /// acknowledged earlier settings.
    fn change_windows(&mut self) -> bool {
        let Http2State::Open(connection) = &mut self.state else { return false };
        let changes = self.wants_windows && connection.set_initial_window_size(OPEN_WINDOW).is_ok();
        self.wants_windows &= !changes;
        changes
    }

    /// Takes no further requests; those that came are answered.
    #[cfg(test)]
    pub(super) fn leave(&mut self) {
        if let Http2State::Open(connection) = &mut self.state {
            connection.graceful_shutdown();
        }
    }

    /// Ends the connection with all its streams.
    pub(super) fn end(&mut self) {
        if let Http2State::Open(connection) = &mut self.state {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, Http2State::Over)
    }
}
