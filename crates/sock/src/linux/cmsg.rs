//! Control messages: the kernel's metadata of a datagram. Does no I/O, so that it can be fuzzed.

use std::net::IpAddr;

use libc::{IPPROTO_IP, IPPROTO_IPV6, SOL_SOCKET, SOL_UDP};

use super::reply::answering;
pub use crate::datagram::Ancillary;

/// Length, level and type, as the C compiler lays them out.
const HEADER: usize = size_of::<libc::cmsghdr>();
const LEVEL_AT: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_level);
const TYPE_AT: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_type);

/// Control messages are aligned to the machine word.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// One control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlMessage<'a> {
    /// Level of the layer that wrote it, as for `setsockopt`.
    pub level: i32,
    /// Type within the level.
    pub kind: i32,
    /// Payload.
    pub data: &'a [u8],
}

/// Iterates over the control messages in a buffer; stops at the first that does not fit into it.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = ControlMessage<'_>> {
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*rest.first_chunk()?);
        let level = i32::from_ne_bytes(*rest.get(LEVEL_AT..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*rest.get(TYPE_AT..)?.first_chunk()?);
        let data = rest.get(HEADER..length)?;
        // The last message may lack its padding.
        rest = rest.get(length.checked_next_multiple_of(size_of::<usize>())?..).unwrap_or_default();
        Some(ControlMessage { level, kind, data })
    })
}

/// The part of a control buffer that the kernel filled. The type of the length differs between C libraries.
pub(crate) fn filled(control: &[u8], length: impl TryInto<usize>) -> &[u8] {
    length.try_into().ok().and_then(|length| control.get(..length)).unwrap_or(control)
}

/// Space of a message with `length` bytes of data.
pub(crate) const fn space(length: usize) -> usize {
    aligned(HEADER) + aligned(length)
}

