//! Frames that are not fully understood are forwarded unchanged.

use super::super::{Frame, FrameError};
use super::flow::OffloadedFrame;
use crate::packet_batch::{HashFields, PacketBatch, PacketSizes};

const PORTS: HashFields = HashFields { mac: false, ip: false, ports: true };

fn frame(ethertype: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&[0; 12][..], &[0xff; 6], &[2, 0, 0, 0, 0, 1], &ethertype, rest].concat()
}

#[test]
fn what_is_no_ip_is_one_packet() {
    for (ethertype, rest) in [([0x08, 0x06], vec![1; 46]), ([0x88, 0xcc], vec![0; 200]), ([0, 5], vec![])] {
        let buffer = frame(ethertype, &rest);
        let mut parsed = Frame::parse(buffer.clone()).unwrap();
        assert_eq!(parsed.sizes(), PacketSizes::single(14 + rest.len() as u32));
        assert!(!parsed.mark());
        assert_eq!(parsed.ip_packet_len(), 0);
        assert_eq!(parsed.too_big(1, [2; 6], ([10, 0, 0, 1].into(), 1.into())), None);
        assert_eq!(parsed.into_buffer(), buffer);
    }
}

#[test]
fn an_ip_header_that_contradicts_itself_is_none() {
    let single = OffloadedFrame { payload: 9, ..OffloadedFrame::default() }.buffer();
    // Version 5; a header of four words; longer than the frame; shorter than its header.
    for (at, value) in [(26, 0x55), (26, 0x44), (28, 0x40), (29, 10)] {
        let mut buffer = single.clone();
        (buffer[1], buffer[at]) = (0, value);
        assert_eq!(Frame::parse(buffer).unwrap().ip_packet_len(), 0, "byte {at} is {value}");
    }
}

#[test]
fn padding_is_not_part_of_the_packet() {
    let mut buffer = OffloadedFrame { udp: true, payload: 1, ..OffloadedFrame::default() }.buffer();
    buffer[1] = 0;
    buffer.resize(12 + 60, 0);
    let parsed = Frame::parse(buffer).unwrap();
    assert_eq!((parsed.sizes(), parsed.ip_packet_len()), (PacketSizes::single(60), 29));
}

#[test]
fn fragments_have_no_ports() {
    let hash = |source_port: u16, place: [u8; 2]| {
        let mut buffer =
            OffloadedFrame { udp: true, payload: 9, source_port, ..OffloadedFrame::default() }.buffer();
        buffer[1] = 0;
        buffer[32..34].copy_from_slice(&place);
        Frame::parse(buffer).unwrap().flow_hash(PORTS, 0)
    };
    let (first, later) = ([0x20, 0], [0, 100]);
    assert_ne!(hash(1, [0x40, 0]), hash(2, [0x40, 0]), "whole packets do");
    assert_eq!(hash(1, first), hash(2, first), "the first has them in vain: the others do not");
    assert_eq!(hash(1, later), hash(1, first));
}

#[test]
fn fragments_of_ipv6_have_no_ports() {
    let fragment = |place: [u8; 2], ports: [u8; 4]| {
        let header = [&[0x60, 0, 0, 0, 0, 16, 44, 64][..], &[0xfd; 32], &[17, 0], &place, &[0; 4], &ports];
        let buffer = frame([0x86, 0xdd], &[&header.concat()[..], &[0, 8, 0, 0]].concat());
        Frame::parse(buffer).unwrap().flow_hash(PORTS, 0)
    };
    assert_eq!(fragment([0, 1], [0, 1, 0, 2]), fragment([0, 1], [0, 3, 0, 4]));
    assert_eq!(fragment([0, 8], [0, 1, 0, 2]), fragment([0, 1], [0, 1, 0, 2]));
    // With offset 0 and no fragments after it, it is a whole packet (RFC 6946).
    assert_ne!(fragment([0, 0], [0, 1, 0, 2]), fragment([0, 0], [0, 3, 0, 4]));
}

#[test]
fn a_chain_of_extensions_that_does_not_end_is_still_ipv6() {
    let header = [&[0x60, 0x20, 0, 0, 0, 8, 60, 64][..], &[0xfd; 32], &[43, 200, 0, 0, 0, 0, 0, 0]];
    let mut parsed = Frame::parse(frame([0x86, 0xdd], &header.concat())).unwrap();
    assert_eq!(parsed.ip_packet_len(), 48);
    assert!(parsed.mark(), "the traffic class says ECT(0)");
    assert_eq!(parsed.bytes()[26..28], [0x60, 0x30]);
}

#[test]
fn too_short_and_too_long_are_refused() {
    assert_eq!(Frame::parse(vec![0; 25]), Err(FrameError::TooShort { bytes: 25 }));
    assert!(Frame::parse(vec![0; 26]).is_ok());
    // 12 of the device, 14 of Ethernet, 8 of tags, 40 of IPv6, 65535 of payload.
    assert_eq!(Frame::MAX_FRAME_BYTES, 65_609);
    assert!(Frame::parse(vec![0; 65_609]).is_ok());
    assert_eq!(Frame::parse(vec![0; 65_610]), Err(FrameError::TooLong { bytes: 65_610 }));
}
