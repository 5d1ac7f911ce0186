//! The NIC of a host: its address, and the rate at which it accepts what the host sends.

use std::os::fd::OwnedFd;

use linerate_sock::SockError;
use linerate_sock::netns::with_netns_fd;
use linerate_sock::routing::{LinkChange, RootQdisc, RoutingSocket, index_of, set_speed};

use crate::LabName;
use linerate_emu::link_direction::LinkDirection;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// The Ethernet address of a host's interface at a link: the same whenever the lab is created, and different
/// for every lab, host and link.
///
/// # Source
/// IEEE 802c: the second bit of the first byte marks a locally administered address
pub(super) fn mac(lab: &LabName, host: &str, link: usize) -> [u8; 6] {
    let text = format!("{lab}/{host}/{link}");
    let [_, _, mut mac @ ..] = fnv1a(text.as_bytes()).to_be_bytes();
    mac[0] = mac[0] & 0b1111_1100 | 0b10;
    mac
}

/// The 64-bit FNV-1a hash of Fowler, Noll and Vo: unlike that of the standard library, it never changes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The queueing discipline that holds back what the NIC could not send yet, so that TCP and UDP sockets see the
/// same backpressure as from a real NIC; `None` for a link of unlimited rate.
///
/// The kernel counts a packet with its Ethernet header only, the link also counts the rest of the frame: the
/// rate is that of full-size packets. It is slightly below that of the link, so that no queue builds up after
/// the NIC.
pub(super) fn discipline(direction: &LinkDirection) -> Option<RootQdisc> {
    const BELOW_THE_LINE: f64 = 200e-6;
    // Above the longest GSO frame with a header for each of its packets: a longer one would be segmented.
    const MIN_BURST: f64 = 81_920.0;
    // The longest delay of the kernel's timers that is compensated. It is also the longest queue that the NIC
    // builds by itself.
    const BURST_SECONDS: f64 = 4e-3;
    const MIN_LIMIT: f64 = 10e6;
    const LIMIT_SECONDS: f64 = 0.1;
    let counted = direction.mtu + ETHERNET;
    let share = f64::from(counted) / direction.framing.wire(counted) as f64;
    let rate = direction.rate?.bps() / 8.0 * share * (1.0 - BELOW_THE_LINE);
    // Conversion from f64 saturates.
    Some(RootQdisc::TokenBucket {
        rate: rate as u64,
        burst: (rate * BURST_SECONDS).max(MIN_BURST) as u32,
        limit: (rate * LIMIT_SECONDS).max(MIN_LIMIT) as u32,
    })
}

/// A NIC of a running lab, for changes of its link.
#[derive(Debug)]
pub(super) struct HostNic {
    /// Index of the link in the topology.
    pub(super) link: usize,
    /// Which of its ends.
    pub(super) end: usize,
    /// The network namespace of its host.
    pub(super) netns: OwnedFd,
    /// Name of its interface.
    pub(super) interface: String,
}

impl HostNic {
    /// Sets the NIC's rate, and the speed reported to programs, to those of the changed link. On a kernel that
    /// does not support this it stays as it was when the lab came up.
    ///
    /// # Errors
    /// The host's network namespace cannot be entered.
    pub(super) fn follow(&self, direction: &LinkDirection) -> Result<(), SockError> {
        with_netns_fd(&self.netns, || {
            let index = index_of(&self.interface)?;
            let endless = RootQdisc::Fifo { packets: QUEUE_PACKETS };
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

/// The queue length of an interface without pacing: the kernel's default.
const QUEUE_PACKETS: u32 = 1000;

/// The link speed reported to programs, `None` for a link of unlimited rate.
///
/// # Units
/// megabits per second, at least 1
pub(super) fn speed_mbps(direction: &LinkDirection) -> Option<u32> {
    direction.rate.map(|rate| (rate.bps() / 1e6).round().max(1.0) as u32)
}

/// The longest GSO frame that a host may send. The emulated link delivers it as a whole, after the time of all
/// its packets, whereas a NIC would send its packets one by one; so it must not be long: it delays every
/// acknowledgement.
///
/// # Units
/// bytes; at least two packets, so that the hosts still benefit
pub(super) fn super_frame_bytes(direction: &LinkDirection) -> u32 {
    // Half of this doubles the load on the switch.
    const LINE_SECONDS: f64 = 200e-6;
    const MAX_SUPER_FRAME_BYTES: u32 = 65_536;
    let long = direction.rate.map_or(f64::INFINITY, |rate| rate.bps() / 8.0 * LINE_SECONDS);
    // Conversion from f64 saturates.
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
        // 125 MB/s of link rate, of which 1514 in 1538 bytes are counted: 123 049 414.8 bytes/s; less 200 ppm:
        // 123 024 804.9.
        let expected = RootQdisc::TokenBucket { rate: 123_024_804, burst: 492_099, limit: 12_302_480 };
        assert_eq!(discipline(&direction(1e9, 1500, 0)), Some(expected));
        // 12.5 MB/s with a tag, 1514 in 1542 bytes: 12 273 022.0 bytes/s; less 200 ppm: 12 270 567.4.
        let expected = RootQdisc::TokenBucket { rate: 12_270_567, burst: 81_920, limit: 10_000_000 };
        assert_eq!(discipline(&direction(100e6, 1500, 1)), Some(expected));
        // At 125 GB/s the limit exceeds 32 bits.
        let Some(RootQdisc::TokenBucket { limit, .. }) = discipline(&direction(1e12, 9000, 0)) else {
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
    fn programs_get_a_whole_number_of_megabits() {
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
        // The published hashes of the empty text, and of "a".
        assert_eq!((fnv1a(b""), fnv1a(b"a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
    }
}