/// Writes one message to the start of `buffer`; returns its space, or `None` if it does not fit.
pub(crate) fn write(buffer: &mut [u8], message: &ControlMessage<'_>) -> Option<usize> {
    let length = HEADER + message.data.len();
    let target = buffer.get_mut(..space(message.data.len()))?;
    target.fill(0);
    target[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
    target[LEVEL_AT..LEVEL_AT + 4].copy_from_slice(&message.level.to_ne_bytes());
    target[TYPE_AT..TYPE_AT + 4].copy_from_slice(&message.kind.to_ne_bytes());
    target[HEADER..length].copy_from_slice(message.data);
    Some(target.len())
}

impl Ancillary {
    /// Reads the known messages and skips the others.
    #[must_use]
    pub fn parse(control: &[u8]) -> Self {
        let mut found = Self::default();
        for message in messages(control) {
            match (message.level, message.kind) {
                (SOL_UDP, libc::UDP_GRO) => {
                    found.segment_size = int(message.data).and_then(|size| u16::try_from(size).ok());
                }
                (SOL_SOCKET, libc::SO_RXQ_OVFL) => found.dropped = int(message.data).map(i32::cast_unsigned),
                (SOL_SOCKET, libc::SCM_TIMESTAMPING) => found.arrived_at_ns = software_stamp(message.data),
                (IPPROTO_IP, libc::IP_TOS) => found.tos = message.data.first().copied(),
                (IPPROTO_IP, libc::IP_PKTINFO) => {
                    // `struct in_pktinfo`: interface, own address, destination in the packet.
                    let own = message.data.get(4..).and_then(|rest| rest.first_chunk::<4>());
                    found.destination = own.and_then(|own| answering(IpAddr::from(*own)));
                }
                (IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let own = message.data.first_chunk::<16>();
                    found.destination = own.and_then(|own| answering(IpAddr::from(*own)));
                }
                (IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.tos = int(message.data).and_then(|class| u8::try_from(class).ok());
                }
                _ => {}
            }
        }
        found
    }
}

fn int(data: &[u8]) -> Option<i32> {
    data.first_chunk().copied().map(i32::from_ne_bytes)
}

/// The first of three `timespec`s; all zero means no software timestamp.
pub(crate) fn software_stamp(data: &[u8]) -> Option<u64> {
    const WORD: usize = size_of::<libc::c_long>();
    let word = |at: usize| data.get(at..)?.first_chunk::<WORD>().copied().map(libc::c_long::from_ne_bytes);
    let (seconds, ns) = (u64::try_from(word(0)?).ok()?, u64::try_from(word(WORD)?).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns).filter(|&stamp| stamp > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(list: &[(i32, i32, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0xAA; 512];
        let mut end = 0;
        for &(level, kind, data) in list {
            end += write(&mut bytes[end..], &ControlMessage { level, kind, data }).unwrap();
        }
        bytes.truncate(end);
        bytes
    }

    #[test]
    fn the_layout_is_that_of_the_c_macros() {
        for length in [0, 1, 2, 4, 8, 48] {
            // SAFETY: pure arithmetic.
            assert_eq!(space(length), unsafe { libc::CMSG_SPACE(length as u32) } as usize);
        }
        let bytes = encode(&[(17, 103, &[1, 2])]);
        let length = usize::from_ne_bytes(*bytes.first_chunk().unwrap());
        // SAFETY: pure arithmetic.
        assert_eq!(length, unsafe { libc::CMSG_LEN(2) } as usize);
    }

    #[test]
    fn known_messages_are_understood_and_others_skipped() {
        let mut stamps = Vec::new();
        for word in [7i64, 123_456_789, 0, 0, 0, 0] {
            stamps.extend(word.to_ne_bytes());
        }
        let bytes = encode(&[
            (SOL_UDP, libc::UDP_GRO, &1448i32.to_ne_bytes()),
            (99, 99, &[1, 2, 3]),
            (SOL_SOCKET, libc::SO_RXQ_OVFL, &u32::MAX.to_ne_bytes()),
            (SOL_SOCKET, libc::SCM_TIMESTAMPING, &stamps),
            (IPPROTO_IP, libc::IP_TOS, &[0x03]),
            (IPPROTO_IP, libc::IP_PKTINFO, &[1, 0, 0, 0, 192, 0, 2, 7, 192, 0, 2, 255]),
        ]);
        let expected = Ancillary {
            segment_size: Some(1448),
            arrived_at_ns: Some(7_123_456_789),
            dropped: Some(u32::MAX),
            tos: Some(3),
            destination: Some(IpAddr::from([192, 0, 2, 7])),
        };
        assert_eq!(Ancillary::parse(&bytes), expected);
    }

    #[test]
    fn an_empty_stamp_is_absent() {
        assert_eq!(software_stamp(&[0; 48]), None);
        assert_eq!(software_stamp(&[1; 7]), None);
    }

    #[test]
    fn a_message_that_does_not_fit_is_not_written() {
        assert_eq!(write(&mut [0; 8], &ControlMessage { level: 1, kind: 1, data: &[] }), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Ancillary::parse(&bytes);
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER);
        }

        #[test]
        fn a_plausible_length_field_does_not_make_it_panic(
            length in 0usize..64,
            level in prop_oneof![Just(SOL_UDP), Just(SOL_SOCKET), Just(IPPROTO_IP), Just(IPPROTO_IPV6)],
            kind in 0i32..110,
            tail in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend(level.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(tail);
            let _ = Ancillary::parse(&bytes);
        }

        #[test]
        fn what_was_written_is_read(list in proptest::collection::vec(
            (any::<i32>(), any::<i32>(), proptest::collection::vec(any::<u8>(), 0..20)), 0..5)) {
            let borrowed: Vec<(i32, i32, &[u8])> = list.iter().map(|(l, k, d)| (*l, *k, d.as_slice())).collect();
            let bytes = encode(&borrowed);
            let read: Vec<(i32, i32, &[u8])> = messages(&bytes).map(|m| (m.level, m.kind, m.data)).collect();
            prop_assert_eq!(read, borrowed);
        }
    }
}
