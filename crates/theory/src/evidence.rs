//! What is known about one flow when it is judged. What was not measured is `None`, never 0.
//!
//! Values of a connection (windows, buffers, RTT) are those of the flow's median connection; counts are sums over the flow.

mod derived;

use crate::framing::IpVersion;

/// Transport of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// A byte stream.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

/// How the rate of the link came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSource {
    /// Read from the local interface.
    Interface,
    /// Given by the user.
    User,
}

/// Who counted the bytes of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedBy {
    /// The receiving application: what this program reports.
    Receiver,
    /// The sending application: some imported results.
    Sender,
}

/// The result and its books.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Payload that arrived over the time in which it arrived, bit/s.
    pub goodput_bps: Option<f64>,
    /// Half-width of its interval of 95 %, bit/s.
    pub uncertainty_bps: Option<f64>,
    /// The rate over the whole measured part, which is the one that is printed, less a read of each connection, which
    /// may have waited when the time began; absent means no other than `goodput_bps`, bit/s.
    pub whole_bps: Option<f64>,
    /// Who counted it; absent means the receiver.
    pub counted_by: Option<CountedBy>,
    /// Steady time measured, s.
    pub measured_s: Option<f64>,
    /// Time asked for, s.
    pub asked_s: Option<f64>,
    /// Ramp-up found, s.
    pub ramp_s: Option<f64>,
    /// Time omitted, s.
    pub omitted_s: Option<f64>,
    /// Connections of the flow.
    pub streams: Option<u32>,
    /// Goodput of each steady interval, bit/s.
    pub intervals_bps: Vec<f64>,
    /// Length of those intervals, s.
    pub interval_s: Option<f64>,
    /// Goodput of the last interval over that of the one before, ratio.
    pub last_over_previous: Option<f64>,
    /// Goodput at the very start over that of the steady part, ratio.
    pub early_over_steady: Option<f64>,
    /// Bytes that the sender's application wrote.
    pub written_bytes: Option<f64>,
    /// Bytes that the receiver's application read.
    pub delivered_bytes: Option<f64>,
    /// Bytes still in the send buffer when the test ended.
    pub never_sent_bytes: Option<f64>,
    /// Bytes that neither end can account for.
    pub unaccounted_bytes: Option<f64>,
    /// Bytes that each connection delivered, in the connections' order; empty when they were not told apart.
    pub stream_bytes: Vec<f64>,
}

/// The link and the frames on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Link {
    /// Rate of the sender's link, bit/s.
    pub link_bps: Option<f64>,
    /// Where that rate comes from.
    pub source: Option<LinkSource>,
    /// Loopback, veth and the like: whatever rate they state means nothing.
    pub is_virtual: bool,
    /// Both ends are on one host, and nothing but its memory is between them.
    pub is_loopback: bool,
    /// Rate of the peer's link, bit/s.
    pub peer_link_bps: Option<f64>,
    /// MTU of the path, bytes.
    pub mtu_bytes: Option<f64>,
    /// IP version.
    pub ip_version: Option<IpVersion>,
    /// Payload of a full segment or datagram, bytes.
    pub mss_bytes: Option<f64>,
    /// Whether TCP timestamps are on.
    pub timestamps: Option<bool>,
    /// Whether window scaling is on.
    pub window_scaling: Option<bool>,
    /// 802.1Q tags.
    pub tags: Option<u32>,
}

/// Round-trip times, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoundTrip {
    /// Smallest that the kernel saw.
    pub min_s: Option<f64>,
    /// Mean of the smoothed RTT during the test.
    pub mean_s: Option<f64>,
    /// What the smoothed RTT was below for a tenth of the steady part: what it still is when the queue is short.
    pub smoothed_p10_s: Option<f64>,
    /// What the smoothed RTT was above for a tenth of the test.
    pub smoothed_p90_s: Option<f64>,
    /// Smallest before the test.
    pub idle_min_s: Option<f64>,
    /// Median before the test.
    pub idle_p50_s: Option<f64>,
    /// Median under load.
    pub loaded_p50_s: Option<f64>,
    /// 95th percentile under load.
    pub loaded_p95_s: Option<f64>,
    /// 99th percentile under load.
    pub loaded_p99_s: Option<f64>,
    /// Rise of the median one-way delay under load, the way that the data takes.
    pub out_rise_s: Option<f64>,
    /// The same on the way back, which acknowledgements take.
    pub back_rise_s: Option<f64>,
}

