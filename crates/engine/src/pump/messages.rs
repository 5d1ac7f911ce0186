//! Counts the payload of a WebSocket's messages (see [`PayloadFraming`](linerate_model::flow::PayloadFraming)).

use linerate_model::flow::{FrameKind, FrameReader, SystemError};

use super::StreamError;

/// Counts what a client sends in messages.
#[derive(Debug, Default)]
pub(crate) struct MessageCounter {
    frames: FrameReader,
    closed: bool,
}

impl MessageCounter {
    /// Counts the payload in the next bytes of the connection, up to a close frame.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) -> Result<u64, StreamError> {
        let mut payload = 0;
        while !self.closed {
            let part = self.frames.next(&mut bytes).map_err(|error| {
                let text = error.to_string();
                StreamError::Failed { reason: SystemError { errno: 0, text: text.clone() }, text }
            })?;
            let Some(part) = part else { break };
            if part.kind.is_data() {
                payload += part.bytes.len() as u64;
            }
            self.closed = part.kind == FrameKind::Close && part.ends_frame;
        }
        Ok(payload)
    }

    /// Whether the client has closed the connection.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
}
