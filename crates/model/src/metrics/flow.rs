//! Payload: bytes and their rate.

use linerate_units::{Bitrate, Bytes, Span};

use super::metrics;

metrics! {
    /// Application payload that the program read (receiver) or passed to its kernel (sender) in the interval.
    /// Discussion: the receiver's count is the result; the sender's is ahead of it by the data its kernel still
    /// holds.
    BYTES: Bytes = "flow.bytes", Counter, Higher, "RFC 2647 §3.17 (goodput)";

    /// The same payload per second of the interval.
    /// Discussion: goodput (L4), without headers and retransmissions.
    BITRATE: Bitrate = "flow.bitrate", Gauge, Higher, "RFC 2647 §3.17";

    /// Calls with which the program moved the bytes of the interval.
    /// Discussion: bytes per call show whether the program or the kernel determines the pace.
    CALLS: u64 = "flow.calls", Counter, Neither, "own definition";

    /// Time from the receiver's last read to the end of the interval; for slow streams from the arrival of the last
    /// byte that was read.
    /// Discussion: the bytes of an interval, divided by the time between the last reads of two intervals, give a
    /// rate that does not depend on where between two reads the interval ends.
    LAST_DATA: Span = "flow.last_data", Gauge, Neither, "as tcpi_last_data_recv of Linux tcp_info, for reads";
}
