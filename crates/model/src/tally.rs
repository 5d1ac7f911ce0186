//! What one side counted over a whole flow, and the results of the probes.

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::kernel_counts::KernelCounts;
use crate::metrics::Readings;

/// What one side counted over a whole flow.
///
/// At the receiver the measured part begins with the first read (or at the end of the omitted part) and has the
/// requested length; data read later is the tail. The bytes of the first read mark the time origin and are not
/// included in the rate: `bitrate = (bytes - first_read) * 8 / elapsed`. At the sender the measured part is the
/// time in which it wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tally {
    /// Application bytes in the measured part.
    pub bytes: Bytes,
    /// Bytes of the first read of the flow, the time origin; 0 if a part was omitted.
    pub first_read_bytes: Bytes,
    /// Bytes of the omitted part.
    pub omitted_bytes: Bytes,
    /// Bytes after the measured part.
    pub tail_bytes: Bytes,
    /// All application bytes of the flow: omitted, measured and tail.
    pub total_bytes: Bytes,
    /// From the first to the last read (or write) in the measured part. Of a sender at a rate that ends after a time, to
    /// the end of the slot of its last write, at most to the end of the test.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Whether all times of reads are when the kernel received the bytes, instead of when the program read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub arrival_times: bool,
    /// Goodput in the measured part.
    #[serde(rename = "bitrate_bps")]
    pub bitrate: Bitrate,
    /// Bytes still in the send queue, unacknowledged or never sent, when the flow was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_bytes: Option<Bytes>,
    /// Segments retransmitted (TCP sender).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagram counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpTally>,
    /// Counts of requests and responses, in a test that makes transactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Box<TransactionTally>>,
    /// CPU time of this process during the measured part.
    pub cpu_seconds: f64,
    /// Busy share of this host's CPU time, all cores together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_busy: Option<Ratio>,
    /// Readings over the whole measured part (counters as differences, gauges at the end).
    pub readings: Readings,
    /// What this host's kernel counted below the program; absent if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<KernelCounts>>,
    /// The streams, if there are at most 128.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamTally>,
    /// Whether every stream ended regularly; otherwise the counts are partial.
    pub complete: bool,
    /// The reason if it is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ForeignText>,
}

/// What a page said about its browser's part in a phase of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BrowserNote {
    /// Name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<ForeignText>,
    /// Share of the time in which the page had nothing ready to send, although it may always send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starved_share: Option<Ratio>,
    /// Longest delay of a timer of the page.
    #[serde(rename = "longest_lag_ns", skip_serializing_if = "Option::is_none")]
    pub longest_lag: Option<Span>,
    /// Whether the page was hidden for a while, in which browsers slow it down.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl BrowserNote {
    /// A browser of this name, whose page has said nothing.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: Some(ForeignText::new(name)), ..Self::default() }
    }
}

/// What one stream counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StreamTally {
    /// All application bytes of the stream.
    pub bytes: Bytes,
    /// Segments retransmitted (TCP sender).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

/// Datagram counts of one side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UdpTally {
    /// Datagrams sent (sender) or received (receiver).
    pub packets: u64,
    /// Datagrams that the sender sent and the receiver never read.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams that arrived more than once.
    pub duplicates: u64,
    /// Number of the lost datagrams dropped by the receiving kernel at the socket (SO_RXQ_OVFL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// Losses in a row, over all streams; absent at the sender, and without a loss below the last datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_bursts: Option<LossBursts>,
    /// Datagrams by which a late one was behind the latest, at most; absent if none was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_by: Option<u64>,
    /// Interarrival jitter (RFC 3550 §6.4.1).
    #[serde(rename = "jitter_ns", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Datagrams that the sending kernel refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_errors: Option<u64>,
    /// Times between the moments at which datagrams of a stream with a rate leave, one or several together; absent without
    /// a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_gaps: Option<Digest>,
}

/// Datagrams that were lost in a row, up to the last one that arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LossBursts {
    /// Number of bursts; a single lost datagram is one too.
    pub count: u64,
    /// Datagrams lost in all of them.
    pub lost: u64,
    /// Datagrams lost in the longest.
    pub longest: u64,
    /// Their lengths: how many bursts had 1, 2, 3 to 4, 5 to 8 datagrams, and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<u64>,
}

