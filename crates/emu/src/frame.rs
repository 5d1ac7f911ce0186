//! An Ethernet frame from a TAP device: one packet, or a GSO frame that represents many.
//!
//! A device that offers segmentation receives up to 64 KiB of one flow with one set of headers (TSO for TCP,
//! USO for UDP) and leaves the segmentation to the NIC. A [`Frame`] knows which packets it represents and stays
//! whole; it is split between two of them only where a stage requires it, so that the receiving kernel gets the
//! packets that a NIC would have sent.

mod checksum;
mod cut;
mod hash;
mod icmp;
mod ip;
#[cfg(test)]
mod tests;
mod vnet;

use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_units::{Span, Timestamp};
use thiserror::Error;

use self::cut::{Cut, FramePiece};
use self::ip::{ETHERNET, Ip};
use self::vnet::Vnet;
use crate::fabric::{Ethernet, Router};
use crate::packet_batch::{HashFields, PacketBatch, PacketSizes};

/// A frame from the kernel cannot be forwarded. It is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than its headers.
    #[error(
        "the device gave {bytes} bytes, less than its header of 12 and an Ethernet header of 14; set the header's size with TUNSETVNETHDRSZ"
    )]
    TooShort {
        /// Length of the frame.
        bytes: usize,
    },
    /// Longer than any IP packet.
    #[error(
        "the device gave {bytes} bytes, more than the longest frame of {}; limit gso_max_size of the interface",
        Frame::MAX_FRAME_BYTES
    )]
    TooLong {
        /// Length of the frame.
        bytes: usize,
    },
    /// A type of GSO frame that was not offered, such as UDP fragmentation.
    #[error(
        "the device gave a super-frame of the unknown kind {kind}; offer TSO4, TSO6, USO4 and USO6 only with TUNSETOFFLOAD"
    )]
    UnknownSegmentation {
        /// `gso_type` without the ECN flag.
        kind: u8,
    },
    /// A GSO frame that cannot be split correctly.
    #[error(
        "the device gave a super-frame that nobody could cut: {flaw}; turn off segmentation (ethtool -K) for what sends it"
    )]
    NotCuttable {
        /// What is wrong with it.
        flaw: &'static str,
    },
}

/// An Ethernet frame with the header that a TAP device prepends.
///
/// A frame that it does not understand is forwarded as one packet, unchanged.
///
/// # Source
/// Linux tun with `IFF_VNET_HDR` and a header of 12 bytes; Virtio 1.2 §5.1.6
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The device's header, then the frame.
    buffer: Vec<u8>,
    ip: Option<Ip>,
    /// Present if there are several packets.
    cut: Option<Cut>,
    /// Destination and source. Kept here, because the frame's own bytes have left the cache when it leaves a
    /// long queue.
    addresses: [u8; 12],
    sizes: PacketSizes,
    spread: Span,
    entered: Timestamp,
}

impl Frame {
    /// Longest frame with the device's header: two VLAN tags and an IPv6 packet.
    ///
    /// # Units
    /// bytes
    pub const MAX_FRAME_BYTES: usize = vnet::LENGTH + ETHERNET + 2 * 4 + ip::V6_HEADER + 0xffff;

    /// Takes the buffer read from the device, its header included. Nothing is copied.
    ///
    /// # Errors
    /// [`FrameError`] if it is too short or too long, or a GSO frame that cannot be split.
    pub fn parse(mut buffer: Vec<u8>) -> Result<Self, FrameError> {
        let bytes = buffer.len();
        if bytes < vnet::LENGTH + ETHERNET {
            return Err(FrameError::TooShort { bytes });
        }
        if bytes > Self::MAX_FRAME_BYTES {
            return Err(FrameError::TooLong { bytes });
        }
        let frame = &buffer[vnet::LENGTH..];
        let vnet = Vnet::read(&buffer)?;
        let ip = Ip::find(frame);
        let plan = |segmentation| Cut::plan(segmentation, &vnet, frame, ip.as_ref());
        let cut = vnet.segmentation.map(plan).transpose()?;
        if cut.is_some_and(|cut| cut.sizes(frame.len()).packets == 1) {
            vnet::make_single(&mut buffer);
        }
        Ok(Self::new(buffer, ip, cut, Span::ZERO))
    }

    /// Sets the time at which it entered the network. Its segments and copies keep that time.
    #[must_use]
    pub fn entering(self, entered: Timestamp) -> Self {
        Self { entered, ..self }
    }

    /// When it entered the network; the start of time if not set.
    #[must_use]
    pub fn entered(&self) -> Timestamp {
        self.entered
    }

    fn new(buffer: Vec<u8>, ip: Option<Ip>, cut: Option<Cut>, spread: Span) -> Self {
        let length = buffer.len() - vnet::LENGTH;
        let sizes = cut.map_or(PacketSizes::single(length as u32), |cut| cut.sizes(length));
        let mut addresses = [0; 12];
        addresses.copy_from_slice(&buffer[vnet::LENGTH..vnet::LENGTH + 12]);
        let (cut, entered) = (cut.filter(|_| sizes.packets > 1), Timestamp::START);
        Self { buffer, ip, cut, addresses, sizes, spread, entered }
    }

    /// The bytes to write to the device, its header included.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The buffer, for reuse.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The destination address.
    #[must_use]
    pub fn destination(&self) -> [u8; 6] {
        self.address(0)
    }

    /// The source address.
    #[must_use]
    pub fn source(&self) -> [u8; 6] {
        self.address(6)
    }

