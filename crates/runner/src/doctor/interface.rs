//! Interfaces: link, MTU, offloads, queueing, errors, and the NIC's slot.

use linerate_model::{CheckSection, CheckStatus, HostCheck};
use linerate_sock::iface::{EMULATED_LINE, InterfaceInfo, InterfaceKind, USUAL_MAX_PACKET};
use linerate_units::{Bitrate, Bytes};

use super::facts::{InterfaceFacts, Route};
use super::slot;

/// Minimum MTU for IPv6. Source: RFC 8200 §5.
const IPV6_MTU: u32 = 1280;
/// MTU of standard Ethernet.
const ETHERNET_MTU: u32 = 1500;
/// From this line rate on, one receive queue, and thus one CPU, is not enough.
const FAST_BPS: u64 = 10_000_000_000;

/// From this line rate on, packets of more than 64 KiB are worth a setting.
const BIG_TCP_BPS: u64 = 100_000_000_000;
/// Recommended size of such packets, bytes: a few jumbo frames more than the usual one, and still a small part of a
/// cache.
const BIG_TCP_PACKET: u32 = 196_608;

/// All checks of one interface.
pub(super) fn section(interface: &InterfaceFacts, cores: usize) -> CheckSection {
    let link = &interface.link;
    let mut checks = vec![carrier(link)];
    if link.has_line_rate() && link.running {
        checks.extend([Some(speed(link)), duplex(link)].into_iter().flatten());
    }
    checks.push(mtu(link));
    checks.extend(offloads(link));
    checks.extend(packet_sizes(link));
    checks.extend(discipline(link));
    checks.extend(errors(interface));
    checks.extend(receive_queues(interface, cores));
    checks.extend(interface.card.slot.and_then(|slot| slot::check(slot, link)));
    CheckSection { title: format!("Interface {} ({})", link.name, kind(link)), checks }
}

/// The route to a host.
pub(super) fn route(route: &Route) -> CheckSection {
    let link = &route.link;
    let speed = link.speed_bps.and_then(bitrate).map_or_else(|| kind(link), |speed| speed.to_string());
    let mut checks = vec![
        HostCheck::good("route.address", route.peer.to_string(), format!("{} resolves to it", route.host)),
        HostCheck::good("route.source", route.source.to_string(), "packets to it come from this address"),
        HostCheck::good(
            "route.interface",
            &link.name,
            format!("and are sent through this interface: {speed}"),
        ),
    ];
    if !link.running {
        let check = HostCheck::good("route.carrier", "no carrier", "");
        checks.push(check.judged(CheckStatus::Bad, "an interface without a carrier cannot send"));
    }
    if let Some(known) = route.path_mtu {
        let check = HostCheck::good(
            "route.mtu",
            format!("{known} B"),
            "largest packet on the path, as far as the \
                                                            kernel knows",
        );
        let text =
            format!("a router on the path reported a smaller MTU than the {} B of {}", link.mtu, link.name);
        // A packet of IP has at most 65,535 bytes, whatever the interface takes.
        checks.push(if known < link.mtu.min(u32::from(u16::MAX)) {
            check.judged(CheckStatus::Note, text)
        } else {
            check
        });
    }
    CheckSection { title: format!("Way to {}", route.host), checks }
}

fn id(link: &InterfaceInfo, what: &str) -> String {
    format!("{}.{what}", link.name)
}

fn bitrate(bps: u64) -> Option<Bitrate> {
    Bitrate::from_bps(bps as f64)
}

fn kind(link: &InterfaceInfo) -> String {
    let kind = match link.kind {
        InterfaceKind::Loopback => "loopback",
        InterfaceKind::Veth => "virtual cable",
        InterfaceKind::Tun => "a program's interface",
        InterfaceKind::Bridge => "bridge",
        InterfaceKind::Lag => "LAG",
        InterfaceKind::Vlan => "VLAN",
        InterfaceKind::Paravirtual => "hypervisor's NIC",
        InterfaceKind::Physical => "NIC",
        InterfaceKind::Virtual => "virtual",
    };
    match &link.driver {
        Some(driver) if driver != kind => format!("{kind}, {driver}"),
        _ => kind.to_owned(),
    }
}

/// Whether this is the NIC of a host in an emulated network.
fn is_emulated(link: &InterfaceInfo) -> bool {
    link.kind == InterfaceKind::Tun && link.alias.as_deref() == Some(EMULATED_LINE)
}

