//! What the kernel of one host counted below the program while a flow was open: the lower lines of its books.

use linerate_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// What one host's kernel counted while a flow was open, from before its first byte to after its last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelCounts {
    /// The flow's connections; absent for datagrams, whose sockets count nothing, and where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketCounts>,
    /// The connection of the dialogue in the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialogue: Option<SocketCounts>,
    /// The interface that carries the run; absent for a flow with a program of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceCounts>,
}

/// What TCP counted on some connections: payload without headers, segments as the line has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketCounts {
    /// Payload sent, what was sent again included (tcpi_bytes_sent).
    pub sent_bytes: Bytes,
    /// Payload sent again (tcpi_bytes_retrans).
    pub resent_bytes: Bytes,
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
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, u64::saturating_sub)
    }

    /// These and those of other connections.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        self.combined(others, u64::saturating_add)
    }

    fn combined(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        let bytes = |a: Bytes, b: Bytes| Bytes::new(with(a.get(), b.get()));
        Self {
            sent_bytes: bytes(self.sent_bytes, other.sent_bytes),
            resent_bytes: bytes(self.resent_bytes, other.resent_bytes),
            acked_bytes: bytes(self.acked_bytes, other.acked_bytes),
            received_bytes: bytes(self.received_bytes, other.received_bytes),
            segments_out: with(self.segments_out, other.segments_out),
            segments_in: with(self.segments_in, other.segments_in),
            data_segments_out: with(self.data_segments_out, other.data_segments_out),
            data_segments_in: with(self.data_segments_in, other.data_segments_in),
        }
    }

    /// Segments without payload sent: acknowledgements and window updates.
    #[must_use]
    pub const fn bare_segments_out(&self) -> u64 {
        self.segments_out.saturating_sub(self.data_segments_out)
    }

    /// Segments without payload received.
    #[must_use]
    pub const fn bare_segments_in(&self) -> u64 {
        self.segments_in.saturating_sub(self.data_segments_in)
    }
}

/// What an interface and the queue above it counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct InterfaceCounts {
    /// Interface name.
    pub name: ForeignText,
    /// Time between the two readings.
    #[serde(rename = "over_ns")]
    pub over: Span,
    /// What it sent.
    pub sent: PassedCounts,
    /// What it received.
    pub received: PassedCounts,
    /// The queueing discipline at its root; absent where there is none that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<QdiscCounts>,
    /// The same interface before the load; absent where there was no time to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleCounts>,
}

/// One direction of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PassedCounts {
    /// Bytes with the link-layer header, as the driver counts them: of a bundle of segments the headers once.
    pub bytes: Bytes,
    /// Packets; a bundle of segments is one where software carries it.
    pub packets: u64,
    /// Packets thrown away.
    pub dropped: u64,
}

/// What the queueing discipline at the root of an interface counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QdiscCounts {
    /// Which one.
    pub kind: ForeignText,
    /// Bytes that left it, every segment of a bundle with its headers (linux/net/core/dev.c, qdisc_pkt_len_init).
    pub bytes: Bytes,
    /// Packets that left it, every segment of a bundle.
    pub packets: u64,
    /// Packets that it threw away.
    pub dropped: u64,
    /// The rate that it is set to, for `tbf` and `htb`; absent for those that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Bytes that may leave it beyond that rate, however long it is watched: what its bucket holds, and what did not pass
    /// the class of `htb` whose rate this is. Absent in logs of versions that did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<Bytes>,
}

/// What passed an interface before the load: the run's own probes, and what others sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdleCounts {
    /// How long it was watched.
    #[serde(rename = "over_ns")]
    pub over: Span,
    /// Bytes sent.
    pub sent_bytes: Bytes,
    /// Bytes received.
    pub received_bytes: Bytes,
}
