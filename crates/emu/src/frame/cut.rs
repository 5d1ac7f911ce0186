//! Splitting a GSO frame between two of its packets.

use super::FrameError;
use super::checksum::{read_u16, replace, set_word};
use super::ip::{Fragment, Ip, PacketIpVersion, TCP, UDP};
use super::vnet::{self, Partial, Segmentation, Vnet};
use crate::packet_batch::PacketSizes;

/// Offsets in a TCP header (RFC 9293 §3.1, RFC 3168 §6.1).
mod tcp {
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const CHECKSUM: usize = 16;
    pub(super) const MIN_LENGTH: usize = 20;

    pub(super) const FIN: u8 = 0x01;
    pub(super) const PSH: u8 = 0x08;
    pub(super) const CWR: u8 = 0x80;
}

/// Offsets in a UDP header (RFC 768).
mod udp {
    pub(super) const LENGTH: usize = 4;
    pub(super) const CHECKSUM: usize = 6;
    pub(super) const HEADER: usize = 8;
}

/// How a GSO frame is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The protocol of the IP payload: [`TCP`] or [`UDP`].
    protocol: u8,
    /// Bytes of headers, from the start of the frame, that each packet has.
    pub(super) headers: usize,
    /// Bytes of payload in each packet but the last.
    pub(super) payload: usize,
}

/// A part of a GSO frame, counted in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FramePiece {
    pub(super) before: u32,
    pub(super) packets: u32,
    pub(super) after: u32,
}

impl Cut {
    /// Checks that everything a split has to change is where it is expected.
    pub(super) fn plan(
        segmentation: Segmentation,
        vnet: &Vnet,
        frame: &[u8],
        ip: Option<&Ip>,
    ) -> Result<Self, FrameError> {
        let flaw = |flaw| Err(FrameError::NotCuttable { flaw });
        let Some(ip) = ip else {
            return flaw(
                "it does not contain an IP packet, or the lengths of the \
                                              packet are wrong",
            );
        };
        let fits = match segmentation {
            Segmentation::Tcp4 => (ip.version, ip.protocol) == (PacketIpVersion::V4, TCP),
            Segmentation::Tcp6 => (ip.version, ip.protocol) == (PacketIpVersion::V6, TCP),
            Segmentation::Udp => ip.protocol == UDP,
        };
        if !fits || ip.fragment != Fragment::Whole {
            return flaw("it is not a packet of the protocol to be segmented");
        }
        let transport = &frame[ip.payload..];
        let (least, header, checksum) = if ip.protocol == UDP {
            (udp::HEADER, udp::HEADER, udp::CHECKSUM)
        } else {
            let words = transport.get(tcp::DATA_OFFSET).map_or(0, |byte| byte >> 4);
            (tcp::MIN_LENGTH, usize::from(words) * 4, tcp::CHECKSUM)
        };
        let exact = ip.end() == frame.len() && (least..=transport.len()).contains(&header);
        if !exact || vnet.gso_size == 0 {
            return flaw("its lengths contradict each other");
        }
        if ip.protocol == UDP && usize::from(read_u16(transport, udp::LENGTH)) != transport.len() {
            return flaw("its lengths contradict each other");
        }
        if vnet.partial != Some(Partial { start: ip.payload, field: ip.payload + checksum }) {
            return flaw("its checksum is not left to the NIC");
        }
        Ok(Self { protocol: ip.protocol, headers: ip.payload + header, payload: vnet.gso_size })
    }

    /// Sizes of the packets in a frame of `length` bytes.
    pub(super) const fn sizes(&self, length: usize) -> PacketSizes {
        let payload = length - self.headers;
        if payload <= self.payload {
            return PacketSizes::single(length as u32);
        }
        let packets = payload.div_ceil(self.payload);
        let last = payload - (packets - 1) * self.payload;
        PacketSizes {
            packets: packets as u32,
            each: (self.headers + self.payload) as u32,
            last: (self.headers + last) as u32,
        }
    }

    /// Offset in the frame at which the payload of packet `index` starts.
    pub(super) const fn place(&self, index: u32) -> usize {
        self.headers + index as usize * self.payload
    }

    /// Corrects the headers of `buffer`: they are those of the GSO frame with `ip`, but only the payload of
    /// `piece` follows them. Returns the IP packet after the change.
    ///
    /// # Source
    /// RFC 9293 §3.1 for the sequence number; RFC 3168 §6.1.2 for CWR, which applies to one packet. FIN and PSH
    /// apply to the last byte.
    pub(super) fn fix_headers(&self, buffer: &mut [u8], ip: &Ip, piece: FramePiece) -> Ip {
        let (vnet, frame) = buffer.split_at_mut(vnet::LENGTH);
        // A hint larger than the frame would be rejected.
        vnet::set_header_length(vnet, self.headers as u16);
        if piece.packets == 1 {
            vnet::make_single(vnet);
        }
        if piece.before > 0 {
            vnet::clear_ecn(vnet);
        }
        ip.rewrite_length(frame);
        ip.advance_identification(frame, piece.before);
        let (old, new) = ((ip.end() - ip.payload) as u16, (frame.len() - ip.payload) as u16);
        let transport = &mut frame[ip.payload..];
        let checksum = if self.protocol == UDP {
            set_word(transport, udp::LENGTH, new);
            udp::CHECKSUM
        } else {
            self.fix_tcp_header(transport, piece);
            tcp::CHECKSUM
        };
        // The field holds the sum of the pseudo header, of which only the length changes.
        let pseudo = replace(read_u16(transport, checksum), old, new);
        set_word(transport, checksum, pseudo);
        Ip { length: frame.len() - ip.at, ..*ip }
    }

    fn fix_tcp_header(&self, transport: &mut [u8], piece: FramePiece) {
        let (high, low) = (read_u16(transport, tcp::SEQUENCE), read_u16(transport, tcp::SEQUENCE + 2));
        let skipped = piece.before.wrapping_mul(self.payload as u32);
        let sequence = (u32::from(high) << 16 | u32::from(low)).wrapping_add(skipped);
        transport[tcp::SEQUENCE..tcp::SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        if piece.before > 0 {
            transport[tcp::FLAGS] &= !tcp::CWR;
        }
        if piece.after > 0 {
            transport[tcp::FLAGS] &= !(tcp::FIN | tcp::PSH);
        }
    }
}
