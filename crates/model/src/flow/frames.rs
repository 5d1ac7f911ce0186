//! Frames of a WebSocket connection (RFC 6455 §5.2), in which tests of browsers carry their payload.

use super::ChunkReader;

/// How the bytes of a TCP connection carry payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PayloadFraming {
    /// Every byte is payload.
    #[default]
    None,
    /// Messages of a WebSocket. A receiver counts the payload of data frames and ends its stream at a close frame.
    /// A block of a sender is one message: the head of its payload is the header of the frame, which does not
    /// count.
    WebSocket,
    /// Chunks of an HTTP body, of which this much has been read before the flow. A receiver counts their payload and
    /// ends its stream after the last.
    Chunks(ChunkReader),
}

/// Most bytes of a frame's header.
const MAX_HEADER_BYTES: usize = 14;

/// Most bytes of payload of a control frame.
const MAX_CONTROL_BYTES: u64 = 125;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Goes on with the message of the frame before.
    Continuation,
    /// Begins a message of text.
    Text,
    /// Begins a message of bytes.
    Binary,
    /// Ends the connection.
    Close,
    /// Requests a pong with the same payload.
    Ping,
    /// Answers a ping.
    Pong,
}

impl FrameKind {
    /// Whether its payload belongs to a message.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Continuation | Self::Text | Self::Binary)
    }

    const fn opcode(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn of_opcode(opcode: u8) -> Option<Self> {
        [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong]
            .into_iter()
            .find(|kind| kind.opcode() == opcode)
    }
}

/// The header of a frame from a server: final, not masked.
#[must_use]
pub fn frame_header(kind: FrameKind, length: u64) -> Vec<u8> {
    let mut header = vec![0x80 | kind.opcode()];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..=125), _) => header.push(length),
        (_, Ok(length)) => {
            header.push(126);
            header.extend(length.to_be_bytes());
        }
        _ => {
            header.push(127);
            header.extend(length.to_be_bytes());
        }
    }
    header
}

/// Why the bytes of a client are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketError {
    /// A reserved bit or kind.
    Reserved,
    /// A frame of a client is not masked.
    Unmasked,
    /// A control frame is longer than 125 bytes or divided.
    Control,
    /// A length above 2^63.
    Length,
}

impl std::fmt::Display for WebSocketError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reserved => "a WebSocket frame of an unknown kind",
            Self::Unmasked => "a WebSocket frame without a mask",
            Self::Control => "a WebSocket control frame that is too long or divided",
            Self::Length => "a WebSocket frame of an impossible length",
        })
    }
}

impl std::error::Error for WebSocketError {}

/// A part of a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePart<'b> {
    /// The frame.
    pub kind: FrameKind,
    /// Its masked payload, as far as it has arrived.
    pub bytes: &'b [u8],
    /// Whether the frame ends with this part.
    pub ends_frame: bool,
    /// Whether the message ends with its frame.
    pub is_final: bool,
    mask: [u8; 4],
}

impl FramePart<'_> {
    /// The payload without its mask.
    pub fn unmasked(&self) -> impl Iterator<Item = u8> {
        self.bytes.iter().zip(self.mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask)
    }
}

/// Reads the frames of a client, regardless of how reads cut them.
#[derive(Debug, Clone, Default)]
pub struct FrameReader {
    header: [u8; MAX_HEADER_BYTES],
    /// Bytes of the header that have arrived.
    have: usize,
    /// The frame whose payload is arriving.
    frame: Option<OpenFrame>,
}

#[derive(Debug, Clone, Copy)]
struct OpenFrame {
    kind: FrameKind,
    is_final: bool,
    left: u64,
    /// The mask, beginning with the byte for the next byte of payload.
    mask: [u8; 4],
}

