//! The IP packet in an Ethernet frame: its offset and its protocol.

use super::checksum;

/// Length of both addresses and the ethertype.
pub(super) const ETHERNET: usize = 14;
/// Length of an IPv6 header without extensions.
pub(super) const V6_HEADER: usize = 40;

pub(super) const ETHERTYPE_V4: u16 = 0x0800;
pub(super) const ETHERTYPE_V6: u16 = 0x86dd;
/// Ethertypes of IEEE 802.1Q and 802.1ad tags.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const TAG: usize = 4;
const MAX_TAGS: usize = 2;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// Both bits of the ECN field (RFC 3168 §5), and each of its values.
const ECN: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const CE: u8 = 0b11;

/// The IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketIpVersion {
    V4,
    V6,
}

/// The part of a fragmented packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment {
    Whole,
    First,
    Later,
}

/// An IP packet whose lengths fit the frame. Offsets are counted from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ip {
    pub(super) version: PacketIpVersion,
    /// Offset of its header.
    pub(super) at: usize,
    /// Its length with header; padding of the frame may follow.
    pub(super) length: usize,
    /// The protocol after its header, options and extensions.
    pub(super) protocol: u8,
    /// Offset of that protocol's header.
    pub(super) payload: usize,
    pub(super) fragment: Fragment,
}

impl Ip {
    /// The packet in `frame`, after up to two VLAN tags; `None` if there is none or it is malformed.
    pub(super) fn find(frame: &[u8]) -> Option<Self> {
        let mut at = ETHERNET;
        for _ in 0..MAX_TAGS {
            if TAGS.contains(&read_u16(frame, at - 2)?) {
                at += TAG;
            }
        }
        match read_u16(frame, at - 2)? {
            ETHERTYPE_V4 => Self::v4(frame, at),
            ETHERTYPE_V6 => Self::v6(frame, at),
            _ => None,
        }
    }

    /// RFC 791 §3.1.
    fn v4(frame: &[u8], at: usize) -> Option<Self> {
        let packet = frame.get(at..)?;
        let first = *packet.first()?;
        let header = usize::from(first & 0x0f) * 4;
        let length = usize::from(read_u16(packet, 2)?);
        if first >> 4 != 4 || header < 20 || length < header || length > packet.len() {
            return None;
        }
        let place = read_u16(packet, 6)?;
        let fragment = fragment(place & 0x1fff, place & 0x2000 != 0);
        let protocol = *packet.get(9)?;
        Some(Self { version: PacketIpVersion::V4, at, length, protocol, payload: at + header, fragment })
    }

    /// RFC 8200 §3, and the extension headers that a packet may have in transit.
    fn v6(frame: &[u8], at: usize) -> Option<Self> {
        let packet = frame.get(at..)?;
        let length = V6_HEADER + usize::from(read_u16(packet, 4)?);
        let packet = packet.get(..length)?;
        if packet[0] >> 4 != 6 {
            return None;
        }
        let (mut protocol, mut payload, mut piece) = (packet[6], V6_HEADER, Fragment::Whole);
        while matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION | FRAGMENT) && piece != Fragment::Later {
            let Some(extension) = packet.get(payload..payload + 8) else { break };
            let extent = if protocol == FRAGMENT {
                let place = checksum::read_u16(extension, 2);
                piece = fragment(place >> 3, place & 1 != 0);
                8
            } else {
                8 * (1 + usize::from(extension[1]))
            };
            (protocol, payload) = (extension[0], payload + extent);
        }
        let payload = at + payload.min(length);
        Some(Self { version: PacketIpVersion::V6, at, length, protocol, payload, fragment: piece })
    }

    /// Offset of the end of the packet.
    pub(super) const fn end(&self) -> usize {
        self.at + self.length
    }

    /// Its source and destination address, concatenated.
    pub(super) fn addresses<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        match self.version {
            PacketIpVersion::V4 => &frame[self.at + 12..self.at + 20],
            PacketIpVersion::V6 => &frame[self.at + 8..self.at + V6_HEADER],
        }
    }

    /// Its TCP or UDP ports, concatenated; `None` for other protocols, and for fragments: most have no ports.
    pub(super) fn ports<'f>(&self, frame: &'f [u8]) -> Option<&'f [u8]> {
        let has_ports = matches!(self.protocol, TCP | UDP) && self.fragment == Fragment::Whole;
        frame[..self.end()].get(self.payload..self.payload + 4).filter(|_| has_ports)
    }

    /// Sets its length to fit the frame.
    pub(super) fn rewrite_length(&self, frame: &mut [u8]) {
        let length = frame.len() - self.at;
        match self.version {
            PacketIpVersion::V4 => self.rewrite_v4(frame, 2, length as u16),
            PacketIpVersion::V6 => checksum::set_word(frame, self.at + 4, (length - V6_HEADER) as u16),
        }
    }

    /// Advances the identification by `packets`; IPv6 has none.
    pub(super) fn advance_identification(&self, frame: &mut [u8], packets: u32) {
        if self.version == PacketIpVersion::V4 {
            let identification = checksum::read_u16(frame, self.at + 4).wrapping_add(packets as u16);
            self.rewrite_v4(frame, 4, identification);
        }
    }

    /// Whether its transport is ECN-capable (RFC 3168 §5).
    pub(super) fn is_ecn_capable(&self, frame: &[u8]) -> bool {
        (checksum::read_u16(frame, self.at) >> self.ecn_shift()) as u8 & ECN != NOT_ECT
    }

    /// The traffic class of IPv6 starts four bits earlier than the type of service of IPv4.
    fn ecn_shift(&self) -> u32 {
        if self.version == PacketIpVersion::V4 { 0 } else { 4 }
    }

    /// Marks it with congestion experienced (RFC 3168 §5); false if its transport is not ECN-capable.
    pub(super) fn mark(&self, frame: &mut [u8]) -> bool {
        if !self.is_ecn_capable(frame) {
            return false;
        }
        let marked = checksum::read_u16(frame, self.at) | u16::from(CE) << self.ecn_shift();
        match self.version {
            PacketIpVersion::V4 => self.rewrite_v4(frame, 0, marked),
            PacketIpVersion::V6 => checksum::set_word(frame, self.at, marked),
        }
        true
    }

    fn rewrite_v4(&self, frame: &mut [u8], at: usize, value: u16) {
        checksum::rewrite(frame, self.at + at, value, self.at + 10);
    }
}

/// The 16-bit word at `at`, if there is one.
fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| checksum::read_u16(bytes, 0))
}

fn fragment(offset: u16, more: bool) -> Fragment {
    match (offset, more) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        _ => Fragment::Later,
    }
}
