//! A body of a request or a response in transit.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::Response;
use linerate_model::Direction;
use linerate_units::Timestamp;

use super::super::http2::write_part;
use super::{LARGE_BYTES, STALL_TIMEOUT};

/// Sends a whole response.
pub(super) fn respond(to: &mut SendResponse<Bytes>, head: &Response<()>, content: Vec<u8>) {
    // The peer may have given up the request.
    if let Ok(mut stream) = to.send_response(head.clone(), content.is_empty())
        && !content.is_empty()
    {
        let _ = stream.send_data(Bytes::from(content), true);
    }
}

/// What a step has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyStep {
    /// Bytes.
    Moved(u64),
    /// Nothing can be moved now.
    Nothing,
    /// The body is complete, or given up.
    Over,
}

/// A body in transit.
pub(super) struct Http2Transfer {
    pub(super) direction: Direction,
    /// What the client sends; absent for a download, so that the library discards it.
    body: Option<RecvStream>,
    respond: SendResponse<Bytes>,
    head: Option<Response<()>>,
    /// Where a download goes, once it has begun, and what of it is left.
    download: Option<SendStream<Bytes>>,
    left: u64,
    /// When the last of it was moved.
    moved_at: Timestamp,
}

impl std::fmt::Debug for Http2Transfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Transfer").field("direction", &self.direction).finish_non_exhaustive()
    }
}

impl Http2Transfer {
    pub(super) fn new(
        now: Timestamp,
        direction: Direction,
        body: RecvStream,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let body = (direction == Direction::Upload).then_some(body);
        Self { direction, body, respond, head: None, download: None, left: LARGE_BYTES, moved_at: now }
    }

    /// Whether it has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.head.is_some()
    }

    /// Begins to move it. The head is that of the response, at the end of an upload.
    pub(super) fn begin(&mut self, now: Timestamp, head: &Response<()>) {
        self.head = Some(head.clone());
        self.moved_at = now;
        if self.direction == Direction::Download {
            let mut head = head.clone();
            head.headers_mut().insert(http::header::CONTENT_LENGTH, LARGE_BYTES.into());
            self.download = self.respond.send_response(head, false).ok();
        }
    }

    /// Refuses it.
    pub(super) fn refuse(mut self, head: &Response<()>, why: &str) {
        respond(&mut self.respond, head, format!("{why}\n").into_bytes());
    }

    /// Gives it up.
    pub(super) fn give_up(&mut self) {
        self.respond.send_reset(Reason::CANCEL);
    }

    /// When it is given up unless more of it is moved.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.has_begun().then(|| self.moved_at + STALL_TIMEOUT)
    }

    /// Moves a part of it, if it has begun; of a download this number of bytes at most.
    pub(super) fn step(&mut self, now: Timestamp, part: usize) -> BodyStep {
        let step = match (self.direction, &self.head) {
            (_, None) => BodyStep::Nothing,
            (Direction::Download, Some(_)) => self.write(part),
            (Direction::Upload, Some(_)) => self.read(),
        };
        if let BodyStep::Moved(_) = step {
            self.moved_at = now;
        }
        step
    }

    fn write(&mut self, part: usize) -> BodyStep {
        let Some(stream) = &mut self.download else { return BodyStep::Over };
        let mut context = Context::from_waker(Waker::noop());
        if stream.poll_reset(&mut context).is_ready() {
            return BodyStep::Over;
        }
        match write_part(stream, part, Some(self.left)) {
            Some(0) => BodyStep::Nothing,
            Some(count) => {
                self.left -= count;
                if self.left == 0 { BodyStep::Over } else { BodyStep::Moved(count) }
            }
            None => BodyStep::Over,
        }
    }

    fn read(&mut self) -> BodyStep {
        let mut context = Context::from_waker(Waker::noop());
        let Some(body) = &mut self.body else { return BodyStep::Over };
        match body.poll_data(&mut context) {
            Poll::Pending => BodyStep::Nothing,
            Poll::Ready(Some(Ok(bytes))) => {
                // It fails if the stream has ended.
                let _ = body.flow_control().release_capacity(bytes.len());
                BodyStep::Moved(bytes.len() as u64)
            }
            Poll::Ready(None) => {
                if let Some(head) = &self.head {
                    respond(&mut self.respond, head, Vec::new());
                }
                BodyStep::Over
            }
            Poll::Ready(Some(Err(_))) => BodyStep::Over,
        }
    }
}
