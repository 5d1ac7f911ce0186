//! Datagrams that were lost, late or duplicated.

use linerate_units::{Ratio, Span};

use super::metrics;

metrics! {
    /// Datagrams sent or received in the interval.
    PACKETS: u64 = "udp.packets", Counter, Neither, "iperf3 manual";
    /// Datagrams missing in the interval, counted from the sequence numbers that arrived.
    /// Issues: a datagram that arrives later is subtracted in the interval of its arrival, so the value is what
    /// is known so far.
    LOST: u64 = "udp.lost", Counter, Lower, "RFC 7680";
    /// Share of lost datagrams among those known from the sequence numbers.
    LOSS_RATIO: Ratio = "udp.loss_ratio", Gauge, Lower, "RFC 7680";
    /// Datagrams that arrived after a later one.
    OUT_OF_ORDER: u64 = "udp.out_of_order", Counter, Lower, "RFC 4737";
    /// Datagrams that arrived more than once.
    DUPLICATES: u64 = "udp.duplicates", Counter, Lower, "RFC 5560";
    /// Smoothed difference of transit times between successive datagrams.
    /// Discussion: an estimator with a memory of about 16 packets, not a statistic of the run.
    JITTER: Span = "udp.jitter", Gauge, Lower, "RFC 3550 §6.4.1";
    /// Datagrams that the receiving kernel dropped at the socket because its buffer was full.
    SOCKET_DROPS: u64 = "udp.socket_drops", Counter, Lower, "socket(7) SO_RXQ_OVFL";
    /// Datagrams that the sending kernel refused.
    SEND_ERRORS: u64 = "udp.send_errors", Counter, Lower, "send(2) ENOBUFS";
}
