//! What is known about one flow when it is judged. What was not measured is `None`, never 0.
//!
//! Values of a connection (windows, buffers, RTT) are those of the flow's median connection; counts are sums over the flow.

use crate::framing::{Headers, IpVersion};
use crate::stats::{order, series, spread};

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
    /// Median before the test.
    pub idle_p50_s: Option<f64>,
    /// Median under load.
    pub loaded_p50_s: Option<f64>,
    /// 95th percentile under load.
    pub loaded_p95_s: Option<f64>,
    /// 99th percentile under load.
    pub loaded_p99_s: Option<f64>,
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
    /// Datagrams.
    pub udp: Datagrams,
    /// Trust in the clock.
    pub timing: Timing,
}

impl Evidence {
    /// The line rate that means something: no virtual interface's, unless the user vouches for it; the slower end's.
    #[must_use]
    pub fn line_rate_bps(&self) -> Option<f64> {
        if self.link.is_virtual && self.link.source != Some(LinkSource::User) {
            return None;
        }
        let own = self.link.link_bps.filter(|rate| rate.is_finite() && *rate > 0.0);
        let peer = self.link.peer_link_bps.filter(|rate| rate.is_finite() && *rate > 0.0);
        match (own, peer) {
            (Some(own), Some(peer)) => Some(own.min(peer)),
            (own, peer) => own.or(peer),
        }
    }

    /// Whether somebody states the rate of the link, so that nobody knows what it counts.
    #[must_use]
    pub fn is_stated_link(&self) -> bool {
        self.link.source == Some(LinkSource::User) && self.line_rate_bps().is_some()
    }

    /// The headers of a data packet; IPv4 and timestamps unless known otherwise.
    #[must_use]
    pub fn headers(&self) -> Headers {
        let ip = self.link.ip_version.unwrap_or(IpVersion::V4);
        match self.transport {
            Transport::Tcp => Headers::tcp(ip, self.link.timestamps.unwrap_or(true)),
            Transport::Udp => Headers::udp(ip),
        }
    }

