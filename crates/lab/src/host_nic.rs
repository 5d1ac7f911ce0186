//! The NIC of a host: its address, and the rate at which it accepts what the host sends.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_sock::SockError;
use linerate_sock::netns::with_netns_fd;
use linerate_sock::routing::{LinkChange, RootQdisc, RoutingSocket, index_of, set_speed, waiting_packets};

use crate::{HostTap, LabName};
use linerate_emu::link_direction::LinkDirection;
use linerate_emu::topology::TopologyLink;

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

/// The queueing discipline that holds back what the NIC at an end of a link could not send yet, so that TCP and
/// UDP sockets see the same backpressure as from a real NIC; `None` for a link of unlimited rate.
///
/// The kernel counts a packet with its Ethernet header only, the link also counts the rest of the frame: the
/// rate is that of full-size packets. It is slightly below that of the link, so that no queue builds up after
/// the NIC.
pub(super) fn discipline(link: &TopologyLink, end: usize) -> Option<RootQdisc> {
    const BELOW_THE_LINE: f64 = 200e-6;
    // The longest delay of the kernel's timers that is compensated. It is also the longest queue that the NIC
    // builds by itself.
    const BURST_SECONDS: f64 = 4e-3;
    const MIN_LIMIT: f64 = 10e6;
    const LIMIT_SECONDS: f64 = 0.1;
    let direction = &link.directions[end];
    let counted = direction.mtu + ETHERNET;
    let share = f64::from(counted) / direction.framing.wire(counted) as f64;
    let rate = bps_of_members(link, end)? / 8.0 * share * (1.0 - BELOW_THE_LINE);
    // Conversion from f64 saturates.
    Some(RootQdisc::TokenBucket {
        rate: rate as u64,
        burst: ((rate * BURST_SECONDS) as u32).max(longest_frame(direction)),
        limit: (rate * LIMIT_SECONDS).max(MIN_LIMIT) as u32,
    })
}

/// The rate of all members of a link together, from one of its ends; `None` if it is unlimited.
fn bps_of_members(link: &TopologyLink, end: usize) -> Option<f64> {
    link.directions[end].rate.map(|rate| rate.bps() * f64::from(link.members.max(1)))
}

/// The longest GSO frame of full-size packets, as the kernel counts it: with a header for each packet. A bucket
/// must hold it, because the kernel would segment a longer one.
fn longest_frame(direction: &LinkDirection) -> u32 {
    /// Ethernet, IPv6, and TCP with all its options.
    const MAX_HEADERS: u32 = ETHERNET + 40 + 60;
    let bytes = super_frame_bytes(direction);
    bytes + bytes.div_ceil(direction.mtu.max(1)) * MAX_HEADERS
}

/// A NIC of a running lab, for changes of its link.
#[derive(Debug)]
pub(super) struct HostNic {
    /// Index of the link in the topology.
    pub(super) link: usize,
    /// Which of its ends.
    pub(super) end: usize,
    /// The network namespace of its host.
    netns: OwnedFd,
    /// Name of its interface.
    interface: String,
    /// The bucket in force: frames up to this length may wait in its queue. 0 without a bucket.
    burst: AtomicU32,
}

impl HostNic {
    /// The NIC of an interface of a new lab.
    pub(super) fn new(tap: &HostTap, link: &TopologyLink, netns: OwnedFd) -> Self {
        let burst = discipline(link, tap.end).map_or(0, burst_of).into();
        Self { link: tap.link, end: tap.end, netns, interface: tap.tap.name().to_owned(), burst }
    }

    /// Sets the NIC's rate, and the speed reported to programs, to those of the changed link. On a kernel that
    /// does not support this it stays as it was when the lab came up.
    ///
    /// # Errors
    /// The host's network namespace cannot be entered.
    pub(super) fn follow(&self, link: &TopologyLink) -> Result<(), SockError> {
        with_netns_fd(&self.netns, || {
            let index = index_of(&self.interface)?;
            let routing = RoutingSocket::open()?;
            let super_frame = Some(super_frame_bytes(&link.directions[self.end]));
            let _ = routing.change(index, &LinkChange { super_frame, ..LinkChange::default() });
            self.set_discipline(&routing, index, discipline(link, self.end));
            if let Some(mbps) = speed_mbps(link, self.end) {
                let _ = set_speed(&self.interface, mbps);
            }
            Ok(())
        })?
    }

    /// Replaces the discipline.
    ///
    /// A token bucket that replaces another one keeps its queue, and never has the tokens for a frame that is
    /// longer than itself: nothing would leave the host any more. So a bucket becomes smaller only while nothing
    /// waits.
    fn set_discipline(&self, routing: &RoutingSocket, index: u32, wanted: Option<RootQdisc>) {
        let unpaced = RootQdisc::Fifo { packets: QUEUE_PACKETS };
        let mut discipline = wanted.unwrap_or(unpaced);
        let old_burst = self.burst.load(Ordering::Relaxed);
        if let RootQdisc::TokenBucket { burst, .. } = &mut discipline
            && *burst < old_burst
        {
            if waiting_packets(index).is_ok_and(|packets| packets == 0) {
                // No queue passes to a discipline of another kind: a frame that came after the count is dropped.
                let _ = routing.replace_root_discipline(index, &unpaced);
            } else {
                *burst = (*burst).max(old_burst.min(MAX_WAITING_FRAME));
            }
        }
        self.burst.store(burst_of(discipline), Ordering::Relaxed);
        let _ = routing.replace_root_discipline(index, &discipline);
    }
}

