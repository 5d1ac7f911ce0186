//! The plans that are part of the program.

use linerate_config::{Bundled, bundled as list};

/// All bundled plans.
#[must_use]
pub fn bundled() -> &'static [Bundled] {
    BUNDLED
}

const BUNDLED: &[Bundled] = list! {
    "../../../plans";
    "window-sweep": "goodput and round-trip time against the window, 1 Gb/s and 21 ms",
    "block-size": "rate and latency against block size and message size, on loopback and on the path: \
                   ttcp's blocks, then NetPIPE's curve",
    "bufferbloat": "round-trip time on a full link, with a large buffer and with CoDel",
    "switch-matrix": "window x segment size x streams over a switch, two pairs of hosts at once",
    "switch-buffer": "two large flows over 50 ms, alone and with 2 Gb/s of UDP cross traffic, against the \
                      switch's buffer size",
    "buffer-burst": "the buffer size of a switch from the longest burst without loss, two inputs to one \
                     output",
    "buffer-step": "the buffer size of a switch from the delay plateau after a load step above its line rate",
    "nic-roundup": "goodput, CPU load, interrupts and block-size curve of a NIC against MTU and congestion \
                    control",
    "rrul": "four TCP uploads and downloads at once in four classes, and the latency meanwhile, as flent's rrul",
    "fan-in": "one to three hosts send to a fourth at the same time (incast): total, fairness and drops",
    "fan-out": "one host sends to one to three others at the same time: total, fairness and drops",
    "multicast": "one sender, three receivers of a multicast group: the loss of each at rising rates",
    "rfc6349": "TCP throughput according to RFC 6349, for 1 Gb/s and 21 ms",
    "rfc2544": "throughput, latency and frame loss rate for each frame size, according to RFC 2544",
    "rfc2544-bursts": "longest burst without loss for each frame size, according to RFC 2544",
};
