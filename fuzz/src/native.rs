//! The stateless decoders of the native protocol, and the framer.

use linerate_proto::native::{Framer, HELLO_LIMIT, PREFACE_BYTES, Preface, ProbeDatagram, looks_like};

/// A preface that decodes encodes to the same bytes again; an incomplete one is not an error.
pub fn native_preface(bytes: &[u8]) {
    let _ = looks_like(bytes);
    match Preface::decode(bytes) {
        Ok(Some(preface)) => assert_eq!(preface.encode(), bytes[..PREFACE_BYTES]),
        Ok(None) => assert!(bytes.len() < PREFACE_BYTES),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A datagram that decodes encodes to the same bytes again.
pub fn native_datagram(bytes: &[u8]) {
    if let Some(datagram) = ProbeDatagram::decode(bytes) {
        assert_eq!(datagram.encode(), bytes);
    }
}

/// However the bytes are split, the messages are the same, and no more is buffered than was pushed.
pub fn native_framer(bytes: &[u8]) {
    let whole = messages(bytes, bytes.len().max(1));
    for piece in [1, 3, 64] {
        assert_eq!(messages(bytes, piece), whole);
    }
}

/// The messages up to the first error, and whether there was one.
fn messages(bytes: &[u8], piece: usize) -> (Vec<serde_json::Value>, bool) {
    let mut framer = Framer::new(HELLO_LIMIT);
    let mut all = Vec::new();
    for piece in bytes.chunks(piece) {
        framer.push(piece);
        loop {
            match framer.pull() {
                Ok(Some(message)) => all.push(message),
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
    }
    (all, false)
}