/// Longer than any GSO frame with a header for each of its packets.
const MAX_WAITING_FRAME: u32 = 81_920;

/// The queue length of an interface without pacing: the kernel's default.
const QUEUE_PACKETS: u32 = 1000;

/// The bucket of a discipline, bytes; 0 if it has none.
const fn burst_of(discipline: RootQdisc) -> u32 {
    match discipline {
        RootQdisc::TokenBucket { burst, .. } => burst,
        RootQdisc::Fifo { .. } => 0,
    }
}

/// The link speed reported to programs, that of all members together; `None` for a link of unlimited rate.
///
/// # Units
/// megabits per second, at least 1
pub(super) fn speed_mbps(link: &TopologyLink, end: usize) -> Option<u32> {
    bps_of_members(link, end).map(|bps| (bps / 1e6).round().max(1.0) as u32)
}

/// The longest GSO frame that a host may send. The emulated link delivers it as a whole, after the time of all
/// its packets on one member, whereas a NIC would send its packets one by one; so it must not be long: it
/// delays every acknowledgement.
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
    use linerate_emu::packet_batch::{Framing, HashFields};
    use linerate_units::Bitrate;

    fn direction(bps: f64, mtu: u32, tags: u8) -> LinkDirection {
        LinkDirection {
            rate: Bitrate::from_bps(bps),
            mtu,
            framing: Framing { tags },
            ..LinkDirection::default()
        }
    }

    /// A link of a host at its first end, with a direction back that nothing here may use.
    fn lag(members: u32, direction: LinkDirection) -> TopologyLink {
        TopologyLink {
            name: "a".to_owned(),
            ends: ["a", "s"].map(str::to_owned),
            directions: [
                direction,
                LinkDirection { rate: Bitrate::from_bps(64e3), ..LinkDirection::default() },
            ],
            members,
            hash: HashFields::default(),
            nic: true,
        }
    }

    fn discipline_of(members: u32, direction: LinkDirection) -> Option<RootQdisc> {
        discipline(&lag(members, direction), 0)
    }

    #[test]
    fn the_bucket_runs_just_below_the_line() {
        // 125 MB/s of link rate, of which 1514 in 1538 bytes are counted: 123 049 414.8 bytes/s; less 200 ppm:
        // 123 024 804.9.
        let expected = RootQdisc::TokenBucket { rate: 123_024_804, burst: 492_099, limit: 12_302_480 };
        assert_eq!(discipline_of(1, direction(1e9, 1500, 0)), Some(expected));
        // 12.5 MB/s with a tag, 1514 in 1542 bytes: 12 273 022.0 bytes/s; less 200 ppm: 12 270 567.4.
        let expected = RootQdisc::TokenBucket { rate: 12_270_567, burst: 49_082, limit: 10_000_000 };
        assert_eq!(discipline_of(1, direction(100e6, 1500, 1)), Some(expected));
        // At 125 GB/s the limit exceeds 32 bits.
        let Some(RootQdisc::TokenBucket { limit, .. }) = discipline_of(1, direction(1e12, 9000, 0)) else {
            unreachable!()
        };
        assert_eq!(limit, u32::MAX);
        assert_eq!(discipline_of(1, LinkDirection::default()), None);
    }

    #[test]
    fn the_nic_of_a_lag_has_the_rate_of_all_members() {
        // Twice 123 024 804.9 bytes/s.
        let expected = RootQdisc::TokenBucket { rate: 246_049_609, burst: 984_198, limit: 24_604_960 };
        assert_eq!(discipline_of(2, direction(1e9, 1500, 0)), Some(expected));
        assert_eq!(speed_mbps(&lag(2, direction(1e9, 1500, 0)), 0), Some(2000));
        assert_eq!(discipline_of(2, LinkDirection::default()), None);
        assert_eq!(speed_mbps(&lag(2, LinkDirection::default()), 0), None);
    }

    #[test]
    fn the_bucket_of_a_slow_line_holds_two_packets_and_no_queue_beyond() {
        let burst = |bps, mtu| burst_of(discipline_of(1, direction(bps, mtu, 0)).unwrap());
        // 4 ms of 1.23 MB/s.
        assert_eq!(burst(10e6, 1500), 4920);
        // Two packets of 1500 bytes with headers of up to 114 bytes each: 24 ms at 1 Mb/s.
        assert_eq!((burst(1e6, 1500), burst(1e3, 1500)), (3228, 3228));
        for bps in [1e3, 1e6, 10e6, 100e6, 1e9, 1e12] {
            for mtu in [576, 1500, 9000, 65_521] {
                // The kernel drops a packet that is longer than the bucket. It may have two VLAN tags.
                assert!(burst(bps, mtu) >= mtu + ETHERNET + 8, "{bps} b/s, MTU {mtu}");
                assert!(
                    burst(bps, mtu) >= super_frame_bytes(&direction(bps, mtu, 0)),
                    "{bps} b/s, MTU {mtu}"
                );
            }
        }
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
        let speed = |bps| speed_mbps(&lag(1, direction(bps, 1500, 0)), 0);
        assert_eq!([speed(1e9), speed(2.5e9), speed(64e3)], [Some(1000), Some(2500), Some(1)]);
        assert_eq!(speed_mbps(&lag(1, LinkDirection::default()), 0), None);
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
