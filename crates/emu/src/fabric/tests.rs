//! Whole networks in virtual time.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::link_direction::{Bucket, DelayJitter, GilbertElliott, LinkDirection, Loss, Reorder};
use crate::packet_batch::{HashFields, PacketSizes};
use crate::topology::{BufferSharing, SharedBuffer, Topology, TopologyHost, TopologyLink, TopologySwitch};

/// Numbered packets of one length, between hosts identified by the last byte of their addresses.
#[derive(Debug, Clone, PartialEq)]
struct SentPackets {
    numbers: Range<u64>,
    length: u32,
    spread: Span,
    from: u8,
    to: u8,
}

const ALL: u8 = 0xff;

fn mac(host: u8) -> [u8; 6] {
    if host == ALL { [0xff; 6] } else { [2, 0, 0, 0, 0, host] }
}

impl PacketBatch for SentPackets {
    fn sizes(&self) -> PacketSizes {
        let packets = (self.numbers.end - self.numbers.start) as u32;
        PacketSizes { packets, each: self.length, last: self.length }
    }

    fn spread(&self) -> Span {
        self.spread
    }

    fn set_spread(&mut self, spread: Span) {
        self.spread = spread;
    }

    fn split_off(&mut self, packets: u32) -> Self {
        let cut = self.numbers.start + u64::from(packets);
        assert!(cut > self.numbers.start && cut < self.numbers.end, "neither part may be empty");
        let rest = Self { numbers: cut..self.numbers.end, ..self.clone() };
        self.numbers.end = cut;
        rest
    }

    fn mark(&mut self) -> bool {
        false
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn flow_hash(&self, _: HashFields, seed: u64) -> u64 {
        u64::from(self.from ^ self.to) ^ seed
    }
}

impl Ethernet for SentPackets {
    fn destination(&self) -> [u8; 6] {
        mac(self.to)
    }

    fn source(&self) -> [u8; 6] {
        mac(self.from)
    }

    fn ip_packet_len(&self) -> u32 {
        self.length - 14
    }

