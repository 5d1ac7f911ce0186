//! Messages on the wire besides the state bytes: cookies, framed JSON, the first datagrams of streams, server
//! errors.

use rand::Rng;

use linerate_model::flow::{SeqField, StampLayout, TimeField, TimeForm};

/// Length of a cookie including its NUL, bytes.
pub const COOKIE_BYTES: usize = 37;

/// Longest accepted parameters, bytes (as in iperf3 since 3.18).
pub const PARAMS_LIMIT: usize = 8192;

/// Longest results that a client accepts, bytes: they may contain a server's complete report.
pub const RESULTS_LIMIT: usize = 16 << 20;

/// Longest results that a server accepts, bytes: those of 256 streams have less than a tenth of it.
pub(super) const CLIENT_RESULTS_LIMIT: usize = 1 << 20;

/// Most unread bytes of a control connection outside a message: states are single bytes.
pub(super) const MAX_UNREAD_BYTES: usize = 4096;

/// The first datagram of a stream, sent by the client.
pub const HELLO: [u8; 4] = *b"9876";

/// The server's answer to it.
pub const HELLO_REPLY: [u8; 4] = *b"6789";

/// Answers of iperf3 3.12 and later, and of 3.1 to 3.11, from hosts of either byte order.
const REPLIES: [[u8; 4]; 4] = [HELLO_REPLY, HELLO, [0xb1, 0x68, 0xde, 0x3a], [0x3a, 0xde, 0x68, 0xb1]];

/// Alphabet of cookies (iperf3 3.2 and later).
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Identifies the connections of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// Generates a random cookie.
    pub fn generate(random: &mut impl Rng) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for byte in &mut bytes[..COOKIE_BYTES - 1] {
            *byte = LETTERS[random.random_range(0..LETTERS.len())];
        }
        Self(bytes)
    }

    /// Splits a cookie from the start of `bytes`; absent until it is complete. Any bytes are accepted.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (cookie, rest) = bytes.split_first_chunk()?;
        Some((Self(*cookie), rest))
    }

    /// The bytes on the wire.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Whether both are equal up to the first NUL, as with strncmp(3).
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }

    /// The printable text.
    #[must_use]
    pub fn text(&self) -> String {
        linerate_model::foreign_text::one_line(&String::from_utf8_lossy(self.significant()))
    }

    fn significant(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Encodes a message: 4 bytes of length, big-endian, and the JSON.
#[must_use]
pub fn frame(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(json);
    bytes
}

/// A message is empty or exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLength(pub u32);

/// Removes the first message from `held`; absent until it is complete.
///
/// # Errors
/// Its length is 0 or above `limit`, so nothing that follows can be decoded.
pub fn take_message(held: &mut Vec<u8>, limit: usize) -> Result<Option<Vec<u8>>, BadLength> {
    let Some(head) = held.first_chunk::<4>() else { return Ok(None) };
    let announced = u32::from_be_bytes(*head);
    let length = announced as usize;
    if length == 0 || length > limit {
        return Err(BadLength(announced));
    }
    let Some(body) = held.get(4..4 + length) else { return Ok(None) };
    let body = body.to_vec();
    held.drain(..4 + length);
    Ok(Some(body))
}

/// Whether a datagram is the answer to the first one.
#[must_use]
pub fn is_hello_reply(datagram: &[u8]) -> bool {
    REPLIES.iter().any(|reply| datagram == reply)
}

/// Encodes a server's error: the state byte, the error number and the errno.
#[must_use]
pub fn server_error(number: i32, errno: i32) -> Vec<u8> {
    let mut bytes = vec![super::state::Iperf3State::ServerError.byte()];
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&errno.to_be_bytes());
    bytes
}

/// Decodes the numbers after the state byte of a server's error; missing ones are 0. Servers up to 3.18 send
/// one of them or none.
#[must_use]
pub fn read_server_error(bytes: &[u8]) -> (i32, i32) {
    let word = |at: usize| {
        bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |word| i32::from_be_bytes(*word))
    };
    (word(0), word(4))
}