    /// Length of the largest IP packet in it, for comparison with an MTU; 0 if there is none.
    ///
    /// # Units
    /// bytes, IP header included
    #[must_use]
    pub fn ip_packet_len(&self) -> u32 {
        self.ip.map_or(0, |ip| match self.cut {
            Some(_) => self.sizes.each - ip.at as u32,
            None => ip.length as u32,
        })
    }

    /// A router's ICMP error to the sender of a packet that exceeds `mtu` bytes; `router` are its addresses. It
    /// quotes the first packet, the one that the router would have received. Absent if the packet fits, or if
    /// no error may be sent: with IPv4 if the packet may be fragmented, is a later fragment or has a group
    /// address, and in general if it is an ICMP error or its source is not a single host.
    ///
    /// # Source
    /// RFC 792, RFC 1191 §4; RFC 4443 §3.2, with an MTU of at least 1280 (RFC 8200 §5)
    #[must_use]
    pub fn too_big(&self, mtu: u32, router_mac: [u8; 6], router: (Ipv4Addr, Ipv6Addr)) -> Option<Self> {
        let ip = self.ip.filter(|ip| self.ip_packet_len() > mtu && icmp::may_send_error(self.frame(), ip))?;
        let first = self.first_packet(&ip);
        // Between the Ethernet addresses and the IP packet are VLAN tags and the ethertype, the same in the
        // reverse direction.
        let (addresses, rest) = (2 * 6, &first[vnet::LENGTH..]);
        let mut buffer = vec![0; vnet::LENGTH];
        buffer.extend(self.source());
        buffer.extend(router_mac);
        buffer.extend(&rest[addresses..ip.at]);
        buffer.extend(icmp::answer(&rest[ip.at..], ip.version, mtu, router));
        Some(Self::parse(buffer).ok()?.entering(self.entered))
    }

    fn frame(&self) -> &[u8] {
        &self.buffer[vnet::LENGTH..]
    }

    fn address(&self, at: usize) -> [u8; 6] {
        std::array::from_fn(|index| self.addresses[at + index])
    }

    /// A copy of the headers with the payload of the packets from `from` up to, not including, `to`.
    fn copy_packets(&self, cut: &Cut, from: u32, to: u32) -> Vec<u8> {
        let frame = self.frame();
        let payload = &frame[cut.place(from)..cut.place(to).min(frame.len())];
        let headers = &self.buffer[..vnet::LENGTH + cut.headers];
        [headers, payload].concat()
    }

    /// A copy of the first packet as it is on the wire: without padding, with its checksum computed.
    fn first_packet(&self, ip: &Ip) -> Vec<u8> {
        let mut first = match &self.cut {
            None => self.buffer[..vnet::LENGTH + ip.end()].to_vec(),
            Some(cut) => {
                let mut first = self.copy_packets(cut, 0, 1);
                cut.fix_headers(
                    &mut first,
                    ip,
                    FramePiece { before: 0, packets: 1, after: self.sizes.packets - 1 },
                );
                first
            }
        };
        vnet::complete_checksum(&mut first);
        first
    }
}

impl Ethernet for Frame {
    fn destination(&self) -> [u8; 6] {
        Frame::destination(self)
    }

    fn source(&self) -> [u8; 6] {
        Frame::source(self)
    }

    fn ip_packet_len(&self) -> u32 {
        Frame::ip_packet_len(self)
    }

    fn too_big(&self, mtu: u32, router: &Router) -> Option<Self> {
        Frame::too_big(self, mtu, router.mac, (router.v4, router.v6))
    }
}

impl PacketBatch for Frame {
    fn sizes(&self) -> PacketSizes {
        self.sizes
    }

    fn spread(&self) -> Span {
        self.spread
    }

    fn set_spread(&mut self, spread: Span) {
        self.spread = spread;
    }

    /// The first part keeps its buffer. Of `n` packets with `n - 1` gaps between them, each part gets the
    /// spread of its gaps.
    fn split_off(&mut self, packets: u32) -> Self {
        let all = self.sizes.packets;
        debug_assert!(0 < packets && packets < all, "cut after packet {packets} of {all}");
        let (Some(ip), Some(cut)) = (self.ip, self.cut) else { return self.duplicate() };
        let packets = packets.clamp(1, all - 1);
        let rest_packets = all - packets;
        let gap = |count: u32| {
            let ns = u128::from(self.spread.as_ns()) * u128::from(count) / u128::from(all - 1);
            Span::from_ns(ns as u64)
        };
        let (front_spread, rest_spread) = (gap(packets - 1), gap(rest_packets - 1));

        let mut rest = self.copy_packets(&cut, packets, all);
        let piece = FramePiece { before: packets, packets: rest_packets, after: 0 };
        let rest_ip = cut.fix_headers(&mut rest, &ip, piece);

        let mut front = mem::take(&mut self.buffer);
        front.truncate(vnet::LENGTH + cut.place(packets));
        let piece = FramePiece { before: 0, packets, after: rest_packets };
        let front_ip = cut.fix_headers(&mut front, &ip, piece);

        *self = Self::new(front, Some(front_ip), Some(cut), front_spread).entering(self.entered);
        Self::new(rest, Some(rest_ip), Some(cut), rest_spread).entering(self.entered)
    }

    fn mark(&mut self) -> bool {
        let frame = &mut self.buffer[vnet::LENGTH..];
        self.ip.is_some_and(|ip| ip.mark(frame))
    }

    fn ecn_capable(&self) -> bool {
        self.ip.is_some_and(|ip| ip.is_ecn_capable(self.frame()))
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn flow_hash(&self, fields: HashFields, seed: u64) -> u64 {
        hash::of(self.frame(), self.ip.as_ref(), fields, seed)
    }
}
