//! NTttcp for Linux against a server that has the ports of older tools: its data ports 5001 and 5002 belong to
//! iperf 2 and NetPIPE.
//!
//! NTttcp has no package, so the test with the real program is skipped where it is not installed. The exchange of
//! the real 1.4.3 is repeated here with sockets, in the order in which it connects.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{
    Folder, IPERF, NTTTCP, Netns, Process, Program, ServeProcess, TIMEOUT, await_idle, eventually, pause,
    retried_when_busy, skipped,
};

const SYNC_PORT: u16 = 5000;
const PORTS: std::ops::RangeInclusive<u16> = 5001..=5016;

/// A server whose runs are archived in a folder.
fn classic_server(netns: &Netns, folder: &Folder) -> ServeProcess {
    let archive = folder.file("archive");
    let serve = ["serve", "-p", "0", "--classic", "--json", "--archive", &archive];
    ServeProcess::from(netns.exec(env!("CARGO_BIN_EXE_linerate"), &serve))
}

/// Bytes that the receiver of the last archived run counted.
fn archived_bytes(netns: &Netns, folder: &Folder) -> u64 {
    let archive = folder.file("archive");
    let args = ["export", "--archive", &archive, "--format", "json"];
    let export = || Process::start(netns.exec(env!("CARGO_BIN_EXE_linerate"), &args)).finish(TIMEOUT);
    // The server says that a run is over before its last events are in the archive.
    eventually("the run is archived", || {
        let document = Some(export()).filter(|done| done.code == Some(0))?.json();
        document["flows"][0]["receiver"]["bytes"].as_u64()
    })
}

/// A sender on one sync connection.
struct RawSender(TcpStream);

impl RawSender {
    fn connect() -> Self {
        Self(connect(SYNC_PORT))
    }

    fn ask(&mut self, number: u32) -> u32 {
        self.0.write_all(&number.to_be_bytes()).unwrap();
        let mut answer = [0; 4];
        self.0.read_exact(&mut answer).unwrap();
        u32::from_be_bytes(answer)
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Sends as much as possible for a second on all connections; returns the number of bytes.
fn send(streams: &mut [TcpStream]) -> u64 {
    let (block, until) = ([b'A'; 16_384], clock::now() + Duration::from_secs(1));
    let mut sent = 0;
    while !until.has_passed() {
        for stream in &mut *streams {
            stream.write_all(&block).unwrap();
            sent += block.len() as u64;
        }
        pause(Duration::from_millis(5));
    }
    sent
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_sender_that_connects_silently_before_the_start_has_all_its_ports() {
    // A busy machine moves nothing for a part of its second.
    retried_when_busy(|| {
        let (netns, folder) = (Netns::new(), Folder::new());
        let server = classic_server(&netns, &folder);
        let sent = netns.inside(|| {
            let mut sender = RawSender::connect();
            assert_eq!(sender.ask(u32::from(b'X')), 11, "idle");
            assert_eq!(sender.ask(1), 1);
            // As by default: 16 ports with four connections each, which say nothing.
            let mut data: Vec<TcpStream> =
                PORTS.flat_map(|port| (0..4).map(move |_| connect(port))).collect();
            assert_eq!(sender.ask(u32::from(b'R')), u32::from(b'R'));
            send(&mut data)
        });
        let ended = server.await_events("ended", 1);
        assert_eq!(ended["error"], Value::Null, "{}", server.stderr());
        // Both ends count until their own second is over.
        let received = archived_bytes(&netns, &folder);
        assert!(received <= sent && received > sent / 2, "{received} of {sent}");
        await_idle(&server);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_sender_without_its_place_hears_that_the_server_is_busy_and_a_silent_one_costs_others_nothing() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let server = classic_server(&netns, &folder);
    netns.inside(|| {
        let mut sender = RawSender::connect();
        assert_eq!(sender.ask(u32::from(b'X')), 11);
        assert_eq!(RawSender::connect().ask(u32::from(b'X')), 12, "busy");
        drop(sender);
    });
    let ended = server.await_events("ended", 1);
    assert!(ended["error"].as_str().unwrap().contains("left"), "{ended}");
    // The ports belong to the others again.
    let done = IPERF.ask(Program::Ours, &netns, &["-c", "127.0.0.1", "-t", "1", "-b", "1M"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    eventually("it is served", || (server.events("ended").len() == 2).then_some(()));
}

/// Lines of senders that the server must serve.
const LINES: [&str; 8] = [
    "-t 1",
    "-t 1 -P 1 -n 1",
    "-t 1 -P 2",
    "-t 1 -P 4 -n 2 -l 3",
    "-t 1 -P 2 -b 1K",
    "-t 1 -P 2 -W 1 -C 1",
    "-t 1 -P 2 -B 50M",
    "-t 1 -P 1 -L",
];

fn senders_are_served(sender: Program) {
    retried_when_busy(|| {
        let (netns, folder) = (Netns::new(), Folder::new());
        let server = classic_server(&netns, &folder);
        for (line, count) in LINES.into_iter().zip(1..) {
            let args: Vec<&str> = ["-s127.0.0.1"].into_iter().chain(line.split(' ')).collect();
            let done = NTTTCP.ask(sender, &netns, &args);
            assert_eq!(done.code, Some(0), "{line}: {done:?}");
            assert!(!done.stdout.contains("ERR"), "{line}: {done:?}");
            let ended = server.await_events("ended", count);
            assert_eq!(ended["error"], Value::Null, "{line}: {}", server.stderr());
            let total = done.stdout.lines().find_map(|line| line.split_once("total bytes\t:"));
            let sent: u64 = total.unwrap_or_else(|| panic!("{line}: {done:?}")).1.trim().parse().unwrap();
            // The server also counts the warm-up and the cool-down, which the sender leaves out.
            let received = archived_bytes(&netns, &folder);
            assert!(received > sent / 2, "{line}: {received} of {sent}");
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn our_senders_are_served_at_the_ports_of_other_tools() {
    senders_are_served(Program::Ours);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn real_senders_are_served_at_the_ports_of_other_tools() {
    if !NTTTCP.is_installed() {
        return skipped("real_senders_are_served_at_the_ports_of_other_tools", "ntttcp is not installed");
    }
    senders_are_served(Program::Real);
}