    /// Length of a full packet, bytes: from the effective segment where it is known, so that a clamped MSS counts.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        let of_segment = self.link.mss_bytes.map(|mss| mss + self.headers().total_bytes());
        let mtu = self.link.mtu_bytes.unwrap_or(1500.0);
        // A datagram longer than the MTU is sent in pieces; its frames are as long as the MTU.
        of_segment.map_or(mtu, |packet| if self.link.mtu_bytes.is_some() { packet.min(mtu) } else { packet })
    }

    /// 802.1Q tags, 0 when nothing is known.
    #[must_use]
    pub fn tags(&self) -> f64 {
        f64::from(self.link.tags.unwrap_or(0))
    }

    /// Connections of the flow, at least one.
    #[must_use]
    pub fn streams(&self) -> f64 {
        f64::from(self.outcome.streams.unwrap_or(1).max(1))
    }

    /// The round trip without queue: the smallest known.
    #[must_use]
    pub fn base_rtt_s(&self) -> Option<f64> {
        let known = [self.rtt.min_s, self.rtt.idle_p50_s, self.rtt.mean_s];
        known.into_iter().flatten().filter(|rtt| *rtt > 0.0).reduce(f64::min)
    }

    /// Rise of the median round trip under load over the base, s.
    #[must_use]
    pub fn rtt_rise_s(&self) -> Option<f64> {
        let loaded = self.rtt.loaded_p50_s.or(self.rtt.mean_s)?;
        Some(loaded - self.base_rtt_s()?)
    }

    /// Whether a queue stands before the bottleneck, so that windows and buffers are larger than the path and only bound
    /// the queue: the round trip grew by half and by a millisecond.
    #[must_use]
    pub fn queue_stands(&self) -> bool {
        self.rtt_rise_s().zip(self.base_rtt_s()).is_some_and(|(rise, base)| rise >= (0.5 * base).max(0.001))
    }

    /// Share of the sent segments that were lost: retransmissions less the needless ones. For UDP the lost datagrams.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let (lost, sent) = match self.transport {
            Transport::Tcp => {
                let needless = self.tcp.duplicate_acks.unwrap_or(0.0);
                ((self.tcp.retransmits? - needless).max(0.0), self.tcp.segments_sent?)
            }
            Transport::Udp => (self.udp.lost?, self.udp.packets?),
        };
        (sent > 0.0).then(|| lost / sent)
    }

    /// Coefficient of variation of the steady intervals.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        series::coefficient_of_variation(&self.outcome.intervals_bps)
    }

    /// Whether the intervals vary less than `limit`, or less than one read of 64 KiB makes them; `None` when unknown.
    ///
    /// Judged by the robust spread, so that one interval in which a host was late does not count; but the mean must stay
    /// at the median, so that rare deep dips do.
    #[must_use]
    pub fn is_constant(&self, limit: f64) -> Option<bool> {
        let intervals = &self.outcome.intervals_bps;
        let centre = order::median(intervals).filter(|median| *median > 0.0)?;
        let interval_bits = self.outcome.goodput_bps? * self.outcome.interval_s.unwrap_or(1.0);
        let limit = limit.max(65536.0 * 8.0 / interval_bits);
        let spread = spread::robust_sigma(intervals)? / centre;
        let drift = (series::mean(intervals)? / centre - 1.0).abs();
        Some(intervals.len() > 1 && spread < limit && drift < limit)
    }

    /// As [`Evidence::is_constant`], but not excused by the size of a read: intervals are merged until one read of
    /// 64 KiB is at most `limit` of them. `None` where fewer than four are left.
    #[must_use]
    pub fn is_surely_constant(&self, limit: f64) -> Option<bool> {
        let read_s = 65536.0 * 8.0 / self.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
        let each = (read_s / (limit * self.outcome.interval_s.unwrap_or(1.0))).ceil().max(1.0);
        self.is_constant_by(each as usize, limit)
    }

    /// Whether sixths of the steady part vary less than `limit`, however slow the flow is. `None` when unknown.
    #[must_use]
    pub fn is_constant_by_sixths(&self, limit: f64) -> Option<bool> {
        self.is_constant_by((self.outcome.intervals_bps.len() / 6).max(1), limit)
    }

    /// Whether the means of so many intervals each vary less than `limit`; `None` where fewer than four are left.
    fn is_constant_by(&self, each: usize, limit: f64) -> Option<bool> {
        let whole = self.outcome.intervals_bps.chunks_exact(each);
        let merged: Vec<f64> = whole.filter_map(series::mean).collect();
        if merged.len() < 4 {
            return None;
        }
        let centre = order::median(&merged).filter(|median| *median > 0.0)?;
        let drift = (series::mean(&merged)? / centre - 1.0).abs();
        Some(spread::robust_sigma(&merged)? / centre < limit && drift < limit)
    }

    /// Whether the flow runs BBR, to which the loss models do not apply.
    #[must_use]
    pub fn is_bbr(&self) -> bool {
        self.tcp.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_link_has_no_line_rate_unless_the_user_says_so() {
        let mut evidence = Evidence::default();
        evidence.link.link_bps = Some(10e9);
        evidence.link.is_virtual = true;
        assert_eq!(evidence.line_rate_bps(), None);
        evidence.link.source = Some(LinkSource::User);
        assert_eq!(evidence.line_rate_bps(), Some(10e9));
        evidence.link.peer_link_bps = Some(1e9);
        assert_eq!(evidence.line_rate_bps(), Some(1e9));
    }

    #[test]
    fn the_effective_segment_decides_the_packet() {
        let mut evidence = Evidence::default();
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
        evidence.link.mtu_bytes = Some(9000.0);
        evidence.link.mss_bytes = Some(1448.0);
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
    }

    #[test]
    fn needless_retransmissions_are_no_loss() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.loss(), None);
        evidence.tcp.retransmits = Some(10.0);
        evidence.tcp.segments_sent = Some(1000.0);
        evidence.tcp.duplicate_acks = Some(4.0);
        assert_eq!(evidence.loss(), Some(0.006));
    }

    #[test]
    fn slow_flows_may_vary_by_a_read() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(9.4e6);
        evidence.outcome.interval_s = Some(0.1);
        evidence.outcome.intervals_bps = vec![7e6, 11.8e6, 7e6, 11.8e6];
        assert_eq!(evidence.is_constant(0.02), Some(true));
        evidence.outcome.interval_s = Some(10.0);
        assert_eq!(evidence.is_constant(0.02), Some(false));
    }

    #[test]
    fn what_reads_blur_is_not_surely_constant() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(1.4e6);
        evidence.outcome.interval_s = Some(0.1);
        evidence.outcome.intervals_bps = vec![1.4e6; 50];
        assert_eq!(evidence.is_constant(0.1), Some(true));
        assert_eq!(evidence.is_surely_constant(0.1), None, "five seconds are thirteen reads");
        // At 52 Mb/s a read of 64 KiB is a tenth of 100 ms: two intervals at a time.
        evidence.outcome.goodput_bps = Some(50e6);
        evidence.outcome.intervals_bps = [45e6, 55e6].repeat(25);
        assert_eq!(evidence.is_surely_constant(0.1), Some(true));
        evidence.outcome.intervals_bps = [40e6, 40e6, 60e6, 60e6].repeat(12);
        assert_eq!(evidence.is_surely_constant(0.1), Some(false));
    }

    #[test]
    fn one_late_interval_in_a_hundred_does_not_count_but_rare_dips_do() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(941e6);
        evidence.outcome.intervals_bps = vec![941e6; 100];
        evidence.outcome.intervals_bps[40] = 600e6;
        assert_eq!(evidence.is_constant(0.02), Some(true));
        for dip in evidence.outcome.intervals_bps.iter_mut().step_by(10) {
            *dip = 400e6;
        }
        assert_eq!(evidence.is_constant(0.02), Some(false));
    }
}