impl FrameReader {
    /// Takes the next part of a frame from the front of `bytes`; `None` when they are used up.
    ///
    /// # Errors
    /// The bytes are no frame of a client. Nothing can be read after that.
    pub fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<FramePart<'b>>, WebSocketError> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => match self.open(bytes)? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        if bytes.is_empty() && frame.left > 0 {
            self.frame = Some(frame);
            return Ok(None);
        }
        let length = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
        let (part, rest) = bytes.split_at(length);
        *bytes = rest;
        let mask = frame.mask;
        frame.left = frame.left.saturating_sub(length as u64);
        frame.mask.rotate_left(length % 4);
        if frame.left > 0 {
            self.frame = Some(frame);
        }
        let (kind, is_final) = (frame.kind, frame.is_final);
        Ok(Some(FramePart { kind, bytes: part, ends_frame: frame.left == 0, is_final, mask }))
    }

    /// Reads a header; `None` if it is incomplete.
    fn open(&mut self, bytes: &mut &[u8]) -> Result<Option<OpenFrame>, WebSocketError> {
        loop {
            let needed = header_bytes(&self.header[..self.have])?;
            if self.have == needed {
                break;
            }
            let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
            self.header[self.have] = *first;
            self.have = self.have.saturating_add(1);
            *bytes = rest;
        }
        let header = &self.header[..std::mem::take(&mut self.have)];
        let length = match header[1] & 0x7f {
            126 => u64::from(u16::from_be_bytes([header[2], header[3]])),
            127 => header[2..10].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            short => u64::from(short),
        };
        let kind = FrameKind::of_opcode(header[0] & 0x0f).ok_or(WebSocketError::Reserved)?;
        let is_final = header[0] & 0x80 != 0;
        if !kind.is_data() && (length > MAX_CONTROL_BYTES || !is_final) {
            return Err(WebSocketError::Control);
        }
        if length > i64::MAX as u64 {
            return Err(WebSocketError::Length);
        }
        let mask = header.last_chunk().copied().unwrap_or_default();
        Ok(Some(OpenFrame { kind, is_final, left: length, mask }))
    }
}

/// The length of the header that begins with these bytes, as far as they tell.
fn header_bytes(header: &[u8]) -> Result<usize, WebSocketError> {
    let Some(first) = header.first() else { return Ok(2) };
    if first & 0x70 != 0 || FrameKind::of_opcode(first & 0x0f).is_none() {
        return Err(WebSocketError::Reserved);
    }
    let Some(second) = header.get(1) else { return Ok(2) };
    if second & 0x80 == 0 {
        return Err(WebSocketError::Unmasked);
    }
    Ok(match second & 0x7f {
        126 => 8,
        127 => MAX_HEADER_BYTES,
        _ => 6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of a client, by the words of RFC 6455.
    fn client_frame(first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..=125 => frame.push(0x80 | length as u8),
            length @ 126..=65_535 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(mask);
        frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        frame
    }

    /// The complete frames of a stream that arrives in pieces of these lengths, repeated.
    fn read(stream: &[u8], pieces: &[usize]) -> Result<Vec<(FrameKind, Vec<u8>, bool)>, WebSocketError> {
        let (mut reader, mut frames, mut payload) = (FrameReader::default(), Vec::new(), Vec::new());
        let (mut rest, mut lengths) = (stream, pieces.iter().cycle());
        while !rest.is_empty() {
            let (mut piece, after) = rest.split_at(rest.len().min(*lengths.next().unwrap()));
            while let Some(part) = reader.next(&mut piece)? {
                payload.extend(part.unmasked());
                if part.ends_frame {
                    frames.push((part.kind, std::mem::take(&mut payload), part.is_final));
                }
            }
            rest = after;
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_are_read_however_the_stream_is_cut(
            payloads in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..200),
                    proptest::collection::vec(any::<u8>(), 65_530..65_540),
                ],
                0..5,
            ),
            mask in any::<[u8; 4]>(),
            pieces in proptest::collection::vec(1usize..70_000, 1..8),
        ) {
            let stream: Vec<u8> =
                payloads.iter().flat_map(|payload| client_frame(0x82, payload, mask)).collect();
            let expected: Vec<_> =
                payloads.into_iter().map(|payload| (FrameKind::Binary, payload, true)).collect();
            prop_assert_eq!(read(&stream, &pieces), Ok(expected));
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_read() {
        // RFC 6455 §5.7: a single-frame masked text message.
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(read(&hello, &[1]), Ok(vec![(FrameKind::Text, b"Hello".to_vec(), true)]));
    }

    #[test]
    fn what_no_client_may_send_is_refused_at_its_first_byte_or_second() {
        for (bytes, error) in [
            (&[0xc2][..], WebSocketError::Reserved),
            (&[0x83], WebSocketError::Reserved),
            (&[0x82, 0x05], WebSocketError::Unmasked),
            (&[0x09, 0x80, 0, 0, 0, 0], WebSocketError::Control),
            (&[0x88, 0xfe, 0, 126, 0, 0, 0, 0], WebSocketError::Control),
            (&[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], WebSocketError::Length),
        ] {
            assert_eq!(read(bytes, &[1]), Err(error), "{bytes:x?}");
        }
    }

    #[test]
    fn headers_of_a_server_are_those_of_the_rfc() {
        // RFC 6455 §5.7: 256 bytes and 64 KiB of binary data in a single unmasked frame.
        assert_eq!(frame_header(FrameKind::Binary, 256), [0x82, 0x7e, 0x01, 0x00]);
        assert_eq!(frame_header(FrameKind::Binary, 65_536), [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(frame_header(FrameKind::Text, 5), [0x81, 5]);
        assert_eq!(frame_header(FrameKind::Ping, 125), [0x89, 125]);
    }
}