impl LossBursts {
    /// Adds a burst of this many datagrams; nothing for 0.
    pub fn add(&mut self, length: u64) {
        let Some(power) = length.checked_sub(1) else { return };
        let class = u64::BITS.saturating_sub(power.leading_zeros()) as usize;
        if self.lengths.len() <= class {
            self.lengths.resize(class.saturating_add(1), 0);
        }
        if let Some(count) = self.lengths.get_mut(class) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.lost = self.lost.saturating_add(length);
        self.longest = self.longest.max(length);
    }

    /// Adds the bursts of another stream.
    pub fn merge(&mut self, other: &Self) {
        if self.lengths.len() < other.lengths.len() {
            self.lengths.resize(other.lengths.len(), 0);
        }
        for (sum, count) in self.lengths.iter_mut().zip(&other.lengths) {
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.lost = self.lost.saturating_add(other.lost);
        self.longest = self.longest.max(other.longest);
    }
}

/// Requests and responses in the measured part of one side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TransactionTally {
    /// Transactions that were completed.
    pub completed: u64,
    /// The same per second of the measured part.
    pub per_second: f64,
    /// Requests that were never answered: datagrams that were lost, or connections that could not be opened or broke.
    pub failed: u64,
    /// How long the transactions took; absent at the side that responds, and if none was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<TransactionTimes>,
    /// The distribution of these times: the buckets that are not empty, ascending, at most 3,840.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<DelayBucket>,
}

/// How long transactions took, from the request to the last byte of its response.
///
/// The time starts before the request is passed to the kernel; with a request rate, when the request was due; with a
/// connection for each transaction, before the connection is opened. Except for the smallest, the largest and the mean,
/// times are the largest of their bucket in the histogram, up to 1/128 too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionTimes {
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl TransactionTimes {
    /// The times of a histogram whose values have this smallest, largest and total; absent if it is empty.
    #[must_use]
    pub fn of(histogram: &[DelayBucket], min_ns: u64, max_ns: u64, sum_ns: u64) -> Option<Self> {
        let count = histogram.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        let mean_ns = sum_ns.checked_div(count)?;
        let at = |share: f64| {
            let ns = DelayBucket::quantile(histogram, share).unwrap_or(max_ns);
            ns.clamp(min_ns.min(max_ns), max_ns)
        };
        Some(Self {
            min_ns,
            mean_ns,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            p9999_ns: at(0.9999),
            max_ns,
        })
    }
}

/// Application bytes written, and where they went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByteAccounting {
    /// Bytes that the sending application passed to its kernel.
    pub written_bytes: Bytes,
    /// Bytes that the receiving application read.
    pub delivered_bytes: Bytes,
    /// Bytes that were still in the sender's queue when the flow was closed.
    pub never_sent_bytes: Bytes,
    /// Bytes that no count explains: written, but neither delivered nor queued at the end.
    pub unaccounted_bytes: Bytes,
}

impl ByteAccounting {
    /// The byte accounting of a TCP flow.
    #[must_use]
    pub fn close(sender: &Tally, receiver: &Tally) -> Self {
        let written = sender.total_bytes.get();
        let delivered = receiver.total_bytes.get();
        let missing = written.saturating_sub(delivered);
        // The queue also contains bytes that had arrived but were not yet acknowledged.
        let never_sent = missing.min(sender.queued_bytes.unwrap_or_default().get());
        Self {
            written_bytes: Bytes::new(written),
            delivered_bytes: Bytes::new(delivered),
            never_sent_bytes: Bytes::new(never_sent),
            unaccounted_bytes: Bytes::new(missing.saturating_sub(never_sent)),
        }
    }
}

/// When probes ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbePhase {
    /// Before the load.
    Idle,
    /// During the load.
    Loaded,
}

/// What carried the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeTransport {
    /// A separate UDP flow.
    Udp,
    /// A separate TCP connection, because UDP did not get through.
    Tcp,
}

