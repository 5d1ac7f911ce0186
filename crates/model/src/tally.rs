//! What one side counted over a whole flow, and what the probes saw.

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::kernel_counts::KernelCounts;
use crate::metrics::Readings;

/// What one side counted over a whole flow.
///
/// At the receiver the window begins with the first read (or where the omitted part ends) and lasts as long as asked;
/// what is read later is the tail. The bytes of the first read mark the time origin and are not in the rate:
/// `bitrate = (bytes - first_read) * 8 / elapsed`. At the sender the window is the time in which it wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tally {
    /// Application bytes inside the window.
    pub bytes: Bytes,
    /// Bytes of the first read of the flow, the time origin; 0 when a part was omitted.
    pub first_read_bytes: Bytes,
    /// Bytes of the omitted part.
    pub omitted_bytes: Bytes,
    /// Bytes after the window.
    pub tail_bytes: Bytes,
    /// Every application byte of the flow: omitted, in the window, and after it.
    pub total_bytes: Bytes,
    /// From the first to the last read (or write) inside the window.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Goodput inside the window.
    #[serde(rename = "bitrate_bps")]
    pub bitrate: Bitrate,
    /// Bytes still in the send queue, unacknowledged or never sent, when the flow was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_bytes: Option<Bytes>,
    /// Segments sent again (TCP sender).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagram counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpTally>,
    /// CPU time of this process during the window.
    pub cpu_seconds: f64,
    /// Share of this host's CPU time that was busy, all cores together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_busy: Option<Ratio>,
    /// Readings over the whole window (counters as differences, gauges at the end).
    pub readings: Readings,
    /// What this host's kernel counted below the program; absent where it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<KernelCounts>>,
    /// Streams, when there are not more than 128.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamTally>,
    /// Whether every stream came to its regular end; otherwise the counts are partial.
    pub complete: bool,
    /// Why it did not, when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ForeignText>,
}

/// What one stream counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StreamTally {
    /// Every application byte of the stream.
    pub bytes: Bytes,
    /// Segments sent again (TCP sender).
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
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Datagrams that came more than once.
    pub duplicates: u64,
    /// Of the lost ones, those that the receiving kernel dropped at the socket (SO_RXQ_OVFL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// Interarrival jitter (RFC 3550 §6.4.1).
    #[serde(rename = "jitter_ns", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Datagrams that the sending kernel refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_errors: Option<u64>,
}

/// Application bytes written, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Books"))]
pub struct ByteAccounting {
    /// Bytes that the sending application gave to its kernel.
    pub written_bytes: Bytes,
    /// Bytes that the receiving application read.
    pub delivered_bytes: Bytes,
    /// Bytes that were still in the sender's queue when the flow was closed.
    pub never_sent_bytes: Bytes,
    /// Bytes that no count explains: written, neither delivered nor queued at the end.
    pub unaccounted_bytes: Bytes,
}

impl ByteAccounting {
    /// Closes the books of a TCP flow.
    #[must_use]
    pub fn close(sender: &Tally, receiver: &Tally) -> Self {
        let written = sender.total_bytes.get();
        let delivered = receiver.total_bytes.get();
        let missing = written.saturating_sub(delivered);
        // The queue also holds bytes that had arrived but whose acknowledgement had not come back.
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
    /// Beside the load.
    Loaded,
}

/// What carried the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeTransport {
    /// Own UDP flow.
    Udp,
    /// Own TCP connection, because UDP did not come through.
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

/// What the latency probes of one phase saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyReport {
    /// Idle or loaded.
    pub phase: ProbePhase,
    /// What carried the probes.
    pub over: ProbeTransport,
    /// Probes sent.
    pub sent: u64,
    /// Probes whose answer never came.
    pub lost: u64,
    /// Round-trip time, without the time in the reflecting program: (T4-T1)-(T3-T2).
    pub rtt: Digest,
    /// One-way delay from the client to the server; its error is `offset_error_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Digest>,
    /// One-way delay from the server to the client; its error is `offset_error_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Digest>,
    /// Server clock minus client clock, estimated from the probes with the smallest round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Largest error of that estimate: half the smallest round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_error_ns: Option<u64>,
    /// Whether the kernels stamped the arrivals; otherwise the programs did.
    pub kernel_timestamps: bool,
    /// The round trips beside the load, interval by interval; those without an answer are absent, and so are all of them
    /// before the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<LatencyInterval>,
}

/// The probes that were sent in one interval and came back.
///
/// Their round trips begin where the sending host's driver took the probe, as far as its kernel tells: the queue of the
/// host itself is not in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyInterval {
    /// Its start, from the start of the run.
    pub start_ns: Timestamp,
    /// Its end.
    pub end_ns: Timestamp,
    /// Number of probes.
    pub count: u64,
    /// Smallest round trip.
    pub min_ns: u64,
    /// Third largest round trip, the smallest of fewer: a late wake-up or two are not in it.
    pub high_ns: u64,
    /// Largest round trip.
    pub max_ns: u64,
}

/// The steady part of a flow, after its ramp-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steady {
    /// Ramp-up time found at the start of the window.
    pub ramp_ns: Span,
    /// Goodput after it.
    #[serde(rename = "bitrate_bps")]
    pub bitrate: Bitrate,
    /// Relative half-width of the 95 % interval of that mean, by batch means; absent when there are too few batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<Ratio>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_close_over_queue_and_flight() {
        let sender =
            Tally { total_bytes: Bytes::new(1000), queued_bytes: Some(Bytes::new(300)), ..Tally::default() };
        let receiver = |bytes| Tally { total_bytes: Bytes::new(bytes), ..Tally::default() };
        let books = ByteAccounting::close(&sender, &receiver(700));
        assert_eq!((books.never_sent_bytes.get(), books.unaccounted_bytes.get()), (300, 0));
        // 50 bytes of the queue had arrived unacknowledged.
        assert_eq!(ByteAccounting::close(&sender, &receiver(750)).never_sent_bytes.get(), 250);
        // 100 bytes are acknowledged and were never read.
        assert_eq!(ByteAccounting::close(&sender, &receiver(600)).unaccounted_bytes.get(), 100);
    }
}
