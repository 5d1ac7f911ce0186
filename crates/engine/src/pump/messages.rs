//! Counts the payload of a WebSocket's messages or of chunks (see
//! [`PayloadFraming`](linerate_model::flow::PayloadFraming)).

use std::fmt;

use linerate_model::flow::{ChunkReader, FrameKind, FrameReader, PayloadFraming, SystemError};

use super::StreamError;

/// Counts what a client sends in messages or chunks.
#[derive(Debug)]
pub(crate) enum MessageCounter {
    Frames { reader: FrameReader, closed: bool },
    Chunks(ChunkReader),
}

impl MessageCounter {
    /// The counter for payload that is carried in this way; absent if every byte is payload.
    pub(crate) fn new(framing: PayloadFraming) -> Option<Self> {
        match framing {
            PayloadFraming::None => None,
            PayloadFraming::WebSocket => Some(Self::Frames { reader: FrameReader::default(), closed: false }),
            PayloadFraming::Chunks(reader) => Some(Self::Chunks(reader)),
        }
    }

    /// Counts the payload in the next bytes of the connection, up to a close frame or the last chunk.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) -> Result<u64, StreamError> {
        let (frames, closed) = match self {
            Self::Chunks(reader) => return reader.take(bytes).map(|(payload, _)| payload).map_err(failed),
            Self::Frames { reader, closed } => (reader, closed),
        };
        let mut payload = 0;
        while !*closed {
            let Some(part) = frames.next(&mut bytes).map_err(failed)? else { break };
            if part.kind.is_data() {
                payload += part.bytes.len() as u64;
            }
            *closed = part.kind == FrameKind::Close && part.ends_frame;
        }
        Ok(payload)
    }

    /// Whether the client has ended the payload.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Frames { closed, .. } => *closed,
            Self::Chunks(reader) => reader.is_over(),
        }
    }
}

fn failed(error: impl fmt::Display) -> StreamError {
    let text = error.to_string();
    StreamError::Failed { reason: SystemError { errno: 0, text: text.clone() }, text }
}