/// What the sender's TCP says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tcp {
    /// Congestion control.
    pub congestion: Option<String>,
    /// Share of the time with data outstanding.
    pub busy_share: Option<f64>,
    /// Share of the busy time held by the receiver's window.
    pub receiver_window_share: Option<f64>,
    /// Share of the busy time held by the send buffer.
    pub send_buffer_share: Option<f64>,
    /// Share of the samples in which the rate was limited by the application.
    pub app_limited_share: Option<f64>,
    /// Bytes written but not sent, median.
    pub not_sent_bytes: Option<f64>,
    /// Bytes in flight, median.
    pub unacked_bytes: Option<f64>,
    /// Congestion window, median, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Congestion window at the end, bytes.
    pub cwnd_last_bytes: Option<f64>,
    /// Relative growth of the congestion window per second.
    pub cwnd_growth_per_s: Option<f64>,
    /// Whether slow start was never left.
    pub ssthresh_infinite: Option<bool>,
    /// Segments without payload that came back to the sender: acknowledgements and window updates, 1/s.
    pub return_pps: Option<f64>,
    /// Of those, how many for each segment sent.
    pub return_per_segment: Option<f64>,
    /// Of the segments that the receiver sent, the share that never reached the sender.
    pub return_lost_share: Option<f64>,
    /// Segments sent again.
    pub retransmits: Option<f64>,
    /// Segments sent, retransmissions included.
    pub segments_sent: Option<f64>,
    /// Retransmissions that were not needed.
    pub duplicate_acks: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: Option<f64>,
    /// Time spent in timeouts, s.
    pub timeout_s: Option<f64>,
    /// Segments delivered with a congestion mark.
    pub delivered_marked: Option<f64>,
    /// Segments delivered.
    pub delivered: Option<f64>,
    /// Bytes acknowledged since the first one was sent, what was omitted included.
    pub acked_bytes: Option<f64>,
    /// Times that the sender saw reordering.
    pub reordered: Option<f64>,
    /// Segments that reached the receiver out of order.
    pub out_of_order: Option<f64>,
    /// Reductions of the window that the sending host took back.
    pub window_undone: Option<f64>,
    /// Times that HyStart ended a slow start on the sending host, what was omitted included.
    pub hystart_exits: Option<f64>,
    /// Mean congestion window at which it did, bytes.
    pub hystart_window_bytes: Option<f64>,
    /// Largest segment at the beginning, bytes; [`Link::mss_bytes`] has the smallest.
    pub mss_first_bytes: Option<f64>,
    /// Probes for the path MTU by the sending host, what was omitted included.
    pub mtu_probes: Option<f64>,
    /// Pacing rate of the kernel, bit/s.
    pub pacing_rate_bps: Option<f64>,
}

/// Windows and buffers, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// Smallest window that the receiver offered while steady.
    pub offered_min_bytes: Option<f64>,
    /// Its median.
    pub offered_median_bytes: Option<f64>,
    /// Its maximum.
    pub offered_max_bytes: Option<f64>,
    /// Share of the receive buffer that waited for the application, median.
    pub queue_median_share: Option<f64>,
    /// The same, maximum.
    pub queue_max_share: Option<f64>,
    /// Receive buffer asked for; absent leaves it to the kernel.
    pub rcv_buf_asked_bytes: Option<f64>,
    /// Receive buffer granted.
    pub rcv_buf_bytes: Option<f64>,
    /// Send buffer asked for; absent leaves it to the kernel.
    pub snd_buf_asked_bytes: Option<f64>,
    /// Send buffer granted.
    pub snd_buf_bytes: Option<f64>,
    /// Largest receive buffer that the kernel grows to (`tcp_rmem[2]` of the receiver).
    pub rmem_max_bytes: Option<f64>,
    /// Largest send buffer that the kernel grows to (`tcp_wmem[2]` of the sender).
    pub wmem_max_bytes: Option<f64>,
    /// Times that a window of zero was advertised.
    pub zero_windows: Option<f64>,
    /// Times that the receiver pruned or collapsed its queue.
    pub pruned: Option<f64>,
}

