//! Everything known about one flow when it is diagnosed. What was not measured is `None`, never 0.
//!
//! Values of a connection (windows, buffers, RTT) are those of the flow's median connection; counts are sums
//! over the flow, or over its sampled connections ([`Tcp::sampled_streams`]).

mod derived;

use crate::framing::IpVersion;
use crate::stats::loss::LossDispersion;

/// Transport of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowTransport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Source of the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSource {
    /// Read from the local interface.
    Interface,
    /// Given by the user.
    User,
}

/// Which end counted the bytes of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedBy {
    /// The receiving application, as in all results of this program.
    Receiver,
    /// The sending application, as in some imported results.
    Sender,
}

/// The result and its byte accounting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultEvidence {
    /// Payload that arrived, divided by the time in which it arrived, bit/s.
    pub goodput_bps: Option<f64>,
    /// Half-width of the 95 % interval of the goodput, bit/s.
    pub uncertainty_bps: Option<f64>,
    /// The printed rate over the whole measured part, less one read of each connection, which may have waited
    /// when the part began, bit/s; absent if there is no other rate than `goodput_bps`.
    pub whole_bps: Option<f64>,
    /// Which end counted; absent means the receiver.
    pub counted_by: Option<CountedBy>,
    /// Steady time measured, s.
    pub measured_s: Option<f64>,
    /// Requested duration, s.
    pub asked_s: Option<f64>,
    /// Ramp-up that was found, s.
    pub ramp_s: Option<f64>,
    /// Time omitted, s.
    pub omitted_s: Option<f64>,
    /// Number of connections.
    pub streams: Option<u32>,
    /// Goodput of each steady interval, bit/s.
    pub intervals_bps: Vec<f64>,
    /// Length of those intervals, s.
    pub interval_s: Option<f64>,
    /// Goodput of the last interval divided by that of the one before.
    pub last_over_previous: Option<f64>,
    /// Goodput at the start divided by that of the steady part.
    pub early_over_steady: Option<f64>,
    /// Bytes that the sender's application wrote.
    pub written_bytes: Option<f64>,
    /// Bytes that the receiver's application read.
    pub delivered_bytes: Option<f64>,
    /// Bytes still in the send buffer when the test ended.
    pub never_sent_bytes: Option<f64>,
    /// Bytes that are missing from both ends' counts.
    pub unaccounted_bytes: Option<f64>,
    /// Bytes that each connection delivered, in the order of the connections; empty if not known separately.
    pub stream_bytes: Vec<f64>,
}

/// The link and its frames.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkEvidence {
    /// Rate of the sender's link, bit/s.
    pub link_bps: Option<f64>,
    /// Source of that rate.
    pub source: Option<LinkSource>,
    /// That rate is what the NIC of a hypervisor reports, which packets need not keep to.
    pub is_nominal: bool,
    /// Loopback, veth and the like: the rate that they report is meaningless.
    pub is_virtual: bool,
    /// Both ends are on one host, with only its memory between them.
    pub is_loopback: bool,
    /// Rate of the peer's link, bit/s.
    pub peer_link_bps: Option<f64>,
    /// Like `is_nominal`, for the peer's rate.
    pub peer_is_nominal: bool,
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
    /// Smallest RTT seen by the kernel.
    pub min_s: Option<f64>,
    /// Mean of the smoothed RTT during the test.
    pub mean_s: Option<f64>,
    /// 10th percentile of the smoothed RTT in the steady part: its value while the queue is short.
    pub smoothed_p10_s: Option<f64>,
    /// 90th percentile of the smoothed RTT during the test.
    pub smoothed_p90_s: Option<f64>,
    /// Smallest probe RTT before the test.
    pub idle_min_s: Option<f64>,
    /// Median probe RTT before the test.
    pub idle_p50_s: Option<f64>,
    /// Median probe RTT under load.
    pub loaded_p50_s: Option<f64>,
    /// 95th percentile of the probe RTT under load.
    pub loaded_p95_s: Option<f64>,
    /// 99th percentile of the probe RTT under load.
    pub loaded_p99_s: Option<f64>,
    /// Rise of the median one-way delay under load in the direction of the data.
    pub out_rise_s: Option<f64>,
    /// Rise of the median one-way delay under load on the return path.
    pub back_rise_s: Option<f64>,
}