/// Quantiles of a delay, by the empirical distribution (RFC 2330 §11.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Digest {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// The result of the latency probes of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyReport {
    /// Idle or loaded.
    pub phase: ProbePhase,
    /// What carried the probes.
    pub transport: ProbeTransport,
    /// Probes sent.
    pub sent: u64,
    /// Probes that were never answered.
    pub lost: u64,
    /// Round-trip time, without the processing time of the reflecting program: (T4-T1)-(T3-T2).
    pub rtt: Digest,
    /// One-way delay from the client to the server; its error is `offset_error_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Digest>,
    /// One-way delay from the server to the client; its error is `offset_error_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Digest>,
    /// Server clock minus client clock, estimated from the probes with the smallest round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Largest error of that estimate: half the smallest round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_error_ns: Option<u64>,
    /// Whether the kernels timestamped the arrivals; otherwise the programs did.
    pub kernel_timestamps: bool,
    /// The round-trip times interval by interval. Intervals without an answer are absent; logs of earlier
    /// versions have none before the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<LatencyInterval>,
    /// The distribution of `rtt`: its buckets that are not empty, ascending. At most 3,840 of them, since their
    /// width grows with the time. Absent in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<DelayBucket>,
}

/// A bucket of a log-linear histogram (HdrHistogram with two significant digits): it is as wide as at most
/// 1/128 of its values, and at least 1 ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayBucket {
    /// Largest value of the bucket.
    pub up_to_ns: u64,
    /// Number of values in it.
    pub count: u64,
}

impl DelayBucket {
    /// The end of the bucket in which this share of the values is reached, by the empirical distribution
    /// (RFC 2330 §11.1); absent without values.
    #[must_use]
    pub fn quantile(histogram: &[Self], share: f64) -> Option<u64> {
        let count = histogram.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        // Shares with a finite decimal form, such as 0.999 of 1000, would otherwise be one rank too high.
        let rank = (share * count as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut below: u64 = 0;
        histogram.iter().find_map(|bucket| {
            below = below.saturating_add(bucket.count);
            (below >= rank).then_some(bucket.up_to_ns)
        })
    }
}

/// The probes that were sent in one interval and answered.
///
/// Their round-trip times start when the sending host's driver took the probe, if its kernel reports this: the
/// host's own queue is not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyInterval {
    /// Its start, from the start of the run.
    pub start_ns: Timestamp,
    /// Its end.
    pub end_ns: Timestamp,
    /// Number of probes.
    pub count: u64,
    /// Smallest round-trip time.
    pub min_ns: u64,
    /// Median; absent in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// Third largest round-trip time, or the smallest if there are fewer: this excludes one or two late
    /// wake-ups.
    pub high_ns: u64,
    /// Largest round-trip time.
    pub max_ns: u64,
}

/// The steady part of a flow, after its ramp-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steady {
    /// Duration of the ramp-up at the start of the measured part.
    pub ramp_ns: Span,
    /// Goodput after the ramp-up.
    #[serde(rename = "bitrate_bps")]
    pub bitrate: Bitrate,
    /// Relative half-width of the 95 % interval of that mean, by batch means; absent if there are too few
    /// batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<Ratio>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_transactions_are_the_ends_of_buckets_within_the_extremes() {
        let bucket = |up_to_ns, count| DelayBucket { up_to_ns, count };
        let histogram = [bucket(10, 900), bucket(20, 90), bucket(30, 9), bucket(40, 1)];
        let times = TransactionTimes::of(&histogram, 9, 35, 12_000).unwrap();
        let quantiles =
            [times.p50_ns, times.p90_ns, times.p95_ns, times.p99_ns, times.p999_ns, times.p9999_ns];
        assert_eq!(quantiles, [10, 10, 20, 20, 30, 35]);
        assert_eq!((times.min_ns, times.mean_ns, times.max_ns), (9, 12, 35));
        assert_eq!(TransactionTimes::of(&[], 0, 0, 0), None);
    }

    #[test]
    fn bytes_are_accounted_over_queue_and_flight() {
        let sender =
            Tally { total_bytes: Bytes::new(1000), queued_bytes: Some(Bytes::new(300)), ..Tally::default() };
        let receiver = |bytes| Tally { total_bytes: Bytes::new(bytes), ..Tally::default() };
        let accounting = ByteAccounting::close(&sender, &receiver(700));
        assert_eq!((accounting.never_sent_bytes.get(), accounting.unaccounted_bytes.get()), (300, 0));
        // 50 bytes of the queue had arrived unacknowledged.
        assert_eq!(ByteAccounting::close(&sender, &receiver(750)).never_sent_bytes.get(), 250);
        // 100 bytes are acknowledged but were never read.
        assert_eq!(ByteAccounting::close(&sender, &receiver(600)).unaccounted_bytes.get(), 100);
    }
}