/// Layout of time and sequence number in datagrams.
#[must_use]
pub const fn stamp(wide: bool) -> StampLayout {
    StampLayout {
        tag_at: None,
        seq: if wide { SeqField::Wide { at: 8, first: 1 } } else { SeqField::Narrow { at: 8, first: 1 } },
        time: Some(TimeField { at: 0, form: TimeForm::Monotonic }),
        stream_at: None,
        length: if wide { 16 } else { 12 },
    }
}

/// The number of the stream that was opened as number `at`, from 0. The number 2 is never used.
#[must_use]
pub const fn stream_id(at: usize) -> i64 {
    if at == 0 { 1 } else { at as i64 + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_cookie_is_36_letters_and_a_nul() {
        let cookie = Cookie::generate(&mut rand::rngs::StdRng::seed_from_u64(1));
        let bytes = cookie.bytes();
        assert_eq!((bytes.len(), bytes[36]), (37, 0));
        assert!(bytes[..36].iter().all(|byte| LETTERS.contains(byte)));
        assert_eq!(cookie.text().len(), 36);
        let other = Cookie::generate(&mut rand::rngs::StdRng::seed_from_u64(2));
        assert!(!cookie.matches(&other));
    }

    #[test]
    fn cookies_are_compared_up_to_the_first_nul() {
        let of = |text: &[u8]| {
            let mut bytes = [7; COOKIE_BYTES];
            bytes[..text.len()].copy_from_slice(text);
            Cookie::split(&bytes).unwrap().0
        };
        assert!(of(b"abc\0x").matches(&of(b"abc\0y")));
        assert!(!of(b"abc\0x").matches(&of(b"abd\0x")));
        assert!(of(b"\0").matches(&of(b"\0a")));
        assert_eq!(of(b"abc\0").text(), "abc");
    }

    #[test]
    fn messages_come_out_whole_and_lengths_are_bounded() {
        let mut held = frame(b"{}");
        held.extend(frame(b"[1]"));
        let last = held.pop().unwrap();
        assert_eq!(take_message(&mut held, 10), Ok(Some(b"{}".to_vec())));
        assert_eq!(take_message(&mut held, 10), Ok(None));
        held.push(last);
        assert_eq!(take_message(&mut held, 2), Err(BadLength(3)));
        assert_eq!(take_message(&mut held, 3), Ok(Some(b"[1]".to_vec())));
        assert_eq!(take_message(&mut vec![0x80, 0, 0, 0], PARAMS_LIMIT), Err(BadLength(1 << 31)));
        assert_eq!(take_message(&mut vec![0; 4], PARAMS_LIMIT), Err(BadLength(0)));
    }

    #[test]
    fn replies_of_every_version_and_byte_order_are_known() {
        // Captured: 3.12 answers "6789", 3.7 answers b1 68 de 3a; hosts of the other byte order reverse them.
        for reply in [*b"6789", *b"9876", [0xb1, 0x68, 0xde, 0x3a], [0x3a, 0xde, 0x68, 0xb1]] {
            assert!(is_hello_reply(&reply));
        }
        assert!(!is_hello_reply(b"678"));
        assert!(!is_hello_reply(b"67890"));
    }

    #[test]
    fn server_errors_with_less_than_two_numbers_are_read() {
        assert_eq!(server_error(121, -1), [0xfe, 0, 0, 0, 121, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(read_server_error(&server_error(142, 111)[1..]), (142, 111));
        assert_eq!(read_server_error(&[0, 0, 0, 142]), (142, 0));
        assert_eq!(read_server_error(&[0, 0]), (0, 0));
    }

    #[test]
    fn the_second_number_of_a_stream_is_never_given() {
        assert_eq!((0..5).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }
}
