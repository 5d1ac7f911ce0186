//! Retransmitted segments that tools print at the end of a test: those that left the host again.
//!
//! A slow path that drops packets keeps the kernel busy after the last write: it still sends, and retransmits, what
//! is in the socket buffer.

use crate::support::{Done, LinkSide, Net, Process, TIMEOUT, again_when_busy, eventually, signal};

const PORT: u16 = 5001;

/// A path of 10 Mbit/s on which one data packet in 40 from this side to the port is lost.
fn lossy(sender: LinkSide) -> Net {
    let net = Net::pair();
    for side in [LinkSide::A, LinkSide::B] {
        run(&net, side, "ip", &["route", "replace", "10.77.0.0/24", "dev", "veth0", "congctl", "cubic"]);
    }
    // A queue for everything that the sockets hold: TCP does not count as sent what its own host drops.
    net.tbf(sender, "10mbit", "20kb", "1s");
    let receiver = if sender == LinkSide::A { LinkSide::B } else { LinkSide::A };
    let rules = "add table inet loss
        add chain inet loss input { type filter hook input priority 0; }
        add rule inet loss input tcp flags & (syn | fin) == 0 meta length > 200 th dport != 5000 th sport != 5000 \
        numgen inc mod 40 == 7 drop";
    run(&net, receiver, "nft", &[rules]);
    // A packet then has one segment, so that a retransmitted one begins where another began.
    run(&net, sender, "ip", &["link", "set", "veth0", "gso_max_segs", "1"]);
    let rules = "add table inet seen
        add set inet seen sequences { typeof tcp sequence; flags dynamic; size 65535; }
        add counter inet seen again
        add chain inet seen output { type filter hook output priority 0; }
        add rule inet seen output tcp dport != 5000 tcp sport != 5000 meta length > 60 tcp sequence @sequences \
        counter name again
        add rule inet seen output tcp dport != 5000 tcp sport != 5000 meta length > 60 add @sequences { tcp sequence }";
    run(&net, sender, "nft", &[rules]);
    net
}

fn run(net: &Net, side: LinkSide, program: &str, args: &[&str]) -> String {
    let done = Process::start(net.exec(side, program, args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{program} {args:?}: {done:?}");
    done.stdout
}

/// Segments with data that a side has sent again. What has none, such as the last one of a connection, is not the
/// transfer's, and a busy peer makes the kernel send it again.
fn retransmitted(net: &Net, side: LinkSide) -> u64 {
    let text = run(net, side, "nft", &["list", "counter", "inet", "seen", "again"]);
    let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
    words.nth(1).and_then(|packets| packets.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// The word before or after another one in the last line that has it.
fn count(done: &Done, name: &str) -> u64 {
    let line = done.stdout.lines().rfind(|line| line.contains(name)).unwrap_or_else(|| panic!("{done:?}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.ends_with(name)).unwrap();
    let near = if name.starts_with('/') { words.get(at + 1) } else { words.get(at - 1) };
    near.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// What a test did, and the segments that it and the kernel of its sender counted.
type Retransmits = (Done, u64, u64);

/// The program reports what the kernel counted. On a busy machine the kernel may have sent more again than the test: a
/// segment of its control connection, or one after its report.
fn agree(run: impl Fn() -> Retransmits) {
    let (done, reported, counted) =
        again_when_busy(run, |(_, reported, counted)| *counted >= 20 && reported == counted);
    assert!(counted >= 20, "{counted}: {done:?}");
    assert_eq!(reported, counted, "{done:?}");
}

fn iperf(client: &str, server: &str, reverse: bool) {
    agree(|| iperf_once(client, server, reverse));
}

fn iperf_once(client: &str, server: &str, reverse: bool) -> Retransmits {
    let sender = if reverse { LinkSide::B } else { LinkSide::A };
    let net = lossy(sender);
    let start = |side, program: &str, args: &[&str]| {
        let (command, first): (&str, &[&str]) = match program {
            "iperf" => ("stdbuf", &["-oL", "iperf"]),
            _ => (env!("CARGO_BIN_EXE_linerate"), &["iperf"]),
        };
        Process::start(net.exec(side, command, &[first, args].concat()))
    };
    let serving = start(LinkSide::B, server, &["-s", "-e", "-w", "256K"]);
    net.await_port(LinkSide::B, PORT, false);
    let way: &[&str] = if reverse { &["-R"] } else { &[] };
    let args = ["-c", LinkSide::B.address(), "-t", "3", "-e", "-w", "256K", "-l", "8K"];
    let client = start(LinkSide::A, client, &[&args, way].concat()).finish(TIMEOUT);
    assert_eq!(client.code, Some(0), "{client:?}");
    eventually("the server has reported the test", || serving.stdout().contains(" 0.0000-").then_some(()));
    signal(serving.pid(), "INT");
    let server = serving.finish(TIMEOUT);
    let (done, counted) = (if reverse { server } else { client }, retransmitted(&net, sender));
    let reported = count(&done, "/0");
    (done, reported, counted)
}

#[test]
#[ignore = "needs root and network namespaces, nft, iperf"]
fn our_iperf_client_reports_all_of_its_retransmitted_segments() {
    iperf("linerate", "iperf", false);
}

#[test]
#[ignore = "needs root and network namespaces, nft, iperf"]
fn our_iperf_server_reports_all_of_its_retransmitted_segments() {
    iperf("iperf", "linerate", true);
}

fn nuttcp(client: &str, server: &str, reverse: bool) {
    agree(|| nuttcp_once(client, server, reverse));
}

fn nuttcp_once(client: &str, server: &str, reverse: bool) -> Retransmits {
    let sender = if reverse { LinkSide::B } else { LinkSide::A };
    let net = lossy(sender);
    let start = |side, program: &str, args: &[&str]| {
        let (command, first): (&str, &[&str]) = match program {
            "nuttcp" => ("nuttcp", &[]),
            _ => (env!("CARGO_BIN_EXE_linerate"), &["nuttcp"]),
        };
        Process::start(net.exec(side, command, &[first, args].concat()))
    };
    let serving = start(LinkSide::B, server, &["-1"]);
    net.await_port(LinkSide::B, 5000, false);
    let way: &[&str] = if reverse { &["-r"] } else { &["-t"] };
    // Buffers that fit into the queue: a full one would delay the control connection until it retransmits too.
    let args = [way, &["-T3", "-w64", "-l8", "-p5101", LinkSide::B.address()]].concat();
    let client = start(LinkSide::A, client, &args).finish(TIMEOUT);
    assert_eq!(client.code, Some(0), "{client:?}");
    let _ = serving.finish(TIMEOUT);
    let counted = retransmitted(&net, sender);
    let reported = count(&client, "retrans");
    (client, reported, counted)
}

#[test]
#[ignore = "needs root and network namespaces, nft, nuttcp"]
fn our_nuttcp_client_reports_all_of_its_retransmitted_segments() {
    nuttcp("linerate", "nuttcp", false);
}

#[test]
#[ignore = "needs root and network namespaces, nft, nuttcp"]
fn our_nuttcp_server_reports_all_of_its_retransmitted_segments() {
    nuttcp("nuttcp", "linerate", true);
}
