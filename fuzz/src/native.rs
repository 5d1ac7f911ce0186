//! The decoders of the native protocol that hold no state, and the framer.

use linerate_proto::native::{Datagram, Framer, HELLO_LIMIT, PREFACE_BYTES, Preface, looks_like};

/// A preface that is understood says the same when it is written again; unfinished bytes are no error.
pub fn native_preface(bytes: &[u8]) {
    let _ = looks_like(bytes);
    match Preface::decode(bytes) {
        Ok(Some(preface)) => assert_eq!(preface.encode(), bytes[..PREFACE_BYTES]),
        Ok(None) => assert!(bytes.len() < PREFACE_BYTES),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A datagram that is understood says the same when it is written again.
pub fn native_datagram(bytes: &[u8]) {
    if let Some(datagram) = Datagram::decode(bytes) {
        assert_eq!(datagram.encode(), bytes);
    }
}

/// However the bytes are cut, the messages are the same, and no more is held than was pushed.
pub fn native_framer(bytes: &[u8]) {
    let whole = messages(bytes, bytes.len().max(1));
    for piece in [1, 3, 64] {
        assert_eq!(messages(bytes, piece), whole);
    }
}

/// The messages until the first error, and whether there was one.
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
