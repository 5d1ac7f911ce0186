//! The network card of a host: its address, and the pace at which it takes what the host sends.

use std::os::fd::OwnedFd;

use linerate_sock::SockError;
use linerate_sock::netns::with_netns_fd;
use linerate_sock::routing::{Discipline, LinkChange, RoutingSocket, index_of, set_speed};

use crate::LabName;
use linerate_emu::link_direction::LinkDirection;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// The Ethernet address of a host's interface at a link: the same whenever the lab is made, another one for every lab,
/// host and link.
///
/// # Source
/// IEEE 802c: the second bit of the first byte says that it is locally administered
pub(super) fn mac(lab: &LabName, host: &str, link: usize) -> [u8; 6] {
    let text = format!("{lab}/{host}/{link}");
    let [_, _, mut mac @ ..] = fnv1a(text.as_bytes()).to_be_bytes();
    mac[0] = mac[0] & 0b1111_1100 | 0b10;
    mac
}

/// Fowler, Noll and Vo's hash 1a over 64 bits: a few lines that never change, as the standard library's may.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The queueing discipline that holds back what the card could not send yet, so that TCP and UDP sockets feel the line as
/// they do on a real card; `None` on a line that is infinitely fast.
///
/// The kernel counts a packet with its Ethernet header only, the line counts what surrounds it too: the rate is that of
/// packets of full length. It is a little below the line's, so that no queue builds up behind the card.
pub(super) fn discipline(direction: &LinkDirection) -> Option<Discipline> {
    const BELOW_THE_LINE: f64 = 200e-6;
    // Above the longest super-frame with a header for each of its packets: a longer one would be cut.
    const MIN_BURST: f64 = 81_920.0;
    // So long a pause of the kernel's timers is made up for. It is also the longest queue that the card builds by itself.
    const BURST_SECONDS: f64 = 4e-3;
    const MIN_LIMIT: f64 = 10e6;
    const LIMIT_SECONDS: f64 = 0.1;
    let counted = direction.mtu + ETHERNET;
    let share = f64::from(counted) / direction.framing.wire(counted) as f64;
    let rate = direction.rate?.bps() / 8.0 * share * (1.0 - BELOW_THE_LINE);
    // A conversion from f64 stops at the largest number.
    Some(Discipline::TokenBucket {
        rate: rate as u64,
        burst: (rate * BURST_SECONDS).max(MIN_BURST) as u32,
        limit: (rate * LIMIT_SECONDS).max(MIN_LIMIT) as u32,
    })
}

/// A card of a running lab, for changes of its line.
#[derive(Debug)]
pub(super) struct HostNic {
    /// Number of the link in the topology.
    pub(super) link: usize,
    /// Which of its ends.
    pub(super) end: usize,
    /// The network of its host.
    pub(super) netns: OwnedFd,
    /// Name of its interface.
    pub(super) interface: String,
}

impl HostNic {
    /// Has the card send, and tell programs, as its changed line does. A kernel without the means goes on as it did when
    /// the lab came up.
    ///
    /// # Errors
    /// The host's network cannot be entered.
    pub(super) fn follow(&self, direction: &LinkDirection) -> Result<(), SockError> {
        with_netns_fd(&self.netns, || {
            let index = index_of(&self.interface)?;
            let endless = Discipline::Fifo { packets: QUEUE_PACKETS };
            let discipline = discipline(direction).unwrap_or(endless);
            let routing = RoutingSocket::open()?;
            let _ = routing.replace_root_discipline(index, &discipline);
            let super_frame = Some(super_frame_bytes(direction));
            let _ = routing.change(index, &LinkChange { super_frame, ..LinkChange::default() });
            if let Some(mbps) = speed_mbps(direction) {
                let _ = set_speed(&self.interface, mbps);
            }
            Ok(())
        })?
    }
}

/// What an interface without a pace of its own lets wait: the kernel's own figure.
const QUEUE_PACKETS: u32 = 1000;

