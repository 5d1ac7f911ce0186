//! Properties of a frame: split or marked as a whole, it yields the packets that a NIC would send and a network
//! would mark.

mod answers;
mod flow;
mod segment;
mod unknown_frames;

use std::net::Ipv6Addr;

use expect_test::expect;
use linerate_units::{Span, Timestamp};
use proptest::prelude::*;
use proptest::sample::Index;

use self::flow::{CLIENT_MAC, OffloadedFrame, SERVER_MAC};
use self::segment::segment;
use super::{Frame, FrameError};
use crate::packet_batch::{HashFields, PacketBatch, PacketSizes};

fn parsed(flow: &OffloadedFrame) -> Frame {
    Frame::parse(flow.buffer()).unwrap()
}

fn segments(frames: &[Frame]) -> Vec<Vec<u8>> {
    frames.iter().flat_map(|frame| segment(frame.bytes())).collect()
}

/// Splits pieces of `frame`, each time one of the current pieces.
fn cut_at(frame: Frame, cuts: &[(Index, Index)]) -> Vec<Frame> {
    let mut pieces = vec![frame];
    for (piece, packet) in cuts {
        let piece = piece.index(pieces.len());
        let packets = pieces[piece].packets();
        if packets > 1 {
            let rest = pieces[piece].split_off(1 + packet.index(packets as usize - 1) as u32);
            pieces.insert(piece + 1, rest);
        }
    }
    pieces
}

fn cuts() -> impl Strategy<Value = Vec<(Index, Index)>> {
    prop::collection::vec((any::<Index>(), any::<Index>()), 1..6)
}

fn settings() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn a_cut_frame_gives_the_packets_of_the_whole(flow in OffloadedFrame::any(), cuts in cuts()) {
        let whole = segment(&flow.buffer());
        let pieces = cut_at(parsed(&flow), &cuts);
        prop_assert_eq!(segments(&pieces), whole);
        for piece in pieces {
            prop_assert_eq!(Frame::parse(piece.bytes().to_vec()), Ok(piece), "what it knows is what is there");
        }
    }

    #[test]
    fn sizes_are_those_of_the_packets(flow in OffloadedFrame::any(), cuts in cuts()) {
        let whole = parsed(&flow);
        prop_assert_eq!(whole.packets(), flow.packets());
        for piece in cut_at(whole, &cuts) {
            let expected: Vec<u32> = segment(piece.bytes()).iter().map(|packet| packet.len() as u32).collect();
            let sizes = piece.sizes();
            let reported: Vec<u32> = (0..sizes.packets).map(|index| sizes.of(index)).collect();
            prop_assert_eq!(&reported, &expected);
            let link = 14 + 4 * flow.tags as u32;
            prop_assert_eq!(piece.ip_packet_len(), expected.iter().max().unwrap() - link);
        }
    }

    #[test]
    fn marked_as_a_whole_is_marked_in_each_packet(flow in OffloadedFrame::any(), cuts in cuts()) {
        let (mut whole, can) = (parsed(&flow), flow.ecn != 0);
        let mut pieces = cut_at(parsed(&flow), &cuts);
        prop_assert_eq!(whole.mark(), can);
        for piece in &mut pieces {
            prop_assert_eq!(piece.mark(), can);
        }
        // Congestion experienced is 3 (RFC 3168 §5).
        let marked = segment(&OffloadedFrame { ecn: if can { 3 } else { 0 }, ..flow }.buffer());
        prop_assert_eq!(segment(whole.bytes()), marked.clone());
        prop_assert_eq!(segments(&pieces), marked);
    }
}

#[test]
fn a_super_frame_counts_as_its_packets() {
    // 1448 bytes of payload, 32 of TCP with timestamps, 20 of IPv4 and 14 of Ethernet.
    let frame = parsed(&OffloadedFrame::default());
    assert_eq!(frame.sizes(), PacketSizes { packets: 44, each: 1514, last: 67 });
    assert_eq!((frame.ip_packet_len(), frame.source(), frame.destination()), (1500, CLIENT_MAC, SERVER_MAC));
    // A datagram of 1472 bytes, 8 of UDP, 40 of IPv6.
    let datagrams = OffloadedFrame {
        v6: true,
        udp: true,
        gso_size: 1472,
        payload: 3 * 1472,
        ..OffloadedFrame::default()
    };
    assert_eq!(parsed(&datagrams).sizes(), PacketSizes { packets: 3, each: 1534, last: 1534 });
}

