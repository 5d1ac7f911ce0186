//! The plans that come with the program.

use linerate_document::{Bundled, bundled as list};

/// All of them.
#[must_use]
pub fn bundled() -> &'static [Bundled] {
    BUNDLED
}

const BUNDLED: &[Bundled] = list! {
    "../../../plans";
    "window-sweep": "goodput and round-trip time against the window, 1 Gb/s and 21 ms",
    "block-size": "goodput against the bytes of one call, with and without TCP_NODELAY",
    "bufferbloat": "round-trip time beside a full line, with a large buffer and with CoDel",
    "switch-matrix": "window x segment size x streams over a switch, two pairs of hosts at once",
    "switch-buffer": "two large flows over 50 ms beside 2 Gb/s of UDP, against the buffer of the switch",
    "nic-roundup": "goodput and processor load of a network card against MTU and block size",
    "rfc6349": "TCP throughput after RFC 6349 for 1 Gb/s and 21 ms",
    "rfc2544": "highest rate without loss for each size of frame, after RFC 2544",
};
