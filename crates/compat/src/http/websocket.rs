//! Handshake and messages of a WebSocket (RFC 6455), at the server.

use base64::Engine;
use linerate_model::flow::{FrameKind, FrameReader, frame_header};
use sha1::{Digest, Sha1};

/// Most bytes of a message that is not payload.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Fixed by RFC 6455 §1.3.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Codes of close frames (RFC 6455 §7.4.1 and the IANA registry).
pub(super) mod close_code {
    pub(in super::super) const NORMAL: u16 = 1000;
    pub(in super::super) const TRY_AGAIN_LATER: u16 = 1013;
}

/// The response that opens a WebSocket.
pub(super) fn accept(key: &str, protocol: &str) -> Vec<u8> {
    let mut digest = Sha1::new();
    digest.update(key.as_bytes());
    digest.update(KEY_SUFFIX.as_bytes());
    let accept = base64::engine::general_purpose::STANDARD.encode(digest.finalize());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    )
    .into_bytes()
}

/// A frame from the server.
pub(super) fn frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame_header(kind, payload.len() as u64);
    frame.extend_from_slice(payload);
    frame
}

/// A close frame.
pub(super) fn close(code: u16) -> Vec<u8> {
    frame(FrameKind::Close, &code.to_be_bytes())
}

/// What a client sends besides payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WebSocketMessage {
    Text(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close,
}

/// Joins frames to messages.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    frames: FrameReader,
    /// The message that is arriving.
    message: Vec<u8>,
    /// The control frame that is arriving, possibly between two frames of the message.
    control: Vec<u8>,
    is_text: bool,
}

impl MessageReader {
    /// The messages that these bytes complete, up to a close frame. Binary messages are left out.
    ///
    /// # Errors
    /// The client violates the protocol, or a message is too long.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<WebSocketMessage>, String> {
        let mut messages = Vec::new();
        while let Some(part) = self.frames.next(&mut bytes).map_err(|error| error.to_string())? {
            if !part.kind.is_data() {
                self.control.extend(part.unmasked());
                if part.ends_frame {
                    let payload = std::mem::take(&mut self.control);
                    match part.kind {
                        FrameKind::Ping => messages.push(WebSocketMessage::Ping(payload)),
                        FrameKind::Pong => messages.push(WebSocketMessage::Pong(payload)),
                        _ => {
                            messages.push(WebSocketMessage::Close);
                            return Ok(messages);
                        }
                    }
                }
                continue;
            }
            match part.kind {
                FrameKind::Text => self.is_text = true,
                FrameKind::Binary => self.is_text = false,
                _ => {}
            }
            if self.is_text {
                if self.message.len() + part.bytes.len() > MAX_MESSAGE_BYTES {
                    return Err("a message is longer than 16 KiB".to_owned());
                }
                self.message.extend(part.unmasked());
            }
            if part.ends_frame && part.is_final && std::mem::take(&mut self.is_text) {
                messages.push(WebSocketMessage::Text(std::mem::take(&mut self.message)));
            }
        }
        Ok(messages)
    }
}