    fn too_big(&self, _: u32, _: &Router) -> Option<Self> {
        Some(Self { numbers: 0..1, length: 70, spread: Span::ZERO, from: 0xfe, to: self.from })
    }
}

fn batch(from: u8, to: u8, numbers: Range<u64>) -> SentPackets {
    SentPackets { numbers, length: 1514, spread: Span::ZERO, from, to }
}

fn direction(mbps: f64) -> LinkDirection {
    LinkDirection { rate: Bitrate::from_bps(mbps * 1e6), ..LinkDirection::default() }
}

/// Hosts 0, 1, 2 … on one switch, host `n` on link `n`.
fn star(hosts: usize, direction: &LinkDirection, nic: bool) -> Topology {
    let name = |host: usize| format!("h{host}");
    let host = |number: usize| TopologyHost {
        name: name(number),
        v4: (Ipv4Addr::new(10, 0, 0, number as u8 + 1), 24),
        v6: (Ipv6Addr::LOCALHOST, 64),
        congestion: None,
        sysctl: std::collections::BTreeMap::new(),
    };
    let link = |number: usize| TopologyLink {
        name: name(number),
        ends: [name(number), "s".into()],
        directions: [direction.clone(), direction.clone()],
        members: 1,
        hash: HashFields::default(),
        nic,
    };
    Topology {
        name: "star".into(),
        about: String::new(),
        seed: 7,
        hosts: (0..hosts).map(host).collect(),
        switches: vec![TopologySwitch { name: "s".into(), shared: None }],
        links: (0..hosts).map(link).collect(),
    }
}

const ROUTER: Router =
    Router { mac: [2, 0, 0, 0, 0, 0xfe], v4: Ipv4Addr::LOCALHOST, v6: Ipv6Addr::LOCALHOST };

/// A network whose switch has learned every address.
fn network(topology: &Topology) -> Fabric<SentPackets> {
    let mut fabric = Fabric::new(topology, ROUTER);
    let hosts = topology.hosts.len();
    for host in 0..hosts {
        // To itself: the switch learns the address, and forwards to nobody.
        fabric.input(at(0), attachment(host), batch(host as u8, host as u8, 0..1));
        run(&mut fabric, at(1_000_000));
    }
    fabric
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_ns(ns)
}

fn attachment(host: usize) -> AttachmentPoint {
    AttachmentPoint { host, link: host }
}

/// Everything that arrives until `end`, and when; the fabric is advanced at each of its deadlines.
fn run(fabric: &mut Fabric<SentPackets>, end: Timestamp) -> Vec<Delivery<SentPackets>> {
    let mut all = Vec::new();
    loop {
        let now = fabric.deadline().unwrap_or(end).min(end);
        fabric.advance(now);
        while let Some(delivery) = fabric.output() {
            assert_eq!(delivery.at, now, "exactly at its time");
            all.push(delivery);
        }
        assert!(fabric.accounting().balanced(), "{:?}", fabric.accounting());
        if now == end && fabric.deadline().is_none_or(|next| next > end) {
            return all;
        }
    }
}

const START: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// A full-size packet on a gigabit link: 1538 bytes.
const PACKET_NS: u64 = 12_304;

#[test]
fn a_gigabit_port_sends_a_packet_every_12304_ns() {
    let mut fabric =
        network(&star(2, &LinkDirection { buffer: Bytes::new(100 << 20), ..direction(1000.0) }, false));
    for number in 0..1000 {
        fabric.input(at(START), attachment(0), batch(0, 1, 44 * number..44 * (number + 1)));
    }
    let got = run(&mut fabric, at(START + SECOND));
    let packets: u64 = got.iter().map(|d| u64::from(d.batch.packets())).sum();
    assert_eq!(packets, 44_000);
    assert_eq!(got.last().map(|d| d.at), Some(at(START + 44_000 * PACKET_NS)));
    let port = &fabric.ports(at(START + SECOND))[3];
    assert_eq!((port.name.as_str(), port.wire_bytes.get()), ("s>h1", 44_000 * 1538));
    assert_eq!(port.busy.as_ns(), 44_000 * PACKET_NS);
}

#[test]
fn drops_begin_at_the_configured_byte_whether_packets_come_one_by_one_or_in_batches() {
    for in_one_batch in [1_u64, 4, 44] {
        let buffer = 100_000;
        let mut fabric =
            network(&star(2, &LinkDirection { buffer: Bytes::new(buffer), ..direction(1000.0) }, false));
        for number in 0..440 / in_one_batch {
            let numbers = in_one_batch * number..in_one_batch * (number + 1);
            fabric.input(at(START), attachment(0), batch(0, 1, numbers));
        }
        let got = run(&mut fabric, at(START + SECOND));
        let packets: u64 = got.iter().map(|d| u64::from(d.batch.packets())).sum();
        // One is on the line at once, the others wait in whole frames of 1518 bytes.
        assert_eq!(packets, 1 + buffer / 1518, "batches of {in_one_batch}");
        let port = &fabric.ports(at(START + SECOND))[3];
        assert_eq!(port.dropped_queue, 440 - packets);
        assert_eq!(port.peak_bytes.get(), buffer / 1518 * 1518);
    }
}

#[test]
fn a_packet_that_has_started_gives_its_place_back_while_its_batch_is_being_sent() {
    let mut fabric =
        network(&star(2, &LinkDirection { buffer: Bytes::new(44 * 1518), ..direction(1000.0) }, false));
    fabric.input(at(START), attachment(0), batch(0, 1, 0..45));
    // Half of the batch has left: half a batch fits into the buffer.
    let later = START + 22 * PACKET_NS + 1;
    run(&mut fabric, at(later));
    fabric.input(at(later), attachment(0), batch(0, 1, 45..89));
    let got = run(&mut fabric, at(START + SECOND));
    assert_eq!(got.iter().map(|d| u64::from(d.batch.packets())).sum::<u64>(), 45 + 22);
}

#[test]
fn a_batch_passes_each_further_line_of_its_rate_with_the_delay_of_one_packet() {
    let mut fabric = network(&star(2, &direction(1000.0), true));
    fabric.input(at(START), attachment(0), batch(0, 1, 0..44));
    let got = run(&mut fabric, at(START + SECOND));
    // The NIC sends 44 packets, and the switch finishes one packet later.
    assert_eq!(got.last().map(|d| d.at), Some(at(START + 45 * PACKET_NS)));
    let port = &fabric.ports(at(START + SECOND))[3];
    assert_eq!(port.peak_bytes.get(), 0, "between lines of one rate nothing waits");
}

#[test]
fn two_disjoint_pairs_at_line_rate_meet_no_queue_and_two_into_one_do() {
    let mut fabric = network(&star(4, &direction(1000.0), true));
    for round in 0..200 {
        for (from, to) in [(0, 1), (2, 3)] {
            let now = at(START + round * 44 * PACKET_NS);
            run(&mut fabric, now);
            fabric.input(now, attachment(from), batch(from as u8, to, 44 * round..44 * (round + 1)));
        }
    }
    run(&mut fabric, at(START + SECOND));
    assert!(fabric.ports(at(START + SECOND)).iter().all(|port| port.dropped() == 0));
    for round in 0..200 {
        for from in [0, 2] {
            let now = at(2 * START + round * 44 * PACKET_NS);
            run(&mut fabric, now);
            fabric.input(now, attachment(from), batch(from as u8, 1, 44 * round..44 * (round + 1)));
        }
    }
    run(&mut fabric, at(3 * START));
    let port = &fabric.ports(at(3 * START))[3];
    // A megabyte of buffer holds 690 frames; 8800 exceed it.
    assert_eq!(port.peak_bytes.get(), (1 << 20) / 1518 * 1518);
    assert!((8100..8130).contains(&port.dropped_queue), "{}", port.dropped_queue);
}

#[test]
fn a_late_driver_gets_the_same_packets_at_the_same_times() {
    let rough = LinkDirection {
        delay: Span::from_ms(3),
        jitter: DelayJitter { most: Span::from_ms(1), may_overtake: true },
        loss: Loss::Random(Ratio::new(0.01).unwrap()),
        duplicate: Ratio::new(0.01).unwrap(),
        reorder: Reorder { probability: Ratio::new(0.02).unwrap(), by: Span::from_ms(2) },
        buffer: Bytes::new(60_000),
        ..direction(100.0)
    };
    let mut results = Vec::new();
    for exact in [true, false] {
        let mut fabric = network(&star(3, &rough, false));
        let mut rng = StdRng::seed_from_u64(5);
        let mut all = Vec::new();
        let mut now = START;
        for number in 0..2000 {
            now += rng.random_range(0..3_000_000);
            if exact {
                all.extend(run(&mut fabric, at(now)));
            } else {
                fabric.advance(at(now));
            }
            let from = rng.random_range(0..3);
            fabric.input(
                at(now),
                attachment(from),
                batch(from as u8, (from as u8 + 1) % 3, 40 * number..40 * (number + 1)),
            );
        }
        if exact {
            all.extend(run(&mut fabric, at(now + SECOND)));
        } else {
            fabric.advance(at(now + SECOND));
            all.extend(std::iter::from_fn(|| fabric.output()));
        }
        results.push(all.into_iter().map(|d| (d.at, d.attachment, d.batch)).collect::<Vec<_>>());
    }
    assert!(results[0].len() > 2000);
    assert_eq!(results[0], results[1]);
}

#[test]
fn ten_million_packets_are_all_accounted_for() {
    let rough = LinkDirection {
        police: Some(Bucket { rate: Bitrate::from_bps(900e6).unwrap(), burst: Bytes::new(100_000) }),
        shape: Some(Bucket { rate: Bitrate::from_bps(800e6).unwrap(), burst: Bytes::new(200_000) }),
        delay: Span::from_ms(5),
        jitter: DelayJitter { most: Span::from_ms(1), may_overtake: false },
        loss: Loss::Burst(GilbertElliott {
            to_bad: Ratio::new(1e-4).unwrap(),
            to_good: Ratio::new(0.1).unwrap(),
            loss_good: Ratio::new(1e-5).unwrap(),
            loss_bad: Ratio::new(0.5).unwrap(),
        }),
        duplicate: Ratio::new(1e-4).unwrap(),
        reorder: Reorder { probability: Ratio::new(1e-4).unwrap(), by: Span::from_ms(1) },
        ..direction(1000.0)
    };
    let mut topology = star(4, &rough, true);
    topology.switches[0].shared =
        Some(SharedBuffer { capacity: Bytes::new(3 << 20), policy: BufferSharing::Dynamic { alpha: 1.0 } });
    let mut fabric = network(&topology);
    let mut rng = StdRng::seed_from_u64(11);
    let (mut now, mut sent, mut got) = (START, fabric.accounting().entered, fabric.accounting().delivered);
    while sent < 10_000_000 {
        now += rng.random_range(0..600_000);
        fabric.advance(at(now));
        let (from, packets) = (rng.random_range(0..4), rng.random_range(1..=44));
        let to = if rng.random_range(0..1000) == 0 { ALL } else { rng.random_range(0..4) };
        fabric.input(at(now), attachment(from), batch(from as u8, to, sent..sent + packets));
        sent += packets;
        got += std::iter::from_fn(|| fabric.output()).map(|d| u64::from(d.batch.packets())).sum::<u64>();
    }
    fabric.advance(at(now + 10 * SECOND));
    got += std::iter::from_fn(|| fabric.output()).map(|d| u64::from(d.batch.packets())).sum::<u64>();
    let accounting = fabric.accounting();
    assert!(accounting.balanced(), "{accounting:?}");
    assert_eq!((accounting.entered, accounting.delivered, accounting.held), (sent, got, 0));
    assert!(
        accounting.dropped > 1000 && accounting.made > 1000 && accounting.delivered > 5_000_000,
        "{accounting:?}"
    );
}

#[test]
fn unknown_addresses_are_flooded_until_they_send() {
    let mut fabric = Fabric::new(&star(3, &direction(1000.0), false), ROUTER);
    fabric.input(at(0), attachment(0), batch(0, 1, 0..2));
    let reached: Vec<usize> = run(&mut fabric, at(SECOND)).iter().map(|d| d.attachment.host).collect();
    assert_eq!(reached, [1, 2], "everybody but the sender");
    fabric.input(at(SECOND), attachment(1), batch(1, 0, 0..1));
    assert_eq!(run(&mut fabric, at(2 * SECOND)).iter().map(|d| d.attachment.host).collect::<Vec<_>>(), [0]);
    fabric.input(at(2 * SECOND), attachment(0), batch(0, 1, 0..1));
    assert_eq!(run(&mut fabric, at(3 * SECOND)).iter().map(|d| d.attachment.host).collect::<Vec<_>>(), [1]);
    fabric.input(at(3 * SECOND), attachment(0), batch(0, ALL, 0..1));
    assert_eq!(run(&mut fabric, at(4 * SECOND)).len(), 2);
}

#[test]
fn packets_above_the_mtu_are_dropped_with_an_icmp_error_if_requested() {
    for (too_big, expected) in [(TooBig::Silent, 0), (TooBig::Icmp, 1)] {
        let mut topology = star(2, &direction(1000.0), false);
        topology.links[1].directions[1] = LinkDirection { mtu: 1400, too_big, ..direction(1000.0) };
        let mut fabric = network(&topology);
        fabric.input(at(START), attachment(0), batch(0, 1, 0..3));
        let got = run(&mut fabric, at(START + SECOND));
        assert_eq!(got.len(), expected);
        assert!(got.iter().all(|d| d.attachment.host == 0 && d.batch.from == 0xfe));
        assert_eq!(fabric.ports(at(START + SECOND))[3].dropped_too_big, 3);
    }
}

#[test]
fn a_shaper_lets_its_burst_pass_at_line_rate_and_the_rest_at_its_own() {
    let bucket = Bucket { rate: Bitrate::from_bps(100e6).unwrap(), burst: Bytes::new(100 * 1518) };
    let shaped = LinkDirection { shape: Some(bucket), buffer: Bytes::new(100 << 20), ..direction(1000.0) };
    let mut topology = star(2, &direction(1000.0), false);
    topology.links[1].directions[1] = shaped;
    let mut fabric = network(&topology);
    for number in 0..1000 {
        fabric.input(at(START), attachment(0), batch(0, 1, number..number + 1));
    }
    let got = run(&mut fabric, at(START + 10 * SECOND));
    assert_eq!(got.len(), 1000);
    let arrived = |number: usize| got[number].at.as_ns() - START;
    assert_eq!(arrived(99), 100 * PACKET_NS, "the bucket was full");
    // 1518 bytes at 100 Mb/s are 121.44 us. While the first hundred left, tokens for ten arrived.
    let last = arrived(999);
    let expected = 121_440 * 900;
    assert!(last.abs_diff(expected) < 2 * 121_440, "{last}, expected {expected}");
}

#[test]
fn a_change_while_packets_are_on_the_way_loses_none_and_keeps_their_order() {
    let slow = LinkDirection { delay: Span::from_ms(50), buffer: Bytes::new(100 << 20), ..direction(100.0) };
    let topology = star(2, &slow, false);
    let mut fabric = network(&topology);
    for number in 0..100 {
        fabric.input(at(START), attachment(0), batch(0, 1, number * 10..(number + 1) * 10));
    }
    let mut got = run(&mut fabric, at(START + 55_000_000));
    for (delay, mbps) in [(1, 1000.0), (20, 10.0), (0, 500.0)] {
        let changed =
            LinkDirection { delay: Span::from_ms(delay), buffer: Bytes::new(3000), ..direction(mbps) };
        let now = got.last().map_or(at(START + 55_000_000), |d| d.at) + Span::from_ms(2);
        got.extend(run(&mut fabric, now));
        fabric.set_direction(now, &topology.links[1], 1, 1, &changed);
    }
    got.extend(run(&mut fabric, at(START + 10 * SECOND)));
    let numbers: Vec<u64> = got.iter().flat_map(|d| d.batch.numbers.clone()).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[test]
fn each_flow_of_a_lag_keeps_its_member_and_members_add_up() {
    let mut topology = star(2, &LinkDirection { buffer: Bytes::new(10 << 20), ..direction(1000.0) }, false);
    topology.links[1].members = 2;
    topology.links[1].hash = HashFields { ip: true, ..HashFields::default() };
    let mut fabric = network(&topology);
    for number in 0..100 {
        fabric.input(at(START), attachment(0), batch(0, 1, number..number + 1));
        fabric.input(at(START), attachment(0), SentPackets { from: 9, ..batch(9, 1, number..number + 1) });
    }
    let got = run(&mut fabric, at(START + SECOND));
    assert_eq!(got.len(), 200);
    // Two flows whose hashes differ in the last bit: each has a gigabit of its own.
    assert_eq!(got.last().map(|d| d.at), Some(at(START + 100 * PACKET_NS)));
    let port = &fabric.ports(at(START + SECOND))[3];
    assert_eq!(port.members.iter().map(|member| member.packets).collect::<Vec<_>>(), [100, 100]);
}

/// What waits at the members of a LAG when two flows have sent more than a switch can keep.
fn waiting_at_members(policy: BufferSharing) -> Vec<u64> {
    let mut topology = star(2, &direction(1000.0), false);
    topology.links[1].members = 2;
    topology.links[1].hash = HashFields { ip: true, ..HashFields::default() };
    topology.switches[0].shared = Some(SharedBuffer { capacity: Bytes::new(1_500_000), policy });
    let mut fabric = network(&topology);
    for number in 0..2000 {
        fabric.input(at(START), attachment(0), batch(0, 1, number..number + 1));
        fabric.input(at(START), attachment(0), SentPackets { from: 9, ..batch(9, 1, number..number + 1) });
    }
    fabric.ports(at(START))[3].members.iter().map(|member| member.queue_bytes.get()).collect()
}

#[test]
fn each_member_of_a_lag_is_a_port_of_its_own_in_a_shared_buffer() {
    let near = |bytes: u64, share: u64| (share - 2 * 1514..=share + 1514).contains(&bytes);
    // Two congested ports at alpha 1 have a third of the memory each.
    let dynamic = waiting_at_members(BufferSharing::Dynamic { alpha: 1.0 });
    assert!(dynamic.iter().all(|&bytes| near(bytes, 500_000)), "{dynamic:?}");
    // Three ports: that of the other host and two members.
    let fixed = waiting_at_members(BufferSharing::Static);
    assert!(fixed.iter().all(|&bytes| near(bytes, 500_000)), "{fixed:?}");
}

#[test]
fn a_time_of_loss_that_has_passed_when_it_is_set_loses_nothing() {
    let topology = star(2, &direction(1000.0), false);
    let mut fabric = network(&topology);
    fabric.input(at(10 * SECOND), attachment(0), batch(0, 1, 0..1));
    run(&mut fabric, at(11 * SECOND));
    let lossy = LinkDirection { loss: Loss::AtTimes(vec![at(5 * SECOND)]), ..direction(1000.0) };
    fabric.set_direction(at(11 * SECOND), &topology.links[1], 1, 1, &lossy);
    fabric.input(at(12 * SECOND), attachment(0), batch(0, 1, 1..4));
    let got = run(&mut fabric, at(13 * SECOND));
    assert_eq!(got.iter().flat_map(|d| d.batch.numbers.clone()).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn the_time_to_the_nearest_host_is_known_after_a_round_and_one_that_changes_nothing() {
    let delayed = LinkDirection { delay: Span::from_ms(3), ..direction(1000.0) };
    let mut fabric = Fabric::<SentPackets>::new(&star(100, &delayed, false), ROUTER);
    assert_eq!(fabric.compute_min_delays(), 2);
    let known = [Some(Span::from_ms(3)), Some(Span::ZERO)];
    assert!(fabric.ahead.chunks(2).all(|wires| wires == known), "{:?}", fabric.ahead);
}
