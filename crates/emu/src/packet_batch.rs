//! What stages transfer: one packet, or a batch of packets that travel as one buffer.
//!
//! A kernel sends up to 64 KiB of one flow at once and leaves the segmentation to the NIC. An emulator that
//! segmented every such GSO frame would spend its time on that, so a batch stays whole while all of its packets
//! are treated alike, and every stage counts its packets as the wire would. A batch is split only where a
//! single packet is dropped or marked.

use linerate_units::{Bytes, Span};

/// Lengths of the packets of a batch, all equal but the last.
///
/// # Units
/// bytes of an Ethernet frame without frame check sequence: header and payload, without VLAN tags
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSizes {
    /// Number of packets, at least 1.
    pub packets: u32,
    /// Length of each packet but the last.
    pub each: u32,
    /// Length of the last packet, at most `each`.
    pub last: u32,
}

impl PacketSizes {
    /// A single packet.
    #[must_use]
    pub const fn single(length: u32) -> Self {
        Self { packets: 1, each: length, last: length }
    }

    /// Length of packet `index`, counted from 0.
    #[must_use]
    pub const fn of(&self, index: u32) -> u32 {
        if index + 1 < self.packets { self.each } else { self.last }
    }
}

/// What a link adds to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Framing {
    /// VLAN tags on the wire: 0, 1 (IEEE 802.1Q) or 2 (802.1ad).
    pub tags: u8,
}

/// Frame check sequence.
const FCS: u64 = 4;
/// Preamble with start delimiter, and the inter-packet gap.
const PREAMBLE_AND_GAP: u64 = 8 + 12;
/// Length of the shortest frame.
const MIN_FRAME_BYTES: u64 = 64;

impl Framing {
    /// Bytes of a frame in a buffer or a policer: with check sequence and tags, without preamble.
    ///
    /// # Source
    /// IEEE 802.3 clause 3: at least 64 bytes.
    #[must_use]
    pub fn frame(self, length: u32) -> u64 {
        (u64::from(length) + FCS + 4 * u64::from(self.tags)).max(MIN_FRAME_BYTES)
    }

    /// Bytes that a frame occupies on the wire: with preamble (8) and gap (12).
    ///
    /// # Source
    /// IEEE 802.3 clauses 3 and 4.
    #[must_use]
    pub fn wire(self, length: u32) -> u64 {
        self.frame(length) + PREAMBLE_AND_GAP
    }

    /// [`Framing::frame`] over the first `packets` packets of a batch.
    #[must_use]
    pub fn frames_of(self, sizes: &PacketSizes, packets: u32) -> u64 {
        self.sum(sizes, packets, Self::frame)
    }

    /// [`Framing::wire`] over the first `packets` packets of a batch.
    #[must_use]
    pub fn wire_of(self, sizes: &PacketSizes, packets: u32) -> u64 {
        self.sum(sizes, packets, Self::wire)
    }

    fn sum(self, sizes: &PacketSizes, packets: u32, of: fn(Self, u32) -> u64) -> u64 {
        if packets < sizes.packets {
            u64::from(packets) * of(self, sizes.each)
        } else {
            u64::from(sizes.packets - 1) * of(self, sizes.each) + of(self, sizes.last)
        }
    }
}

/// One packet, or several of one flow that travel as one unit.
pub trait PacketBatch: Sized {
    /// Lengths of its packets.
    fn sizes(&self) -> PacketSizes;

    /// Time from the arrival of its first packet to that of its last: it arrives as a whole with its last
    /// packet.
    fn spread(&self) -> Span;

    /// Sets [`PacketBatch::spread`]: determined by the line that the batch leaves.
    fn set_spread(&mut self, spread: Span);

    /// Keeps the first `packets` packets and returns the others; `packets` is above 0 and below their number.
    /// The spread is divided in proportion.
    fn split_off(&mut self, packets: u32) -> Self;

    /// Marks all its packets with congestion experienced (RFC 3168, CE); false, without any change, if they are
    /// not ECN-capable.
    fn mark(&mut self) -> bool;

    /// Whether [`PacketBatch::mark`] would mark. Implementations that can read a header without copying the
    /// batch override it.
    fn ecn_capable(&self) -> bool {
        self.duplicate().mark()
    }

    /// A copy, as a network that duplicates packets sends one.
    fn duplicate(&self) -> Self;

    /// A hash that is equal for packets in which the chosen header fields are equal.
    fn flow_hash(&self, fields: HashFields, seed: u64) -> u64;

    /// Number of packets.
    fn packets(&self) -> u32 {
        self.sizes().packets
    }

    /// Bytes of all its packets, as counted by [`Framing::frame`].
    fn bytes(&self, framing: Framing) -> Bytes {
        let sizes = self.sizes();
        Bytes::new(framing.frames_of(&sizes, sizes.packets))
    }
}

/// Header fields that a LAG hashes to choose a member.
///
/// # Source
/// the transmit hash policies of switches and bonding drivers: layer 2, 2+3, 3+4
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashFields {
    /// Both Ethernet addresses.
    pub mac: bool,
    /// Both IP addresses.
    pub ip: bool,
    /// Both TCP or UDP ports.
    pub ports: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_as_on_the_wire() {
        let plain = Framing::default();
        // An IP packet of 1500 bytes with 14 bytes of header: 1518 with check sequence, 1538 with preamble and
        // gap.
        assert_eq!((plain.frame(1514), plain.wire(1514)), (1518, 1538));
        assert_eq!(Framing { tags: 1 }.wire(1514), 1542);
        assert_eq!(Framing { tags: 2 }.wire(1514), 1546);
        assert_eq!(plain.wire(9014), 9038);
        assert_eq!((plain.wire(60), plain.wire(42)), (84, 84), "short frames are padded to 64 bytes");
    }

    #[test]
    fn a_batch_weighs_what_its_packets_weigh() {
        let sizes = PacketSizes { packets: 3, each: 1514, last: 100 };
        let plain = Framing::default();
        for packets in 0..=3 {
            let sum: u64 = (0..packets).map(|index| plain.wire(sizes.of(index))).sum();
            assert_eq!(plain.wire_of(&sizes, packets), sum);
        }
        assert_eq!(plain.frames_of(&sizes, 3), 1518 + 1518 + 104);
    }
}
