//! Frames from a TAP device, with the virtio header.

use linerate_emu::frame::Frame;
use linerate_emu::packet_batch::{Framing, HashFields, PacketBatch};

/// A frame: every frame that is accepted can be segmented, marked, hashed and answered, and every segment is a
/// valid frame.
pub fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes.to_vec()) else { return };
    let _ = frame.source();
    let _ = frame.flow_hash(HashFields { mac: true, ip: true, ports: true }, 1);
    let mut marked = frame.duplicate();
    let capable = marked.mark();
    assert_eq!(
        (marked.sizes(), marked.mark()),
        (frame.sizes(), capable),
        "a mark changes neither size nor mark"
    );
    answers(&frame);
    let packets = frame.packets();
    for at in [1, packets / 2, packets - 1] {
        if 0 < at && at < packets {
            cut(frame.duplicate(), at);
        }
    }
}

fn cut(mut frame: Frame, at: u32) {
    let (packets, all) = (frame.packets(), wire(&frame));
    let rest = frame.split_off(at);
    assert_eq!((frame.packets(), rest.packets()), (at, packets - at));
    assert_eq!(wire(&frame) + wire(&rest), all);
    for piece in [frame, rest] {
        assert_eq!(Frame::parse(piece.bytes().to_vec()), Ok(piece));
    }
}

fn answers(frame: &Frame) {
    for mtu in [0, 50, 1280] {
        if let Some(answer) = frame.too_big(mtu, [2; 6], ([10, 0, 0, 1].into(), 1.into())) {
            assert!(frame.ip_packet_len() > mtu && answer.packets() == 1);
            assert!((1..=1280).contains(&answer.ip_packet_len()));
            assert_eq!(answer.destination(), frame.source());
        }
    }
}

fn wire(frame: &Frame) -> u64 {
    let sizes = frame.sizes();
    Framing::default().wire_of(&sizes, sizes.packets)
}

/// GSO frames of five packets, of every type, with different headers; and a frame that is not IP.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (tag, options, extension) = ([0x81, 0, 0, 7], [1; 4], [6, 0, 1, 4, 0, 0, 0, 0]);
    let arp = [&[0; 24][..], &[8, 6], &[0; 46]].concat();
    vec![
        super_frame(1, &[], &v4(6, &[])),
        super_frame(5, &tag, &v4(17, &options)),
        super_frame(4, &[], &v6(0, &extension)),
        super_frame(5, &[tag, tag].concat(), &v6(17, &[])),
        arp,
    ]
}

const PAYLOAD: [u8; 37] = [7; 37];
const GSO_SIZE: u16 = 8;

/// `ip` in a GSO frame of type `gso_type`.
fn super_frame(gso_type: u8, tags: &[u8], ip: &[u8]) -> Vec<u8> {
    let is_udp = gso_type == 5;
    let ethertype = if ip[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let link = [&[2; 12][..], tags, &ethertype].concat();
    let transport = if is_udp { udp() } else { tcp() };
    let start = link.len() + ip.len();
    let checksum = if is_udp { 6 } else { 16 };
    let words = [(start + transport.len()) as u16, GSO_SIZE, start as u16, checksum, 0];
    let header: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    [&[1, gso_type], &header[..], &link, ip, &transport, &PAYLOAD].concat()
}

fn tcp() -> Vec<u8> {
    [&[0, 1, 0, 2][..], &[0; 8], &[0x50, 0x99], &[0; 6]].concat()
}

fn udp() -> Vec<u8> {
    vec![0, 1, 0, 2, 0, 8 + PAYLOAD.len() as u8, 0, 0]
}

fn v4(protocol: u8, options: &[u8]) -> Vec<u8> {
    let transport = if protocol == 17 { 8 } else { 20 };
    let words = 5 + options.len() / 4;
    let length = (4 * words + transport + PAYLOAD.len()) as u8;
    let start = [0x40 | words as u8, 1, 0, length, 0, 1, 0x40, 0, 64, protocol, 0, 0];
    [&start[..], &[10, 0, 0, 1, 10, 0, 0, 2], options].concat()
}

fn v6(next: u8, extension: &[u8]) -> Vec<u8> {
    let transport = if next == 17 { 8 } else { 20 };
    let length = (extension.len() + transport + PAYLOAD.len()) as u8;
    [&[0x60, 0x10, 0, 0, 0, length, next, 64][..], &[0xfd; 32], extension].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_frames_of_five_packets_and_one_of_one() {
        let parsed = seeds().into_iter().map(|seed| Frame::parse(seed).map(|frame| frame.packets()));
        assert_eq!(parsed.collect::<Vec<_>>(), [Ok(5), Ok(5), Ok(5), Ok(5), Ok(1)]);
    }
}
