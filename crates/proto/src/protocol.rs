//! The data a port needs to serve our own protocols.

use linerate_model::sniff::Match;

/// One of our own protocols as plain data.
#[derive(Debug)]
pub struct Protocol {
    /// Port when none is given.
    pub default_port: u16,
    /// Whether a connection that begins with these bytes uses it.
    pub sniff: fn(&[u8]) -> Match,
    /// The message to a client that is refused, with the reason.
    pub refusal: fn(&str) -> Vec<u8>,
}