/// Counters and state of the sender's TCP.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tcp {
    /// Number of connections whose state was sampled. The counts below that the kernel keeps for each
    /// connection are sums over these. Absent if they are all connections of the flow.
    pub sampled_streams: Option<u32>,
    /// Name of the congestion control.
    pub congestion: Option<String>,
    /// Share of the time with data outstanding.
    pub busy_share: Option<f64>,
    /// Share of the busy time limited by the receive window.
    pub receiver_window_share: Option<f64>,
    /// Share of the busy time limited by the send buffer.
    pub send_buffer_share: Option<f64>,
    /// Share of the samples in which the application limited the rate.
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
    /// Whether the flow never left slow start.
    pub ssthresh_infinite: Option<bool>,
    /// Segments without payload that the sender received (acknowledgements and window updates), 1/s.
    pub return_pps: Option<f64>,
    /// Segments without payload received per segment sent.
    pub return_per_segment: Option<f64>,
    /// Share of the receiver's segments that did not reach the sender.
    pub return_lost_share: Option<f64>,
    /// Retransmitted segments.
    pub retransmits: Option<f64>,
    /// Segments sent, retransmissions included.
    pub segments_sent: Option<f64>,
    /// Needless retransmissions.
    pub duplicate_acks: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: Option<f64>,
    /// Time spent in timeouts, s.
    pub timeout_s: Option<f64>,
    /// Segments delivered with a congestion mark.
    pub delivered_marked: Option<f64>,
    /// Segments delivered.
    pub delivered: Option<f64>,
    /// Bytes acknowledged since the first one was sent, including the omitted part.
    pub acked_bytes: Option<f64>,
    /// Number of times that the sender detected reordering.
    pub reordered: Option<f64>,
    /// Segments that reached the receiver out of order.
    pub out_of_order: Option<f64>,
    /// Window reductions that the sending host undid.
    pub window_undone: Option<f64>,
    /// Number of slow starts on the sending host that HyStart ended, including the omitted part.
    pub hystart_exits: Option<f64>,
    /// Mean congestion window at these exits, bytes.
    pub hystart_window_bytes: Option<f64>,
    /// Largest segment at the start, bytes. [`LinkEvidence::mss_bytes`] is the smallest.
    pub mss_first_bytes: Option<f64>,
    /// Path MTU probes of the sending host, including the omitted part.
    pub mtu_probes: Option<f64>,
    /// The kernel's pacing rate, bit/s.
    pub pacing_rate_bps: Option<f64>,
}

/// Windows and buffers, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WindowEvidence {
    /// Smallest window that the receiver offered in the steady part.
    pub offered_min_bytes: Option<f64>,
    /// Median offered window.
    pub offered_median_bytes: Option<f64>,
    /// Largest offered window.
    pub offered_max_bytes: Option<f64>,
    /// Fill of the receive buffer with data that waits for the application, median share.
    pub queue_median_share: Option<f64>,
    /// Largest fill of the receive buffer, share.
    pub queue_max_share: Option<f64>,
    /// Requested receive buffer; absent if left to the kernel.
    pub rcv_buf_asked_bytes: Option<f64>,
    /// Receive buffer granted.
    pub rcv_buf_bytes: Option<f64>,
    /// Requested send buffer; absent if left to the kernel.
    pub snd_buf_asked_bytes: Option<f64>,
    /// Send buffer granted.
    pub snd_buf_bytes: Option<f64>,
    /// Largest receive buffer that the kernel grows to (`tcp_rmem[2]` of the receiver).
    pub rmem_max_bytes: Option<f64>,
    /// Largest send buffer that the kernel grows to (`tcp_wmem[2]` of the sender).
    pub wmem_max_bytes: Option<f64>,
    /// Number of zero windows advertised.
    pub zero_windows: Option<f64>,
    /// Number of times that the receiver pruned or collapsed its queue.
    pub pruned: Option<f64>,
}

/// Rates that the test itself set, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestedRates {
    /// Rate that the sender offers.
    pub offered_bps: Option<f64>,
    /// Whether it sends to a multicast group.
    pub to_a_group: bool,
    /// Rate at which the receiver reads.
    pub read_bps: Option<f64>,
    /// Pacing rate set on the socket or the qdisc.
    pub max_pacing_bps: Option<f64>,
    /// Whether this program generates the payload in memory, so that its source cannot be slow.
    pub from_memory: bool,
    /// Rate of the latency probes' IP packets in the direction of the flow.
    pub probe_bps: Option<f64>,
}

