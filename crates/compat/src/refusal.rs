//! Refusals of protocols that have no message for them.

/// The refusal of a protocol without such a message: nothing is sent before the connection is closed.
#[must_use]
pub fn no_refusal(_why: &str) -> Vec<u8> {
    Vec::new()
}
