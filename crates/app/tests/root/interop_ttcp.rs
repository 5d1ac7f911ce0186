//! ttcp is not packaged here, but other programs speak its protocol: nuttcp without a server, iperf 2, and
//! plain sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use crate::support::{
    self, Done, Folder, IPERF, NUTTCP, Netns, Process, Program, TIMEOUT, TTCP, before, eventually, pause,
    signal,
};

use Program::{Ours, Real};

const HOST: &str = "127.0.0.1";
const PORT: u16 = 5001;

/// A receiver that is listening.
fn receive(on: &Netns, args: &[&str]) -> Process {
    let process = TTCP.start(Ours, on, &[&["-r"], args].concat());
    on.await_listener(PORT);
    process
}

/// A receiver of datagrams with an open socket.
fn receive_datagrams(on: &Netns, args: &[&str]) -> Process {
    let process = TTCP.start(Ours, on, &[&["-r", "-s", "-u"], args].concat());
    eventually("a socket", || {
        let sockets = on.inside(|| {
            ["udp", "udp6"].map(|name| {
                std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
            })
        });
        sockets.concat().contains(&format!(":{PORT:04X} ")).then_some(())
    });
    process
}

/// Bytes and calls in the SGI line of a report.
fn counted(end: &str, report: &str) -> (u64, u64) {
    let count = |words: &str| {
        let line = report.lines().find(|line| line.starts_with(end) && line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no {words:?} in {report}"));
        before(line, words) as u64
    };
    (count(" bytes in "), count(" I/O calls"))
}

/// Counts of a receiver, which must succeed.
fn received(process: Process) -> (u64, u64) {
    let done = process.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    counted("ttcp-r: ", &done.stdout)
}

fn succeeds(done: Done) -> Done {
    assert_eq!(done.code, Some(0), "{done:?}");
    done
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn nuttcp_without_a_server_sends_to_our_receiver() {
    let netns = Netns::new();
    let receiver = receive(&netns, &["-s"]);
    let sender = succeeds(NUTTCP.ask(Real, &netns, &["-n1m", "-l8k", HOST]));
    assert!(sender.stdout.starts_with("    1.0000 MB / "), "{sender:?}");
    assert_eq!(received(receiver).0, 1 << 20);
    // Ours does the same.
    let receiver = receive(&netns, &["-s"]);
    let sender = succeeds(NUTTCP.ask(Ours, &netns, &["-n1m", "-l8k", "-p5001", HOST]));
    assert!(sender.stdout.starts_with("    1.0000 MB / "), "{sender:?}");
    assert_eq!(received(receiver).0, 1 << 20);
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn iperf_2_sends_to_our_receiver() {
    let netns = Netns::new();
    let receiver = receive(&netns, &["-s"]);
    succeeds(IPERF.ask(Real, &netns, &["-c", HOST, "-n", "1M"]));
    assert_eq!(received(receiver).0, 1 << 20);
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn our_transmitter_sends_to_iperf_2() {
    let netns = Netns::new();
    let server = IPERF.start(Real, &netns, &["-s", "-y", "C"]);
    netns.await_listener(PORT);
    let sender = succeeds(TTCP.ask(Ours, &netns, &["-t", "-s", "-l", "1000", "-n", "500", HOST]));
    assert_eq!(counted("ttcp-t: ", &sender.stdout), (500_000, 500));
    // Date, four fields of addresses and ports, id, interval, bytes, rate.
    let line = eventually("a line", || server.stdout().lines().next().map(str::to_owned));
    // It takes the first four bytes for its header.
    assert_eq!(line.split(',').nth(7), Some("499996"), "{line}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn both_ends_count_what_was_sent() {
    let netns = Netns::new();
    for (args, expected) in [
        (&["-n", "512"][..], (4_194_304, 512)),
        (&["-l", "1000", "-n", "333", "-D", "-b", "65536"], (333_000, 333)),
        (&["-f", "m", "-n", "100", "-v"], (819_200, 100)),
    ] {
        let receiver = receive(&netns, &["-s"]);
        let sender = succeeds(TTCP.ask(Ours, &netns, &[&["-t", "-s"], args, &[HOST]].concat()));
        let (bytes, calls) = counted("ttcp-t: ", &sender.stdout);
        assert_eq!(bytes, expected.0, "{args:?} {sender:?}");
        // A block that does not fit into the send buffer takes two calls.
        assert!((expected.1..2 * expected.1).contains(&calls), "{args:?} {sender:?}");
        assert_eq!(received(receiver).0, expected.0, "{args:?}");
    }
    // Two markers count as calls in addition to the datagrams.
    let receiver = receive_datagrams(&netns, &[]);
    let sender = succeeds(TTCP.ask(Ours, &netns, &["-t", "-s", "-u", "-l", "1400", "-n", "50", HOST]));
    assert_eq!(counted("ttcp-t: ", &sender.stdout).0, 70_000, "{sender:?}");
    assert_eq!(received(receiver), (70_000, 52));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_line_of_resources_is_whole() {
    let netns = Netns::new();
    let receiver = receive(&netns, &["-s"]);
    let sender = succeeds(TTCP.ask(Ours, &netns, &["-t", "-s", "-n", "64", HOST]));
    for report in [sender.stdout, succeeds(receiver.finish(TIMEOUT)).stdout] {
        let last =
            report.lines().find(|line| line.contains("real ") && line.contains('%')).unwrap_or_default();
        let (_, memory) = last.split_once("% ").unwrap_or_else(|| panic!("{report}"));
        assert_eq!(support::form(memory), "#i+#d #maxrss #+#pf #+#csw", "{report}");
        // The resident memory cannot be zero.
        assert!(before(last, "maxrss") > 0.0, "{report}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_goes_through_a_pipe_comes_out_as_it_was() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let content: Vec<u8> = (0..300_001_u32).map(|at| (at * 7 % 251) as u8).collect();
    std::fs::write(folder.file("in"), &content).unwrap();
    let through = |role: &str, redirection: &str| {
        let program = env!("CARGO_BIN_EXE_linerate");
        let line = format!("exec '{program}' ttcp {role} {redirection}");
        Process::start(netns.exec("sh", &["-c", &line]))
    };
    let receiver = through("-r -B -l 512", &format!("> {}", folder.file("out")));
    netns.await_listener(PORT);
    succeeds(through("-t 127.0.0.1", &format!("< {}", folder.file("in"))).finish(TIMEOUT));
    succeeds(receiver.finish(TIMEOUT));
    // The tool also prints its report to standard output: its first line before the data, the rest after it.
    let out = std::fs::read(folder.file("out")).unwrap();
    assert!(out.windows(content.len()).any(|part| part == content), "{} bytes", out.len());
}

/// Sends datagrams from a socket of the test.
fn send_all(on: &Netns, datagrams: &[Vec<u8>]) {
    on.inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for datagram in datagrams {
            socket.send_to(datagram, (Ipv4Addr::LOCALHOST, PORT)).unwrap();
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_receiver_of_datagrams_goes_by_their_length_alone() {
    let netns = Netns::new();
    let (mark, data) = (vec![0x20, 0x21, 0x22, 0x23], vec![b'x'; 1000]);
    let ten = vec![data.clone(); 10];
    let whole = [vec![mark.clone()], ten.clone(), vec![mark.clone(); 5]].concat();
    let receiver = receive_datagrams(&netns, &[]);
    send_all(&netns, &whole);
    assert_eq!(received(receiver), (10_000, 12));
    // PCATTCP's end marks have other bytes.
    let other = [vec![b"PCAU".to_vec()], ten, vec![b"PCAU".to_vec(); 5]].concat();
    let receiver = receive_datagrams(&netns, &[]);
    send_all(&netns, &other);
    assert_eq!(received(receiver), (10_000, 12));
    // Without the first mark, the next one begins the data, and a spare one ends it.
    let receiver = receive_datagrams(&netns, &[]);
    send_all(&netns, &whole[1..]);
    let done = receiver.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_transmitter_of_datagrams_marks_both_ends() {
    let netns = Netns::new();
    let (sender, datagrams) = netns.inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT)).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let sender = TTCP.start(Ours, &netns, &["-t", "-s", "-u", "-l", "3", "-n", "20", HOST]);
        let mut datagrams = Vec::new();
        while datagrams.len() < 1 + 20 + 5 {
            let mut datagram = [0; 2048];
            let length = socket.recv(&mut datagram).unwrap();
            datagrams.push(datagram[..length].to_vec());
        }
        (sender, datagrams)
    });
    succeeds(sender.finish(TIMEOUT));
    let mark = b" !\"#".to_vec();
    assert_eq!(datagrams[0], mark);
    // Datagrams of three bytes would look like marks.
    assert!(datagrams[1..21].iter().all(|datagram| datagram == b" !\"#$"), "{datagrams:?}");
    assert!(datagrams[21..].iter().all(|datagram| *datagram == mark), "{datagrams:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_refused_connection_has_the_words_of_the_tool() {
    let netns = Netns::new();
    let done = TTCP.ask(Ours, &netns, &["-t", "-s", HOST]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("ttcp-t: connect: Connection refused\nerrno=111\n"), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_peer_that_is_killed_ends_the_test() {
    let netns = Netns::new();
    let receiver = receive(&netns, &["-s"]);
    let sender = TTCP.start(Ours, &netns, &["-t", "-s", "-n", "100000000", HOST]);
    eventually("a connection", || receiver.stderr().contains("accept from").then_some(()));
    pause(std::time::Duration::from_millis(100));
    signal(receiver.pid(), "KILL");
    let done = sender.finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("ttcp-t: IO: "), "{done:?}");
    drop(receiver);
    // In the other direction the connection is closed, which ends a test.
    let receiver = receive(&netns, &["-s"]);
    let sent = netns.inside(|| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).unwrap();
        stream.write_all(&[b'y'; 12_345]).unwrap();
        12_345
    });
    assert_eq!(received(receiver).0, sent);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn every_block_begins_with_the_pattern() {
    let netns = Netns::new();
    let (sender, stream) = netns.inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).unwrap();
        let sender = TTCP.start(Ours, &netns, &["-t", "-s", "-l", "100", "-n", "3", HOST]);
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        (sender, bytes)
    });
    succeeds(sender.finish(TIMEOUT));
    let block: Vec<u8> = (b' '..=b'~').cycle().take(100).collect();
    assert_eq!(stream, block.repeat(3));
}
