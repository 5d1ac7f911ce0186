//! What the kernel of one host counted below the program while a flow was open: the lower levels of the byte
//! accounting.

use linerate_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// What one host's kernel counted while a flow was open, from before its first byte to after its last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelCounts {
    /// The flow's connections; absent for datagrams, whose sockets count nothing, and if the kernel does not
    /// report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketCounts>,
    /// The control connection in the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<SocketCounts>,
    /// The interface that carries the run; absent for a flow with a foreign program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceCounts>,
}

/// TCP's counts on some connections: payload without headers, and segments as on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketCounts {
    /// Payload sent, including retransmissions (tcpi_bytes_sent).
    pub sent_bytes: Bytes,
    /// Payload retransmitted (tcpi_bytes_retrans).
    pub retransmitted_bytes: Bytes,
    /// Payload acknowledged by the other end (tcpi_bytes_acked).
    pub acked_bytes: Bytes,
    /// Payload received in order (tcpi_bytes_received).
    pub received_bytes: Bytes,
    /// Segments sent, acknowledgements included (tcpi_segs_out).
    pub segments_out: u64,
    /// Segments received, acknowledgements included (tcpi_segs_in).
    pub segments_in: u64,
    /// Segments with payload sent (tcpi_data_segs_out).
    pub data_segments_out: u64,
    /// Segments with payload received (tcpi_data_segs_in).
    pub data_segments_in: u64,
}

impl SocketCounts {
    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, u64::saturating_sub)
    }

    /// The sum of these counts and those of other connections.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        self.combined(others, u64::saturating_add)
    }

    fn combined(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        let bytes = |a: Bytes, b: Bytes| Bytes::new(with(a.get(), b.get()));
        Self {
            sent_bytes: bytes(self.sent_bytes, other.sent_bytes),
            retransmitted_bytes: bytes(self.retransmitted_bytes, other.retransmitted_bytes),
            acked_bytes: bytes(self.acked_bytes, other.acked_bytes),
            received_bytes: bytes(self.received_bytes, other.received_bytes),
            segments_out: with(self.segments_out, other.segments_out),
            segments_in: with(self.segments_in, other.segments_in),
            data_segments_out: with(self.data_segments_out, other.data_segments_out),
            data_segments_in: with(self.data_segments_in, other.data_segments_in),
        }
    }

    /// Segments sent without payload: acknowledgements and window updates.
    #[must_use]
    pub const fn bare_segments_out(&self) -> u64 {
        self.segments_out.saturating_sub(self.data_segments_out)
    }

    /// Segments received without payload.
    #[must_use]
    pub const fn bare_segments_in(&self) -> u64 {
        self.segments_in.saturating_sub(self.data_segments_in)
    }
}

/// The counts of an interface and the queue above it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct InterfaceCounts {
    /// Interface name.
    pub name: ForeignText,
    /// Time between the two readings.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Traffic sent.
    pub sent: PassedCounts,
    /// Traffic received.
    pub received: PassedCounts,
    /// The queueing discipline at its root; absent if there is none with counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<QdiscCounts>,
    /// The same interface before the load; absent if there was no time to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleCounts>,
}

/// One direction of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PassedCounts {
    /// Bytes with the link-layer header, as the driver counts them: the headers of a GSO super-packet count
    /// once.
    pub bytes: Bytes,
    /// Packets; a GSO super-packet is one if software carries it.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// The counts of the queueing discipline at the root of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QdiscCounts {
    /// Its kind.
    pub kind: ForeignText,
    /// Bytes that left it, counting headers for every segment of a GSO super-packet (linux/net/core/dev.c,
    /// qdisc_pkt_len_init).
    pub bytes: Bytes,
    /// Packets that left it, counting every segment of a GSO super-packet.
    pub packets: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Its configured rate, for `tbf` and `htb`; absent for kinds without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Bytes that may leave it beyond that rate over any period: the content of its token bucket, and bytes
    /// that did not pass the class of `htb` with this rate. Absent in logs of versions that did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<Bytes>,
}

/// Traffic at an interface before the load: the run's own probes, and cross traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdleCounts {
    /// Duration of the observation.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Bytes sent.
    pub sent_bytes: Bytes,
    /// Bytes received.
    pub received_bytes: Bytes,
}