/// One host during the test. Shares are of one core.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostEvidence {
    /// Rate at which the disk alone read the file that this host sends, or wrote a file like the one it receives, bit/s.
    pub disk_bps: Option<f64>,
    /// CPU share of the busiest pump thread, median over time.
    pub thread_share: Option<f64>,
    /// Share of the time in which a pump thread was ready but had no processor. It is a mean, because the
    /// kernel counts a wait only when it ends.
    pub thread_wait_share: Option<f64>,
    /// Share of the time in which the busiest pump thread had 95 % of a core or more.
    pub thread_full_share: Option<f64>,
    /// Share of all cores' time that was not idle, 0 to 1.
    pub all_cores_share: Option<f64>,
    /// Share of all cores' time that other programs used, 0 to 1, without this program and interrupts.
    pub others_share: Option<f64>,
    /// Largest share of a core spent in software interrupts.
    pub softirq_share: Option<f64>,
    /// Share of the time taken by the hypervisor.
    pub steal_share: Option<f64>,
    /// Share of the periods of a CPU quota in which the program had used it up, 0 to 1; absent without a quota.
    pub quota_throttled_share: Option<f64>,
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

/// The root qdisc of the sender's interface.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnQueue {
    /// Kind, such as `tbf`.
    pub kind: String,
    /// Name of the interface.
    pub interface: String,
    /// Name of the host.
    pub host: String,
    /// Configured rate, bit/s of frames without preamble, gap and FCS; absent if it has none.
    pub rate_bps: Option<f64>,
    /// Bytes that may exceed that rate, independent of the test's length; absent if not read.
    pub burst_bytes: Option<f64>,
    /// Whether it may count IP packets without a link header, as on devices that have none.
    pub may_count_packets: bool,
    /// Dropped packets.
    pub dropped: Option<f64>,
}

/// Counts of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DatagramEvidence {
    /// Datagrams that never arrived.
    pub lost: Option<f64>,
    /// Datagrams sent.
    pub packets: Option<f64>,
    /// Datagrams that the receiver's socket buffer dropped.
    pub buffer_drops: Option<f64>,
    /// How unevenly the losses are spread over the intervals.
    pub dispersion: Option<LossDispersion>,
}

impl DatagramEvidence {
    /// Whether the intervals show that datagrams were lost independently of each other, and so not because they
    /// exceeded a rate.
    pub(crate) fn are_lost_independently(&self) -> bool {
        self.dispersion.is_some_and(LossDispersion::is_of_independent_losses)
    }

    /// Whether the receiver's own socket dropped most of those that are missing.
    pub(crate) fn were_dropped_at_the_socket(&self) -> bool {
        self.buffer_drops.zip(self.lost).is_some_and(|(drops, lost)| lost > 0.0 && drops >= 0.5 * lost)
    }
}

/// Counts of a port of an emulated network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PortEvidence {
    /// The port's node and the node that it sends to, as `a>s`.
    pub name: String,
    /// Packets dropped during the measured part.
    pub dropped: f64,
}

/// Whether the measurement itself can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// Largest lateness of the sampling clock, s.
    pub gap_max_s: Option<f64>,
    /// Number of intervals expected.
    pub expected_intervals: Option<u64>,
    /// Number of intervals seen.
    pub seen_intervals: Option<u64>,
    /// Whether the wall clock was set during the test.
    pub clock_stepped: Option<bool>,
    /// Whether an emulated network delivered many frames late, so that its lines did not have their nominal
    /// rates.
    pub emulator_late: Option<bool>,
}

/// Everything that is known about one flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Transport.
    pub transport: FlowTransport,
    /// The result and its byte accounting.
    pub outcome: ResultEvidence,
    /// The link and its frames.
    pub link: LinkEvidence,
    /// Round-trip times.
    pub rtt: RoundTrip,
    /// The sender's TCP.
    pub tcp: Tcp,
    /// Windows and buffers.
    pub windows: WindowEvidence,
    /// Rates that the test set.
    pub asked: RequestedRates,
    /// The sending host.
    pub sender: HostEvidence,
    /// The receiving host.
    pub receiver: HostEvidence,
    /// The sender's root qdisc; absent if it has none.
    pub own_queue: Option<OwnQueue>,
    /// Counts of datagrams.
    pub udp: DatagramEvidence,
    /// Ports of the emulated network; empty on real hosts.
    pub ports: Vec<PortEvidence>,
    /// The browser at one end; absent if neither end is one.
    pub browser: Option<BrowserEvidence>,
    /// Quality of the timing.
    pub timing: Timing,
}

/// A browser at one end, by the words of its page.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BrowserEvidence {
    /// Whether it receives.
    pub receives: bool,
    /// Share of the time in which the page had nothing ready to send.
    pub starved_share: Option<f64>,
    /// Longest delay of a timer of the page, s.
    pub longest_lag_s: Option<f64>,
    /// Whether the page was hidden for a while.
    pub hidden: bool,
}