fn carrier(link: &InterfaceInfo) -> HostCheck {
    let check = HostCheck::good(id(link, "carrier"), "yes", "the link has a carrier");
    if link.running {
        return check;
    }
    let text = "enabled but without a carrier: check the cable, the transceiver and the peer's port";
    HostCheck { value: "no".to_owned(), ..check.judged(CheckStatus::Note, text) }
}

fn speed(link: &InterfaceInfo) -> HostCheck {
    const TWO_PAIRS_BPS: u64 = 100_000_000;
    let value =
        link.speed_bps.and_then(bitrate).map_or_else(|| "unknown".to_owned(), |rate| rate.to_string());
    let check = HostCheck::good(id(link, "speed"), value, "line rate");
    match link.speed_bps {
        None => check.judged(
            CheckStatus::Note,
            "the driver does not report the line rate, so results have no link ceiling",
        ),
        Some(bps) if bps <= TWO_PAIRS_BPS && !is_emulated(link) => {
            let text = "gigabit ports fall back to this rate on a cable with only two good pairs";
            check.judged(CheckStatus::Note, text).with_remedy(format!("ethtool -s {} autoneg on", link.name))
        }
        Some(_) => check,
    }
}

fn duplex(link: &InterfaceInfo) -> Option<HostCheck> {
    let check = HostCheck::good(id(link, "duplex"), "full", "both directions at the same time");
    if link.full_duplex? {
        return Some(check);
    }
    let text = "sending and receiving collide; usually one end negotiates and the other has a fixed setting";
    let check = HostCheck { value: "half".to_owned(), ..check.judged(CheckStatus::Bad, text) };
    Some(check.with_remedy(format!("ethtool -s {} autoneg on", link.name)))
}

fn mtu(link: &InterfaceInfo) -> HostCheck {
    let check = HostCheck::good(id(link, "mtu"), format!("{} B", link.mtu), "largest packet");
    let remedy = format!("ip link set {} mtu {ETHERNET_MTU}", link.name);
    if link.mtu < IPV6_MTU {
        return check.judged(CheckStatus::Bad, "IPv6 does not work below 1280").with_remedy(remedy);
    }
    if link.mtu < ETHERNET_MTU {
        return check.judged(
            CheckStatus::Note,
            "headers have a larger share than on plain Ethernet; expected for a tunnel",
        );
    }
    check
}

/// Without offloads, every packet of a fast flow costs the CPU as much as a GSO or GRO packet of many segments.
fn offloads(link: &InterfaceInfo) -> Vec<HostCheck> {
    let found = &link.offloads;
    // A virtual interface passes GSO packets on: nothing is cut or merged there. Linux creates veths without GRO.
    let card = matches!(link.kind, InterfaceKind::Physical | InterfaceKind::Paravirtual);
    let settings = [
        ("tso", found.tso.filter(|_| card), "the NIC segments TCP data"),
        ("gso", found.gso, "the kernel segments data as late as possible"),
        ("gro", found.gro.filter(|_| card), "received segments are merged early"),
        ("tx", found.tx_checksum.filter(|_| card), "the NIC computes checksums"),
        ("rx", found.rx_checksum.filter(|_| card), "the NIC verifies checksums"),
    ];
    let judge = |(name, on, good): (&str, Option<bool>, &str)| {
        let check = HostCheck::good(id(link, name), "on", good);
        if on? {
            return Some(check);
        }
        let text = "the CPU does this for every packet, which reduces the rate above about 1 Gb/s";
        let check = HostCheck { value: "off".to_owned(), ..check.judged(CheckStatus::Note, text) };
        Some(check.with_remedy(format!("ethtool -K {} {name} on", link.name)))
    };
    settings.into_iter().filter_map(judge).collect()
}

