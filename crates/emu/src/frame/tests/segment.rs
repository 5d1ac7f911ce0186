//! The reference segmentation of a GSO frame, as simple as possible: every packet is composed anew, with full
//! checksums.

use etherparse::{NetHeaders, PacketHeaders, TransportHeader};

use super::flow::ones_sum;

/// The packets on the wire, each an Ethernet frame.
pub(super) fn segment(buffer: &[u8]) -> Vec<Vec<u8>> {
    let word = |at: usize| usize::from(u16::from_ne_bytes([buffer[at], buffer[at + 1]]));
    let (frame, gso_size) = (&buffer[12..], word(4));
    let start = (buffer[0] & 1 == 1).then(|| (word(6), word(6) + word(8)));
    let complete = start.map_or(frame.to_vec(), |(start, field)| complete(frame, start, field));
    assert!(word(2) <= frame.len(), "the kernel refuses more headers than bytes");
    if buffer[1] & 0x7f == 0 {
        assert_eq!(gso_size, 0);
        assert_eq!(rebuilt(&complete), complete, "every length and checksum is right");
        return vec![complete];
    }
    assert_eq!(rebuilt(&complete), complete, "the sum of the pseudo header is that of the super-frame");
    let parts = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let payload = parts.payload.slice();
    let count = payload.len().div_ceil(gso_size);
    (0..count).map(|index| packet(frame, index, gso_size, count)).collect()
}

/// The checksum as the kernel completes it: from the sum of the pseudo header that is in the field.
fn complete(frame: &[u8], start: usize, field: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let is_udp = field - start == 6;
    let checksum = match !ones_sum(&frame[start..]) {
        0 if is_udp => 0xffff,
        checksum => checksum,
    };
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The same frame with lengths and checksums recomputed.
pub(super) fn rebuilt(frame: &[u8]) -> Vec<u8> {
    packet(frame, 0, usize::MAX, 1)
}

fn packet(frame: &[u8], index: usize, gso_size: usize, count: usize) -> Vec<u8> {
    let parts = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let (mut net, mut transport) = (parts.net.unwrap(), parts.transport.unwrap());
    let all = parts.payload.slice();
    let from = index * gso_size.min(all.len());
    let payload = &all[from..all.len().min(from.saturating_add(gso_size))];
    let network_length = match &net {
        NetHeaders::Ipv4(header, _) => header.header_len(),
        NetHeaders::Ipv6(header, extensions) => header.header_len() + extensions.header_len(),
        NetHeaders::Arp(_) => unreachable!("no IP"),
    };
    let link = frame.len() - all.len() - transport.header_len() - network_length;
    let length = transport.header_len() + payload.len();
    match &mut transport {
        TransportHeader::Tcp(tcp) => {
            tcp.sequence_number = tcp.sequence_number.wrapping_add(from as u32);
            (tcp.fin, tcp.psh) = (tcp.fin && index + 1 == count, tcp.psh && index + 1 == count);
            tcp.cwr &= index == 0;
        }
        TransportHeader::Udp(udp) => udp.length = length as u16,
        _ => {}
    }
    let mut out = frame[..link].to_vec();
    match &mut net {
        NetHeaders::Ipv4(header, _) => {
            header.identification = header.identification.wrapping_add(index as u16);
            header.set_payload_len(length).unwrap();
            header.header_checksum = header.calc_header_checksum();
            transport.update_checksum_ipv4(header, payload).unwrap();
            out.extend(header.to_bytes());
        }
        NetHeaders::Ipv6(header, extensions) => {
            header.set_payload_length(extensions.header_len() + length).unwrap();
            transport.update_checksum_ipv6(header, payload).unwrap();
            out.extend(header.to_bytes());
            extensions.write(&mut out, header.next_header).unwrap();
        }
        NetHeaders::Arp(_) => unreachable!("no IP"),
    }
    transport.write(&mut out).unwrap();
    out.extend(payload);
    out
}