#[test]
fn what_is_made_of_a_frame_entered_with_it() {
    let at = Timestamp::from_ns(7_000);
    let mut front = parsed(&OffloadedFrame::default()).entering(at);
    assert_eq!(parsed(&OffloadedFrame::default()).entered(), Timestamp::START);
    let answer = front.too_big(1400, [2; 6], ([10, 0, 0, 1].into(), Ipv6Addr::LOCALHOST)).unwrap();
    let rest = front.split_off(3);
    assert_eq!([&front, &rest, &rest.duplicate(), &answer].map(Frame::entered), [at; 4]);
}

#[test]
fn a_super_frame_of_one_packet_is_a_packet() {
    for udp in [false, true] {
        let flow = OffloadedFrame { udp, gso_size: 1448, payload: 1448, ..OffloadedFrame::default() };
        let frame = parsed(&flow);
        assert_eq!(frame.sizes(), PacketSizes::single(if udp { 1490 } else { 1514 }));
        assert_eq!((frame.bytes()[1], &frame.bytes()[4..6]), (0, &[0, 0][..]), "no segmentation");
        assert_eq!(segment(frame.bytes()), segment(&flow.buffer()));
    }
}

#[test]
fn headers_of_a_piece_are_those_of_its_packets() {
    let flow = OffloadedFrame {
        identification: 0xffff,
        sequence: u32::MAX - 1000,
        flags: 0x99,
        ..OffloadedFrame::default()
    };
    let mut front = parsed(&flow);
    assert_eq!(front.bytes()[1], 0x81, "TCP over IPv4 whose first packet says CWR");
    let mut rest = front.split_off(2);
    let last = rest.split_off(41);
    // Sequence: 2^32 - 1001 + 2 * 1448 - 2^32 = 1895, and 41 * 1448 = 59368 more; identification: 65535 + 2 - 65536 = 1.
    let show = |frame: &Frame| {
        let frame = frame.bytes();
        let (length, identification) = (&frame[28..30], &frame[30..32]);
        let (sequence, flags) = (&frame[50..54], frame[59]);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        format!(
            "gso {:#04x} {:>4}: length {}, id {}, sequence {}, flags {flags:#04x}\n",
            frame[1],
            u16::from_ne_bytes([frame[4], frame[5]]),
            number(length),
            number(identification),
            number(sequence)
        )
    };
    expect![[r#"
        gso 0x81 1448: length 2948, id 65535, sequence 4294966295, flags 0x90
        gso 0x01 1448: length 59420, id 1, sequence 1895, flags 0x10
        gso 0x00    0: length 53, id 42, sequence 61263, flags 0x19
    "#]]
    .assert_eq(&(show(&front) + &show(&rest) + &show(&last)));
}

#[test]
fn a_piece_has_the_spread_of_its_gaps() {
    let mut front = parsed(&OffloadedFrame { payload: 5 * 1448, ..OffloadedFrame::default() });
    front.set_spread(Span::from_ns(4000));
    let rest = front.split_off(2);
    // Five packets a microsecond apart: two have one gap, three have two.
    assert_eq!((front.spread(), rest.spread()), (Span::from_ns(1000), Span::from_ns(2000)));
}

#[test]
fn the_front_keeps_its_memory() {
    let mut front = parsed(&OffloadedFrame::default());
    let memory = front.bytes().as_ptr();
    front.split_off(10);
    let buffer = front.into_buffer();
    assert_eq!(buffer.as_ptr(), memory);
}

#[test]
fn a_copy_is_the_same_frame() {
    let frame = parsed(&OffloadedFrame::default());
    assert_eq!(frame.duplicate(), frame);
}

const ALL: HashFields = HashFields { mac: true, ip: true, ports: true };

#[test]
fn packets_of_one_flow_hash_alike_however_they_are_cut() {
    for flow in [
        OffloadedFrame::default(),
        OffloadedFrame { v6: true, udp: true, extended: true, tags: 1, ..OffloadedFrame::default() },
    ] {
        let mut front = parsed(&flow);
        let hash = front.flow_hash(ALL, 7);
        let rest = front.split_off(3);
        assert_eq!((front.flow_hash(ALL, 7), rest.flow_hash(ALL, 7)), (hash, hash));
        assert_ne!(hash, front.flow_hash(ALL, 8), "another seed, another choice");
    }
}

#[test]
fn only_the_chosen_fields_count() {
    let at = |change: usize, fields: HashFields| {
        let mut buffer = OffloadedFrame { payload: 9, ..OffloadedFrame::default() }.buffer();
        buffer[1] = 0;
        buffer[change] ^= 1;
        Frame::parse(buffer).unwrap().flow_hash(fields, 1)
    };
    let [mac, ip, ports] = [(true, false, false), (false, true, false), (false, false, true)]
        .map(|(mac, ip, ports)| HashFields { mac, ip, ports });
    let payload = 12 + 14 + 20 + 32;
    for (fields, counts) in [(mac, 12..24), (ip, 12 + 26..12 + 34), (ports, 12 + 34..12 + 38)] {
        let plain = at(payload, fields);
        for change in 12..payload {
            // Ethertype, lengths, fragment, protocol: with other values it is no longer such a packet.
            let is_structure = [12, 13, 14, 16, 20, 21, 23].contains(&(change - 12));
            if counts.contains(&change) {
                assert_ne!(at(change, fields), plain, "byte {change} counts for {fields:?}");
            } else if !is_structure {
                assert_eq!(at(change, fields), plain, "byte {change} does not count for {fields:?}");
            }
        }
    }
}

#[test]
fn the_two_directions_of_a_flow_choose_for_themselves() {
    let mut buffer = OffloadedFrame { payload: 9, ..OffloadedFrame::default() }.buffer();
    let there = Frame::parse(buffer.clone()).unwrap();
    let addresses: Vec<u8> = [&buffer[12 + 30..12 + 34], &buffer[12 + 26..12 + 30]].concat();
    buffer[12 + 26..12 + 34].copy_from_slice(&addresses);
    let back = Frame::parse(buffer).unwrap();
    let fields = HashFields { ip: true, ..HashFields::default() };
    assert_ne!(there.flow_hash(fields, 0), back.flow_hash(fields, 0));
}

#[test]
fn flows_that_differ_in_a_port_spread_evenly() {
    let members = 4;
    let mut counts = [0_i32; 4];
    for source_port in 10_000..14_000 {
        let frame = parsed(&OffloadedFrame { source_port, payload: 9, ..OffloadedFrame::default() });
        counts[(frame.flow_hash(ALL, 3) % members) as usize] += 1;
    }
    // 1000 each are expected, with a standard deviation of sqrt(4000 * 1/4 * 3/4) = 27.4.
    assert!(counts.iter().all(|count| (count - 1000).abs() < 4 * 28), "{counts:?}");
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let flow = OffloadedFrame::default();
    let with = |changes: &[(usize, u8)]| {
        let mut buffer = flow.buffer();
        for &(at, value) in changes {
            buffer[at] = value;
        }
        Frame::parse(buffer).map(|frame| frame.packets())
    };
    assert_eq!(with(&[]), Ok(44));
    assert_eq!(with(&[(1, 3)]), Err(FrameError::UnknownSegmentation { kind: 3 }), "fragments of UDP");
    let refused = |changes: &[(usize, u8)]| matches!(with(changes), Err(FrameError::NotCuttable { .. }));
    let [size_low, size_high] = [4, 5];
    assert!(refused(&[(0, 0)]), "without a partial checksum");
    assert!(refused(&[(1, 4)]) && refused(&[(1, 5)]), "it is not TCP over IPv6, nor UDP");
    assert!(refused(&[(size_low, 0), (size_high, 0)]), "packets of nothing");
    assert!(refused(&[(6, 33)]) && refused(&[(8, 6)]), "a checksum at another place");
    assert!(refused(&[(58, 0x40)]), "a TCP header of four words");
    assert!(refused(&[(24, 0x08), (25, 0x06)]), "ARP");
    assert!(refused(&[(28, 1)]), "an IP packet that ends before the frame");
    assert!(refused(&[(32, 0x20)]), "a fragment");
    let udp = OffloadedFrame { udp: true, ..flow.clone() };
    let mut buffer = udp.buffer();
    buffer[12 + 14 + 20 + 4] ^= 1;
    assert!(matches!(Frame::parse(buffer), Err(FrameError::NotCuttable { .. })), "another length in UDP");
}
