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

    /// Requests that were answered in the interval (client) or responses that were sent (server).
    /// Discussion: with one request under way per connection, the rate of a connection is the inverse of its latency.
    TRANSACTIONS: u64 = "flow.transactions", Counter, Higher, "netperf TCP_RR";

    /// Median time of the transactions that were completed in the interval, from the request to the last byte of the
    /// response.
    /// Discussion: with a request rate, the time starts when the request was due, so that a response that keeps later
    /// requests waiting counts for each of them.
    TRANSACTION_P50: Span = "flow.transaction_p50", Mean, Lower, "RFC 2330 §11.1";

    /// 99th percentile of the same times.
    /// Discussion: of fewer than 100 transactions it is the longest. Several intervals have the largest of theirs.
    TRANSACTION_P99: Span = "flow.transaction_p99", Peak, Lower, "RFC 2330 §11.1";

    /// Time from the receiver's last read to the end of the interval; for slow streams from the arrival of the last
    /// byte that was read.
    /// Discussion: the bytes of an interval, divided by the time between the last reads of two intervals, give a
    /// rate that does not depend on where between two reads the interval ends.
    LAST_DATA: Span = "flow.last_data", Gauge, Neither, "as tcpi_last_data_recv of Linux tcp_info, for reads";
}
