//! ICMP errors to the sender of packets that are too big.

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{Icmpv4Slice, Icmpv6Slice, NetHeaders, PacketHeaders, SlicedPacket, TransportHeader};
use etherparse::{Icmpv4Type, Icmpv6Type, icmpv4::DestUnreachableHeader};
use linerate_units::{Span, Timestamp};

use super::super::Frame;
use super::flow::{CLIENT_MAC, CLIENT_V4, CLIENT_V6, OffloadedFrame};
use super::segment::segment;
use crate::fabric::{AttachmentPoint, Fabric, Router};
use crate::packet_batch::{PacketBatch, PacketSizes};
use crate::topology::read;

const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 99];
const ROUTER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 1, 0, 254), Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0xfe));

fn answer(flow: &OffloadedFrame, mtu: u32) -> Option<Frame> {
    Frame::parse(flow.buffer()).unwrap().too_big(mtu, ROUTER_MAC, ROUTER)
}

/// The answer to a packet with changed bytes.
fn answer_to(flow: &OffloadedFrame, changes: &[(usize, u8)]) -> Option<Frame> {
    let mut buffer = flow.buffer();
    for &(at, value) in changes {
        buffer[at] = value;
    }
    Frame::parse(buffer).unwrap().too_big(1000, ROUTER_MAC, ROUTER)
}

fn flows(v6: bool) -> impl Iterator<Item = OffloadedFrame> {
    let sizes = [(1448, 20_000), (1448, 1448), (8948, 60_000)];
    let kinds = [(false, 0, false), (true, 0, true), (false, 2, true)];
    kinds.into_iter().flat_map(move |(udp, tags, extended)| {
        sizes.map(|(gso_size, payload)| OffloadedFrame {
            v6,
            udp,
            tags,
            extended,
            flags: 0x99,
            gso_size,
            payload,
            ..OffloadedFrame::default()
        })
    })
}

#[test]
fn the_sender_hears_that_it_is_too_big_for_ipv4() {
    for flow in flows(false) {
        let frame = answer(&flow, 1400).unwrap();
        assert_eq!((frame.destination(), frame.source()), (CLIENT_MAC, ROUTER_MAC));
        assert_eq!(frame.bytes()[..12], [0; 12], "nothing is left to the card");
        let link = 14 + 4 * flow.tags;
        let parts = PacketHeaders::from_ethernet_slice(&frame.bytes()[12..]).unwrap();
        let Some(NetHeaders::Ipv4(ip, _)) = parts.net else { panic!("no IPv4") };
        assert_eq!((ip.source, ip.destination), (ROUTER.0.octets(), CLIENT_V4));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(ip.total_len, 576);
        assert_eq!(frame.sizes(), PacketSizes::single(link as u32 + 576));
        let Some(TransportHeader::Icmpv4(icmp)) = parts.transport else { panic!("no ICMP") };
        let unreachable = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1400 };
        assert_eq!(icmp.icmp_type, Icmpv4Type::DestinationUnreachable(unreachable));
        let quote = parts.payload.slice();
        assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(quote));
        assert_eq!(
            quote,
            &segment(&flow.buffer())[0][link..][..quote.len()],
            "the first packet as a router saw it"
        );
    }
}

#[test]
fn the_sender_hears_that_it_is_too_big_for_ipv6() {
    for flow in flows(true) {
        let frame = answer(&flow, 1400).unwrap();
        assert_eq!((frame.destination(), frame.source()), (CLIENT_MAC, ROUTER_MAC));
        let link = 14 + 4 * flow.tags;
        let parts = PacketHeaders::from_ethernet_slice(&frame.bytes()[12..]).unwrap();
        let Some(NetHeaders::Ipv6(ip, _)) = parts.net else { panic!("no IPv6") };
        assert_eq!((ip.source, ip.destination), (ROUTER.1.octets(), CLIENT_V6));
        assert_eq!(frame.sizes(), PacketSizes::single(link as u32 + 1280));
        let Some(TransportHeader::Icmpv6(icmp)) = parts.transport else { panic!("no ICMPv6") };
        assert_eq!(icmp.icmp_type, Icmpv6Type::PacketTooBig { mtu: 1400 });
        let quote = parts.payload.slice();
        assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(ip.source, ip.destination, quote).unwrap());
        assert_eq!(
            quote,
            &segment(&flow.buffer())[0][link..][..quote.len()],
            "the first packet as a router saw it"
        );
    }
}

#[test]
fn no_mtu_below_the_least_of_ipv6_is_reported() {
    let frame = answer(&OffloadedFrame { v6: true, ..OffloadedFrame::default() }, 600).unwrap();
    let sliced = SlicedPacket::from_ethernet(&frame.bytes()[12..]).unwrap();
    let bytes: Vec<u8> = match sliced.transport {
        Some(etherparse::TransportSlice::Icmpv6(icmp)) => Icmpv6Slice::slice(&icmp).to_vec(),
        _ => panic!("no ICMPv6"),
    };
    assert_eq!(bytes[4..8], 1280_u32.to_be_bytes());
}

#[test]
fn a_short_packet_is_quoted_without_padding() {
    let flow = OffloadedFrame { udp: true, payload: 4, ..OffloadedFrame::default() };
    let packet = &segment(&flow.buffer())[0][14..];
    let mut buffer = flow.buffer();
    buffer[1] = 0;
    buffer.resize(12 + 60, 0);
    let frame = Frame::parse(buffer).unwrap().too_big(20, ROUTER_MAC, ROUTER).unwrap();
    let sliced = SlicedPacket::from_ethernet(&frame.bytes()[12..]).unwrap();
    let quote = match sliced.transport {
        Some(etherparse::TransportSlice::Icmpv4(icmp)) => Icmpv4Slice::slice(&icmp)[8..].to_vec(),
        _ => panic!("no ICMP"),
    };
    assert_eq!(quote, packet);
}

