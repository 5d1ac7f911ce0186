//! GSO frames as a kernel sends them, encoded with a library that shares no code with the one under test.

use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader,
};
use proptest::prelude::*;

pub(super) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(super) const CLIENT_V4: [u8; 4] = [10, 1, 0, 1];
pub(super) const SERVER_V4: [u8; 4] = [10, 1, 0, 2];
pub(super) const CLIENT_V6: [u8; 16] = [0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(super) const SERVER_V6: [u8; 16] = [0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// A GSO frame, or a single packet with checksum offload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OffloadedFrame {
    pub(super) v6: bool,
    pub(super) udp: bool,
    pub(super) tags: usize,
    /// Eight bytes of IPv4 options, or a hop-by-hop header.
    pub(super) extended: bool,
    /// TCP options, in 32-bit words.
    pub(super) tcp_options: usize,
    pub(super) ecn: u8,
    pub(super) dont_fragment: bool,
    pub(super) identification: u16,
    pub(super) sequence: u32,
    pub(super) source_port: u16,
    /// FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from the lowest bit on.
    pub(super) flags: u8,
    pub(super) gso_size: u16,
    pub(super) payload: usize,
}

impl Default for OffloadedFrame {
    /// 44 packets of TCP over IPv4 with timestamps at an MTU of 1500, the last with one byte.
    fn default() -> Self {
        Self {
            v6: false,
            udp: false,
            tags: 0,
            extended: false,
            tcp_options: 3,
            ecn: 0,
            dont_fragment: true,
            identification: 1,
            sequence: 1,
            source_port: 40000,
            flags: 0x18,
            gso_size: 1448,
            payload: 43 * 1448 + 1,
        }
    }
}

impl OffloadedFrame {
    /// Any flow of up to 60 packets.
    pub(super) fn any() -> impl Strategy<Value = Self> {
        let shape = (any::<bool>(), any::<bool>(), 0..3_usize, any::<bool>(), 0..=10_usize);
        let header = (0..4_u8, any::<bool>(), any::<u16>(), any::<u32>(), any::<u16>(), any::<u8>());
        let lengths = (prop_oneof![1..40_u16, 1000..9000_u16], 1..60_usize, any::<prop::sample::Index>());
        (shape, header, lengths).prop_map(|(shape, header, (gso_size, packets, last))| {
            let (v6, udp, tags, extended, tcp_options) = shape;
            let (ecn, dont_fragment, identification, sequence, source_port, flags) = header;
            let size = usize::from(gso_size);
            let payload = ((packets - 1) * size + 1 + last.index(size)).min(65_000);
            Self {
                v6,
                udp,
                tags,
                extended,
                tcp_options,
                ecn,
                dont_fragment,
                identification,
                sequence,
                source_port,
                flags,
                gso_size,
                payload,
            }
        })
    }

    /// The number of packets that it represents.
    pub(super) fn packets(&self) -> u32 {
        self.payload.div_ceil(usize::from(self.gso_size)) as u32
    }

    /// The bytes from a TAP device: its header and the frame.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let payload: Vec<u8> = (0..self.payload).map(|at| (at * 31 + at / 256) as u8).collect();
        let mut transport = self.transport();
        let length = transport.len() + payload.len();
        let protocol = if self.udp { 17 } else { 6 };
        let (ip, addresses) = self.ip(protocol, length);
        let pseudo = [&addresses[..], &[0, protocol], &(length as u16).to_be_bytes()].concat();
        let field = if self.udp { 6 } else { 16 };
        transport[field..field + 2].copy_from_slice(&ones_sum(&pseudo).to_be_bytes());
        let link = self.link();
        // The kernel reports how much of the frame is in its linear buffer: some payload too.
        let linear = link.len() + ip.len() + transport.len() + payload.len().min(100);
        let mut buffer = vec![1, self.gso_type()];
        for word in [linear, usize::from(self.gso_size), link.len() + ip.len(), field, 0] {
            buffer.extend((word as u16).to_ne_bytes());
        }
        [buffer, link, ip, transport, payload].concat()
    }

    fn gso_type(&self) -> u8 {
        match (self.udp, self.v6) {
            (true, _) => 5,
            (false, true) => 4 | self.flags & 0x80,
            (false, false) => 1 | self.flags & 0x80,
        }
    }

    fn link(&self) -> Vec<u8> {
        let tag = [0x81, 0x00, 0x00, 0x07];
        let ethertype = if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        [&SERVER_MAC[..], &CLIENT_MAC, &tag.repeat(self.tags), &ethertype].concat()
    }

    /// The IP header, and the addresses that a checksum covers.
    fn ip(&self, protocol: u8, length: usize) -> (Vec<u8>, Vec<u8>) {
        let ecn = IpEcn::try_new(self.ecn).unwrap();
        if self.v6 {
            let extension = [protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let extension = if self.extended { &extension[..] } else { &[] };
            let mut header = Ipv6Header {
                flow_label: Ipv6FlowLabel::try_new(0xabcde).unwrap(),
                payload_length: (length + extension.len()) as u16,
                next_header: IpNumber(if self.extended { 0 } else { protocol }),
                hop_limit: 64,
                source: CLIENT_V6,
                destination: SERVER_V6,
                ..Ipv6Header::default()
            };
            header.set_dscp(IpDscp::try_new(46).unwrap());
            header.set_ecn(ecn);
            return ([&header.to_bytes()[..], extension].concat(), [CLIENT_V6, SERVER_V6].concat());
        }
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(46).unwrap(),
            ecn,
            identification: self.identification,
            dont_fragment: self.dont_fragment,
            time_to_live: 64,
            protocol: IpNumber(protocol),
            source: CLIENT_V4,
            destination: SERVER_V4,
            ..Ipv4Header::default()
        };
        if self.extended {
            header.options = Ipv4Options::try_from(&[1; 8][..]).unwrap();
        }
        header.set_payload_len(length).unwrap();
        header.header_checksum = header.calc_header_checksum();
        (header.to_bytes().to_vec(), [CLIENT_V4, SERVER_V4].concat())
    }

    fn transport(&self) -> Vec<u8> {
        if self.udp {
            let length = (8 + self.payload) as u16;
            return UdpHeader { source_port: self.source_port, destination_port: 5201, length, checksum: 0 }
                .to_bytes()
                .to_vec();
        }
        let flag = |bit: u8| self.flags >> bit & 1 == 1;
        let mut header = TcpHeader::new(self.source_port, 5201, self.sequence, 512);
        (header.fin, header.syn, header.rst, header.psh) = (flag(0), flag(1), flag(2), flag(3));
        (header.ack, header.urg, header.ece, header.cwr) = (flag(4), flag(5), flag(6), flag(7));
        (header.acknowledgment_number, header.urgent_pointer) = (77, 3);
        header.set_options_raw(&vec![1; 4 * self.tcp_options]).unwrap();
        header.to_bytes().to_vec()
    }
}

/// The ones' complement sum of 16-bit words, with the carry added at each step.
pub(super) fn ones_sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum: u16, word| {
        let word = u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}
