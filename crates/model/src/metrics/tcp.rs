//! What the kernels report about a TCP flow; sums over its streams unless stated otherwise.

use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::metrics;

metrics! {
    /// Smoothed round-trip time kept by the sending kernel, mean over streams.
    /// Discussion: contains queueing at the bottleneck and delayed acknowledgement. Issues: not per packet.
    SRTT: Span = "tcp.srtt", Gauge, Lower, "RFC 6298 §2; tcpi_rtt";
    /// Smallest round-trip time seen by the sending kernel in its filter of some minutes, smallest over
    /// streams.
    MIN_RTT: Span = "tcp.min_rtt", Gauge, Lower, "tcpi_min_rtt";
    /// Variation of the round-trip time kept by the sending kernel, mean over streams.
    RTTVAR: Span = "tcp.rttvar", Gauge, Lower, "RFC 6298 §2; tcpi_rttvar";
    /// Congestion window: the limit of data in flight.
    CWND: Bytes = "tcp.cwnd", Gauge, Neither, "RFC 5681 §2; tcpi_snd_cwnd x tcpi_snd_mss";
    /// Slow start threshold; absent while no stream has left slow start.
    SSTHRESH: Bytes = "tcp.ssthresh", Gauge, Neither, "RFC 5681 §2; tcpi_snd_ssthresh";
    /// Largest payload of a segment after options, smallest over streams.
    SND_MSS: Bytes = "tcp.snd_mss", Gauge, Neither, "RFC 9293 §3.7.1; tcpi_snd_mss";
    /// Path MTU known to the sending kernel, smallest over streams.
    PMTU: Bytes = "tcp.pmtu", Gauge, Neither, "tcpi_pmtu";
    /// Segments retransmitted in the interval.
    /// Discussion: an upper bound of the losses; it includes spurious retransmissions.
    RETRANSMITS: u64 = "tcp.retransmits", Counter, Lower, "tcpi_total_retrans";
    /// Data segments sent in the interval, retransmissions included.
    SEGMENTS: u64 = "tcp.segments", Counter, Neither, "tcpi_data_segs_out";
    /// Payload acknowledged in the interval.
    BYTES_ACKED: Bytes = "tcp.bytes_acked", Counter, Higher, "RFC 4898; tcpi_bytes_acked";
    /// Payload sent in the interval, retransmissions included.
    BYTES_SENT: Bytes = "tcp.bytes_sent", Counter, Neither, "tcpi_bytes_sent";
    /// Payload retransmitted in the interval.
    BYTES_RETRANS: Bytes = "tcp.bytes_retrans", Counter, Lower, "tcpi_bytes_retrans";
    /// Time in which the sender had unsent or unacknowledged data, mean over streams.
    BUSY: Span = "tcp.busy", Counter, Neither, "tcpi_busy_time";
    /// Part of the busy time in which the receiver's window was the limit, mean over streams.
    RWND_LIMITED: Span = "tcp.rwnd_limited", Counter, Lower, "tcpi_rwnd_limited";
    /// Part of the busy time in which the send buffer was the limit, mean over streams.
    SNDBUF_LIMITED: Span = "tcp.sndbuf_limited", Counter, Lower, "tcpi_sndbuf_limited";
    /// Delivery rate measured by the sending kernel.
    DELIVERY_RATE: Bitrate = "tcp.delivery_rate", Gauge, Higher, "tcpi_delivery_rate";
    /// Share of streams whose last delivery rate was limited by the program.
    APP_LIMITED: Ratio = "tcp.app_limited", Gauge, Neither, "tcpi_delivery_rate_app_limited";
    /// Rate at which the sending kernel paces.
    PACING_RATE: Bitrate = "tcp.pacing_rate", Gauge, Neither, "tcpi_pacing_rate";
    /// Payload in the send buffer that was never sent.
    NOTSENT: Bytes = "tcp.notsent", Gauge, Neither, "tcpi_notsent_bytes";
    /// Payload sent but not acknowledged.
    UNACKED: Bytes = "tcp.unacked", Gauge, Neither, "tcpi_unacked x tcpi_snd_mss";
    /// Window that the receiver offers the sender.
    SND_WND: Bytes = "tcp.snd_wnd", Gauge, Higher, "RFC 9293 §3.3.1; tcpi_snd_wnd";
    /// Window that this receiver offers.
    RCV_WND: Bytes = "tcp.rcv_wnd", Gauge, Higher, "tcpi_rcv_wnd";
    /// Payload per round trip, from which the receiving kernel sizes its buffer.
    RCV_SPACE: Bytes = "tcp.rcv_space", Gauge, Neither, "tcpi_rcv_space";
    /// Retransmission timeouts in the interval.
    TIMEOUTS: u64 = "tcp.timeouts", Counter, Lower, "RFC 6298 §5; tcpi_total_rto";
    /// Time spent recovering from retransmission timeouts.
    TIMEOUT_TIME: Span = "tcp.timeout_time", Counter, Lower, "tcpi_total_rto_time";
    /// Duplicate segments that the receiver reported: spurious retransmissions.
    DSACK_DUPS: u64 = "tcp.dsack_dups", Counter, Lower, "RFC 2883; tcpi_dsack_dups";
    /// Reordering events seen by the sender.
    REORDERED: u64 = "tcp.reordered", Counter, Lower, "tcpi_reord_seen";
    /// Segments that a congested queue marked, as reported by the receiver.
    DELIVERED_CE: u64 = "tcp.delivered_ce", Counter, Lower, "RFC 3168; tcpi_delivered_ce";
    /// Segments that arrived at the receiver, according to its acknowledgements.
    DELIVERED: u64 = "tcp.delivered", Counter, Higher, "tcpi_delivered";
    /// Segments that arrived out of order at the receiver.
    OUT_OF_ORDER: u64 = "tcp.out_of_order", Counter, Lower, "tcpi_rcv_ooopack";
    /// Send buffer granted (SO_SNDBUF), possibly increased by autotuning.
    SND_BUF: Bytes = "tcp.snd_buf", Gauge, Neither, "socket(7) SO_SNDBUF";
    /// Receive buffer granted (SO_RCVBUF), possibly increased by autotuning.
    RCV_BUF: Bytes = "tcp.rcv_buf", Gauge, Neither, "socket(7) SO_RCVBUF";
}