#[test]
fn no_error_is_sent_for_what_fits() {
    for v6 in [false, true] {
        let flow = OffloadedFrame { v6, gso_size: if v6 { 1428 } else { 1448 }, ..OffloadedFrame::default() };
        assert!(answer(&flow, 1500).is_none());
        assert!(answer(&flow, 1499).is_some());
    }
}

#[test]
fn no_error_is_sent_where_fragmentation_is_allowed() {
    assert!(answer(&OffloadedFrame { dont_fragment: false, ..OffloadedFrame::default() }, 1000).is_none());
}

#[test]
fn no_error_answers_to_errors_groups_or_nobody() {
    let v4 = OffloadedFrame { udp: true, payload: 1400, ..OffloadedFrame::default() };
    let v6 = OffloadedFrame { v6: true, ..v4.clone() };
    // Without segmentation; then protocol and type, destination, fragment offset, source.
    let (plain, ip, transport) = ((1, 0), 26, 46);
    assert!(answer_to(&v4, &[plain]).is_some() && answer_to(&v6, &[plain]).is_some());
    for (kind, answered) in
        [(0, true), (3, false), (4, false), (5, false), (8, true), (11, false), (12, false)]
    {
        let frame = answer_to(&v4, &[plain, (ip + 9, 1), (transport, kind)]);
        assert_eq!(frame.is_some(), answered, "ICMP type {kind}");
    }
    for (kind, answered) in [(1, false), (2, false), (127, false), (128, true), (129, true), (137, false)] {
        let frame = answer_to(&v6, &[plain, (ip + 6, 58), (ip + 40, kind)]);
        assert_eq!(frame.is_some(), answered, "ICMPv6 type {kind}");
    }
    assert!(answer_to(&v4, &[plain, (12, 1)]).is_none(), "an Ethernet multicast");
    assert!(answer_to(&v4, &[plain, (ip + 16, 224)]).is_none(), "an IPv4 multicast");
    assert!(
        answer_to(&v6, &[plain, (ip + 24, 0xff)]).is_some(),
        "but those of IPv6 discover their MTU by it"
    );
    assert!(answer_to(&v4, &[plain, (ip + 6, 0x60)]).is_some(), "the first fragment");
    assert!(answer_to(&v4, &[plain, (ip + 7, 1)]).is_none(), "a later fragment");
    // The address is in four bytes from offset 12, or in 16 from offset 8; the destination follows.
    let to_v4 = |place: usize, address: [u8; 4]| {
        let changes: Vec<_> = (ip + place..).zip(address).chain([plain]).collect();
        answer_to(&v4, &changes).is_some()
    };
    for nobody in [[0, 0, 0, 0], [127, 0, 0, 1], [239, 1, 2, 3], [255, 255, 255, 255]] {
        assert!(!to_v4(12, nobody), "from {nobody:?}");
    }
    assert!(to_v4(12, [192, 0, 2, 1]) && !to_v4(16, [255, 255, 255, 255]));
    let from_v6 = |address: [u8; 16]| {
        let changes: Vec<_> = (ip + 8..).zip(address).chain([plain]).collect();
        answer_to(&v6, &changes).is_some()
    };
    assert!(from_v6(CLIENT_V6) && !from_v6([0; 16]) && !from_v6([0xff; 16]));
}

/// A router drops the packets of a super-packet that exceed its MTU, and forwards a short last one.
#[test]
fn the_last_packet_of_a_super_packet_passes_where_it_fits() {
    let narrow = r#"
        [host.a]
        [host.b]
        [switch.s]
        [link.a]
        ends = ["a", "s"]
        [link.b]
        ends = ["s", "b"]
        mtu = 1400
        too_big = "icmp"
    "#;
    let (v4, v6) = ROUTER;
    let topology = read(narrow, "narrow.toml", &[]).unwrap();
    // The last packet has one byte, and 52 of headers. No file may have such an MTU, so it is set here.
    for (mtu, last_fits) in [(1400, true), (53, true), (52, false)] {
        let mut topology = topology.clone();
        topology.links[1].directions[0].mtu = mtu;
        let mut fabric = Fabric::new(&topology, Router { mac: ROUTER_MAC, v4, v6 });
        let frame = Frame::parse(OffloadedFrame::default().buffer()).unwrap();
        let last = segment(frame.bytes()).pop().unwrap();
        let end = Timestamp::START + Span::from_secs(1);
        fabric.input(Timestamp::START, AttachmentPoint { host: 0, link: 0 }, frame);
        fabric.advance(end);
        let delivered: Vec<(usize, Frame)> =
            std::iter::from_fn(|| fabric.output()).map(|d| (d.attachment.host, d.batch)).collect();
        assert!(fabric.accounting().balanced(), "{:?}", fabric.accounting());
        let received: Vec<Vec<u8>> =
            delivered.iter().filter(|(host, _)| *host == 1).flat_map(|(_, f)| segment(f.bytes())).collect();
        let dropped = fabric.ports(end)[2].dropped_too_big;
        let expected = if last_fits { (vec![last], 43) } else { (vec![], 44) };
        assert_eq!((received, dropped), expected, "MTU {mtu}");
        assert_eq!(delivered.iter().filter(|(host, _)| *host == 0).count(), 1, "one ICMP message");
    }
}
