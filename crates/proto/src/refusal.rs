//! What servers say to clients that they do not serve, where the protocol has no words for it.

/// The refusal of a protocol that has no words for it: the connection is closed.
#[must_use]
pub fn no_refusal(_why: &str) -> Vec<u8> {
    Vec::new()
}