/// BIG TCP: packets of more than 64 KiB between the TCP stack and the driver, which saves CPU on fast links.
fn packet_sizes(link: &InterfaceInfo) -> Option<HostCheck> {
    let (gso, gro) = (link.largest_gso(), link.largest_gro());
    if gso == 0 {
        return None;
    }
    let shown = |bytes: u32| Bytes::new(u64::from(bytes)).to_string();
    let value = format!("GSO {}, GRO {}", shown(gso), shown(gro));
    let large = gso > USUAL_MAX_PACKET || gro > USUAL_MAX_PACKET;
    if large {
        let text =
            "largest packet before it is cut: BIG TCP. It saves CPU, and vmsplice and sendfile gain little";
        return Some(HostCheck::good(id(link, "big_tcp"), value, text));
    }
    let check =
        HostCheck::good(id(link, "big_tcp"), value, "largest packet before it is cut: BIG TCP is off");
    let fast = link.speed_bps.is_some_and(|bps| bps >= BIG_TCP_BPS);
    let device = link.tso_max_bytes.filter(|bytes| fast && *bytes > USUAL_MAX_PACKET);
    Some(match device {
        Some(most) => {
            let size = most.min(BIG_TCP_PACKET);
            let text = "on a link this fast, larger packets (BIG TCP) save CPU, and the device takes them";
            let v4 = format!(" gso_ipv4_max_size {size} gro_ipv4_max_size {size}");
            // Linux 6.3 and newer.
            let v4 = link.gso_ipv4_max_bytes.map_or(String::new(), |_| v4);
            let remedy = format!("ip link set {} gso_max_size {size} gro_max_size {size}{v4}", link.name);
            check.judged(CheckStatus::Note, text).with_remedy(remedy)
        }
        None => check,
    })
}

fn discipline(link: &InterfaceInfo) -> Option<HostCheck> {
    let name = link.discipline.as_deref()?;
    let check =
        HostCheck::good(id(link, "qdisc"), name, "this qdisc does not delay or drop packets deliberately");
    let remove = format!("tc qdisc del dev {} root", link.name);
    Some(match name {
        "tbf" if is_emulated(link) => {
            HostCheck { text: "this shaper sets the line rate of the emulated NIC".to_owned(), ..check }
        }
        "netem" => {
            check.judged(CheckStatus::Bad, "netem delays or drops packets deliberately").with_remedy(remove)
        }
        "tbf" | "htb" | "hfsc" | "cbq" => check
            .judged(CheckStatus::Bad, "a shaper may limit the rate to less than the line rate")
            .with_remedy(remove),
        "pfifo_fast" | "pfifo" | "bfifo" => {
            let text = "one queue for all flows: a bulk flow delays the others, and UDP is not paced";
            check
                .judged(CheckStatus::Note, text)
                .with_remedy(format!("tc qdisc replace dev {} root fq", link.name))
        }
        _ => check,
    })
}

fn errors(interface: &InterfaceFacts) -> Option<HostCheck> {
    let (received, sent) = (interface.counters?.received, interface.counters?.sent);
    let link = &interface.link;
    let (errors, dropped) = (received.errors + sent.errors, received.dropped + sent.dropped);
    let value = format!("{errors} errors, {dropped} drops");
    let check = HostCheck::good(id(link, "errors"), value, "since the interface was created");
    if errors > 0 {
        let text = "damaged frames come from cables, transceivers or a duplex mismatch; the count should not grow \
             during tests";
        return Some(check.judged(CheckStatus::Note, text).with_remedy(format!("ethtool -S {}", link.name)));
    }
    // A few packets of unknown protocols are dropped on every host.
    if dropped.saturating_mul(1000) > received.packets + sent.packets {
        let text = "more than one packet in a thousand was dropped on this host: the rings are too small or the \
             CPU is too slow";
        return Some(check.judged(CheckStatus::Note, text).with_remedy(format!("ethtool -S {}", link.name)));
    }
    Some(check)
}