/// The speed that programs are told, `None` on a line that is infinitely fast.
///
/// # Units
/// megabits per second, at least 1
pub(super) fn speed_mbps(direction: &LinkDirection) -> Option<u32> {
    direction.rate.map(|rate| (rate.bps() / 1e6).round().max(1.0) as u32)
}

/// The longest super-frame that a host may hand over. The emulated line passes it as one, after its whole time, where a
/// card would let its packets go one by one; so it may not be long: every acknowledgement would come late by it.
///
/// # Units
/// bytes; at least two packets, so that the hosts can still save work
pub(super) fn super_frame_bytes(direction: &LinkDirection) -> u32 {
    // Half of it costs the switch twice as much.
    const LINE_SECONDS: f64 = 200e-6;
    const MAX_SUPER_FRAME_BYTES: u32 = 65_536;
    let long = direction.rate.map_or(f64::INFINITY, |rate| rate.bps() / 8.0 * LINE_SECONDS);
    // A conversion from f64 stops at the largest number.
    (long as u32).max(2 * direction.mtu).min(MAX_SUPER_FRAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_emu::packet_batch::Framing;
    use linerate_units::Bitrate;

    fn direction(bps: f64, mtu: u32, tags: u8) -> LinkDirection {
        LinkDirection {
            rate: Bitrate::from_bps(bps),
            mtu,
            framing: Framing { tags },
            ..LinkDirection::default()
        }
    }

    #[test]
    fn the_bucket_runs_just_below_the_line() {
        // 125 MB/s of line, of which 1514 in 1538 bytes are counted: 123 049 414.8 bytes/s; less 200 ppm: 123 024 804.9.
        let expected = Discipline::TokenBucket { rate: 123_024_804, burst: 492_099, limit: 12_302_480 };
        assert_eq!(discipline(&direction(1e9, 1500, 0)), Some(expected));
        // 12.5 MB/s with a tag, 1514 in 1542 bytes: 12 273 022.0 bytes/s; less 200 ppm: 12 270 567.4.
        let expected = Discipline::TokenBucket { rate: 12_270_567, burst: 81_920, limit: 10_000_000 };
        assert_eq!(discipline(&direction(100e6, 1500, 1)), Some(expected));
        // 125 GB/s would wait in more than 32 bits can say.
        let Some(Discipline::TokenBucket { limit, .. }) = discipline(&direction(1e12, 9000, 0)) else {
            unreachable!()
        };
        assert_eq!(limit, u32::MAX);
        assert_eq!(discipline(&LinkDirection::default()), None);
    }

    #[test]
    fn a_super_frame_takes_a_fifth_of_a_millisecond_and_holds_two_packets() {
        assert_eq!(super_frame_bytes(&direction(1e9, 1500, 0)), 25_000);
        assert_eq!(super_frame_bytes(&direction(100e6, 1500, 0)), 3000);
        assert_eq!(super_frame_bytes(&direction(10e9, 9000, 0)), 65_536);
        assert_eq!(super_frame_bytes(&LinkDirection::default()), 65_536);
    }

    #[test]
    fn programs_are_told_a_whole_number_of_megabits() {
        assert_eq!(speed_mbps(&direction(1e9, 1500, 0)), Some(1000));
        assert_eq!(speed_mbps(&direction(2.5e9, 1500, 0)), Some(2500));
        assert_eq!(speed_mbps(&direction(64e3, 1500, 0)), Some(1));
        assert_eq!(speed_mbps(&LinkDirection::default()), None);
    }

    #[test]
    fn addresses_are_local_single_and_differ() {
        let lab: LabName = "pair".parse().unwrap();
        let other: LabName = "other".parse().unwrap();
        let all = [mac(&lab, "a", 0), mac(&lab, "a", 1), mac(&lab, "b", 0), mac(&other, "a", 0)];
        for (index, mac) in all.iter().enumerate() {
            assert_eq!(mac[0] & 0b11, 0b10, "{mac:x?}");
            assert!(!all[..index].contains(mac));
        }
        assert_eq!(mac(&lab, "a", 0), all[0]);
        // The published value of the empty text, and of "a".
        assert_eq!((fnv1a(b""), fnv1a(b"a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
    }
}
