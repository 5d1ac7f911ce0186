//! Tests that create network namespaces.
use std::process::Command;

use linerate_sock::iface::{
    ConnectionEnds, EMULATED_LINE, InterfaceKind, addresses, link, of_local_address, towards,
};
use linerate_sock::netns::with_netns;
use linerate_sock::open::connect_udp;
use linerate_sock::{Moved, SocketOptions, proc, stream};

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Two namespaces joined by a veth pair; removed when dropped.
struct VethPair {
    left: String,
    right: String,
}

impl VethPair {
    fn new(name: &str) -> Self {
        let id = std::process::id();
        let cable = Self { left: format!("lr-{name}-{id}-l"), right: format!("lr-{name}-{id}-r") };
        let (left, right) = (&cable.left, &cable.right);
        ip(&format!("netns add {left}"));
        ip(&format!("netns add {right}"));
        ip(&format!("-n {left} link add end0 mtu 9000 type veth peer name end0 netns {right}"));
        ip(&format!("-n {left} addr add 10.99.0.1/24 dev end0"));
        ip(&format!("-n {right} addr add 10.99.0.2/24 dev end0"));
        for end in [left, right] {
            ip(&format!("-n {end} link set end0 up"));
        }
        cable
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        for end in [&self.left, &self.right] {
            let _ = Command::new("ip").args(["netns", "del", end]).status();
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_thread_in_a_namespace_sees_its_interfaces_and_counters_only() {
    let cable = VethPair::new("see");
    let outside = addresses().unwrap();
    let (info, names, devices) = with_netns(&cable.left, || {
        let info = towards("10.99.0.2:9".parse().unwrap()).unwrap();
        (info, addresses().unwrap(), proc::net::devices().unwrap())
    })
    .unwrap();
    assert_eq!((info.name.as_str(), info.kind, info.mtu), ("end0", InterfaceKind::Veth, 9000));
    assert_eq!(info.speed_bps, None, "a veth's speed is invented");
    assert_eq!(info.offloads.tso, Some(true));
    assert!(names.iter().any(|entry| entry.address.to_string() == "10.99.0.1"));
    assert!(devices.contains_key("end0") && !devices.contains_key("eth0"));
    assert_eq!(addresses().unwrap(), outside, "the caller's thread stayed outside");
    assert!(link("end0").is_err());
}

/// Two interfaces of one host lead to one network. What it sends leaves through the one that the route names, even if the
/// other one has the source address.
#[test]
#[ignore = "needs root and network namespaces"]
fn the_interface_of_a_connection_is_that_of_its_route_and_not_that_of_its_address() {
    let cable = VethPair::new("two");
    let (left, right) = (&cable.left, &cable.right);
    ip(&format!("-n {left} link add end1 type veth peer name end1 netns {right}"));
    ip(&format!("-n {left} addr add 10.99.0.3/32 dev end1"));
    for end in [left, right] {
        ip(&format!("-n {end} link set end1 up"));
        ip(&format!("-n {end} link set lo up"));
    }
    for interface in ["end0", "end1"] {
        ip(&format!("-n {left} addr add fe80::1/64 dev {interface} nodad"));
    }
    with_netns(left, || {
        let name = |local: &str, peer: &str, device| {
            let [local, peer] = [local, peer].map(|end| end.parse().unwrap());
            ConnectionEnds { local, peer, device }.interface().unwrap().name
        };
        assert_eq!(of_local_address("10.99.0.3".parse().unwrap()).unwrap().name, "end1");
        assert_eq!(name("10.99.0.3:1", "10.99.0.2:9", None), "end0");
        assert_eq!(name("[::ffff:10.99.0.3]:1", "[::ffff:10.99.0.2]:9", None), "end0");
        let bound = Some(link("end1").unwrap().index);
        assert_eq!(name("10.99.0.3:1", "10.99.0.2:9", bound), "end1");
        assert_eq!(name("10.99.0.1:1", "10.99.0.3:9", None), "lo");
        // Every interface has this network; the scope tells which one is meant.
        let scoped = |index| format!("[fe80::9%{index}]:9");
        assert_eq!(name("[fe80::1]:1", &scoped(link("end1").unwrap().index), None), "end1");
        assert_eq!(name("[fe80::1]:1", &scoped(link("end0").unwrap().index), None), "end0");
    })
    .unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_programs_interface_has_a_line_rate_only_if_its_alias_says_that_it_is_an_emulated_line() {
    let cable = VethPair::new("tap");
    ip(&format!("-n {} tuntap add tap0 mode tap", cable.left));
    with_netns(&cable.left, || {
        let strange = link("tap0").unwrap();
        assert_eq!(
            (strange.kind, strange.speed_bps, strange.has_line_rate()),
            (InterfaceKind::Tun, None, false)
        );
        ip(&format!("link set tap0 alias {EMULATED_LINE}"));
        // A rate that no driver reports by default.
        let set = Command::new("ethtool").args(["-s", "tap0", "speed", "2345", "duplex", "full"]).status();
        assert!(set.unwrap().success());
        let line = link("tap0").unwrap();
        assert_eq!((line.speed_bps, line.full_duplex), (Some(2_345_000_000), Some(true)));
        assert!(line.has_line_rate());
        ip("link set tap0 alias uplink");
        assert_eq!(link("tap0").unwrap().speed_bps, None);
    })
    .unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_offload_that_was_switched_off_is_seen() {
    let cable = VethPair::new("off");
    with_netns(&cable.left, || {
        let status =
            Command::new("ethtool").args(["-K", "end0", "tso", "off", "gro", "on"]).status().unwrap();
        assert!(status.success());
        let offloads = link("end0").unwrap().offloads;
        assert_eq!((offloads.tso, offloads.gro), (Some(false), Some(true)));
    })
    .unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn large_bundles_and_the_queueing_discipline_are_seen() {
    let cable = VethPair::new("big");
    let left = &cable.left;
    ip(&format!("-n {left} link set end0 gso_max_size 196608 gro_max_size 131072 txqueuelen 77"));
    let status =
        Command::new("tc").args(["-n", left, "qdisc", "add", "dev", "end0", "root", "pfifo"]).status();
    assert!(status.unwrap().success());
    let info = with_netns(left, || link("end0").unwrap()).unwrap();
    assert_eq!((info.gso_max_bytes, info.gro_max_bytes), (Some(196_608), Some(131_072)));
    assert_eq!((info.largest_gso(), info.largest_gro()), (196_608, 131_072));
    assert!(info.tso_max_bytes.unwrap() >= 196_608 && info.gso_ipv4_max_bytes.is_some());
    assert_eq!((info.queue_packets, info.discipline.as_deref()), (Some(77), Some("pfifo")));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_datagram_above_the_mtu_is_refused_only_where_fragments_are_forbidden() {
    let cable = VethPair::new("df");
    with_netns(&cable.left, || {
        for (dont_fragment, expected) in [(false, None), (true, Some(libc::EMSGSIZE))] {
            let options = SocketOptions { dont_fragment, ..SocketOptions::default() };
            // IPv4-mapped, so that the socket is IPv6 and the packets are IPv4.
            let client = connect_udp("[::ffff:10.99.0.2]:9".parse().unwrap(), &options).unwrap();
            // 9000 minus 20 bytes of IP and 8 of UDP is the largest that fits.
            assert_eq!(stream::send(&client.socket, &[0; 8972]).unwrap(), Moved::Bytes(8972));
            let answer = stream::send(&client.socket, &[0; 8973]);
            assert_eq!(answer.err().and_then(|error| error.raw_os_error()), expected);
        }
    })
    .unwrap();
}