fn receive_queues(interface: &InterfaceFacts, cores: usize) -> Option<HostCheck> {
    let link = &interface.link;
    if !matches!(link.kind, InterfaceKind::Physical | InterfaceKind::Paravirtual) {
        return None;
    }
    let queues = interface.card.receive_queues?;
    let check =
        HostCheck::good(id(link, "queues"), queues.to_string(), "receive queues, each served by one CPU");
    if queues > 1 || cores == 1 || link.speed_bps.is_none_or(|speed| speed < FAST_BPS) {
        return Some(check);
    }
    let text = "one CPU receives all packets, regardless of the number of flows";
    Some(
        check
            .judged(CheckStatus::Note, text)
            .with_remedy(format!("ethtool -L {} combined {cores}", link.name)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::iface::{self, Offloads};
    use linerate_sock::proc::net::parse_devices;
    use linerate_sock::proc::nic::{Nic, PcieLink};

    /// A well configured 10 Gb/s NIC.
    fn card() -> InterfaceFacts {
        let mut link = iface::link("lo").unwrap();
        link.name = "eth7".to_owned();
        link.kind = InterfaceKind::Physical;
        link.driver = Some("ixgbe".to_owned());
        (link.up, link.running) = (true, true);
        (link.speed_bps, link.full_duplex, link.mtu) = (Some(FAST_BPS), Some(true), 1500);
        link.discipline = Some("mq".to_owned());
        let mut offloads = Offloads::default();
        (offloads.tso, offloads.gso, offloads.gro) = (Some(true), Some(true), Some(true));
        (offloads.tx_checksum, offloads.rx_checksum) = (Some(true), Some(true));
        link.offloads = offloads;
        let mut card = Nic::default();
        card.slot = Some(PcieLink { transfers_per_second: 5e9, lanes: 8 });
        card.receive_queues = Some(8);
        InterfaceFacts { link, counters: None, card }
    }

    /// The checks that are not good, as `name status`.
    fn complaints(interface: &InterfaceFacts) -> Vec<String> {
        let section = section(interface, 8);
        let wrong = section.checks.iter().filter(|check| check.status != CheckStatus::Good);
        wrong.map(|check| format!("{} {}", check.id, check.status.name())).collect()
    }

    #[test]
    fn a_good_card_has_no_complaints() {
        assert_eq!(complaints(&card()), [""; 0]);
        assert_eq!(section(&card(), 8).title, "Interface eth7 (NIC, ixgbe)");
    }

    type Damage = fn(&mut InterfaceFacts);

    #[test]
    fn each_fault_is_found_alone() {
        let faults: [(Damage, &str); 12] = [
            (|card| card.link.full_duplex = Some(false), "eth7.duplex bad"),
            (|card| card.link.speed_bps = None, "eth7.speed note"),
            (|card| card.link.speed_bps = Some(100_000_000), "eth7.speed note"),
            (|card| card.link.running = false, "eth7.carrier note"),
            (|card| card.link.mtu = 1279, "eth7.mtu bad"),
            (|card| card.link.mtu = 1420, "eth7.mtu note"),
            (|card| card.link.offloads.gro = Some(false), "eth7.gro note"),
            (|card| card.link.discipline = Some("netem".to_owned()), "eth7.qdisc bad"),
            (|card| card.link.discipline = Some("tbf".to_owned()), "eth7.qdisc bad"),
            (|card| card.link.discipline = Some("pfifo_fast".to_owned()), "eth7.qdisc note"),
            (|of| of.card.receive_queues = Some(1), "eth7.queues note"),
            (|of| of.card.slot = Some(PcieLink { transfers_per_second: 2.5e9, lanes: 4 }), "eth7.pcie bad"),
        ];
        for (damage, complaint) in faults {
            let mut interface = card();
            damage(&mut interface);
            assert_eq!(complaints(&interface), [complaint]);
        }
    }

    #[test]
    fn large_packets_are_named_and_recommended_only_on_a_link_that_needs_them() {
        let with = |speed: u64, gso: u32, device: u32| {
            let mut fast = card();
            fast.link.speed_bps = Some(speed);
            (fast.link.gso_max_bytes, fast.link.gro_max_bytes) = (Some(65_536), Some(65_536));
            (fast.link.gso_ipv4_max_bytes, fast.link.tso_max_bytes) = (Some(gso), Some(device));
            fast.card.slot = None;
            let all = section(&fast, 8).checks;
            all.into_iter().find(|check| check.id.ends_with("big_tcp")).unwrap()
        };
        let off = with(10_000_000_000, 65_536, 524_280);
        assert_eq!((off.status, off.value.as_str()), (CheckStatus::Good, "GSO 64 KiB, GRO 64 KiB"));
        let hundred = with(100_000_000_000, 65_536, 524_280);
        assert_eq!(hundred.status, CheckStatus::Note);
        assert!(hundred.remedy.unwrap().contains("gro_ipv4_max_size 196608"));
        assert_eq!(
            with(100_000_000_000, 65_536, 65_536).status,
            CheckStatus::Good,
            "the device takes no more"
        );
        let on = with(100_000_000_000, 196_608, 524_280);
        assert_eq!((on.status, on.value.as_str()), (CheckStatus::Good, "GSO 192 KiB, GRO 64 KiB"));
    }

    #[test]
    fn errors_and_many_drops_are_notes_and_few_drops_are_not() {
        let with = |errors: u32, drops: u32| {
            let line = format!("eth7: 1 1000000 {errors} {drops} 0 0 0 0 1 1000 0 0 0 0 0 0");
            let counters = parse_devices(&format!("head\nhead\n{line}\n")).get("eth7").copied();
            complaints(&InterfaceFacts { counters, ..card() })
        };
        assert_eq!(with(0, 1000), [""; 0]);
        assert_eq!(with(0, 1002), ["eth7.errors note"]);
        assert_eq!(with(1, 0), ["eth7.errors note"]);
    }

    #[test]
    fn loopback_needs_no_wire() {
        let link = iface::link("lo").unwrap();
        let lo = section(&InterfaceFacts { link, counters: None, card: Nic::default() }, 8);
        assert!(lo.checks.iter().all(|check| !check.id.ends_with("speed") && !check.id.ends_with("tso")));
    }

    fn find(interface: &InterfaceFacts, id: &str) -> Option<HostCheck> {
        section(interface, 8).checks.into_iter().find(|check| check.id == id)
    }

    /// Regression: a veth, which Linux creates without GRO, was said to lose rate by it.
    #[test]
    fn only_a_nic_is_asked_to_merge_received_segments() {
        let without_gro = |kind| {
            let mut interface = card();
            (interface.link.kind, interface.link.offloads.gro) = (kind, Some(false));
            find(&interface, "eth7.gro").map(|check| check.status)
        };
        for kind in [InterfaceKind::Physical, InterfaceKind::Paravirtual] {
            assert_eq!(without_gro(kind), Some(CheckStatus::Note), "{kind:?}");
        }
        for kind in [
            InterfaceKind::Loopback,
            InterfaceKind::Veth,
            InterfaceKind::Tun,
            InterfaceKind::Bridge,
            InterfaceKind::Lag,
            InterfaceKind::Vlan,
            InterfaceKind::Virtual,
        ] {
            assert_eq!(without_gro(kind), None, "{kind:?}");
        }
    }

    /// Regression: the remedy removed the line rate of the emulated NIC.
    #[test]
    fn the_shaper_of_an_emulated_nic_is_its_line_and_not_a_fault() {
        let qdisc = |kind, alias: Option<&str>, discipline: &str| {
            let mut interface = card();
            interface.link.kind = kind;
            interface.link.alias = alias.map(str::to_owned);
            interface.link.discipline = Some(discipline.to_owned());
            let found = find(&interface, "eth7.qdisc").unwrap();
            (found.status, found.remedy.is_some())
        };
        let (good, bad) = ((CheckStatus::Good, false), (CheckStatus::Bad, true));
        assert_eq!(qdisc(InterfaceKind::Tun, Some("linerate-lab"), "tbf"), good);
        assert_eq!(qdisc(InterfaceKind::Tun, Some("linerate-lab"), "netem"), bad);
        assert_eq!(qdisc(InterfaceKind::Tun, Some("uplink"), "tbf"), bad);
        assert_eq!(qdisc(InterfaceKind::Tun, None, "tbf"), bad);
        assert_eq!(qdisc(InterfaceKind::Physical, Some("linerate-lab"), "tbf"), bad);
    }

    #[test]
    fn an_emulated_nic_has_no_cable_with_two_good_pairs() {
        let mut interface = card();
        interface.link.speed_bps = Some(100_000_000);
        assert_eq!(find(&interface, "eth7.speed").unwrap().status, CheckStatus::Note);
        interface.link.kind = InterfaceKind::Tun;
        interface.link.alias = Some("linerate-lab".to_owned());
        assert_eq!(find(&interface, "eth7.speed").unwrap().status, CheckStatus::Good);
    }

    #[test]
    fn a_path_smaller_than_its_interface_is_noted() {
        let link = card().link;
        let peer = "192.0.2.1".parse().unwrap();
        let at = |path_mtu| {
            let found =
                route(&Route { host: "peer".to_owned(), peer, source: peer, link: link.clone(), path_mtu });
            found.checks.last().map(|check| (check.id.clone(), check.status))
        };
        assert_eq!(at(Some(1500)), Some(("route.mtu".to_owned(), CheckStatus::Good)));
        assert_eq!(at(Some(1400)), Some(("route.mtu".to_owned(), CheckStatus::Note)));
        assert_eq!(at(None), Some(("route.interface".to_owned(), CheckStatus::Good)));
    }
}