/// Rates that the test itself asked for, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Asked {
    /// Rate that the sender offers.
    pub offered_bps: Option<f64>,
    /// Rate at which the receiver reads.
    pub read_bps: Option<f64>,
    /// Pacing rate set on the socket or the queueing discipline.
    pub max_pacing_bps: Option<f64>,
    /// Whether this program makes the payload in memory, so that its source cannot be slow.
    pub from_memory: bool,
    /// IP packets of the latency probes beside the load, in the direction of the flow.
    pub probe_bps: Option<f64>,
}

/// One host during the test. Shares are of one core.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Host {
    /// Processor share of the busiest pump thread, median over time.
    pub thread_share: Option<f64>,
    /// Share of the time in which a pump thread was ready and had no processor; the mean, since the kernel counts a wait
    /// when it is over.
    pub thread_wait_share: Option<f64>,
    /// Share of the time in which that thread had 95 % of a core or more.
    pub thread_full_share: Option<f64>,
    /// Share of all cores' time that was not idle, 0 to 1.
    pub all_cores_share: Option<f64>,
    /// Share of all cores' time that other programs used, 0 to 1: neither this one, nor interrupts.
    pub others_share: Option<f64>,
    /// Largest share of a core spent in software interrupts.
    pub softirq_share: Option<f64>,
    /// Time that a hypervisor took away.
    pub steal_share: Option<f64>,
    /// Packets that the host dropped before its protocol stack, per second.
    pub softnet_dropped_per_s: Option<f64>,
    /// Times that packet processing ran out of its budget, per second.
    pub softnet_squeezed_per_s: Option<f64>,
    /// Packets that the host's own queues dropped.
    pub local_drops: Option<f64>,
    /// Damaged frames at its interface.
    pub damaged_frames: Option<f64>,
    /// Collisions at its interface.
    pub collisions: Option<f64>,
    /// Whether its interface is half duplex.
    pub half_duplex: Option<bool>,
    /// Rate at which the host copies memory, bit/s.
    pub copy_bps: Option<f64>,
}

/// The queueing discipline at the root of the sender's interface.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnQueue {
    /// Which one.
    pub kind: String,
    /// Of which interface.
    pub interface: String,
    /// Of which host.
    pub host: String,
    /// The rate that it is set to, bit/s of frames without preamble, gap and FCS; absent for one that has none.
    pub rate_bps: Option<f64>,
    /// Bytes that may leave it beyond that rate, however long the test is; absent where nobody read it.
    pub burst_bytes: Option<f64>,
    /// Whether it may count IP packets without the header of a link: on devices that have none.
    pub may_count_packets: bool,
    /// Packets that it dropped.
    pub dropped: Option<f64>,
}

/// Datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Datagrams {
    /// Datagrams that never arrived.
    pub lost: Option<f64>,
    /// Datagrams sent.
    pub packets: Option<f64>,
    /// Datagrams that the receiver's socket buffer dropped.
    pub buffer_drops: Option<f64>,
}

/// What a port of an emulated network counted beside the flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Port {
    /// The node that it belongs to and the node that it sends to, as `a>s`.
    pub name: String,
    /// Packets that it dropped during the measured part.
    pub dropped: f64,
}

/// Whether the measurement itself can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// Largest lateness of the sampling clock, s.
    pub gap_max_s: Option<f64>,
    /// Intervals that should have been seen.
    pub expected_intervals: Option<u64>,
    /// Intervals that were.
    pub seen_intervals: Option<u64>,
    /// Whether the clock was set during the test.
    pub clock_stepped: Option<bool>,
    /// Whether an emulated network handed over many frames late: its lines were not what they say for that long.
    pub emulator_late: Option<bool>,
}

/// Everything that is known about one flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Transport.
    pub transport: Transport,
    /// The result and its books.
    pub outcome: Outcome,
    /// The link and its frames.
    pub link: Link,
    /// Round-trip times.
    pub rtt: RoundTrip,
    /// The sender's TCP.
    pub tcp: Tcp,
    /// Windows and buffers.
    pub windows: Windows,
    /// What the test asked for.
    pub asked: Asked,
    /// The sending host.
    pub sender: Host,
    /// The receiving host.
    pub receiver: Host,
    /// The sender's own queue; absent where it has none.
    pub own_queue: Option<OwnQueue>,
    /// Datagrams.
    pub udp: Datagrams,
    /// Ports of the emulated network; empty on real hosts.
    pub ports: Vec<Port>,
    /// Trust in the clock.
    pub timing: Timing,
}
