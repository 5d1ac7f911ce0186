//! The counters of a fabric.

use linerate_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// What happened to every packet: those that entered or were created are delivered, dropped, filtered or held.
///
/// # Units
/// packets on the wire
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketAccounting {
    /// Sent by hosts.
    pub entered: u64,
    /// Created by the network: copies of flooded and duplicated packets, ICMP errors of routers.
    pub made: u64,
    /// Delivered to hosts.
    pub delivered: u64,
    /// Dropped, for any reason.
    pub dropped: u64,
    /// Not forwarded: the destination is on the port of arrival, or copies were made of it.
    pub filtered: u64,
    /// Still in flight.
    pub held: u64,
}

impl PacketAccounting {
    /// True if no packet is unaccounted for.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.entered + self.made == self.delivered + self.dropped + self.filtered + self.held
    }
}

/// The counters of one direction of a link since the start, over all its members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortCounts {
    /// `from>to`.
    pub name: String,
    /// Packets that left the line.
    pub packets: u64,
    /// Bytes of their frames, frame check sequences included.
    pub bytes: Bytes,
    /// Bytes on the wire, preambles and gaps included.
    pub wire_bytes: Bytes,
    /// Time in which the line was sending; with several members, their sum.
    #[serde(rename = "busy_ns")]
    pub busy: Span,
    /// Bytes waiting now.
    pub queue_bytes: Bytes,
    /// Most bytes waiting since the last reset of the peaks.
    pub queue_max_bytes: Bytes,
    /// Most bytes ever waiting.
    pub peak_bytes: Bytes,
    /// Packets dropped because the buffer was full, or by the queueing discipline.
    pub dropped_queue: u64,
    /// Packets that exceeded the policer.
    pub dropped_policer: u64,
    /// Packets lost on the wire.
    pub dropped_wire: u64,
    /// Packets above the MTU.
    pub dropped_too_big: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets that are overtaken by later ones.
    pub reordered: u64,
    /// The same per member of a LAG, in order; empty for a link of one member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberCounts>,
}

impl PortCounts {
    /// Packets dropped for any reason.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_queue + self.dropped_policer + self.dropped_wire + self.dropped_too_big
    }
}

/// The counters of one member of a LAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemberCounts {
    /// Packets that left the line.
    pub packets: u64,
    /// Bytes on the wire.
    pub wire_bytes: Bytes,
    /// Bytes waiting now.
    pub queue_bytes: Bytes,
    /// Packets dropped because the buffer was full.
    pub dropped_queue: u64,
}
