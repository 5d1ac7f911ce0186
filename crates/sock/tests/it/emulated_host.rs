//! The parts of an emulated host: namespaces and their names, TAP devices, their settings, processes in them.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use linerate_sock::netns::{self, NameState, NetnsId, with_netns_fd};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::routing::{LinkChange, RootQdisc, RoutingSocket, index_of, set_speed};
use linerate_sock::tap::{HEADER_BYTES, Tap, TapError};
use linerate_sock::{clock, iface, mount, proc, process};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

fn output(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn inside<T: Send>(netns: &OwnedFd, work: impl FnOnce() -> T + Send) -> T {
    with_netns_fd(netns, work).unwrap()
}

/// A namespace with a TAP of that name, which is up.
fn with_tap(name: &str) -> (OwnedFd, Tap, u32) {
    let netns = netns::create().unwrap();
    let (tap, index) = inside(&netns, || {
        let tap = Tap::create(name).unwrap();
        let index = index_of(name).unwrap();
        let up = LinkChange { up: Some(true), ..LinkChange::default() };
        RoutingSocket::open().unwrap().change(index, &up).unwrap();
        (tap, index)
    });
    (netns, tap, index)
}

fn start(netns: &OwnedFd, script: &str) -> Child {
    inside(netns, || {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Each script prints a line when it is ready.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    })
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_new_namespace_is_another_one_and_a_name_comes_and_goes() {
    let netns = netns::create().unwrap();
    let id = NetnsId::of(&netns).unwrap();
    assert_ne!(Some(id), NetnsId::of_process(std::process::id()));
    let name = format!("lr-name-{}", std::process::id());
    netns::pin(&netns, &name).unwrap();
    let NameState::Namespace(found) = netns::open_named(&name).unwrap() else { unreachable!() };
    assert_eq!(NetnsId::of(&found).unwrap(), id);
    assert!(output("ip", "netns list").contains(&name));
    assert_eq!(netns::pin(&netns, &name).unwrap_err().source.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(
        matches!(netns::open_named(&name).unwrap(), NameState::Namespace(_)),
        "the refusal changed nothing"
    );
    netns::unpin(&name).unwrap();
    assert!(matches!(netns::open_named(&name).unwrap(), NameState::Free));
    netns::unpin(&name).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_unmounted_name_is_distinguished_from_a_namespace() {
    let name = format!("lr-file-{}", std::process::id());
    netns::pin(&netns::create().unwrap(), &format!("{name}-first")).unwrap();
    fs::write(netns::path_of(&name).unwrap(), "").unwrap();
    assert!(matches!(netns::open_named(&name).unwrap(), NameState::Unmounted));
    for name in [name.clone(), format!("{name}-first")] {
        netns::unpin(&name).unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_interface_has_the_settings_that_it_was_given() {
    let (netns, _tap, index) = with_tap("eth0");
    inside(&netns, || {
        let routing = RoutingSocket::open().unwrap();
        let change = LinkChange {
            up: Some(true),
            mac: Some([2, 0, 0, 0, 0, 7]),
            mtu: Some(9000),
            queue_packets: Some(77),
            super_frame: Some(12_500),
            alias: Some("to the roof"),
        };
        routing.change(index, &LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
        routing.change(index, &change).unwrap();
        routing.add_address(index, "10.9.0.1".parse().unwrap(), 24).unwrap();
        routing.add_address(index, "fd99::1".parse().unwrap(), 64).unwrap();
        set_speed("eth0", 2500).unwrap();

        let link = output("ip", "-d link show eth0");
        for wanted in
            ["mtu 9000", "qlen 77", "02:00:00:00:00:07", "alias to the roof", ",UP", "gso_max_size 12500"]
        {
            assert!(link.contains(wanted), "{wanted}: {link}");
        }
        let info = iface::link("eth0").unwrap();
        assert_eq!((info.alias.as_deref(), info.queue_packets), (Some("to the roof"), Some(77)));
        assert_eq!(iface::link("lo").unwrap().alias, None);
        let addresses = output("ip", "addr show eth0");
        assert!(addresses.contains("inet 10.9.0.1/24"), "{addresses}");
        assert!(addresses.contains("inet6 fd99::1/64 scope global nodad"), "{addresses}");
        let settings = output("ethtool", "eth0");
        assert!(settings.contains("2500Mb/s") && settings.contains("Duplex: Full"), "{settings}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_root_discipline_is_replaced() {
    let (netns, _tap, index) = with_tap("eth0");
    inside(&netns, || {
        let routing = RoutingSocket::open().unwrap();
        let bucket = RootQdisc::TokenBucket { rate: 12_500_000, burst: 125_000, limit: 3_000_000 };
        routing.replace_root_discipline(index, &bucket).unwrap();
        let shown = output("tc", "-r qdisc show dev eth0");
        assert!(shown.contains("tbf") && shown.contains("root"), "{shown}");
        assert!(shown.contains("rate 100Mbit burst 125000b"), "{shown}");
        assert!(shown.contains("limit 3000000b") || shown.contains("limit 3Mb"), "{shown}");
        let fast = RootQdisc::TokenBucket { rate: 12_500_000_000, burst: 12_500_000, limit: 1_000_000_000 };
        routing.replace_root_discipline(index, &fast).unwrap();
        let shown = output("tc", "-r qdisc show dev eth0");
        assert!(shown.contains("rate 100Gbit"), "{shown}");
        routing.replace_root_discipline(index, &RootQdisc::Fifo { packets: 33 }).unwrap();
        let shown = output("tc", "qdisc show dev eth0");
        assert!(shown.contains("pfifo") && shown.contains("limit 33p"), "{shown}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn frames_cross_a_tap_both_ways_and_super_frames_come_whole() {
    let (netns, tap, index) = with_tap("tap7");
    assert_eq!(tap.name(), "tap7");
    // The new interface may already have sent something, such as router solicitations. Reads never block.
    while tap.read(&mut [0; 100]).unwrap().is_some() {}
    let sender = inside(&netns, || {
        RoutingSocket::open().unwrap().add_address(index, "10.9.0.1".parse().unwrap(), 24).unwrap();
        // Without a neighbour entry the kernel would first resolve the address.
        output("ip", "neigh add 10.9.0.2 lladdr 02:00:00:00:00:99 dev tap7");
        std::net::UdpSocket::bind("10.9.0.1:9000").unwrap()
    });
    let payload: Vec<u8> = (0..30_000).map(|i| (i % 251) as u8).collect();
    sender.connect("10.9.0.2:9000").unwrap();
    linerate_sock::batch::send_segments(&sender, &payload, 1000).unwrap();
    let mut frame = vec![0; 70_000];
    let length = loop {
        assert!(wait_for(&tap, Interest::READ, clock::now() + Duration::from_secs(10)).unwrap());
        let length = tap.read(&mut frame).unwrap().unwrap();
        // Multicast listener reports of the new interface arrive first.
        if frame[HEADER_BYTES..HEADER_BYTES + 6] == [2, 0, 0, 0, 0, 0x99] {
            break length;
        }
    };
    assert!(tap.has_udp_segments(), "this kernel is newer than 6.2");
    const HEADERS: usize = 14 + 20 + 8;
    assert_eq!(length, HEADER_BYTES + HEADERS + payload.len());
    assert_eq!(frame[HEADER_BYTES + HEADERS..length], payload);
    // virtio_net_hdr: flags, gso_type (5: UDP_L4), hdr_len, gso_size, ...
    assert_eq!((frame[1], u16::from_ne_bytes([frame[4], frame[5]])), (5, 1000));

    // Return it to its sender: swap the addresses and keep the rest.
    let mut back = frame[..length].to_vec();
    let (to, from) = (HEADER_BYTES..HEADER_BYTES + 6, HEADER_BYTES + 6..HEADER_BYTES + 12);
    back.splice(to.clone(), frame[from.clone()].to_vec());
    back.splice(from, frame[to].to_vec());
    let ip = HEADER_BYTES + 14;
    back.splice(ip + 12..ip + 16, frame[ip + 16..ip + 20].to_vec());
    back.splice(ip + 16..ip + 20, frame[ip + 12..ip + 16].to_vec());
    sender.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    tap.write(&back).unwrap();
    let mut received = vec![0; 70_000];
    assert_eq!(sender.recv(&mut received).unwrap(), 1000, "the kernel cut it");
    assert_eq!(received[..1000], payload[..1000]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_tap_without_its_program_is_a_pulled_cable_and_its_name_stays_taken() {
    let (netns, tap, _) = with_tap("eth0");
    inside(&netns, || {
        assert!(output("ip", "link show eth0").contains("LOWER_UP"));
        drop(tap);
        // The kernel takes note of it in a thread of its own.
        let until = clock::now() + Duration::from_secs(60);
        while !output("ip", "link show eth0").contains("NO-CARRIER") {
            assert!(!until.has_passed(), "it still looks connected");
            clock::sleep_until(clock::now() + Duration::from_millis(10));
        }
        assert!(matches!(Tap::create("eth0"), Err(TapError::Refused { .. })));
        assert!(matches!(Tap::create("a-name-too-long-"), Err(TapError::Refused { .. })));
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_fresh_sys_shows_the_interfaces_of_the_namespace_to_its_thread_only() {
    let (netns, _tap, index) = with_tap("eth7");
    let alias = LinkChange { alias: Some("seen from /sys"), ..LinkChange::default() };
    let seen = inside(&netns, || {
        RoutingSocket::open().unwrap().change(index, &alias).unwrap();
        mount::fresh_sys().unwrap();
        Command::new("cat").arg("/sys/class/net/eth7/ifalias").output().unwrap().stdout
    });
    assert_eq!(seen, b"seen from /sys\n");
    assert!(!fs::exists("/sys/class/net/eth7").unwrap());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn settings_of_the_network_are_those_of_the_threads_namespace() {
    let before = proc::sysctl("net.ipv4.tcp_retries2").unwrap();
    let netns = netns::create().unwrap();
    inside(&netns, || {
        proc::set_sysctl("net.ipv4.tcp_retries2", "3").unwrap();
        assert_eq!(proc::sysctl("net.ipv4.tcp_retries2").as_deref(), Some("3"));
    });
    assert_eq!(proc::sysctl("net.ipv4.tcp_retries2"), Some(before));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_chosen_processes_of_a_namespace_are_ended_and_those_that_do_not_listen_killed() {
    let [one, other, apart] = [(); 3].map(|()| netns::create().unwrap());
    let [id, other_id] = [&one, &other].map(|netns| NetnsId::of(netns).unwrap());
    let ids = BTreeSet::from([id, other_id]);
    let mut willing = start(&one, "echo; read line");
    let mut deaf = start(&other, "trap '' TERM; echo; read line");
    let spared = start(&one, "echo; read line");
    let elsewhere = start(&apart, "echo; read line");
    let all = [(willing.id(), id), (deaf.id(), other_id), (spared.id(), id)];
    assert_eq!(process::in_netns(&ids).unwrap(), BTreeMap::from(all));
    let chosen = [(willing.id(), id), (deaf.id(), other_id)];
    // Enough for a shell on a busy machine.
    let grace = Duration::from_secs(2);
    let ended = process::end_in_netns(&ids, grace, |pid, id| chosen.contains(&(pid, id))).unwrap();
    assert_eq!(ended, 2);
    assert_eq!(willing.wait().unwrap().signal(), Some(SIGTERM));
    assert_eq!(deaf.wait().unwrap().signal(), Some(SIGKILL));
    for mut child in [spared, elsewhere] {
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    assert!(process::in_netns(&ids).unwrap().is_empty());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn nothing_of_a_namespace_is_left_when_nobody_holds_it() {
    let (netns, tap, _) = with_tap("eth0");
    let id = NetnsId::of(&netns).unwrap();
    let mut child = start(&netns, "echo; read line");
    drop((netns, tap));
    assert_eq!(NetnsId::of_process(child.id()), Some(id), "a process keeps it alive");
    thread::scope(|scope| scope.spawn(|| child.kill()).join()).unwrap().unwrap();
    child.wait().unwrap();
    assert!(process::in_netns(&BTreeSet::from([id])).unwrap().is_empty());
}
