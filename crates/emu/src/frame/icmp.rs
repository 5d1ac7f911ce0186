//! A router's answer to a packet that exceeds the MTU of the next link.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::checksum::{read_u16, set_word, sum};
use super::ip::{Fragment, ICMP, ICMP6, Ip, PacketIpVersion, V6_HEADER};

/// Longest ICMP error with its IP header (RFC 1812 §4.3.2.3).
const MAX_V4_ERROR_BYTES: usize = 576;
/// Smallest MTU of a link with IPv6, and longest ICMPv6 error (RFC 8200 §5, RFC 4443 §2.4 c).
const MIN_MTU_V6: u32 = 1280;

const V4_HEADER: usize = 20;
const HEADER: usize = 8;
const HOP_LIMIT: u8 = 64;
/// Offset of the checksum in an ICMP message, and in an IPv4 header.
const CHECKSUM: usize = 2;
const V4_CHECKSUM: usize = 10;

/// True if an error may be sent to the source of the packet.
///
/// # Source
/// RFC 1122 §3.2.2 and RFC 1191 §4; RFC 4443 §2.4 e, which allows multicast destinations
pub(super) fn may_send_error(frame: &[u8], ip: &Ip) -> bool {
    let kind = frame[..ip.end()].get(ip.payload).copied();
    let addresses = ip.addresses(frame);
    match ip.version {
        PacketIpVersion::V4 => {
            let (source, destination) = addresses.split_at(4);
            let (source, destination) = (v4(source), v4(destination));
            let is_error = ip.protocol == ICMP && matches!(kind, Some(3 | 4 | 5 | 11 | 12));
            let dont_fragment = read_u16(frame, ip.at + 6) & 0x4000 != 0;
            let to_one = frame[0] & 1 == 0 && !destination.is_multicast() && !destination.is_broadcast();
            let from_one = !(source.is_unspecified()
                || source.is_loopback()
                || source.is_multicast()
                || source.is_broadcast());
            dont_fragment && to_one && from_one && !is_error && ip.fragment != Fragment::Later
        }
        PacketIpVersion::V6 => {
            const REDIRECT: u8 = 137;
            let source = v6(&addresses[..16]);
            let is_error = ip.protocol == ICMP6 && kind.is_some_and(|kind| kind < 128 || kind == REDIRECT);
            !is_error && !source.is_unspecified() && !source.is_multicast()
        }
    }
}

/// The IP packet that informs the source of `packet`, which starts with its IP header.
///
/// # Source
/// RFC 792 "fragmentation needed and DF set" with the MTU of RFC 1191 §4; RFC 4443 §3.2
pub(super) fn answer(
    packet: &[u8],
    version: PacketIpVersion,
    mtu: u32,
    router: (Ipv4Addr, Ipv6Addr),
) -> Vec<u8> {
    match version {
        PacketIpVersion::V4 => answer_v4(packet, mtu, router.0),
        PacketIpVersion::V6 => answer_v6(packet, mtu, router.1),
    }
}

fn answer_v4(packet: &[u8], mtu: u32, router: Ipv4Addr) -> Vec<u8> {
    // Type 3, code 4; the MTU is in the lower half of a word that is otherwise 0.
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    message.extend(&packet[..packet.len().min(MAX_V4_ERROR_BYTES - V4_HEADER - HEADER)]);
    let checksum = !sum(&message);
    set_word(&mut message, CHECKSUM, checksum);

    // Precedence of internetwork control (RFC 1812 §4.3.2.5); never fragmented, so it needs no identification
    // (RFC 6864).
    let mut answer = vec![0x45, 0xc0, 0, 0, 0, 0, 0x40, 0, HOP_LIMIT, ICMP, 0, 0];
    answer.extend(router.octets());
    answer.extend(&packet[12..16]);
    set_word(&mut answer, 2, (V4_HEADER + message.len()) as u16);
    let checksum = !sum(&answer);
    set_word(&mut answer, V4_CHECKSUM, checksum);
    answer.extend(message);
    answer
}

fn answer_v6(packet: &[u8], mtu: u32, router: Ipv6Addr) -> Vec<u8> {
    let longest = MIN_MTU_V6 as usize - V6_HEADER - HEADER;
    let mut message = vec![2, 0, 0, 0];
    message.extend(mtu.max(MIN_MTU_V6).to_be_bytes());
    message.extend(&packet[..packet.len().min(longest)]);
    let length = message.len() as u16;

    let mut answer = vec![0x60, 0, 0, 0];
    answer.extend(length.to_be_bytes());
    answer.extend([ICMP6, HOP_LIMIT]);
    answer.extend(router.octets());
    answer.extend(&packet[8..24]);
    // The checksum also covers a pseudo header (RFC 8200 §8.1): both addresses, the length, the protocol.
    let parts = [&answer[8..], &length.to_be_bytes(), &[0, ICMP6], &message].concat();
    set_word(&mut message, CHECKSUM, !sum(&parts));
    answer.extend(message);
    answer
}

fn v4(bytes: &[u8]) -> Ipv4Addr {
    bytes.try_into().map_or(Ipv4Addr::UNSPECIFIED, |bytes: [u8; 4]| bytes.into())
}

fn v6(bytes: &[u8]) -> Ipv6Addr {
    bytes.try_into().map_or(Ipv6Addr::UNSPECIFIED, |bytes: [u8; 16]| bytes.into())
}
