//! What a fabric counts.

use linerate_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// What became of every packet: what entered and was made is delivered, dropped, filtered or held.
///
/// # Units
/// packets on the wire
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketAccounting {
    /// Sent by hosts.
    pub entered: u64,
    /// Made by the network: copies of flooded and duplicated packets, notices of routers.
    pub made: u64,
    /// Handed to hosts.
    pub delivered: u64,
    /// Dropped, for whatever cause.
    pub dropped: u64,
    /// Not forwarded: the receiver is where the packet came from, or copies were made of it.
    pub filtered: u64,
    /// Still on the way.
    pub held: u64,
}

impl PacketAccounting {
    /// True if nothing came out of nowhere and nothing is missing.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.entered + self.made == self.delivered + self.dropped + self.filtered + self.held
    }
}

/// The counters of one direction of a link since the start: all its members together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortCounts {
    /// `from>to`.
    pub name: String,
    /// Packets that left the line.
    pub packets: u64,
    /// Bytes of their frames, check sequences included.
    pub bytes: Bytes,
    /// Bytes on the wire, preambles and gaps included.
    pub wire_bytes: Bytes,
    /// Time in which the line was sending; with members, the sum of theirs.
    #[serde(rename = "busy_ns")]
    pub busy: Span,
    /// Bytes that wait now.
    pub queue_bytes: Bytes,
    /// The most that waited since the peaks were last forgotten.
    pub queue_max_bytes: Bytes,
    /// The most that ever waited.
    pub peak_bytes: Bytes,
    /// Packets that found no room, or that the queueing discipline dropped.
    pub dropped_queue: u64,
    /// Packets that exceeded the policer.
    pub dropped_policer: u64,
    /// Packets lost on the wire.
    pub dropped_wire: u64,
    /// Packets above the MTU.
    pub dropped_too_big: u64,
    /// Packets marked as having met congestion.
    pub marked: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets that are overtaken by later ones.
    pub reordered: u64,
    /// The same per member of a trunk, in order; empty for a link of one member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberCounts>,
}

impl PortCounts {
    /// Packets dropped for whatever cause.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_queue + self.dropped_policer + self.dropped_wire + self.dropped_too_big
    }
}

/// The counters of one member of a trunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemberCounts {
    /// Packets that left the line.
    pub packets: u64,
    /// Bytes on the wire.
    pub wire_bytes: Bytes,
    /// Bytes that wait now.
    pub queue_bytes: Bytes,
    /// Packets that found no room.
    pub dropped_queue: u64,
}
