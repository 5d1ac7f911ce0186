//! What is on the wire beside the state bytes: cookies, framed JSON, hellos of datagram streams, server errors.

use rand::Rng;

use linerate_model::flow::{SeqField, StampLayout, TimeField, TimeForm};

/// Bytes of a cookie, its NUL included.
pub const COOKIE_BYTES: usize = 37;

/// Longest parameters that are taken (as iperf3 since 3.18).
pub const PARAMS_LIMIT: usize = 8192;

/// Longest results that are taken: a server's whole report may be in them.
pub const RESULTS_LIMIT: usize = 16 << 20;

/// First datagram of a stream, from the client.
pub const HELLO: [u8; 4] = *b"9876";

/// The answer to it, from the server.
pub const HELLO_REPLY: [u8; 4] = *b"6789";

/// Answers of iperf3 3.12 and later, and of 3.1 to 3.11, each from hosts of either byte order.
const REPLIES: [[u8; 4]; 4] = [HELLO_REPLY, HELLO, [0xb1, 0x68, 0xde, 0x3a], [0x3a, 0xde, 0x68, 0xb1]];

/// Alphabet of cookies (iperf3 3.2 and later).
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What tells the connections of one test from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A new one.
    pub fn generate(random: &mut impl Rng) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for byte in &mut bytes[..COOKIE_BYTES - 1] {
            *byte = LETTERS[random.random_range(0..LETTERS.len())];
        }
        Self(bytes)
    }

    /// The cookie that begins `bytes`, and what follows it; absent until it is complete. Any bytes are a cookie.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (cookie, rest) = bytes.split_first_chunk()?;
        Some((Self(*cookie), rest))
    }

    /// As on the wire.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Whether both are the same up to the first NUL, as strncmp(3) sees it.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }

    /// As it is shown.
    #[must_use]
    pub fn text(&self) -> String {
        linerate_model::foreign_text::one_line(&String::from_utf8_lossy(self.significant()))
    }

    fn significant(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// A message: 4 bytes of length, big-endian, and the JSON.
#[must_use]
pub fn frame(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(json);
    bytes
}

/// A message cannot be taken: it is empty, or longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLength(pub u32);

/// Takes the first message out of `held`; absent until it is complete.
///
/// # Errors
/// Its length is 0 or above `limit`; nothing that follows can be understood.
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

/// Whether a datagram answers a hello.
#[must_use]
pub fn is_hello_reply(datagram: &[u8]) -> bool {
    REPLIES.iter().any(|reply| datagram == reply)
}

/// What follows the state byte of a server's error: the error's number and the system's.
#[must_use]
pub fn server_error(number: i32, errno: i32) -> Vec<u8> {
    let mut bytes = vec![super::state::State::ServerError.byte()];
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&errno.to_be_bytes());
    bytes
}

/// The numbers behind the state byte of a server's error, 0 for what is missing: servers up to 3.18 send one of them
/// or none.
#[must_use]
pub fn read_server_error(bytes: &[u8]) -> (i32, i32) {
    let word = |at: usize| {
        bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |word| i32::from_be_bytes(*word))
    };
    (word(0), word(4))
}

/// Where datagrams carry time and number.
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

/// The number of the stream that was opened as the `at`-th, from 0. Number 2 has never been given.
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
