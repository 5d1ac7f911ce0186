//! Departure times, looked at by a program in the kernel where packets leave: neither `fq` nor `etf` is needed for it.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use linerate_sock::departure::{DepartureBatch, DepartureClock};
use linerate_sock::netns::{create, with_netns_fd};
use linerate_sock::{SocketOptions, clock, iface, open, routing, stream};

/// An instruction: operation, destination and source register, offset, value.
type Instruction = (u8, u8, u8, i16, i32);

/// Drops every packet whose departure time is not within the next ten seconds of the clock that the helper reads.
///
/// # Source
/// RFC 9669; `linux/bpf.h`: `tstamp` in `__sk_buff` is at byte 152
fn within_ten_seconds(read_clock: i32) -> [Instruction; 13] {
    const PASS: i32 = 0;
    const DROP: i32 = 2;
    let two_seconds_later = (0x07, 0, 0, 0, 2_000_000_000); // r0 += 2 s
    [
        (0x79, 6, 1, 152, 0),        // r6 = packet.tstamp
        (0x85, 0, 0, 0, read_clock), // r0 = now
        (0xBD, 6, 0, 8, 0),          // if r6 <= r0, drop
        two_seconds_later,
        two_seconds_later,
        two_seconds_later,
        two_seconds_later,
        two_seconds_later,
        (0x2D, 6, 0, 2, 0), // if r6 > r0, drop
        (0xB7, 0, 0, 0, PASS),
        (0x95, 0, 0, 0, 0),
        (0xB7, 0, 0, 0, DROP),
        (0x95, 0, 0, 0, 0),
    ]
}

fn bpf(command: u32, words: &[u32]) -> OwnedFd {
    const SIZE: usize = 120;
    let mut attributes = [0u8; SIZE];
    for (place, word) in attributes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    // SAFETY: the attributes are as long as said; those of the callers point to memory that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), SIZE) };
    assert!(fd >= 0, "bpf command {command}: {}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just returned this descriptor, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

fn halves<T>(pointer: *const T) -> [u32; 2] {
    let address = pointer as u64;
    [address as u32, (address >> 32) as u32]
}

/// Runs the program on every packet that leaves through the interface, until the descriptors are closed.
fn watch(interface: u32, program: &[Instruction]) -> [OwnedFd; 2] {
    const LOAD: u32 = 5;
    const CREATE_LINK: u32 = 28;
    const SCHED_CLS: u32 = 3;
    const TCX_EGRESS: u32 = 47;
    let mut code = Vec::new();
    for &(operation, to, from, offset, value) in program {
        code.extend([operation, to | from << 4]);
        code.extend(offset.to_ne_bytes());
        code.extend(value.to_ne_bytes());
    }
    let ([code_low, code_high], [license_low, license_high]) =
        (halves(code.as_ptr()), halves(c"MIT".as_ptr()));
    let count = program.len() as u32;
    let loaded = bpf(LOAD, &[SCHED_CLS, count, code_low, code_high, license_low, license_high]);
    let link = bpf(CREATE_LINK, &[loaded.as_raw_fd().cast_unsigned(), interface, TCX_EGRESS, 0]);
    [loaded, link]
}

fn received(socket: &UdpSocket) -> Vec<Vec<u8>> {
    stream::set_recv_timeout(socket, Some(Duration::from_millis(300))).unwrap();
    let mut bytes = [0; 100];
    std::iter::from_fn(|| socket.recv(&mut bytes).ok().map(|count| bytes[..count].to_vec())).collect()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn every_datagram_carries_its_departure_time_by_the_clock_of_the_discipline() {
    const READ_MONOTONIC: i32 = 5;
    const READ_TAI: i32 = 208;
    for (departures, read_clock) in
        [(DepartureClock::Monotonic, READ_MONOTONIC), (DepartureClock::Tai, READ_TAI)]
    {
        with_netns_fd(&create().unwrap(), || {
            assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
            let _watched = watch(routing::index_of("lo").unwrap(), &within_ten_seconds(read_clock));
            let options = SocketOptions::default();
            let receiver = open::bind_udp((Ipv4Addr::LOCALHOST, 0).into(), &options).unwrap();
            let sender = open::connect_udp(receiver.local, &options).unwrap().socket;
            sender.send(b"no time").unwrap();
            DepartureBatch::enable(&sender, departures).unwrap();
            let mut batch = DepartureBatch::new(departures, 3);
            let now = clock::now();
            let times = [9000, 8000, 30_000, 9500].map(|ms| now + Duration::from_millis(ms));
            // Room for three, of which the last departs later than the program lets pass.
            assert_eq!(batch.send(&sender, b"one two late more", 4, times.into_iter()).unwrap(), 3);
            assert_eq!(batch.send(&sender, b"end", 4, times.into_iter()).unwrap(), 1);
            let arrived: Vec<&[u8]> = vec![b"one ", b"two ", b"end"];
            assert_eq!(received(&receiver.socket), arrived, "{departures:?}");
        })
        .unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_disciplines_of_every_queue_of_an_interface_are_listed() {
    with_netns_fd(&create().unwrap(), || {
        let run = |program: &str, arguments: &str| {
            let status = Command::new(program).args(arguments.split_whitespace()).status().unwrap();
            assert!(status.success(), "{program} {arguments}");
        };
        run("ip", "link add near numtxqueues 2 type veth peer name far");
        run("ip", "link set near up");
        let index = routing::index_of("near").unwrap();
        let kinds = || iface::queue_kinds(index).unwrap();
        assert_eq!(kinds(), ["noqueue"]);
        run("tc", "qdisc add dev near clsact");
        run("tc", "qdisc add dev near root handle 1: mq");
        run("tc", "qdisc add dev near parent 1:1 pfifo");
        run("tc", "qdisc add dev near parent 1:2 tbf rate 1mbit burst 4k limit 10k");
        let mut found = kinds();
        found.sort();
        assert_eq!(found, ["mq", "pfifo", "tbf"]);
        let far = routing::index_of("far").unwrap();
        assert_eq!(iface::queue_kinds(far).unwrap(), Vec::<String>::new(), "it is down");
    })
    .unwrap();
}
