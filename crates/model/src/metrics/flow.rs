//! What passes: bytes and their rate.

use linerate_units::{Bitrate, Bytes};

use super::metrics;

metrics! {
    /// Application payload that the program read (receiver) or gave to its kernel (sender) in the interval.
    /// Discussion: the receiver's count is the result; the sender's runs ahead of it by what its kernel still holds.
    BYTES: Bytes = "flow.bytes", Counter, Higher, "RFC 2647 §3.17 (goodput)";

    /// The same payload per second of the interval.
    /// Discussion: goodput (L4), neither headers nor retransmissions are in it.
    BITRATE: Bitrate = "flow.bitrate", Gauge, Higher, "RFC 2647 §3.17";

    /// Calls with which the program moved the bytes of the interval.
    /// Discussion: bytes per call show whether the program or the kernel sets the pace.
    CALLS: u64 = "flow.calls", Counter, Neither, "own definition";
}
